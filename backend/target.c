/* target.c: the table of model shapes. */
#include "backend.h"
#include <string.h>

/* name, family, about, bf16, native, hidden, mlp, key_heads, value_heads, dk, dv, attn_heads, kv_heads, head_dim, eps
 * The public sizes are those of the Qwen3.5 model cards (hidden, intermediate, linear value heads; 16 key heads of 128). */
const Target targets[] = {
    {"native", "qwen3_5", "only the chip; geometry chosen for the machine, 256 rows a key head", false, true, 0, 0, 0, 0, 256, 16, 1, 1, 8, 1e-6},
    {"native64", "qwen3_5", "as native with 64 rows a key head, the shape of fla's and mlx's kernels", false, true, 0, 0, 0, 0, 64, 64, 1, 1, 8, 1e-6},
    {"qwen3.5-0.8b", "qwen3_5", "geometry of Qwen3.5-0.8B", true, false, 1024, 3584, 16, 16, 128, 128, 8, 2, 256, 1e-6},
    {"qwen3.5-2b", "qwen3_5", "geometry of Qwen3.5-2B", true, false, 2048, 6144, 16, 16, 128, 128, 8, 2, 256, 1e-6},
    {"qwen3.5-4b", "qwen3_5", "geometry of Qwen3.5-4B", true, false, 2560, 9216, 16, 32, 128, 128, 16, 4, 256, 1e-6},
    {"qwen3.5-9b", "qwen3_5", "geometry of Qwen3.5-9B", true, false, 4096, 12288, 16, 32, 128, 128, 16, 4, 256, 1e-6},
    {"qwen3.5-27b", "qwen3_5", "geometry of Qwen3.5-27B", true, false, 5120, 17408, 16, 48, 128, 128, 24, 4, 256, 1e-6},
};
const unsigned ntargets = sizeof targets / sizeof *targets;

const Target *target_find(const char *name)
{
    for (unsigned i = 0; i < ntargets; i++)
        if (strcmp(targets[i].name, name) == 0) return &targets[i];
    return NULL;
}
