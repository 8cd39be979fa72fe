/* freerun.c: `freerun CHIP FIRMWARE.elf [--steps N] [--every K] [--seconds S] [--patience T]`: the sparse back end beside the golden interpreter for hundreds of
 * millions of instructions; with --patience the adaptive one, by paths from token T on until somebody looks at the machine. Every K steps of the machine (default
 * 10,000) pc and all registers are compared, at the end all of RAM; console output is counted and folded on both sides. The chip runs as `tapeout run` does, in bursts, nothing looks at its tokens.
 *
 * The chip's steps are instructions, traps and, after a trap and before a word is fetched that was stored to since its last fetch, one
 * that brings the fetch copy up to date (see cpu-spec/rv32i.ckt, zicsr.ckt). The same is counted here, so that both stop at the same place. */
#include "../../runtime/runtime.h"
#include "golden.h"

#include <stdlib.h>
#include <time.h>

typedef struct {
    Golden *g;
    uint8_t *stale; /* [RAM words]: stored to since it was last fetched */
    uint64_t steps; /* the machine's */
    uint32_t hash;  /* of the console */
    uint64_t bytes;
} Reference;

typedef struct {
    Model *m;
    Machine *mc;
    const ChipState *pc, *x, *ram;
    FILE *out; /* what the chip prints, a temporary file */
} Chip;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint32_t fold(uint32_t hash, uint8_t byte) { return (hash ^ byte) * 16777619u; }

static void put(void *ctx, uint8_t byte)
{
    Reference *r = ctx;
    r->hash = fold(r->hash, byte);
    r->bytes++;
}

static uint8_t *stale_at(const Reference *r, uint32_t addr)
{
    uint32_t off = addr - (uint32_t)GOLDEN_RAM_BASE;
    return off < r->g->ram_size ? &r->stale[off / 4] : NULL;
}

/* One step of the machine. */
static void reference_step(Reference *r)
{
    uint8_t *s = stale_at(r, r->g->pc);
    r->steps++;
    if (s && !r->g->csr.due && *s) { /* an interrupt comes first */
        *s = 0;
        return;
    }
    golden_step(r->g, NULL);
    if (r->g->store.size && (s = stale_at(r, r->g->store.addr))) *s = 1;
}

/* ---- comparing ---- */
static uint64_t get(const Chip *c, const ChipState *s, uint32_t row)
{
    uint64_t v = 0;
    char *err = NULL;
    if (!machine_get(c->mc, s, row, &v, &err)) die("%s[%u]: %s", s->name, row, err);
    return v;
}

static unsigned differs(const Reference *r, const char *what, uint32_t index, uint32_t golden, uint32_t chip)
{
    if (golden == chip) return 0;
    fprintf(stderr, "freerun: after %llu steps: %s[%u]: golden 0x%08x, chip 0x%08x\n", (unsigned long long)r->steps, what, index, golden, chip);
    return 1;
}

static unsigned compare_registers(const Reference *r, const Chip *c)
{
    unsigned wrong = differs(r, "pc", 0, r->g->pc, (uint32_t)(get(c, c->pc, 0) << c->pc->init_shift));
    for (uint32_t i = 1; i < 32; i++) wrong += differs(r, "x", i, r->g->x[i], (uint32_t)get(c, c->x, i));
    return wrong;
}

static unsigned compare_ram(const Reference *r, const Chip *c)
{
    unsigned wrong = 0;
    for (uint32_t i = 0; i < r->g->ram_size / 4 && wrong < 10; i++) {
        uint32_t v;
        memcpy(&v, r->g->ram + 4 * (size_t)i, 4);
        wrong += differs(r, "ram", i, v, (uint32_t)get(c, c->ram, i));
    }
    return wrong;
}

/* What the chip has printed since the last time. */
static unsigned compare_console(const Reference *r, const Chip *c)
{
    uint32_t hash = 1;
    uint64_t bytes = 0;
    rewind(c->out);
    for (int b; (b = getc(c->out)) != EOF; bytes++) hash = fold(hash, (uint8_t)b);
    return differs(r, "bytes printed", 0, (uint32_t)r->bytes, (uint32_t)bytes) + differs(r, "console", 0, r->hash, hash);
}

static const ChipState *state(const Chip *c, const char *name)
{
    const ChipState *s = model_state(c->m, name);
    if (!s) die("the chip has no state named %s", name);
    return s;
}

