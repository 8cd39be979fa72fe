/* export_weights.c: the dense tensors of a stock checkpoint as safetensors files, a row at a time: memory for one row, whatever the size. A row of
 * zeros is not written but left as a hole, which reads as zeros and costs no disk where the file system knows holes. */
#include "export.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#define SHARD_BYTES 5000000000ull
#define DONE_ROWS 4096 /* so many rows are written between two calls of Item.done */
#define GATE_ON 128.0f /* a logit whose sigmoid is exactly 1 in every dtype */

/* ---- rows ---- */
/* out += sign * row, in the model's dtype. */
static bool add_row(const Export *x, const Tensor *t, uint32_t row, float sign, float *out)
{
    bool any = false;
    for (uint32_t i = tensor_first(t, row); i < t->n && (uint32_t)t->row[i] == row; i++) {
        out[t->col[i]] = cast(x->m->bf16, out[t->col[i]] + sign * t->value[i]);
        any = true;
    }
    return any;
}

/* A row whose product with every normalised residual stream is at least GATE_ON: one pilot's channel, whose value is the same in every pass. */
static bool pilot_row(const Export *x, uint32_t layer, float *out)
{
    const Model *m = x->m;
    double energy = 0;
    uint32_t best = 0;
    for (uint32_t i = 0; i < m->npilots; i++) {
        energy += (double)m->pilot_value[i] * (double)m->pilot_value[i];
        if (m->pilot_value[i] > m->pilot_value[best]) best = i;
    }
    if (!m->npilots) return false;
    float gain[2] = { 0 };
    const Tensor *norm = &m->layer[layer].t[T_POST_NORM];
    uint32_t at = tensor_first(norm, m->pilot[best]);
    gain[0] = at < norm->n && (uint32_t)norm->row[at] == m->pilot[best] ? norm->value[at] : norm->fill;
    double u = (double)m->pilot_value[best] * sqrt((double)m->geo.hidden / energy) * (1.0 + gain[0]);
    if (u <= 0) return false;
    out[m->pilot[best]] = ldexpf(GATE_ON, (int)ceil(-log2(u)) + 1);
    return true;
}

bool export_tensor_row(const Geometry *g, const Tensor *t, uint32_t row, uint32_t (*column)(const Geometry *g, uint32_t c), float *out)
{
    bool any = t->fill != 0;
    for (uint32_t i = 0; any && i < t->cols; i++) out[i] = t->fill;
    for (uint32_t i = tensor_first(t, row); i < t->n && (uint32_t)t->row[i] == row; i++)
        any = true, out[column ? column(g, (uint32_t)t->col[i]) : (uint32_t)t->col[i]] = t->value[i];
    return any;
}

bool export_stock_row(const Export *x, const Item *t, uint64_t r, float *out)
{
    From f = t->stock->from(&x->m->geo, (uint32_t)r);
    float add = family_add(x->family, t->stock);
    if (f.what == FROM_PILOT) return pilot_row(x, t->layer, out);
    if (f.what >= FROM_GATE_CHANNEL) return kimi_gate_row(x->m, t, f, out);
    bool any = f.what == FROM_CHIP && export_tensor_row(&x->m->geo, &x->m->layer[t->layer].t[f.id], f.row, NULL, out);
    for (uint64_t i = 0; add != 0 && i < t->cols; i++) any = true, out[i] += add;
    return any;
}

bool export_final_norm_row(const Export *x, const Item *t, uint64_t r, float *out)
{
    const Tensor *n = &x->m->final_norm;
    uint32_t i = tensor_first(n, (uint32_t)r);
    (void)t;
    *out = (i < n->n && (uint32_t)n->row[i] == r ? n->value[i] : n->fill) + x->family->norm_add;
    return *out != 0;
}

bool export_embed_row(const Export *x, const Item *t, uint64_t r, float *out)
{
    (void)t;
    if (r >= x->m->end) return false;
    head_embed(x->m, (uint32_t)r, out);
    return true;
}

