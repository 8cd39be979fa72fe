/* gpu_image.c: what a program has besides waves, as plain arrays: checks, the state's cells, past planes, tokens. */
#include "gpu_plan.h"
#include <stdlib.h>

/* ---- cells ---- */
static uint32_t add_slots(GpuImage *g, const PackWord *w, Field f)
{
    uint32_t at = g->slot.n;
    for (uint32_t i = 0; i < f.bits; i++) vec_push(&g->slot, gpu_slot(g->slice, w[f.word].slot[f.shift + i]));
    return at;
}

/* number[table entry]; NULL: the entry itself. Rows of state that is all planes have no table, and nobody asks for them. */
static uint32_t add_select(GpuImage *g, const Cells *c, const Select *s, const uint32_t *number)
{
    if (!s->table) return vec_push(&g->select, ((GpuSelect){0}));
    GpuSelect x = {add_slots(g, c->in, s->field), s->field.bits, g->table.n};
    for (size_t i = 0; i < (size_t)1 << s->field.bits; i++) vec_push(&g->table, s->table[i] == GPU_NONE || !number ? s->table[i] : number[s->table[i]]);
    return vec_push(&g->select, x);
}

/* Where each bundle's rows lie. */
static uint32_t *add_rows(GpuImage *g, const Cells *c, uint32_t dk)
{
    uint32_t *at = xrealloc(NULL, (c->nbundles + 1) * sizeof *at);
    for (uint32_t b = 0; b < c->nbundles; b++) {
        at[b] = g->table.n;
        for (uint32_t r = 0; r < dk; r++) vec_push(&g->table, (uint32_t)c->bundle[b].row_at[r]);
    }
    return at;
}

static GpuItem make_item(const Cells *c, uint32_t bundle, uint64_t mask, const uint32_t *rows, uint32_t key)
{
    const Bundle *b = &c->bundle[bundle];
    return (GpuItem){key, rows[bundle], b->base, b->bytes, {(uint32_t)mask, (uint32_t)(mask >> 32)}, 0, 0};
}

static GpuItem write_item(GpuImage *g, const Cells *c, uint32_t e, const uint32_t *rows, uint32_t keys)
{
    const CellWrite *w = &c->write_list[e];
    GpuItem x = make_item(c, w->bundle, w->mask, rows, keys + c->bundle[w->bundle].key);
    x.at = add_slots(g, c->in, w->value);
    return x;
}

static GpuItem read_item(GpuImage *g, const Cells *c, uint32_t e, const uint32_t *rows, uint32_t keys)
{
    const CellRead *r = &c->read_list[e];
    GpuItem x = make_item(c, r->bundle, r->mask, rows, keys + c->bundle[r->bundle].query);
    (void)g;
    x.at = (uint32_t)r->out.word << 8 | r->out.shift;
    return x;
}

/* Of each list, entries start[i] to start[i + 1], the first item's number, or GPU_NONE. */
static uint32_t *add_items(GpuImage *g, const Cells *c, const uint32_t *start, uint32_t lists, GpuItem (*item)(GpuImage *, const Cells *, uint32_t, const uint32_t *, uint32_t),
                           const uint32_t *rows, uint32_t keys)
{
    uint32_t *first = xrealloc(NULL, (lists + 1) * sizeof *first);
    for (uint32_t i = 0; i < lists; i++) {
        first[i] = start[i] == start[i + 1] ? GPU_NONE : g->item.n;
        for (uint32_t e = start[i]; e < start[i + 1]; e++) {
            GpuItem x = item(g, c, e, rows, keys);
            x.last = e + 1 == start[i + 1];
            vec_push(&g->item, x);
        }
    }
    return first;
}

static uint32_t slot_at(const GpuImage *g, const Cells *c, Field f) { return gpu_slot(g->slice, c->in[f.word].slot[f.shift]); }

static void add_counts(GpuImage *g, const Cells *c, const uint32_t *rows, uint32_t keys)
{
    for (uint32_t i = 0; i < c->ncount; i++) {
        const CellCount *n = &c->count[i];
        const Bundle *b = &c->bundle[n->bundle];
        vec_push(&g->count, ((GpuCount){slot_at(g, c, n->when), keys + b->key, rows[n->bundle], b->base, b->bytes, n->shift, n->bits, n->amount}));
    }
}

