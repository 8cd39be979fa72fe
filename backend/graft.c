/* graft.c: puts a chip in front of a base model, so that text passes the chip as if it were not there, and chip tokens pass the base model as if they
 * were one of its own tokens.
 *
 * HIDDEN SIZE. A chip in the base model's own dimensions would read the numbers that text holds there. Nothing in these layers has a bias, so whatever
 * a unit says of a row r of the embedding it says, gate open instead of shut, of -r too: text passes untouched only if all its rows lie on one side of
 * a plane, which 100,000 rows in 1,000 dimensions do not. So the hidden size grows from d to d', and the chip has dimensions of its own.
 *
 * TEXT IN THE CHIP. A text token holds 0 in all of the chip's channels, and the chip's projections read nothing else: gates 0, silu(0) up(0) = 0; q, k and
 * v 0; z 0, so that every head's output is multiplied by silu(0) = 0; decay 1, which dt_bias alone makes. What the convolution still remembers of a chip
 * token just before could be a key, and beta would be sigmoid(0) = 1/2; so beta's logit reads the mark, a channel in which text alone
 * holds 2^LOG2_MARK, with a weight that makes it at most -HOT for the embedding row of largest norm: beta is exactly 0.
 *
 * HANDOVER. One layer after the chip's, whose MLP has a unit per channel with a gate held open by a pilot: it subtracts every channel from itself
 * (exactly: up reads it exactly, as all of the chip's units do), copies what the output head reads at 2^LOG2_SHRINK of its size into channels of
 * their own, and writes the embedding of the stand-in token into the base model's dimensions. The copies' squares are below half an ulp of the stream's,
 * so the base model computes what it does for the stand-in token.
 *
 * THE BASE MODEL'S NORMS see mean squares over d' instead of d. With the stream scaled by s, a power of two with s^2 d >= d', and with
 * constants of energy eps (s^2 d - d') in channels that nothing reads,
 *     s x / sqrt((s^2 |x|^2 + eps (s^2 d - d')) / d' + eps) = f x / sqrt(|x|^2 / d + eps),  f = sqrt(d' / d):
 * the epsilon is the base model's own again, also in the norms over heads, which are not touched. s goes into the embedding and into the projections
 * back into the stream, exactly. f goes into the norms' gains (1 + w) / f, which round; or, as far as powers of two serve better (all of it when d' = 4 d:
 * then every number of the base model stands as it was or times a power of two), into the projections that read the stream.
 *
 * OUTPUT. Rows of chip tokens read the copies, 2^LOG2_LOUD times as loud, and the mark with -2^LOG2_HUSH: after a chip token the chip decides, on text
 * its tokens have a probability of exactly 0. Embedding and head are untied. */
#include "graft.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_COPIED (256u << 20) /* bytes of a tokenizer file */

/* ---- do the two fit? ---- */
static bool same_geometry(const Graft *g)
{
    const Geometry *a = &g->base->geo, *b = &g->x.m->geo;
    const struct {
        const char *what;
        uint32_t base, chip;
    } equal[] = { { "linear key heads", a->nk, b->nk },    { "linear value heads", a->nv, b->nv },  { "linear key dimensions", a->dk, b->dk },
                  { "linear value dimensions", a->dv, b->dv }, { "convolution taps", a->taps, b->taps } };
    for (unsigned i = 0; i < sizeof equal / sizeof *equal; i++)
        if (equal[i].base != equal[i].chip)
            return fail(g->x.err, "%s: the chip has %u %s, the base model %u: build it with --base %s", g->x.m->path, equal[i].chip, equal[i].what, equal[i].base, g->base->dir);
    if (b->intermediate > a->intermediate)
        return fail(g->x.err, "%s: the chip has %u MLP units, the base model %u: build it with --base %s", g->x.m->path, b->intermediate, a->intermediate, g->base->dir);
    if (g->x.m->bf16 != g->base->bf16)
        return fail(g->x.err, "%s: the chip is %s, the base model is not", g->x.m->path, g->x.m->bf16 ? "bfloat16" : "float32");
    if (b->eps != a->eps) return fail(g->x.err, "%s: the chip's rms_norm_eps is %g, the base model's %g", g->x.m->path, (double)b->eps, (double)a->eps);
    if (b->hidden <= a->hidden) return fail(g->x.err, "%s: hidden size %u has no room beside the base model's %u: build it with --base %s", g->x.m->path, b->hidden, a->hidden, g->base->dir);
    return true;
}

static bool zero_vector(const Tensor *t) { return !t->n && t->fill == 0; }

