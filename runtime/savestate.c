/* savestate.c: everything that a chip has in mind between two tokens, as a safetensors file that stock caches can be made from (and into which they
 * can be turned: tests/hf/tapeout_state.py). Metadata: `format` = "tapeout-state", `chip` = its name, `next` = the id of the token to feed next. Per
 * linear layer i:
 *   layers.i.heads      I32 [n]          the value heads that are not all zero, in order; absent when there is none
 *   layers.i.recurrent  F32 [n, dk, dv]  their states
 *   layers.i.conv       F32 [C, K]       the projections of the last K tokens before the convolution, the oldest first; those that no later
 *                                        token asks for may be 0; absent when all are
 * Attention layers are no-ops in the chips that this holds, so their caches are left out: only their length is lost, which nothing reads. */
#include "runtime.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    const Model *m;
    const Backend *b;
    void *self;
    FILE *f;
    float *state, *raw; /* [nv, dk, dv], [taps][conv_dim] of one layer */
    int32_t *heads;     /* [nv] */
    uint32_t n;
    bool any_raw;
    json_t *header;
    uint64_t at;
} Saver;

static bool holds(const Model *m, const Backend *b, char **err)
{
    if (!b->recall || !b->remember) return fail(err, "back end %s cannot save or load a state", b->name);
    for (uint32_t i = 0; i < m->geo.layers; i++)
        if (m->layer[i].full && m->layer[i].t[T_O_PROJ].n) return fail(err, "%s: has a memory in an attention layer, which a state file cannot hold", m->path);
    return true;
}

static size_t head_size(const Model *m) { return (size_t)m->geo.dk * m->geo.dv; }

/* ---- saving: each layer is read twice, for the header and for the data ---- */
static bool some(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] != 0) return true;
    return false;
}

static void read_layer(Saver *s, uint32_t layer)
{
    const Geometry *g = &s->m->geo;
    s->n = 0;
    for (uint32_t h = 0; h < g->nv; h++) {
        float *at = s->state + s->n * head_size(s->m);
        for (uint32_t r = 0; r < g->dk; r++) s->b->get(s->self, layer, h, r, at + (size_t)r * g->dv);
        if (some(at, head_size(s->m))) s->heads[s->n++] = (int32_t)h;
    }
    for (uint32_t back = 0; back < g->taps; back++) s->b->recall(s->self, layer, back, s->raw + (size_t)back * g->conv_dim);
    s->any_raw = some(s->raw, (size_t)g->taps * g->conv_dim);
}