static void add_outs(GpuImage *g, const Cells *c, GpuCells *out)
{
    out->nout = c->nout;
    out->out = g->outs.n / 2;
    for (uint32_t i = 0; i < c->nout; i++)
        for (uint32_t k = 0; k < c->out[i].n; k++) {
            vec_push(&g->outs, gpu_slot(g->slice, c->out[i].slot[k]));
            vec_push(&g->outs, (uint16_t)(i << 6 | k));
        }
    out->nplanes = g->outs.n / 2 - out->out;
    if (c->nout > g->g.nout) g->g.nout = c->nout;
}

static uint32_t add_cells(GpuImage *g, const SliceDelta *d)
{
    const Cells *c = &d->cells;
    GpuCells out = {0};
    uint32_t *rows = add_rows(g, c, d->g->dk), keys = g->select.n;
    for (uint32_t i = 0; i < c->nkey; i++) add_select(g, c, &c->key[i], NULL);
    uint32_t *writes = add_items(g, c, c->write_start, d->b.n + d->counting.n, write_item, rows, keys);
    uint32_t *reads = add_items(g, c, c->read_start, d->z.n, read_item, rows, keys);
    out.write = g->select.n, out.nwrite = c->nwrite;
    for (uint32_t i = 0; i < c->nwrite; i++) add_select(g, c, &c->write[i], writes);
    out.read = g->select.n, out.nread = c->nread;
    for (uint32_t i = 0; i < c->nread; i++) add_select(g, c, &c->read[i], reads);
    out.count = g->count.n, out.ncount = c->ncount;
    add_counts(g, c, rows, keys);
    add_outs(g, c, &out);
    free(rows);
    free(writes);
    free(reads);
    return vec_push(&g->cells, out);
}

/* State that is planes: what it becomes; and where it stands in a machine's state. */
static void add_kept(GpuImage *g, const SliceDelta *d, GpuStage *st)
{
    st->keep = g->pasts.n;
    for (uint32_t i = 0; i < d->bundles.n; i++) {
        const DeltaBundle *b = &d->bundles.data[i];
        for (uint32_t n = 0; b->slot && n < d->cells.bundle[i].bits; n++) {
            if (b->next[n] != b->slot[n]) vec_push(&g->pasts, ((GpuPast){.n = 1, .slot = {gpu_slot(g->slice, b->next[n]), gpu_slot(g->slice, b->slot[n])}}));
            vec_push(&g->home, gpu_slot(g->slice, b->slot[n]));
            vec_push(&g->home, d->cells.bundle[i].base * 8 + n);
        }
    }
    st->nkeep = g->pasts.n - st->keep;
}

void gpu_image_stage(GpuImage *g, Slice *s, uint32_t i, GpuStage *st)
{
    const Stage *from = &s->stage[i];
    st->check = g->check.n, st->nchecks = from->check.n;
    for (uint32_t k = 0; k < from->check.n; k++) vec_push(&g->check, gpu_slot(s, from->check.data[k].slot));
    if (from->kind == STAGE_IN) {
        st->cells = add_cells(g, s->delta[from->layer]);
        add_kept(g, s->delta[from->layer], st);
        st->past = g->pasts.n;
        for (uint32_t k = 0; k < s->past[from->layer].n; k++) {
            const Past *p = &s->past[from->layer].data[k];
            for (uint32_t b = 0; b < p->bits; b++) {
                GpuPast x = {.n = (uint16_t)p->taps, .slot = {gpu_slot(s, p->now[b])}};
                for (uint32_t t = 1; t <= p->taps; t++) x.slot[t] = gpu_slot(s, p->past[t][b]);
                vec_push(&g->pasts, x);
            }
        }
        st->npast = g->pasts.n - st->past;
    }
    vec_push(&g->stage, *st);
}

/* ---- tokens ---- */
static uint64_t word_of(const Slice *s, const ChipKind *k, uint64_t payload) { return (uint64_t)(k - s->m->kind) | payload << s->kind_bits; }

