/* prompt.c: initial contents as a prompt of loader tokens, from the chip file alone (runtime/chip.md, `load`). Rows that are 0 are left out:
 * what was never written reads 0. */
#include "runtime.h"
#include <jansson.h>
#include <stdlib.h>

typedef struct {
    const Model *m;
    const Image *image;
    Prompt *out;
    json_t *load;
    uint32_t first, chunks, chunk_bits, index_bits;
    bool rom_only;
    uint64_t sent[64]; /* per chunk but the last: what the stage register holds, plus 1; 0: nothing yet */
} Loader;

static uint32_t number(const json_t *o, const char *key) { return (uint32_t)json_integer_value(json_object_get(o, key)); }

static uint64_t initial(const Loader *l, const ChipState *s, uint32_t row)
{
    uint64_t v = 0;
    switch (s->init) {
    case INIT_ZERO: break;
    case INIT_ROWS: v = row < s->nrow_init ? s->row_init[row] : 0; break;
    case INIT_ENTRY: v = (l->image ? l->image->entry : 0) >> s->init_shift; break;
    case INIT_SYMBOL:
        if (!l->image || !l->image->symbol(l->image, s->symbol, &v)) v = s->nrow_init ? s->row_init[0] : 0;
        v >>= s->init_shift;
        break;
    case INIT_IMAGE: {
        uint8_t b[8] = {0};
        uint32_t n = s->width / 8;
        if (l->image && image_covers(l->image, s->base + (uint64_t)row * n, n)) l->image->read(l->image, s->base + (uint64_t)row * n, b, n);
        for (uint32_t i = 0; i < n; i++) v |= (uint64_t)b[i] << 8 * i;
    }
    }
    return v & mask64(s->width);
}

/* The chunk j of the record: bits of the row number below index_bits, of the data above. */
static uint64_t chunk(const Loader *l, uint32_t j, uint64_t row, uint64_t data)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < l->chunk_bits; i++) {
        uint32_t at = j * l->chunk_bits + i;
        uint64_t bit = at < l->index_bits ? row >> at : at - l->index_bits < 64 ? data >> (at - l->index_bits) : 0;
        v |= (bit & 1) << i;
    }
    return v;
}

static void send_row(Loader *l, uint32_t kind, uint64_t row, uint64_t data)
{
    for (uint32_t j = 0; j + 1 < l->chunks; j++) {
        uint64_t v = chunk(l, j, row, data);
        if (l->sent[j] == v + 1) continue;
        l->sent[j] = v + 1;
        vec_push(l->out, l->m->kind[l->first + j].base + (uint32_t)v);
    }
    vec_push(l->out, l->m->kind[kind].base + (uint32_t)chunk(l, l->chunks - 1, row, data));
}

/* Every row number that the address bits can say. */
static uint32_t rom_bits(const ChipState *s) { return s->rows > 1 ? clog2(s->rows) : 0; }

static void send_group(Loader *l, const json_t *group)
{
    const ChipState *s = &l->m->state[json_integer_value(json_array_get(json_object_get(group, "states"), 0))];
    if (l->rom_only && s->ncopies) return;
    for (uint32_t r = 0; r < (s->ncopies ? s->rows : 1u << rom_bits(s)); r++) {
        uint64_t v = r < s->rows ? initial(l, s, r) : 0;
        /* a lookup that finds no key gives some other row's value: ROMs are loaded whole; what is added to must stand first */
        bool wanted = v || s->ncopies == 0 || s->copy[0].piece[0].has_count;
        if (wanted && !(s->has_hard && s->hard_row == r)) send_row(l, number(group, "kind"), r, v);
    }
}

static const ChipKind *tail_kind(const Loader *l, const json_t *kinds, size_t i) { return &l->m->kind[json_integer_value(json_array_get(kinds, i))]; }

/* The start, or the tail register's own tokens, top chunk first. */
static void send_tail(Loader *l)
{
    const json_t *kinds = json_object_get(l->load, "tail_kinds");
    size_t n = json_array_size(kinds);
    if (!n) {
        vec_push(l->out, l->m->start);
        return;
    }
    uint64_t v = initial(l, &l->m->state[number(l->load, "tail_state")], 0);
    uint32_t below = 0; /* bits of the chunks that follow */
    for (size_t i = 0; i < n; i++) below += tail_kind(l, kinds, i)->width;
    for (size_t i = 0; i < n; i++) {
        const ChipKind *k = tail_kind(l, kinds, i);
        below -= k->width;
        vec_push(l->out, k->base + (uint32_t)((below < 64 ? v >> below : 0) & mask64(k->width)));
    }
}

static bool sound(const Loader *l)
{
    uint32_t n = l->m->nkinds;
    bool ok = l->chunk_bits >= 1 && l->chunk_bits <= 24 && l->chunks <= 64 && l->first + l->chunks <= n + 1 && l->index_bits <= 32;
    const json_t *g, *k;
    size_t i;
    json_array_foreach(json_object_get(l->load, "groups"), i, g)
    {
        json_t *s = json_array_get(json_object_get(g, "states"), 0);
        ok = ok && json_is_integer(s) && json_integer_value(s) >= 0 && json_integer_value(s) < l->m->nstates && number(g, "kind") < n;
    }
    json_array_foreach(json_object_get(l->load, "tail_kinds"), i, k) ok = ok && json_is_integer(k) && json_integer_value(k) >= 0 && json_integer_value(k) < n;
    return ok && number(l->load, "tail_state") < l->m->nstates;
}

bool prompt_make(const Model *m, const Image *image, bool rom_only, Prompt *out, char **err)
{
    Loader l = {.m = m, .image = image, .out = out, .rom_only = rom_only, .load = json_object_get(m->manifest, "load")};
    if (!json_is_object(l.load)) return fail(err, "%s: has no loader tokens", m->path);
    l.first = number(l.load, "first_kind"), l.chunks = number(l.load, "chunks"), l.chunk_bits = number(l.load, "chunk_bits");
    l.index_bits = number(l.load, "index_bits");
    const json_t *before = json_object_get(l.load, "before");
    if (before && !(json_is_integer(before) && json_integer_value(before) >= 0 && model_kind(m, (uint32_t)json_integer_value(before))))
        return fail(err, "%s: `load` begins with a token of no kind", m->path);
    if (!sound(&l)) return fail(err, "%s: its `load` names kinds or states that are not there", m->path);
    if (before) vec_push(out, number(l.load, "before"));
    size_t i;
    const json_t *group;
    json_array_foreach(json_object_get(l.load, "groups"), i, group) send_group(&l, group);
    if (!rom_only) send_tail(&l);
    return true;
}
