/* stock.c: how each family of stock models arranges the weights of a chip. The chip's own arrangement is Qwen3.5's; every other one is a permutation of
 * its rows, and plain norm weights for zero-centred ones. A family is a bit, rows of stock.def and a row of `families`; backend/export_family.c adds
 * what its config.json says. */
#include "stock.h"

/* ---- fused projections: rows grouped by key head ---- */
static From chip_row(TensorId id, uint32_t row) { return (From){ FROM_CHIP, id, row }; }
static From zeros(void) { return (From){ FROM_ZERO, 0, 0 }; }
static From gate_open(void) { return (From){ FROM_PILOT, 0, 0 }; }

/* Per key head: dk rows of q, dk of k, then v and z of its value heads. */
static From qkvz_row(const Geometry *g, uint32_t r)
{
    uint32_t values = g->nv / g->nk * g->dv, head = r / (2 * g->dk + 2 * values), i = r % (2 * g->dk + 2 * values);
    if (i < g->dk) return chip_row(T_QKV, head * g->dk + i);
    if (i < 2 * g->dk) return chip_row(T_QKV, (g->nk + head) * g->dk + i - g->dk);
    i -= 2 * g->dk;
    return i < values ? chip_row(T_QKV, 2 * g->nk * g->dk + head * values + i) : chip_row(T_Z, head * values + i - values);
}

/* Per key head: b of its value heads, then a. */
static From ba_row(const Geometry *g, uint32_t r)
{
    uint32_t share = g->nv / g->nk, head = r / (2 * share), i = r % (2 * share);
    return i < share ? chip_row(T_B, head * share + i) : chip_row(T_A, head * share + i - share);
}

/* ---- Kimi Linear ---- */
/* The key head of a value head: queries from `first` 0, keys from nk. */
static From key_row(const Geometry *g, TensorId id, uint32_t first, uint32_t r)
{
    return chip_row(id, (first + r / g->dk / (g->nv / g->nk)) * g->dk + r % g->dk);
}
static From gate_channel(uint32_t row) { return (From){ FROM_GATE_CHANNEL, T_Z, row }; }
static From gate_row(uint32_t row) { return (From){ FROM_GATE_ROW, T_Z, row }; }
static From gated_out(uint32_t row) { return (From){ FROM_GATED_OUT, T_OUT, row }; }

/* ---- the table ---- */
enum { QWEN35 = 1, NEXT = 2, MOE = 4, OLMO = 8, FLA = 16, KIMI = 32, QWEN = QWEN35 | NEXT | MOE, HF = QWEN | OLMO, ALL = HF | FLA | KIMI };
#define ROW(id) chip_row(T_##id, r)
#define ROW_FROM(id, first) chip_row(T_##id, (first) + r)
#define TENSOR(id, families, scope, dims, name, s0, s1, s2, source, add)                            \
    static void id##_shape(const Geometry *g, uint64_t s[MOST_DIMS])                                        \
    {                                                                                               \
        (void)g, s[0] = s0, s[1] = s1, s[2] = s2, s[3] = 1;                                                   \
    }                                                                                               \
    static From id##_from(const Geometry *g, uint32_t r)                                            \
    {                                                                                               \
        (void)g, (void)r;                                                                           \
        return source;                                                                              \
    }
#include "stock.def"
#undef TENSOR

#define TENSOR(id, families, scope, dims, name, s0, s1, s2, source, add) { name, families, scope, dims, id##_shape, id##_from, add },
const FamilyTensor family_tensors[] = {
#include "stock.def"
};
#undef TENSOR
const unsigned nfamily_tensors = sizeof family_tensors / sizeof *family_tensors;

const Family families[] = {
    { "qwen3_5", "qwen3_5_text", "Qwen3_5ForCausalLM", QWEN35, 0, 0, "embed_tokens", "intermediate_size" },
    { "qwen3_next", "qwen3_next", "Qwen3NextForCausalLM", NEXT, 0, 0, "embed_tokens", "intermediate_size" },
    { "qwen3_5_moe", "qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", MOE, 0, 0, "embed_tokens", "shared_expert_intermediate_size" },
    { "olmo_hybrid", "olmo_hybrid", "OlmoHybridForCausalLM", OLMO, 1, 1e-5f, "embed_tokens", "intermediate_size" },
    { "gated_deltanet", "gated_deltanet", "GatedDeltaNetForCausalLM", FLA, 1, 0, "embeddings", NULL },
    { "kimi_linear", "kimi_linear", "KimiLinearForCausalLM", KIMI, 1, 0, "embed_tokens", NULL },
};
const unsigned nfamilies = sizeof families / sizeof *families;

const Family *family_find(const char *name)
{
    for (unsigned i = 0; i < nfamilies; i++)
        if (!strcmp(families[i].name, name)) return &families[i];
    return NULL;
}

float family_add(const Family *f, const FamilyTensor *t) { return t->add == NORM_WEIGHT ? f->norm_add : t->add; }
