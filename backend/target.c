/* target.c: the table of model shapes; and the shapes of base models, which are spelled in the target's name. */
#include "backend.h"
#include <stdio.h>
#include <string.h>

/* name, family, about, bf16, native, hidden, mlp, key_heads, value_heads, dk, dv, attn_heads, kv_heads, head_dim, eps, base_hidden
 * The public sizes are those of the Qwen3.5 model cards (hidden, intermediate, linear value heads; 16 key heads of 128). */
const Target targets[] = {
    {"native", "qwen3_5", "only the chip; geometry chosen for the machine, 256 rows a key head", false, true, 0, 0, 0, 0, 256, 16, 1, 1, 32, 1e-6, 0},
    {"native64", "qwen3_5", "as native with 64 rows a key head, the shape of fla's and mlx's kernels", false, true, 0, 0, 0, 0, 64, 64, 1, 1, 32, 1e-6, 0},
    {"olmo-hybrid", "olmo_hybrid", "as native64, in OLMo-Hybrid (the heads of its 7B, 96 and 192, are no powers of two)", false, true, 0, 0, 0, 0, 64, 64, 1, 1, 32, 1e-6, 0},
    {"gated-deltanet", "gated_deltanet", "as native64, in fla's GatedDeltaNet", false, true, 0, 0, 0, 0, 64, 64, 1, 1, 32, 1e-6, 0},
    {"kimi-linear", "kimi_linear", "as native64, in Kimi Linear (KDA)", false, true, 0, 0, 0, 0, 64, 64, 1, 1, 32, 1e-6, 0},
    {"qwen3.5-0.8b", "qwen3_5", "geometry of Qwen3.5-0.8B", true, false, 1024, 3584, 16, 16, 128, 128, 8, 2, 256, 1e-6, 0},
    {"qwen3.5-2b", "qwen3_5", "geometry of Qwen3.5-2B", true, false, 2048, 6144, 16, 16, 128, 128, 8, 2, 256, 1e-6, 0},
    {"qwen3.5-4b", "qwen3_5", "geometry of Qwen3.5-4B", true, false, 2560, 9216, 16, 32, 128, 128, 16, 4, 256, 1e-6, 0},
    {"qwen3.5-9b", "qwen3_5", "geometry of Qwen3.5-9B", true, false, 4096, 12288, 16, 32, 128, 128, 16, 4, 256, 1e-6, 0},
    {"qwen3.5-27b", "qwen3_5", "geometry of Qwen3.5-27B", true, false, 5120, 17408, 16, 48, 128, 128, 24, 4, 256, 1e-6, 0},
    {"qwen3-next", "qwen3_next", "geometry of Qwen3-Next-80B-A3B, its MLPs dense", true, false, 2048, 5632, 16, 32, 128, 128, 16, 2, 256, 1e-6, 0},
    {"qwen3.5-35b-a3b", "qwen3_5_moe", "geometry of Qwen3.5-35B-A3B, all in the shared expert", true, false, 2048, 512, 16, 32, 128, 128, 16, 2, 256, 1e-6, 0},
    {"gated-deltanet-1.3b", "gated_deltanet", "fla's own defaults for GatedDeltaNet", true, false, 2048, 5632, 6, 6, 256, 512, 1, 1, 8, 1e-6, 0},
};
const unsigned ntargets = sizeof targets / sizeof *targets;

/* ---- base models: base:TOGETHER/HIDDEN/MLP/KEY_HEADS/VALUE_HEADS/DK/DV/HEADS/KV_HEADS/HEAD_DIM/EPS/f32|bf16 ---- */
#define BASE_NAME "base:%u/%u/%u/%u/%u/%u/%u/%u/%u/%u/%.9g/%s"

const char *target_for_base(const Target *b)
{
    return xfmt(BASE_NAME, b->hidden, b->base_hidden, b->mlp, b->key_heads, b->value_heads, b->dk, b->dv, b->attn_heads, b->attn_kv_heads, b->head_dim, b->eps,
                b->bf16 ? "bf16" : "f32");
}

static bool power_of_two(unsigned n) { return n && !(n & (n - 1)); }

/* NULL for what is no such name, or no shape that a chip can have. */
static const Target *find_base(const char *name)
{
    Target b = {.name = xfmt("%s", name), .family = "qwen3_5", .about = "a chip before a base model"};
    char dtype[5];
    if (sscanf(name, "base:%u/%u/%u/%u/%u/%u/%u/%u/%u/%u/%lf/%4s", &b.hidden, &b.base_hidden, &b.mlp, &b.key_heads, &b.value_heads, &b.dk, &b.dv, &b.attn_heads,
               &b.attn_kv_heads, &b.head_dim, &b.eps, dtype) != 12)
        return NULL;
    b.bf16 = !strcmp(dtype, "bf16");
    if (strcmp(target_for_base(&b), name) || !b.base_hidden || !b.mlp || !b.key_heads || b.value_heads % b.key_heads || !b.value_heads) return NULL;
    if (!power_of_two(b.dk) || !power_of_two(b.dv) || b.dv < 4 || !b.attn_kv_heads || !(b.eps > 0)) return NULL;
    if (b.hidden && (b.hidden % 256 || b.hidden <= b.base_hidden)) return NULL;
    Target *t = xalloc(sizeof *t);
    *t = b;
    return t;
}

const Target *target_find(const char *name)
{
    for (unsigned i = 0; i < ntargets; i++)
        if (strcmp(targets[i].name, name) == 0) return &targets[i];
    return find_base(name);
}