static void describe(Saver *s, uint32_t layer, const char *what, const char *dtype, const uint64_t *shape, unsigned ndim)
{
    uint64_t n = 4;
    json_t *list = json_array();
    for (unsigned i = 0; i < ndim; i++) n *= shape[i], json_array_append_new(list, json_integer((json_int_t)shape[i]));
    json_object_set_new(s->header, xfmt("layers.%u.%s", layer, what),
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", list, "data_offsets", (json_int_t)s->at, (json_int_t)(s->at + n)));
    s->at += n;
}

static void describe_layer(Saver *s, uint32_t layer)
{
    const Geometry *g = &s->m->geo;
    read_layer(s, layer);
    if (s->n) describe(s, layer, "heads", "I32", (uint64_t[]){s->n}, 1);
    if (s->n) describe(s, layer, "recurrent", "F32", (uint64_t[]){s->n, g->dk, g->dv}, 3);
    if (s->any_raw) describe(s, layer, "conv", "F32", (uint64_t[]){g->conv_dim, g->taps}, 2);
}

static bool put(Saver *s, uint32_t u)
{
    uint8_t b[4] = {(uint8_t)u, (uint8_t)(u >> 8), (uint8_t)(u >> 16), (uint8_t)(u >> 24)};
    return fwrite(b, 1, 4, s->f) == 4;
}

static bool put_float(Saver *s, float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return put(s, u);
}

static bool write_layer(Saver *s, uint32_t layer)
{
    const Geometry *g = &s->m->geo;
    bool ok = true;
    read_layer(s, layer);
    for (uint32_t i = 0; i < s->n; i++) ok &= put(s, (uint32_t)s->heads[i]);
    for (size_t i = 0; i < s->n * head_size(s->m); i++) ok &= put_float(s, s->state[i]);
    for (uint32_t c = 0; s->any_raw && c < g->conv_dim; c++)
        for (uint32_t k = 0; k < g->taps; k++) ok &= put_float(s, s->raw[(size_t)(g->taps - 1 - k) * g->conv_dim + c]);
    return ok;
}

static bool write_file(Saver *s, uint32_t next)
{
    const Model *m = s->m;
    s->header = json_pack("{s:{s:s, s:s, s:o}}", "__metadata__", "format", "tapeout-state", "chip", m->name, "next", json_sprintf("%u", next));
    for (uint32_t i = 0; i < m->geo.layers; i++)
        if (!m->layer[i].full) describe_layer(s, i);
    char *text = json_dumps(s->header, JSON_COMPACT);
    json_decref(s->header);
    uint64_t n = strlen(text), padded = (n + 7) / 8 * 8;
    bool ok = put(s, (uint32_t)padded) && put(s, 0) && fprintf(s->f, "%s%*s", text, (int)(padded - n), "") >= 0;
    free(text);
    for (uint32_t i = 0; ok && i < m->geo.layers; i++)
        if (!m->layer[i].full) ok = write_layer(s, i);
    return ok;
}

bool state_save(const Model *m, const Backend *b, void *self, uint32_t next, const char *path, char **err)
{
    const Geometry *g = &m->geo;
    char *temp = xfmt("%s.tmp%ld", path, (long)getpid());
    if (!holds(m, b, err)) return false;
    Saver s = {.m = m, .b = b, .self = self, .f = fopen(temp, "wb")};
    if (!s.f) return fail(err, "%s: %s", path, strerror(errno));
    s.state = xrealloc(NULL, g->nv * head_size(m) * sizeof *s.state);
    s.raw = xrealloc(NULL, (size_t)g->taps * g->conv_dim * sizeof *s.raw);
    s.heads = xrealloc(NULL, g->nv * sizeof *s.heads);
    bool ok = write_file(&s, next);
    ok &= fclose(s.f) == 0;
    free(s.state);
    free(s.raw);
    free(s.heads);
    if (ok && rename(temp, path) == 0) return true;
    unlink(temp);
    return fail(err, "%s: cannot be written", path);
}

/* ---- loading ---- */
static const StTensor *find(const StFile *f, uint32_t layer, const char *what, StDtype dtype, unsigned ndim, const uint64_t *shape, bool *bad)
{
    const StTensor *t = st_find(f, xfmt("layers.%u.%s", layer, what));
    if (!t) return NULL;
    bool same = t->dtype == dtype && t->ndim == ndim;
    for (unsigned i = 0; same && i < ndim; i++) same = t->shape[i] == shape[i];
    *bad |= !same;
    return same ? t : NULL;
}

static bool load_heads(const Model *m, const Backend *b, void *self, const StFile *f, uint32_t layer)
{
    const Geometry *g = &m->geo;
    bool bad = false;
    const StTensor *any = st_find(f, xfmt("layers.%u.heads", layer));
    uint64_t n = any && any->ndim == 1 ? any->shape[0] : 0;
    const StTensor *heads = find(f, layer, "heads", ST_I32, 1, &n, &bad);
    const StTensor *state = find(f, layer, "recurrent", ST_F32, 3, (uint64_t[]){n, g->dk, g->dv}, &bad);
    float *lanes = xrealloc(NULL, g->dv * sizeof *lanes);
    bad |= !heads != !state;
    for (uint64_t i = 0; !bad && heads && i < n; i++) {
        int32_t h;
        memcpy(&h, heads->data + 4 * i, 4);
        bad = h < 0 || (uint32_t)h >= g->nv;
        for (uint32_t r = 0; !bad && r < g->dk; r++) {
            memcpy(lanes, state->data + 4 * ((i * g->dk + r) * g->dv), g->dv * sizeof *lanes);
            for (uint32_t k = 0; k < g->dv; k++) bad |= !isfinite(lanes[k]);
            if (!bad && some(lanes, g->dv)) b->set(self, layer, (uint32_t)h, r, lanes);
        }
    }
    free(lanes);
    return !bad;
}

static bool load_conv(const Model *m, const Backend *b, void *self, const StFile *f, uint32_t layer)
{
    const Geometry *g = &m->geo;
    bool bad = false;
    const StTensor *t = find(f, layer, "conv", ST_F32, 2, (uint64_t[]){g->conv_dim, g->taps}, &bad);
    float *raw = xrealloc(NULL, g->conv_dim * sizeof *raw);
    memset(raw, 0, g->conv_dim * sizeof *raw);
    for (uint32_t back = g->taps; !bad && back-- > 0;) {
        for (uint32_t c = 0; t && c < g->conv_dim; c++) {
            memcpy(&raw[c], t->data + 4 * ((size_t)c * g->taps + g->taps - 1 - back), 4);
            bad |= !isfinite(raw[c]);
        }
        if (!bad) b->remember(self, layer, back, raw);
    }
    free(raw);
    return !bad;
}

static bool load_file(const Model *m, const Backend *b, void *self, const StFile *f, uint32_t *next, char **err)
{
    const char *format = st_metadata(f, "format"), *chip = st_metadata(f, "chip"), *token = st_metadata(f, "next");
    char *end = NULL;
    if (!format || strcmp(format, "tapeout-state") || !chip || !token) return fail(err, "%s: not a state file", f->path);
    if (strcmp(chip, m->name)) return fail(err, "%s: the state of \"%s\", not of \"%s\"", f->path, chip, m->name);
    errno = 0;
    unsigned long id = strtoul(token, &end, 10);
    if (errno || !*token || *end || id >= m->end) return fail(err, "%s: the next token \"%s\" is none of the chip's", f->path, token);
    *next = (uint32_t)id;
    const ChipKind *k = model_kind(m, *next);
    if (k && (k->role == CHIP_EXIT || k->role == CHIP_FAULT)) return fail(err, "%s: that run has ended with %s", f->path, k->name);
    for (uint32_t i = 0; i < m->geo.layers; i++)
        if (!m->layer[i].full && (!load_heads(m, b, self, f, i) || !load_conv(m, b, self, f, i)))
            return fail(err, "%s: layer %u is not what the chip's geometry says", f->path, i);
    return true;
}

bool state_load(const Model *m, const Backend *b, void *self, uint32_t *next, const char *path, char **err)
{
    if (!holds(m, b, err)) return false;
    StFile *f = st_open(path, err);
    if (!f) return false;
    bool ok = load_file(m, b, self, f, next, err);
    st_close(f);
    return ok;
}
