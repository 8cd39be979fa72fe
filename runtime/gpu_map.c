/* gpu_map.c: covers two-input operations by look-up tables, as is done for FPGAs: a cut of a value is a set of other values that determine it; the
 * best few cuts of each value are kept (merged from those of its two inputs), and from the wanted values down one cut each becomes a table. */
#include "gpu_map.h"
#include <stdlib.h>

enum { CUTS = 8 };
typedef struct {
    uint8_t n;
    uint16_t depth;
    float area; /* tables needed, shared ones by share */
    uint32_t leaf[GPU_MANY]; /* ascending */
} Cut;

typedef struct {
    const Values *v;
    uint32_t inputs, *uses, *need; /* need: depth at which a value must be there, where that is asked */
    bool deep, *wanted;
    uint8_t *ncuts;
    Cut *cut;       /* [values][CUTS], best first */
    uint64_t *pattern;
    uint32_t *stamp, now;
} Cover;

static uint32_t depth_of(const Cover *c, uint32_t i) { return c->v->data[i].n ? c->cut[(size_t)i * CUTS].depth : 0; }
static float area_of(const Cover *c, uint32_t i) { return c->v->data[i].n ? c->cut[(size_t)i * CUTS].area / (float)(c->uses[i] ? c->uses[i] : 1) : 0; }

static bool merge(const Cover *c, const Cut *a, const Cut *b, Cut *out)
{
    uint32_t i = 0, j = 0, n = 0;
    while (i < a->n || j < b->n) {
        if (n == c->inputs) return false;
        if (j == b->n || (i < a->n && a->leaf[i] < b->leaf[j])) out->leaf[n++] = a->leaf[i++];
        else if (i == a->n || b->leaf[j] < a->leaf[i]) out->leaf[n++] = b->leaf[j++];
        else out->leaf[n++] = a->leaf[i++], j++;
    }
    out->n = (uint8_t)n;
    out->depth = 0;
    out->area = 1;
    for (i = 0; i < n; i++) {
        uint32_t d = depth_of(c, out->leaf[i]);
        if (d > out->depth) out->depth = (uint16_t)d;
        out->area += area_of(c, out->leaf[i]);
    }
    out->depth++;
    return true;
}

static bool better(const Cover *c, const Cut *a, const Cut *b)
{
    if (c->deep && a->depth != b->depth) return a->depth < b->depth;
    if (a->area != b->area) return a->area < b->area;
    if (a->depth != b->depth) return a->depth < b->depth;
    return a->n < b->n;
}

static bool same_cut(const Cut *a, const Cut *b) { return a->n == b->n && !memcmp(a->leaf, b->leaf, a->n * sizeof *a->leaf); }

/* Into the value's list, in order, when it is among the best. */
static void keep(Cover *c, uint32_t i, const Cut *x)
{
    Cut *list = c->cut + (size_t)i * CUTS;
    uint32_t n = c->ncuts[i], at = n;
    for (uint32_t k = 0; k < n; k++)
        if (same_cut(&list[k], x)) return;
    while (at > 0 && better(c, x, &list[at - 1])) at--;
    if (at == CUTS) return;
    if (n < CUTS) c->ncuts[i]++, n++;
    memmove(list + at + 1, list + at, (n - 1 - at) * sizeof *list);
    list[at] = *x;
}

static void find_cuts(Cover *c, uint32_t i)
{
    const Value *v = &c->v->data[i];
    Cut plain[2], x;
    for (int k = 0; k < 2; k++) plain[k] = (Cut){.n = 1, .leaf = {v->in[k]}};
    for (uint32_t a = 0; a <= c->ncuts[v->in[0]]; a++)
        for (uint32_t b = 0; b <= c->ncuts[v->in[1]]; b++) {
            const Cut *p = a ? &c->cut[(size_t)v->in[0] * CUTS + a - 1] : &plain[0], *q = b ? &c->cut[(size_t)v->in[1] * CUTS + b - 1] : &plain[1];
            if (merge(c, p, q, &x)) keep(c, i, &x);
        }
}

