"""Boots a C program in a stock model and prints its output: example.py EXPORTED-CHIP PROMPT (a file from `tapeout prompt`)."""
import re
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
names = AutoTokenizer.from_pretrained(sys.argv[1])
prompt = torch.tensor([[int(line) for line in open(sys.argv[2])]])
run = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=100_000)
said = names.decode(run[0, prompt.shape[1] :])
print(bytes(int(byte, 16) for byte in re.findall(r"<uart(?:\.more)? 0x(..)>", said)).decode(), end="")
