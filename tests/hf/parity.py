"""Parity with the stock package: every token and the recurrent state, in every way that a prompt can be fed.

usage: parity.py [--tokens N] [--jobs N] [NAME...]    names of MACHINES, readme, graft, gguf, mistral, fla or delta-rule; default all; N tokens of each run (TOKENS or 2000)

A name is a process of its own; `jobs` of them (default 2) run at once, on one thread each.
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import time

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
    "mix-kda": ("tests/hf/mix.ckt", "--vocab", "4096", "-t", "kimi-linear"),
    "mix-0.8b": ("tests/hf/mix.ckt", "--vocab", "4096", "-t", "qwen3.5-0.8b"),
    "subleq": ("tests/machines/subleq.ckt",),
    "cpu": CPU,
    "cpu-bf16": CPU + ("--dtype", "bf16"),
}
FAMILIES = ("qwen3_next", "qwen3_5_moe", "olmo_hybrid")
results = []


def check(name, what, ok, detail=""):
    results.append(bool(ok))
    print(f"{'pass' if ok else 'FAIL'} {name}: {what} {detail}", flush=True)


def firmware(name, user):
    """In a folder of the test's own: another one may be building too."""
    run(os.path.join(ROOT, "firmware", "build.sh"), path(f"firmware-{user}"), os.path.join(HERE, name + ".c"))
    return path(f"firmware-{user}/{name}.elf")


def check_tokens(name, what, theirs, ours):
    first = next((i for i, (x, y) in enumerate(zip(theirs, ours)) if x != y), min(len(theirs), len(ours)))
    check(name, what, theirs == ours, "" if theirs == ours else f"(first difference {first})")


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


UNEVEN = (1, 2, 63, 64, 65, 7, 190, 3)


def decode(name, model, prompt, ours):
    """Cached decode against our run, the state against the same tokens in one piece and in uneven pieces."""
    with Clock(f"{len(ours)} tokens of cached decode"):
        theirs, cache = stepwise(model, prompt, len(ours))
    check_tokens(name, f"{len(ours)} tokens of cached decode are ours", theirs, ours)
    fed = prompt + ours[:-1]
    for what, size in (("in one piece", lambda i: len(fed)), ("in uneven pieces", lambda i: UNEVEN[i % len(UNEVEN)])):
        with Clock(f"{len(fed)} tokens {what}"):
            said, other = in_pieces(model, fed, size)
        said = said[len(prompt) - 1 :]
        check_tokens(name, f"fed {what}: the same tokens", said, ours)
        check(name, f"fed {what}: the same recurrent state", same_states(recurrent(cache), recurrent(other)))
    return cache


