"""A chip in front of a base model (`tapeout graft`), in the stock package. The base models are small, random, and made by the package itself.

For every base: text without chip tokens (largest difference of logits, KL, beside the base's own noise: the same text in pieces and token by token);
a run before, after and between text, token for token, by cached decode and in one forward, with the chip's recurrent state bit for bit that of the
exported chip alone; and the logits of everything against the base model fed with the stand-in token instead of the run. Beside the package our own layers
(`tapeout run DIR IDS`): the base's logits, what it says by itself, and the chip's run between texts.
"""
import json
import os
import shutil
import struct
import subprocess
import time

import numpy
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, Qwen3_5TextConfig, Qwen3NextConfig

from common import TAPEOUT, Chip, Clock, cache_name, feed, load, new_cache, path, recurrent, run

SPEC = ("tests/hf/mix.ckt", "--vocab", "4096")
# name: tied, dtype, hidden size of both together (0: the smallest), and how many times the base model's own noise the difference may be, 0: the same bits
BASES = {
    "tied": (True, "float32", 0, 4),
    "untied": (False, "float32", 0, 4),
    "untied-4x": (False, "float32", 768, 0),
    "untied-bf16": (False, "bfloat16", 0, 300),  # every gain of the norms is rounded to bfloat16 once more: about 100 times the noise of other shapes
    "tied-bf16-4x": (True, "bfloat16", 768, 0),
}
HIDDEN, VOCAB, TEXT, RUN = 192, 500, 120, 120
SHAPE = {
    "vocab_size": VOCAB, "hidden_size": HIDDEN, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
    "linear_num_key_heads": 4, "linear_num_value_heads": 16, "linear_key_head_dim": 64, "linear_value_head_dim": 16, "eos_token_id": 5,
}
# what only our own layers run: heads of the public models' sizes, and another arrangement of the projections
PUBLIC = SHAPE | {"head_dim": 256, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "rope_parameters": {
    "rope_type": "default", "rope_theta": 10000000, "partial_rotary_factor": 0.25, "mrope_interleaved": True, "mrope_section": [11, 11, 10]}}
NEXT = SHAPE | {"num_experts": 0, "mlp_only_layers": [0, 1, 2, 3]}


def random_model(folder, config, dtype):
    """Linear, linear, linear, full; norms with gains, as trained ones have."""
    torch.manual_seed(7)
    model = AutoModelForCausalLM.from_config(config)
    for name, p in model.named_parameters():
        if "layernorm" in name or name == "model.norm.weight":
            p.data = 0.3 * torch.randn_like(p)
        elif "embed" not in name and p.dim() == 2:
            p.data *= 2  # so that the layers change what passes
    shutil.rmtree(folder, ignore_errors=True)
    model.to(dtype).save_pretrained(folder, max_shard_size="2MB")


def make_base(folder, tied, dtype):
    random_model(folder, Qwen3_5TextConfig(**SHAPE, tie_word_embeddings=tied), dtype)


def logits(model, tokens):
    with torch.no_grad():
        return model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]


def in_pieces(model, tokens, size):
    cache, out = new_cache(model), []
    with torch.no_grad():
        for at in range(0, len(tokens), size):
            out.append(model(input_ids=torch.tensor([tokens[at : at + size]]), use_cache=True, **{cache_name(model): cache}).logits[0])
    return torch.cat(out)


def distance(a, b):
    """Largest difference, and mean KL of b from a in float64; b may have more tokens."""
    n = a.shape[-1]
    p, q = a.double().log_softmax(-1), b.double().log_softmax(-1)[..., :n]
    return (a - b[..., :n]).abs().max().item(), (p.exp() * (p - q)).sum(-1).mean().item()


def noise(base, tokens):
    """The base model's own: the same tokens in pieces, or one at a time, against all at once."""
    whole = logits(base, tokens)
    return [distance(whole, in_pieces(base, tokens, n)) for n in (37, 1)]


def text_only(check, name, base, grafted, text, bound):
    got = logits(grafted, text)
    far, apart = distance(logits(base, text), got)
    most, kl = bound
    check(name, f"text: largest difference {far:.2g}, KL {apart:.2g}", far <= most and apart <= kl,
          "(the base model in pieces of 37: %.2g, %.2g; token by token: %.2g, %.2g)" % sum(noise(base, text), ()))
    check(name, "text: no chip token has any probability", (got.float().softmax(-1)[:, VOCAB:].sum() == 0).item() and (got[:, VOCAB:].max() < -1e6).item())


