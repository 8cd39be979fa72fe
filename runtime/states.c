/* states.c: the manifest's `states`: what the elements are and where each copy of them lives (chip.md). Checks that every
 * cell lies inside the geometry and that the pieces of a copy hold each row once. */
#include "runtime.h"
#include <jansson.h>
#include <stdlib.h>

static const char *const kind_words[] = {"reg", "file", "mem", "host"};                         /* ORDER StateKind */
static const char *const init_words[] = {"zero", "rows", "image", "entry", "symbol"};           /* ORDER InitKind */

typedef struct {
    Reader *r;
    const Model *m;
    const ChipState *s;
    Piece *p;
} Ctx;

static void add_head(Ctx *c, int32_t head)
{
    for (uint32_t i = 0; i < c->p->nhead; i++)
        if (c->p->heads[i] == head) return;
    c->p->heads[c->p->nhead++] = head;
}

/* A cell's head counts from the group's first, and must be a head of the layer in the first group as in the last. */
static Cell make_cell(Ctx *c, int64_t head, int64_t lane)
{
    const Piece *p = c->p;
    int64_t first = (int64_t)p->head + head, last = first + (int64_t)((p->nrows - 1) / p->group_rows) * p->group_heads;
    if (lane < 0 || lane >= c->m->geo.dv || first < 0 || last >= c->m->geo.nv)
        reader_fail(c->r, "state \"%s\": cell [%lld, %lld] is outside the layer's %u heads of %u lanes", c->s->name, (long long)head,
                    (long long)lane, c->m->geo.nv, c->m->geo.dv);
    add_head(c, (int32_t)head);
    return (Cell){(int32_t)head, (int32_t)lane};
}

static const json_t *sub_array(Ctx *c, const json_t *list, size_t i, size_t n)
{
    const json_t *item = json_array_get(list, i);
    if (!json_is_array(item) || json_array_size(item) != n)
        reader_fail(c->r, "state \"%s\": expected a list of %zu in a piece", c->s->name, n);
    return item;
}

static void read_bits(Ctx *c, const json_t *list)
{
    Piece *p = c->p;
    if (json_array_size(list) != c->s->width)
        reader_fail(c->r, "state \"%s\": a piece places %zu bits of %u", c->s->name, json_array_size(list), c->s->width);
    for (uint32_t i = 0; i < c->s->width; i++) {
        const json_t *b = sub_array(c, list, i, 2);
        int64_t head = item_int(c->r, b, c->s->name, "bits", 0, INT32_MIN, INT32_MAX), lane = item_int(c->r, b, c->s->name, "bits", 1, -1, INT32_MAX);
        bool covered = p->has_count && i - p->count_low < p->count_bits;
        bool none = head == -1 && lane == -1;
        if (covered && !none) reader_fail(c->r, "state \"%s\": bit %u is both a cell and counted", c->s->name, i);
        p->bit[i] = none ? (Cell){-1, -1} : make_cell(c, head, lane);
    }
}

static void read_pilots(Ctx *c, const json_t *list)
{
    Piece *p = c->p;
    for (uint32_t i = 0; i < p->npilot; i++) {
        const json_t *t = sub_array(c, list, i, 3);
        p->pilot[i] = make_cell(c, item_int(c->r, t, c->s->name, "pilots", 0, INT32_MIN, INT32_MAX), item_int(c->r, t, c->s->name, "pilots", 1, 0, INT32_MAX));
        p->pilot_value[i] = item_float(c->r, t, c->s->name, "pilots", 2);
    }
}

static void read_count(Ctx *c, const json_t *o)
{
    Piece *p = c->p;
    p->has_count = true;
    p->count = make_cell(c, get_int(c->r, o, c->s->name, "head", INT32_MIN, INT32_MAX), get_int(c->r, o, c->s->name, "lane", 0, INT32_MAX));
    p->count_low = (uint32_t)get_int(c->r, o, c->s->name, "low", 0, c->s->width - 1);
    p->count_bits = (uint32_t)get_int(c->r, o, c->s->name, "bits", 1, c->s->width - p->count_low);
    int64_t most = (int64_t)mask64(p->count_bits);
    p->count_max = (uint32_t)(json_object_get(o, "max") ? get_int(c->r, o, c->s->name, "max", 1, most + 1) : most);
    p->count_unit = get_float(c->r, o, c->s->name, "unit");
    if (p->count_unit == 0 || p->count_bits > 24) reader_fail(c->r, "state \"%s\": a count of %u bits of unit %g", c->s->name, p->count_bits, (double)p->count_unit);
}

