/* lockstep.c: the netlist interpreter beside the golden one. After every retired step pc, all registers, the stored word,
 * console output and events must agree; at the end, unless it is a fault, all of RAM. Three sources of instructions:
 *
 *   lockstep SPEC.ckt FIRMWARE.elf...     whole programs
 *   lockstep SPEC.ckt --programs N        random programs: by turns such as end by themselves (program.c), and such as run until
 *                                         a fault or a few thousand steps (random.c)
 *   lockstep SPEC.ckt --words N           single random instructions from random register contents
 *
 * --raw takes the netlist before optimisation, --seed S other random numbers, --steps N a limit per program. */
#include "../../frontend/frontend.h"
#include "../../runtime/runtime.h"
#include "golden.h"
#include "lockstep.h"

#include <stdlib.h>
#include <string.h>

/* Indices of the state elements that an RV32I machine must have, and of those that machine mode adds. */
enum { MTVEC, MSCRATCH, MEPC, MCAUSE, MTVAL, MIE_BIT, MPIE_BIT, CSRS };
static const char *const csr_names[CSRS] = { "mtvec", "mscratch", "mepc", "mcause", "mtval", "ie", "pie" };
/* What a trap left instead, while the flag is set. */
static const char *const trap_names[CSRS][2] = { [MEPC] = { "trap_pc", "pc_trapped" }, [MCAUSE] = { "trap_cause", "cause_trapped" }, [MTVAL] = { "trap_value", "value_trapped" } };
static const char *const irq_names[2] = { "software_irq", "timer_irq" };
typedef struct {
    uint32_t pc, x, ram, code, refill;
    uint32_t csr[CSRS], trap[CSRS][2], irq[2], amo;
    bool has_csrs, has_amo;
} Map;

typedef struct {
    const Circuit *c;
    Map map;
    Golden *g; /* the CPU that has the circuit's name */
    Sim *sim;
    uint8_t golden_out, sim_out; /* the step's console byte */
    unsigned golden_puts, sim_puts;
    bool sim_stopped;
    EmitRole sim_role;
    uint64_t sim_payload;
    char why[200];
} Pair;

static uint32_t find_state(const Circuit *c, const char *name)
{
    for (uint32_t i = 0; i < c->states.n; i++)
        if (!strcmp(c->states.data[i].name, name)) return i;
    fprintf(stderr, "lockstep: the machine has no state named %s\n", name);
    exit(1);
}

static Map find_map(const Circuit *c, bool machine, bool atomic)
{
    Map m = { .pc = find_state(c, "pc"), .x = find_state(c, "x"), .ram = find_state(c, "ram"), .code = find_state(c, "code"), .refill = find_state(c, "refill"),
              .has_csrs = machine };
    for (int i = 0; machine && i < CSRS; i++) {
        m.csr[i] = find_state(c, csr_names[i]);
        for (int k = 0; k < 2 && trap_names[i][k]; k++) m.trap[i][k] = find_state(c, trap_names[i][k]);
    }
    m.has_amo = atomic;
    if (atomic) m.amo = find_state(c, "amo");
    for (int k = 0; machine && k < 2; k++) m.irq[k] = find_state(c, irq_names[k]);
    return m;
}

/* The golden interpreter's register of that name. */
static uint32_t *golden_csr(Golden *g, int i)
{
    GoldenCsr *c = &g->csr;
    uint32_t *const regs[CSRS] = { &c->mtvec, &c->mscratch, &c->mepc, &c->mcause, &c->mtval, &c->mie_bit, &c->mpie_bit };
    return regs[i];
}

static void golden_put(void *ctx, uint8_t byte)
{
    Pair *p = ctx;
    p->golden_out = byte;
    p->golden_puts++;
}

/* A register as the program sees it: one with `align` lacks its lower bits, a flag is one bit. */
static uint32_t sim_reg(const Pair *p, uint32_t state)
{
    uint32_t width = p->c->states.data[state].width;
    return (uint32_t)(sim_get(p->sim, state, 0) << (width > 1 ? 32 - width : 0));
}
static uint32_t sim_csr(const Pair *p, int i)
{
    bool trapped = trap_names[i][0] && sim_get(p->sim, p->map.trap[i][1], 0);
    return sim_reg(p, trapped ? p->map.trap[i][0] : p->map.csr[i]);
}
static uint32_t sim_pc(const Pair *p) { return sim_reg(p, p->map.pc); }