static bool plain_chip(const Graft *g)
{
    const Model *m = g->x.m;
    for (uint32_t l = 0; l < m->geo.layers; l++) {
        const Layer *y = &m->layer[l];
        bool last = l + 1 == m->geo.layers;
        if (y->full && !last) return fail(g->x.err, "%s: a memory in attention cannot be put before a base model yet", m->path);
        if (last && (!y->full || y->t[T_O_PROJ].n || y->t[T_DOWN].n)) return fail(g->x.err, "%s: its last layer is not the idle attention layer that a chip ends with", m->path);
        if (!zero_vector(&y->t[T_INPUT_NORM]) || !zero_vector(&y->t[T_POST_NORM])) return fail(g->x.err, "%s: layer %u: a norm with gains", m->path, l);
    }
    if (!zero_vector(&m->final_norm)) return fail(g->x.err, "%s: a final norm with gains", m->path);
    return m->npilots || fail(g->x.err, "%s: there are no pilots", m->path);
}

/* ---- channels ---- */
static void mark_cols(bool *used, const Tensor *t)
{
    for (uint32_t i = 0; i < t->n; i++) used[t->col[i]] = true;
}

static void mark_rows(bool *used, const Tensor *t)
{
    for (uint32_t i = 0; i < t->n; i++) used[t->row[i]] = true;
}

static uint32_t *list_of(const bool *set, uint32_t n, uint32_t *count)
{
    uint32_t *out = xalloc(n * sizeof *out + 1);
    *count = 0;
    for (uint32_t i = 0; i < n; i++)
        if (set[i]) out[(*count)++] = i;
    return out;
}

static void find_channels(Graft *g)
{
    static const TensorId reads[] = { T_QKV, T_Z, T_B, T_A, T_GATE, T_UP }, writes[] = { T_OUT, T_DOWN };
    const Model *m = g->x.m;
    bool *used = xalloc(g->wide), *read = xalloc(g->wide);
    mark_cols(read, &m->head_kind), mark_cols(read, &m->head_bit);
    mark_cols(used, &m->embed_kind), mark_cols(used, &m->embed_bit);
    for (uint32_t l = 0; l < g->chip_layers; l++) {
        for (unsigned i = 0; i < sizeof reads / sizeof *reads; i++) mark_cols(used, &m->layer[l].t[reads[i]]);
        for (unsigned i = 0; i < sizeof writes / sizeof *writes; i++) mark_rows(used, &m->layer[l].t[writes[i]]);
    }
    for (uint32_t i = 0; i < g->wide; i++) used[i] |= read[i];
    for (uint32_t i = 0; i < m->npilots; i++) used[m->pilot[i]] = true;
    g->used = list_of(used, g->wide, &g->nused);
    g->copied = list_of(read, g->wide, &g->ncopies);
    g->place = xalloc(g->wide * sizeof *g->place);
    memset(g->place, 0xff, g->wide * sizeof *g->place);
    for (uint32_t i = 0; i < g->nused; i++) g->place[g->used[i]] = i;
}

static bool place_channels(Graft *g)
{
    find_channels(g);
    g->mark = g->narrow + g->nused + g->ncopies;
    g->eps = g->mark + 1;
    if (g->eps + EPS_CHANNELS > g->wide)
        return fail(g->x.err, "%s: hidden size %u, but the base model's %u, the chip's %u channels, %u copies and %d marks need %u: build it with --base %s", g->x.m->path, g->wide,
                    g->narrow, g->nused, g->ncopies, GRAFT_MARKS, g->eps + EPS_CHANNELS, g->base->dir);
    if (g->nused > g->base->geo.intermediate)
        return fail(g->x.err, "%s: the handover needs %u MLP units, the base model has %u", g->x.m->path, g->nused, g->base->geo.intermediate);
    if (exp2(ilogbf(g->x.m->pilot_value[0])) != (double)g->x.m->pilot_value[0]) return fail(g->x.err, "%s: its first pilot is no power of two", g->x.m->path);
    return true;
}

/* ---- scales ---- */
/* Towards zero, so that what is left stays positive. */
static float bf16_down(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    u &= 0xffff0000u;
    memcpy(&x, &u, 4);
    return x;
}

static void choose_epsilon(Graft *g)
{
    g->scale = 1;
    while ((double)g->scale * (double)g->scale * g->narrow < g->wide) g->scale *= 2;
    double energy = (double)g->base->geo.eps * ((double)g->scale * (double)g->scale * g->narrow - g->wide);
    for (unsigned i = 0; i < EPS_CHANNELS; i++) {
        float v = g->eps_value[i] = bf16_down((float)sqrt(energy > 0 ? energy : 0));
        energy -= (double)v * (double)v;
    }
}

