/* slice_family.c: forms of which at most one is on, as an address and a condition.
 *
 * Forms with the same channels and weights up to sign are a family: where the sign is the same in all of them a channel is part of the condition,
 * the other channels are address bits (several channels with the same signs everywhere are alternatives for one bit). With C the value of the
 * common part when all address bits are right, a form is C minus the weights of its wrong bits: so all are off when C is, and where even the
 * smallest weight would turn C off, only the addressed one is on. That last is checked in every pass, as is that an address bit is one.
 * Where channels weigh differently in different forms (an address in which one bit stands twice, or a part is known) the form that is on is looked up. */
#include "slice_priv.h"
#include <stdlib.h>

enum { MAX_ADDRESS = 15 };

static bool positive(const Forms *f, uint32_t form, uint32_t k) { return f->e.data[f->start[form] + k].w > 0; }

static bool same_signs(const Forms *f, const uint32_t *form, uint32_t n, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < n; i++)
        if (positive(f, form[i], a) != positive(f, form[i], b)) return false;
    return true;
}

static bool always_same(const Forms *f, const uint32_t *form, uint32_t n, uint32_t k)
{
    for (uint32_t i = 1; i < n; i++)
        if (positive(f, form[i], k) != positive(f, form[0], k)) return false;
    return true;
}

/* Entry k joins an address bit, or begins one. */
static bool add_address(PlaneFamily *y, Pool *p, const Forms *f, const uint32_t *form, uint32_t n, uint32_t *first, uint32_t k)
{
    Entry e = f->e.data[f->start[form[0]] + k];
    float w = fabsf(e.w);
    uint32_t b = 0, count = f->start[form[0] + 1] - f->start[form[0]];
    while (b < y->nbits && !same_signs(f, form, n, first[b], k)) b++;
    if (b == MAX_ADDRESS) return false;
    if (b == y->nbits) {
        y->nbits++;
        first[b] = k;
        y->bit[b].channel = pool_array(p, count, sizeof *y->bit[b].channel);
        y->bit[b].w = w;
        if (y->nbits == 1 || w < y->least) y->least = w;
    }
    y->bit[b].channel[y->bit[b].n++] = e.at;
    return y->bit[b].w == w;
}

static bool make_family(PlaneFamily *y, Pool *p, const Forms *f, const uint32_t *form, uint32_t n)
{
    uint32_t first[MAX_ADDRESS], count = f->start[form[0] + 1] - f->start[form[0]];
    *y = (PlaneFamily){.bit = pool_array(p, MAX_ADDRESS, sizeof *y->bit), .common = pool_array(p, count, sizeof *y->common)};
    for (uint32_t k = 0; k < count; k++)
        if (always_same(f, form, n, k)) y->common[y->ncommon++] = f->e.data[f->start[form[0]] + k];
        else if (!add_address(y, p, f, form, n, first, k)) return false;
    y->table = pool_array(p, (size_t)1 << y->nbits, sizeof *y->table);
    memset(y->table, 0xff, (sizeof *y->table) << y->nbits);
    y->nforms = n;
    y->pattern = pool_array(p, n, sizeof *y->pattern);
    y->bias = pool_array(p, n, sizeof *y->bias);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = 0;
        for (uint32_t b = 0; b < y->nbits; b++) at |= (uint32_t)positive(f, form[i], first[b]) << b;
        if (y->table[at] != UINT32_MAX) return false;
        y->table[at] = form[i];
        y->pattern[i] = at;
        y->bias[i] = f->bias[form[i]];
    }
    return true;
}

static bool lone(PlaneFamily *y, Pool *p, const Forms *f, uint32_t form)
{
    return make_family(y, p, f, &form, 1);
}

bool plane_families(PlaneFamilies *out, Pool *p, const Forms *f, const bool *want)
{
    enum { MOST_LONE = 256 };
    uint32_t n = 0, *order = xrealloc(NULL, (f->n + 1) * sizeof *order);
    bool ok = true;
    for (uint32_t i = 0; i < f->n; i++)
        if (want[i]) order[n++] = i;
    forms_sort(f, order, n);
    out->family = pool_array(p, n, sizeof *out->family);
    for (uint32_t i = 0, end; ok && i < n; i = end) {
        for (end = i + 1; end < n && forms_alike(f, order[i], order[end]); end++) {}
        if (make_family(&out->family[out->n], p, f, order + i, end - i)) out->n++;
        else if (end - i > MOST_LONE) ok = false;
        else
            for (uint32_t k = i; k < end; k++) lone(&out->family[out->n++], p, f, order[k]);
    }
    free(order);
    return ok;
}

/* ---- forms that share channels in any way ---- */
static bool is_off(double v, bool zero_is_off) { return v <= (double)OFF_BELOW || (zero_is_off && v == 0); }

