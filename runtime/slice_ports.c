/* slice_ports.c: a Gated DeltaNet layer over planes, compiled: the planes of addresses, conditions and values, packed into words of each lane; where
 * cells lie in a machine's state; which words are written and read under which number; what was read as planes again, added to the channels.
 * Heads of one row go another way (slice_planes.c). */
#include "slice_priv.h"
#include <stdlib.h>

#define L2_EPS 1e-6f
enum { NONE = 0xffffffff };

static DeltaClass *class_at(const SliceDelta *d, uint32_t j) { return d->classes.data[d->head[j].class]; }
static uint32_t gate_at(const SliceDelta *d, uint32_t j) { return d->z_of[(size_t)j * d->g->dv + class_at(d, j)->lane[0].lane]; }
static uint32_t select_at(const SliceDelta *d, uint32_t rows) { return rows == NONE ? NONE : d->rows.data[rows].select; }

/* ---- compilation: packed words ---- */
static uint16_t slot_of(Block *k, Ref r)
{
    const Node *x = &k->g->node.data[r >> 1];
    if (x->op == NODE_LEAF && !(r & 1)) return (uint16_t)x->a;
    uint16_t slot = slice_new_slot(k->s);
    vec_push(&k->goal, ((BitGoal){r, slot}));
    return slot;
}

static PackWord *word_for(SliceDelta *d, bool out, uint32_t n, uint32_t *index)
{
    for (uint32_t i = 0; i < (out ? d->outw.n : d->in.n); i++) {
        PackWord *w = out ? &d->outw.data[i] : &d->in.data[i];
        *index = i;
        if (w->n + n <= 64) return w;
    }
    *index = out ? vec_push(&d->outw, ((PackWord){0})) : vec_push(&d->in, ((PackWord){0}));
    return out ? &d->outw.data[*index] : &d->in.data[*index];
}

static Field pack(SliceDelta *d, Block *k, const Ref *bit, uint32_t n)
{
    uint32_t index;
    PackWord *w = word_for(d, false, n, &index);
    Field f = {(uint8_t)index, (uint8_t)w->n, (uint8_t)n};
    for (uint32_t i = 0; i < n; i++) w->slot[w->n + i] = slot_of(k, bit[i]);
    w->n += n;
    return f;
}

/* What a family says in this block. */
static bool find_family(Block *k, const PlaneFamily *y, uint32_t tap, FamilyUse use, FamilyRefs *r)
{
    r->family = y;
    uint32_t before = k->check.n;
    if (!family_planes(k, tap ? slice_past(k, tap) : k->x, y, use, r->bit, &r->on, &r->value)) return false;
    if (tap) r->on = bits_and(k->g, r->on, slice_begun(k, tap));
    for (uint32_t i = before; tap && i < k->check.n; i++) k->check.data[i].ref = bits_and(k->g, k->check.data[i].ref, slice_begun(k, tap));
    return true;
}

/* A family as a Select: the condition is the address's top bit. */
static void pack_family(SliceDelta *d, Block *k, const FamilyRefs *r, Select *out)
{
    const PlaneFamily *y = r->family;
    Ref bit[64];
    memcpy(bit, r->bit, y->nbits * sizeof *bit);
    bit[y->nbits] = r->on;
    out->field = pack(d, k, bit, y->nbits + 1);
    size_t half = (size_t)1 << y->nbits;
    out->table = pool_array(k->keep, 2 * half, sizeof *out->table);
    memset(out->table, 0xff, half * sizeof *out->table);
    memcpy(out->table + half, y->table, half * sizeof *out->table);
}

static bool same_family(const RowFamily *a, const RowFamily *b)
{
    const PlaneFamily *x = &a->family, *y = &b->family;
    if (a->tap != b->tap || x->nforms != y->nforms || memcmp(x->bias, y->bias, x->nforms * sizeof *x->bias) || x->nbits != y->nbits || x->ncommon != y->ncommon || memcmp(x->common, y->common, x->ncommon * sizeof *x->common)) return false;
    for (uint32_t i = 0; i < x->nbits; i++)
        if (x->bit[i].n != y->bit[i].n || x->bit[i].w != y->bit[i].w || memcmp(x->bit[i].channel, y->bit[i].channel, x->bit[i].n * sizeof *x->bit[i].channel)) return false;
    return memcmp(x->pattern, y->pattern, x->nforms * sizeof *x->pattern) == 0 && memcmp(x->table, y->table, sizeof *x->table << x->nbits) == 0;
}

