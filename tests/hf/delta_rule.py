"""The package's two computations of the gated delta rule, decode's and the chunked one, on random chunks of one row as a chip's heads have them: a head that
sets, one that counts, and (as no chip has it) one with cells beside the count. tests/unit/chunk.c has the same in random orders of summation.

usage: delta_rule.py [CHUNKS]    prints how many chunks of each end with another state (default 1000); run by parity.py with fewer"""
import sys

import torch
from transformers.models.qwen3_5.modeling_qwen3_5 import torch_chunk_gated_delta_rule, torch_recurrent_gated_delta_rule

H, P, BETA, FULL = 128.0, 2.0**30, 2.0**-44, 127  # a set cell, the pilots, a count's beta, a full count (backend/chip.h)
LENGTH, DIM = 64, 16


def draw(rng, counts, cells):
    """State before, values, betas: lane 0 holds the count, or a cell's 0 or 1; lanes 1 to `cells` more cells, the last lane the pilot."""
    number = lambda n: torch.randint(0, n, (), generator=rng).item()
    some = lambda: torch.randint(0, 2, (cells,), generator=rng).float() * H
    most, often, n = (60 if counts else 2), number(8), number(2)
    state, values, betas = torch.zeros(DIM), torch.zeros(LENGTH, DIM), torch.zeros(LENGTH)
    state[0], state[1 : 1 + cells], state[-1] = n * H, some(), P
    values[:, -1] = P
    for t in range(LENGTH):
        what = number(10)
        if what < often:
            n = number(most)
            betas[t], values[t, 0], values[t, 1 : 1 + cells] = 1, n * H, some()
        elif counts and what < 9 and n < FULL:
            n += 1
            betas[t], values[t, 0] = BETA, H / BETA
    return state, values, betas


def differing(count, counts, cells):
    rng, wrong = torch.Generator().manual_seed(1), 0
    hot = torch.zeros(1, LENGTH, 1, DIM)
    hot[..., 0] = H
    for _ in range(count):
        row, values, betas = draw(rng, counts, cells)
        state = torch.zeros(1, 1, DIM, DIM)
        state[0, 0, 0] = row
        after = [
            form(hot, hot, values[None, :, None], g=torch.full((1, LENGTH, 1), -0.0), beta=betas[None, :, None], initial_state=state.clone(), output_final_state=True, use_qk_l2norm_in_kernel=True)[1]
            for form in (torch_chunk_gated_delta_rule, torch_recurrent_gated_delta_rule)
        ]
        wrong += not torch.equal(*after)
    return wrong


def main(check, count):
    check("delta-rule", f"a head that sets: {count} chunks end as decode does", differing(count, False, 3) == 0)
    check("delta-rule", f"a head that counts: {count} chunks end as decode does", differing(count, True, 0) == 0)
    check("delta-rule", f"cells beside a count: of {count} chunks some do not", differing(count, True, 3) > 0)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for what, counts, cells in ("sets", False, 3), ("counts", True, 0), ("counts, with cells beside", True, 3):
        print(f"{what}: {differing(count, counts, cells)} of {count}")
