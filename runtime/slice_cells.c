/* slice_cells.c: a layer's state in packed cells, lane by lane: what planes say of addresses, conditions and values is turned into words of each
 * lane, cells are written and then read, and what was read is turned into planes again. */
#include "slice_priv.h"

enum { NONE = 0xffffffff };

static inline uint64_t field_of(Field f, const uint64_t *word, uint32_t lane) { return word[f.word * LANES + lane_place(lane)] >> f.shift & (f.bits < 64 ? (1ull << f.bits) - 1 : ~0ull); }

static inline uint32_t selected(const Select *s, const uint64_t *word, uint32_t lane) { return s->table[field_of(s->field, word, lane)]; }

static inline uint64_t load(const uint8_t *p, uint32_t bytes)
{
    uint64_t v = 0;
    switch (bytes) {
    case 1: return *p;
    case 2: return *(const uint16_t *)(const void *)p;
    case 4: return *(const uint32_t *)(const void *)p;
    default: memcpy(&v, p, 8); return v;
    }
}

static inline void store(uint8_t *p, uint32_t bytes, uint64_t v)
{
    switch (bytes) {
    case 1: *p = (uint8_t)v; break;
    case 2: *(uint16_t *)(void *)p = (uint16_t)v; break;
    case 4: *(uint32_t *)(void *)p = (uint32_t)v; break;
    default: memcpy(p, &v, 8);
    }
}

static inline uint8_t *word_at(const Bundle *b, uint8_t *state, uint32_t row) { return state + b->base + (size_t)(uint32_t)b->row_at[row] * b->bytes; }

/* The plane that says whether the select counts, of 64 lanes. */
static inline uint64_t chosen(const Cells *c, const Select *s, const Plane *plane, uint32_t w) { return plane[c->in[s->field.word].slot[s->field.shift + s->field.bits - 1]].w[w]; }

static inline void write_lane(const Cells *c, const Select *s, const uint64_t *word, uint32_t lane, uint8_t *state)
{
    uint32_t list = selected(s, word, lane);
    if (list == NONE) return;
    for (const CellWrite *w = c->write_list + c->write_start[list], *end = c->write_list + c->write_start[list + 1]; w < end; w++) {
        const Bundle *b = &c->bundle[w->bundle];
        uint32_t row = selected(&c->key[b->key], word, lane);
        if (row == NONE) continue;
        uint8_t *at = word_at(b, state, row);
        uint64_t v = field_of(w->value, word, lane);
        store(at, b->bytes, (load(at, b->bytes) & ~w->mask) | (v & w->mask));
    }
}

static inline bool count_lane(const Cells *c, const CellCount *n, const uint64_t *word, uint32_t lane, uint8_t *state)
{
    const Bundle *b = &c->bundle[n->bundle];
    uint32_t row = selected(&c->key[b->key], word, lane);
    if (!field_of(n->when, word, lane) || row == NONE) return false;
    uint8_t *at = word_at(b, state, row);
    uint64_t cell = load(at, b->bytes), most = (1ull << n->bits) - 1, sum = (cell >> n->shift & most) + n->amount;
    store(at, b->bytes, (cell & ~(most << n->shift)) | (sum & most) << n->shift);
    return sum > most;
}

/* Whether a bit was read twice: a sum that cells do not make. */
static inline bool read_lane(const Cells *c, const Select *s, const uint64_t *word, uint32_t lane, uint8_t *state, uint64_t *out)
{
    uint64_t twice = 0;
    uint32_t list = selected(s, word, lane);
    if (list == NONE) return false;
    for (const CellRead *r = c->read_list + c->read_start[list], *end = c->read_list + c->read_start[list + 1]; r < end; r++) {
        const Bundle *b = &c->bundle[r->bundle];
        uint32_t row = selected(&c->key[b->query], word, lane);
        if (row == NONE) continue;
        uint64_t v = (load(word_at(b, state, row), b->bytes) & r->mask) << r->out.shift, *o = &out[r->out.word * LANES + lane_place(lane)];
        twice |= *o & v;
        *o |= v;
    }
    return twice != 0;
}

typedef struct {
    bool full, twice;
} Trouble;

/* Lanes of one machine see the writes of the lanes before them. */
static void run_in_order(const Cells *c, const uint64_t *active, uint8_t *state, const uint64_t *in, uint64_t *out, Trouble *t)
{
    for (uint32_t w = 0; w < PLANE_WORDS; w++)
        for (uint64_t bits = active[w]; bits; bits &= bits - 1) {
            uint32_t lane = w * 64 + (uint32_t)__builtin_ctzll(bits);
            for (uint32_t i = 0; i < c->nwrite; i++) write_lane(c, &c->write[i], in, lane, state);
            for (uint32_t i = 0; i < c->ncount; i++) t->full |= count_lane(c, &c->count[i], in, lane, state);
            for (uint32_t i = 0; i < c->nread; i++) t->twice |= read_lane(c, &c->read[i], in, lane, state, out);
        }
}

