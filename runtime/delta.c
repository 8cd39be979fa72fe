/* delta.c: a Gated DeltaNet layer of the sparse back end.
 *
 * Work is done only for heads whose beta is not 0, keys and queries that are not 0 and lanes whose gate is not 0; each is
 * found by forms.c. Everything else is the stock layer's arithmetic (dense_layer.c) on lists of non-zero entries, so any weights
 * are computed rightly; what the compiler emits is also fast:
 *   - A channel whose convolution has one tap, a power of two, is a form over this token's stream or over a snapshot of an
 *     earlier one; a channel with several taps is convolved from snapshots.
 *   - A head's state starts as BIT-CODED: one 64-bit word a row. That holds while every write is a one-hot key of exactly 1
 *     with beta 1 and values that are fixed in some lanes (pilots) and 0 or `one` in the others, and while the norm's
 *     factor is the same for all such rows. The first event that breaks the code turns the head into floats for good. */
#include "delta.h"
#include <stdlib.h>

/* ---- building: channels ---- */
static bool power_of_two(float w)
{
    int e;
    return w != 0 && fabsf(frexpf(w, &e)) == 0.5f;
}

static void add_channel(Delta *d, Part *p, bool gated, uint32_t c, const Basis *basis, const Matrix *qkv, uint32_t row, const Matrix *conv)
{
    const Geometry *g = d->g;
    uint32_t first = qkv->start[row], n = qkv->start[row + 1] - first, taps = 0, last = 0;
    float w[MAX_TAPS] = {0};
    for (uint32_t i = conv->start[row]; i < conv->start[row + 1]; i++)
        if (conv->value[i] != 0) taps++, last = (uint32_t)conv->col[i], w[last] = conv->value[i];
    p->code[c] = NONE;
    if (taps == 0 || n == 0) return;
    if (taps == 1 && power_of_two(w[last])) {
        uint32_t back = g->taps - 1 - last;
        p->code[c] = CODE(back, forms_add(&p->forms[back], basis, qkv->col + first, qkv->value + first, n, w[last]));
        return;
    }
    General general = {.form = forms_add(&d->raw, basis, qkv->col + first, qkv->value + first, n, 1)};
    memcpy(general.w, w, sizeof w);
    p->code[c] = CODE(GENERAL, vec_push(&d->general, general));
    if (gated) vec_push(&p->general, c);
}

static void list_rows(Delta *d, Part *p, uint32_t channels, uint32_t back)
{
    uint32_t *key = xrealloc(NULL, (channels + 1) * sizeof *key);
    for (uint32_t c = 0; c < channels; c++)
        key[c] = p->code[c] != NONE && CODE_KIND(p->code[c]) == back ? CODE_INDEX(p->code[c]) : NONE;
    p->rows[back] = lists_make(d->pool, key, channels, p->forms[back].n);
    free(key);
}

static bool make_parts(Delta *d, const Basis *basis, const Tensor *t)
{
    const Geometry *g = d->g;
    Matrix qkv, conv;
    if (t[T_CONV].fill != 0 || t[T_QKV].fill != 0 || !matrix_make(&qkv, d->pool, &t[T_QKV], false, NULL) || !matrix_make(&conv, d->pool, &t[T_CONV], false, NULL)) return false;
    const uint32_t size[PARTS] = {g->nk * g->dk, g->nk * g->dk, g->nv * g->dv};
    forms_init(&d->raw);
    d->conv = &t[T_CONV];
    for (uint32_t i = 0, row = 0; i < PARTS; i++) {
        Part *p = &d->part[i];
        for (uint32_t b = 0; b < g->taps; b++) forms_init(&p->forms[b]);
        p->code = pool_array(d->pool, size[i], sizeof *p->code);
        for (uint32_t c = 0; c < size[i]; c++, row++) add_channel(d, p, i != PART_V, c, basis, &qkv, row, &conv);
        for (uint32_t b = 0; i != PART_V && b < g->taps; b++) list_rows(d, p, size[i], b);
    }
    return true;
}

static void note_channels(const Forms *f, uint32_t *map)
{
    for (uint32_t i = 0; i < f->e.n; i++) map[f->e.data[i].at] = 0;
}