def moves(name, chip, model, prompt, ours, cache, elf):
    """The state after all of our tokens but the last, ours and theirs; then half a run here, some there, and the rest here again."""
    half, there = chip.halt(elf, ours, len(ours) // 2), min(40, len(ours) // 4)
    if not half:
        return
    steps, at = half
    state, back = path(name + ".state"), path(name + "-back.state")
    alone = new_cache(model)
    feed(model, alone, prompt + ours[: at - 1])
    for backend in ("dense", "sparse"):
        chip.trace(elf, steps=steps, backend=backend, more=("--prompt", "--save-state", state))
        theirs, token = tapeout_state.read(state, model.config, model.dtype, positions=len(prompt) + at - 1)
        check(name, f"the state of our {backend} back end after {at} tokens is theirs, bit for bit", token == ours[at - 1] and tapeout_state.same(alone, theirs, conv=backend == "dense"))
        moved = []
        while len(moved) < there:
            token = feed(model, theirs, [token])[0, -1].item()
            moved.append(token)
        check(name, f"{there} tokens in the package from our state", moved == ours[at : at + there])
        tapeout_state.write(back, theirs, chip.manifest["name"], token, rows=tapeout_state.conv_rows(model.config, chip.channels))
        rest, _ = chip.trace(steps=len(ours), backend=backend, more=("--load-state", back))
        rest = rest[: len(ours) - at - there]
        check(name, f"{len(rest)} tokens in our {backend} back end from theirs", len(rest) > 0 and rest == ours[at + there :][: len(rest)])


def left_padded(model, rows):
    pad, longest = model.config.pad_token_id, max(map(len, rows))
    ids = torch.tensor([[pad] * (longest - len(r)) + r for r in rows])
    return ids, torch.tensor([[0] * (longest - len(r)) + [1] * len(r) for r in rows])


def batch(name, model, runs, count):
    """Different prompts at once, padded on the left as the tokenizer of the export does; a row that ends is padded on the right."""
    ids, mask = left_padded(model, [p for p, _ in runs])
    with Clock(f"batch of {len(runs)}, {count} tokens"):
        out = model.generate(ids, attention_mask=mask, max_new_tokens=count)[:, ids.shape[1] :].tolist()
    for i, (_, ours) in enumerate(runs):
        n = min(count, len(ours))
        check_tokens(name, f"batch of {len(runs)}, row {i}: {n} tokens are ours", out[i][:n], ours[:n])


def batch_in_pieces(name, model, runs, cache_of_first):
    """The same with everything given, in uneven pieces: what is said after each token, and the state of each row; the first row is the longest."""
    width, pad = len(runs[0][1]), model.config.pad_token_id
    starts, mask = left_padded(model, [p for p, _ in runs])
    ids = torch.cat([starts, torch.tensor([ours + [pad] * (width - len(ours)) for _, ours in runs])], 1)[:, :-1]
    mask = torch.cat([mask, torch.ones(len(runs), width - 1, dtype=mask.dtype)], 1)
    cache, said, at = new_cache(model), [], 0
    with Clock(f"batch of {len(runs)}, {ids.shape[1]} tokens in uneven pieces"):
        while at < ids.shape[1]:
            size = UNEVEN[-1 - len(said) % len(UNEVEN)]
            said.append(feed(model, cache, ids[:, at : at + size], mask[:, : at + size]))
            at += size
    said, theirs = torch.cat(said, 1)[:, starts.shape[1] - 1 :].tolist(), recurrent(cache)
    for i, (prompt, ours) in enumerate(runs):
        check(name, f"batch of {len(runs)} in uneven pieces, row {i}: {len(ours)} tokens are ours", said[i][: len(ours)] == ours)
        mine = cache_of_first
        if i:  # of the padding behind its end only the first tokens write: what the convolution still holds
            feed(model, mine := new_cache(model), prompt + ours + [pad] * 3)
        check(name, f"batch of {len(runs)} in uneven pieces, row {i}: its state is that of the row alone", all(torch.equal(s[0], theirs[k][i]) for k, s in recurrent(mine).items()))


def tokenizer(name, folder, chip, prompt):
    tok = AutoTokenizer.from_pretrained(folder)
    text = tok.decode(prompt)
    check(name, "the tokenizer reads what it writes", tok(text).input_ids == prompt and text.startswith("<"), text[:60])
    chat = [{"role": "user", "content": text[:900].rsplit(">", 1)[0] + ">"}]
    check(name, "a chat of one message is that message", tok.apply_chat_template(chat, tokenize=False) == chat[0]["content"])


def one(name, count):
    elf = firmware("boot", name) if name.startswith("cpu") else None
    chip = Chip(name, *MACHINES[name])
    with Clock("export"):
        folder = chip.export()
    weights = os.path.join(folder, "model.safetensors")
    print(f"  {os.path.getsize(weights) / 1e6:.0f} MB of weights, {os.stat(weights).st_blocks * 512 / 1e6:.0f} MB on disk")
    prompt = chip.prompt(elf)
    ours, done = chip.trace(elf, steps=count, more=("--check", "--stats"))
    ours = ours[:count]
    check(name, f"our sparse executor and the interpreter, {len(ours)} tokens", b"mismatches: 0\n" in done.stderr)
    dense, _ = chip.trace(elf, steps=count, backend="dense")
    check(name, f"our dense executor, {len(ours)} tokens", dense[: len(ours)] == ours)
    tokenizer(name, folder, chip, prompt)
    model = load(folder)
    check(name, "loads without a missing, unexpected or converted tensor", model.dtype == chip.dtype)
    cache = decode(name, model, prompt, ours)
    moves(name, chip, model, prompt, ours, cache, elf)
    return chip, model, prompt, ours, elf, cache


def families(chip, prompt, ours, count, decoded=200, which=FAMILIES):
    for family in which:
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


def readme(count):
    """The README's example, as it stands there: its shell block, in a folder that looks like this one, with its Python block as the file it names."""
    text = open(os.path.join(ROOT, "README.md")).read().split("## In stock software", 1)[1]
    shell, python = (re.search(f"```{kind}\\n(.*?)```", text, re.S)[1] for kind in ("sh", "python"))
    place = path("readme")
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(os.path.join(place, "build"))
    for name in ("firmware", "cpu-spec", "tests"):
        os.symlink(os.path.join(ROOT, name), os.path.join(place, name))
    os.symlink(TAPEOUT, os.path.join(place, "build", "tapeout"))
    with open(os.path.join(place, "boot.py"), "w") as f:
        f.write(python)
    with Clock("the README's example"):
        done = subprocess.run(["bash", "-e", "-c", shell], cwd=place, capture_output=True, env=os.environ | {"PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"]})
    check("readme", f"{len(python.splitlines())} lines of Python boot a C program", done.returncode == 0 and done.stdout.endswith(b"Hello from C!\n"), done.stdout or done.stderr[-2000:])


