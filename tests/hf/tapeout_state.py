"""Our state files and the cache tensors of transformers, both ways.

A state file (runtime/savestate.c) is a safetensors file. Metadata: format = "tapeout-state", chip, next = the token to feed next. Per linear layer i
  layers.i.heads      I32 [n]          which value heads are not zero
  layers.i.recurrent  F32 [n, dk, dv]  their states: rows of recurrent_states[0][batch, head] of the layer's cache
  layers.i.conv       F32 [C, K]       conv_states[0][batch], the oldest token first
Attention layers of a chip do nothing; their key-value caches are made of zeros, one per token, so that the package counts positions.

Kimi Linear has queries and keys for every value head, so its convolution repeats those of a chip's key heads; its latent cache is of zeros too.

A cache object here is transformers' DynamicCache. `write` takes one row of a batch.
"""
import json
import struct

import torch
from safetensors import safe_open
from transformers import DynamicCache

_DTYPES = {torch.float32: "F32", torch.int32: "I32"}


def shape(config):
    """Key heads, value heads, and the sizes of their keys and values, in the package's model."""
    if hasattr(config, "linear_head_dim"):
        return config.linear_num_heads, config.linear_num_heads, config.linear_head_dim, config.linear_head_dim
    return config.linear_num_key_heads, config.linear_num_value_heads, config.linear_key_head_dim, config.linear_value_head_dim


def conv_rows(config, channels):
    """For each channel of the package's convolution the one of a chip with so many."""
    nk, nv, dk, dv = shape(config)
    ours = (channels - nv * dv) // (2 * dk)
    keys = torch.arange(ours * dk).view(ours, dk).repeat_interleave(nk // ours, 0).flatten()
    return torch.cat([keys, keys + ours * dk, torch.arange(nv * dv) + 2 * ours * dk])


def read(path, config, dtype, positions=1):
    """A state file as (cache, next token) for a model with this config and dtype."""
    cache = DynamicCache(config=config)
    nk, nv, dk, dv = shape(config)
    with safe_open(path, "pt") as f:
        meta, names = f.metadata(), set(f.keys())
        assert meta["format"] == "tapeout-state", f"{path}: not a state file"
        for i, kind in enumerate(config.layer_types):
            if kind == "full_attention":
                heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
                nothing = torch.zeros(1, heads, positions, config.head_dim, dtype=dtype)
                cache.update(nothing, nothing, i)
                continue
            state = torch.zeros(1, nv, dk, dv)
            conv = torch.zeros(1, 2 * nk * dk + nv * dv, config.linear_conv_kernel_dim, dtype=dtype)
            if f"layers.{i}.heads" in names:
                state[0, f.get_tensor(f"layers.{i}.heads").long()] = f.get_tensor(f"layers.{i}.recurrent")
            if f"layers.{i}.conv" in names:
                ours = f.get_tensor(f"layers.{i}.conv").to(dtype)
                conv[0] = ours[conv_rows(config, len(ours))]
            cache.update_conv_state(conv, i)
            cache.update_recurrent_state(state, i)
    return cache, int(meta["next"])


def tensors(cache, row=0, rows=None):
    """The tensors of a state file for one row of a cache; `rows`: conv_rows, where a chip has fewer channels."""
    out = {}
    for i, layer in enumerate(cache.layers):
        if getattr(layer, "recurrent_states", None) is None:
            continue
        state, conv = layer.recurrent_states[0][row].float(), layer.conv_states[0][row].float()
        heads = state.flatten(1).any(1).nonzero()[:, 0]
        if len(heads):
            out[f"layers.{i}.heads"] = heads.int()
            out[f"layers.{i}.recurrent"] = state[heads].contiguous()
        if rows is not None:
            ours = conv.new_zeros(int(rows.max()) + 1, conv.shape[1])
            ours[rows], conv = conv, ours
        if conv.any():
            out[f"layers.{i}.conv"] = conv.contiguous()
    return out


def write(path, cache, chip, next_token, row=0, rows=None):
    """Writes a state file; `chip` is the machine's name, `row` and `rows` are those of `tensors`. The tensors stand in the order of their names, without holes."""
    header, data, at = {"__metadata__": {"format": "tapeout-state", "chip": chip, "next": str(next_token)}}, [], 0
    for name, t in tensors(cache, row, rows).items():
        size = t.numel() * 4
        header[name] = {"dtype": _DTYPES[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + size]}
        data.append(t)
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in data:
            f.write(t.cpu().numpy().astype("<" + t.numpy().dtype.str[1:]).tobytes())


def same(a, b, conv=True):
    """Whether two caches, or a cache and one read from a file, hold the same states (zeros of either sign are equal)."""
    for x, y in zip(a.layers, b.layers):
        if getattr(x, "recurrent_states", None) is None:
            continue
        if not torch.equal(x.recurrent_states[0], y.recurrent_states[0]):
            return False
        if conv and not torch.equal(x.conv_states[0], y.conv_states[0]):
            return False
    return True
