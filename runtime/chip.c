/* chip.c: a chip file (chip.md) as a checked Model. Every index is in range, every list in order and every shape as the
 * geometry says, or the file is refused; back ends check nothing again. Nothing is made dense here: the cost is one
 * pass over the file. */
#include "stock.h"
#include <jansson.h>
#include <stdlib.h>

const char *const chip_role_name[CHIP_COUNT] = {"trace", "output", "exit", "fault", "take", "input", "start", "load"};
enum { MAX_DIM = 1 << 24, MAX_WIDTH = 24, MAX_LAYERS = 1024 };

static uint32_t get_dim(Reader *r, const json_t *o, const char *where, const char *key) { return (uint32_t)get_int(r, o, where, key, 1, MAX_DIM); }

/* Products of dimensions stay far below 2^31, so that 32-bit arithmetic on them is safe everywhere. */
static void check_heads(Reader *r, Geometry *g, const char *where)
{
    uint64_t conv = 2ull * g->nk * g->dk + (uint64_t)g->nv * g->dv, most = 1u << 30;
    if (conv > most || 2ull * g->heads * g->head_dim > most) reader_fail(r, "%s: too large", where);
    if (g->nv % g->nk) reader_fail(r, "%s: %u value heads are no multiple of %u key heads", where, g->nv, g->nk);
    if (g->heads % g->kv_heads) reader_fail(r, "%s: %u heads are no multiple of %u kv heads", where, g->heads, g->kv_heads);
    g->conv_dim = (uint32_t)conv;
}

void read_sizes(Reader *r, Geometry *g, const json_t *o, const char *where)
{
    g->hidden = get_dim(r, o, where, "hidden_size");
    g->heads = get_dim(r, o, where, "num_attention_heads");
    g->kv_heads = get_dim(r, o, where, "num_key_value_heads");
    g->head_dim = get_dim(r, o, where, "head_dim");
    g->nk = get_dim(r, o, where, "linear_num_key_heads");
    g->nv = get_dim(r, o, where, "linear_num_value_heads");
    g->dk = get_dim(r, o, where, "linear_key_head_dim");
    g->dv = get_dim(r, o, where, "linear_value_head_dim");
    g->taps = (uint32_t)get_int(r, o, where, "linear_conv_kernel_dim", 1, 16);
    g->vocab = (uint32_t)get_int(r, o, where, "vocab_size", 1, MOST_VOCABULARY);
    g->eps = (float)get_number(r, o, where, "rms_norm_eps");
    if (!(g->eps > 0) || !isfinite(g->eps)) reader_fail(r, "%s: rms_norm_eps is not positive", where);
    check_heads(r, g, where);
}

static void read_geometry(Reader *r, Geometry *g, const json_t *o)
{
    static const char where[] = "geometry";
    read_sizes(r, g, o, where);
    g->intermediate = get_dim(r, o, where, "intermediate_size");
    g->layers = (uint32_t)get_int(r, o, where, "num_hidden_layers", 1, MAX_LAYERS);
    g->rope_theta = get_number(r, o, where, "rope_theta");
    g->rotary_factor = get_number(r, o, where, "partial_rotary_factor");
    if (!(g->rope_theta >= 1) || !isfinite(g->rope_theta)) reader_fail(r, "geometry: rope_theta is below 1");
    if (!(g->rotary_factor >= 0 && g->rotary_factor <= 1)) reader_fail(r, "geometry: partial_rotary_factor is not in 0..1");
}

static void read_layer_types(Reader *r, Model *m, const json_t *o)
{
    const json_t *list = get_array(r, o, "geometry", "layer_types");
    if (json_array_size(list) != m->geo.layers)
        reader_fail(r, "geometry: %zu layer_types for %u layers", json_array_size(list), m->geo.layers);
    m->layer = pool_array(r->pool, m->geo.layers, sizeof *m->layer);
    for (uint32_t i = 0; i < m->geo.layers; i++) {
        const char *s = json_string_value(json_array_get(list, i));
        m->layer[i].full = s && strcmp(s, "full_attention") == 0;
        if (!m->layer[i].full && !(s && strcmp(s, "linear_attention") == 0)) reader_fail(r, "geometry: layer %u has an unknown type", i);
    }
}

/* ---- weights ---- */
typedef struct {
    Reader *r;
    const StFile *file;
    bool bf16;
    bool *used; /* [file->n] */
} Source;

static const StTensor *take(Source *s, const char *name, const char *part, StDtype dtype, uint64_t n)
{
    char full[256];
    snprintf(full, sizeof full, "%s.%s", name, part);
    const StTensor *t = st_find(s->file, full);
    if (!t) return NULL;
    s->used[t - s->file->tensor] = true;
    if (t->dtype != dtype || t->ndim != 1 || (n && t->shape[0] != n))
        reader_fail(s->r, "tensor \"%s\": expected %s [%llu]", full, st_dtype_name[dtype], (unsigned long long)(n ? n : t->shape[0]));
    return t;
}

