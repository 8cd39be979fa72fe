/* cmd_conform.c: `conform --out DIR`: a small chip with the detectors of canary.c as a stock checkpoint, a prompt, the tokens that must follow, and a
 * page. The machine is proved without the detectors; what must follow is what the dense and the sparse executor both say. */
#include "../runtime/runtime.h"
#include "build.h"
#include "canary.h"
#include "cli.h"
#include "export.h"
#include "prove.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char machine_text[] =
#include "conform_ckt.inc"
    ;
static const char page_text[] =
#include "conform_md.inc"
    ;
enum { MAX_TOKENS = 4096, PAYLOAD = 8 }; /* 8 bits a token: a vocabulary that makes a small checkpoint */

/* ---- files ---- */
typedef void Writer(FILE *f, const void *what);

static bool write_text(const char *dir, const char *name, Writer *write, const void *what, char **err)
{
    char *path = xfmt("%s/%s", dir, name), *temp = xfmt("%s/.%s.tmp%ld", dir, name, (long)getpid());
    FILE *f = fopen(temp, "w");
    if (!f) return fail(err, "%s: %s", path, strerror(errno));
    write(f, what);
    bool bad = ferror(f) != 0;
    bad |= fclose(f) != 0;
    if (!bad && rename(temp, path) == 0) return true;
    unlink(temp);
    return fail(err, "%s: cannot be written", path);
}

static void write_ids(FILE *f, const void *what)
{
    const Prompt *p = what;
    for (uint32_t i = 0; i < p->n; i++) fprintf(f, "%u\n", p->data[i]);
}

typedef struct {
    const Model *m;
    uint32_t prompt, expected;
} Page;

static void write_page(FILE *f, const void *what)
{
    const Page *p = what;
    fputs(page_text, f);
    fputs("\n| token | name | what is wrong | what to do |\n|---|---|---|---|\n", f);
    for (unsigned i = 0; i < ncanaries; i++)
        for (uint32_t k = 0; k < p->m->nkinds; k++)
            if (!strcmp(p->m->kind[k].name, canaries[i].name))
                fprintf(f, "| %u | `%s` | %s | %s |\n", p->m->kind[k].base, canaries[i].name, canaries[i].message, canaries[i].advice);
    fprintf(f,
            "\nAny other token: a projection, a norm, SiLU or the residual stream is not the stock layer's (all values in them are small integers times powers\n"
            "of two, so that every order of summation gives the same float32 number), or the token that was fed is not the one that was meant\n"
            "(ids at or above %u are unused rows). No token at all, or NaN: the checkpoint was not loaded as it stands.\n\n"
            "## This kit\n\n%u tokens of prompt, %u tokens to follow; hidden size %u, %u layers, %u key and %u value heads of %u and %u, %u rows of vocabulary.\n",
            p->m->end, p->prompt, p->expected, p->m->geo.hidden, p->m->geo.layers, p->m->geo.nk, p->m->geo.nv, p->m->geo.dk, p->m->geo.dv, p->m->geo.vocab);
}

/* ---- the chip ---- */
static Build compile(bool detectors)
{
    BuildOptions o = { .target = target_find("native64"), .payload = PAYLOAD, .canaries = detectors };
    Design *d = design_load_text("conform.ckt", machine_text, sizeof machine_text - 1);
    if (!d) die("the kit's machine does not compile");
    Build b = build_machine(circuit_optimize(d->circuit), &o);
    if (b.error) die("the kit's machine: %s", b.error);
    return b;
}

static bool is_exact(const char *file, void *ctx)
{
    char *err = NULL;
    Proof p;
    Model *m = model_open(file, &err);
    if (!m) die("the kit's chip cannot be read back: %s", err);
    bool ok = prove_run(m, NULL, NULL, &p);
    if (!ok) ((Chip *)ctx)->error = xfmt("the kit's machine is not proved: %s", p.refusal);
    proof_free(&p);
    model_close(m);
    return ok;
}

/* ---- what must follow ---- */
static bool follow(const Model *m, const Backend *b, const Prompt *prompt, Prompt *out, char **err)
{
    void *self = b->open(m, &(BackendOptions){ 0 }, err);
    uint32_t token = 0;
    const ChipKind *k = NULL;
    if (!self) return false;
    for (uint32_t i = 0; i < prompt->n; i++) b->run(self, prompt->data[i], &token, 1);
    do {
        vec_push(out, token);
        k = model_kind(m, token);
        if (k && k->role != CHIP_EXIT && k->role != CHIP_FAULT) b->run(self, token, &token, 1);
    } while (k && k->role != CHIP_EXIT && k->role != CHIP_FAULT && out->n < MAX_TOKENS);
    b->close(self);
    return (k && k->role == CHIP_EXIT) || fail(err, "the kit's run ends with token %u after %u tokens", token, out->n);
}

static bool expected(const Model *m, const Prompt *prompt, Prompt *out, char **err)
{
    Prompt other = { 0 };
    bool ok = follow(m, &dense_backend, prompt, out, err) && follow(m, backend_find(NULL), prompt, &other, err);
    if (ok && (other.n != out->n || memcmp(other.data, out->data, out->n * sizeof *out->data))) ok = fail(err, "the back ends differ on the kit's run");
    free(other.data);
    return ok;
}

static bool write_kit(const char *dir, const Model *m, char **err)
{
    Prompt prompt = { 0 }, out = { 0 };
    ExportOptions o = { .dir = dir };
    bool ok = prompt_make(m, NULL, false, &prompt, err) && expected(m, &prompt, &out, err) && export_hf(m, &o, err);
    Page page = { m, prompt.n, out.n };
    ok = ok && write_text(dir, "prompt.txt", write_ids, &prompt, err) && write_text(dir, "expected.txt", write_ids, &out, err) &&
         write_text(dir, "README.md", write_page, &page, err);
    if (ok) printf("%s: %u tokens of prompt, %u must follow; README.md there says how to try a runtime\n", dir, prompt.n, out.n);
    free(prompt.data), free(out.data);
    return ok;
}

int cmd_conform(const Args *a)
{
    char *err = NULL;
    if (!a->out) return usage_error("conform: --out DIR is missing");
    if (mkdir(a->out, 0777) && errno != EEXIST) return input_error("%s: %s", a->out, strerror(errno));
    const char *path = xfmt("%s/conform.chip", a->out);
    Build plain = compile(false), b = compile(true);
    if (!chip_write(plain.chip, path, is_exact, plain.chip)) return input_error("%s", plain.chip->error);
    if (!chip_write(b.chip, path, NULL, NULL)) return input_error("%s", b.chip->error);
    Model *m = model_open(path, &err);
    bool ok = m && write_kit(a->out, m, &err);
    if (!ok) input_error("%s", err);
    free(err);
    model_close(m);
    return ok ? 0 : 1;
}
