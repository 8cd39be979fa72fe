"""Parity with the stock package: every token and the recurrent state, in every way that a prompt can be fed.

usage: parity.py [--tokens N] [NAME...]    names of MACHINES, or graft; default all; N tokens of cached decode (default 2000)
"""
import argparse
import os
import shutil
import sys

import torch
from transformers import AutoTokenizer

import graft
import tapeout_state
from common import TAPEOUT, Chip, Clock, HERE, ROOT, feed, load, new_cache, path, recurrent, run, same_states

CPU = ("cpu-spec/rv32i.ckt", "-D", "RAM=4KiB", "--vocab", "16384")
# name: source and build options, firmware, dtype of the run's chip, families
MACHINES = {
    "mix": ("tests/hf/mix.ckt", "--vocab", "4096"),
    "mix-bf16": ("tests/hf/mix.ckt", "--vocab", "4096", "--dtype", "bf16"),
    "subleq": ("tests/machines/subleq.ckt",),
    "cpu": CPU,
    "cpu-bf16": CPU + ("--dtype", "bf16"),
}
FAMILIES = ("qwen3_next", "qwen3_5_moe", "olmo_hybrid")
results = []


def check(name, what, ok, detail=""):
    results.append(bool(ok))
    print(f"{'pass' if ok else 'FAIL'} {name}: {what} {detail}", flush=True)


def firmware(name):
    run(os.path.join(ROOT, "firmware", "build.sh"), path("firmware"), os.path.join(HERE, name + ".c"))
    return path(f"firmware/{name}.elf")


def first_difference(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def stepwise(model, prompt, count):
    """Prompt in one piece, then one token at a time with the cache; the last token is not fed."""
    cache = new_cache(model)
    tokens = [feed(model, cache, prompt)[0, -1].item()]
    while len(tokens) < count:
        tokens.append(feed(model, cache, [tokens[-1]])[0, -1].item())
    return tokens, cache


def in_pieces(model, all_tokens, size):
    """The whole run as a prompt, in pieces of size(i) tokens: what the model says after each, and the cache."""
    cache, said, at, i = new_cache(model), [], 0, 0
    while at < len(all_tokens):
        n = size(i)
        said += feed(model, cache, all_tokens[at : at + n])[0].tolist()
        at, i = at + n, i + 1
    return said, cache


def decode(name, model, prompt, ours):
    """Cached decode against our run, the state against the same tokens in one piece and in uneven pieces."""
    with Clock(f"{len(ours)} tokens of cached decode"):
        theirs, cache = stepwise(model, prompt, len(ours))
    check(name, f"{len(ours)} tokens of cached decode are ours", theirs == ours, f"(first difference {first_difference(theirs, ours)})" if theirs != ours else "")
    fed = prompt + ours[:-1]
    for what, size in (("in one piece", lambda i: len(fed)), ("in uneven pieces", lambda i: (1, 2, 63, 64, 65, 7, 190, 3)[i % 8])):
        with Clock(f"{len(fed)} tokens {what}"):
            said, other = in_pieces(model, fed, size)
        said = said[len(prompt) - 1 :]
        check(name, f"fed {what}: the same tokens", said == ours, f"(first difference {first_difference(said, ours)})" if said != ours else "")
        check(name, f"fed {what}: the same recurrent state", same_states(recurrent(cache), recurrent(other)))
    return cache


def moves(name, chip, model, prompt, ours, cache, elf):
    """The state after all of our tokens but the last, ours and theirs; then half a run here, some there, and the rest here again."""
    half, there = chip.halt(elf, ours, len(ours) // 2), min(40, len(ours) // 4)
    if not half:
        return
    steps, at = half
    state, back = path(name + ".state"), path(name + "-back.state")
    for backend in ("dense", "sparse"):
        chip.trace(elf, steps=steps, backend=backend, more=("--prompt", "--save-state", state))
        theirs, token = tapeout_state.read(state, model.config, model.dtype, positions=len(prompt) + at - 1)
        alone = new_cache(model)
        feed(model, alone, prompt + ours[: at - 1])
        check(name, f"the state of our {backend} back end after {at} tokens is theirs, bit for bit", token == ours[at - 1] and tapeout_state.same(alone, theirs, conv=backend == "dense"))
        moved = []
        while len(moved) < there:
            token = feed(model, theirs, [token])[0, -1].item()
            moved.append(token)
        check(name, f"{there} tokens in the package from our state", moved == ours[at : at + there])
        tapeout_state.write(back, theirs, chip.manifest["name"], token)
        rest, _ = chip.trace(steps=len(ours), backend=backend, more=("--load-state", back))
        rest = rest[: len(ours) - at - there]
        check(name, f"{len(rest)} tokens in our {backend} back end from theirs", len(rest) > 0 and rest == ours[at + there :][: len(rest)])


def batch(name, model, runs):
    """Different prompts at once, padded on the left as the tokenizer of the export does."""
    pad, count = model.config.pad_token_id, min(len(ours) for _, ours in runs)
    longest = max(len(p) for p, _ in runs)
    ids = torch.tensor([[pad] * (longest - len(p)) + p for p, _ in runs])
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p, _ in runs])
    with Clock(f"batch of {len(runs)}, {count} tokens"):
        out = model.generate(ids, attention_mask=mask, max_new_tokens=count)[:, longest:].tolist()
    for i, (_, ours) in enumerate(runs):
        check(name, f"batch of {len(runs)}, row {i}: {count} tokens are ours", out[i][:count] == ours[:count], f"(first difference {first_difference(out[i], ours[:count])})")


