/* versus.c: `versus COUNT [--seed S] [--cpu NAME]`: random programs of program.c on the golden interpreter and on QEMU; all of memory at the
 * end, with the registers that each program leaves there, must be the same byte for byte.
 *
 * One QEMU runs many programs. Its RAM is a file that both see: a driver there copies each program to the start of RAM, clears the
 * registers, jumps to it, and when the program leaves through its exit word, which points to the driver, copies the RAM back. */
#include "encode.h"
#include "golden.h"
#include "lockstep.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RAM = 64 << 10, BATCH = 512 };
/* Offsets in QEMU's RAM. It puts a device tree near the end, which nothing of ours may reach. */
enum { DRIVER = 0x100000, DRIVER_EXIT = DRIVER + 0x400, SLOTS = 0x200000, QEMU_RAM = 64 << 20 };
_Static_assert(SLOTS + BATCH * RAM <= QEMU_RAM - (16 << 20), "slots and device tree");
static const uint64_t MAX_STEPS = 1000000; /* a program that goes on longer is a mistake of the generator */
static const char qemu_cpu[] = "rv32,c=false,f=false,d=false,h=false,s=false,u=false";

static uint32_t address(uint32_t offset) { return (uint32_t)GOLDEN_RAM_BASE + offset; }

static void put(uint8_t *p, uint32_t w) { memcpy(p, &w, 4); } /* hosts are little-endian, as the machine is */

/* ---- the driver ---- */
typedef struct {
    uint8_t *at;
} Code;

static void emit(Code *c, uint32_t w)
{
    put(c->at, w);
    c->at += 4;
}

static void emit_li(Code *c, uint32_t rd, uint32_t v)
{
    emit(c, LUI(rd, v + 0x800));
    emit(c, ADDI(rd, rd, v));
}

/* RAM bytes from x6 to x5; x7 and x8 change. */
static void emit_copy(Code *c)
{
    emit_li(c, 7, RAM);
    emit(c, r_type(0, 7, 6, 0, 7, 0x33));
    for (uint32_t i = 0; i < 16; i += 4) {
        emit(c, LW(8, i, 6));
        emit(c, SW(8, i, 5));
    }
    emit(c, ADDI(6, 6, 16));
    emit(c, ADDI(5, 5, 16));
    emit(c, BNE(6, 7, -40u));
}

/* The word before the driver holds the address of the slot that runs; its low bit is not used. */
static void make_driver(uint8_t *ram, uint32_t count)
{
    Code c = { ram };
    emit(&c, LUI(1, address(DRIVER)));
    emit(&c, JALR(0, 1, 0));
    put(ram + DRIVER - 4, address(SLOTS));
    c.at = ram + DRIVER;
    emit(&c, LUI(9, address(DRIVER)));
    emit(&c, LW(6, -4, 9));
    emit(&c, LUI(5, address(0)));
    emit_copy(&c);
    emit(&c, FENCE_I);
    for (uint32_t i = 1; i < 32; i++) emit(&c, ADDI(i, 0, 0));
    uint32_t from = (uint32_t)(c.at - ram);
    emit(&c, j_type(0u - from + 0x40000, 0)); /* a jump reaches 1 MiB less 2 */
    c.at = ram + 0x40000;
    emit(&c, j_type(-0x40000u, 0));
    c.at = ram + DRIVER_EXIT;
    emit(&c, LUI(9, address(DRIVER)));
    emit(&c, LW(5, -4, 9));
    emit(&c, LUI(6, address(0)));
    emit_copy(&c);
    emit(&c, SW(5, -4, 9)); /* the next slot */
    emit_li(&c, 6, address(SLOTS) + count * RAM);
    emit(&c, b_type(0, 6, 5, 0));
    uint8_t *last = c.at - 4;
    emit(&c, j_type((uint32_t)(DRIVER - (c.at - ram)), 0));
    put(last, b_type((uint32_t)(c.at - last), 6, 5, 0));
    emit(&c, LUI(1, GOLDEN_FINISHER));
    emit_li(&c, 2, 0x5555);
    emit(&c, SW(2, 0, 1));
    emit(&c, j_type(0, 0));
}