/* layer, head and groups: the last group must still lie inside the layer's heads. */
static void read_place(Ctx *c, const json_t *o)
{
    const Geometry *g = &c->m->geo;
    Piece *p = c->p;
    const char *name = c->s->name;
    p->layer = (uint32_t)get_int(c->r, o, name, "layer", 0, g->layers - 1);
    if (c->m->layer[p->layer].full) reader_fail(c->r, "state \"%s\": layer %u has no recurrent state", name, p->layer);
    p->head = (uint32_t)get_int(c->r, o, name, "head", 0, g->nv - 1);
    p->row0 = (uint32_t)get_int(c->r, o, name, "row0", 0, c->s->rows - 1);
    p->nrows = (uint32_t)get_int(c->r, o, name, "nrows", 1, c->s->rows - p->row0);
    p->group_rows = (uint32_t)get_int(c->r, o, name, "group_rows", 1, g->dk);
    p->group_heads = (uint32_t)get_int(c->r, o, name, "group_heads", 1, g->nv);
    uint64_t groups = (p->nrows + (uint64_t)p->group_rows - 1) / p->group_rows;
    if (p->head + groups * p->group_heads > g->nv)
        reader_fail(c->r, "state \"%s\": %llu groups of %u heads from head %u do not fit in %u heads", name, (unsigned long long)groups,
                    p->group_heads, p->head, g->nv);
    p->one = get_float(c->r, o, name, "one");
    if (p->one == 0) reader_fail(c->r, "state \"%s\": the code for 1 is 0", name);
}

static void read_piece(Ctx *c, const json_t *o)
{
    Piece *p = c->p;
    read_place(c, o);
    const json_t *bits = get_array(c->r, o, c->s->name, "bits"), *pilots = get_array(c->r, o, c->s->name, "pilots");
    const json_t *count = json_object_get(o, "count");
    p->npilot = (uint32_t)json_array_size(pilots);
    p->bit = pool_array(c->r->pool, c->s->width, sizeof *p->bit);
    p->pilot = pool_array(c->r->pool, p->npilot, sizeof *p->pilot);
    p->pilot_value = pool_array(c->r->pool, p->npilot, sizeof *p->pilot_value);
    p->heads = pool_array(c->r->pool, (size_t)c->s->width + p->npilot + 1, sizeof *p->heads);
    if (count && !json_is_null(count)) read_count(c, get_object(c->r, o, c->s->name, "count"));
    read_bits(c, bits);
    read_pilots(c, pilots);
}

/* The pieces must hold every row once; only a hard-wired row needs no place. */
static void read_copy(Ctx *c, Copy *copy, const json_t *list)
{
    const ChipState *s = c->s;
    uint32_t next = 0;
    if (!json_is_array(list) || json_array_size(list) == 0) reader_fail(c->r, "state \"%s\": a copy has no pieces", s->name);
    copy->n = (uint32_t)json_array_size(list);
    copy->piece = pool_array(c->r->pool, copy->n, sizeof *copy->piece);
    for (uint32_t i = 0; i < copy->n; i++) {
        c->p = &copy->piece[i];
        read_piece(c, json_array_get(list, i));
        if (s->has_hard && next == s->hard_row && c->p->row0 == next + 1) next++;
        if (c->p->row0 != next) reader_fail(c->r, "state \"%s\": a piece begins at row %u, expected %u", s->name, c->p->row0, next);
        next += c->p->nrows;
    }
    if (s->has_hard && next == s->hard_row) next++;
    if (next != s->rows) reader_fail(c->r, "state \"%s\": a copy holds %u of %u rows", s->name, next, s->rows);
}