/* The file's bytes where their alignment allows, else a copy. */
static const int32_t *as_ints(Source *s, const StTensor *t)
{
    if ((uintptr_t)t->data % sizeof(int32_t) == 0) return (const void *)t->data;
    return memcpy(pool_alloc(s->r->pool, t->size), t->data, t->size);
}

static const float *as_floats(Source *s, const StTensor *t)
{
    if (!s->bf16) return (const void *)as_ints(s, t);
    uint64_t n = t->shape[0];
    float *out = pool_array(s->r->pool, n, sizeof *out);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t u = (uint32_t)(t->data[2 * i] | t->data[2 * i + 1] << 8) << 16;
        memcpy(&out[i], &u, 4);
    }
    return out;
}

static void check_elements(Source *s, const Tensor *t, const char *name)
{
    uint64_t above = 0; /* 1 + the last element's place in row-major order */
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->row[i] < 0 || (uint32_t)t->row[i] >= t->rows || t->col[i] < 0 || (uint32_t)t->col[i] >= t->cols)
            reader_fail(s->r, "tensor \"%s\": element %u at (%d, %d) lies outside [%u, %u]", name, i, t->row[i], t->col[i], t->rows, t->cols);
        uint64_t place = (uint64_t)t->row[i] * t->cols + (uint32_t)t->col[i];
        if (place < above) reader_fail(s->r, "tensor \"%s\": element %u is not after the one before it", name, i);
        above = place + 1;
        if (!isfinite(t->value[i])) reader_fail(s->r, "tensor \"%s\": element %u is not finite", name, i);
    }
}

static void read_triple(Source *s, Tensor *t, const char *name, uint32_t rows, uint32_t cols)
{
    t->rows = rows;
    t->cols = cols;
    const StTensor *r = take(s, name, "rows", ST_I32, 0);
    uint64_t n = r ? r->shape[0] : 0;
    if (n > INT32_MAX || (r && n == 0)) reader_fail(s->r, "tensor \"%s\": %llu elements listed", name, (unsigned long long)n);
    const StTensor *c = take(s, name, "cols", ST_I32, n), *v = take(s, name, "values", s->bf16 ? ST_BF16 : ST_F32, n);
    if (!r != !c || !r != !v) reader_fail(s->r, "tensor \"%s\": one of rows, cols and values is missing", name);
    if (!r) return;
    t->n = (uint32_t)n;
    t->row = as_ints(s, r);
    t->col = as_ints(s, c);
    t->value = as_floats(s, v);
    check_elements(s, t, name);
}

static void check_shape(Reader *r, const json_t *o, const char *name, int dims, uint32_t rows, uint32_t cols)
{
    const json_t *shape = get_array(r, o, name, "shape");
    int64_t want[3] = {rows, dims == 3 ? 1 : cols, cols};
    bool same = json_array_size(shape) == (size_t)dims;
    for (int i = 0; same && i < dims; i++) same = item_int(r, shape, name, "shape", (size_t)i, 0, INT32_MAX) == want[i];
    if (!same) reader_fail(r, "tensor \"%s\": the shape is not what the geometry says (%u x %u)", name, rows, cols);
}

static void read_stock(Source *s, const json_t *tensors, Tensor *t, const char *name, int dims, uint32_t rows, uint32_t cols)
{
    const json_t *o = get_object(s->r, tensors, "tensors", name);
    check_shape(s->r, o, name, dims, rows, cols);
    t->fill = get_float(s->r, o, name, "fill");
    read_triple(s, t, name, rows, cols);
}

const ModelTensor model_tensor[T_COUNT] = {
#define TENSOR(id, scope, dims, name, rows, cols) {name, IN_##scope, dims},
#include "tensors.def"
#undef TENSOR
};

void model_shape(const Geometry *g, TensorId id, uint32_t shape[2])
{
    const uint32_t shapes[T_COUNT][2] = {
#define TENSOR(id, scope, dims, name, rows, cols) {rows, cols},
#include "tensors.def"
#undef TENSOR
    };
    shape[0] = shapes[id][0];
    shape[1] = shapes[id][1];
}