/* Forms over past tokens get channels of their own, numbered densely. */
static void make_snapshots(Delta *d)
{
    const Geometry *g = d->g;
    uint32_t *map = xrealloc(NULL, g->hidden * sizeof *map);
    memset(map, 0xff, g->hidden * sizeof *map);
    note_channels(&d->raw, map);
    for (int i = 0; i < PARTS; i++)
        for (uint32_t b = 1; b < g->taps; b++) note_channels(&d->part[i].forms[b], map);
    d->snap_channel = pool_array(d->pool, g->hidden, sizeof *d->snap_channel);
    for (uint32_t c = 0; c < g->hidden; c++)
        if (map[c] == 0) d->snap_channel[map[c] = d->nsnap++] = c;
    forms_remap(&d->raw, map);
    for (int i = 0; i < PARTS; i++)
        for (uint32_t b = 1; b < g->taps; b++) forms_remap(&d->part[i].forms[b], map);
    for (uint32_t b = 0; b < g->taps; b++) d->snap[b] = stream_new(d->pool, d->nsnap);
    free(map);
}

static void make_part_gates(Delta *d, Part *p)
{
    for (uint32_t b = 0; b < d->g->taps; b++) gates_make(&p->gates[b], d->pool, &p->forms[b], b ? d->nsnap : d->g->hidden, true);
}

/* ---- building: heads ---- */
/* One form per row of a matrix with no convolution; key[row] = its number, NONE for a row of zeros unless `keep_zero`. */
static bool row_forms(Delta *d, const Basis *basis, const Tensor *t, Forms *f, uint32_t *key, bool keep_zero)
{
    Matrix m;
    if (t->fill != 0 || !matrix_make(&m, d->pool, t, false, NULL)) return false;
    forms_init(f);
    for (uint32_t r = 0; r < t->rows; r++) {
        uint32_t first = m.start[r], n = m.start[r + 1] - first;
        key[r] = n || keep_zero ? forms_add(f, basis, m.col + first, m.value + first, n, 1) : NONE;
    }
    return true;
}

/* Whether the key head of value head j has any key (or query) channel at all. */
static bool addressed(const Delta *d, const Part *p, uint32_t j)
{
    const uint32_t *code = p->code + (size_t)(j / d->share) * d->g->dk;
    for (uint32_t r = 0; r < d->g->dk; r++)
        if (code[r] != NONE) return true;
    return false;
}

static bool make_beta(Delta *d, const Basis *basis, const Tensor *t)
{
    uint32_t nv = d->g->nv, *key = pool_array(d->pool, nv, sizeof *key);
    d->b_form = pool_array(d->pool, nv, sizeof *d->b_form);
    if (!row_forms(d, basis, t, &d->b_forms, d->b_form, true)) return false;
    for (uint32_t j = 0; j < nv; j++)
        key[j] = d->head[j].value->n && addressed(d, &d->part[PART_K], j) ? d->b_form[j] : NONE;
    gates_make(&d->b, d->pool, &d->b_forms, d->g->hidden, false);
    d->b_heads = lists_make(d->pool, key, nv, d->b_forms.n);
    return true;
}

/* The lanes of each z form, gathered into one mask per head and 64 lanes. */
static void make_gate_members(Delta *d, const Lists *lanes, uint32_t nforms)
{
    uint32_t dv = d->g->dv, n = 0;
    d->z_start = pool_array(d->pool, (size_t)nforms + 1, sizeof *d->z_start);
    d->z_member = pool_array(d->pool, lanes->start[nforms], sizeof *d->z_member);
    for (uint32_t f = 0; f < nforms; f++) {
        d->z_start[f] = n;
        for (uint32_t i = lanes->start[f]; i < lanes->start[f + 1]; i++) {
            uint32_t head = lanes->item[i] / dv, lane = lanes->item[i] % dv;
            GateMember *last = n > d->z_start[f] ? &d->z_member[n - 1] : NULL;
            if (!last || last->head != head || last->word != lane / 64) {
                last = &d->z_member[n++];
                *last = (GateMember){head, lane / 64, 0};
            }
            last->mask |= 1ull << (lane & 63);
        }
    }
    d->z_start[nforms] = n;
}

static bool make_gate(Delta *d, const Basis *basis, const Tensor *t)
{
    uint32_t *key = xrealloc(NULL, t->rows * sizeof *key);
    Forms f;
    bool ok = row_forms(d, basis, t, &f, key, false), read = false;
    if (ok) {
        for (uint32_t r = 0; r < t->rows; r++) { /* lanes that nobody can read or that go nowhere need no gate */
            uint32_t j = r / d->g->dv, lane = r % d->g->dv;
            const OutClass *out = d->head[j].out;
            if (lane == 0) read = addressed(d, &d->part[PART_Q], j);
            if (!read || out->start[lane] == out->start[lane + 1]) key[r] = NONE;
        }
        Lists lanes = lists_make(d->pool, key, t->rows, f.n);
        gates_make(&d->z, d->pool, &f, d->g->hidden, true);
        make_gate_members(d, &lanes, f.n);
        forms_free(&f);
    }
    free(key);
    return ok;
}

