/* export_family.c: what is peculiar to each family of stock models beside its tensors (runtime/stock.def): what it adds to config.json, and which chips
 * it cannot hold. */
#include "export.h"
#include <jansson.h>

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

/* As the public models cut theirs (11, 11, 10 of 32): in parts as equal as can be, the first the largest. */
void export_rope_sections(const Geometry *g, uint32_t pairs[3])
{
    uint32_t all = (uint32_t)(g->head_dim * g->rotary_factor) / 2;
    for (uint32_t i = 0; i < 3; i++) pairs[i] = (all + 2 - i) / 3;
}

static void config_qwen35(const Model *m, json_t *o)
{
    uint32_t pairs[3];
    config_qwen(m, o);
    export_rope_sections(&m->geo, pairs);
    json_t *r = json_object_get(o, "rope_parameters");
    json_object_set_new(r, "mrope_interleaved", json_true());
    json_object_set_new(r, "mrope_section", json_pack("[i, i, i]", (int)pairs[0], (int)pairs[1], (int)pairs[2]));
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

/* ---- the table: a row for every row of `families` ---- */
static const Exporter exporters[] = {
    { "qwen3_5", config_qwen35, refuse_none, NULL },
    { "qwen3_next", config_next, refuse_none, NULL },
    { "qwen3_5_moe", config_moe, refuse_none, NULL },
    { "olmo_hybrid", config_olmo, refuse_olmo, NULL },
    { "gated_deltanet", config_fla, refuse_fla, NULL },
    { "kimi_linear", kimi_config, kimi_refuse, kimi_prepare },
};

const Exporter *exporter_of(const Family *f)
{
    const Exporter *e = exporters;
    while (strcmp(e->family, f->name)) e++;
    return e;
}