def engine_cases(user, count):
    """For an engine that reads GGUF: (what, chip, prompt, our tokens) of the conformance kit and of a machine that runs for ever, in float32 and bfloat16."""
    kit = path(f"{user}-kit")
    run(TAPEOUT, "conform", "--out", kit)
    ids = lambda name: [int(line) for line in open(os.path.join(kit, name))]
    yield "the kit", os.path.join(kit, "conform.chip"), ids("prompt.txt"), ids("expected.txt")
    for dtype in ("f32", "bf16"):
        chip = Chip(f"{user}-mix-{dtype}", *MACHINES["mix"], "-t", "native64", "--dtype", dtype)
        yield f"mix in {dtype}", chip.file, chip.prompt(), chip.trace(steps=count)[0][:count]


def engine_cpus(user):
    """(dtype, the CPU, the prompt of hello.c)"""
    elf = firmware("hello", user)
    for dtype in ("f32", "bf16"):
        chip = Chip(f"{user}-cpu-{dtype}", *CPU, "-t", "native64", "--dtype", dtype)
        yield dtype, chip, chip.prompt(elf)


def gguf(count):
    """llama.cpp: everything in pieces of several sizes, and a C program on the CPU."""
    import llama_cpp

    file = path("llama.gguf")
    for what, chip, prompt, ours in engine_cases("llama", count):
        run(TAPEOUT, "export", chip, "--gguf", file)
        engine = llama_cpp.Engine(file)
        fed = prompt + ours[:-1]
        for size in (512, 70, 1):
            check_tokens("gguf", f"{what}, in pieces of {size}: {len(ours)} tokens are ours", engine.in_pieces(fed, size)[len(prompt) - 1 :], ours)
        text = engine.text(ours[:20])
        check("gguf", f"{what}: the tokenizer reads what it writes", engine.vocab.tokenize(text, False, True) == ours[:20], text[:60])
    for dtype, chip, prompt in engine_cpus("llama"):
        run(TAPEOUT, "export", chip.file, "--gguf", file)
        with Clock(f"a C program in llama.cpp, {dtype}"):
            said = llama_cpp.console(llama_cpp.Engine(file), prompt)
        check("gguf", f"the CPU in {dtype} boots a C program", said == b"Hello from C!\n", said)
    os.unlink(file)