/* The value over the cut's leaves, as a table of 64 entries. */
static uint64_t truth_of(Cover *c, uint32_t i)
{
    const Value *v = &c->v->data[i];
    if (c->stamp[i] == c->now) return c->pattern[i];
    uint64_t a = truth_of(c, v->in[0]), b = truth_of(c, v->in[1]), r = 0;
    for (int k = 0; k < 4; k++)
        if (v->truth >> k & 1) r |= (k & 1 ? a : ~a) & (k & 2 ? b : ~b);
    c->stamp[i] = c->now;
    return c->pattern[i] = r;
}

static GpuLut make_lut(Cover *c, uint32_t i, const Cut *cut)
{
    static const uint64_t column[GPU_MANY] = {0xaaaaaaaaaaaaaaaa, 0xcccccccccccccccc, 0xf0f0f0f0f0f0f0f0, 0xff00ff00ff00ff00, 0xffff0000ffff0000, 0xffffffff00000000};
    GpuLut l = {.value = i, .n = cut->n};
    c->now++;
    for (uint32_t k = 0; k < cut->n; k++) {
        l.in[k] = cut->leaf[k];
        c->pattern[cut->leaf[k]] = column[k];
        c->stamp[cut->leaf[k]] = c->now;
    }
    l.truth = truth_of(c, i);
    return l;
}

/* The cut that is used: the smallest that is there in time. */
static const Cut *choose_cut(const Cover *c, uint32_t i)
{
    const Cut *list = c->cut + (size_t)i * CUTS, *best = list;
    for (uint32_t k = 1; c->deep && k < c->ncuts[i]; k++)
        if (list[k].depth <= c->need[i] && (list[k].area < best->area || best->depth > c->need[i])) best = &list[k];
    return best;
}

static void take_wanted(Cover *c, GpuLuts *out)
{
    uint32_t deepest = 0, first = out->n;
    for (uint32_t i = 0; i < c->v->n; i++)
        if (c->wanted[i] && depth_of(c, i) > deepest) deepest = depth_of(c, i);
    for (uint32_t i = 0; i < c->v->n; i++) c->need[i] = deepest;
    for (uint32_t i = c->v->n; i-- > 0;) {
        if (!c->wanted[i] || !c->v->data[i].n) continue;
        const Cut *cut = choose_cut(c, i);
        for (uint32_t k = 0; k < cut->n; k++) {
            c->wanted[cut->leaf[k]] = true;
            if (c->need[cut->leaf[k]] > c->need[i] - 1) c->need[cut->leaf[k]] = c->need[i] - 1;
        }
        vec_push(out, make_lut(c, i, cut));
    }
    for (uint32_t a = first, b = out->n; a + 1 < b; a++) { /* they stand the wrong way round */
        GpuLut t = out->data[a];
        out->data[a] = out->data[--b];
        out->data[b] = t;
    }
}

void gpu_cover(const Values *v, const bool *wanted, uint32_t inputs, bool deep, GpuLuts *out)
{
    Pool *p = pool_new();
    Cover c = {.v = v, .inputs = inputs, .deep = deep};
    c.uses = pool_array(p, v->n, sizeof *c.uses), c.need = pool_array(p, v->n, sizeof *c.need);
    c.wanted = pool_array(p, v->n, sizeof *c.wanted), c.ncuts = pool_array(p, v->n, sizeof *c.ncuts);
    c.cut = pool_array(p, (size_t)v->n * CUTS, sizeof *c.cut);
    c.pattern = pool_array(p, v->n, sizeof *c.pattern), c.stamp = pool_array(p, v->n, sizeof *c.stamp);
    memcpy(c.wanted, wanted, v->n * sizeof *wanted);
    for (uint32_t i = 0; i < v->n; i++)
        for (uint32_t k = 0; k < v->data[i].n; k++) c.uses[v->data[i].in[k]]++;
    for (uint32_t i = 0; i < v->n; i++)
        if (v->data[i].n) find_cuts(&c, i);
    take_wanted(&c, out);
    pool_free(p);
}