static bool differ(Pair *p, const char *what, uint32_t golden, uint32_t sim)
{
    snprintf(p->why, sizeof p->why, "%s: golden 0x%08x, netlist 0x%08x", what, golden, sim);
    return false;
}

static bool in_ram(const Golden *g, uint32_t addr) { return addr - (uint32_t)GOLDEN_RAM_BASE < g->ram_size; }

/* Passes of the netlist until an instruction retires, a trap is taken or an event stops the machine. A step that only brings the fetch
 * copy of the memory up to date is a step of the machine, but no instruction: before it `refill` is set, and no trap comes first. */
static void sim_retire(Pair *p)
{
    bool retired = false;
    for (int pass = 0; !retired && !p->sim_stopped && pass < 1000; pass++) {
        bool refill = sim_get(p->sim, p->map.refill, 0) && in_ram(p->g, sim_pc(p));
        for (int k = 0; p->map.has_csrs && k < 2; k++) refill &= !sim_get(p->sim, p->map.irq[k], 0);
        const Event *e;
        uint32_t n = sim_step(p->sim, &e, &retired);
        for (uint32_t i = 0; i < n; i++) {
            if (e[i].role == EMIT_OUTPUT) p->sim_out = (uint8_t)e[i].payload, p->sim_puts++;
            if (p->sim_stopped || (e[i].role != EMIT_EXIT && e[i].role != EMIT_FAULT)) continue; /* the first stop counts */
            p->sim_stopped = true;
            p->sim_role = e[i].role;
            p->sim_payload = e[i].payload;
        }
        bool begun = p->map.has_amo && sim_get(p->sim, p->map.amo, 0); /* the first of an AMO's two steps */
        retired = retired && !refill && !begun;
    }
}

static bool same_stop(Pair *p)
{
    bool stopped = p->g->state != GOLDEN_RUNNING;
    if (stopped != p->sim_stopped) return differ(p, "stopped", stopped ? p->g->code | 0x100 : 0, p->sim_stopped);
    if (!stopped) return true;
    EmitRole want = p->g->state == GOLDEN_EXIT ? EMIT_EXIT : EMIT_FAULT;
    if (want != p->sim_role) return differ(p, "kind of stop", want, p->sim_role);
    if (p->g->code != p->sim_payload) return differ(p, "code of the stop", p->g->code, (uint32_t)p->sim_payload);
    return true;
}

/* The bytes [addr, addr + 4) of memory `state`. */
static uint32_t sim_word(const Pair *p, uint32_t state, uint32_t addr)
{
    const State *s = &p->c->states.data[state];
    uint32_t v = 0, bytes = s->width / 8, off = addr - (uint32_t)s->base;
    for (uint32_t i = 0; i < 4; i++)
        v |= (uint32_t)(sim_get(p->sim, state, (off + i) / bytes) >> (off + i) % bytes * 8 & 255) << 8 * i;
    return v;
}

static uint32_t golden_word(const Golden *g, uint32_t addr)
{
    uint32_t v;
    memcpy(&v, g->ram + (addr - (uint32_t)GOLDEN_RAM_BASE), 4); /* hosts are little-endian, as the machine is */
    return v;
}

static bool same_ram(Pair *p)
{
    for (uint32_t a = 0; a < p->g->ram_size; a += 4) {
        uint32_t addr = (uint32_t)GOLDEN_RAM_BASE + a, golden = golden_word(p->g, addr), sim = sim_word(p, p->map.ram, addr);
        if (golden == sim) continue;
        char what[32];
        snprintf(what, sizeof what, "memory at 0x%08x", addr);
        return differ(p, what, golden, sim);
    }
    return true;
}

static bool same_state(Pair *p)
{
    char what[32];
    if (p->g->pc != sim_pc(p)) return differ(p, "pc", p->g->pc, sim_pc(p));
    for (uint32_t i = 1; i < 32; i++) {
        uint32_t v = (uint32_t)sim_get(p->sim, p->map.x, i);
        snprintf(what, sizeof what, "x%u", i);
        if (p->g->x[i] != v) return differ(p, what, p->g->x[i], v);
    }
    for (int i = 0; p->map.has_csrs && i < CSRS; i++)
        if (*golden_csr(p->g, i) != sim_csr(p, i)) return differ(p, csr_names[i], *golden_csr(p->g, i), sim_csr(p, i));
    uint32_t addr = p->g->store.addr & ~3u;
    if (!p->g->store.size || !in_ram(p->g, addr)) return true;
    if (golden_word(p->g, addr) == sim_word(p, p->map.ram, addr)) return true;
    return differ(p, "stored word", golden_word(p->g, addr), sim_word(p, p->map.ram, addr));
}

