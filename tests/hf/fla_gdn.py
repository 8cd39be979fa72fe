"""Chips in fla's own GatedDeltaNet (`export --family gated_deltanet`). Run by parity.py in a process that finds fla and has TRITON_INTERPRET=1: without a
GPU Triton interprets fla's kernels in Python, some seconds for a token. So the machines are tiny; what runs is the package's code, unchanged.

The mode is fused_recurrent, as the export's config.json says: a state in float32, from token to token. (The chunk kernel is not tried here.)
`generate` of fla 0.6.0 loses its cache in transformers 5.24, which has renamed the argument; with use_cache=False, or token by token, nothing is lost.
"""
import os

import torch
import triton
from safetensors import safe_open


class Untimed:
    """What Triton's autotuner asks of a driver. There is nothing to measure: the last configuration, that of the largest blocks, is taken."""

    time = 1e9

    def get_benchmarker(self):
        return self.measure

    def measure(self, kernel, **_):
        self.time -= 1
        return (self.time,) * 3


if os.environ.get("TRITON_INTERPRET") == "1":
    triton.runtime.driver.set_active(Untimed())

from fla.models.utils import Cache

import fla.models.gated_deltanet  # registers the classes
from common import Chip, Clock, feed, load, path

# name: source and build options, tokens, relative difference of the states. A counter that adds sigmoid(x) times a constant adds what the interpreter's
# exp makes of it, an ulp from torch's; everything else is the same bits.
CASES = {
    "count": (("tests/machines/count.ckt", "-t", "gated-deltanet"), 40, 2**-22),
    "tick": (("tests/hf/tick.ckt",), 30, 0),
    "tick-bf16": (("tests/hf/tick.ckt", "--dtype", "bf16"), 12, 0),
}


def states(cache):
    """Layer -> recurrent state [value heads, dk, dv] and convolution [C, K] of the first row; fla's state is value-first."""
    return {i: (s["recurrent_state"][0].transpose(1, 2), torch.cat([c[0] for c in s["conv_state"]])) for i, s in enumerate(cache)}


def read(file, config):
    """A state file (tapeout_state.py) as (fla's cache, next token)."""
    c = config
    cache, dv, keys, values = Cache(), int(c.head_dim * c.expand_v), c.num_heads * c.head_dim, int(c.num_v_heads * c.head_dim * c.expand_v)
    with safe_open(file, "pt") as f:
        names = set(f.keys())
        for i in range(c.num_hidden_layers):
            state, conv = torch.zeros(1, c.num_v_heads, c.head_dim, dv), torch.zeros(1, 2 * keys + values, c.conv_size)
            if f"layers.{i}.heads" in names:
                state[0, f.get_tensor(f"layers.{i}.heads").long()] = f.get_tensor(f"layers.{i}.recurrent")
            if f"layers.{i}.conv" in names:
                conv[0] = f.get_tensor(f"layers.{i}.conv")
            parts = [p.contiguous() for p in conv.to(c.dtype).split((keys, keys, values), 1)]
            cache.update(recurrent_state=state.transpose(2, 3).contiguous(), conv_state=tuple(parts), layer_idx=i, offset=1)
        return cache, int(f.metadata()["next"])


def same(a, b, apart):
    return len(a) == len(b) and all(torch.allclose(x, y, rtol=apart, atol=0) for i in a for x, y in zip(a[i], b[i]))


def decode(model, cache, tokens, count):
    """The next `count` tokens after `tokens`."""
    said = []
    while len(said) < count:
        said.append(feed(model, cache, tokens)[0, -1].item())
        tokens = said[-1:]
    return said


def case(name, check, options, count, apart):
    chip = Chip("fla-" + name, *options)
    model = load(chip.export("gated_deltanet"))
    check("fla", f"{name}: loads without a missing, unexpected or converted tensor", model.dtype == chip.dtype)
    prompt, ours = chip.prompt(), chip.trace(steps=count)[0][:count]
    with Clock(f"{name}: {len(ours)} tokens of cached decode"):
        said = decode(model, Cache(), prompt, len(ours))
    check("fla", f"{name}: {len(ours)} tokens of cached decode are ours", said == ours)
    ids = torch.tensor([prompt])
    said = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=3, use_cache=False)[0, len(prompt) :].tolist()
    check("fla", f"{name}: generate without a cache, {len(said)} tokens", said == ours[:3])
    steps, at = chip.halt(None, ours, len(ours) - len(ours) // 4)
    chip.trace(steps=steps, backend="dense", more=("--prompt", "--save-state", path("fla.state")))
    moved, token = read(path("fla.state"), model.config)
    cache = Cache()
    with Clock(f"{name}: {len(prompt) + at - 1} tokens in one piece"):
        said = feed(model, cache, prompt + ours[: at - 1])[0, len(prompt) - 1 :].tolist()
    check("fla", f"{name}: {at} tokens in one piece are ours", said == ours[:at])
    close = f"to {apart:.1g}" if apart else "bit for bit"
    check("fla", f"{name}: the state of our dense back end after {at} tokens is theirs, {close}", token == ours[at - 1] and same(states(cache), states(moved), apart))
    rest = decode(model, moved, [token], len(ours) - at)
    check("fla", f"{name}: {len(rest)} tokens in fla from our state are ours", rest == ours[at:])


def main(check):
    for name, (options, count, apart) in CASES.items():
        case(name, check, options, count, apart)