/* A value channel that never changes: its value. */
static bool constant_value(const Delta *d, uint32_t code, float *v)
{
    const Forms *f = &d->part[PART_V].forms[0];
    uint32_t i = CODE_INDEX(code);
    if (CODE_KIND(code) != 0 || f->start[i] != f->start[i + 1]) return false;
    *v = cast(d->bf16, siluf(cast(d->bf16, f->bias[i])));
    return true;
}

/* Whether a value is one channel's bit: the value for 1. */
static uint32_t plain_channel(const Delta *d, uint32_t code, float *one)
{
    const Forms *f = &d->part[PART_V].forms[0];
    uint32_t i = CODE_INDEX(code);
    if (CODE_KIND(code) != 0 || f->start[i] + 1 != f->start[i + 1]) return NONE;
    const Entry *e = &f->e.data[f->start[i]];
    *one = cast(d->bf16, siluf(cast(d->bf16, f->bias[i] + e->w)));
    return siluf(cast(d->bf16, f->bias[i])) == 0 ? e->at : NONE;
}

static ValueClass *new_value_class(Delta *d, const uint32_t *code)
{
    ValueClass *c = pool_alloc(d->pool, sizeof *c);
    uint32_t dv = d->g->dv, fixed = 0;
    c->lane = pool_array(d->pool, dv, sizeof *c->lane);
    c->code = pool_array(d->pool, dv, sizeof *c->code);
    c->plain = pool_array(d->pool, dv, sizeof *c->plain);
    c->plain_value = pool_array(d->pool, dv, sizeof *c->plain_value);
    for (uint32_t i = 0; i < dv; i++) {
        float v = 0;
        if (code[i] == NONE) continue;
        if (dv <= 64 && constant_value(d, code[i], &v)) {
            c->fixed |= 1ull << i;
            c->fixed_value[i] = v;
            fixed++;
            if (v < 0) fixed = dv + 1;
        }
        c->lane[c->n] = i;
        c->plain[c->n] = plain_channel(d, code[i], &c->plain_value[c->n]);
        c->code[c->n++] = code[i];
    }
    c->bits = dv <= 64 && fixed > 0 && fixed <= dv;
    return c;
}

/* Calls `make` for each head's `n` words that no earlier head has; the heads that share get the same result. */
static void make_classes(Delta *d, const void *words, size_t n, void *(*make)(Delta *, const void *), void **out)
{
    uint32_t nv = d->g->nv, slots = 1u << clog2(2ull * nv + 1), *slot = xrealloc(NULL, slots * sizeof *slot);
    memset(slot, 0xff, slots * sizeof *slot);
    for (uint32_t j = 0; j < nv; j++) {
        const uint32_t *w = (const uint32_t *)words + j * n;
        uint32_t h = 1;
        for (size_t i = 0; i < n; i++) h = (h ^ w[i]) * 0x9e3779b1u, h ^= h >> 15;
        for (h &= slots - 1; slot[h] != NONE; h = (h + 1) & (slots - 1))
            if (memcmp((const uint32_t *)words + slot[h] * n, w, n * sizeof *w) == 0) break;
        if (slot[h] == NONE) {
            slot[h] = j;
            out[j] = make(d, w);
        } else out[j] = out[slot[h]];
    }
    free(slot);
}

static void *make_value(Delta *d, const void *words) { return new_value_class(d, words); }

/* out_proj by column: column h * dv + lane. */
typedef struct {
    uint32_t *start;
    Entry *e;
} Columns;

static Columns out_columns(const Tensor *t)
{
    Columns c = {xrealloc(NULL, ((size_t)t->cols + 2) * sizeof *c.start), xrealloc(NULL, ((size_t)t->n + 1) * sizeof *c.e)};
    uint32_t *at = c.start + 1;
    memset(c.start, 0, ((size_t)t->cols + 2) * sizeof *c.start);
    for (uint32_t i = 0; i < t->n; i++) at[t->col[i] + 1]++;
    for (uint32_t k = 0; k < t->cols; k++) at[k + 1] += at[k];
    for (uint32_t i = 0; i < t->n; i++) c.e[at[t->col[i]]++] = (Entry){(uint32_t)t->row[i], t->value[i]};
    return c;
}

