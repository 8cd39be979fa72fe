/* hot_cells.c: one machine's cells at one layer, as slice_cells.c has them for many; what is overwritten is noted, so that it can be put back. */
#include "hot.h"

enum { NONE = 0xffffffff };

static inline uint64_t field_of(Field f, const uint64_t *word) { return word[f.word] >> f.shift & mask64(f.bits); }
static inline uint32_t selected(const Select *s, const uint64_t *word) { return s->table[field_of(s->field, word)]; }

static void change(HotMachine *m, uint8_t *at, uint32_t bytes, uint64_t old, uint64_t v)
{
    if (old == v) return;
    vec_push(&m->undo, ((HotUndo){at, bytes, old}));
    cell_store(at, bytes, v);
}

void hot_undo(HotMachine *m)
{
    while (m->undo.n) {
        const HotUndo *u = &m->undo.data[--m->undo.n];
        cell_store(u->at, u->bytes, u->old);
    }
}

static void write_list(const Cells *c, uint32_t list, const uint64_t *in, HotMachine *m)
{
    if (list == NONE) return;
    for (const CellWrite *w = c->write_list + c->write_start[list], *end = c->write_list + c->write_start[list + 1]; w < end; w++) {
        const Bundle *b = &c->bundle[w->bundle];
        uint32_t row = selected(&c->key[b->key], in);
        if (row == NONE) continue;
        uint8_t *at = cell_word(b, m->state, row);
        uint64_t old = cell_load(at, b->bytes);
        change(m, at, b->bytes, old, (old & ~w->mask) | (field_of(w->value, in) & w->mask));
    }
}

static bool count(const Cells *c, const CellCount *n, const uint64_t *in, HotMachine *m)
{
    const Bundle *b = &c->bundle[n->bundle];
    uint32_t row = selected(&c->key[b->key], in);
    if (!field_of(n->when, in) || row == NONE) return true;
    uint8_t *at = cell_word(b, m->state, row);
    uint64_t cell = cell_load(at, b->bytes), most = mask64(n->bits), sum = (cell >> n->shift & most) + n->amount;
    change(m, at, b->bytes, cell, (cell & ~(most << n->shift)) | (sum & most) << n->shift);
    return sum <= most;
}

/* Whether no bit was read twice. */
static bool read_list(const Cells *c, uint32_t list, const uint64_t *in, HotMachine *m, uint64_t *out)
{
    uint64_t twice = 0;
    if (list == NONE) return true;
    for (const CellRead *r = c->read_list + c->read_start[list], *end = c->read_list + c->read_start[list + 1]; r < end; r++) {
        const Bundle *b = &c->bundle[r->bundle];
        uint32_t row = selected(&c->key[b->query], in);
        if (row == NONE) continue;
        uint64_t v = (cell_load(cell_word(b, m->state, row), b->bytes) & r->mask) << r->out.shift;
        twice |= out[r->out.word] & v;
        out[r->out.word] |= v;
    }
    return twice == 0;
}

HotResult hot_cells(const HotLayer *l, const HotAccess *x, HotMachine *m)
{
    const Cells *c = l->cells;
    uint64_t in[HOT_MOST_WORDS], *out = m->out + l->first_out;
    bool fine = true;
    for (uint32_t w = 0; w < l->nout; w++) out[w] = 0;
    if (!x->nwrite && !x->ncount && !x->nread) return HOT_FINE;
    for (uint32_t w = 0; w < l->nin; w++) in[w] = x->fixed[w] | (x->varies[w] ? hot_pack(m->frame + l->in[w].place, l->in[w].n) & x->varies[w] : 0);
    for (uint32_t i = 0; i < x->nwrite; i++) write_list(c, selected(&c->write[x->write[i]], in), in, m);
    for (uint32_t i = 0; i < x->ncount; i++) fine &= count(c, &c->count[x->count[i]], in, m);
    for (uint32_t i = 0; i < x->nread; i++) fine &= read_list(c, selected(&c->read[x->read[i]], in), in, m, out);
    for (uint32_t w = 0; w < l->nout; w++) {
        if ((out[w] & x->guard[w]) != x->expect[w]) return HOT_UNEXPECTED;
        if (x->may[w] & ~x->guard[w]) hot_spread(m->frame + l->out[w].place, out[w], l->out[w].n);
    }
    return fine ? HOT_FINE : HOT_TROUBLE;
}
