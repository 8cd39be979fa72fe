/* slice_cells.c: a layer's state in packed cells, lane by lane: what planes say of addresses, conditions and values is turned into words of each
 * lane, cells are written and then read, and what was read is turned into planes again. */
#include "slice_priv.h"

enum { NONE = 0xffffffff };

static inline uint64_t field_of(Field f, const uint64_t *word, uint32_t lane) { return word[f.word * LANES + lane_place(lane)] >> f.shift & (f.bits < 64 ? (1ull << f.bits) - 1 : ~0ull); }

static inline uint32_t selected(const Select *s, const uint64_t *word, uint32_t lane) { return s->table[field_of(s->field, word, lane)]; }

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
        uint8_t *at = cell_word(b, state, row);
        uint64_t v = field_of(w->value, word, lane);
        cell_store(at, b->bytes, (cell_load(at, b->bytes) & ~w->mask) | (v & w->mask));
    }
}

static inline bool count_lane(const Cells *c, const CellCount *n, const uint64_t *word, uint32_t lane, uint8_t *state)
{
    const Bundle *b = &c->bundle[n->bundle];
    uint32_t row = selected(&c->key[b->key], word, lane);
    if (!field_of(n->when, word, lane) || row == NONE) return false;
    uint8_t *at = cell_word(b, state, row);
    uint64_t cell = cell_load(at, b->bytes), most = (1ull << n->bits) - 1, sum = (cell >> n->shift & most) + n->amount;
    cell_store(at, b->bytes, (cell & ~(most << n->shift)) | (sum & most) << n->shift);
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
        uint64_t v = (cell_load(cell_word(b, state, row), b->bytes) & r->mask) << r->out.shift, *o = &out[r->out.word * LANES + lane_place(lane)];
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

/* ---- lanes of their own: one access of 64 lanes after the other, so that what does not depend on the lane is worked out once ---- */
typedef struct {
    const Cells *c;
    const uint64_t *word; /* packed words, at the first of the 64 lanes; the next lane's are PLANE_WORDS further on */
    uint64_t *out;
    uint8_t *state; /* of the first of the 64 lanes */
    size_t stride;
} Lanes;

/* The first of the 64 lanes' words that hold a field. */
static inline const uint64_t *words_of(const Lanes *l, Field f) { return l->word + f.word * LANES; }
#define EACH_LANE(lane, lanes) for (uint64_t bits_ = (lanes), lane; bits_ && (lane = (uint64_t)__builtin_ctzll(bits_), true); bits_ &= bits_ - 1)

static inline uint64_t part(const uint64_t *word, uint64_t lane, uint32_t shift, uint64_t mask) { return word[lane * PLANE_WORDS] >> shift & mask; }

static inline void write_lanes(const Lanes *l, const CellWrite *w, uint64_t lanes, uint32_t bytes)
{
    const Bundle *b = &l->c->bundle[w->bundle];
    const Select *key = &l->c->key[b->key];
    const uint64_t *address = words_of(l, key->field), *value = words_of(l, w->value), mask = w->mask;
    EACH_LANE(lane, lanes) {
        uint32_t row = key->table[part(address, lane, key->field.shift, mask64(key->field.bits))];
        if (row == NONE) continue;
        uint8_t *at = cell_word(b, l->state + lane * l->stride, row);
        cell_store(at, bytes, (cell_load(at, bytes) & ~mask) | (value[lane * PLANE_WORDS] >> w->value.shift & mask));
    }
}

/* Returns the bits that were read twice: a sum that cells do not make. */
static inline uint64_t read_lanes(const Lanes *l, const CellRead *r, uint64_t lanes, uint32_t bytes)
{
    const Bundle *b = &l->c->bundle[r->bundle];
    const Select *key = &l->c->key[b->query];
    const uint64_t *address = words_of(l, key->field), mask = r->mask;
    uint64_t *out = l->out + r->out.word * LANES, twice = 0;
    EACH_LANE(lane, lanes) {
        uint32_t row = key->table[part(address, lane, key->field.shift, mask64(key->field.bits))];
        if (row == NONE) continue;
        uint64_t v = (cell_load(cell_word(b, l->state + lane * l->stride, row), bytes) & mask) << r->out.shift, *o = &out[lane * PLANE_WORDS];
        twice |= *o & v;
        *o |= v;
    }
    return twice;
}

/* Constant sizes make loads and stores single instructions. */
#define BY_SIZE(call, bytes) ((bytes) == 8 ? call(8) : (bytes) == 4 ? call(4) : (bytes) == 2 ? call(2) : call(1))

static void write_list(const Lanes *l, uint32_t list, uint64_t lanes)
{
    if (list == NONE) return;
    for (const CellWrite *w = l->c->write_list + l->c->write_start[list], *end = l->c->write_list + l->c->write_start[list + 1]; w < end; w++) {
#define CALL(n) write_lanes(l, w, lanes, n)
        BY_SIZE(CALL, l->c->bundle[w->bundle].bytes);
#undef CALL
    }
}

static uint64_t read_list(const Lanes *l, uint32_t list, uint64_t lanes)
{
    uint64_t twice = 0;
    if (list == NONE) return 0;
    for (const CellRead *r = l->c->read_list + l->c->read_start[list], *end = l->c->read_list + l->c->read_start[list + 1]; r < end; r++) {
#define CALL(n) read_lanes(l, r, lanes, n)
        twice |= BY_SIZE(CALL, l->c->bundle[r->bundle].bytes);
#undef CALL
    }
    return twice;
}

/* ---- each lane by itself, where lanes go different ways: a few lanes' words are asked for before the first is used, since each is somewhere else in memory ---- */
enum { PENDING = 128 };
typedef struct {
    uint8_t *at;
    const void *access; /* CellWrite or CellRead */
    uint32_t lane, bytes;
} Pending;

static inline void ask_for(const Lanes *l, Pending *p, uint32_t *n, uint32_t bundle, uint32_t select, const void *access, uint64_t lane)
{
    const Bundle *b = &l->c->bundle[bundle];
    const Select *key = &l->c->key[select];
    uint32_t row = key->table[part(words_of(l, key->field), lane, key->field.shift, mask64(key->field.bits))];
    if (row == NONE) return;
    p[*n] = (Pending){cell_word(b, l->state + lane * l->stride, row), access, (uint32_t)lane, b->bytes};
    __builtin_prefetch(p[(*n)++].at);
}

static void write_pending(const Lanes *l, const Pending *p, uint32_t n)
{
    for (const Pending *end = p + n; p < end; p++) {
        const CellWrite *w = p->access;
        uint64_t value = words_of(l, w->value)[(size_t)p->lane * PLANE_WORDS] >> w->value.shift;
        cell_store(p->at, p->bytes, (cell_load(p->at, p->bytes) & ~w->mask) | (value & w->mask));
    }
}

static uint64_t read_pending(const Lanes *l, const Pending *p, uint32_t n)
{
    uint64_t twice = 0;
    for (const Pending *end = p + n; p < end; p++) {
        const CellRead *r = p->access;
        uint64_t v = (cell_load(p->at, p->bytes) & r->mask) << r->out.shift, *o = &l->out[r->out.word * LANES + (size_t)p->lane * PLANE_WORDS];
        twice |= *o & v;
        *o |= v;
    }
    return twice;
}

static void write_each(const Lanes *l, const Select *s, uint64_t lanes)
{
    Pending p[PENDING];
    uint32_t n = 0;
    EACH_LANE(lane, lanes) {
        uint32_t list = s->table[part(words_of(l, s->field), lane, s->field.shift, mask64(s->field.bits))];
        if (list == NONE) continue;
        for (uint32_t i = l->c->write_start[list]; i < l->c->write_start[list + 1]; i++) {
            const CellWrite *w = &l->c->write_list[i];
            ask_for(l, p, &n, w->bundle, l->c->bundle[w->bundle].key, w, lane);
            if (n == PENDING) write_pending(l, p, n), n = 0;
        }
    }
    write_pending(l, p, n);
}

static uint64_t read_each(const Lanes *l, const Select *s, uint64_t lanes)
{
    Pending p[PENDING];
    uint32_t n = 0;
    uint64_t twice = 0;
    EACH_LANE(lane, lanes) {
        uint32_t list = s->table[part(words_of(l, s->field), lane, s->field.shift, mask64(s->field.bits))];
        if (list == NONE) continue;
        for (uint32_t i = l->c->read_start[list]; i < l->c->read_start[list + 1]; i++) {
            const CellRead *r = &l->c->read_list[i];
            ask_for(l, p, &n, r->bundle, l->c->bundle[r->bundle].query, r, lane);
            if (n == PENDING) twice |= read_pending(l, p, n), n = 0;
        }
    }
    return twice | read_pending(l, p, n);
}

/* A select of a single bit is the same list for all lanes that are chosen. */
static void write_all(const Lanes *l, const Select *s, uint64_t lanes)
{
    if (s->field.bits == 1) write_list(l, s->table[1], lanes);
    else write_each(l, s, lanes);
}

static uint64_t read_all(const Lanes *l, const Select *s, uint64_t lanes)
{
    return s->field.bits == 1 ? read_list(l, s->table[1], lanes) : read_each(l, s, lanes);
}

static void run_apart(const Cells *c, const Plane *plane, const uint64_t *active, uint8_t *state, size_t stride, const uint64_t *in, uint64_t *out, Trouble *t)
{
    for (uint32_t w = 0; w < PLANE_WORDS; w++) {
        Lanes l = {c, in + w, out + w, state + 64 * w * stride, stride};
        for (uint32_t i = 0; i < c->nwrite; i++) write_all(&l, &c->write[i], active[w] & chosen(c, &c->write[i], plane, w));
        for (uint32_t i = 0; i < c->ncount; i++)
            EACH_LANE(lane, active[w]) t->full |= count_lane(c, &c->count[i], in, 64 * w + (uint32_t)lane, l.state + lane * stride);
        for (uint32_t i = 0; i < c->nread; i++) t->twice |= read_all(&l, &c->read[i], active[w] & chosen(c, &c->read[i], plane, w)) != 0;
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
    return (*b)->row_at[row] < 0 ? NULL : cell_word(*b, s->state, row);
}

/* Lanes that are not kept, pilots among them, are no number: nobody's (statemap.c). */
static void get_row(void *self, uint32_t layer, uint32_t head, uint32_t row, float *lanes)
{
    const CellHead *h;
    const Bundle *b;
    const uint8_t *at = row_of(self, layer, head, row, &h, &b);
    for (uint32_t i = 0; i < slice_model(((SliceState *)self)->s)->geo.dv; i++) lanes[i] = NAN;
    uint64_t v = at ? cell_load(at, b->bytes) >> h->shift : 0;
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
    if (at) cell_store(at, b->bytes, (cell_load(at, b->bytes) & ~(mask64(h->cell->bits) << h->shift)) | v << h->shift);
}

const Backend slice_cells_backend = {.name = "cells", .get = get_row, .set = set_row};
