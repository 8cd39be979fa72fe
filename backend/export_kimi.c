/* export_kimi.c: what a chip must be turned into for Kimi Linear beyond a permutation of rows. What its heads read passes a sigmoid where Qwen's passes SiLU,
 * and the gate's logit is a product of two matrices with head_dim values between them.
 *
 * A reading gate of a chip is open at exactly read_gate(dv), a power of two far above 16.7, or shut at its negative or below it (heads.c): sigmoid makes 1
 * and 0 of them, exactly, in every dtype. So what an open gate multiplied with goes into out_proj, and nothing is rounded anew. The gates of a layer look
 * at few channels of the stream (a pilot, the upper bits of addresses, conditions): g_a_proj hands those on, g_b_proj is the chip's matrix. */
#include "export.h"
#include "chip.h"
#include <jansson.h>
#include <math.h>

/* ---- the channels that a layer's gates look at ---- */
typedef VEC(uint32_t) Channels;

static uint32_t channel_index(Channels *c, uint32_t channel)
{
    uint32_t i = 0;
    while (i < c->n && c->data[i] != channel) i++;
    if (i == c->n) vec_push(c, channel);
    return i;
}

const void *kimi_prepare(const Model *m, uint32_t layer)
{
    const Tensor *z = &m->layer[layer].t[T_Z];
    Channels *c = xalloc(sizeof *c);
    for (uint32_t i = 0; i < z->n; i++) channel_index(c, (uint32_t)z->col[i]);
    return c;
}

bool kimi_gate_row(const Model *m, const Item *t, From f, float *out)
{
    const Tensor *from = &m->layer[t->layer].t[f.id];
    Channels channels = *(const Channels *)t->from;
    if (f.what == FROM_GATE_CHANNEL) {
        if (f.row < channels.n) out[channels.data[f.row]] = 1;
        return f.row < channels.n;
    }
    if (f.what == FROM_GATED_OUT) {
        bool any = export_tensor_row(&m->geo, from, f.row, NULL, out);
        for (uint32_t i = 0; any && i < from->cols; i++) out[i] *= (float)read_gate(m->geo.dv);
        return any;
    }
    uint32_t first = tensor_first(from, f.row), i = first;
    for (; i < from->n && (uint32_t)from->row[i] == f.row; i++) out[channel_index(&channels, (uint32_t)from->col[i])] = from->value[i];
    return i > first;
}

/* ---- what cannot be had ---- */
/* The logit of a gate that depends on pilots only; 0 for another. */
static double constant_gate(const Model *m, uint32_t layer, uint32_t row)
{
    const Tensor *z = &m->layer[layer].t[T_Z], *norm = &m->layer[layer].t[T_INPUT_NORM];
    double energy = 0, logit = 0;
    for (uint32_t i = 0; i < m->npilots; i++) energy += (double)m->pilot_value[i] * (double)m->pilot_value[i];
    for (uint32_t i = tensor_first(z, row); i < z->n && (uint32_t)z->row[i] == row; i++) {
        uint32_t k = 0, ch = (uint32_t)z->col[i], at = tensor_first(norm, ch);
        while (k < m->npilots && (uint32_t)m->pilot[k] != ch) k++;
        if (k == m->npilots) return 0;
        double gain = at < norm->n && (uint32_t)norm->row[at] == ch ? norm->value[at] : norm->fill;
        logit += (double)z->value[i] * (double)m->pilot_value[k] * sqrt((double)m->geo.hidden / energy) * (1 + gain);
    }
    return logit;
}

static const char *layer_refuse(const Model *m, uint32_t l)
{
    const Tensor *t = m->layer[l].t;
    if (m->layer[l].full) return t[T_O_PROJ].n ? "an attention layer of the chip does something" : NULL;
    if (t[T_A].n) return "a decay depends on the token";
    const Channels *channels = kimi_prepare(m, l);
    if (channels->n > m->geo.dk) return xfmt("the gates of layer %u look at %u channels, between its matrices is room for %u", l, channels->n, m->geo.dk);
    for (uint32_t r = 0; r < t[T_Z].rows; r++) {
        double logit = constant_gate(m, l, r);
        if (logit != 0 && fabs(logit / read_gate(m->geo.dv) - 1) > 1e-6) return xfmt("layer %u has a reading gate that is neither open nor shut", l);
    }
    return NULL;
}

const char *kimi_refuse(const Model *m)
{
    const char *why = m->geo.dk == m->geo.dv ? NULL : "keys and values have one size there (target kimi-linear or native64)";
    for (uint32_t l = 0; !why && l < m->geo.layers; l++) why = layer_refuse(m, l);
    return why;
}

/* ---- config.json ---- */
void kimi_config(const Model *m, json_t *o)
{
    static const char *const theirs[] = { "head_dim", "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim", "full_attention_interval" };
    for (unsigned i = 0; i < sizeof theirs / sizeof *theirs; i++) json_object_del(o, theirs[i]);
    json_t *dense = json_array();
    for (uint32_t i = 0; i < m->geo.layers; i++) json_array_append_new(dense, json_string("dense"));
    json_t *own = json_pack("{s:i, s:i, s:i, s:i, s:n, s:i, s:i, s:i, s:i, s:o}", "linear_num_heads", m->geo.nv, "linear_head_dim", m->geo.dk, "num_attention_heads", 1,
                            "num_key_value_heads", 1, "q_lora_rank", "kv_lora_rank", LATENT, "qk_rope_head_dim", LATENT, "qk_nope_head_dim", LATENT, "v_head_dim", LATENT,
                            "mlp_layer_types", dense);
    json_object_update(o, own);
    json_decref(own);
}