static bool same_out(const OutClass *o, uint32_t dv, const uint32_t *start, const Entry *e)
{
    if (o->start[dv] != start[dv] - start[0]) return false;
    for (uint32_t i = 0; i < dv; i++)
        if (o->start[i] != start[i] - start[0]) return false;
    return memcmp(o->e, e + start[0], o->start[dv] * sizeof *e) == 0;
}

static const OutClass *new_out_class(Delta *d, const uint32_t *start, const Entry *e)
{
    uint32_t dv = d->g->dv;
    OutClass *o = pool_alloc(d->pool, sizeof *o);
    Entry *copy = pool_array(d->pool, start[dv] - start[0], sizeof *copy);
    o->start = pool_array(d->pool, dv + 1, sizeof *o->start);
    for (uint32_t i = 0; i <= dv; i++) o->start[i] = start[i] - start[0];
    o->e = memcpy(copy, e + start[0], o->start[dv] * sizeof *e);
    return o;
}

/* Neighbouring groups of heads differ only in place, so it is enough to compare with the heads of the last few classes. */
static bool make_out(Delta *d, const Tensor *t)
{
    enum { RECENT = 64 };
    const OutClass *recent[RECENT] = {0};
    uint32_t n = 0, dv = d->g->dv;
    if (t->fill != 0) return false;
    Columns c = out_columns(t);
    for (uint32_t j = 0; j < d->g->nv; j++) {
        const uint32_t *start = c.start + (size_t)j * dv;
        const OutClass *found = NULL;
        for (uint32_t i = 0; i < RECENT && !found && recent[i]; i++)
            if (same_out(recent[i], dv, start, c.e)) found = recent[i];
        if (!found) found = recent[n++ % RECENT] = new_out_class(d, start, c.e);
        d->head[j].out = found;
    }
    free(c.start);
    free(c.e);
    return true;
}

static void to_floats(Delta *d, uint32_t j);

static bool make_decay(Delta *d, const Basis *basis, const Tensor *t)
{
    uint32_t *key = pool_array(d->pool, d->g->nv, sizeof *key);
    if (!row_forms(d, basis, &t[T_A], &d->a, key, false)) return false;
    d->a_log = tensor_vector(d->pool, &t[T_A_LOG]);
    d->dt_bias = tensor_vector(d->pool, &t[T_DT_BIAS]);
    for (uint32_t j = 0; j < d->g->nv; j++) {
        Decay y = {j, key[j], expf(-expf(d->a_log[j]) * softplusf(d->dt_bias[j]))};
        if (y.form == NONE && y.factor == 1.0f) continue;
        vec_push(&d->decay, y);
        to_floats(d, j);
    }
    return true;
}

static HotLists new_hot(Delta *d)
{
    HotLists h = {pool_array(d->pool, d->g->nk, sizeof *h.n), pool_array(d->pool, (size_t)d->g->nk * d->g->dk, sizeof *h.hot),
                  pool_array(d->pool, d->g->nk, sizeof *h.used), 0};
    return h;
}

static void make_heads(Delta *d)
{
    const Geometry *g = d->g;
    void **value = xrealloc(NULL, g->nv * sizeof *value);
    d->head = pool_array(d->pool, g->nv, sizeof *d->head);
    d->bits = pool_array(d->pool, (size_t)g->nv * g->dk, sizeof *d->bits);
    d->valid = pool_array(d->pool, (size_t)g->nv * g->dk, sizeof *d->valid);
    d->key = new_hot(d);
    d->query = new_hot(d);
    d->v = pool_array(d->pool, g->dv, sizeof *d->v);
    d->r = pool_array(d->pool, g->dv, sizeof *d->r);
    d->o = pool_array(d->pool, g->dv, sizeof *d->o);
    make_classes(d, d->part[PART_V].code, g->dv, make_value, value);
    for (uint32_t j = 0; j < g->nv; j++) d->head[j].value = value[j];
    free(value);
}

/* Nothing is ever written or read. */
static bool does_nothing(const Delta *d)
{
    return !d->nsnap && !d->decay.n && !d->b_heads.start[d->b_forms.n] && !d->z_start[d->z.n];
}