/* The chip has stopped; a step that faults is not counted, so it is still to be done here. What ends a run writes no registers. */
static unsigned compare_stop(Reference *r, const StopInfo *stop)
{
    if (stop->why == STOP_FAULT) golden_step(r->g, NULL);
    bool fault = r->g->state == GOLDEN_FAULT;
    if (fault != (stop->why == STOP_FAULT)) return differs(r, "kind of stop", 0, r->g->state, stop->why);
    if (fault) return differs(r, "fault", r->g->code, 0, strcmp(golden_fault_name(r->g->code), stop->kind->message) != 0);
    return differs(r, "status", 0, r->g->code, (uint32_t)stop->payload);
}

/* ---- running ---- */
typedef struct {
    uint64_t steps, every, seconds, patience; /* seconds 0: no limit; patience: BackendOptions */
} Limits;

/* To the limits or the program's end; the number of differences. */
static unsigned run_both(Reference *r, Chip *c, const Limits *l, uint64_t *compared)
{
    double start = now();
    for (StopInfo stop = { .why = STOP_STEPS }; stop.why == STOP_STEPS;) {
        uint64_t target = machine_steps(c->mc) + l->every;
        if (target > l->steps) target = l->steps;
        stop = machine_run(c->mc, &(LoopOptions){ .max_steps = target, .out = c->out });
        while (r->g->state == GOLDEN_RUNNING && r->steps < machine_steps(c->mc)) reference_step(r);
        if (stop.why != STOP_STEPS) return compare_stop(r, &stop) + compare_ram(r, c);
        machine_settle(c->mc);
        unsigned wrong = compare_registers(r, c);
        ++*compared;
        if (wrong) return wrong;
        if (target == l->steps || (l->seconds && now() - start >= (double)l->seconds)) {
            reference_step(r); /* whose stores need no token, so that they have happened */
            return compare_ram(r, c);
        }
    }
    return 0;
}

static bool open_both(Reference *r, Chip *c, const char *chip, const char *elf, const BackendOptions *o, char **err)
{
    if (!(c->m = model_open(chip, err))) return false;
    Firmware *f = firmware_open(elf, err); /* lives as long as the process */
    if (!f || !firmware_fits(f, c->m, err)) return false;
    *c = (Chip){ c->m, machine_open(c->m, o->patience ? &adaptive_backend : &sparse_backend, o, &f->image, err), state(c, "pc"), state(c, "x"), state(c, "ram"), tmpfile() };
    if (!c->mc || !c->out) return false;
    const GoldenCpu *cpu = golden_cpu(c->m->name);
    if (!cpu) return fail(err, "the golden interpreter knows no CPU named %s", c->m->name);
    uint32_t size = (uint32_t)(c->ram->rows * (c->ram->width / 8));
    *r = (Reference){ .g = golden_new(cpu->isa, size), .stale = calloc(size / 4, 1), .hash = 1 };
    if (!r->g || !r->stale) return fail(err, "RAM of %u bytes", size);
    const char *why = golden_load_elf(r->g, elf);
    r->g->put = put;
    r->g->put_ctx = r;
    return !why || fail(err, "%s: %s", elf, why);
}

int main(int argc, char **argv)
{
    Limits l = { UINT64_MAX, 10000, 0, 0 };
    uint64_t compared = 0;
    for (int i = 3; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--steps")) l.steps = strtoull(argv[i + 1], NULL, 0);
        else if (!strcmp(argv[i], "--every")) l.every = strtoull(argv[i + 1], NULL, 0);
        else if (!strcmp(argv[i], "--seconds")) l.seconds = strtoull(argv[i + 1], NULL, 0);
        else if (!strcmp(argv[i], "--patience")) l.patience = strtoull(argv[i + 1], NULL, 0);
        else l.every = 0;
    }
    if (argc < 3 || argc % 2 == 0 || !l.steps || !l.every) {
        fputs("usage: freerun CHIP FIRMWARE.elf [--steps N] [--every K] [--seconds S] [--patience T]\n", stderr);
        return 2;
    }
    Reference r;
    Chip c = { 0 };
    char *err = NULL;
    if (!open_both(&r, &c, argv[1], argv[2], &(BackendOptions){ .patience = (uint32_t)l.patience }, &err)) {
        fprintf(stderr, "freerun: %s\n", err ? err : "no temporary file");
        return 1;
    }
    double start = now();
    unsigned wrong = run_both(&r, &c, &l, &compared);
    wrong += compare_console(&r, &c);
    double seconds = now() - start;
    printf("steps: %llu\ntokens: %llu\ntraps: %llu\ncompared: %llu\nseconds: %.1f\nsteps_per_second: %.0f\nmismatches: %u\n",
           (unsigned long long)machine_steps(c.mc), (unsigned long long)machine_tokens(c.mc), (unsigned long long)r.g->traps,
           (unsigned long long)compared, seconds, (double)machine_steps(c.mc) / seconds, wrong);
    machine_stats(c.mc, stdout);
    return wrong != 0;
}
