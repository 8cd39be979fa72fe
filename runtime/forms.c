/* forms.c: rows of a weight matrix as affine forms. Equal rows are one form: the gates of all lanes of a head, the keys of
 * heads that share an address, the code bits of all kinds of token. */
#include "sparse.h"
#include <stdlib.h>

void forms_init(Forms *f)
{
    *f = (Forms){.nslots = 64};
    f->slot = xrealloc(NULL, f->nslots * sizeof *f->slot);
    memset(f->slot, 0xff, f->nslots * sizeof *f->slot);
    f->start = xrealloc(NULL, sizeof *f->start);
    f->start[0] = 0;
    vec_push(&f->e, ((Entry){0, 0})); /* so that e.data is never NULL */
    f->e.n = 0;
}

void forms_free(Forms *f)
{
    free(f->bias);
    free(f->start);
    free(f->e.data);
    free(f->slot);
}

static uint32_t hash_words(uint32_t h, const void *data, size_t n)
{
    const uint32_t *w = data;
    for (size_t i = 0; i < n; i++) h = (h ^ w[i]) * 0x9e3779b1u, h ^= h >> 15;
    return h;
}

static uint32_t form_hash(const Forms *f, uint32_t i)
{
    uint32_t h = hash_words(1, &f->bias[i], 1);
    return hash_words(h, f->e.data + f->start[i], 2 * (size_t)(f->start[i + 1] - f->start[i]));
}

static bool form_equal(const Forms *f, uint32_t i, uint32_t j)
{
    uint32_t n = f->start[i + 1] - f->start[i];
    return f->bias[i] == f->bias[j] && n == f->start[j + 1] - f->start[j] &&
           memcmp(f->e.data + f->start[i], f->e.data + f->start[j], n * sizeof(Entry)) == 0;
}

static uint32_t *find_slot(Forms *f, uint32_t i)
{
    uint32_t k = form_hash(f, i) & (f->nslots - 1);
    while (f->slot[k] != UINT32_MAX && !form_equal(f, f->slot[k], i)) k = (k + 1) & (f->nslots - 1);
    return &f->slot[k];
}

static void rehash(Forms *f)
{
    f->nslots *= 4;
    f->slot = xrealloc(f->slot, f->nslots * sizeof *f->slot);
    memset(f->slot, 0xff, f->nslots * sizeof *f->slot);
    for (uint32_t i = 0; i < f->n; i++) *find_slot(f, i) = i;
}

static void reserve(Forms *f)
{
    if (f->n < f->cap) return;
    f->cap = f->cap ? f->cap * 2 : 64;
    f->bias = xrealloc(f->bias, f->cap * sizeof *f->bias);
    f->start = xrealloc(f->start, (f->cap + 1) * sizeof *f->start);
}

/* Makes form n of the entries from `first` on, unless there is one like it. */
static uint32_t intern_form(Forms *f, uint32_t first, float bias)
{
    uint32_t i = f->n;
    f->bias[i] = bias;
    f->start[i] = first;
    f->start[i + 1] = f->e.n;
    uint32_t *slot = find_slot(f, i);
    if (*slot != UINT32_MAX) {
        f->e.n = first;
        return *slot;
    }
    *slot = i;
    f->n++;
    if (f->n * 2 > f->nslots) rehash(f);
    return i;
}

uint32_t forms_add(Forms *f, const Basis *basis, const int32_t *col, const float *value, uint32_t n, float scale)
{
    reserve(f);
    uint32_t first = f->e.n;
    float bias = 0;
    for (uint32_t k = 0; k < n; k++) {
        float w = value[k] * basis->gain[col[k]] * scale;
        if (basis->pilot[col[k]] != 0) bias += w * basis->pilot[col[k]];
        else if (w != 0) vec_push(&f->e, ((Entry){(uint32_t)col[k], w}));
    }
    return intern_form(f, first, bias);
}

static uint32_t add_entries(Forms *to, const Forms *f, uint32_t i, float bias)
{
    reserve(to);
    uint32_t first = to->e.n;
    for (uint32_t k = f->start[i]; k < f->start[i + 1]; k++) vec_push(&to->e, f->e.data[k]);
    return intern_form(to, first, bias);
}

uint32_t forms_add_form(Forms *to, const Forms *f, uint32_t i) { return add_entries(to, f, i, f->bias[i]); }
uint32_t forms_add_part(Forms *to, const Forms *f, uint32_t i) { return add_entries(to, f, i, 0); }

void forms_copy(Forms *to, const Forms *f, uint32_t i)
{
    reserve(to);
    to->bias[to->n] = f->bias[i];
    for (uint32_t k = f->start[i]; k < f->start[i + 1]; k++) vec_push(&to->e, f->e.data[k]);
    to->start[++to->n] = to->e.n;
}

void forms_remap(Forms *f, const uint32_t *map)
{
    for (uint32_t i = 0; i < f->e.n; i++) f->e.data[i].at = map[f->e.data[i].at];
}

Lists lists_make(Pool *p, const uint32_t *key, uint32_t n, uint32_t keys)
{
    Lists l = {pool_array(p, (size_t)keys + 2, sizeof(uint32_t)), NULL};
    uint32_t *at = l.start + 1; /* at[k] ends up as the end of list k, which is start[k + 1] */
    for (uint32_t i = 0; i < n; i++)
        if (key[i] != UINT32_MAX) at[key[i] + 1]++;
    for (uint32_t k = 0; k < keys; k++) at[k + 1] += at[k];
    l.item = pool_array(p, at[keys], sizeof *l.item);
    for (uint32_t i = 0; i < n; i++)
        if (key[i] != UINT32_MAX) l.item[at[key[i]]++] = i;
    return l;
}

/* ---- forms of one shape ---- */

static _Thread_local const Forms *sorting; /* qsort passes nothing on; chips are opened in several threads */

static int by_shape(const Forms *f, uint32_t i, uint32_t j)
{
    uint32_t n = f->start[i + 1] - f->start[i], m = f->start[j + 1] - f->start[j];
    if (n != m) return n < m ? -1 : 1;
    for (uint32_t k = 0; k < n; k++) {
        const Entry *x = &f->e.data[f->start[i] + k], *y = &f->e.data[f->start[j] + k];
        if (x->at != y->at) return x->at < y->at ? -1 : 1;
        if (fabsf(x->w) != fabsf(y->w)) return fabsf(x->w) < fabsf(y->w) ? -1 : 1;
    }
    return 0;
}

static int by_shape_then_number(const void *p, const void *q)
{
    uint32_t i = *(const uint32_t *)p, j = *(const uint32_t *)q;
    int c = by_shape(sorting, i, j);
    return c ? c : i < j ? -1 : i > j;
}

bool forms_alike(const Forms *f, uint32_t i, uint32_t j) { return by_shape(f, i, j) == 0; }

void forms_sort(const Forms *f, uint32_t *form, uint32_t n)
{
    sorting = f;
    if (n) qsort(form, n, sizeof *form, by_shape_then_number);
}
