/* slice_delta.c: a Gated DeltaNet layer over planes: which heads each lane writes and reads, at which rows, under which conditions.
 *
 * What is taken: convolutions of one tap, a power of two; no decay; one-hot keys and queries whose rows are one family; beta exactly 0 or 1; values
 * that are bits (0 or `one`) or small counts of a unit; pilots that fix the norm's factor. Then a write is a plain overwrite of a cell, and a
 * read gives the cell's bits. One more thing is known: a head whose beta may also be a small power of two while one value is so large that their
 * product is a whole number of units counts (lowering: "additive write"); its field is added to. */
#include "slice_priv.h"
#include <stdlib.h>

enum { NONE = 0xffffffff };

static bool refuse(const char **why, const char *text)
{
    *why = text;
    return false;
}

/* ---- opening: channels ---- */
static bool power_of_two(float w)
{
    int e;
    return w != 0 && fabsf(frexpf(w, &e)) == 0.5f;
}

static bool add_channel(SliceDelta *d, int part, uint32_t c, uint32_t row, const Matrix *qkv, const Matrix *conv, const Basis *basis, const char **why)
{
    uint32_t first = qkv->start[row], n = qkv->start[row + 1] - first, taps = 0, back = 0;
    float w = 0;
    d->code[part][c] = NONE;
    for (uint32_t i = conv->start[row]; i < conv->start[row + 1]; i++)
        if (conv->value[i] != 0) taps++, back = d->g->taps - 1 - (uint32_t)conv->col[i], w = conv->value[i];
    if (taps == 0 || n == 0) return true;
    if (taps > 1 || !power_of_two(w)) return refuse(why, "a convolution of several taps");
    uint32_t form = forms_add(&d->form[part][back], basis, qkv->col + first, qkv->value + first, n, w);
    const Forms *f = &d->form[part][back];
    if (part != PART_V && f->start[form] == f->start[form + 1] && f->bias[form] <= OFF_BELOW) return true;
    d->code[part][c] = back << 26 | form;
    return true;
}

static bool read_channels(SliceDelta *d, const Tensor *t, const Basis *basis, const char **why)
{
    const Geometry *g = d->g;
    const uint32_t size[PARTS] = {g->nk * g->dk, g->nk * g->dk, g->nv * g->dv};
    Matrix qkv, conv;
    if (t[T_CONV].fill != 0 || t[T_QKV].fill != 0) return refuse(why, "a full projection");
    matrix_make(&qkv, d->pool, &t[T_QKV], false, NULL);
    matrix_make(&conv, d->pool, &t[T_CONV], false, NULL);
    for (uint32_t part = 0, row = 0; part < PARTS; part++) {
        d->code[part] = pool_array(d->pool, size[part], sizeof *d->code[part]);
        for (uint32_t c = 0; c < size[part]; c++, row++)
            if (!add_channel(d, (int)part, c, row, &qkv, &conv, basis, why)) return false;
    }
    return true;
}

static bool read_rows(SliceDelta *d, const Tensor *t, const Basis *basis, Forms *f, uint32_t *of, const char **why)
{
    Matrix m;
    if (t->fill != 0) return refuse(why, "a full projection");
    matrix_make(&m, d->pool, t, false, NULL);
    for (uint32_t r = 0; r < t->rows; r++) {
        uint32_t first = m.start[r], n = m.start[r + 1] - first;
        of[r] = n ? forms_add(f, basis, m.col + first, m.value + first, n, 1) : NONE;
        if (n && f->start[of[r]] == f->start[of[r] + 1] && f->bias[of[r]] <= OFF_BELOW) of[r] = NONE;
    }
    return true;
}

static bool no_decay(const SliceDelta *d, const Tensor *t)
{
    const float *a_log = tensor_vector(d->pool, &t[T_A_LOG]), *dt = tensor_vector(d->pool, &t[T_DT_BIAS]);
    if (t[T_A].n || t[T_A].fill != 0) return false;
    for (uint32_t j = 0; j < d->g->nv; j++)
        if (expf(-expf(a_log[j]) * softplusf(dt[j])) != 1.0f) return false;
    return true;
}

