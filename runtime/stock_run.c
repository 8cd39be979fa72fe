/* stock_run.c: `tapeout run DIR PROMPT`: greedy decoding with a checkpoint folder: token ids in, token ids out. */
#include "stock.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

static const StockBackend *const backends_of_stock[] = {&stock_dense_backend, &stock_cuda_backend, &stock_cuda_host_backend, NULL};

static const StockBackend *find_backend(const char *name)
{
    for (const StockBackend *const *b = backends_of_stock; *b; b++)
        if (!name || !strcmp((*b)->name, name)) return *b;
    return NULL;
}

typedef VEC(uint32_t) Tokens;

/* Numbers with white space between them. */
static bool read_tokens(FILE *f, const char *path, uint32_t vocab, Tokens *out, char **err)
{
    uint32_t line = 1;
    for (int c = getc(f); c != EOF; c = getc(f)) {
        uint64_t id = 0;
        if (isspace(c)) {
            line += c == '\n';
            continue;
        }
        for (; isdigit(c) && id < vocab; c = getc(f)) id = 10 * id + (unsigned)(c - '0');
        if ((c != EOF && !isspace(c)) || id >= vocab) return fail(err, "%s:%u: found something that is no token id below %u", path, line, vocab);
        vec_push(out, (uint32_t)id);
        line += c == '\n';
    }
    if (ferror(f)) return fail(err, "%s: %s", path, strerror(errno));
    return out->n || fail(err, "%s: there are no token ids in it", path);
}

static bool open_tokens(const char *path, uint32_t vocab, Tokens *out, char **err)
{
    if (!strcmp(path, "-")) return read_tokens(stdin, "stdin", vocab, out, err);
    FILE *f = fopen(path, "r");
    if (!f) return fail(err, "%s: %s", path, strerror(errno));
    bool ok = read_tokens(f, path, vocab, out, err);
    fclose(f);
    return ok;
}

typedef struct {
    const StockOptions *o;
    const Checkpoint *k;
    const StockBackend *b;
    void *self;
    FILE *logits;
    uint32_t room; /* tokens that pass together */
    float *rows; /* [room, vocab] when logits are wanted */
    uint64_t said;
    double prompt_seconds;
    char **err;
} Run;

static bool feed(Run *r, const uint32_t *token, uint32_t n, uint32_t *next)
{
    if (!r->b->feed(r->self, token, n, r->rows, next, r->err)) return false;
    size_t numbers = (size_t)n * r->k->geo.vocab;
    return !r->rows || fwrite(r->rows, sizeof *r->rows, numbers, r->logits) == numbers || fail(r->err, "%s: %s", r->o->logits, strerror(errno));
}

static bool is_end(const Checkpoint *k, uint32_t token)
{
    for (uint32_t i = 0; i < k->nends; i++)
        if (k->end[i] == token) return true;
    return false;
}

static bool decode(Run *r, const Tokens *prompt)
{
    uint32_t next = 0;
    double began = clock_seconds();
    for (uint32_t at = 0; at < prompt->n; at += r->room)
        if (!feed(r, prompt->data + at, prompt->n - at < r->room ? prompt->n - at : r->room, &next)) return false;
    r->prompt_seconds = clock_seconds() - began;
    while (!r->o->max_tokens || r->said < r->o->max_tokens) {
        printf("%u\n", next);
        r->said++;
        if (is_end(r->k, next)) break;
        if (ferror(stdout)) return fail(r->err, "stdout: cannot be written");
        if ((!r->o->max_tokens || r->said < r->o->max_tokens) && !feed(r, &next, 1, &next)) return false;
    }
    return true;
}

static bool run_open(Run *r, const Tokens *prompt)
{
    r->room = prompt->n < r->b->room ? prompt->n : r->b->room;
    if (r->o->logits) {
        if (!(r->logits = fopen(r->o->logits, "wb"))) return fail(r->err, "%s: %s", r->o->logits, strerror(errno));
        r->rows = xrealloc(NULL, (size_t)r->room * r->k->geo.vocab * sizeof *r->rows);
    }
    return (r->self = r->b->open(r->k, r->room, r->o->max_tokens ? prompt->n + r->o->max_tokens : 0, r->err)) != NULL;
}

static bool run_checkpoint(Checkpoint *k, const StockOptions *o, const StockBackend *b, char **err)
{
    Tokens prompt = {0};
    Run r = {.o = o, .k = k, .b = b, .err = err};
    bool ok = checkpoint_config(k, o->dir, err) && checkpoint_open(k, err) && open_tokens(o->prompt, k->geo.vocab, &prompt, err) && run_open(&r, &prompt);
    double began = clock_seconds();
    ok = ok && decode(&r, &prompt);
    double seconds = clock_seconds() - began - r.prompt_seconds;
    if (ok && o->stats)
        fprintf(stderr, "prompt: %u\nprompt_seconds: %.3f\ntokens: %llu\nseconds: %.3f\ntokens_per_second: %.1f\n", prompt.n, r.prompt_seconds, (unsigned long long)r.said, seconds,
                (double)r.said / (seconds > 0 ? seconds : 1));
    if (r.self) b->close(r.self);
    if (r.logits && fclose(r.logits) && ok) ok = fail(err, "%s: %s", o->logits, strerror(errno));
    free(r.rows);
    free(prompt.data);
    return ok;
}

int stock_run(const StockOptions *o)
{
    Checkpoint k;
    char *err = NULL;
    const StockBackend *b = find_backend(o->backend);
    if (!b) {
        fprintf(stderr, "tapeout: a checkpoint folder has no back end \"%s\"; there are:", o->backend);
        for (const StockBackend *const *i = backends_of_stock; *i; i++) fprintf(stderr, " %s", (*i)->name);
        fputc('\n', stderr);
        return 2;
    }
    bool ok = run_checkpoint(&k, o, b, &err);
    fflush(stdout);
    if (!ok) fprintf(stderr, "tapeout: %s\n", err);
    free(err);
    checkpoint_close(&k);
    return ok ? 0 : 1;
}
