/* main.c: `golden FIRMWARE.elf`, the reference interpreter as a program. Console output goes to stdout, the program's exit
 * code becomes ours; a fault exits with 1. --trace writes one line per step to stderr; --cpu takes a row of golden_cpus (default
 * rv32i), --cpus prints them: a name, then its extensions. */
#include "golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    const char *elf, *signature;
    const GoldenCpu *cpu;
    uint64_t ram, steps;
    bool trace, stats, regs;
} Options;

static const char usage[] = "usage: golden FIRMWARE.elf [--cpu NAME] [--ram BYTES] [--steps N] [--trace] [--stats] [--regs] [--signature FILE]\n";

static bool parse_number(const char *s, uint64_t *out)
{
    char *end;
    if (!s || *s < '0' || *s > '9') return false;
    *out = strtoull(s, &end, 0);
    return *end == 0;
}

static bool parse_options(int argc, char **argv, Options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (!strcmp(a, "--trace")) o->trace = true;
        else if (!strcmp(a, "--stats")) o->stats = true;
        else if (!strcmp(a, "--regs")) o->regs = true;
        else if (!strcmp(a, "--ram")) {
            if (!parse_number(argv[++i], &o->ram)) return false;
        } else if (!strcmp(a, "--signature")) {
            if (!(o->signature = argv[++i])) return false;
        } else if (!strcmp(a, "--cpu")) {
            if (!argv[++i] || !(o->cpu = golden_cpu(argv[i]))) return false;
        } else if (!strcmp(a, "--steps")) {
            if (!parse_number(argv[++i], &o->steps)) return false;
        } else if (a[0] == '-' || o->elf) return false;
        else o->elf = a;
    }
    return o->elf != NULL;
}

static void put_stdout(void *ctx, uint8_t byte) { putc(byte, ctx); }
static int get_stdin(void *ctx) { return getc(ctx); }

static void print_commit(const Golden *g, const GoldenCommit *c)
{
    fprintf(stderr, "%08x %08x %-6s", c->pc, c->word, c->name ? c->name : "trap");
    if (c->rd) fprintf(stderr, " x%u=%08x", c->rd, c->value);
    if (c->store_size) fprintf(stderr, " [%08x]=%0*x", c->store_addr, (int)c->store_size * 2, c->store_data);
    if (!c->name) fprintf(stderr, " mcause=%08x mtval=%08x", g->csr.mcause, g->csr.mtval);
    fputc('\n', stderr);
}

static void run_traced(Golden *g, uint64_t max_steps)
{
    GoldenCommit c;
    bool running = true;
    while (running && !(max_steps && g->steps >= max_steps)) {
        running = golden_step(g, &c);
        if (g->state != GOLDEN_FAULT) print_commit(g, &c);
    }
}

static bool write_signature(const Golden *g, const char *path)
{
    uint32_t begin = g->signature[0] - (uint32_t)GOLDEN_RAM_BASE, end = g->signature[1] - (uint32_t)GOLDEN_RAM_BASE;
    FILE *f = begin <= end && end <= g->ram_size ? fopen(path, "w") : NULL;
    if (!f) return false;
    for (; begin < end; begin += 4) fprintf(f, "%02x%02x%02x%02x\n", g->ram[begin + 3], g->ram[begin + 2], g->ram[begin + 1], g->ram[begin]);
    return fclose(f) == 0;
}

static void print_stats(const Golden *g, double seconds)
{
    fprintf(stderr, "steps: %llu\nseconds: %.6f\n", (unsigned long long)g->steps, seconds);
    fprintf(stderr, "steps_per_second: %.0f\n", seconds > 0 ? (double)g->steps / seconds : 0.0);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int print_cpus(void)
{
    static const struct {
        GoldenIsa bit;
        const char *name;
    } extensions[] = { { ISA_M, "m" }, { ISA_A, "a" }, { ISA_ZBA, "zba" }, { ISA_ZBB, "zbb" }, { ISA_MACHINE, "machine" },
                     { ISA_CLINT, "clint" }, { ISA_CONSOLE, "console" } };
    for (const GoldenCpu *c = golden_cpus; c->name; c++) {
        fputs(c->name, stdout);
        for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
            if (c->isa & extensions[i].bit) printf(" %s", extensions[i].name);
        putchar('\n');
    }
    return 0;
}

int main(int argc, char **argv)
{
    Options o = { .ram = 64 << 10, .cpu = golden_cpus };
    if (argc == 2 && !strcmp(argv[1], "--cpus")) return print_cpus();
    if (!parse_options(argc, argv, &o)) {
        fputs(usage, stderr);
        return 2;
    }
    Golden *g = o.ram <= 1u << 30 ? golden_new(o.cpu->isa, (uint32_t)o.ram) : NULL;
    if (!g) {
        fprintf(stderr, "golden: --ram must be a power of two from 4096 to 2^30\n");
        return 2;
    }
    const char *err = golden_load_elf(g, o.elf);
    if (err) {
        fprintf(stderr, "golden: %s: %s\n", o.elf, err);
        return 1;
    }
    g->put = put_stdout;
    g->put_ctx = stdout;
    g->get = get_stdin;
    g->get_ctx = stdin;
    double start = now();
    if (o.trace) run_traced(g, o.steps);
    else golden_run(g, o.steps);
    double seconds = now() - start;
    fflush(stdout);
    if (o.stats) print_stats(g, seconds);
    for (int i = 0; o.regs && i < 32; i++) fprintf(stderr, "x%d=%08x%c", i, g->x[i], i % 8 == 7 ? '\n' : ' ');
    if (o.signature && !write_signature(g, o.signature)) {
        fprintf(stderr, "golden: no signature\n");
        return 1;
    }
    if (g->state == GOLDEN_FAULT)
        fprintf(stderr, "golden: fault %u: %s at pc 0x%08x\n", g->code, golden_fault_name(g->code), g->pc);
    return g->state == GOLDEN_FAULT ? 1 : g->state == GOLDEN_EXIT ? (int)g->code : 0;
}