static void read_layers(Source *s, Model *m, const json_t *tensors)
{
    char name[128];
    size_t expected = 1;
    for (uint32_t i = 0; i < m->geo.layers; i++)
        for (int id = 0; id < T_COUNT; id++) {
            uint32_t shape[2];
            if (!(model_tensor[id].scope & (m->layer[i].full ? IN_FULL : IN_LINEAR))) continue;
            model_shape(&m->geo, (TensorId)id, shape);
            snprintf(name, sizeof name, "model.layers.%u.%s", i, model_tensor[id].name);
            read_stock(s, tensors, &m->layer[i].t[id], name, model_tensor[id].dims, shape[0], shape[1]);
            expected++;
        }
    read_stock(s, tensors, &m->final_norm, "model.norm.weight", 1, m->geo.hidden, 1);
    if (json_object_size(tensors) != expected)
        reader_fail(s->r, "tensors: %zu entries, but the geometry has %zu", json_object_size(tensors), expected);
}

/* What is neither a weight nor known to be something else is an error: a misspelt name must not read as zeros. */
static void check_all_used(const Source *s)
{
    for (uint32_t i = 0; i < s->file->n; i++) {
        const char *name = s->file->tensor[i].name;
        if (!s->used[i] && strcmp(name, "netlist") != 0 && strncmp(name, "debug.", 6) != 0) reader_fail(s->r, "unknown tensor \"%.120s\"", name);
    }
}

static void read_weights(Reader *r, Model *m, const json_t *tensors)
{
    Source s = {r, m->file, m->bf16, pool_array(r->pool, m->file->n, sizeof(bool))};
    uint32_t bits = m->nkinds * m->max_width;
    read_layers(&s, m, tensors);
    read_triple(&s, &m->embed_kind, "embed.kind", m->nkinds, m->geo.hidden);
    read_triple(&s, &m->embed_bit, "embed.bit", bits, m->geo.hidden);
    read_triple(&s, &m->head_kind, "head.kind", m->nkinds, m->geo.hidden);
    read_triple(&s, &m->head_bit, "head.bit", bits, m->geo.hidden);
    check_all_used(&s);
}

/* ---- vocabulary ---- */
static void read_kind(Reader *r, ChipKind *k, const json_t *o, uint32_t base)
{
    k->name = get_string(r, o, "kinds", "name");
    k->base = (uint32_t)get_int(r, o, k->name, "base", 0, INT32_MAX);
    k->width = (uint32_t)get_int(r, o, k->name, "width", 0, MAX_WIDTH);
    k->role = (ChipRole)get_word(r, o, k->name, "role", chip_role_name, CHIP_COUNT);
    k->last = get_bool(r, o, k->name, "last", false);
    k->retire = get_bool(r, o, k->name, "retire", false);
    if (json_object_get(o, "message")) k->message = get_string(r, o, k->name, "message");
    if (json_object_get(o, "code")) k->code = (uint32_t)get_int(r, o, k->name, "code", 0, UINT32_MAX);
    if (k->base != base) reader_fail(r, "kind \"%s\" begins at %u, not where the one before it ends (%u)", k->name, k->base, base);
}

static void read_kinds(Reader *r, Model *m, const json_t *list)
{
    if (json_array_size(list) == 0 || json_array_size(list) > 4096) reader_fail(r, "kinds: %zu of them", json_array_size(list));
    m->nkinds = (uint32_t)json_array_size(list);
    m->kind = pool_array(r->pool, m->nkinds, sizeof *m->kind);
    uint64_t end = 0;
    for (uint32_t i = 0; i < m->nkinds; i++) {
        read_kind(r, &m->kind[i], json_array_get(list, i), (uint32_t)end);
        end += 1ull << m->kind[i].width;
        if (end > m->geo.vocab) reader_fail(r, "kind \"%s\" ends at %llu, above vocab_size", m->kind[i].name, (unsigned long long)end);
        if (m->kind[i].width > m->max_width) m->max_width = m->kind[i].width;
    }
    m->end = (uint32_t)end;
}

static void read_pilot(Reader *r, Model *m, const json_t *o)
{
    const json_t *channels = get_array(r, o, "pilot", "channels"), *values = get_array(r, o, "pilot", "values");
    m->npilots = (uint32_t)json_array_size(channels);
    if (m->npilots > m->geo.hidden || json_array_size(values) != m->npilots) reader_fail(r, "pilot: channels and values do not match");
    m->pilot_scale = (int32_t)get_int(r, o, "pilot", "log2_scale", -100, 100);
    m->pilot = pool_array(r->pool, m->npilots, sizeof *m->pilot);
    m->pilot_value = pool_array(r->pool, m->npilots, sizeof *m->pilot_value);
    for (uint32_t i = 0; i < m->npilots; i++) {
        m->pilot[i] = (uint32_t)item_int(r, channels, "pilot", "channels", i, 0, m->geo.hidden - 1);
        m->pilot_value[i] = item_float(r, values, "pilot", "values", i);
        for (uint32_t j = 0; j < i; j++)
            if (m->pilot[j] == m->pilot[i]) reader_fail(r, "pilot: channel %u stands twice", m->pilot[i]);
    }
}

