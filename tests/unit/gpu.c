/* gpu.c: the kernels of the GPU on the host (runtime/gpu_host.c): every machine of tests/machines that planes can hold, in blocks of several shapes, threads in random
 * order, passes in small launches, ranges widened on the way. Tokens must be those of the sparse back end; output, steps, and every byte of the state at
 * the end those of the batch on the processor. Also with threads of the operating system (which is what -fsanitize=thread looks at), and with barriers left
 * out, which must show.
 *   gpu [threads]  only the part with threads of the operating system */
#include "../../backend/build.h"
#include "../../frontend/frontend.h"
#include "../../runtime/batch.h"
#include "barriers.h"
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 24 };
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
/* A machine, and what the odd jobs are fed. */
typedef struct {
    const Model *m;
    const char *name;
    char *input;
    size_t ninput;
    Said said[2]; /* by the sparse back end, without the input and with it */
} Subject;
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

static void run_batch(const Subject *s, uint32_t n, GpuDevice *d, uint32_t passes, bool cells, Outcome *out)
{
    BatchOptions o = {.max_steps = STEPS, .threads = 1, .device = d, .passes = passes, .lanes = 40, .cells = cells, .ended = keep_state, .said = d ? keep_token : NULL, .ctx = out};
    char *err = NULL;
    memset(out, 0, sizeof *out);
    for (uint32_t i = 1; i < n; i += 2) out->job[i].input = (const uint8_t *)s->input, out->job[i].ninput = s->ninput;
    if (!batch_run(s->m, out->job, n, &o, &out->report, &err)) snprintf(out->report.why, sizeof out->report.why, "%s", err);
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

static void run_one(const Subject *s, const Backend *backend, bool fed, Said *said)
{
    char *err = NULL;
    BackendOptions b = {0};
    Checker c = {.ctx = said, .token = note};
    FILE *in = fed && s->ninput ? fmemopen(s->input, s->ninput, "rb") : NULL;
    LoopOptions o = {.max_steps = STEPS, .check = &c, .in = in};
    Machine *mc = machine_open(s->m, backend, &b, NULL, &err);
    if (!mc) die("%s", err);
    machine_run(mc, &o);
    machine_close(mc);
    if (in) fclose(in);
}

static bool same(const Outcome *a, const Outcome *b, uint32_t n, const Subject *s)
{
    for (uint32_t i = 0; i < n; i++) {
        const Said *said = &s->said[i & 1];
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
static void one_machine(const Subject *s)
{
    Said mine = {0};
    run_one(s, &cuda_host_backend, true, &mine);
    CHECK(mine.n == s->said[1].n && !memcmp(mine.data, s->said[1].data, mine.n * sizeof *mine.data), "%s: one machine: other tokens", s->name);
    free(mine.data);
}

static void try_shapes(const Subject *s)
{
    static const struct {
        uint32_t machines, threads, processors, passes;
    } shape[] = {{3, 8, 1, 1000}, {70, 32, 1, 7}, {80, 64, 3, 50}, {5, 1, 1, 1000}};
    for (uint32_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        Outcome here, there;
        GpuDevice d = device(shape[i].threads, shape[i].processors, i + 1);
        past_numbers_from = i < 2 ? i + 1 : UINT32_MAX; /* at once, and after the first widening */
        run_batch(s, shape[i].machines, NULL, 0, false, &here);
        run_batch(s, shape[i].machines, &d, shape[i].passes, false, &there);
        past_numbers_from = UINT32_MAX;
        CHECK(same(&here, &there, shape[i].machines, s), "%s: shape %u: another outcome (%s)", s->name, i, there.report.why);
        drop(&here);
        drop(&there);
    }
    one_machine(s);
}

/* In real threads; without more shapes. */
static void try_threads(const Subject *s)
{
    Outcome here, there;
    GpuDevice d = device(4, 1, 1);
    d.parallel = true;
    run_batch(s, 3, NULL, 0, false, &here);
    run_batch(s, 3, &d, 100, false, &there);
    CHECK(same(&here, &there, 3, s), "%s: real threads: another outcome", s->name);
    drop(&here);
    drop(&there);
}

/* Each barrier left out in turn, wherever a thread comes to it: marks those that this machine misses. */
static void try_missing(const Subject *s, const uint32_t *line, uint32_t n, bool *missed)
{
    enum { JOBS = 70 }; /* more than lanes */
    Outcome whole, there;
    GpuDevice d = device(24, 1, 1); /* lanes are then not always the same thread's */
    run_batch(s, JOBS, &d, 5, true, &whole);
    CHECK(same(&whole, &whole, JOBS, s), "%s: all state in memory: another outcome (%s)", s->name, whole.report.why);
    for (uint32_t i = 0; i < n; i++)
        for (uint64_t seed = 1; seed <= 2 && !missed[i]; seed++) {
            d.seed = seed, d.skip = line[i], d.skip_in = "gpu_kernel.h";
            run_batch(s, JOBS, &d, 5, true, &there);
            missed[i] = !same(&whole, &there, JOBS, s);
            drop(&there);
        }
    drop(&whole);
}

static bool dense_says(const Subject *s)
{
    Said mine = {0};
    run_one(s, &cuda_host_dense_backend, true, &mine);
    bool same = mine.n == s->said[1].n && !memcmp(mine.data, s->said[1].data, mine.n * sizeof *mine.data);
    free(mine.data);
    return same;
}

/* The dense executor: its tokens, and each of its barriers left out: marks those that this machine misses. */
static void try_dense(const Subject *s, const uint32_t *line, uint32_t n, bool *missed)
{
    CHECK(dense_says(s), "%s: dense: other tokens", s->name);
    for (uint32_t i = 0; i < n; i++) {
        gpu_host.skip = line[i], gpu_host.skip_in = "gpu_dense.h";
        for (gpu_host.seed = 1; gpu_host.seed <= 3 && !missed[i]; gpu_host.seed++) missed[i] = !dense_says(s);
    }
    gpu_host.skip = 0, gpu_host.seed = 1;
}

static void dense_threads_say(const Subject *s)
{
    gpu_host.parallel = !SLOW;
    CHECK(dense_says(s), "%s: dense: other tokens", s->name);
    gpu_host.parallel = false;
}

static bool is_held(const Subject *s)
{
    Outcome o;
    run_batch(s, 1, NULL, 0, false, &o);
    drop(&o);
    return !*o.report.why;
}

static Subject subject(const char *source)
{
    Subject s = {.m = compile(source), .name = source};
    s.input = read_file(xfmt("%.*s.in", (int)strlen(source) - 4, source), &s.ninput);
    if (!s.input) s.ninput = 0;
    for (int i = 0; i < 2; i++) run_one(&s, &sparse_backend, i, &s.said[i]);
    return s;
}

int main(int argc, char **argv)
{
    bool threads = argc > 1 && !strcmp(argv[1], "threads"), missed[64] = {false}, dense_missed[64] = {false};
    uint32_t held = 0, line[64], n = barriers("runtime/gpu_kernel.h", line, 64);
    uint32_t dense_line[64], ndense = barriers("runtime/gpu_dense.h", dense_line, 64);
    glob_t files;
    if (glob("tests/machines/*.ckt", 0, NULL, &files)) die("tests/machines is not here");
    for (size_t i = 0; i < files.gl_pathc; i++) {
        Subject s = subject(files.gl_pathv[i]);
        if (is_held(&s)) {
            if (!threads) try_shapes(&s);
            if (!threads && !SLOW) try_missing(&s, line, n, missed);
            if (s.m->geo.hidden <= 512) try_threads(&s);
            if (strstr(s.name, "/count.") && (threads || SLOW)) dense_threads_say(&s);
            else if (strstr(s.name, "/count.")) try_dense(&s, dense_line, ndense, dense_missed);
            held++;
        }
        model_close((Model *)(uintptr_t)s.m);
        free(s.input);
        free(s.said[0].data);
        free(s.said[1].data);
    }
    CHECK(threads || held >= 5, "only %u machines were held by planes", held);
    for (uint32_t i = 0; i < n && !threads && !SLOW; i++) CHECK(missed[i], "nobody misses the barrier in line %u", line[i]);
    for (uint32_t i = 1; i < ndense && !threads && !SLOW; i++) /* the first keeps an earlier sum until all have read it: that machine's sums are alike */
        CHECK(dense_missed[i], "dense: nobody misses the barrier in line %u", dense_line[i]);
    CHECK(n >= 8 && ndense >= 5, "only %u and %u barriers were found", n, ndense);
    globfree(&files);
    return failures != 0;
}
