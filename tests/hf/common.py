"""What the tests of the stock package share: chips, exports, our own traces, and stepping a model.

Environment: TAPEOUT (the program), WORK (a folder for chips, exports and programs).
Only torch and transformers are used; nothing in them is changed.
"""
import json
import os
import struct
import subprocess
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a folder that is not there must not be looked for elsewhere

import torch
from transformers import AutoModelForCausalLM, DynamicCache

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
TAPEOUT = os.environ.get("TAPEOUT", os.path.join(ROOT, "build", "tapeout"))
WORK = os.environ.get("WORK", os.path.join(ROOT, "build", "hf"))
HERE = os.path.dirname(os.path.abspath(__file__))


def run(*command, status=0, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, **more)
    assert status is None or done.returncode == status, (command, done.returncode, done.stderr.decode()[-2000:])
    return done


def path(name):
    os.makedirs(WORK, exist_ok=True)
    return os.path.join(WORK, name)


class Chip:
    """A compiled machine, its manifest, and its export for a family."""

    def __init__(self, name, source, *options):
        self.name, self.file = name, path(name + ".chip")
        run(TAPEOUT, "build", os.path.join(ROOT, source), "-q", "-o", self.file, *options)
        with open(self.file, "rb") as f:
            (length,) = struct.unpack("<Q", f.read(8))
            self.manifest = json.loads(json.loads(f.read(length))["__metadata__"]["tapeout"])
        self.kinds = self.manifest["kinds"]
        self.roles = {}
        for k in self.kinds:
            for p in range(1 << k["width"]):
                self.roles[k["base"] + p] = k["role"]
        g = self.manifest["geometry"]
        self.channels = 2 * g["linear_num_key_heads"] * g["linear_key_head_dim"] + g["linear_num_value_heads"] * g["linear_value_head_dim"]
        self.dtype = getattr(torch, self.manifest["dtype"])

    def export(self, family=None, *options):
        folder = path(self.name + ("-" + family if family else ""))
        run(TAPEOUT, "export", self.file, "--hf", folder, *(["--family", family] if family else []), *options)
        return folder

    def prompt(self, firmware=None):
        """The loader tokens; for a machine with an input the first input token (end of file) too."""
        out = run(TAPEOUT, "prompt", self.file, *([firmware] if firmware else [])).stdout
        return [int(t) for t in out.split()]

    def token(self, name, payload, host):
        for k in self.kinds:
            if k["name"] == name and payload < 1 << k["width"] and (k["role"] == "input") == host:
                return k["base"] + payload
        raise AssertionError((name, payload, host))

    def trace(self, firmware=None, steps=0, backend="sparse", stdin=b"", more=()):
        """Our run: the tokens after the start, and what came out."""
        file = path(self.name + ".trace")
        done = run(TAPEOUT, "run", self.file, *([firmware] if firmware else []), "--backend", backend, "--trace", file,
                   *(["--max-steps", steps] if steps else []), *more, status=None, input=stdin)
        tokens, host = [], False
        for line in open(file):
            name, payload = line.rsplit(" ", 1)
            token = self.token(name, int(payload, 16), host)
            role = self.roles[token]
            tokens.append(token)
            host = (role == "start" or role == "take") and any(k["role"] == "input" for k in self.kinds)
        return tokens[1:], done


    def halt(self, firmware, ours, tokens):
        """(steps, tokens) of a stop between two steps, at most that many tokens into the run."""
        done = [i + 1 for i, t in enumerate(ours[:tokens]) if self.kind(t)["retire"]]
        return (len(done), done[-1]) if done else None

    def kind(self, token):
        return next(k for k in self.kinds if k["base"] <= token < k["base"] + (1 << k["width"]))


def load(folder, **more):
    """from_pretrained, which must not miss, ignore or convert anything."""
    model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, **more)
    assert not any(info.values()), info
    return model.eval()


def feed(model, cache, tokens, mask=None):
    """One forward over [batch, n] tokens; the greedy next token after each."""
    ids = torch.as_tensor(tokens)
    ids = ids if ids.dim() == 2 else ids[None]
    with torch.no_grad():
        out = model(input_ids=ids, attention_mask=mask, use_cache=True, **{cache_name(model): cache})
    return out.logits.argmax(-1)


def cache_name(model):
    """The argument that carries the cache was renamed during 5.x."""
    import inspect

    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def new_cache(model):
    return DynamicCache(config=model.config)


def recurrent(cache):
    """Layer number -> recurrent state [batch, value heads, dk, dv] of every linear layer that has one."""
    return {i: l.recurrent_states[0] for i, l in enumerate(cache.layers) if getattr(l, "recurrent_states", None) and l.recurrent_states[0] is not None}


def same_states(a, b):
    """Bit for bit, but for the sign of zeros."""
    assert a.keys() == b.keys()
    return all(torch.equal(a[i], b[i]) for i in a)


class Clock:
    def __init__(self, what):
        self.what = what

    def __enter__(self):
        self.began = time.time()
        return self

    def __exit__(self, *_):
        print(f"  {self.what}: {time.time() - self.began:.1f} s", flush=True)
