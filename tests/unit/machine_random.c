/* machine_random.c: random circuits compiled to chips. From random states the plan simulator and the sparse back end (some chips also the
 * dense one) must say, token by token, what the interpreter does, and must hold the same states afterwards, in every copy. The dense
 * one must have the plan's integers in all channels after every block.
 * A batch of machines (bit planes, runtime/slice.h, which must take all but one in 20 of those that are not bfloat16 and have no memory in attention) must end as one machine does; the adaptive back end must make the same trace and leave the same states,
 * which a check of that trace must accept, having made paths as early as it can. In a third of the chips what planes keep of earlier tokens are numbers from the beginning, in a third after the first widening.
 * The proof must accept them: all but one in 200 (it searches, within a budget).
 *   machine_random [FIRST_SEED [COUNT]] */
#include "../../backend/build.h"
#include "../../backend/encode.h"
#include "../../backend/prove.h"
#include "../../runtime/batch.h"
#include "../../runtime/trace.h"
#include "netlistgen.h"
#include <fcntl.h>
#include <sys/mman.h>

enum { UNPROVED = 200, ODD = 20, COUNT = 100, BATCH = 10, STARTS = 4, STEPS = 12 };

typedef struct {
    uint64_t seed, chips, refused, proved, planes, odd, layers, steps, tokens; /* odd: without planes, for no reason that is expected */
} Totals;

static Totals *totals;

/* One chip and everything that runs it. */
typedef struct {
    Build build;
    Model *model;
    char *file; /* of the chip */
    StepEncoder steps;
    PlanSim *plan;
    Machine *machine[2]; /* dense or NULL; sparse */
    const Kind *host; /* the kind of host tokens, or NULL */
    unsigned start, step;
    uint32_t next;
    bool answered; /* the step's last token has been fed, the host's is next */
} Bench;

static const Circuit *circuit_of(const Bench *b) { return b->build.modes->c; }

/* ---- the residual stream, block by block ---- */

static struct {
    VEC(double) plan;
    uint32_t at, channels;
} stream;

static void plan_block(void *ctx, int layer, const char *what, const double *channels)
{
    (void)ctx, (void)layer, (void)what;
    for (uint32_t i = 0; i < stream.channels; i++) vec_push(&stream.plan, channels[i]);
}

static void dense_block(void *ctx, int layer, const char *what, const float *x, uint32_t n)
{
    (void)ctx, (void)n;
    if (stream.at == stream.plan.n) return; /* the last layer is a no-op to the plan */
    for (uint32_t i = 0; i < stream.channels; i++) {
        double want = stream.plan.data[stream.at++];
        if (x[i] != want) die("layer %d, %s: channel %u is %.9g, not %g in the plan", layer, what, i, x[i], want);
    }
}

static uint32_t plan_step(PlanSim *s, uint32_t token)
{
    stream.plan.n = stream.at = 0;
    return plansim_step(s, token);
}

/* ---- one chip ---- */

static void must(bool ok, char *err)
{
    if (!ok) die("%s", err ? err : "failed");
}

static char *temporary_file(void)
{
    char *name = xfmt("/tmp/machine_random.XXXXXX");
    int fd = mkstemp(name);
    if (fd < 0) die("no temporary file");
    close(fd);
    return name;
}

static Model *through_a_file(Chip *chip, char **file)
{
    char *err = NULL;
    *file = temporary_file();
    if (!chip_write(chip, *file, NULL, NULL)) die("%s", chip->error);
    Model *m = model_open(*file, &err);
    must(m, err);
    return m;
}

static void open_machines(Bench *b, bool dense)
{
    const Backend *backend[] = { dense ? &dense_backend : NULL, &sparse_backend };
    BackendOptions o = { .probe = dense ? dense_block : NULL };
    char *err = NULL;
    stream.plan.n = stream.at = 0; /* rows of attention memories are fed at once */
    for (int k = 0; k < 2; k++) {
        if (!backend[k]) continue;
        b->machine[k] = machine_open(b->model, backend[k], &o, NULL, &err);
        o.probe = NULL;
        must(b->machine[k], err);
    }
}

