/* gpu.c: the kernels of the GPU on the host (runtime/gpu_host.c): every machine of tests/machines that planes can hold, in blocks of several shapes, threads in random
 * order, passes in small launches, ranges widened on the way. Tokens must be those of the sparse back end; output, steps, and every byte of the state at
 * the end those of the batch on the processor. Also with threads of the operating system (which is what -fsanitize=thread looks at), and with barriers left
 * out, which must show.
 *   gpu [threads]  only the part with threads of the operating system */
#include "../../backend/build.h"
#include "../../frontend/frontend.h"
#include "../../runtime/batch.h"
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 40 };
static int failures;
#define CHECK(cond, ...) ((void)((cond) || (failures++, fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))))

static Model *compile(const char *source)
{
    char file[] = "/tmp/unit-gpu-XXXXXX", *err = NULL;
    int fd = mkstemp(file);
    if (fd < 0) die("%s", file);
    close(fd);
    Design *d = design_load(source, NULL, 0);
    BuildOptions o = {.target = target_find("native")};
    Build b = build_machine(circuit_optimize(d->circuit), &o);
    if (b.error || !chip_write(b.chip, file, NULL, NULL)) die("%s: %s", source, b.error ? b.error : b.chip->error);
    Model *m = model_open(file, &err);
    if (!m) die("%s", err);
    unlink(file);
    return m;
}

/* ---- what came of some machines ---- */
typedef VEC(uint32_t) Said;
typedef struct {
    BatchJob job[80];
    Said said[80];
    uint8_t *state[80];
    size_t bytes;
    BatchReport report;
} Outcome;

static void keep_state(void *ctx, uint32_t job, const uint8_t *state, size_t bytes)
{
    Outcome *o = ctx;
    o->bytes = bytes;
    o->state[job] = memcpy(xrealloc(NULL, bytes + 1), state, bytes);
}

static void keep_token(void *ctx, uint32_t job, uint32_t token) { vec_push(&((Outcome *)ctx)->said[job], token); }

static void run_batch(const Model *m, uint32_t n, GpuDevice *d, uint32_t passes, Outcome *out)
{
    BatchOptions o = {.max_steps = STEPS, .threads = 1, .device = d, .passes = passes, .lanes = 40, .ended = keep_state, .said = d ? keep_token : NULL, .ctx = out};
    char *err = NULL;
    memset(out, 0, sizeof *out);
    if (!batch_run(m, out->job, n, &o, &out->report, &err)) snprintf(out->report.why, sizeof out->report.why, "%s", err);
}

static void drop(Outcome *o)
{
    for (uint32_t i = 0; i < 80; i++) {
        free(o->job[i].output);
        free(o->state[i]);
        free(o->said[i].data);
    }
}

/* ---- the sparse back end's tokens ---- */
static int note(void *ctx, Machine *mc, uint32_t token) { return (void)mc, vec_push((Said *)ctx, token), 0; }

static void run_sparse(const Model *m, Said *said)
{
    char *err = NULL;
    BackendOptions b = {0};
    Checker c = {.ctx = said, .token = note};
    LoopOptions o = {.max_steps = STEPS, .check = &c};
    Machine *mc = machine_open(m, &sparse_backend, &b, NULL, &err);
    if (!mc) die("%s", err);
    machine_run(mc, &o);
    machine_close(mc);
}

static bool same(const Outcome *a, const Outcome *b, uint32_t n, const Said *said)
{
    for (uint32_t i = 0; i < n; i++) {
        const BatchJob *x = &a->job[i], *y = &b->job[i];
        if (x->why != y->why || x->payload != y->payload || x->steps != y->steps || x->tokens != y->tokens || x->noutput != y->noutput) return false;
        if (x->noutput && memcmp(x->output, y->output, x->noutput)) return false;
        if (a->bytes != b->bytes || !a->state[i] || !b->state[i] || memcmp(a->state[i], b->state[i], a->bytes)) return false;
        if (b->said[i].n != said->n || memcmp(b->said[i].data, said->data, said->n * sizeof *said->data)) return false;
    }
    return !*b->report.why;
}

static GpuDevice device(uint32_t threads, uint32_t processors, uint64_t seed)
{
    GpuDevice d = gpu_host;
    d.open(&d, NULL);
    d.threads = threads, d.processors = processors, d.seed = seed;
    return d;
}