def decoded(check, name, grafted, alone, prompt, ours, first, layers, before, after):
    """Cached decode between two texts, and what it leaves in the chip's layers."""
    cache, half = new_cache(grafted), new_cache(alone)
    feed(alone, half, prompt + ours)
    feed(grafted, cache, before)
    said = [feed(grafted, cache, [first + t for t in prompt])[0, -1].item()]
    while len(said) < len(ours):
        said.append(feed(grafted, cache, [said[-1]])[0, -1].item())
    check(name, f"a run of {len(ours)} tokens between texts, by cached decode", [t - first for t in said] == ours)
    feed(grafted, cache, [said[-1]] + after)
    mine, theirs = recurrent(half), recurrent(cache)
    check(name, f"... leaves the state of the chip alone, bit for bit ({layers} layers)", all(torch.equal(mine[i], theirs[i]) for i in range(layers)))


def ours_say(folder, tokens, count, *more):
    ids = path("graft.ids")
    with open(ids, "w") as f:
        f.write("\n".join(map(str, tokens)))
    return [int(t) for t in run(TAPEOUT, "run", folder, ids, "--max-tokens", count, *more).stdout.split()]


def random_text():
    return torch.randint(0, VOCAB, (TEXT,), generator=torch.Generator().manual_seed(3)).tolist()


def our_layers(check, name, base_folder, base, text, own):
    """A model in `tapeout run`: as near to the package as the package is to itself."""
    ours_say(base_folder, text, 1, "--logits", path("graft.logits"))
    mine = torch.from_numpy(numpy.fromfile(path("graft.logits"), "<f4").reshape(len(text), -1))
    far, apart = distance(logits(base, text).float(), mine)
    check(name, f"our own layers: largest difference {far:.2g}, KL {apart:.2g}", far <= 4 * max(n[0] for n in own) and apart <= 4 * max(n[1] for n in own))
    if base.dtype == torch.float32:  # in bfloat16 two logits are often the same number
        said = base.generate(torch.tensor([text]), max_new_tokens=RUN, do_sample=False)[0, len(text) :].tolist()
        check(name, f"our own layers: {len(said)} tokens of text by greedy decoding", ours_say(base_folder, text, RUN) == said)


def runs(check, name, base, grafted, alone, prompt, ours, note, text, bound):
    first, layers = note["first_token"], note["chip_layers"] - 1
    chip_tokens = [first + t for t in prompt + ours]
    stand_in = [note["stand_in"]] * len(chip_tokens)
    decoded(check, name, grafted, alone, prompt, ours, first, layers, text[:70], text[70:])
    for what, before, after in (("before text", [], text), ("after text", text, []), ("between texts", text[:70], text[70:])):
        whole = logits(grafted, before + chip_tokens + after)
        at = len(before) + len(prompt) - 1
        check(name, f"a run {what}, in one forward", whole[at : at + len(ours)].argmax(-1).tolist() == [first + t for t in ours])
        expected = before + stand_in + after
        far, apart = distance(logits(base, expected), whole[:, :VOCAB])  # of the base model's own tokens
        most, kl = bound
        check(name, f"... and the base model reads it as so many of its tokens: {far:.2g}, KL {apart:.2g}", far <= most and apart <= kl)


def same_with_vision(check, name, base_folder, folder, chip):
    """The same weights as the text part of a model with vision: the same result."""
    outer, other = path("graft-vision"), path("graft-other")
    shutil.rmtree(outer, ignore_errors=True)
    os.makedirs(outer)
    config = json.load(open(os.path.join(base_folder, "config.json")))
    json.dump({"model_type": "qwen3_5", "tie_word_embeddings": config.pop("tie_word_embeddings"), "text_config": config}, open(os.path.join(outer, "config.json"), "w"))
    tensors = {"model.visual.patch.weight": torch.ones(3), "mtp.norm.weight": torch.ones(3)}
    for f in os.listdir(base_folder):
        if f.endswith(".safetensors"):
            tensors.update({k.replace("model.", "model.language_model."): v for k, v in load_file(os.path.join(base_folder, f)).items()})
    save_file(tensors, os.path.join(outer, "model.safetensors"))
    run(TAPEOUT, "graft", outer, chip.file, "-q", "-o", other, "--shard", 20000000)
    files = [f for f in sorted(os.listdir(folder)) if "safetensors" in f]
    same = [open(os.path.join(folder, f), "rb").read() == open(os.path.join(other, f), "rb").read() for f in files]
    check(name, "the text part of a model with vision gives the same weights", same and all(same), len(same))