/* out_proj by column. */
static bool read_out(SliceDelta *d, const Tensor *t, const char **why)
{
    if (t->fill != 0) return refuse(why, "a full projection");
    uint32_t *at = pool_array(d->pool, (size_t)t->cols + 2, sizeof *at);
    d->out_start = at++;
    d->out = pool_array(d->pool, t->n, sizeof *d->out);
    for (uint32_t i = 0; i < t->n; i++) at[t->col[i] + 1]++;
    for (uint32_t k = 0; k < t->cols; k++) at[k + 1] += at[k];
    for (uint32_t i = 0; i < t->n; i++) d->out[at[t->col[i]]++] = (Entry){(uint32_t)t->row[i], t->value[i]};
    return true;
}

/* ---- opening: rows ---- */
/* The rows' forms as one family whose table has rows. */
static bool one_family(SliceDelta *d, const Forms *f, const uint32_t *form, const uint32_t *row, uint32_t n, PlaneFamily *out)
{
    bool *want = calloc(f->n, sizeof *want), twice = false;
    uint32_t *row_of = xrealloc(NULL, f->n * sizeof *row_of);
    PlaneFamilies y = {0};
    for (uint32_t i = 0; i < n; i++) {
        twice |= want[form[i]];
        want[form[i]] = true;
        row_of[form[i]] = row[i];
    }
    bool one = !twice && plane_families(&y, d->pool, f, want) && y.n == 1, looked_up = !one && plane_lookup(out, d->pool, f, form, n);
    if (one) *out = y.family[0];
    for (uint32_t i = 0; (one || looked_up) && i < 1u << out->nbits; i++)
        if (out->table[i] != NONE) out->table[i] = one ? row_of[out->table[i]] : row[out->table[i]];
    free(want);
    free(row_of);
    return one || looked_up;
}

/* The family of a key head's rows, which must be one; NONE when it has none. */
static bool row_family(SliceDelta *d, int part, uint32_t kh, uint32_t *out, const char **why)
{
    const uint32_t dk = d->g->dk, *code = d->code[part] + (size_t)kh * dk;
    uint32_t tap = NONE, n = 0, *form = pool_array(d->pool, dk, sizeof *form), *row = pool_array(d->pool, dk, sizeof *row);
    PlaneFamily y;
    *out = NONE;
    for (uint32_t r = 0; r < dk; r++) {
        if (code[r] == NONE) continue;
        if (tap != NONE && CODE_TAP(code[r]) != tap) return refuse(why, "keys from different tokens");
        tap = CODE_TAP(code[r]);
        form[n] = CODE_FORM(code[r]), row[n++] = r;
    }
    if (tap == NONE) return true;
    if (!one_family(d, &d->form[part][tap], form, row, n, &y)) return refuse(why, "keys that are not one-hot");
    *out = vec_push(&d->rows, ((RowFamily){tap, y, NONE}));
    return true;
}

static bool find_rows(SliceDelta *d, const char **why)
{
    uint32_t share = d->g->nv / d->g->nk;
    for (uint32_t kh = 0; kh < d->g->nk; kh++) {
        uint32_t key, query;
        if (!row_family(d, PART_K, kh, &key, why) || !row_family(d, PART_Q, kh, &query, why)) return false;
        for (uint32_t j = kh * share; j < (kh + 1) * share; j++) d->head[j].key = key, d->head[j].query = query;
    }
    return true;
}

/* ---- opening: cells ---- */
static bool constant_lane(const SliceDelta *d, uint32_t code, float *v)
{
    const Forms *f = &d->form[PART_V][CODE_TAP(code)];
    uint32_t i = CODE_FORM(code);
    *v = siluf(f->bias[i]);
    return f->start[i] == f->start[i + 1];
}