/* Mean square of what rounding does to the gains with this shift. */
static double gain_error(Graft *g, int shift)
{
    double sum = 0;
    uint32_t norms = 2 * g->base->geo.layers + 1;
    g->shift = shift, g->gain = ldexp(sqrt((double)g->narrow / g->wide), shift);
    for (uint32_t l = 0; l < norms; l++) {
        const StTensor *t = checkpoint_tensor(g->base, l + 1 == norms ? "model.norm.weight" : xfmt("model.layers.%u.%s_layernorm.weight", l / 2, l & 1 ? "post_attention" : "input"));
        for (uint32_t i = 0; i < g->narrow; i++) {
            float w;
            st_read(t, i, 1, &w);
            double e = (1 + (double)graft_norm(g, w)) / g->gain - (1 + (double)w);
            sum += e * e;
        }
    }
    return sum / ((double)norms * g->narrow);
}

/* Of equal ones the shift that leaves the gains nearest to what they were. */
static void choose_gain(Graft *g)
{
    static const int by[] = { 0, 1, -1, 2, -2 };
    int nearest = (int)lrint(log2((double)g->wide / g->narrow) / 2), best = nearest;
    double least = INFINITY;
    for (unsigned i = 0; i < sizeof by / sizeof *by; i++) {
        double e = gain_error(g, nearest + by[i]);
        if (e < least) least = e, best = nearest + by[i];
    }
    g->gain_error = sqrt(gain_error(g, best));
}

/* The weight with which the mark shuts beta for the text row of largest norm. */
static bool choose_kill(Graft *g)
{
    const StTensor *t = checkpoint_tensor(g->base, "model.embed_tokens.weight");
    double most = 0;
    for (uint32_t r = 0; r < g->first; r++) {
        double sum = 0;
        st_read(t, (uint64_t)r * g->narrow, g->narrow, g->scratch);
        for (uint32_t i = 0; i < g->narrow; i++) sum += (double)g->scratch[i] * (double)g->scratch[i];
        if (!isfinite(sum)) return fail(g->x.err, "%s: the embedding of token %u is not finite", g->base->dir, r);
        if (sum > most) most = sum;
        if (r % 4096 == 4095) st_forget(t);
    }
    memset(g->scratch, 0, g->wide * sizeof *g->scratch);
    double rms = sqrt((most * (double)g->scale * (double)g->scale) / g->narrow + (double)g->base->geo.eps); /* not below the true one */
    g->kill = ldexpf(1, (int)ceil(log2(2 * HOT * rms)) - LOG2_MARK);
    st_read(t, (uint64_t)g->stand_in * g->narrow, g->narrow, g->stand_row);
    return true;
}

/* ---- small files ---- */
static json_t *layer_types(const Graft *g)
{
    json_t *types = json_array();
    for (uint32_t l = 0; l <= g->chip_layers; l++) json_array_append_new(types, json_string("linear_attention"));
    for (uint32_t l = 0; l < g->base->geo.layers; l++) json_array_append_new(types, json_string(g->base->full[l] ? "full_attention" : "linear_attention"));
    return types;
}

static bool write_config(Graft *g)
{
    static const char *const stale[] = { "full_attention_interval", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "mlp_only_layers", "_name_or_path" };
    json_t *o = json_deep_copy(g->base->config);
    for (unsigned i = 0; i < sizeof stale / sizeof *stale; i++) json_object_del(o, stale[i]);
    json_object_set_new(o, "architectures", json_pack("[s]", g->x.family->architecture));
    json_object_set_new(o, "model_type", json_string(g->x.family->model_type));
    json_object_set_new(o, "hidden_size", json_integer(g->wide));
    json_object_set_new(o, "num_hidden_layers", json_integer(g->chip_layers + 1 + g->base->geo.layers));
    json_object_set_new(o, "layer_types", layer_types(g));
    json_object_set_new(o, "vocab_size", json_integer(g->x.vocab));
    json_object_set_new(o, "tie_word_embeddings", json_false());
    json_object_set_new(o, "tapeout", json_pack("{s:s, s:I, s:I, s:i, s:I}", "chip", g->x.m->name, "first_token", (json_int_t)g->first, "base_hidden_size",
                                                (json_int_t)g->narrow, "chip_layers", (int)g->chip_layers + 1, "stand_in", (json_int_t)g->stand_in));
    return export_json(&g->x, "config.json", o);
}