/* One instruction on both. False: they differ, p->why says in what. After a stop, the registers are not compared: what a
 * faulting step leaves behind is nobody's business. */
static bool step_both(Pair *p)
{
    p->golden_puts = p->sim_puts = 0;
    golden_step(p->g, NULL);
    sim_retire(p);
    if (!same_stop(p)) return false;
    if (p->golden_puts != p->sim_puts) return differ(p, "number of console bytes", p->golden_puts, p->sim_puts);
    if (p->golden_puts && p->golden_out != p->sim_out) return differ(p, "console byte", p->golden_out, p->sim_out);
    return p->g->state == GOLDEN_FAULT || same_state(p);
}

static void report(const Pair *p, const char *what, uint32_t pc, uint32_t word)
{
    const GoldenInsn *insn = golden_decode(p->g->isa, word);
    fprintf(stderr, "lockstep: %s: step %llu, pc 0x%08x, word 0x%08x (%s): %s\n", what,
            (unsigned long long)p->g->steps, pc, word, insn ? insn->name : "illegal", p->why);
}

/* Both machines are set up; runs them until a stop, `max_steps` or a difference. */
static bool run_pair(Pair *p, const char *what, uint64_t max_steps)
{
    while (p->g->state == GOLDEN_RUNNING && (!max_steps || p->g->steps + p->g->traps < max_steps)) {
        uint32_t pc = p->g->pc, word = in_ram(p->g, pc) ? golden_word(p->g, pc) : 0;
        if (step_both(p)) continue;
        report(p, what, pc, word);
        return false;
    }
    if (p->g->state == GOLDEN_FAULT || same_ram(p)) return true;
    report(p, what, p->g->pc, 0);
    return false;
}

static void pair_open(Pair *p, const Circuit *c, uint32_t ram_size)
{
    const GoldenCpu *cpu = golden_cpu(c->name);
    if (!cpu) die("the golden interpreter knows no CPU named %s", c->name);
    *p = (Pair){ .c = c, .g = golden_new(cpu->isa, ram_size) };
    if (!p->g) die("RAM of %u bytes", ram_size);
    p->map = find_map(c, cpu->isa & ISA_MACHINE, cpu->isa & ISA_A);
    p->g->put = golden_put;
    p->g->put_ctx = p;
}

static void pair_close(Pair *p)
{
    golden_free(p->g);
    if (p->sim) sim_free(p->sim);
}

static uint32_t ram_size_of(const Circuit *c)
{
    const State *s = &c->states.data[find_state(c, "ram")];
    return (uint32_t)(s->rows * (s->width / 8));
}

static bool run_firmware(const Circuit *c, const char *path, uint64_t max_steps)
{
    Pair p;
    pair_open(&p, c, ram_size_of(c));
    const char *err = golden_load_elf(p.g, path);
    char *image_err = NULL;
    Image *image = err ? NULL : image_open(path, &image_err);
    if (err || !image) {
        fprintf(stderr, "lockstep: %s: %s\n", path, err ? err : image_err);
        return false;
    }
    p.sim = sim_new(c, image);
    bool ok = run_pair(&p, path, max_steps);
    pair_close(&p);
    return ok;
}

/* ---- random programs ---- */
static void read_ram(const Image *im, uint64_t addr, uint8_t *out, size_t n)
{
    const Golden *g = im->ctx;
    memset(out, 0, n);
    for (size_t i = 0; i < n; i++)
        if (in_ram(g, (uint32_t)(addr + i))) out[i] = g->ram[(uint32_t)(addr + i) - (uint32_t)GOLDEN_RAM_BASE];
}

static bool no_symbol(const Image *im, const char *name, uint64_t *value)
{
    (void)im, (void)name, (void)value;
    return false;
}

static bool run_random_program(const Circuit *c, uint64_t seed, uint64_t max_steps)
{
    Pair p;
    pair_open(&p, c, ram_size_of(c));
    Random r = { seed };
    if (seed & 1) program_make(&r, p.g->isa, p.g->isa & ISA_MACHINE, p.g->ram, p.g->ram_size);
    else random_program(&r, p.g->ram, p.g->ram_size);
    p.g->pc = (uint32_t)GOLDEN_RAM_BASE;
    Image image = { .entry = p.g->pc, .read = read_ram, .symbol = no_symbol, .ctx = p.g };
    p.sim = sim_new(c, &image);
    char what[48];
    snprintf(what, sizeof what, "random program, seed %llu", (unsigned long long)seed);
    bool ok = run_pair(&p, what, max_steps);
    pair_close(&p);
    return ok;
}