def tokenizer(name, folder, chip, prompt):
    tok = AutoTokenizer.from_pretrained(folder)
    text = tok.decode(prompt)
    check(name, "the tokenizer reads what it writes", tok(text).input_ids == prompt and text.startswith("<"), text[:60])


def one(name, count):
    print(f"== {name}", flush=True)
    elf = firmware("boot") if name.startswith("cpu") else None
    chip = Chip(name, *MACHINES[name])
    with Clock("export"):
        folder = chip.export()
    weights = os.path.join(folder, "model.safetensors")
    print(f"  {os.path.getsize(weights) / 1e6:.0f} MB of weights, {os.stat(weights).st_blocks * 512 / 1e6:.0f} MB on disk")
    prompt = chip.prompt(elf)
    ours, done = chip.trace(elf, steps=count)
    ours = ours[:count]
    dense, _ = chip.trace(elf, steps=max(1, min(200, count // 8)), backend="dense")
    check(name, f"our dense executor, {min(len(dense), len(ours))} tokens", dense[: len(ours)] == ours[: len(dense)])
    tokenizer(name, folder, chip, prompt)
    model = load(folder)
    check(name, "loads without a missing, unexpected or converted tensor", model.dtype == chip.dtype)
    cache = decode(name, model, prompt, ours)
    moves(name, chip, model, prompt, ours, cache, elf)
    return chip, model, prompt, ours, elf


def families(chip, prompt, ours, count, decoded=200):
    for family in FAMILIES:
        folder = chip.export(family)
        model = load(folder)
        n = min(count, len(ours))
        fed = prompt + ours[: n - 1]
        said, cache = in_pieces(model, fed, lambda i: 97)
        check(f"{chip.name} as {family}", f"{n} tokens in pieces are ours", said[len(prompt) - 1 :] == ours[:n])
        theirs, _ = stepwise(model, prompt, min(n, decoded))
        check(f"{chip.name} as {family}", f"{len(theirs)} tokens of cached decode are ours", theirs == ours[: len(theirs)])
        del model
        shutil.rmtree(folder)


def example(name, chip, folder):
    """The README's example, as it stands there."""
    prompt = path("hello.prompt")
    with open(prompt, "w") as f:
        f.writelines(f"{t}\n" for t in chip.prompt(firmware("hello")))
    with Clock("example.py"):
        done = run(sys.executable, os.path.join(HERE, "example.py"), folder, prompt)
    check(name, "example.py boots a C program", done.stdout == b"Hello from C!\n", done.stdout)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--tokens", type=int, default=2000)
    args.add_argument("names", nargs="*")
    args = args.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    for name in args.names or [*MACHINES, "graft"]:
        if name == "graft":
            graft.main(check)
            continue
        chip, model, prompt, ours, elf = one(name, args.tokens)
        if name == "cpu":
            example(name, chip, path(name))
            hello = firmware("hello")
            other = chip.prompt(hello), chip.trace(hello)[0]
            batch(name, model, [(prompt, ours[:100]), other])
        if name in ("mix", "cpu"):
            families(chip, prompt, ours, args.tokens, decoded=200 if name == "mix" else 64)
        if name == "mix":
            short = prompt[:2] + prompt[-3:]  # a file of which one row is set
            alone, _ = stepwise(model, short, 100)
            batch(name, model, [(prompt, ours[:100]), (short, alone), (prompt[:8] + prompt[-3:], stepwise(model, prompt[:8] + prompt[-3:], 100)[0])])
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