static void read_init(Reader *r, ChipState *s, const json_t *o)
{
    s->init = (InitKind)get_word(r, o, s->name, "init", init_words, 5);
    s->init_shift = json_object_get(o, "init_shift") ? (uint32_t)get_int(r, o, s->name, "init_shift", 0, 63) : 0;
    const json_t *rows = json_object_get(o, "row_init");
    if (rows && !json_is_null(rows)) {
        rows = get_array(r, o, s->name, "row_init");
        if (json_array_size(rows) > s->rows) reader_fail(r, "state \"%s\": %zu initial rows for %u", s->name, json_array_size(rows), s->rows);
        s->nrow_init = (uint32_t)json_array_size(rows);
        s->row_init = pool_array(r->pool, s->nrow_init, sizeof *s->row_init);
        for (uint32_t i = 0; i < s->nrow_init; i++)
            s->row_init[i] = json_to_u64(r, json_array_get(rows, i), s->name, "row_init", s->init == INIT_SYMBOL ? 64 : s->width);
    }
    if (s->init == INIT_SYMBOL) s->symbol = get_string(r, o, s->name, "symbol");
    if (s->init == INIT_IMAGE && s->width % 8) reader_fail(r, "state \"%s\": an image cannot fill rows of %u bits", s->name, s->width);
    if (s->init == INIT_IMAGE && s->base > UINT64_MAX - (uint64_t)s->rows * (s->width / 8)) reader_fail(r, "state \"%s\": wraps around the address space", s->name);
}

static void read_hard(Reader *r, ChipState *s, const json_t *o)
{
    const json_t *hard = json_object_get(o, "hard");
    if (!hard || json_is_null(hard)) return;
    hard = get_array(r, o, s->name, "hard");
    if (json_array_size(hard) != 2) reader_fail(r, "state \"%s\": \"hard\" is not [row, value]", s->name);
    s->has_hard = true;
    s->hard_row = (uint32_t)item_int(r, hard, s->name, "hard", 0, 0, s->rows - 1);
    s->hard_value = json_to_u64(r, json_array_get(hard, 1), s->name, "hard", s->width);
}

static void read_state(Reader *r, Model *m, ChipState *s, const json_t *o)
{
    s->name = get_string(r, o, "states", "name");
    s->kind = (StateKind)get_word(r, o, s->name, "kind", kind_words, 4);
    s->width = (uint32_t)get_int(r, o, s->name, "width", 1, 64);
    s->rows = (uint32_t)get_int(r, o, s->name, "rows", 1, 1 << 28);
    s->lane = (uint32_t)get_int(r, o, s->name, "lane", 1, s->width);
    s->line = json_object_get(o, "line") ? (uint32_t)get_int(r, o, s->name, "line", 0, INT32_MAX) : 0;
    s->file = json_object_get(o, "file") ? (uint32_t)get_int(r, o, s->name, "file", 0, INT32_MAX) : 0;
    s->base = json_object_get(o, "base") ? json_to_u64(r, json_object_get(o, "base"), s->name, "base", 64) : 0;
    read_init(r, s, o);
    read_hard(r, s, o);
    const json_t *copies = get_array(r, o, s->name, "copies");
    if (json_array_size(copies) > 256) reader_fail(r, "state \"%s\": %zu copies", s->name, json_array_size(copies));
    s->ncopies = (uint32_t)json_array_size(copies);
    s->copy = pool_array(r->pool, s->ncopies, sizeof *s->copy);
    Ctx c = {r, m, s, NULL};
    for (uint32_t i = 0; i < s->ncopies; i++) read_copy(&c, &s->copy[i], json_array_get(copies, i));
}

void read_states(Reader *r, Model *m, const json_t *list)
{
    m->nstates = (uint32_t)json_array_size(list);
    m->state = pool_array(r->pool, m->nstates, sizeof *m->state);
    for (uint32_t i = 0; i < m->nstates; i++) {
        read_state(r, m, &m->state[i], json_array_get(list, i));
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(m->state[j].name, m->state[i].name) == 0) reader_fail(r, "two states are called \"%s\"", m->state[i].name);
    }
}