/* Lanes of their own: all lanes of one write, then of the next, only those that write; and so for reads. */
static void run_apart(const Cells *c, const Plane *plane, const uint64_t *active, uint8_t *state, size_t stride, const uint64_t *in, uint64_t *out, Trouble *t)
{
    for (uint32_t w = 0; w < PLANE_WORDS; w++) {
        uint8_t *mine = state + 64 * w * stride;
        uint32_t lane;
        for (uint32_t i = 0; i < c->nwrite; i++)
            for (uint64_t bits = active[w] & chosen(c, &c->write[i], plane, w); bits; bits &= bits - 1) {
                lane = (uint32_t)__builtin_ctzll(bits);
                write_lane(c, &c->write[i], in, 64 * w + lane, mine + lane * stride);
            }
        for (uint32_t i = 0; i < c->ncount; i++)
            for (uint64_t bits = active[w]; bits; bits &= bits - 1) {
                lane = (uint32_t)__builtin_ctzll(bits);
                t->full |= count_lane(c, &c->count[i], in, 64 * w + lane, mine + lane * stride);
            }
        for (uint32_t i = 0; i < c->nread; i++)
            for (uint64_t bits = active[w] & chosen(c, &c->read[i], plane, w); bits; bits &= bits - 1) {
                lane = (uint32_t)__builtin_ctzll(bits);
                t->twice |= read_lane(c, &c->read[i], in, 64 * w + lane, mine + lane * stride, out);
            }
    }
}

const char *cells_run(const Cells *c, Plane *plane, const uint64_t *active, uint8_t *state, size_t stride, uint64_t *scratch)
{
    uint64_t *in = scratch, *out = scratch + (size_t)c->nin * LANES;
    Trouble t = {false, false};
    if (!c->nin) return NULL;
    for (uint32_t i = 0; i < c->nin; i++) planes_to_lanes(plane, c->in[i].slot, c->in[i].n, in + (size_t)i * LANES);
    memset(out, 0, (size_t)c->nout * LANES * sizeof *out);
    if (stride) run_apart(c, plane, active, state, stride, in, out, &t);
    else run_in_order(c, active, state, in, out, &t);
    for (uint32_t i = 0; i < c->nout; i++) lanes_to_planes(out + (size_t)i * LANES, plane, c->out[i].slot, c->out[i].n);
    return t.full ? "a count ran over" : t.twice ? "two rows were read at once" : NULL;
}

/* ---- one machine's cells through the state map ---- */
static uint8_t *row_of(SliceState *s, uint32_t layer, uint32_t head, uint32_t row, const CellHead **h, const Bundle **b)
{
    const Cells *c = slice_layer_cells(s->s, layer);
    *h = c && head < c->nheads ? &c->head[head] : NULL;
    if (!*h || !(*h)->cell) return NULL;
    *b = &c->bundle[(*h)->bundle];
    return (*b)->row_at[row] < 0 ? NULL : word_at(*b, s->state, row);
}

/* Pilots are not kept: they read as 0, which the state map takes for a row that was never written. */
static void get_row(void *self, uint32_t layer, uint32_t head, uint32_t row, float *lanes)
{
    const CellHead *h;
    const Bundle *b;
    const uint8_t *at = row_of(self, layer, head, row, &h, &b);
    memset(lanes, 0, slice_model(((SliceState *)self)->s)->geo.dv * sizeof *lanes);
    uint64_t v = at ? load(at, b->bytes) >> h->shift : 0;
    for (uint32_t i = 0; at && i < h->cell->nfields; i++) {
        const CellField *f = &h->cell->field[i];
        lanes[f->lane] = f->one * (float)(v >> f->shift & mask64(f->bits));
    }
}

/* Lanes that are not kept are read by nobody. */
static void set_row(void *self, uint32_t layer, uint32_t head, uint32_t row, const float *lanes)
{
    SliceState *s = self;
    const CellHead *h;
    const Bundle *b;
    uint8_t *at = row_of(s, layer, head, row, &h, &b);
    uint64_t v = 0;
    for (uint32_t i = 0; at && i < h->cell->nfields; i++) {
        const CellField *f = &h->cell->field[i];
        int64_t n = 0;
        if (f->one != 0 ? !whole((double)(lanes[f->lane] / f->one), &n) || n < 0 || (uint64_t)n > mask64(f->bits) : lanes[f->lane] != 0)
            s->bad = "an initial value that is no code";
        v |= ((uint64_t)n & mask64(f->bits)) << f->shift;
    }
    if (at) store(at, b->bytes, (load(at, b->bytes) & ~(mask64(h->cell->bits) << h->shift)) | v << h->shift);
}

const Backend slice_cells_backend = {.name = "cells", .get = get_row, .set = set_row};