static bool run_qemu(const char *file)
{
    char command[600];
    snprintf(command, sizeof command,
             "timeout 120 qemu-system-riscv32 -M virt,memory-backend=ram -object memory-backend-file,id=ram,size=%d,mem-path=%s,share=on -m %dM "
             "-bios none -nographic -cpu %s </dev/null",
             QEMU_RAM, file, QEMU_RAM >> 20, qemu_cpu);
    int status = system(command);
    if (status) fprintf(stderr, "versus: QEMU ends with status %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : status);
    return status == 0;
}

/* ---- comparing ---- */
typedef struct {
    const GoldenCpu *cpu;
    uint64_t seed, steps, traps;
    const GoldenInsn *insn[256]; /* what was executed at least once, in order of appearance */
    unsigned wrong;
    uint8_t *ram; /* QEMU's, QEMU_RAM bytes, the file's */
    char file[64];
} Run;

static void report(Run *r, uint64_t seed, const char *what, uint32_t addr, uint32_t golden, uint32_t other)
{
    r->wrong++;
    fprintf(stderr, "versus: seed %llu: %s at 0x%08x: golden 0x%08x, QEMU 0x%08x\n", (unsigned long long)seed, what, addr, golden, other);
}

static void seen(Run *r, uint32_t word)
{
    const GoldenInsn *insn = golden_decode(r->cpu->isa, word);
    unsigned i = 0;
    while (r->insn[i] && r->insn[i] != insn) i++;
    r->insn[i] = insn;
}

static unsigned kinds_seen(const Run *r)
{
    unsigned n = 0;
    while (r->insn[n]) n++;
    return n;
}

/* The slot holds what QEMU left. */
static void compare(Run *r, uint64_t seed, const uint8_t *slot)
{
    Golden *g = golden_new(r->cpu->isa, RAM);
    Random random = { seed };
    program_make(&random, r->cpu->isa, false, g->ram, RAM);
    g->pc = (uint32_t)GOLDEN_RAM_BASE;
    GoldenCommit commit;
    while (g->state == GOLDEN_RUNNING && g->steps < MAX_STEPS)
        if (golden_step(g, &commit) && commit.name) seen(r, commit.word);
    r->steps += g->steps;
    r->traps += g->traps;
    if (g->state != GOLDEN_EXIT || g->code) report(r, seed, "the end", g->pc, (uint32_t)g->state << 8 | g->code, 0);
    for (uint32_t a = 0; a < RAM; a += 4) {
        if (a == program_exit_word(RAM) || !memcmp(g->ram + a, slot + a, 4)) continue;
        uint32_t x, y;
        memcpy(&x, g->ram + a, 4);
        memcpy(&y, slot + a, 4);
        report(r, seed, "memory", address(a), x, y);
        break;
    }
    golden_free(g);
}

static bool run_batch(Run *r, uint32_t count)
{
    memset(r->ram, 0, SLOTS);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *slot = r->ram + SLOTS + i * RAM;
        Random random = { r->seed + i };
        program_make(&random, r->cpu->isa, false, slot, RAM);
        put(slot + program_exit_word(RAM), address(DRIVER_EXIT));
    }
    make_driver(r->ram, count);
    if (!run_qemu(r->file)) return false;
    for (uint32_t i = 0; i < count; i++) compare(r, r->seed + i, r->ram + SLOTS + i * RAM);
    r->seed += count;
    return true;
}

static bool open_ram(Run *r)
{
    snprintf(r->file, sizeof r->file, "%.40s/versus-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    int fd = mkstemp(r->file);
    if (fd < 0 || ftruncate(fd, QEMU_RAM)) return false;
    r->ram = mmap(NULL, QEMU_RAM, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return r->ram != MAP_FAILED;
}

int main(int argc, char **argv)
{
    Run r = { .cpu = golden_cpu("rv32ima"), .seed = 1 };
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
    for (int i = 2; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--seed")) r.seed = strtoull(argv[i + 1], NULL, 0);
        else if (!strcmp(argv[i], "--cpu")) r.cpu = golden_cpu(argv[i + 1]);
        else count = 0;
    }
    if (!count || !r.cpu || argc % 2) {
        fputs("usage: versus COUNT [--seed S] [--cpu NAME]\n", stderr);
        return 2;
    }
    if (!open_ram(&r)) {
        fprintf(stderr, "versus: %s: cannot be made\n", r.file);
        return 1;
    }
    bool ok = true;
    for (uint64_t left = count; ok && left && r.wrong < 10;) {
        uint32_t n = left < BATCH ? (uint32_t)left : BATCH;
        ok = run_batch(&r, n);
        left -= n;
    }
    unlink(r.file);
    printf("programs: %llu\nsteps: %llu\ntraps: %llu\ninstructions: %u\ndifferent: %u\n", (unsigned long long)count,
           (unsigned long long)r.steps, (unsigned long long)r.traps, kinds_seen(&r), r.wrong);
    return !ok || r.wrong;
}
