/* slice_planes.c: the state of heads of one row, as planes: nothing is addressed, so a write is a choice between two planes and a read a condition, all
 * of it part of the block's logic, instead of packing words and visiting every lane's memory. Only for lanes that are machines of their own:
 * tokens of one machine see the writes of the lanes before them.
 *
 * What the state becomes goes to slots of its own and is moved when the pass has got through the layer, so that a block that is compiled again, with wider
 * ranges, finds the state as it was. */
#include "slice_priv.h"

enum { NONE = 0xffffffff };

Ref slice_family_form(Block *k, const FamilyRefs *r, uint32_t form)
{
    const PlaneFamily *y = r->family;
    uint32_t size = 1u << y->nbits;
    uint8_t *is = pool_array(k->pool, size, 1);
    for (uint32_t t = 0; t < size; t++) is[t] = form == NONE ? y->table[t] != NONE : y->table[t] == form;
    return bits_and(k->g, r->on, bits_table(k->g, r->bit, y->nbits, is, size));
}

/* Whether a key or query is on: its row is the only one. */
static Ref row_is_on(const SliceDelta *d, Block *k, uint32_t rows)
{
    return rows == NONE ? FALSE_REF : slice_family_form(k, &d->row_refs[d->rows.data[rows].select], NONE);
}

void slice_plane_slots(SliceDelta *d, Block *k, uint32_t bundle)
{
    DeltaBundle *b = &d->bundles.data[bundle];
    uint32_t bits = d->cells.bundle[bundle].bits;
    b->slot = pool_array(d->pool, bits, sizeof *b->slot);
    b->next = pool_array(d->pool, bits, sizeof *b->next);
    for (uint32_t i = 0; i < bits; i++) b->slot[i] = slice_kept_slot(k->s);
}

void slice_plane_begin(SliceDelta *d, Block *k)
{
    for (uint32_t i = 0; i < d->bundles.n; i++) {
        DeltaBundle *b = &d->bundles.data[i];
        uint32_t bits = d->cells.bundle[i].bits;
        if (!b->slot) continue;
        b->state = pool_array(k->pool, bits, sizeof *b->state);
        for (uint32_t n = 0; n < bits; n++) b->state[n] = bits_leaf(k->g, b->slot[n]);
    }
}

static Ref *state_of(const SliceDelta *d, uint32_t head)
{
    const CellHead *h = &d->cells.head[head];
    return d->bundles.data[h->bundle].state + h->shift;
}

void slice_plane_write(SliceDelta *d, Block *k, uint32_t head, Ref when)
{
    const DeltaClass *c = d->classes.data[d->head[head].class];
    Ref *state = state_of(d, head);
    when = bits_and(k->g, when, row_is_on(d, k, d->head[head].key));
    for (uint32_t i = 0; i < c->cell.bits; i++) state[i] = bits_mux(k->g, when, c->bit[i], state[i]);
}

void slice_plane_count(SliceDelta *d, Block *k, uint32_t head, uint32_t lane, Ref when, uint32_t amount)
{
    const CellField *f = &d->classes.data[d->head[head].class]->cell.field[lane];
    Ref *state = state_of(d, head) + f->shift, sum[MAX_PLANES];
    Term t[MAX_PLANES];
    when = bits_and(k->g, when, row_is_on(d, k, d->head[head].key));
    for (uint32_t i = 0; i < f->bits; i++) t[i] = (Term){state[i], 1ll << i};
    t[f->bits] = (Term){when, amount};
    bits_add(k->g, t, f->bits + 1, 0, f->bits + 1, sum);
    memcpy(state, sum, f->bits * sizeof *state);
    if (amount >> f->bits) k->why = "a count that no cell holds";
    if (sum[f->bits] != FALSE_REF) vec_push(&k->check, ((CheckNode){sum[f->bits], CHECK_FATAL, 0, "a count ran over"}));
}

void slice_plane_read(SliceDelta *d, Block *k, uint32_t bundle, uint64_t mask, Ref when, Ref *out)
{
    const DeltaBundle *b = &d->bundles.data[bundle];
    Ref twice = FALSE_REF;
    when = bits_and(k->g, when, row_is_on(d, k, d->head[b->head[0]].query));
    for (uint32_t i = 0; i < d->cells.bundle[bundle].bits; i++) {
        if (!(mask >> i & 1)) continue;
        Ref r = bits_and(k->g, when, b->state[i]);
        twice = bits_or(k->g, twice, bits_and(k->g, r, out[i]));
        out[i] = bits_or(k->g, r, out[i]);
    }
    if (twice != FALSE_REF) vec_push(&k->check, ((CheckNode){twice, CHECK_FATAL, 0, "two rows were read at once"}));
}

void slice_plane_end(SliceDelta *d, Block *k, uint16_t (*slot_of)(Block *, Ref))
{
    for (uint32_t i = 0; i < d->bundles.n; i++) {
        DeltaBundle *b = &d->bundles.data[i];
        for (uint32_t n = 0; b->slot && n < d->cells.bundle[i].bits; n++) b->next[n] = slot_of(k, b->state[n]);
    }
}

void slice_plane_keep(const SliceDelta *d, Plane *plane)
{
    for (uint32_t i = 0; i < d->bundles.n; i++) {
        const DeltaBundle *b = &d->bundles.data[i];
        for (uint32_t n = 0; b->slot && n < d->cells.bundle[i].bits; n++)
            if (b->next[n] != b->slot[n]) plane[b->slot[n]] = plane[b->next[n]];
    }
}

void slice_plane_save(const SliceDelta *d, const Plane *plane, uint32_t lane, uint8_t *state)
{
    for (uint32_t i = 0; i < d->bundles.n; i++) {
        const DeltaBundle *b = &d->bundles.data[i];
        const Bundle *c = &d->cells.bundle[i];
        uint64_t word = 0;
        if (!b->slot) continue;
        for (uint32_t n = 0; n < c->bits; n++) word |= (plane[b->slot[n]].w[lane >> 6] >> (lane & 63) & 1) << n;
        memcpy(state + c->base, &word, c->bytes);
    }
}

void slice_plane_load(const SliceDelta *d, Plane *plane, uint32_t lane, const uint8_t *state)
{
    uint64_t bit = 1ull << (lane & 63);
    for (uint32_t i = 0; i < d->bundles.n; i++) {
        const DeltaBundle *b = &d->bundles.data[i];
        const Bundle *c = &d->cells.bundle[i];
        uint64_t word = 0;
        if (!b->slot) continue;
        memcpy(&word, state + c->base, c->bytes); /* little-endian, as slice_cells.c stores it */
        for (uint32_t n = 0; n < c->bits; n++) {
            uint64_t *w = &plane[b->slot[n]].w[lane >> 6];
            *w = word >> n & 1 ? *w | bit : *w & ~bit;
        }
    }
}
