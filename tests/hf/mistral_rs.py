"""mistral.rs, as PyPI has it compiled: GGUF exports in an engine written in Rust, which shares no code with torch or llama.cpp. Run by parity.py.

    mistral_rs.py FILE.gguf DIR PROMPT    boots the prompt's program and prints what it says; DIR: the same chip exported with --hf

The engine takes text and says text: the tokens' strings are those of DIR. Its own tokens are asked for as log-probabilities.
"""
import json
import os
import re
import sys

import mistralrs


class Engine:
    def __init__(self, file, folder):
        with open(os.path.join(folder, "tokenizer.json")) as f:
            vocab = json.load(f)["model"]["vocab"]
        self.text = {token: text for text, token in vocab.items()}
        where, name = os.path.split(os.path.abspath(file))
        self.runner = mistralrs.Runner(mistralrs.Which.GGUF(quantized_model_id=where, quantized_filename=name, tok_model_id=folder))

    def generate(self, prompt, most=100_000):
        """Greedy decoding: the tokens, until one that ends generation or `most`."""
        content = "".join(self.text[t] for t in prompt)
        request = mistralrs.ChatCompletionRequest(
            messages=[{"role": "user", "content": content}], model="default", max_tokens=most, temperature=0.0, top_k=1, logprobs=True, top_logprobs=1)
        done = self.runner.send_chat_completion_request(request)
        assert done.usage.prompt_tokens == len(prompt)
        return [x.top_logprobs[0].token for x in done.choices[0].logprobs.content]

    def console(self, prompt):
        said = "".join(self.text[t] for t in self.generate(prompt))
        return bytes(int(byte, 16) for byte in re.findall(r"<uart(?:\.more)? 0x(..)>", said))


if __name__ == "__main__":
    sys.stdout.buffer.write(Engine(*sys.argv[1:3]).console([int(line) for line in open(sys.argv[3])]))