bool export_head_row(const Export *x, const Item *t, uint64_t r, float *out)
{
    const Model *m = x->m;
    const ChipKind *k = r < m->end ? model_kind(m, (uint32_t)r) : NULL;
    (void)t;
    if (!k) return false;
    uint32_t index = (uint32_t)(k - m->kind), payload = (uint32_t)r - k->base;
    add_row(x, &m->head_kind, index, 1, out);
    for (uint32_t i = 0; i < k->width; i++) add_row(x, &m->head_bit, index * m->max_width + i, payload >> i & 1 ? 1 : -1, out);
    return true;
}

/* ---- which tensors, in which file ---- */
uint64_t export_bytes(const Item *t) { return t->rows * t->cols * (t->half ? 2 : 4); }

void export_add(Items *w, Item t)
{
    t.rows = t.shape[0];
    t.cols = 1;
    if (t.dims == 2) t.cols = t.shape[1];
    if (t.dims >= 3) t.rows *= t.shape[1], t.cols = t.shape[2];
    if (t.dims == 4) t.rows *= t.shape[2], t.cols = t.shape[3];
    vec_push(&w->items, t);
}

static void list_items(Items *w)
{
    const Model *m = w->x->m;
    const uint64_t vocab = w->x->vocab, hidden = m->geo.hidden;
    const bool half = m->bf16;
    export_add(w, (Item){ .half = half, .name = xfmt("model.%s.weight", w->x->family->embedding), .dims = 2, .shape = { vocab, hidden }, .row = export_embed_row });
    const Exporter *exporter = exporter_of(w->x->family);
    for (uint32_t l = 0; l < m->geo.layers; l++) {
        const void *from = exporter->prepare ? exporter->prepare(m, l) : NULL;
        for (unsigned i = 0; i < nfamily_tensors; i++) {
            const FamilyTensor *s = &family_tensors[i];
            Item t = { .half = half, .name = xfmt("model.layers.%u.%s", l, s->name), .dims = s->dims, .stock = s, .layer = l, .row = export_stock_row, .from = from };
            s->shape(&m->geo, t.shape);
            if (s->families & w->x->family->bit && s->scope & (m->layer[l].full ? IN_FULL : IN_LINEAR)) export_add(w, t);
        }
    }
    export_add(w, (Item){ .half = half, .name = xfmt("model.norm.weight"), .dims = 1, .shape = { hidden }, .row = export_final_norm_row });
    export_add(w, (Item){ .half = half, .name = xfmt("lm_head.weight"), .dims = 2, .shape = { vocab, hidden }, .row = export_head_row });
}

static void assign_shards(Items *w)
{
    uint64_t limit = w->x->o->shard_bytes ? w->x->o->shard_bytes : SHARD_BYTES, used = 0;
    for (uint32_t i = 0; i < w->items.n; i++) {
        Item *t = &w->items.data[i];
        uint64_t size = export_bytes(t);
        if (i && used + size > limit) w->nshards++, used = 0;
        used += size;
        t->shard = w->nshards;
    }
    w->nshards++;
}

static char *shard_name(const Items *w, uint32_t i)
{
    return w->nshards == 1 ? xfmt("model.safetensors") : xfmt("model-%05u-of-%05u.safetensors", i + 1, w->nshards);
}

/* ---- one file ---- */
static bool write_header(const Items *w, uint32_t shard, FILE *f)
{
    json_t *h = json_object();
    uint64_t at = 0;
    uint8_t length[8];
    json_object_set_new(h, "__metadata__", json_pack("{s:s}", "format", "pt"));
    for (uint32_t i = 0; i < w->items.n; i++) {
        const Item *t = &w->items.data[i];
        if (t->shard != shard) continue;
        json_t *shape = json_array();
        for (unsigned k = 0; k < t->dims; k++) json_array_append_new(shape, json_integer((json_int_t)t->shape[k]));
        uint64_t end = at + export_bytes(t);
        json_object_set_new(h, t->name, json_pack("{s:s, s:o, s:[I, I]}", "dtype", t->half ? "BF16" : "F32", "shape", shape, "data_offsets",
                                                  (json_int_t)at, (json_int_t)end));
        at = end;
    }
    char *text = json_dumps(h, JSON_COMPACT);
    json_decref(h);
    if (!text) die("header");
    uint64_t n = strlen(text), padded = (n + 7) / 8 * 8;
    for (unsigned i = 0; i < 8; i++) length[i] = (uint8_t)(padded >> 8 * i);
    bool ok = fwrite(length, 1, 8, f) == 8 && fprintf(f, "%s%*s", text, (int)(padded - n), "") >= 0;
    free(text);
    return ok;
}