static void close_machines(Bench *b)
{
    for (int k = 0; k < 2; k++) machine_close(b->machine[k]), b->machine[k] = NULL;
}

static bool is_hard(const State *s, uint32_t row) { return s->has_hard && s->hard_row == row; }

static void set_all(Bench *b, bool random)
{
    const Circuit *c = circuit_of(b);
    for (uint32_t i = 0; i < c->states.n; i++)
        for (uint32_t r = 0; r < c->states.data[i].rows; r++) {
            bool kept = is_hard(&c->states.data[i], r) || c->states.data[i].kind == ST_HOST || state_is_rom(&c->states.data[i]);
            uint64_t v = random && !kept ? random_value(c->states.data[i].width) : sim_get(b->steps.sim, i, r);
            sim_set(b->steps.sim, i, r, v);
            plansim_set(b->plan, i, r, v);
            for (int k = 0; k < 2; k++)
                if (b->machine[k] && random && !kept) machine_set(b->machine[k], &b->model->state[i], r, v);
        }
}

static void expect(const Bench *b, const char *who, uint32_t token, uint32_t want)
{
    uint32_t x, y;
    if (token == want) return;
    const Kind *k = plan_kind(b->build.plan, token, &x), *w = plan_kind(b->build.plan, want, &y);
    die("%s, step %u of start %u: says %s 0x%x, not %s 0x%x", who, b->step, b->start, k ? k->name : "nothing", k ? x : token, w->name, y);
}

static const char *const backend_name[] = { "dense", "sparse" };

/* All are fed the next token, whose own output nobody looks at. */
static void feed(Bench *b)
{
    plan_step(b->plan, b->next);
    for (int k = 0; k < 2; k++)
        if (b->machine[k]) machine_feed(b->machine[k], b->next);
}

/* The host's next byte, or its end. */
static void answer(Bench *b)
{
    uint32_t byte = chance(80) ? 0x100 | below(256) : 0;
    feed(b);
    sim_set(b->steps.sim, (uint32_t)(-2 - b->host->field), 0, byte);
    b->next = b->host->base + byte;
    b->answered = true;
}

static bool takes(const StepEncoder *s)
{
    for (uint32_t i = 0; i < s->nevents; i++)
        if (s->events[i].role == EMIT_TAKE) return !s->ended;
    return false;
}

static void one_step(Bench *b)
{
    encode_step(&b->steps);
    encode_commit(&b->steps, b->steps.ended);
    b->answered = false;
    for (uint32_t i = 0; i < b->steps.said.n; i++) {
        uint32_t want = b->steps.said.data[i];
        expect(b, "plan", plan_step(b->plan, b->next), want);
        for (int k = 0; k < 2; k++)
            if (b->machine[k]) expect(b, backend_name[k], machine_feed(b->machine[k], b->next), want);
        b->next = want;
        totals->tokens++;
    }
    totals->steps++;
    if (takes(&b->steps)) answer(b);
}

/* The pass that reads a step's last token: its fed-back writes, and the next step's direct ones. */
static void settle(Bench *b)
{
    if (b->steps.ended || b->answered) return;
    feed(b);
    encode_ahead(&b->steps);
}

