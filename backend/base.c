/* base.c: which checkpoints a chip can be put before, and the target that this asks for. */
#include "base.h"
#include <jansson.h>
#include <string.h>

bool base_config(Checkpoint *b, const char *dir, char **err)
{
    if (!checkpoint_config(b, dir, err)) return false;
    if (strcmp(b->family->name, "qwen3_5")) return fail(err, "%s: it is %s: a chip can be put before qwen3_5_text only", dir, b->family->model_type);
    return b->geo.taps == 4 || fail(err, "%s: linear_conv_kernel_dim is %u: a chip has 4", dir, b->geo.taps);
}

Target base_target(const Checkpoint *b)
{
    const Geometry *g = &b->geo;
    double eps = json_number_value(json_object_get(b->config, "rms_norm_eps"));
    return (Target){ .bf16 = b->bf16, .base_hidden = g->hidden, .mlp = g->intermediate, .key_heads = g->nk, .value_heads = g->nv, .dk = g->dk, .dv = g->dv,
                     .attn_heads = g->heads, .attn_kv_heads = g->kv_heads, .head_dim = g->head_dim, .eps = eps };
}
