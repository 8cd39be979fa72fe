/* diag.c: the table of sources, and the only printer of errors about them.
 *
 * An error is `file:line:col: error: text`, the source line and a caret under the place. Lines longer than SHOWN bytes
 * are shown as a window around the place; bytes that are not text are shown as '?'. */
#include "dsl.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 160 };

typedef struct {
    const char *name, *text;
    size_t len;
} Source;

static VEC(Source) sources;
static unsigned errors;
FILE *diag_out;

uint32_t source_add(const char *name, const char *text, size_t len)
{
    Source s = { xstrdup(name), text, len };
    return vec_push(&sources, s) + 1;
}

uint32_t source_count(void) { return sources.n; }

const char *source_name(uint32_t file) { return file && file <= sources.n ? sources.data[file - 1].name : "?"; }

const char *source_text(uint32_t file, size_t *len)
{
    if (!file || file > sources.n) return NULL;
    if (len) *len = sources.data[file - 1].len;
    return sources.data[file - 1].text;
}

unsigned error_count(void) { return errors; }
bool error_limit(void) { return errors >= MAX_ERRORS; }

void diag_reset(void)
{
    sources.n = 0;
    errors = 0;
}

/* The start of line `line` (1-based) of a text, its length in *n. */
static const char *find_line(const char *text, size_t len, uint32_t line, size_t *n)
{
    const char *p = text, *end = text + len;
    for (; line > 1 && p; line--) {
        p = memchr(p, '\n', (size_t)(end - p));
        if (p) p++;
    }
    if (!p) return NULL;
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    *n = (size_t)((nl ? nl : end) - p);
    if (*n && p[*n - 1] == '\r') --*n;
    return p;
}

static bool continues(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

/* Prints line[from..to) as text; in the caret line (`blank`) only its width, tabs kept. */
static void put_text(FILE *out, const char *line, size_t from, size_t to, bool blank)
{
    for (size_t i = from; i < to; i++) {
        unsigned char ch = (unsigned char)line[i];
        if (ch == '\t') fputc('\t', out);
        else if (blank) { if (!continues(line[i])) fputc(' ', out); }
        else fputc(ch < 32 || ch == 127 ? '?' : ch, out);
    }
}

static void show_place(FILE *out, Span at)
{
    size_t len, n;
    const char *text = source_text(at.file, &len);
    const char *line = text && at.line ? find_line(text, len, at.line, &n) : NULL;
    if (!line) return;
    size_t col = at.col ? at.col - 1 : 0;
    if (col > n) col = n;
    size_t from = col > SHOWN / 2 && n > SHOWN ? col - SHOWN / 2 : 0;
    while (from && continues(line[from])) from--;
    size_t to = n - from > SHOWN ? from + SHOWN : n;
    while (to < n && continues(line[to])) to++;
    fputs("    ", out);
    put_text(out, line, from, to, false);
    fputs("\n    ", out);
    put_text(out, line, from, col, true);
    fputc('^', out);
    for (size_t i = col + 1; i < col + at.len && i < to; i++)
        if (!continues(line[i])) fputc('~', out);
    fputc('\n', out);
}

static void report(Span at, const char *what, const char *fmt, va_list ap)
{
    FILE *out = diag_out ? diag_out : stderr;
    if (at.file) fprintf(out, "%s:%u:%u: ", source_name(at.file), at.line, at.col);
    else fputs("tapeout: ", out);
    fprintf(out, "%s: ", what);
    vfprintf(out, fmt, ap);
    fputc('\n', out);
    if (at.file) show_place(out, at);
}

void error_at(Span at, const char *fmt, ...)
{
    if (errors < MAX_ERRORS) {
        va_list ap;
        va_start(ap, fmt);
        report(at, "error", fmt, ap);
        va_end(ap);
        if (errors + 1 == MAX_ERRORS) fprintf(diag_out ? diag_out : stderr, "too many errors, stopping\n");
    }
    errors++;
}

void note_at(Span at, const char *fmt, ...)
{
    if (errors > MAX_ERRORS) return;
    va_list ap;
    va_start(ap, fmt);
    report(at, "note", fmt, ap);
    va_end(ap);
}

Span span_join(Span a, Span b)
{
    if (!a.file) return b;
    if (b.file == a.file && b.line == a.line && b.col + b.len > a.col) a.len = b.col + b.len - a.col;
    else if (b.file == a.file && b.line > a.line) a.len = SHOWN; /* clipped at the end of the line when shown */
    return a;
}