static void compare_states(const Bench *b)
{
    const Circuit *c = circuit_of(b);
    for (uint32_t i = 0; i < c->states.n; i++)
        for (uint32_t r = 0; r < c->states.data[i].rows; r++) {
            uint64_t want = sim_get(b->steps.sim, i, r), got = 0;
            const State *s = &c->states.data[i];
            if (is_hard(s, r) || s->kind == ST_HOST) continue;
            if (!plansim_holds(b->plan, i, r, want)) die("plan, start %u: %s[%u] is 0x%llx, not 0x%llx", b->start, s->name, r, (unsigned long long)plansim_get(b->plan, i, r), (unsigned long long)want);
            for (int k = 0; k < 2; k++) {
                char *err = NULL;
                if (!b->machine[k] || !b->model->state[i].ncopies) continue;
                must(machine_get(b->machine[k], &b->model->state[i], r, &got, &err), err);
                if (got != want) die("%s: %s[%u] is 0x%llx, not 0x%llx", backend_name[k], s->name, r, (unsigned long long)got, (unsigned long long)want);
            }
        }
}

static void run_from(Bench *b, bool random, bool dense)
{
    encode_begin(&b->steps, b->build.protocol, sim_new(circuit_of(b), NULL));
    open_machines(b, dense);
    plansim_clear(b->plan);
    set_all(b, random);
    b->next = b->model->start;
    if (b->host) answer(b);
    for (b->step = 0; b->step < STEPS && !b->steps.ended; b->step++) one_step(b);
    settle(b);
    compare_states(b);
    close_machines(b);
    sim_free(b->steps.sim);
}

/* Two lanes of a batch (planes, where the chip can be planes) beside a machine of its own, from the initial state with an empty input. */
static void batch_too(const Bench *b)
{
    BatchJob job[3] = {{0}}, *one = &job[2];
    BatchReport planes, single;
    BatchOptions o = {.max_steps = 10 * STEPS, .threads = 1};
    char *err = NULL;
    must(batch_run(b->model, job, 2, &o, &planes, &err), err);
    o.single = true;
    must(batch_run(b->model, one, 1, &o, &single, &err), err);
    totals->planes += !*planes.why;
    totals->odd += *planes.why && strcmp(planes.why, "bfloat16") != 0 && strcmp(planes.why, "a memory in an attention layer") != 0;
    for (int i = 0; i < 2; i++) {
        bool same = job[i].why == one->why && (one->why == STOP_STEPS || (job[i].payload == one->payload && job[i].kind == one->kind)) && job[i].steps == one->steps &&
                    job[i].tokens == one->tokens && job[i].noutput == one->noutput && (!one->noutput || !memcmp(job[i].output, one->output, one->noutput));
        if (!same) die("lane %d of a batch ends otherwise: %llu steps, %llu tokens, not %llu, %llu", i, (unsigned long long)job[i].steps,
                       (unsigned long long)job[i].tokens, (unsigned long long)one->steps, (unsigned long long)one->tokens);
    }
    for (int i = 0; i < 3; i++) free(job[i].output);
}

/* A run's trace by a back end, from the initial state; the machine is left open. */
static Machine *traced(const Bench *b, const Backend *backend, char **trace)
{
    static uint8_t input[64] = "what a host has to say, now and then; the end comes soon.";
    BackendOptions o = {.patience = 4};
    char *err = NULL;
    size_t n = 0;
    FILE *out = open_memstream(trace, &n), *in = fmemopen(input, sizeof input, "rb");
    Machine *mc = machine_open(b->model, backend, &o, NULL, &err);
    must(mc, err);
    LoopOptions loop = {.max_steps = 50 * STEPS, .trace = out, .in = in};
    machine_run(mc, &loop);
    fclose(in);
    fclose(out);
    return mc;
}

static void same_state(Machine *x, Machine *y, const ChipState *s)
{
    char *err = NULL;
    for (uint32_t r = 0; s->ncopies && r < s->rows; r++) {
        uint64_t u = 0, v = 0;
        must(machine_get(x, s, r, &u, &err), err);
        must(machine_get(y, s, r, &v, &err), err);
        if (u != v) die("adaptive: %s[%u] is %llx, not %llx", s->name, r, (unsigned long long)v, (unsigned long long)u);
    }
}