def mistral(count):
    """mistral.rs: the same by greedy generation, prompts in one piece."""
    import mistral_rs

    file, folder = path("mistral.gguf"), path("mistral-hf")

    def engine(chip):
        shutil.rmtree(folder, ignore_errors=True)
        run(TAPEOUT, "export", chip, "--gguf", file)
        run(TAPEOUT, "export", chip, "--hf", folder)
        return mistral_rs.Engine(file, folder)

    for what, chip, prompt, ours in engine_cases("mistral", min(count, 400)):
        check_tokens("mistral", f"{what}: {len(ours)} tokens are ours", engine(chip).generate(prompt, len(ours)), ours)
    for dtype, chip, prompt in engine_cpus("mistral"):
        with Clock(f"a C program in mistral.rs, {dtype}"):
            said = engine(chip.file).console(prompt)
        check("mistral", f"the CPU in {dtype} boots a C program", said == b"Hello from C!\n", said)
    os.unlink(file)
    shutil.rmtree(folder)


def machine(name, count):
    count = min(count, 300) if name == "mix-0.8b" else count  # a third of a second each
    chip, model, prompt, ours, elf, cache = one(name, count)
    if name.startswith("cpu"):
        hello = firmware("hello", name)
        runs = [(prompt, ours), (chip.prompt(hello), chip.trace(hello)[0])]
        batch(name, model, runs, min(count, 300))
        batch_in_pieces(name, model, runs, cache)
    if name in ("mix", "cpu"):
        families(chip, prompt, ours, count, decoded=200 if name == "mix" else 64)
    if name == "cpu":
        kda = Chip("cpu-kda", *CPU, "-t", "kimi-linear")
        families(kda, kda.prompt(elf), kda.trace(elf, steps=count)[0][:count], count, decoded=64, which=("kimi_linear",))
    if name.startswith("mix"):
        others = [prompt[:2] + prompt[-3:], prompt[:8] + prompt[-3:]]  # files of which less is set
        batch(name, model, [(prompt, ours[:100])] + [(p, stepwise(model, p, 100)[0]) for p in others], 100)


def alone(name, count):
    """In this process. Returns the exit status."""
    print(f"== {name}", flush=True)
    if name == "graft":
        graft.main(check)
    elif name == "fla":
        import fla_gdn

        fla_gdn.main(check)
    elif name == "delta-rule":
        import delta_rule

        delta_rule.main(check, min(count, 300))
    elif name in MACHINES:
        machine(name, count)
    else:
        {"readme": readme, "gguf": gguf, "mistral": mistral}[name](count)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return not all(results)


# What else a process finds: fla lies in a folder of its own, so that transformers does not take its kernels in the others.
ENVIRONMENT = {"fla": {"PYTHONPATH": os.path.join(sys.prefix, "fla"), "TRITON_INTERPRET": "1"}}


def apart(name, count):
    """In a process of its own: (passed, failed) after its output has been printed; one that dies has failed once more."""
    began = time.time()
    done = subprocess.run([sys.executable, "-u", __file__, "--tokens", str(count), "--alone", name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", env=os.environ | ENVIRONMENT.get(name, {}))
    counted = re.search(r"^(\d+) passed, (\d+) failed\n\Z", done.stdout, re.M)
    quiet = [line for line in done.stdout[: counted.start() if counted else None].splitlines() if "Loading weights" not in line and "[transformers]" not in line]
    print("\n".join(quiet) + f"\n  {name}: {time.time() - began:.0f} s in all", flush=True)
    if counted:
        return int(counted[1]), int(counted[2])
    print(f"FAIL {name}: ended with status {done.returncode}", flush=True)
    return len(re.findall("^pass ", done.stdout, re.M)), 1 + len(re.findall("^FAIL ", done.stdout, re.M))


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--tokens", type=int, default=int(os.environ.get("TOKENS", "2000")))
    args.add_argument("--jobs", type=int, default=2)
    args.add_argument("--alone", action="store_true")
    args.add_argument("names", nargs="*")
    args = args.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    if args.alone:
        sys.exit(alone(args.names[0], args.tokens))
    names = args.names or ["cpu-bf16", "cpu", "mix-bf16", "mix-0.8b", "gguf", "graft", "fla", "mistral", "readme", "mix", "mix-kda", "delta-rule", "subleq"]  # the longest first
    began = time.time()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        counts = list(pool.map(lambda name: apart(name, args.tokens), names))
    passed, failed = map(sum, zip(*counts))
    print(f"{time.time() - began:.0f} s")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
