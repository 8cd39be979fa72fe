/* source.c: reads a file and, depth first, what it imports; each file once, so that imports may form a cycle.
 *
 * `import "std"` is the library compiled into this program (std_ckt.inc is std.ckt as a C string, made by the
 * build). */
#include "dsl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char std_text[] =
#include "std_ckt.inc"
    ;

typedef struct {
    VEC(const char *) seen; /* canonical paths, interned */
    NodeList *decls;
} Loader;

enum { MAX_SOURCE = 16 << 20 };

static bool mark_seen(Loader *l, const char *path)
{
    char *real = realpath(path, NULL);
    const char *key = real ? intern(real, strlen(real)) : intern(path, strlen(path));
    free(real);
    for (uint32_t i = 0; i < l->seen.n; i++)
        if (l->seen.data[i] == key) return false;
    vec_push(&l->seen, key);
    return true;
}

static void load_imports(Loader *l, const char *dir, NodeList *decls);

static uint32_t load_text(Loader *l, const char *name, const char *text, size_t len, const char *dir)
{
    uint32_t file = source_add(name, text, len);
    NodeList own = { 0 };
    if (len > MAX_SOURCE) {
        error_at((Span){ file, 0, 0, 0 }, "the file has %zu bytes, at most %d are taken", len, MAX_SOURCE);
        return file;
    }
    parse_source(file, &own);
    load_imports(l, dir, &own);
    for (uint32_t i = 0; i < own.n; i++)
        if (own.data[i]->kind != N_IMPORT) vec_push(l->decls, own.data[i]);
    return file;
}

/* The part of a path up to and including its last '/'. */
static const char *directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? xfmt("%.*s", (int)(slash - path + 1), path) : "";
}

static uint32_t load_file(Loader *l, const char *path, Span at)
{
    size_t len;
    char *text = read_file(path, &len);
    if (!text) {
        error_at(at, "cannot read \"%s\": %s", path, strerror(errno));
        return 0;
    }
    return load_text(l, path, text, len, directory(path));
}

static void load_import(Loader *l, const char *dir, const Node *n)
{
    if (!n->len || strlen(n->name) != n->len) {
        error_at(n->span, "found an import of no file");
    } else if (!strcmp(n->name, "std")) {
        if (mark_seen(l, "std")) load_text(l, "std", std_text, sizeof std_text - 1, "");
    } else {
        const char *path = n->name[0] == '/' ? n->name : xfmt("%s%s", dir, n->name);
        if (mark_seen(l, path)) load_file(l, path, n->span);
    }
}

static void load_imports(Loader *l, const char *dir, NodeList *decls)
{
    for (uint32_t i = 0; i < decls->n; i++)
        if (decls->data[i]->kind == N_IMPORT && !error_limit()) load_import(l, dir, decls->data[i]);
}

NodeList *program_parse(const char *path, uint32_t *root)
{
    Loader l = { .decls = list_new() };
    mark_seen(&l, path);
    *root = load_file(&l, path, (Span){ 0 });
    return *root ? l.decls : NULL;
}

NodeList *program_parse_text(const char *name, const char *text, size_t len, uint32_t *root)
{
    Loader l = { .decls = list_new() };
    *root = load_text(&l, name, text, len, "");
    return l.decls;
}