/* The trace, many tokens at once. */
static void follow_too(const Bench *b, const char *trace)
{
    char *name = temporary_file();
    FILE *f = fopen(name, "w");
    if (!f || fputs(trace, f) < 0 || fclose(f)) die("no trace");
    fflush(stdout);
    int out = dup(1), nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, 1);
    int status = runtime_follow(&(FollowOptions){ .chip = b->file, .trace = name });
    fflush(stdout);
    dup2(out, 1);
    close(out), close(nowhere);
    unlink(name);
    if (status) die("check: the trace is not what the chip says");
}

static void adaptive_too(const Bench *b)
{
    char *want, *got;
    Machine *x = traced(b, &sparse_backend, &want), *y = traced(b, &adaptive_backend, &got);
    for (size_t i = 0, line = 1; want[i] || got[i]; line += want[i++] == '\n')
        if (want[i] != got[i]) die("adaptive: token %zu differs", line);
    for (uint32_t i = 0; i < b->model->nstates; i++) same_state(x, y, &b->model->state[i]);
    machine_close(x);
    machine_close(y);
    follow_too(b, want);
    free(want);
    free(got);
}

static const char *target_of(uint64_t seed)
{
    static const char *const name[] = { "native", "native64", "qwen3.5-0.8b" };
    return name[seed % 20 == 19 ? 2 : seed % 6 == 5];
}

static void test_seed(uint64_t seed, bool show)
{
    Circuit *c = random_circuit(seed, true);
    bool bf16 = seed % 4 == 3, dense = seed % 5 == 0 || show;
    Bench b = {0};
    if (show) circuit_print(c, stdout);
    BuildOptions o = { .target = target_find(target_of(seed)), .bf16 = bf16, .vocab = seed % 7 == 6 ? 6000 : 0 };
    b.build = build_machine(circuit_optimize(c), &o);
    if (show && b.build.error) printf("refused: %s\n", b.build.error);
    if (b.build.error) {
        totals->refused++;
        return;
    }
    if (show) build_report(&b.build, stdout);
    fflush(stdout); /* a `die` would lose it */
    totals->chips++, totals->layers += b.build.plan->layers;
    b.host = protocol_kind(b.build.protocol, ROLE_INPUT);
    b.model = through_a_file(b.build.chip, &b.file);
    Proof proof = {0};
    bool proved = prove_run(b.model, NULL, NULL, &proof);
    totals->proved += proved;
    if (!proved) printf("seed %llu: not proved: %s\n", (unsigned long long)seed, proof.refusal);
    b.plan = plansim_new(b.build.plan, NULL);
    stream.channels = b.build.plan->nchannels;
    plansim_probe(b.plan, plan_block, NULL);
    for (b.start = 0; b.start < STARTS; b.start++) run_from(&b, b.start > 0, show || (dense && b.start < 2));
    if (seed % 3) past_numbers_from = seed % 3;
    batch_too(&b);
    adaptive_too(&b);
    past_numbers_from = UINT32_MAX;
    model_close(b.model);
    unlink(b.file);
    encode_free(&b.steps);
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : COUNT;
    totals = mmap(NULL, sizeof *totals, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (totals == MAP_FAILED) die("out of memory");
    bool well = true;
    for (uint64_t i = 0; i < count; i += BATCH) well &= run_batch(test_seed, &totals->seed, first + i, count - i < BATCH ? count - i : BATCH, count == 1);
    printf("%llu chips of %llu layers (%llu as planes too), %llu circuits refused; %llu steps, %llu tokens\n", (unsigned long long)totals->chips,
           (unsigned long long)totals->layers, (unsigned long long)totals->planes, (unsigned long long)totals->refused, (unsigned long long)totals->steps,
           (unsigned long long)totals->tokens);
    uint64_t unproved = totals->chips - totals->proved;
    return well && totals->chips && unproved <= totals->chips / UNPROVED && totals->odd <= totals->chips / ODD ? 0 : 1;
}