Delta *delta_make(const Model *m, uint32_t layer, const Basis *basis, Pool *p)
{
    const Tensor *t = m->layer[layer].t;
    Delta *d = pool_alloc(p, sizeof *d);
    d->m = m;
    d->g = &m->geo;
    d->bf16 = m->bf16;
    d->pool = p;
    d->scale = sqrtf((float)m->geo.dk);
    d->share = m->geo.nv / m->geo.nk;
    d->norm = tensor_vector(p, &t[T_NORM]);
    if (!make_parts(d, basis, t)) {
        delta_close(d);
        return NULL;
    }
    make_snapshots(d);
    make_part_gates(d, &d->part[PART_Q]);
    make_part_gates(d, &d->part[PART_K]);
    make_heads(d);
    if (make_out(d, &t[T_OUT]) && make_beta(d, basis, &t[T_B]) && make_gate(d, basis, &t[T_Z]) && make_decay(d, basis, t)) {
        d->nothing = does_nothing(d);
        return d;
    }
    delta_close(d);
    return NULL;
}

void delta_close(Delta *d)
{
    if (!d) return;
    for (int i = 0; i < PARTS; i++) {
        for (uint32_t b = 0; b < d->g->taps; b++) forms_free(&d->part[i].forms[b]), gates_close(&d->part[i].gates[b]);
        free(d->part[i].general.data);
    }
    gates_close(&d->b);
    gates_close(&d->z);
    forms_free(&d->b_forms);
    free(d->idle.data);
    forms_free(&d->raw);
    forms_free(&d->a);
    free(d->general.data);
    free(d->decay.data);
    for (uint32_t j = 0; d->head && j < d->g->nv; j++) free(d->head[j].rows);
}

/* ---- state ---- */
static void expand_row(const Delta *d, uint32_t j, uint32_t row, float *lanes)
{
    const ValueClass *c = d->head[j].value;
    size_t at = (size_t)j * d->g->dk + row;
    if (d->head[j].rows) {
        memcpy(lanes, d->head[j].rows + (size_t)row * d->g->dv, d->g->dv * sizeof *lanes);
        return;
    }
    memset(lanes, 0, d->g->dv * sizeof *lanes);
    for (uint64_t b = d->valid[at] ? c->fixed : 0; b; b &= b - 1) lanes[__builtin_ctzll(b)] = c->fixed_value[__builtin_ctzll(b)];
    for (uint64_t b = d->bits[at]; b; b &= b - 1) lanes[__builtin_ctzll(b)] = c->one;
}

static void to_floats(Delta *d, uint32_t j)
{
    uint32_t dk = d->g->dk, dv = d->g->dv;
    if (d->head[j].rows) return;
    float *rows = calloc((size_t)dk * dv, sizeof *rows);
    if (!rows) die("out of memory");
    for (uint32_t r = 0; r < dk; r++)
        if (d->valid[(size_t)j * dk + r]) expand_row(d, j, r, rows + (size_t)r * dv);
    d->head[j].rows = rows;
}

/* Whether `v` in a lane that is not fixed fits the bit code; the first non-zero value sets the code's `one`. */
static bool fits_code(ValueClass *c, float v)
{
    if (v == 0) return true;
    if (c->one == 0 && v > 0) {
        c->one = v;
        c->q = 0; /* the norm's factor was worked out without it */
    }
    return v == c->one;
}

void delta_get(const Delta *d, uint32_t head, uint32_t row, float *lanes) { expand_row(d, head, row, lanes); }

/* The row as a bit-coded word; false when it is none. */
static bool encode_row(const Delta *d, ValueClass *c, const float *lanes, uint64_t *bits, bool *written)
{
    *bits = 0;
    *written = false;
    for (uint32_t i = 0; i < d->g->dv; i++) *written |= lanes[i] != 0;
    for (uint32_t i = 0; *written && i < d->g->dv; i++) {
        if (c->fixed >> i & 1) {
            if (lanes[i] != c->fixed_value[i]) return false;
        } else if (!fits_code(c, lanes[i])) return false;
        else *bits |= (uint64_t)(lanes[i] != 0) << i;
    }
    return true;
}

static void note_idle(Delta *d, uint32_t head)
{
    for (uint32_t i = 0; i < d->idle.n; i++)
        if (d->idle.data[i] == head) return;
    vec_push(&d->idle, head);
}

void delta_set(Delta *d, uint32_t head, uint32_t row, const float *lanes)
{
    size_t at = (size_t)head * d->g->dk + row;
    uint64_t bits;
    bool written = true;
    if (!d->head[head].rows && d->head[head].value->bits && encode_row(d, d->head[head].value, lanes, &bits, &written)) d->bits[at] = bits;
    else {
        to_floats(d, head);
        memcpy(d->head[head].rows + (size_t)row * d->g->dv, lanes, d->g->dv * sizeof *lanes);
    }
    d->valid[at] = written;
    if (written && d->head[head].value->n == 0) note_idle(d, head);
}