/* Whether a head whose state is in memory has these rows. */
static bool rows_in_memory(const SliceDelta *d, uint32_t select)
{
    for (uint32_t j = 0; j < d->g->nv; j++) {
        const DeltaHead *h = &d->head[j];
        if (h->kept && !h->planes && (select_at(d, h->key) == select || select_at(d, h->query) == select)) return true;
    }
    return false;
}

static bool pack_rows(SliceDelta *d, Block *k)
{
    Cells *c = &d->cells;
    c->key = pool_array(k->keep, d->rows.n, sizeof *c->key);
    c->nkey = 0;
    d->row_refs = pool_array(k->keep, d->rows.n, sizeof *d->row_refs);
    for (uint32_t i = 0; i < d->rows.n; i++) {
        RowFamily *r = &d->rows.data[i];
        r->select = NONE;
        for (uint32_t j = 0; j < i && r->select == NONE; j++)
            if (same_family(r, &d->rows.data[j])) r->select = d->rows.data[j].select;
        if (r->select != NONE) continue;
        r->select = c->nkey++;
        if (!find_family(k, &r->family, r->tap, FAMILY_KEY, &d->row_refs[r->select])) return false;
    }
    for (uint32_t i = 0; i < c->nkey; i++)
        if (rows_in_memory(d, i)) pack_family(d, k, &d->row_refs[i], &c->key[i]);
    return true;
}

/* ---- compilation: values ---- */
/* The entries of a value's form without one that counts. */
static uint32_t plain_entries(const SliceDelta *d, const Lane *l, Entry *out)
{
    const Forms *f = &d->form[PART_V][CODE_TAP(l->code)];
    uint32_t n = 0;
    for (uint32_t e = f->start[CODE_FORM(l->code)]; e < f->start[CODE_FORM(l->code) + 1]; e++)
        if (fabsf(f->e.data[e].w) < HUGE_WEIGHT) out[n++] = f->e.data[e];
    return n;
}

static bool lane_table(SliceDelta *d, Block *k, const Lane *l, Table *t)
{
    if (l->code == NONE) return form_table(k, k->x, NULL, 0, 0, t);
    const Forms *f = &d->form[PART_V][CODE_TAP(l->code)];
    uint32_t form = CODE_FORM(l->code), tap = CODE_TAP(l->code);
    Entry *e = xrealloc(NULL, (f->start[form + 1] - f->start[form] + 1) * sizeof *e);
    bool ok = form_table(k, tap ? slice_past(k, tap) : k->x, e, plain_entries(d, l, e), (double)f->bias[form], t);
    free(e);
    if (!ok) k->why = "a value is too wide";
    return ok;
}

/* How far a lane of the class counts, as the state map has it: it may be one more than what is ever written there. */
static int64_t count_most(const SliceDelta *d, const Block *k, const DeltaClass *c, uint32_t lane)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < d->m->nstates; i++)
        for (uint32_t n = 0; n < d->m->state[i].ncopies; n++)
            for (uint32_t e = 0; e < d->m->state[i].copy[n].n; e++) {
                const Piece *p = &d->m->state[i].copy[n].piece[e];
                if (!p->has_count || p->layer != k->layer || p->count.lane != (int32_t)lane || p->count_max <= most) continue;
                for (uint32_t r = 0; r < p->nrows; r += p->group_rows) {
                    const DeltaHead *h = &d->head[p->head + r / p->group_rows * p->group_heads + (uint32_t)p->count.head];
                    if (h->kept && d->classes.data[h->class] == c) most = p->count_max;
                }
            }
    return most;
}

/* The field's width, at least for `most`, and unit, once and for all: cells keep their shape. A value that is 0 or at least two units apart from it (a dead zone) is a bit. */
static bool place_field(Block *k, const Lane *l, const Table *t, double bias, int64_t most, CellField *f)
{
    float one = 0;
    int64_t v;
    for (uint32_t i = 0; i < t->size; i++) {
        float s = siluf((float)t->value[i]);
        if (s > 0 && (one == 0 || s < one)) one = s;
    }
    for (uint32_t i = 0; i < t->size && one > 0; i++) {
        if (!whole((double)(siluf((float)t->value[i]) / one), &v)) k->why = "a value that is no code";
        else if (v > most) most = v;
    }
    f->lane = l->lane;
    f->one = one == 0 ? l->one : one;
    f->bits = bias < 0 || most < 2 ? 1 : bits_width((uint64_t)most);
    f->most = l->counts && f->bits <= 16 ? (uint32_t)most : (uint32_t)mask64(f->bits);
    if (f->bits > 32) k->why = "a value is too wide";
    return !k->why;
}