/* From 17 on silu is the number itself and sigmoid 1 (runtime.h). */
static bool is_full(double v) { return v >= 17; }

enum { MAX_LOOKUP = 12, MAX_CHANNELS = 64 };
typedef struct {
    const Forms *f;
    const uint32_t *form;
    uint32_t n, nchannels, channel[MAX_CHANNELS];
    float *w; /* [n][MAX_CHANNELS] */
} Weights;

static float *weights_of(const Weights *m, uint32_t i) { return m->w + (size_t)i * MAX_CHANNELS; }

static bool read_weights(Weights *m, Pool *p)
{
    m->w = pool_array(p, (size_t)m->n * MAX_CHANNELS, sizeof *m->w);
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t e = m->f->start[m->form[i]]; e < m->f->start[m->form[i] + 1]; e++) {
            uint32_t c = 0;
            while (c < m->nchannels && m->channel[c] != m->f->e.data[e].at) c++;
            if (c == MAX_CHANNELS) return false;
            if (c == m->nchannels) m->channel[m->nchannels++] = m->f->e.data[e].at;
            weights_of(m, i)[c] = m->f->e.data[e].w;
        }
    return true;
}

static bool same_weights(const Weights *m, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (weights_of(m, i)[a] != weights_of(m, i)[b]) return false;
    return true;
}

static bool fixed_weight(const Weights *m, uint32_t c)
{
    for (uint32_t i = 1; i < m->n; i++)
        if (weights_of(m, i)[c] != weights_of(m, 0)[c]) return false;
    return true;
}

/* Channels that weigh the same in all forms are the condition, the others address bits; first[]: a channel of each. */
static bool split_channels(PlaneFamily *y, const Weights *m, Pool *p, uint32_t *first)
{
    for (uint32_t c = 0; c < m->nchannels; c++) {
        uint32_t b = 0;
        if (fixed_weight(m, c)) {
            y->common[y->ncommon++] = (Entry){m->channel[c], weights_of(m, 0)[c]};
            continue;
        }
        while (b < y->nbits && !same_weights(m, first[b], c)) b++;
        if (b == MAX_LOOKUP) return false;
        if (b == y->nbits) first[y->nbits++] = c, y->bit[b].channel = pool_array(p, m->nchannels, sizeof *y->bit[b].channel);
        y->bit[b].channel[y->bit[b].n++] = m->channel[c];
    }
    return true;
}

static double value_at(const Weights *m, uint32_t i, const uint32_t *first, uint32_t nbits, uint32_t address)
{
    double v = (double)m->f->bias[m->form[i]];
    for (uint32_t b = 0; b < nbits; b++) v += address >> b & 1 ? (double)weights_of(m, i)[first[b]] : 0;
    return v;
}

/* Without a condition: a form is on or off for each address; addresses that say anything else do not occur, which is checked. */
static void look_up_plainly(PlaneFamily *y, const Weights *m, Pool *p, const uint32_t *first)
{
    y->never = pool_array(p, (size_t)1 << y->nbits, sizeof *y->never);
    y->bias[0] = y->least = 1000; /* on, whatever that is */
    for (uint32_t a = 0; a < 1u << y->nbits; a++)
        for (uint32_t i = 0; i < m->n; i++) {
            double v = value_at(m, i, first, y->nbits, a);
            if (is_off(v, true)) continue;
            y->never[a] |= !is_full(v) || y->table[a] != UINT32_MAX;
            y->table[a] = i;
        }
}

/* The form that is on has the greatest value there is; false when that is two forms'. */
static bool look_up_greatest(PlaneFamily *y, const Weights *m, const uint32_t *first)
{
    double base = -INFINITY, least = INFINITY;
    for (uint32_t a = 0; a < 1u << y->nbits; a++)
        for (uint32_t i = 0; i < m->n; i++) base = fmax(base, value_at(m, i, first, y->nbits, a));
    for (uint32_t a = 0; a < 1u << y->nbits; a++)
        for (uint32_t i = 0; i < m->n; i++) {
            double below = base - value_at(m, i, first, y->nbits, a);
            if (below > 0) least = fmin(least, below);
            else if (y->table[a] != UINT32_MAX) return false;
            else y->table[a] = i;
        }
    y->least = (float)least, y->bias[0] = (float)base;
    return true;
}