/* One machine through the back end itself: its tokens. */
static void one_machine(const Model *m, const char *name, const Said *said)
{
    char *err = NULL;
    Said mine = {0};
    BackendOptions b = {0};
    Checker c = {.ctx = &mine, .token = note};
    LoopOptions o = {.max_steps = STEPS, .check = &c};
    Machine *mc = machine_open(m, &cuda_host_backend, &b, NULL, &err);
    if (!mc) die("%s", err);
    machine_run(mc, &o);
    CHECK(mine.n == said->n && !memcmp(mine.data, said->data, mine.n * sizeof *mine.data), "%s: one machine: other tokens", name);
    free(mine.data);
    machine_close(mc);
}

static void try_shapes(const Model *m, const char *name)
{
    static const struct {
        uint32_t machines, threads, processors, passes;
    } shape[] = {{3, 8, 1, 1000}, {70, 32, 1, 7}, {80, 64, 3, 50}, {5, 1, 1, 1000}};
    Said said = {0};
    run_sparse(m, &said);
    for (uint32_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        Outcome here, there;
        GpuDevice d = device(shape[i].threads, shape[i].processors, i + 1);
        run_batch(m, shape[i].machines, NULL, 0, &here);
        run_batch(m, shape[i].machines, &d, shape[i].passes, &there);
        CHECK(same(&here, &there, shape[i].machines, &said), "%s: shape %u: another outcome (%s)", name, i, there.report.why);
        drop(&here);
        drop(&there);
    }
    one_machine(m, name, &said);
    free(said.data);
}

/* In real threads; without more shapes. */
static void try_threads(const Model *m, const char *name)
{
    Outcome here, there;
    Said said = {0};
    GpuDevice d = device(4, 1, 1);
    d.parallel = true;
    run_sparse(m, &said);
    run_batch(m, 3, NULL, 0, &here);
    run_batch(m, 3, &d, 100, &there);
    CHECK(same(&here, &there, 3, &said), "%s: real threads: another outcome", name);
    drop(&here);
    drop(&there);
    free(said.data);
}

/* The lines of the kernel that have a barrier. */
static uint32_t barriers(uint32_t *line, uint32_t most)
{
    char text[512];
    uint32_t n = 0;
    FILE *f = fopen("runtime/gpu_kernel.h", "r");
    if (!f) die("runtime/gpu_kernel.h is not here");
    for (uint32_t i = 1; fgets(text, sizeof text, f); i++)
        if (strstr(text, "GPU_SYNC();") && n < most) line[n++] = i;
    fclose(f);
    return n;
}

/* Each barrier left out in turn, wherever a thread comes to it: marks those that this machine misses. */
static void try_missing(const Model *m, const uint32_t *line, uint32_t n, bool *missed)
{
    Outcome here, there;
    Said said = {0};
    run_sparse(m, &said);
    run_batch(m, 70, NULL, 0, &here);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t seed = 1; seed <= 2 && !missed[i]; seed++) {
            GpuDevice d = device(24, 1, seed); /* lanes are then not always the same thread's */
            d.skip = line[i];
            run_batch(m, 70, &d, 5, &there);
            missed[i] = !same(&here, &there, 70, &said);
            drop(&there);
        }
    drop(&here);
    free(said.data);
}

static bool is_held(const Model *m)
{
    Outcome o;
    run_batch(m, 1, NULL, 0, &o);
    drop(&o);
    return !*o.report.why;
}

int main(int argc, char **argv)
{
    bool threads = argc > 1 && !strcmp(argv[1], "threads");
    bool missed[64] = {false};
    uint32_t held = 0, line[64], n = barriers(line, 64);
    glob_t files;
    if (glob("tests/machines/*.ckt", 0, NULL, &files)) die("tests/machines is not here");
    for (size_t i = 0; i < files.gl_pathc; i++) {
        Model *m = compile(files.gl_pathv[i]);
        if (is_held(m)) {
            if (!threads) try_shapes(m, files.gl_pathv[i]);
            if (m->geo.hidden <= 512) try_threads(m, files.gl_pathv[i]);
            if (!threads) try_missing(m, line, n, missed);
            held++;
        }
        model_close(m);
    }
    CHECK(threads || held >= 5, "only %u machines were held by planes", held);
    for (uint32_t i = 0; i < n && !threads; i++) CHECK(missed[i], "nobody misses the barrier in line %u", line[i]);
    CHECK(n >= 8, "only %u barriers were found", n);
    globfree(&files);
    return failures != 0;
}