static bool pack_class(SliceDelta *d, Block *k, DeltaClass *c)
{
    CellClass *cell = &c->cell;
    uint32_t n = 0;
    if (!c->placed) cell->field = pool_array(d->pool, c->nlanes, sizeof *cell->field);
    for (uint32_t i = 0; i < c->nlanes; i++) {
        const Lane *l = &c->lane[i];
        CellField *f = &cell->field[i];
        uint32_t tap = l->code == NONE ? 0 : CODE_TAP(l->code);
        double bias = l->code == NONE ? 0 : (double)d->form[PART_V][tap].bias[CODE_FORM(l->code)];
        Table t;
        if (!lane_table(d, k, l, &t)) return false;
        if (!c->placed && !place_field(k, l, &t, bias, l->counts ? count_most(d, k, c, l->lane) : 0, f)) return false;
        f->shift = n;
        if (n + f->bits > 64) {
            k->why = "a row of more than 64 bits";
            return false;
        }
        uint8_t *plane = xrealloc(NULL, t.size), *bad = xrealloc(NULL, t.size);
        for (uint32_t b = 0; b < f->bits; b++) {
            for (uint32_t e = 0; e < t.size; e++) {
                double v = f->one > 0 ? (double)(siluf((float)t.value[e]) / f->one) : 0;
                int64_t w = -1;
                bad[e] = (f->one == 0 && siluf((float)t.value[e]) != 0) || !whole(v, &w) || w < 0 || w > f->most;
                plane[e] = (uint64_t)w >> b & 1;
            }
            Ref r = table_plane(k, &t, plane);
            c->bit[n++] = tap ? bits_and(k->g, r, slice_begun(k, tap)) : r;
        }
        Ref wrong = table_plane(k, &t, bad);
        if (tap) wrong = bits_and(k->g, wrong, slice_begun(k, tap));
        free(plane);
        free(bad);
        if (wrong != FALSE_REF) vec_push(&k->check, ((CheckNode){wrong, CHECK_FATAL, 0, "a value that is no code"}));
    }
    cell->nfields = c->nlanes;
    cell->bits = n;
    c->placed = true;
    return true;
}

/* What a value of 1 in the lane reads as: the norm's factor is that of the pilots, which the other lanes must not change. */
static bool lane_reads(const SliceDelta *d, Block *k, const DeltaClass *c, const CellField *f, double gate, double *y)
{
    float q = rsqrtf(1 + L2_EPS) / sqrtf((float)d->g->dk), none = 0, all;
    for (uint32_t i = 0; i < d->g->dv; i++) none += c->fixed[i] * q * (c->fixed[i] * q);
    all = none;
    for (uint32_t i = 0; i < c->cell.nfields; i++) {
        float most = c->cell.field[i].one * (float)c->cell.field[i].most * q;
        all += most * most;
    }
    float r = rsqrtf(none / (float)d->g->dv + d->g->eps), s = rsqrtf(all / (float)d->g->dv + d->g->eps);
    if (fabsf(r - s) > 1e-5f * r) {
        k->why = "a norm that depends on the data";
        return false;
    }
    *y = (double)(d->norm[f->lane] * (f->one * q * r)) * (double)siluf((float)gate);
    return true;
}

/* ---- compilation: where cells lie ---- */
static uint32_t rows_of(const SliceDelta *d, uint32_t j, int32_t *at)
{
    uint32_t n = 0;
    memset(at, 0xff, d->g->dk * sizeof *at);
    for (int part = 0; part < 2; part++) {
        uint32_t i = part ? d->head[j].query : d->head[j].key;
        if (i == NONE) continue;
        const PlaneFamily *y = &d->rows.data[i].family;
        for (uint32_t k = 0; k < 1u << y->nbits; k++)
            if (y->table[k] != NONE) at[y->table[k]] = 0;
    }
    for (uint32_t r = 0; r < d->g->dk; r++)
        if (at[r] == 0) at[r] = (int32_t)n++;
    return n;
}


/* A head of one row needs no address: its state is planes (slice_planes.c), unless the lanes are one machine's tokens. */
static void choose_planes(SliceDelta *d, const Block *k)
{
    int32_t *at = xrealloc(NULL, d->g->dk * sizeof *at);
    for (uint32_t j = 0; j < d->g->nv; j++) d->head[j].planes = !slice_shared(k->s) && d->head[j].kept && rows_of(d, j, at) == 1;
    free(at);
}

static bool bundled(const SliceDelta *d, uint32_t i, uint32_t j)
{
    const DeltaHead *x = &d->head[i], *y = &d->head[j];
    return x->planes == y->planes && gate_at(d, i) == gate_at(d, j) && select_at(d, x->key) == select_at(d, y->key) && select_at(d, x->query) == select_at(d, y->query);
}