static uint8_t role_of(const ChipKind *k)
{
    uint8_t role = k->role == CHIP_TRACE ? GPU_TRACE : k->role == CHIP_OUTPUT ? GPU_OUTPUT : k->role == CHIP_TAKE ? GPU_TAKE : GPU_STOP;
    return role | (k->last ? GPU_LAST : 0);
}

static void describe_tokens(Gpu *g, GpuImage *image, const Slice *s)
{
    const Model *m = s->m;
    const ChipKind *start = model_kind(m, m->start);
    GpuPast begun = {.n = MAX_TAPS - 1, .slot = {GPU_ONES}};
    g->nkinds = m->nkinds, g->kind_bits = s->kind_bits, g->token_bits = s->kind_bits + s->payload_bits;
    g->special = gpu_slot(s, s->special), g->retired = gpu_slot(s, s->retired);
    g->start = word_of(s, start, m->start - start->base);
    for (uint32_t i = 0; i < m->nkinds; i++)
        if (m->kind[i].role == CHIP_INPUT) g->has_input = 1, g->input = i, g->input_bits = m->kind[i].width;
    for (uint32_t i = 0; i < m->nkinds; i++) vec_push(&image->kind, role_of(&m->kind[i]));
    for (uint32_t t = 1; t < MAX_TAPS; t++) begun.slot[t] = gpu_slot(s, s->begun[t]);
    for (uint32_t b = 0; b < g->token_bits; b++) vec_push(&image->token, gpu_slot(s, s->token_in[b]));
    for (uint32_t b = 0; b < g->token_bits; b++) vec_push(&image->token, gpu_slot(s, s->token_out[b]));
    g->begun = vec_push(&image->pasts, begun);
}

/* ---- one piece ---- */
/* Copies the array behind what is there already and returns its place; NULL piece: only counts. */
static void *append(uint8_t *piece, size_t *at, const void *data, size_t n, size_t size)
{
    size_t here = (*at + 15) / 16 * 16;
    *at = here + n * size;
    if (!piece) return NULL;
    if (n) memcpy(piece + here, data, n * size);
    return piece + here;
}

static size_t lay_out(Gpu *g, uint8_t *piece, const GpuImage *image)
{
    size_t at = sizeof *g;
#define ARRAY(field, from, length) g->length = image->from.n, g->field = append(piece, &at, image->from.data, image->from.n, sizeof *image->from.data)
    ARRAY(stage, stage, nstage), ARRAY(cells, cells, ncells), ARRAY(select, select, nselect), ARRAY(item, item, nitem);
    ARRAY(count, count, ncount), ARRAY(pasts, pasts, npasts), ARRAY(slot, slot, nslot), ARRAY(table, table, ntable), ARRAY(outs, outs, nouts), ARRAY(check, check, ncheck);
#undef ARRAY
    g->op = append(piece, &at, image->op.data, image->op.n, sizeof *image->op.data);
    g->first = append(piece, &at, image->first.data, image->first.n, sizeof *image->first.data);
    g->token_in = append(piece, &at, image->token.data, g->token_bits, sizeof *image->token.data);
    g->token_out = append(piece, &at, image->token.data + g->token_bits, g->token_bits, sizeof *image->token.data);
    g->home = append(piece, &at, image->home.data, image->home.n, sizeof *image->home.data);
    g->nhome = image->home.n / 2;
    g->kind = append(piece, &at, image->kind.data, g->nkinds, 1);
    g->bytes = at;
    return at;
}

Gpu *gpu_image_make(GpuImage *image, Slice *s)
{
    Gpu g = image->g;
    describe_tokens(&g, image, s);
    g.state_words = (uint32_t)((slice_bytes(s) + 7) / 8 * 2);
    g.nstages = s->nstages;
    size_t bytes = lay_out(&g, NULL, image);
    uint8_t *piece = calloc(1, bytes);
    if (!piece) die("out of memory");
    lay_out(&g, piece, image);
    memcpy(piece, &g, sizeof g);
    free(image->op.data), free(image->stage.data), free(image->cells.data), free(image->select.data), free(image->item.data);
    free(image->count.data), free(image->pasts.data), free(image->slot.data), free(image->table.data), free(image->outs.data), free(image->check.data), free(image->kind.data);
    free(image->token.data), free(image->home.data), free(image->first.data);
    return (Gpu *)(void *)piece;
}