def one(check, name, tied, dtype, hidden, times):
    print(f"== graft {name}", flush=True)
    base_folder, folder = path("graft-base"), path("graft-both")
    shutil.rmtree(folder, ignore_errors=True)
    make_base(base_folder, tied, getattr(torch, dtype))
    chip = Chip("graft-mix", *SPEC, "--base", base_folder, *(["--hidden", hidden] if hidden else []))
    print("  " + run(TAPEOUT, "graft", base_folder, chip.file, "-o", folder, "--shard", 20000000).stdout.decode().replace("\n", "\n  ").rstrip())
    base, grafted, alone = load(base_folder), load(folder), load(chip.export())
    note = json.load(open(os.path.join(folder, "config.json")))["tapeout"]
    shifted = run(TAPEOUT, "prompt", chip.file, "--first", note["first_token"]).stdout.split()
    prompt = chip.prompt()
    check(name, "prompt --first", [int(t) for t in shifted] == [t + note["first_token"] for t in prompt])
    ours = chip.trace(steps=RUN)[0][:RUN]
    text = random_text()
    own = noise(base, text)
    bound = [times * max(n[i] for n in own) for i in (0, 1)]
    if name == "tied":
        same_with_vision(check, name, base_folder, folder, chip)
    our_layers(check, name, base_folder, base, text, own)
    check(name, f"our own layers: a run of {len(ours)} tokens after text", [t - note["first_token"] for t in ours_say(folder, text + [int(t) for t in shifted], len(ours))] == ours)
    text_only(check, name, base, grafted, text, bound)
    runs(check, name, base, grafted, alone, prompt, ours, note, text, bound)


def large_base(folder, vocabulary):
    """A base with a vocabulary of gigabytes: its embedding and head are holes in a file. Returns their bytes."""
    config = json.load(open(os.path.join(folder, "config.json"))) | {"vocab_size": vocabulary}
    json.dump(config, open(os.path.join(folder, "config.json"), "w"))
    large, small, at, header = ("model.embed_tokens.weight", "lm_head.weight"), {}, 0, {}
    for f in os.listdir(folder):
        if f.endswith(".safetensors"):
            small.update({k: t for k, t in load_file(os.path.join(folder, f)).items() if k not in large})
            os.unlink(os.path.join(folder, f))
    save_file(small, os.path.join(folder, "small.safetensors"))
    for name in large:
        header[name] = {"dtype": "F32", "shape": [vocabulary, HIDDEN], "data_offsets": [at, at := at + 4 * HIDDEN * vocabulary]}
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "large.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + at)
    places = {k: "small.safetensors" for k in small} | {k: "large.safetensors" for k in large}
    json.dump({"metadata": {}, "weight_map": places}, open(os.path.join(folder, "model.safetensors.index.json"), "w"))
    return at


def memory(check):
    """A base that is larger than what a graft may take."""
    base_folder, folder = path("graft-base"), path("graft-both")
    shutil.rmtree(folder, ignore_errors=True)
    make_base(base_folder, False, torch.float32)
    size = large_base(base_folder, 1_000_000)
    chip = Chip("graft-large", *SPEC, "--base", base_folder)
    most, done = 0, subprocess.Popen([TAPEOUT, "graft", base_folder, chip.file, "-q", "-o", folder])
    while done.poll() is None:  # what the kernel has seen at most; a child's rusage would begin with this process's own size
        for line in open(f"/proc/{done.pid}/status"):
            if line.startswith("VmHWM"):
                most = int(line.split()[1]) // 1000
        time.sleep(0.02)
    check("large", f"a base of {size / 1e9:.1f} GB in {most} MB of memory", done.returncode == 0 and 0 < most < 200)
    shutil.rmtree(folder)


def others(check):
    """Models that no chip is put before, in our own layers."""
    folder, text = path("graft-base"), random_text()
    for name, config in (("public heads", Qwen3_5TextConfig(**PUBLIC)), ("Qwen3-Next", Qwen3NextConfig(**NEXT))):
        for dtype in (torch.float32, torch.bfloat16):
            random_model(folder, config, dtype)
            model = load(folder)
            our_layers(check, f"{name}, {dtype}", folder, model, text, noise(model, text))


def main(check):
    memory(check)
    others(check)
    for name, how in BASES.items():
        with Clock(f"graft {name}"):
            one(check, name, *how)