static uint32_t kind_of(SliceDelta *d, const uint32_t *head, uint32_t n)
{
    for (uint32_t i = 0; i < d->kinds.n; i++) {
        bool same = d->kinds.data[i].n == n;
        for (uint32_t k = 0; same && k < n; k++) same = d->kinds.data[i].class[k] == d->head[head[k]].class;
        if (same) return i;
    }
    uint32_t *class = pool_array(d->pool, n, sizeof *class);
    for (uint32_t k = 0; k < n; k++) class[k] = d->head[head[k]].class;
    return vec_push(&d->kinds, ((BundleKind){.n = n, .class = class}));
}

/* Whether the two bundles are written together, always: copies of one memory for several readers, which keep one word. */
static bool same_contents(const SliceDelta *d, uint32_t x, uint32_t y)
{
    const DeltaBundle *p = &d->bundles.data[x], *q = &d->bundles.data[y];
    const Bundle *b = &d->cells.bundle[x], *c = &d->cells.bundle[y];
    if (p->slot || p->kind != q->kind || b->key != c->key || b->rows != c->rows || memcmp(b->row_at, c->row_at, d->g->dk * sizeof *b->row_at)) return false;
    for (uint32_t i = 0; i < d->kinds.data[p->kind].n; i++)
        if (!d->head[p->head[i]].written || d->b_of[p->head[i]] != d->b_of[q->head[i]]) return false;
    return true;
}

/* The word of `n` heads: their cells side by side. */
static void add_bundle(SliceDelta *d, Block *k, const uint32_t *head, uint32_t n)
{
    Cells *c = &d->cells;
    uint32_t index = c->nbundles++, bits = 0;
    uint32_t *list = pool_array(d->pool, n, sizeof *list);
    Bundle *b = &c->bundle[index];
    memcpy(list, head, n * sizeof *list);
    vec_push(&d->bundles, ((DeltaBundle){.kind = kind_of(d, head, n), .head = list}));
    b->row_at = pool_array(d->pool, d->g->dk, sizeof *b->row_at);
    b->rows = rows_of(d, head[0], b->row_at);
    if (index && !memcmp(b->row_at, b[-1].row_at, d->g->dk * sizeof *b->row_at)) b->row_at = b[-1].row_at; /* one table in the cache, not one for each */
    b->key = select_at(d, d->head[head[0]].key);
    b->query = select_at(d, d->head[head[0]].query);
    for (uint32_t i = 0; i < n; i++) {
        c->head[head[i]] = (CellHead){&class_at(d, head[i])->cell, index, bits};
        bits += class_at(d, head[i])->cell.bits;
    }
    b->bits = bits;
    b->bytes = bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
    for (uint32_t i = 0; i < index; i++)
        if (same_contents(d, i, index)) {
            b->base = c->bundle[i].base;
            return;
        }
    *d->bytes = (*d->bytes + b->bytes - 1) / b->bytes * b->bytes;
    b->base = *d->bytes;
    *d->bytes += b->bytes * b->rows;
    if (d->head[head[0]].planes) slice_plane_slots(d, k, index);
}

static void place_heads(SliceDelta *d, Block *k)
{
    Cells *c = &d->cells;
    c->nheads = d->g->nv;
    c->head = pool_array(d->pool, c->nheads, sizeof *c->head);
    c->bundle = pool_array(d->pool, c->nheads, sizeof *c->bundle);
    uint32_t *list = xrealloc(NULL, c->nheads * sizeof *list);
    for (uint32_t j = 0; j < d->g->nv; j++) {
        if (!d->head[j].kept || c->head[j].cell) continue;
        uint32_t n = 0, bits = 0;
        for (uint32_t i = j; i < d->g->nv; i++) {
            if (!d->head[i].kept || c->head[i].cell || !bundled(d, i, j) || bits + class_at(d, i)->cell.bits > 64) continue;
            /* past 32 bits only heads that are written together: a word that is written in parts is better narrow */
            if (n && bits + class_at(d, i)->cell.bits > 32 && d->b_of[i] != d->b_of[list[0]]) continue;
            list[n++] = i;
            bits += class_at(d, i)->cell.bits;
        }
        add_bundle(d, k, list, n);
    }
    free(list);
}

static bool kind_in_memory(const SliceDelta *d, uint32_t kind)
{
    for (uint32_t i = 0; i < d->bundles.n; i++)
        if (d->bundles.data[i].kind == kind && !d->bundles.data[i].slot) return true;
    return false;
}