/* ---- one token: keys and queries ---- */
static void snapshot(Delta *d, const Stream *s)
{
    uint32_t taps = d->g->taps;
    if (!d->nsnap) return;
    Stream oldest = d->snap[taps - 1];
    memmove(d->snap + 1, d->snap, (taps - 1) * sizeof *d->snap);
    d->snap[0] = oldest; /* the arrays are shared with the copy below */
    for (uint32_t i = 0; i < d->nsnap; i++) oldest.x[i] = s->x[d->snap_channel[i]];
    memset(oldest.dirty, 1, oldest.words * CHUNKS);
    stream_settle(&oldest);
}

/* A channel with several taps, after the convolution. */
static float convolve(const Delta *d, const General *c)
{
    float sum = 0;
    for (uint32_t j = 0; j < d->g->taps; j++) {
        uint32_t back = d->g->taps - 1 - j;
        if (c->w[j] == 0 || d->pos < back) continue;
        sum += c->w[j] * cast(d->bf16, form_value(&d->raw, c->form, d->snap[back].x));
    }
    return sum;
}

static float channel_value(const Delta *d, const Part *p, uint32_t code, const Stream *s)
{
    uint32_t kind = CODE_KIND(code), i = CODE_INDEX(code);
    float v = kind == GENERAL ? convolve(d, &d->general.data[i])
              : kind == 0     ? form_value(&p->forms[0], i, s->x)
              : d->pos < kind ? 0
                              : form_value(&p->forms[kind], i, d->snap[kind].x);
    return cast(d->bf16, siluf(cast(d->bf16, v)));
}

static void add_hot(const Delta *d, HotLists *h, uint32_t channel, float v)
{
    uint32_t kh = channel / d->g->dk, n = h->n[kh]++;
    Hot *list = h->hot + (size_t)kh * d->g->dk, hot = {channel % d->g->dk, v};
    if (n == 0) h->used[h->nused++] = kh;
    for (; n > 0 && list[n - 1].row > hot.row; n--) list[n] = list[n - 1];
    list[n] = hot;
}

static void normalise(const Delta *d, HotLists *h, bool query)
{
    for (uint32_t u = 0; u < h->nused; u++) {
        uint32_t n = h->n[h->used[u]];
        Hot *list = h->hot + (size_t)h->used[u] * d->g->dk;
        float sum = 0;
        for (uint32_t i = 0; i < n; i++) sum += list[i].v * list[i].v;
        float r = rsqrtf(sum + L2_EPS);
        for (uint32_t i = 0; i < n; i++) list[i].v = query ? list[i].v * r / d->scale : list[i].v * r;
    }
}

static void find_hot(Delta *d, Part *p, HotLists *h, Stream *s, bool query)
{
    for (uint32_t u = 0; u < h->nused; u++) h->n[h->used[u]] = 0;
    h->nused = 0;
    for (uint32_t b = 0; b < d->g->taps; b++) {
        Gates *g = &p->gates[b];
        if (g->n == 0 || d->pos < b) continue;
        uint32_t n = gates_eval(g, b ? &d->snap[b] : s);
        for (uint32_t i = 0; i < n; i++) {
            float v = cast(d->bf16, siluf(cast(d->bf16, g->value[i])));
            for (uint32_t k = p->rows[b].start[g->on[i]]; v != 0 && k < p->rows[b].start[g->on[i] + 1]; k++) add_hot(d, h, p->rows[b].item[k], v);
        }
    }
    for (uint32_t i = 0; i < p->general.n; i++) {
        float v = channel_value(d, p, p->code[p->general.data[i]], s);
        if (v != 0) add_hot(d, h, p->general.data[i], v);
    }
    normalise(d, h, query);
}

/* ---- one token: writes ---- */
static void decay_heads(Delta *d, const Stream *s)
{
    uint32_t dk = d->g->dk, dv = d->g->dv;
    for (uint32_t i = 0; i < d->decay.n; i++) {
        Decay *y = &d->decay.data[i];
        float *rows = d->head[y->head].rows, f = y->factor;
        if (y->form != NONE) f = expf(-expf(d->a_log[y->head]) * softplusf(cast(d->bf16, form_value(&d->a, y->form, s->x)) + d->dt_bias[y->head]));
        for (uint32_t r = 0; f != 1.0f && r < dk; r++) {
            if (!d->valid[(size_t)y->head * dk + r]) continue;
            for (uint32_t k = 0; k < dv; k++) rows[(size_t)r * dv + k] *= f;
            if (f == 0) d->valid[(size_t)y->head * dk + r] = 0;
        }
    }
}