/* What the state map says of a copy's lanes in this layer. */
static void note_cells(SliceDelta *d, uint32_t layer, const Copy *copy, uint32_t width, bool asked)
{
    for (const Piece *p = copy->piece; p < copy->piece + copy->n; p++)
        for (uint32_t r = 0; p->layer == layer && r < p->nrows; r += p->group_rows)
            for (uint32_t i = 0; i < width + p->npilot; i++) {
                const Cell *c = i < width ? &p->bit[i] : &p->pilot[i - width];
                if (c->lane < 0) continue;
                size_t at = (size_t)(p->head + r / p->group_rows * p->group_heads + (uint32_t)c->head) * d->g->dv + (uint32_t)c->lane;
                if (i < width) d->one[at] = p->one, d->asked[at] |= asked;
                else d->pilot[at] = p->pilot_value[i - width];
            }
}

/* Who looks at the state asks for the first copy of what the circuit names. */
static void find_cells(SliceDelta *d, uint32_t layer)
{
    const Model *m = d->m;
    d->one = pool_array(d->pool, (size_t)d->g->nv * d->g->dv, sizeof *d->one);
    d->pilot = pool_array(d->pool, (size_t)d->g->nv * d->g->dv, sizeof *d->pilot);
    d->asked = pool_array(d->pool, (size_t)d->g->nv * d->g->dv, sizeof *d->asked);
    for (uint32_t i = 0; i < m->nstates; i++)
        for (uint32_t c = 0; c < m->state[i].ncopies; c++) note_cells(d, layer, &m->state[i].copy[c], m->state[i].width, c == 0 && !strchr(m->state[i].name, '.'));
}

static bool lane_read(const SliceDelta *d, uint32_t j, size_t at)
{
    return d->head[j].query != NONE && d->z_of[at] != NONE && d->out_start[at] != d->out_start[at + 1];
}

/* The lane is stored: it may change (a cell that is always written the same may begin otherwise), and it is read and goes somewhere, or is asked for. */
static bool stored(const SliceDelta *d, uint32_t j, uint32_t lane)
{
    size_t at = (size_t)j * d->g->dv + lane;
    float v;
    uint32_t code = d->code[PART_V][at];
    if ((d->head[j].key == NONE && d->head[j].query == NONE) || (d->one[at] == 0 && (code == NONE || constant_lane(d, code, &v)))) return false;
    return d->asked[at] || lane_read(d, j, at);
}

static Lane make_lane(const SliceDelta *d, uint32_t j, uint32_t lane)
{
    size_t at = (size_t)j * d->g->dv + lane;
    Lane l = {.lane = lane, .code = d->code[PART_V][at], .one = d->one[at]};
    if (l.code == NONE) return l;
    const Forms *f = &d->form[PART_V][CODE_TAP(l.code)];
    for (uint32_t e = f->start[CODE_FORM(l.code)]; e < f->start[CODE_FORM(l.code) + 1]; e++)
        if (fabsf(f->e.data[e].w) >= HUGE_WEIGHT) {
            l.counts = true;
            l.count_channel = f->e.data[e].at;
            l.count_weight = f->e.data[e].w;
        }
    return l;
}

static bool is_written(const SliceDelta *d, uint32_t j) { return d->head[j].key != NONE && d->b_of[j] != NONE; }

/* What the lane has in every row: those that are written, or else those that a machine begins with. */
static float fixed_lane(const SliceDelta *d, uint32_t j, uint32_t lane)
{
    size_t at = (size_t)j * d->g->dv + lane;
    uint32_t code = d->code[PART_V][at];
    float v = 0;
    if (!is_written(d, j)) return d->pilot[at];
    return code != NONE && !stored(d, j, lane) && constant_lane(d, code, &v) ? v : 0;
}

