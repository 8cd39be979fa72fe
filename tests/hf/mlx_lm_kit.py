"""The conformance kit in mlx-lm, as PyPI has it: mlx_lm_kit.py KIT, after `tapeout conform --out KIT`.

Needs `pip install "mlx[cpu]" mlx-lm` (or Apple hardware). mlx-lm has no model type qwen3_5_text; its qwen3_5 reads a text model's config as it
stands, so the type is given on loading, and nothing else.
"""
import sys

import mlx.core as mx
from mlx_lm import load
from mlx_lm.models.cache import make_prompt_cache


def pieces(model, tokens, size):
    """What the model says after every token, fed in pieces of `size` with the cache kept."""
    cache, said = make_prompt_cache(model), []
    for at in range(0, len(tokens), size):
        said += mx.argmax(model(mx.array([tokens[at : at + size]]), cache=cache)[0], -1).tolist()
    return said


def main(kit):
    if not mx.metal.is_available():
        mx.set_default_device(mx.cpu)
    model, _ = load(kit, model_config={"model_type": "qwen3_5"})
    ids = lambda name: [int(line) for line in open(f"{kit}/{name}")]
    prompt, expected, bad = ids("prompt.txt"), ids("expected.txt"), 0
    for size in (10**9, 70, 1):
        said = pieces(model, prompt + expected[:-1], size)[len(prompt) - 1 :]
        first = next((i for i, (a, b) in enumerate(zip(said, expected)) if a != b), None)
        bad |= first is not None
        print(f"pieces of at most {size}:", "conforms" if first is None else f"token {first}: {said[first]} instead of {expected[first]}", flush=True)
    sys.exit(bad)


main(sys.argv[1])