static void read_netlist(Reader *r, Model *m)
{
    const StTensor *t = st_find(m->file, "netlist");
    if (!t) return;
    if (t->dtype != ST_U8 || t->ndim != 1) reader_fail(r, "tensor \"netlist\": expected U8 [n]");
    char *text = pool_alloc(r->pool, t->size + 1);
    memcpy(text, t->data, t->size);
    if (strlen(text) != t->size) reader_fail(r, "tensor \"netlist\": a NUL byte inside");
    m->netlist = text;
}

static void read_manifest(Reader *r, Model *m, const json_t *o)
{
    static const char *const dtypes[] = {"float32", "bfloat16"};
    get_int(r, o, "manifest", "version", 1, 1);
    const char *family = get_string(r, o, "manifest", "family");
    if (!family_find(family)) reader_fail(r, "manifest: \"family\" is \"%.40s\", which this version does not know", family);
    m->name = get_string(r, o, "manifest", "name");
    m->bf16 = get_word(r, o, "manifest", "dtype", dtypes, 2) == 1;
    const json_t *geo = get_object(r, o, "manifest", "geometry");
    read_geometry(r, &m->geo, geo);
    read_layer_types(r, m, geo);
    read_kinds(r, m, get_array(r, o, "manifest", "kinds"));
    m->start = (uint32_t)get_int(r, o, "manifest", "start", 0, m->end - 1);
    read_pilot(r, m, get_object(r, o, "manifest", "pilot"));
    read_weights(r, m, get_object(r, o, "manifest", "tensors"));
    read_states(r, m, get_array(r, o, "manifest", "states"));
    read_netlist(r, m);
}

static json_t *load_manifest(const StFile *f, char **err)
{
    json_error_t je;
    const char *format = st_metadata(f, "format"), *text = st_metadata(f, "tapeout");
    if (!format || strcmp(format, "tapeout-chip") != 0 || !text) {
        fail(err, "%s: not a chip: the metadata has no \"format\": \"tapeout-chip\" with a manifest", f->path);
        return NULL;
    }
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, &je);
    if (!o) fail(err, "%s: manifest, byte %d: %s", f->path, je.position, je.text);
    return o;
}

static Model *model_make(StFile *f, char **err)
{
    json_t *manifest = f ? load_manifest(f, err) : NULL;
    if (!manifest) {
        st_close(f);
        return NULL;
    }
    Model *m = pool_alloc(f->pool, sizeof *m); /* one pool for both: model_close frees it with the file */
    m->file = f;
    m->path = f->path;
    m->pool = f->pool;
    m->manifest = manifest;
    Reader r = {.path = f->path, .pool = f->pool, .err = err};
    if (setjmp(r.fail)) {
        model_close(m);
        return NULL;
    }
    read_manifest(&r, m, manifest);
    return m;
}

Model *model_open(const char *path, char **err)
{
    return model_make(st_open(path, err), err);
}

Model *model_parse(const uint8_t *bytes, size_t size, const char *path, char **err)
{
    return model_make(st_parse(bytes, size, path, err), err);
}

void model_close(Model *m)
{
    if (!m) return;
    json_decref(m->manifest);
    st_close(m->file);
}

bool geometry_fits(const Geometry *g, const char *path, char **err)
{
    const uint64_t limit = 1ull << 33; /* floats: 32 GiB */
    uint64_t per_layer = (uint64_t)g->nv * g->dk * g->dv, total;
    per_layer += 16ull * (g->conv_dim + g->intermediate + g->hidden + (uint64_t)g->nv * g->dv);
    if (!__builtin_mul_overflow(per_layer, (uint64_t)g->layers, &total) && total < limit) return true;
    return fail(err, "%s: the state of %u layers of %u heads of %u x %u is too large", path, g->layers, g->nv, g->dk, g->dv);
}

bool model_fits(const Model *m, char **err) { return geometry_fits(&m->geo, m->path, err); }

const ChipState *model_state(const Model *m, const char *name)
{
    for (uint32_t i = 0; i < m->nstates; i++)
        if (strcmp(m->state[i].name, name) == 0) return &m->state[i];
    return NULL;
}

bool model_needs_firmware(const Model *m)
{
    for (uint32_t i = 0; i < m->nstates; i++)
        if (m->state[i].init == INIT_IMAGE || m->state[i].init == INIT_ENTRY) return true;
    return false;
}

const ChipKind *model_kind(const Model *m, uint32_t token)
{
    uint32_t lo = 0, hi = m->nkinds; /* the last kind whose base is at most token */
    if (token >= m->end) return NULL;
    while (hi - lo > 1) {
        uint32_t mid = (lo + hi) / 2;
        if (m->kind[mid].base <= token) lo = mid;
        else hi = mid;
    }
    return &m->kind[lo];
}