static bool same_class(const SliceDelta *d, const DeltaClass *c, uint32_t j)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->g->dv; i++) {
        if (c->fixed[i] != fixed_lane(d, j, i)) return false;
        if (!stored(d, j, i)) continue;
        size_t at = (size_t)j * d->g->dv + i;
        if (n == c->nlanes || c->lane[n].lane != i || c->lane[n].code != d->code[PART_V][at] || c->lane[n].one != d->one[at]) return false;
        n++;
    }
    return n == c->nlanes;
}

static uint32_t class_of(SliceDelta *d, uint32_t j)
{
    for (uint32_t i = d->classes.n; i-- > 0;)
        if (same_class(d, d->classes.data[i], j)) return i;
    DeltaClass *c = pool_alloc(d->pool, sizeof *c);
    c->lane = pool_array(d->pool, d->g->dv, sizeof *c->lane);
    c->fixed = pool_array(d->pool, d->g->dv, sizeof *c->fixed);
    for (uint32_t i = 0; i < d->g->dv; i++) {
        c->fixed[i] = fixed_lane(d, j, i);
        c->any_fixed |= c->fixed[i] != 0;
        if (stored(d, j, i)) c->lane[c->nlanes++] = make_lane(d, j, i);
    }
    return vec_push(&d->classes, c);
}

static void head_out(SliceDelta *d, uint32_t j)
{
    DeltaHead *h = &d->head[j];
    const DeltaClass *c = d->classes.data[h->class];
    uint32_t n = 0;
    h->out_start = pool_array(d->pool, c->nlanes + 1, sizeof *h->out_start);
    for (uint32_t i = 0; i < c->nlanes; i++) n += d->out_start[j * d->g->dv + c->lane[i].lane + 1] - d->out_start[j * d->g->dv + c->lane[i].lane];
    h->out = pool_array(d->pool, n, sizeof *h->out);
    for (uint32_t i = n = 0; i < c->nlanes; i++) {
        uint32_t col = j * d->g->dv + c->lane[i].lane;
        h->out_start[i] = n;
        for (uint32_t e = d->out_start[col]; e < d->out_start[col + 1]; e++) h->out[n++] = d->out[e];
    }
    h->out_start[c->nlanes] = n;
}

static bool make_heads(SliceDelta *d, const char **why)
{
    for (uint32_t j = 0; j < d->g->nv; j++) {
        DeltaHead *h = &d->head[j];
        bool read = false;
        for (uint32_t i = 0; i < d->g->dv; i++) {
            size_t at = (size_t)j * d->g->dv + i;
            bool kept = stored(d, j, i);
            h->kept |= kept;
            read |= kept && lane_read(d, j, at);
            if (fixed_lane(d, j, i) != 0 && lane_read(d, j, at)) return refuse(why, "a pilot is read");
        }
        h->written = h->kept && is_written(d, j);
        if (!h->kept) continue;
        h->class = class_of(d, j);
        if (read && !d->classes.data[h->class]->any_fixed) return refuse(why, "rows without a pilot");
        head_out(d, j);
    }
    return true;
}

bool slice_counts(const SliceDelta *d, uint32_t j)
{
    const DeltaClass *c = d->classes.data[d->head[j].class];
    for (uint32_t i = 0; i < c->nlanes; i++)
        if (c->lane[i].counts) return true;
    return false;
}

static bool find_families(SliceDelta *d, const char **why)
{
    bool *beta = calloc(d->b.n + 1, sizeof *beta), *gate = calloc(d->z.n + 1, sizeof *gate);
    for (uint32_t j = 0; j < d->g->nv; j++) {
        if (d->head[j].written && slice_counts(d, j)) vec_push(&d->counting, j);
        else if (d->head[j].written) beta[d->b_of[j]] = true;
        for (uint32_t i = 0; d->head[j].kept && i < d->g->dv; i++)
            if (stored(d, j, i) && lane_read(d, j, (size_t)j * d->g->dv + i)) gate[d->z_of[(size_t)j * d->g->dv + i]] = true;
    }
    bool ok = plane_families(&d->beta, d->pool, &d->b, beta) && plane_families(&d->gate, d->pool, &d->z, gate);
    free(beta);
    free(gate);
    return ok || refuse(why, "too many conditions");
}