static void pack_kinds(SliceDelta *d, Block *k)
{
    for (uint32_t i = 0; i < d->kinds.n; i++) {
        BundleKind *b = &d->kinds.data[i];
        if (!kind_in_memory(d, i)) continue;
        Ref bit[64];
        uint32_t n = 0;
        for (uint32_t h = 0; h < b->n; h++) {
            const DeltaClass *c = d->classes.data[b->class[h]];
            memcpy(bit + n, c->bit, c->cell.bits * sizeof *bit);
            n += c->cell.bits;
        }
        b->value = pack(d, k, bit, n);
    }
}

/* ---- compilation: writes ---- */
/* Adds the write of a head, which joins the last one when that is of the same bundle. */
static void add_write(const SliceDelta *d, CellWrite *list, uint32_t first, uint32_t *n, uint32_t j)
{
    const CellHead *h = &d->cells.head[j];
    uint64_t mask = mask64(h->cell->bits) << h->shift;
    for (uint32_t i = first; i < *n; i++)
        if (d->cells.bundle[list[i].bundle].base == d->cells.bundle[h->bundle].base) {
            list[i].mask |= mask;
            return;
        }
    list[(*n)++] = (CellWrite){h->bundle, mask, d->kinds.data[d->bundles.data[h->bundle].kind].value};
}

/* The writes of each form of beta; heads that count stand after them, a list each. */
static void write_lists(SliceDelta *d, Block *k)
{
    Cells *c = &d->cells;
    uint32_t *key = xrealloc(NULL, d->g->nv * sizeof *key), n = 0, lists = d->b.n + d->counting.n;
    for (uint32_t j = 0; j < d->g->nv; j++) key[j] = d->head[j].written && !d->head[j].planes && !slice_counts(d, j) ? d->b_of[j] : NONE;
    Lists l = lists_make(k->keep, key, d->g->nv, d->b.n);
    free(key);
    c->write_start = pool_array(k->keep, (size_t)lists + 1, sizeof *c->write_start);
    c->write_list = pool_array(k->keep, d->g->nv, sizeof *c->write_list);
    for (uint32_t i = 0; i < lists; i++) {
        uint32_t first = c->write_start[i] = n;
        if (i >= d->b.n) add_write(d, c->write_list, first, &n, d->counting.data[i - d->b.n]);
        for (uint32_t e = i < d->b.n ? l.start[i] : 0; i < d->b.n && e < l.start[i + 1]; e++) add_write(d, c->write_list, first, &n, l.item[e]);
    }
    c->write_start[lists] = n;
}

/* A head that counts: overwritten when beta is 1, added to when it is the small number; both conditions over the planes of beta's form. */
typedef struct {
    Ref all, some;
    float beta; /* the small number */
} CountRefs;

static bool find_counting(SliceDelta *d, Block *k, uint32_t j, CountRefs *r)
{
    const Forms *f = &d->b;
    uint32_t form = d->b_of[j];
    Table t;
    if (!form_table(k, k->x, f->e.data + f->start[form], f->start[form + 1] - f->start[form], (double)f->bias[form], &t)) {
        k->why = "a condition is too wide";
        return false;
    }
    uint8_t *full = pool_array(k->keep, t.size, 1), *tiny = pool_array(k->keep, t.size, 1);
    r->beta = 0;
    for (uint32_t i = 0; i < t.size; i++) {
        double v = t.value[i];
        full[i] = v >= 17;
        tiny[i] = !full[i] && v > (double)OFF_BELOW;
        if (tiny[i] && r->beta != 0 && r->beta != sigmoidf((float)v)) k->why = "a head that counts in two ways";
        if (tiny[i]) r->beta = sigmoidf((float)v);
    }
    r->all = table_plane(k, &t, full), r->some = table_plane(k, &t, tiny);
    return !k->why;
}

/* What is added to a lane when its head counts; 0: nothing. */
static bool count_amount(Block *k, const DeltaClass *class, uint32_t lane, const CountRefs *r, int64_t *amount)
{
    const Lane *l = &class->lane[lane];
    *amount = 0;
    if (!l->counts) return true;
    const Int *x = channel_int(k->x, l->count_channel);
    if (CODE_TAP(l->code) || !is_bit(x) || !whole((double)(r->beta * l->count_weight / class->cell.field[lane].one), amount) || *amount < 1) {
        k->why = "a count that is not one of units";
        return false;
    }
    Ref differs = bits_xor(k->g, r->some, x->n ? x->plane[0] : FALSE_REF);
    if (differs != FALSE_REF) vec_push(&k->check, ((CheckNode){differs, CHECK_FATAL, 0, "a count without its amount"}));
    return true;
}