bool plane_lookup(PlaneFamily *y, Pool *p, const Forms *f, const uint32_t *form, uint32_t n)
{
    Weights m = {.f = f, .form = form, .n = n};
    uint32_t first[MAX_LOOKUP];
    *y = (PlaneFamily){.exact = true, .nforms = 1, .bit = pool_array(p, MAX_LOOKUP, sizeof *y->bit), .common = pool_array(p, MAX_CHANNELS, sizeof *y->common)};
    y->pattern = pool_array(p, 1, sizeof *y->pattern), y->bias = pool_array(p, 1, sizeof *y->bias);
    if (!read_weights(&m, p) || !split_channels(y, &m, p, first)) return false;
    y->table = pool_array(p, (size_t)1 << y->nbits, sizeof *y->table);
    memset(y->table, 0xff, (sizeof *y->table) << y->nbits);
    if (y->ncommon) return look_up_greatest(y, &m, first);
    look_up_plainly(y, &m, p, first);
    return true;
}

/* ---- compilation ---- */
/* A channel that may be wider than a bit is one all the same, which is checked. */
static Ref narrowed(Block *k, const Int *c)
{
    Ref plane[MAX_PLANES + 1], wide = FALSE_REF;
    Term t[MAX_PLANES];
    uint32_t width = bits_width((uint64_t)(c->hi - c->lo)) + 1;
    if (width > MAX_PLANES) k->why = "an address bit is no bit";
    if (k->why) return FALSE_REF;
    for (uint32_t p = 0; p < c->n; p++) t[p] = (Term){c->plane[p], 1ll << p};
    bits_add(k->g, t, c->n, c->lo, width, plane);
    for (uint32_t p = 1; p < width; p++) wide = bits_or(k->g, wide, plane[p]);
    if (wide != FALSE_REF) vec_push(&k->check, ((CheckNode){wide, CHECK_FATAL, 0, "an address bit is no bit"}));
    return plane[0];
}

/* An address bit's channels hold one plane each, above a constant; `exact`: above 0. */
static Ref address_bit(Block *k, Int **x, const AddressPlane *a, bool exact, double *low)
{
    Ref bit[64];
    uint32_t n = 0;
    *low = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        const Int *c = channel_int(x, a->channel[i]);
        if (n == 64) k->why = "an address bit of too many alternatives";
        if (k->why) return FALSE_REF;
        if (c->n > 1 || (exact && c->lo != 0)) {
            bit[n++] = narrowed(k, c);
            continue;
        }
        if (c->n) bit[n++] = c->plane[0];
        *low += (double)c->lo;
    }
    return one_of(k, bit, n, "two alternatives of an address bit are 1");
}

/* The common part's bias with all address bits right, which must be the same for all forms. */
static bool find_base(Block *k, const PlaneFamily *y, const double *low, double *base)
{
    for (uint32_t i = 0; i < y->nforms; i++) {
        double mine = (double)y->bias[i];
        for (uint32_t b = 0; b < y->nbits; b++) {
            double w = (double)y->bit[b].w;
            mine += y->pattern[i] >> b & 1 ? w * (low[b] + 1) : -w * low[b];
        }
        if (i && mine != *base) k->why = "addresses that are no family";
        *base = mine;
    }
    return !k->why;
}

bool family_planes(Block *k, Int **x, const PlaneFamily *y, FamilyUse use, Ref *address, Ref *on, double *value)
{
    bool zero_is_off = use != FAMILY_BETA;
    double base = 0, low[MAX_ADDRESS];
    Table t;
    for (uint32_t b = 0; b < y->nbits; b++) address[b] = address_bit(k, x, &y->bit[b], y->exact, &low[b]);
    if (k->why || !find_base(k, y, low, &base)) return false;
    if (y->never) vec_push(&k->check, ((CheckNode){bits_table(k->g, address, y->nbits, y->never, 1u << y->nbits), CHECK_FATAL, 0, "an address that cannot be"}));
    if (!form_table(k, x, y->common, y->ncommon, base, &t)) {
        k->why = "a condition is too wide";
        return false;
    }
    uint8_t *full = xrealloc(NULL, t.size), *bad = xrealloc(NULL, t.size);
    *value = INFINITY;
    for (uint32_t i = 0; i < t.size; i++)
        if (is_full(t.value[i]) && t.value[i] < *value) *value = t.value[i];
    for (uint32_t i = 0; i < t.size; i++) {
        double v = t.value[i];
        full[i] = is_full(v);
        bad[i] = !full[i] && !is_off(v, zero_is_off);
        if (full[i] && use == FAMILY_GATE && v != *value) bad[i] = 1;
        if (full[i] && y->nbits && !is_off(v - (double)y->least, zero_is_off)) bad[i] = 1;
    }
    *on = table_plane(k, &t, full);
    Ref wrong = table_plane(k, &t, bad);
    if (wrong != FALSE_REF) vec_push(&k->check, ((CheckNode){wrong, CHECK_FATAL, 0, "a condition is neither on nor off"}));
    free(full);
    free(bad);
    return !k->why;
}