/* ---- single words ---- */
/* Puts the same registers, pc and instruction into both machines. */
static void inject(Pair *p, Random *r, uint32_t word)
{
    Golden *g = p->g;
    uint32_t off = random_next(r) & (g->ram_size - 1) & ~3u;
    g->pc = (uint32_t)GOLDEN_RAM_BASE + off;
    sim_set(p->sim, p->map.pc, 0, g->pc >> p->c->states.data[p->map.pc].init_shift);
    for (uint32_t i = 1; i < 32; i++) {
        g->x[i] = random_value(r, g->ram_size);
        sim_set(p->sim, p->map.x, i, g->x[i]);
    }
    golden_store(g, g->pc, word, 4);
    uint32_t copies[2] = { p->map.code, p->map.ram };
    for (int k = 0; k < 2; k++) {
        if (p->c->states.data[copies[k]].width != 32) die("memories of other than 32-bit rows");
        sim_set(p->sim, copies[k], off / 4, word);
    }
    g->state = GOLDEN_RUNNING;
    p->sim_stopped = false;
}

/* A store that faults may have changed the netlist's memory, which nobody looks at, for its machine has stopped. Ours goes on. */
static void mend_ram(Pair *p)
{
    uint32_t addr = p->g->store.addr & ~3u;
    if (in_ram(p->g, addr)) sim_set(p->sim, p->map.ram, (addr - (uint32_t)GOLDEN_RAM_BASE) / 4, golden_word(p->g, addr));
}

static bool run_words(const Circuit *c, uint64_t seed, uint64_t count)
{
    Pair p;
    pair_open(&p, c, ram_size_of(c));
    Image image = { .entry = (uint32_t)GOLDEN_RAM_BASE, .read = read_ram, .symbol = no_symbol, .ctx = p.g };
    p.sim = sim_new(c, &image);
    Random r = { seed };
    bool ok = true;
    for (uint64_t i = 0; i < count && ok; i++) {
        uint32_t word = random_word(&r);
        inject(&p, &r, word);
        sim_set(p.sim, p.map.refill, 0, 0);
        uint32_t pc = p.g->pc;
        ok = step_both(&p);
        if (!ok) report(&p, "single word", pc, word);
        if (p.g->state == GOLDEN_FAULT) mend_ram(&p);
    }
    ok = ok && same_ram(&p);
    if (!ok) fprintf(stderr, "lockstep: seed %llu: %s\n", (unsigned long long)seed, p.why);
    pair_close(&p);
    return ok;
}

/* ---- the command line ---- */
typedef struct {
    uint64_t programs, words, seed, steps;
    bool raw;
    char **file; /* [nfiles], gathered at the front of argv */
    unsigned nfiles;
} Options;

static bool parse_options(int argc, char **argv, Options *o)
{
    const struct {
        const char *name;
        uint64_t *value;
    } numbers[] = { { "--programs", &o->programs }, { "--words", &o->words }, { "--seed", &o->seed }, { "--steps", &o->steps } };
    for (int i = 1; i < argc; i++) {
        unsigned k = 0;
        while (k < 4 && strcmp(argv[i], numbers[k].name)) k++;
        if (k < 4 && i + 1 < argc) *numbers[k].value = strtoull(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--raw")) o->raw = true;
        else if (argv[i][0] == '-') return false;
        else o->file[o->nfiles++] = argv[i];
    }
    return o->nfiles > 0;
}

int main(int argc, char **argv)
{
    Options o = { .seed = 1, .file = argv };
    if (!parse_options(argc, argv, &o)) {
        fputs("usage: lockstep SPEC.ckt [FIRMWARE.elf...] [--programs N] [--words N] [--seed S] [--steps N] [--raw]\n", stderr);
        return 2;
    }
    Design *d = design_load(o.file[0], NULL, 0);
    if (!d) return 1;
    const Circuit *c = o.raw ? d->circuit : circuit_optimize(d->circuit);
    unsigned wrong = 0;
    for (unsigned i = 1; i < o.nfiles; i++) wrong += !run_firmware(c, o.file[i], o.steps);
    for (uint64_t i = 0; i < o.programs; i++) wrong += !run_random_program(c, o.seed + i, o.steps ? o.steps : 3000);
    if (o.words) wrong += !run_words(c, o.seed, o.words);
    return wrong ? 1 : 0;
}