/* The value of lane i of the class's list. */
static float class_value(const Delta *d, const ValueClass *c, uint32_t i, const Stream *s)
{
    uint32_t at = c->plain[i];
    if (at == NONE || s->odd[at >> 6] >> (at & 63) & 1) return channel_value(d, &d->part[PART_V], c->code[i], s);
    return s->live[at >> 6] >> (at & 63) & 1 ? c->plain_value[i] : 0;
}

/* A bit-coded row; false when a value is outside the code. */
static bool write_bits(Delta *d, uint32_t j, uint32_t row, const Stream *s)
{
    ValueClass *c = d->head[j].value;
    uint64_t bits = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->fixed >> c->lane[i] & 1) continue;
        float v = class_value(d, c, i, s);
        if (!fits_code(c, v)) return false;
        bits |= (uint64_t)(v != 0) << c->lane[i];
    }
    d->bits[(size_t)j * d->g->dk + row] = bits;
    d->valid[(size_t)j * d->g->dk + row] = 1;
    return true;
}

/* The delta rule on lists: read at the key, then S += k d^T. */
static void write_floats(Delta *d, uint32_t j, const Hot *k, uint32_t n, float beta, const Stream *s)
{
    uint32_t dv = d->g->dv;
    const ValueClass *c = d->head[j].value;
    float *rows = d->head[j].rows;
    memset(d->v, 0, dv * sizeof *d->v);
    memset(d->r, 0, dv * sizeof *d->r);
    for (uint32_t i = 0; i < c->n; i++) d->v[c->lane[i]] = channel_value(d, &d->part[PART_V], c->code[i], s);
    for (uint32_t e = 0; e < n; e++)
        for (uint32_t i = 0; i < dv; i++) d->r[i] += rows[(size_t)k[e].row * dv + i] * k[e].v;
    for (uint32_t i = 0; i < dv; i++) d->v[i] = (d->v[i] - d->r[i]) * beta;
    for (uint32_t e = 0; e < n; e++) {
        for (uint32_t i = 0; i < dv; i++) rows[(size_t)k[e].row * dv + i] += k[e].v * d->v[i];
        d->valid[(size_t)j * d->g->dk + k[e].row] = 1;
    }
}

static void write_head(Delta *d, uint32_t j, float beta, const Stream *s)
{
    uint32_t kh = j / d->share, n = d->key.n[kh];
    const Hot *k = d->key.hot + (size_t)kh * d->g->dk;
    if (n == 0) return;
    if (d->head[j].value->bits && !d->head[j].rows && n == 1 && k->v == 1.0f && beta == 1.0f && write_bits(d, j, k->row, s)) return;
    to_floats(d, j);
    write_floats(d, j, k, n, beta, s);
}

static void write_heads(Delta *d, uint32_t nbeta, const Stream *s)
{
    for (uint32_t i = 0; i < nbeta; i++) {
        float beta = cast(d->bf16, sigmoidf(cast(d->bf16, d->b.value[i])));
        uint32_t form = d->b.on[i];
        for (uint32_t k = d->b_heads.start[form]; beta != 0 && k < d->b_heads.start[form + 1]; k++) write_head(d, d->b_heads.item[k], beta, s);
    }
    for (uint32_t i = 0; i < d->idle.n; i++) {
        uint32_t j = d->idle.data[i];
        float beta = cast(d->bf16, sigmoidf(cast(d->bf16, form_value(&d->b_forms, d->b_form[j], s->x))));
        if (beta != 0) write_head(d, j, beta, s);
    }
}

/* ---- one token: reads ---- */
/* The norm's factor for a bit-coded row read with query entry q, when it is the same whatever the bits are: sums of
 * squares grow with every bit, so it is enough that no bits and all bits give the same. 0: it is not. */
static float code_factor(const Delta *d, ValueClass *c, float q)
{
    if (c->q == q) return c->factor;
    float none = 0, all = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        bool fixed = c->fixed >> c->lane[i] & 1;
        float o = cast(d->bf16, (fixed ? c->fixed_value[c->lane[i]] : c->one) * q);
        all += o * o;
        none += fixed ? o * o : 0;
    }
    c->q = q;
    c->factor = none == all ? rsqrtf(all / (float)d->g->dv + d->g->eps) : 0;
    return c->factor;
}