static bool pack_counting(SliceDelta *d, Block *k, uint32_t nth)
{
    uint32_t j = d->counting.data[nth];
    const DeltaClass *class = class_at(d, j);
    Cells *c = &d->cells;
    CountRefs r;
    if (!find_counting(d, k, j, &r)) return false;
    if (d->head[j].planes) {
        slice_plane_write(d, k, j, r.all);
        for (uint32_t i = 0; i < class->nlanes; i++) {
            int64_t amount;
            if (!count_amount(k, class, i, &r, &amount)) return false;
            if (amount) slice_plane_count(d, k, j, i, r.some, (uint32_t)amount);
        }
        return !k->why;
    }
    Select *w = &c->write[c->nwrite++];
    w->field = pack(d, k, &r.all, 1);
    w->table = pool_array(k->keep, 2, sizeof *w->table);
    w->table[0] = NONE;
    w->table[1] = d->b.n + nth;
    Field when = pack(d, k, &r.some, 1);
    const CellHead *h = &c->head[j];
    for (uint32_t i = 0; i < class->nlanes; i++) {
        int64_t amount;
        if (!count_amount(k, class, i, &r, &amount)) return false;
        if (amount) c->count[c->ncount++] = (CellCount){when, h->bundle, h->shift + class->cell.field[i].shift, class->cell.field[i].bits, (uint32_t)amount};
    }
    return true;
}

static bool form_in(const PlaneFamily *y, uint32_t form)
{
    for (uint32_t t = 0; t < 1u << y->nbits; t++)
        if (y->table[t] == form) return true;
    return false;
}

/* A family of beta's forms: a Select for the heads in memory, conditions for those of planes. */
static bool pack_beta(SliceDelta *d, Block *k, const PlaneFamily *y)
{
    FamilyRefs r;
    bool memory = false;
    if (!find_family(k, y, 0, FAMILY_BETA, &r)) return false;
    for (uint32_t j = 0; j < d->g->nv; j++) {
        const DeltaHead *h = &d->head[j];
        if (!h->written || slice_counts(d, j) || !form_in(y, d->b_of[j])) continue;
        if (h->planes) slice_plane_write(d, k, j, slice_family_form(k, &r, d->b_of[j]));
        else memory = true;
    }
    if (memory) pack_family(d, k, &r, &d->cells.write[d->cells.nwrite++]);
    return true;
}

static bool pack_writes(SliceDelta *d, Block *k)
{
    Cells *c = &d->cells;
    uint32_t n = d->beta.n + d->counting.n;
    c->write = pool_array(k->keep, n, sizeof *c->write);
    c->count = pool_array(k->keep, (size_t)d->counting.n * d->g->dv, sizeof *c->count);
    c->nwrite = c->ncount = 0;
    write_lists(d, k);
    for (uint32_t i = 0; i < d->beta.n; i++)
        if (!pack_beta(d, k, &d->beta.family[i])) return false;
    for (uint32_t i = 0; i < d->counting.n; i++)
        if (!pack_counting(d, k, i)) return false;
    return true;
}

/* ---- compilation: reads ---- */
static bool same_out(const SliceDelta *d, uint32_t x, uint32_t y)
{
    const DeltaBundle *p = &d->bundles.data[x], *q = &d->bundles.data[y];
    if (p->kind != q->kind || !p->slot != !q->slot) return false;
    for (uint32_t i = 0; i < d->kinds.data[p->kind].n; i++) {
        const DeltaHead *a = &d->head[p->head[i]], *b = &d->head[q->head[i]];
        uint32_t n = class_at(d, p->head[i])->nlanes;
        if (memcmp(a->out_start, b->out_start, (n + 1) * sizeof *a->out_start) || memcmp(a->out, b->out, a->out_start[n] * sizeof *a->out)) return false;
    }
    return true;
}

static OutGroup *group_of(SliceDelta *d, Block *k, uint32_t bundle, double gate)
{
    uint32_t index, bits = d->cells.bundle[bundle].bits;
    for (uint32_t i = 0; i < d->groups.n; i++)
        if (d->groups.data[i].gate == gate && same_out(d, d->groups.data[i].bundle, bundle)) return &d->groups.data[i];
    OutGroup o = {.bundle = bundle, .gate = gate};
    if (d->bundles.data[bundle].slot) {
        o.bit = pool_array(k->pool, bits, sizeof *o.bit); /* FALSE_REF at first */
        return &d->groups.data[vec_push(&d->groups, o)];
    }
    PackWord *w = word_for(d, true, bits, &index);
    o.field = (Field){(uint8_t)index, (uint8_t)w->n, (uint8_t)bits};
    for (uint32_t b = 0; b < bits; b++) w->slot[w->n++] = o.slot[b] = slice_new_slot(k->s);
    return &d->groups.data[vec_push(&d->groups, o)];
}