SliceDelta *slice_delta_make(const Model *m, uint32_t layer, const Basis *basis, Pool *p, uint32_t *bytes, const char **why)
{
    const Tensor *t = m->layer[layer].t;
    const Geometry *g = &m->geo;
    SliceDelta *d = pool_alloc(p, sizeof *d);
    d->m = m, d->g = g, d->pool = p, d->bytes = bytes;
    for (int i = 0; i < PARTS; i++)
        for (uint32_t b = 0; b < MAX_TAPS; b++) forms_init(&d->form[i][b]);
    forms_init(&d->b);
    forms_init(&d->z);
    d->b_of = pool_array(p, g->nv, sizeof *d->b_of);
    d->z_of = pool_array(p, (size_t)g->nv * g->dv, sizeof *d->z_of);
    d->head = pool_array(p, g->nv, sizeof *d->head);
    d->norm = tensor_vector(p, &t[T_NORM]);
    find_cells(d, layer);
    bool ok = read_channels(d, t, basis, why) && read_rows(d, &t[T_B], basis, &d->b, d->b_of, why) && read_rows(d, &t[T_Z], basis, &d->z, d->z_of, why) &&
              (no_decay(d, t) || refuse(why, "a state that decays")) && read_out(d, &t[T_OUT], why) && find_rows(d, why) && make_heads(d, why) &&
              find_families(d, why);
    if (ok) return d;
    slice_delta_close(d);
    return NULL;
}

void slice_delta_close(SliceDelta *d)
{
    if (!d) return;
    for (int i = 0; i < PARTS; i++)
        for (uint32_t b = 0; b < MAX_TAPS; b++) forms_free(&d->form[i][b]);
    forms_free(&d->b);
    forms_free(&d->z);
    free(d->rows.data);
    free(d->classes.data);
    free(d->counting.data);
    free(d->kinds.data);
    free(d->bundles.data);
    free(d->groups.data);
    free(d->in.data);
    free(d->outw.data);
}

static void note_form(const Forms *f, uint32_t i, bool *used)
{
    for (uint32_t e = f->start[i]; e < f->start[i + 1]; e++) used[f->e.data[e].at] = true;
}

static void note_family(const PlaneFamily *y, bool *used)
{
    for (uint32_t i = 0; i < y->ncommon; i++) used[y->common[i].at] = true;
    for (uint32_t b = 0; b < y->nbits; b++)
        for (uint32_t i = 0; i < y->bit[b].n; i++) used[y->bit[b].channel[i]] = true;
}

void slice_delta_uses(const SliceDelta *d, bool *now, bool *past)
{
    uint32_t hidden = d->g->hidden;
    for (uint32_t i = 0; i < d->rows.n; i++) note_family(&d->rows.data[i].family, d->rows.data[i].tap ? past + (size_t)d->rows.data[i].tap * hidden : now);
    for (uint32_t i = 0; i < d->beta.n; i++) note_family(&d->beta.family[i], now);
    for (uint32_t i = 0; i < d->gate.n; i++) note_family(&d->gate.family[i], now);
    for (uint32_t i = 0; i < d->counting.n; i++) note_form(&d->b, d->b_of[d->counting.data[i]], now);
    for (uint32_t i = 0; i < d->classes.n; i++)
        for (uint32_t k = 0; k < d->classes.data[i]->nlanes; k++) {
            uint32_t code = d->classes.data[i]->lane[k].code, tap = CODE_TAP(code);
            if (code != NONE) note_form(&d->form[PART_V][tap], CODE_FORM(code), tap ? past + (size_t)tap * hidden : now);
        }
    for (uint32_t j = 0; j < d->g->nv; j++)
        for (uint32_t e = 0; d->head[j].kept && e < d->head[j].out_start[d->classes.data[d->head[j].class]->nlanes]; e++) now[d->head[j].out[e].at] = true;
}

