/* trace.c: reads a token trace, strictly: the lines that `run --trace` writes and no others. */
#include "trace.h"
#include <errno.h>
#include <stdlib.h>

enum { BUFFER = 1 << 16, MAX_NAME = 256 };

struct TraceFile {
    const Model *m;
    const char *path;
    FILE *f;
    uint64_t line;
    uint32_t *slot, nslots; /* hash table of kinds */
    size_t at, have;
    char buffer[BUFFER];
};

static uint32_t hash(const char *s, size_t n)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)s[i]) * 16777619u;
    return h ^ h >> 15;
}

/* A kind that the host feeds may bear the name of one that comes out; `fed` says which of them is meant. */
static uint32_t find_kind(const TraceFile *t, const char *s, size_t n, bool fed)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t k = hash(s, n) & (t->nslots - 1); t->slot[k] != UINT32_MAX; k = (k + 1) & (t->nslots - 1)) {
        const ChipKind *kind = &t->m->kind[t->slot[k]];
        if (strlen(kind->name) != n || memcmp(kind->name, s, n)) continue;
        if (found == UINT32_MAX || (kind->role == CHIP_INPUT) == fed) found = t->slot[k];
    }
    return found;
}

TraceFile *trace_open(const Model *m, const char *path, char **err)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        fail(err, "%s: %s", path, strerror(errno));
        return NULL;
    }
    TraceFile *t = xrealloc(NULL, sizeof *t);
    *t = (TraceFile){.m = m, .path = path, .f = f, .nslots = 1u << clog2(4ull * m->nkinds)};
    t->slot = xrealloc(NULL, t->nslots * sizeof *t->slot);
    memset(t->slot, 0xff, t->nslots * sizeof *t->slot);
    for (uint32_t i = 0; i < m->nkinds; i++) {
        uint32_t k = hash(m->kind[i].name, strlen(m->kind[i].name)) & (t->nslots - 1);
        while (t->slot[k] != UINT32_MAX) k = (k + 1) & (t->nslots - 1);
        t->slot[k] = i;
    }
    return t;
}

void trace_close(TraceFile *t)
{
    if (!t) return;
    fclose(t->f);
    free(t->slot);
    free(t);
}

static int next_char(TraceFile *t)
{
    if (t->at == t->have) {
        t->have = fread(t->buffer, 1, BUFFER, t->f);
        t->at = 0;
        if (!t->have) return EOF;
    }
    return (uint8_t)t->buffer[t->at++];
}

static int bad_line(const TraceFile *t, char **err, const char *what)
{
    fail(err, "%s:%llu: %s", t->path, (unsigned long long)t->line, what);
    return -1;
}

static int digit(int c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

int trace_next(TraceFile *t, bool fed, uint32_t *token, char **err)
{
    char name[MAX_NAME];
    size_t n = 0;
    int c = next_char(t), digits = 0;
    uint64_t payload = 0;
    if (c == EOF) return ferror(t->f) ? bad_line(t, err, "cannot be read") : 0;
    t->line++;
    for (; c != EOF && c != '\n' && n < MAX_NAME; c = next_char(t)) name[n++] = (char)c;
    if (c != '\n') return bad_line(t, err, "the line does not end");
    size_t end = n;
    while (end && name[end - 1] != ' ') end--; /* a kind's name may hold blanks */
    for (size_t i = end; i < n; i++, digits++) {
        if (digit(name[i]) < 0 || digits == 8) return bad_line(t, err, "found something else than a token, expected KIND and hexadecimal digits");
        payload = payload << 4 | (uint64_t)digit(name[i]);
    }
    if (!end || !digits) return bad_line(t, err, "found something else than a token, expected KIND and hexadecimal digits");
    uint32_t kind = find_kind(t, name, end - 1, fed);
    if (kind == UINT32_MAX) return bad_line(t, err, "the chip has no such kind of token");
    if (payload >> t->m->kind[kind].width) return bad_line(t, err, "the payload is wider than the kind's");
    *token = t->m->kind[kind].base + (uint32_t)payload;
    return 1;
}