/* The bits of a bundle that a gate form opens. */
static uint64_t opened(const SliceDelta *d, uint32_t bundle, uint32_t form)
{
    const DeltaBundle *b = &d->bundles.data[bundle];
    uint64_t mask = 0;
    for (uint32_t h = 0; h < d->kinds.data[b->kind].n; h++) {
        uint32_t j = b->head[h];
        const DeltaClass *c = class_at(d, j);
        for (uint32_t i = 0; i < c->nlanes; i++)
            if (d->z_of[(size_t)j * d->g->dv + c->lane[i].lane] == form) mask |= mask64(c->cell.field[i].bits) << (d->cells.head[j].shift + c->cell.field[i].shift);
    }
    return mask;
}

/* The gates of a family; which of its forms open bundles in memory is read by a Select. */
static bool pack_gate(SliceDelta *d, Block *k, const PlaneFamily *y, GateRefs *gate)
{
    FamilyRefs *r = pool_alloc(k->pool, sizeof *r);
    bool memory = false;
    if (!find_family(k, y, 0, FAMILY_GATE, r)) return false;
    for (uint32_t t = 0; t < 1u << y->nbits; t++) {
        if (y->table[t] == NONE) continue;
        gate[y->table[t]] = (GateRefs){r, r->value};
        for (uint32_t b = 0; b < d->cells.nbundles; b++) memory |= !d->bundles.data[b].slot && opened(d, b, y->table[t]);
    }
    if (memory) pack_family(d, k, r, &d->cells.read[d->cells.nread++]);
    return true;
}

/* Lists of the bundles that each gate form opens. */
static void read_lists(SliceDelta *d, Block *k, const GateRefs *gate)
{
    Cells *c = &d->cells;
    VEC(CellRead) list = {0};
    c->read_start = pool_array(k->keep, (size_t)d->z.n + 1, sizeof *c->read_start);
    for (uint32_t f = 0; f < d->z.n; f++) {
        c->read_start[f] = list.n;
        for (uint32_t b = 0; gate[f].family && isfinite(gate[f].value) && b < c->nbundles; b++) {
            uint64_t mask = opened(d, b, f);
            if (!mask) continue;
            OutGroup *o = group_of(d, k, b, gate[f].value);
            if (o->bit) slice_plane_read(d, k, b, mask, slice_family_form(k, gate[f].family, f), o->bit);
            else vec_push(&list, ((CellRead){b, mask, o->field}));
        }
    }
    c->read_start[d->z.n] = list.n;
    c->read_list = pool_array(k->keep, list.n, sizeof *c->read_list);
    if (list.n) memcpy(c->read_list, list.data, list.n * sizeof *list.data);
    free(list.data);
}

static bool pack_reads(SliceDelta *d, Block *k)
{
    GateRefs *gate = pool_array(k->pool, d->z.n + 1, sizeof *gate);
    d->cells.read = pool_array(k->keep, d->gate.n, sizeof *d->cells.read);
    d->cells.nread = 0;
    d->groups.n = d->outw.n = 0;
    for (uint32_t i = 0; i < d->gate.n; i++)
        if (!pack_gate(d, k, &d->gate.family[i], gate)) return false;
    read_lists(d, k, gate);
    for (uint32_t i = 0; i < d->groups.n; i++) {
        OutGroup *o = &d->groups.data[i];
        for (uint32_t b = 0; o->bit && b < d->cells.bundle[o->bundle].bits; b++) o->slot[b] = slot_of(k, o->bit[b]);
    }
    return true;
}

bool slice_delta_in(SliceDelta *d, Block *k)
{
    d->in.n = 0;
    if (!d->compiled) choose_planes(d, k);
    if (!pack_rows(d, k)) return false;
    for (uint32_t i = 0; i < d->classes.n; i++)
        if (!pack_class(d, k, d->classes.data[i])) return false;
    if (!d->compiled) place_heads(d, k);
    pack_kinds(d, k);
    slice_plane_begin(d, k);
    if (!pack_writes(d, k) || !pack_reads(d, k)) return false;
    slice_plane_end(d, k, slot_of);
    d->compiled = true;
    d->cells.nin = d->in.n, d->cells.in = d->in.data;
    d->cells.nout = d->outw.n, d->cells.out = d->outw.data;
    return !k->why;
}