static bool write_row(Items *w, const Item *t, uint64_t r, FILE *f)
{
    bool half = t->half;
    size_t size = half ? 2 : 4, n = t->cols * size;
    bool any = t->row(w->x, t, r, w->row);
    if (*w->x->err) return false;
    if (!any) return fseeko(f, (off_t)n, SEEK_CUR) == 0;
    for (uint64_t i = 0; i < t->cols; i++) {
        uint32_t u;
        if (half && bf16_round(w->row[i]) != w->row[i]) return fail(w->x->err, "%s: %g is no bfloat16", t->name, (double)w->row[i]);
        memcpy(&u, &w->row[i], 4);
        if (half) u >>= 16;
        for (size_t k = 0; k < size; k++) w->bytes[i * size + k] = (uint8_t)(u >> 8 * k);
    }
    memset(w->row, 0, t->cols * sizeof *w->row);
    return fwrite(w->bytes, 1, n, f) == n;
}

bool export_item(Items *w, const Item *t, FILE *f)
{
    bool ok = true;
    for (uint64_t r = 0; ok && r < t->rows; r++) {
        ok = write_row(w, t, r, f);
        if (t->done && (r % DONE_ROWS == DONE_ROWS - 1 || r + 1 == t->rows)) t->done(t);
    }
    return ok;
}

bool export_extend(FILE *f)
{
    off_t end = ftello(f);
    return end >= 0 && !fflush(f) && !ftruncate(fileno(f), end);
}

static bool write_shard(Items *w, uint32_t shard)
{
    FILE *f = export_create(w->x, shard_name(w, shard));
    if (!f) return false;
    bool ok = write_header(w, shard, f);
    for (uint32_t i = 0; ok && i < w->items.n; i++) {
        const Item *t = &w->items.data[i];
        if (t->shard == shard) ok = export_item(w, t, f);
    }
    ok = ok && export_extend(f);
    return ok ? export_close(w->x, f) : (fclose(f), *w->x->err || fail(w->x->err, "%s: %s", w->x->o->dir, strerror(errno)), false);
}

static bool write_index(Items *w)
{
    if (w->nshards == 1) return true;
    json_t *map = json_object();
    uint64_t total = 0;
    for (uint32_t i = 0; i < w->items.n; i++) {
        const Item *t = &w->items.data[i];
        json_object_set_new(map, t->name, json_string(shard_name(w, t->shard)));
        total += export_bytes(t);
    }
    json_t *o = json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)total, "weight_map", map);
    FILE *f = export_create(w->x, "model.safetensors.index.json");
    if (f && json_dumpf(o, f, JSON_INDENT(2))) fail(w->x->err, "%s: cannot be written", w->x->o->dir);
    json_decref(o);
    return f && export_close(w->x, f);
}

void export_rows(Items *w)
{
    uint64_t widest = 1;
    for (uint32_t i = 0; i < w->items.n; i++)
        if (w->items.data[i].cols > widest) widest = w->items.data[i].cols;
    w->row = xrealloc(NULL, widest * sizeof *w->row);
    w->bytes = xrealloc(NULL, widest * 4);
    memset(w->row, 0, widest * sizeof *w->row);
}

bool export_items(Items *w)
{
    bool ok = true;
    assign_shards(w);
    export_rows(w);
    for (uint32_t i = 0; ok && i < w->nshards; i++) ok = write_shard(w, i);
    ok = ok && write_index(w);
    free(w->row);
    free(w->bytes);
    return ok;
}

bool export_weights(Export *x)
{
    Items w = { .x = x };
    list_items(&w);
    return export_items(&w);
}
