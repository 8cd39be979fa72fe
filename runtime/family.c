/* family.c: forms that differ only in which of several address bits they want: the beta or the gate of each group of rows
 * of a memory. All forms of a family have the same channels with the same weights up to sign; channels whose sign is the
 * same in all of them make the common condition, the others the address. An address bit may be several channels that
 * always have the same sign (alternatives of which one is used).
 *
 * With C the sum of the common part, a form's value is C + B - (the weights of its wrong address bits), B being the same
 * in the whole family. So all are off when C + B is; else, where any wrong bit would turn a form off, only the addressed
 * one is on. An address bit that is neither 0 nor 1 makes all forms be computed. */
#include "sparse.h"
#include <stdlib.h>

enum { MIN_FAMILY = 4, MAX_ADDRESS = 12, NO_FORM = 0xffffffff };

typedef struct {
    uint32_t n, *channel; /* [n] */
} AddressBit;
typedef struct {
    float base, least;    /* B, and the smallest weight of an address bit */
    uint32_t ncommon;
    Entry *common;
    uint32_t nbits;
    AddressBit bit[MAX_ADDRESS];
    uint32_t nforms, *form; /* numbers in Families.forms and in the caller's list: form[2 k], form[2 k + 1] */
    uint32_t *table;        /* [2^nbits] index into form, or NO_FORM */
} Family;
struct Families {
    Forms forms;
    bool zero_is_off;
    VEC(Family) family;
};

static const Entry *entry_of(const Forms *f, uint32_t form, uint32_t k) { return &f->e.data[f->start[form] + k]; }
static bool positive(const Forms *f, uint32_t form, uint32_t k) { return entry_of(f, form, k)->w > 0; }

static bool same_signs(const Forms *f, const uint32_t *form, uint32_t n, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < n; i++)
        if (positive(f, form[i], a) != positive(f, form[i], b)) return false;
    return true;
}

static bool constant_sign(const Forms *f, const uint32_t *form, uint32_t n, uint32_t k)
{
    for (uint32_t i = 1; i < n; i++)
        if (positive(f, form[i], k) != positive(f, form[0], k)) return false;
    return true;
}

/* Entry k becomes part of an address bit; false when there are too many. lead[b] is the first entry of bit b. */
static bool add_address(Family *y, Pool *p, const Forms *f, const uint32_t *form, uint32_t n, uint32_t *lead, uint32_t k)
{
    const Entry *e = entry_of(f, form[0], k);
    uint32_t b = 0, entries = f->start[form[0] + 1] - f->start[form[0]];
    while (b < y->nbits && !(same_signs(f, form, n, lead[b], k) && fabsf(entry_of(f, form[0], lead[b])->w) == fabsf(e->w))) b++;
    if (b == MAX_ADDRESS) return false;
    if (b == y->nbits) {
        lead[y->nbits++] = k;
        y->bit[b] = (AddressBit){0, pool_array(p, entries, sizeof(uint32_t))};
        if (fabsf(e->w) < y->least) y->least = fabsf(e->w);
    }
    y->bit[b].channel[y->bit[b].n++] = e->at;
    return true;
}

/* Fills the table; false when two forms want the same address or their B differ. */
static bool fill_table(Family *y, const Forms *f, const uint32_t *form, uint32_t n, const uint32_t *lead)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t index = 0;
        float base = f->bias[form[i]];
        for (uint32_t b = 0; b < y->nbits; b++) {
            if (!positive(f, form[i], lead[b])) continue;
            index |= 1u << b;
            base += entry_of(f, form[i], lead[b])->w;
        }
        if (i == 0) y->base = base;
        if (base != y->base || y->table[index] != NO_FORM) return false;
        y->table[index] = i;
    }
    return true;
}

