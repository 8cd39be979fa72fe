/* export_family.c: how each family of stock models arranges the weights of a chip. The chip's own arrangement is Qwen3.5's; every other one is a
 * permutation of its rows, plain norm weights for zero-centred ones, and constants in config.json. A family is a bit, rows of export.def and a row
 * of `families`. */
#include "export.h"
#include <jansson.h>

enum { EXPERTS = 2, EXPERT_SIZE = 8 }; /* MoE families: experts that do nothing; the shared one is the chip's MLP */

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
#include "export.def"
#undef TENSOR

#define TENSOR(id, families, scope, dims, name, s0, s1, s2, source, add) { name, families, scope, dims, id##_shape, id##_from, add },
const FamilyTensor family_tensors[] = {
#include "export.def"
};
#undef TENSOR
const unsigned nfamily_tensors = sizeof family_tensors / sizeof *family_tensors;

/* ---- what each adds to config.json ---- */
static json_t *rope(const Model *m)
{
    return json_pack("{s:s, s:f, s:f}", "rope_type", "default", "rope_theta", m->geo.rope_theta, "partial_rotary_factor", m->geo.rotary_factor);
}

static void config_qwen(const Model *m, json_t *o)
{
    json_object_set_new(o, "rope_parameters", rope(m));
    json_object_set_new(o, "partial_rotary_factor", json_real(m->geo.rotary_factor));
}

static void config_qwen35(const Model *m, json_t *o)
{
    config_qwen(m, o);
    json_t *r = json_object_get(o, "rope_parameters");
    json_object_set_new(r, "mrope_interleaved", json_true());
    json_object_set_new(r, "mrope_section", json_pack("[i, i, i]", 11, 11, 10));
    json_object_set_new(o, "attn_output_gate", json_true());
    json_object_set_new(o, "mamba_ssm_dtype", json_string("float32"));
}

/* A dense MLP in every layer. */
static void config_next(const Model *m, json_t *o)
{
    config_qwen(m, o);
    json_t *dense = json_array();
    for (uint32_t i = 0; i < m->geo.layers; i++) json_array_append_new(dense, json_integer(i));
    json_object_set_new(o, "mlp_only_layers", dense);
    json_object_set_new(o, "decoder_sparse_step", json_integer(1));
    json_object_set_new(o, "num_experts", json_integer(0));
}

static void config_moe(const Model *m, json_t *o)
{
    config_qwen35(m, o);
    json_object_del(o, "intermediate_size");
    json_object_set_new(o, "shared_expert_intermediate_size", json_integer(m->geo.intermediate));
    json_object_set_new(o, "moe_intermediate_size", json_integer(EXPERT_SIZE));
    json_object_set_new(o, "num_experts", json_integer(EXPERTS));
    json_object_set_new(o, "num_experts_per_tok", json_integer(1));
}

static void config_olmo(const Model *m, json_t *o)
{
    (void)m;
    json_object_set_new(o, "linear_allow_neg_eigval", json_false()); /* beta in 0..1, as in a chip */
    json_object_set_new(o, "rope_parameters", json_null());
}

/* Words of its own for the same things. Other kernels than the recurrent one round the state to the model's dtype between chunks. */
static void config_fla(const Model *m, json_t *o)
{
    static const char *const theirs[] = { "attention_bias", "attention_dropout", "num_attention_heads", "num_key_value_heads", "linear_num_key_heads",
        "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim", "layer_types", "full_attention_interval" };
    const Geometry *g = &m->geo;
    json_object_set(o, "norm_eps", json_object_get(o, "rms_norm_eps"));
    json_object_del(o, "rms_norm_eps");
    for (unsigned i = 0; i < sizeof theirs / sizeof *theirs; i++) json_object_del(o, theirs[i]);
    json_t *own = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:b, s:b, s:b}", "attn_mode", "fused_recurrent", "hidden_act", "swish", "head_dim", g->dk,
                            "num_heads", g->nk, "num_v_heads", g->nv, "conv_size", g->taps, "expand_v", (double)g->dv / g->dk, "use_gate", 1,
                            "use_short_conv", 1, "allow_neg_eigval", 0);
    json_object_update(o, own);
    json_decref(own);
}

/* ---- what a family cannot hold ---- */
static const char *refuse_none(const Model *m)
{
    (void)m;
    return NULL;
}

/* Its attention layers normalise what a block puts out, which only nothing survives. */
static const char *refuse_olmo(const Model *m)
{
    for (uint32_t i = 0; i < m->geo.layers; i++)
        if (m->layer[i].full && (m->layer[i].t[T_DOWN].n || m->layer[i].t[T_O_PROJ].n)) return "an attention layer of the chip does something";
    return NULL;
}

/* It has none of the gated attention that a memory in attention needs. */
static const char *refuse_fla(const Model *m)
{
    for (uint32_t i = 0; i < m->geo.layers; i++)
        if (m->layer[i].full && m->layer[i].t[T_O_PROJ].n) return "an attention layer of the chip does something";
    return NULL;
}

const Family families[] = {
    { "qwen3_5", "qwen3_5_text", "Qwen3_5ForCausalLM", QWEN35, 0, "embed_tokens", config_qwen35, refuse_none, NULL },
    { "qwen3_next", "qwen3_next", "Qwen3NextForCausalLM", NEXT, 0, "embed_tokens", config_next, refuse_none, NULL },
    { "qwen3_5_moe", "qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", MOE, 0, "embed_tokens", config_moe, refuse_none, NULL },
    { "olmo_hybrid", "olmo_hybrid", "OlmoHybridForCausalLM", OLMO, 1, "embed_tokens", config_olmo, refuse_olmo, NULL },
    { "gated_deltanet", "gated_deltanet", "GatedDeltaNetForCausalLM", FLA, 1, "embeddings", config_fla, refuse_fla, NULL },
    { "kimi_linear", "kimi_linear", "KimiLinearForCausalLM", KIMI, 1, "embed_tokens", kimi_config, kimi_refuse, kimi_prepare },
};
const unsigned nfamilies = sizeof families / sizeof *families;

const Family *family_find(const char *name)
{
    for (unsigned i = 0; i < nfamilies; i++)
        if (!strcmp(families[i].name, name)) return &families[i];
    return NULL;
}