static float gated(const Delta *d, uint32_t lane, float normed, float gate)
{
    return cast(d->bf16, cast(d->bf16, d->norm[lane] * cast(d->bf16, normed)) * gate);
}

static void put_out(const Delta *d, uint32_t j, uint32_t lane, float y, Stream *s)
{
    const OutClass *o = d->head[j].out;
    (void)d;
    for (uint32_t k = o->start[lane]; y != 0 && k < o->start[lane + 1]; k++) stream_put(s, o->e[k].at, o->e[k].w * y);
}

static void read_floats(Delta *d, const GateMember *z, float gate, const Hot *q, uint32_t n, Stream *s)
{
    uint32_t dv = d->g->dv;
    float sum = 0;
    memset(d->o, 0, dv * sizeof *d->o);
    for (uint32_t e = 0; e < n; e++) {
        expand_row(d, z->head, q[e].row, d->r);
        for (uint32_t i = 0; i < dv; i++) d->o[i] += d->r[i] * q[e].v;
    }
    for (uint32_t i = 0; i < dv; i++) {
        d->o[i] = cast(d->bf16, d->o[i]);
        sum += d->o[i] * d->o[i];
    }
    float r = rsqrtf(sum / (float)dv + d->g->eps);
    for (uint64_t b = z->mask; b; b &= b - 1) {
        uint32_t lane = z->word * 64 + (uint32_t)__builtin_ctzll(b);
        if (d->o[lane] != 0) put_out(d, z->head, lane, gated(d, lane, d->o[lane] * r, gate), s);
    }
}

static void read_head(Delta *d, const GateMember *z, float gate, Stream *s)
{
    uint32_t kh = z->head / d->share, n = d->query.n[kh];
    const Hot *q = d->query.hot + (size_t)kh * d->g->dk;
    ValueClass *c = d->head[z->head].value;
    if (n == 0 || (!c->bits && !d->head[z->head].rows)) return;
    float r = d->head[z->head].rows || n > 1 || z->mask & c->fixed ? 0 : code_factor(d, c, q->v);
    if (r == 0) {
        read_floats(d, z, gate, q, n, s);
        return;
    }
    float normed = cast(d->bf16, c->one * q->v) * r;
    for (uint64_t b = d->bits[(size_t)z->head * d->g->dk + q->row] & z->mask; b; b &= b - 1) {
        uint32_t lane = (uint32_t)__builtin_ctzll(b);
        put_out(d, z->head, lane, gated(d, lane, normed, gate), s);
    }
}

void delta_step(Delta *d, Stream *s)
{
    if (d->nothing && !d->idle.n) return;
    snapshot(d, s);
    uint32_t nbeta = gates_eval(&d->b, s), ngate = gates_eval(&d->z, s);
    find_hot(d, &d->part[PART_K], &d->key, s, false);
    find_hot(d, &d->part[PART_Q], &d->query, s, true);
    decay_heads(d, s);
    write_heads(d, nbeta, s);
    for (uint32_t i = 0; i < ngate; i++) {
        float gate = siluf(cast(d->bf16, d->z.value[i]));
        uint32_t form = d->z.on[i];
        for (uint32_t k = d->z_start[form]; gate != 0 && k < d->z_start[form + 1]; k++) read_head(d, &d->z_member[k], gate, s);
    }
    d->pos++;
    stream_settle(s);
}

/* ---- state files ---- */
void delta_recall(const Delta *d, uint32_t back, float *raw)
{
    const uint32_t keys = d->g->nk * d->g->dk, first[PARTS] = {0, keys, 2 * keys};
    memset(raw, 0, d->g->conv_dim * sizeof *raw);
    for (uint32_t i = 0; d->nsnap && d->pos > back && i < d->conv->n; i++) {
        uint32_t c = (uint32_t)d->conv->row[i], part = c < keys ? 0 : c < 2 * keys ? 1 : 2, code = d->part[part].code[c - first[part]];
        if (d->conv->value[i] == 0 || (uint32_t)d->conv->col[i] == d->g->taps - 1 || code == NONE) continue;
        float v = CODE_KIND(code) == GENERAL ? form_value(&d->raw, d->general.data[CODE_INDEX(code)].form, d->snap[back].x)
                                             : form_value(&d->part[part].forms[CODE_KIND(code)], CODE_INDEX(code), d->snap[back].x) / d->conv->value[i];
        raw[c] = cast(d->bf16, v);
    }
}

void delta_prime(Delta *d, float *x)
{
    snapshot(d, &(Stream){.x = x});
    d->pos++;
}