static bool make_family(Family *y, Pool *p, const Forms *f, const uint32_t *form, uint32_t n)
{
    uint32_t lead[MAX_ADDRESS], entries = f->start[form[0] + 1] - f->start[form[0]];
    if (n < MIN_FAMILY) return false;
    *y = (Family){.least = INFINITY, .common = pool_array(p, entries, sizeof *y->common)};
    for (uint32_t k = 0; k < entries; k++)
        if (constant_sign(f, form, n, k)) y->common[y->ncommon++] = *entry_of(f, form[0], k);
        else if (!add_address(y, p, f, form, n, lead, k)) return false;
    if (y->nbits == 0) return false;
    y->table = pool_array(p, (size_t)1 << y->nbits, sizeof *y->table);
    memset(y->table, 0xff, sizeof *y->table << y->nbits);
    return fill_table(y, f, form, n, lead);
}

static void keep_family(Families *t, Pool *p, Family y, const Forms *f, const uint32_t *form, uint32_t n, bool *taken)
{
    y.nforms = n;
    y.form = pool_array(p, 2 * (size_t)n, sizeof *y.form);
    for (uint32_t i = 0; i < n; i++) {
        y.form[2 * i] = t->forms.n;
        y.form[2 * i + 1] = form[i];
        taken[form[i]] = true;
        forms_copy(&t->forms, f, form[i]);
    }
    vec_push(&t->family, y);
}

Families *families_make(Pool *p, const Forms *f, bool *taken, bool zero_is_off)
{
    Families *t = pool_alloc(p, sizeof *t);
    uint32_t n = 0, *order = xrealloc(NULL, (f->n + 1) * sizeof *order);
    forms_init(&t->forms);
    t->zero_is_off = zero_is_off;
    for (uint32_t i = 0; i < f->n; i++)
        if (!taken[i]) order[n++] = i;
    forms_sort(f, order, n);
    for (uint32_t i = 0, end; i < n; i = end) {
        Family y;
        for (end = i + 1; end < n && forms_alike(f, order[i], order[end]); end++) {}
        if (make_family(&y, p, f, order + i, end - i)) keep_family(t, p, y, f, order + i, end - i, taken);
    }
    free(order);
    return t;
}

void families_close(Families *t)
{
    if (!t) return;
    forms_free(&t->forms);
    free(t->family.data);
}

/* ---- one token ---- */
static uint32_t compute_all(const Families *t, const Family *y, const Stream *s, uint32_t n, uint32_t *on, float *value)
{
    for (uint32_t i = 0; i < y->nforms; i++) {
        float v = form_value(&t->forms, y->form[2 * i], s->x);
        if (!gate_on(v, t->zero_is_off)) continue;
        on[n] = y->form[2 * i + 1];
        value[n++] = v;
    }
    return n;
}

/* The address; false when a bit of it is neither 0 nor 1. */
static bool address(const Family *y, const float *x, uint32_t *index)
{
    *index = 0;
    for (uint32_t b = 0; b < y->nbits; b++) {
        float v = 0;
        for (uint32_t k = 0; k < y->bit[b].n; k++) v += x[y->bit[b].channel[k]];
        if (v != 0 && v != 1) return false;
        *index |= (uint32_t)(v == 1) << b;
    }
    return true;
}

uint32_t families_eval(const Families *t, const Stream *s, uint32_t n, uint32_t *on, float *value)
{
    for (uint32_t i = 0; i < t->family.n; i++) {
        const Family *y = &t->family.data[i];
        float top = y->base;
        uint32_t index;
        for (uint32_t k = 0; k < y->ncommon; k++) top += y->common[k].w * s->x[y->common[k].at];
        /* an address with bits outside 0..1 could reach more than top: it is looked at first */
        bool plain = address(y, s->x, &index);
        if (plain && !(top > OFF_BELOW)) continue;
        if (!plain || top - y->least > OFF_BELOW) {
            n = compute_all(t, y, s, n, on, value);
            continue;
        }
        if (y->table[index] == NO_FORM || !gate_on(top, t->zero_is_off)) continue;
        on[n] = y->form[2 * y->table[index] + 1];
        value[n++] = top;
    }
    return n;
}