/* The base model's, and the chip's ends beside its own. */
static bool write_generation(Graft *g)
{
    json_t *o = json_load_file(xfmt("%s/generation_config.json", g->base->dir), 0, NULL), *ids = json_array();
    if (!json_is_object(o)) json_decref(o), o = json_object();
    json_t *own = json_object_get(o, "eos_token_id");
    if (!own) own = json_object_get(g->base->config, "eos_token_id");
    if (json_is_integer(own)) json_array_append(ids, own);
    if (json_is_array(own)) json_array_extend(ids, own);
    export_stops(g->x.m, g->first, ids);
    json_object_set_new(o, "eos_token_id", ids);
    return export_json(&g->x, "generation_config.json", o);
}

static bool copy_file(Graft *g, const char *name)
{
    FILE *in = fopen(xfmt("%s/%s", g->base->dir, name), "rb");
    if (!in) return errno == ENOENT || fail(g->x.err, "%s/%s: %s", g->base->dir, name, strerror(errno));
    FILE *out = export_create(&g->x, name);
    char buf[1 << 16];
    size_t n, total = 0;
    while (out && (n = fread(buf, 1, sizeof buf, in)) > 0 && total < MAX_COPIED) total += fwrite(buf, 1, n, out);
    bool ok = out && !ferror(in);
    fclose(in);
    return out && export_close(&g->x, out) && (ok || fail(g->x.err, "%s/%s: cannot be read", g->base->dir, name));
}

static bool copy_tokenizer(Graft *g)
{
    static const char *const names[] = { "tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "chat_template.json" };
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (!copy_file(g, names[i])) return false;
    return true;
}

/* ---- the whole ---- */
static void report_graft(const Graft *g, FILE *f)
{
    const Checkpoint *b = g->base;
    fprintf(f, "hidden: %u, of which %u are the base model's, %u the chip's, %u copies of its answer, %d marks\n", g->wide, g->narrow, g->nused, g->ncopies, GRAFT_MARKS);
    fprintf(f, "layers: %u = %u of the chip, 1 between, %u of the base model\n", g->chip_layers + 1 + b->geo.layers, g->chip_layers, b->geo.layers);
    fprintf(f, "tokens: %u; the chip's token 0 is %u; the base model reads chip tokens as its token %u\n", g->x.vocab, g->first, g->stand_in);
    fprintf(f, "base tensors: stream times %g, projections that read it times %g, gains of its norms times %.9g (rounded by %.2g)\n", (double)g->scale,
            ldexp(1, -g->shift), g->gain, g->gain_error);
}

static bool choose_stand_in(Graft *g, int64_t wanted)
{
    const json_t *eos = json_object_get(g->base->config, "eos_token_id");
    if (json_is_array(eos)) eos = json_array_get(eos, 0);
    int64_t id = wanted >= 0 ? wanted : json_is_integer(eos) ? json_integer_value(eos) : 0;
    if (id < 0 || id >= g->first) return fail(g->x.err, "token %lld is none of the base model's %u", (long long)id, g->first);
    g->stand_in = (uint32_t)id;
    return true;
}

static bool write_weights(Graft *g)
{
    Items w = { .x = &g->x };
    graft_items(g, &w);
    return export_items(&w);
}

bool graft(Checkpoint *base, const Model *chip, const GraftOptions *o, FILE *report, char **err)
{
    ExportOptions e = { .dir = o->dir, .shard_bytes = o->shard_bytes };
    Graft g = { .x = { .m = chip, .family = family_find("qwen3_5"), .o = &e, .err = err }, .base = base, .narrow = base->geo.hidden, .wide = chip->geo.hidden, .first = base->geo.vocab };
    g.chip_layers = chip->geo.layers - 1;
    g.x.vocab = g.x.pad = g.first + chip->end;
    g.scratch = xalloc(g.wide * sizeof *g.scratch), g.stand_row = xalloc(g.narrow * sizeof *g.stand_row);
    if (!same_geometry(&g) || !plain_chip(&g) || !place_channels(&g) || !choose_stand_in(&g, o->stand_in)) return false;
    choose_epsilon(&g);
    choose_gain(&g);
    if (!choose_kill(&g)) return false;
    if (mkdir(o->dir, 0777) && errno != EEXIST) return fail(err, "%s: %s", o->dir, strerror(errno));
    bool ok = export_finish(&g.x, write_config(&g) && write_generation(&g) && copy_tokenizer(&g) && write_weights(&g));
    if (ok && report) report_graft(&g, report);
    return ok;
}
