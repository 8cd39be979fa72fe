/* names.c: tables from interned names to declarations, in order of entry. Programs are small: a table is a list with a
 * hash on the pointer. */
#include "dsl.h"
#include <stdlib.h>
#include <string.h>

static uint32_t slot_of(const Names *t, const char *name)
{
    uint32_t i = (uint32_t)(((uintptr_t)name >> 4) * 2654435761u) & (t->cap - 1);
    while (t->key[i] && t->key[i] != name) i = (i + 1) & (t->cap - 1);
    return i;
}

Node *names_get(const Names *t, const char *name)
{
    return t->cap ? t->value[slot_of(t, name)] : NULL;
}

static void grow(Names *t)
{
    Names old = *t;
    t->cap = old.cap ? old.cap * 2 : 64;
    t->key = xalloc(t->cap * sizeof *t->key);
    t->value = xalloc(t->cap * sizeof *t->value);
    for (uint32_t i = 0; i < old.cap; i++)
        if (old.key[i]) {
            uint32_t s = slot_of(t, old.key[i]);
            t->key[s] = old.key[i];
            t->value[s] = old.value[i];
        }
}

bool names_put(Names *t, const char *name, Node *value)
{
    if (t->n * 2 >= t->cap) grow(t);
    uint32_t s = slot_of(t, name);
    if (t->key[s]) return false;
    t->key[s] = name;
    t->value[s] = value;
    t->n++;
    return true;
}

/* Edit distance, cut off at `limit`. */
static unsigned distance(const char *a, const char *b, unsigned limit)
{
    size_t n = strlen(a), m = strlen(b);
    if (n > 30 || m > 30) return limit + 1;
    unsigned row[32];
    for (size_t j = 0; j <= m; j++) row[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

const char *names_near(const Names *t, const char *name)
{
    const char *best = NULL;
    unsigned limit = strlen(name) > 4 ? 2 : strlen(name) > 2, least = limit + 1;
    for (uint32_t i = 0; i < t->cap; i++) {
        if (!t->key[i]) continue;
        unsigned d = distance(name, t->key[i], limit);
        /* The order of the table depends on addresses: ties go to the name that sorts first. */
        if (d < least || (d == least && best && strcmp(t->key[i], best) < 0)) {
            least = d;
            best = t->key[i];
        }
    }
    return least <= limit ? best : NULL;
}