Cells *slice_delta_cells(SliceDelta *d) { return &d->cells; }

/* ---- compilation: what was read ---- */
typedef struct {
    uint32_t channel;
    const OutGroup *group;
    uint32_t head, lane, nth;
    float w;
} Arrival;
typedef VEC(Arrival) Arrivals;

static void add_arrivals(const SliceDelta *d, const OutGroup *o, uint32_t j, Arrivals *list)
{
    const DeltaHead *h = &d->head[j];
    for (uint32_t l = 0; l < class_at(d, j)->nlanes; l++)
        for (uint32_t e = h->out_start[l]; e < h->out_start[l + 1]; e++) vec_push(list, ((Arrival){h->out[e].at, o, j, l, list->n, h->out[e].w}));
}

static int by_channel(const void *p, const void *q)
{
    const Arrival *x = p, *y = q;
    if (x->channel != y->channel) return x->channel < y->channel ? -1 : 1;
    return x->nth < y->nth ? -1 : x->nth > y->nth;
}

/* A field that counts goes no further than what its width was made for. */
static void check_count(Block *k, const Term *bit, const CellField *f)
{
    Ref in[32];
    uint8_t *over = xrealloc(NULL, (size_t)1 << f->bits);
    for (uint32_t i = 0; i < 1u << f->bits; i++) over[i] = i > f->most;
    for (uint32_t b = 0; b < f->bits; b++) in[b] = bit[b].plane;
    vec_push(&k->check, ((CheckNode){bits_table(k->g, in, f->bits, over, 1u << f->bits), CHECK_FATAL, 0, "a count ran over"}));
    free(over);
}

static bool take_arrival(const SliceDelta *d, Block *k, const Arrival *a, Sum *s)
{
    const DeltaClass *class = class_at(d, a->head);
    const CellField *f = &class->cell.field[a->lane];
    uint32_t shift = d->cells.head[a->head].shift + f->shift;
    double y;
    int64_t w;
    if (!lane_reads(d, k, class, f, a->group->gate, &y)) return false;
    if (!whole(y * (double)a->w, &w)) {
        k->why = "a read that is no integer";
        return false;
    }
    Part p = {.first = s->term.n};
    for (uint32_t b = 0; b < f->bits; b++) vec_push(&s->term, ((Term){bits_leaf(k->g, a->group->slot[shift + b]), w * (1ll << b)}));
    *(w < 0 ? &p.lo : &p.hi) = w * f->most;
    p.end = s->term.n;
    if (f->most < mask64(f->bits)) check_count(k, &s->term.data[p.first], f);
    vec_push(&s->part, p);
    return true;
}

static void take_old(Block *k, uint32_t channel, Sum *s)
{
    const Int *x = channel_int(k->x, channel);
    Part p = {.first = s->term.n, .lo = x->lo, .hi = x->hi, .offset = x->lo};
    s->constant += x->lo;
    for (uint32_t b = 0; b < x->n; b++) vec_push(&s->term, ((Term){x->plane[b], 1ll << b}));
    p.end = s->term.n;
    if (x->n) vec_push(&s->part, p);
}

static bool receive(SliceDelta *d, Block *k, const Arrivals *list, const uint8_t *level)
{
    Sum s = {0};
    bool ok = true;
    for (uint32_t i = 0, end; ok && i < list->n; i = end) {
        uint32_t channel = list->data[i].channel;
        s.term.n = s.part.n = 0;
        s.constant = 0;
        take_old(k, channel, &s);
        for (end = i; ok && end < list->n && list->data[end].channel == channel; end++) ok = take_arrival(d, k, &list->data[end], &s);
        if (!ok) break;
        k->x[channel] = sum_channel(k, &s, channel_int(k->x, channel), channel, level[channel]);
        ok = k->x[channel] != NULL;
        if (!ok) k->why = "a channel is too wide";
    }
    free(s.term.data);
    free(s.part.data);
    return ok;
}

bool slice_delta_out(SliceDelta *d, Block *k, const uint8_t *level)
{
    Arrivals list = {0};
    for (uint32_t i = 0; i < d->groups.n; i++) {
        const OutGroup *o = &d->groups.data[i];
        const DeltaBundle *b = &d->bundles.data[o->bundle];
        for (uint32_t h = 0; h < d->kinds.data[b->kind].n; h++) add_arrivals(d, o, b->head[h], &list);
    }
    if (list.n) qsort(list.data, list.n, sizeof *list.data, by_channel);
    bool ok = receive(d, k, &list, level);
    free(list.data);
    return ok;
}
