/* program.c: random programs that come to an end by themselves: straight code, branches, counted loops, calls, computed jumps, code that
 * rewrites itself, loads and stores of every width, and with machine mode traps of every cause, CSRs, mret and software interrupts.
 * At its end a program stores its registers into its own memory and leaves through the address in the word at PROGRAM_EXIT.
 *
 * Without `strict` the result is the same on every machine that follows the manual, QEMU among them: no misaligned
 * accesses, no counters, nothing that may be otherwise (see the lists). With `strict` those are in: for lockstep only.
 *
 * Registers: x1..x24 are free; x25 links calls; x26, x27 are the handler's and short-lived; x28 holds addresses; x29, x30 count loops;
 * x31 points to the data. Memory: code from the first byte; from the data page D on 2 KiB of data; below D the registers' dump, three words
 * of bookkeeping, and the handler's log. */
#include "encode.h"
#include "golden.h"
#include "lockstep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FREE_REGS = 25, LINK = 25, T0 = 26, T1 = 27, ADDR = 28, LOOP = 29, DATA = 31 };
enum { DUMP = -128, LOG_AT = -132, LOG = -2048, LOG_BYTES = 1024, DATA_BYTES = 2048 }; /* relative to D */
enum { CODE_MARGIN = 0x1000 }; /* the code ends so many bytes below D */
enum { MIN_ITEMS = 40, MORE_ITEMS = 80, MAX_DEPTH = 2 };

typedef struct {
    Random *r;
    uint32_t isa;
    bool strict;
    uint8_t *ram;
    uint32_t at, limit; /* offsets of the next word and of the end of the code */
    uint32_t data;      /* D, an address */
    int loops, depth;
    bool in_call;
} Gen;

static uint32_t below(Gen *g, uint32_t n) { return random_next(g->r) % n; }
static uint32_t here(const Gen *g) { return (uint32_t)GOLDEN_RAM_BASE + g->at; }

static void put(uint8_t *p, uint32_t w)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(w >> 8 * i);
}

static void emit(Gen *g, uint32_t word)
{
    if (g->at >= g->limit) {
        fprintf(stderr, "program.c: a random program outgrew its memory\n");
        abort();
    }
    put(g->ram + g->at, word);
    g->at += 4;
}

/* Two words, always. */
static void emit_li(Gen *g, uint32_t rd, uint32_t value)
{
    emit(g, LUI(rd, value + 0x800));
    emit(g, ADDI(rd, rd, value));
}

static uint32_t any(Gen *g) { return below(g, FREE_REGS); }      /* a source */
static uint32_t some(Gen *g) { return 1 + below(g, FREE_REGS - 1); } /* not x0 */

/* ---- computing ---- */
typedef struct {
    uint32_t f7, f3, isa; /* isa: what the CPU must have */
} Op;
static const Op reg_ops[] = {
    { 0, 0, 0 }, { 0x20, 0, 0 }, { 0, 1, 0 }, { 0, 2, 0 }, { 0, 3, 0 }, { 0, 4, 0 }, { 0, 5, 0 }, { 0x20, 5, 0 }, { 0, 6, 0 }, { 0, 7, 0 },
    { 1, 0, ISA_M }, { 1, 1, ISA_M }, { 1, 2, ISA_M }, { 1, 3, ISA_M }, { 1, 4, ISA_M }, { 1, 5, ISA_M }, { 1, 6, ISA_M }, { 1, 7, ISA_M },
    { 0x10, 2, ISA_ZBA }, { 0x10, 4, ISA_ZBA }, { 0x10, 6, ISA_ZBA },
    { 0x20, 4, ISA_ZBB }, { 0x20, 6, ISA_ZBB }, { 0x20, 7, ISA_ZBB }, { 5, 4, ISA_ZBB }, { 5, 5, ISA_ZBB }, { 5, 6, ISA_ZBB },
    { 5, 7, ISA_ZBB }, { 0x30, 1, ISA_ZBB }, { 0x30, 5, ISA_ZBB },
};
/* Instructions with one source: imm, funct3, opcode. */
static const uint32_t unary[][3] = {
    { 0x600, 1, 0x13 }, { 0x601, 1, 0x13 }, { 0x602, 1, 0x13 }, { 0x604, 1, 0x13 }, { 0x605, 1, 0x13 },
    { 0x080, 4, 0x33 }, { 0x287, 5, 0x13 }, { 0x698, 5, 0x13 },
};

static uint32_t reg_word(Gen *g)
{
    const Op *o;
    do o = &reg_ops[below(g, sizeof reg_ops / sizeof *reg_ops)];
    while (o->isa & ~g->isa);
    return r_type(o->f7, any(g), any(g), o->f3, any(g), 0x33);
}

static uint32_t imm_word(Gen *g)
{
    uint32_t f3 = below(g, 8), shift = below(g, 32), rotate = g->isa & ISA_ZBB ? 3 : 2;
    static const uint32_t right[] = { 0, 0x400, 0x600 }; /* srli, srai, rori */
    if (f3 == 1) return i_type(shift, any(g), 1, any(g), 0x13);
    if (f3 == 5) return i_type(right[below(g, rotate)] | shift, any(g), 5, any(g), 0x13);
    return i_type(random_next(g->r), any(g), f3, any(g), 0x13);
}

static uint32_t compute_word(Gen *g)
{
    switch (below(g, 8)) {
    case 0: return u_type(random_next(g->r), any(g), below(g, 2) ? 0x37 : 0x17);
    case 1:
    case 2:
    case 3: return imm_word(g);
    case 4:
        if (g->isa & ISA_ZBB) {
            const uint32_t *u = unary[below(g, sizeof unary / sizeof *unary)];
            return i_type(u[0], any(g), u[1], any(g), u[2]);
        }
        /* fall through */
    default: return reg_word(g);
    }
}

/* A value that decides something: where zeros, signs and overflows are. */
static void item_value(Gen *g) { emit_li(g, some(g), random_value(g->r, 0x10000)); }
static void item_compute(Gen *g) { emit(g, compute_word(g)); }

/* Instructions that only take their time; wfi waits in vain on machines that wait, unless something is pending. */
static void item_nothing(Gen *g) { emit(g, g->strict && g->isa & ISA_MACHINE && below(g, 2) ? 0x10500073u : (random_next(g->r) & 0xfff00000) | 0x0f); }

/* ---- memory ---- */
/* Into ADDR: an address of the data, from a register's contents; its lower bits are 0 as the size asks, unless all may be. */
static void emit_address(Gen *g, uint32_t size)
{
    uint32_t mask = (DATA_BYTES - 1) & ~(g->strict && below(g, 4) == 0 ? 0u : size - 1);
    emit(g, i_type(mask, any(g), 7, ADDR, 0x13));
    emit(g, r_type(0, DATA, ADDR, 0, ADDR, 0x33));
}

static void item_memory(Gen *g)
{
    static const uint8_t loads[] = { 0, 1, 2, 4, 5 };
    bool load = below(g, 2);
    uint32_t f3 = load ? loads[below(g, 5)] : below(g, 3), size = 1u << (f3 & 3), base = DATA, imm = below(g, DATA_BYTES) & ~(size - 1);
    if (below(g, 2)) {
        emit_address(g, size);
        base = ADDR;
        imm = (below(g, 64) * 4) & ~(size - 1); /* up to 252 beyond the data: zeros, written or not */
    }
    emit(g, load ? i_type(imm, base, f3, any(g), 0x03) : s_type(imm, any(g), base, f3));
}

static void item_atomic(Gen *g)
{
    static const uint8_t f5[] = { 0, 1, 4, 8, 12, 16, 20, 24, 28 };
    emit_address(g, 4);
    if (below(g, 3)) {
        emit(g, r_type((uint32_t)f5[below(g, 9)] << 2 | below(g, 4), any(g), ADDR, 2, any(g), 0x2f));
        return;
    }
    emit(g, r_type(2 << 2, 0, ADDR, 2, any(g), 0x2f));
    emit(g, r_type(3 << 2, any(g), ADDR, 2, any(g), 0x2f));
    emit(g, r_type(3 << 2, any(g), ADDR, 2, any(g), 0x2f)); /* not twice */
}

/* ---- control ---- */
static void block(Gen *g, int n);

/* The word at `at` becomes a branch to here, unless that is too far. */
static void patch_branch(Gen *g, uint32_t at, uint32_t f3, uint32_t rs1, uint32_t rs2)
{
    if (g->at - at < 4096) put(g->ram + at, b_type(g->at - at, rs2, rs1, f3));
}

static void item_if(Gen *g)
{
    static const uint8_t f3[] = { 0, 1, 4, 5, 6, 7 };
    uint32_t at = g->at, cond = f3[below(g, 6)], a = any(g), b = any(g);
    emit(g, NOP);
    block(g, (int)below(g, 6));
    patch_branch(g, at, cond, a, b);
}

static void item_loop(Gen *g)
{
    if (g->loops >= 2) return;
    uint32_t counter = LOOP + (uint32_t)g->loops++;
    emit(g, ADDI(counter, 0, 1 + below(g, 6)));
    uint32_t top = g->at;
    block(g, 1 + (int)below(g, 10));
    emit(g, ADDI(counter, counter, -1));
    uint32_t back = top - g->at;
    if (back >= -4096u) emit(g, BNE(counter, 0, back));
    g->loops--;
}

/* A routine that lies behind the place of its call, or in front. */
static void item_call(Gen *g)
{
    if (g->in_call) return;
    g->in_call = true;
    uint32_t over = g->at;
    emit(g, NOP);
    block(g, 1 + (int)below(g, 6));
    emit(g, JALR(0, LINK, 0));
    put(g->ram + over, j_type(g->at - over, 0));
    for (uint32_t n = 1 + below(g, 2); n; n--) emit(g, j_type(over + 4 - g->at, LINK));
    g->in_call = false;
}

/* jalr to a word that is near; what lies between is skipped. */
static void item_computed_jump(Gen *g)
{
    uint32_t skip = 4 * below(g, 4), adjust = below(g, 64);
    emit_li(g, ADDR, here(g) + 12 + skip - adjust);
    emit(g, JALR(any(g), ADDR, adjust));
    for (; skip; skip -= 4) emit(g, random_next(g->r));
}

/* ---- self-modifying code ---- */
static void emit_fence(Gen *g)
{
    if (g->isa & ISA_MACHINE && !(g->strict && below(g, 2))) emit(g, FENCE_I);
}

/* Writes a word of code by parts of a size, then runs it. In ADDR its address, in T1 its new contents. */
static void emit_patch(Gen *g)
{
    uint32_t f3 = below(g, 3), size = 1u << f3;
    for (uint32_t i = 0; i < 4; i += size) {
        emit(g, s_type(i, T1, ADDR, f3));
        if (size < 4) emit(g, i_type(8 * size, T1, 5, T1, 0x13));
    }
    emit_fence(g);
}

static void item_patch(Gen *g)
{
    if (!(g->isa & ISA_MACHINE) && !g->strict) return; /* without fence.i others need not see it */
    bool toggles = below(g, 2);
    uint32_t li = g->at;
    emit_li(g, ADDR, 0); /* the slot, not known yet */
    if (toggles) { /* an addi's immediate changes each time */
        emit(g, LW(T1, 0, ADDR));
        emit(g, LUI(T0, random_next(g->r) & 0xfff00000));
        emit(g, r_type(0, T0, T1, 4, T1, 0x33));
    } else {
        emit_li(g, T1, compute_word(g));
    }
    emit_patch(g);
    for (uint32_t gap = below(g, 3); gap; gap--) item_compute(g);
    uint32_t slot = here(g);
    emit(g, toggles ? ADDI(some(g), any(g), random_next(g->r)) : below(g, 2) ? compute_word(g) : 0);
    put(g->ram + li, LUI(ADDR, slot + 0x800));
    put(g->ram + li + 4, ADDI(ADDR, ADDR, slot));
}

/* ---- machine mode ---- */
enum { MSTATUS = 0x300, MIE = 0x304, MTVEC = 0x305, MSCRATCH = 0x340, MEPC = 0x341, MCAUSE = 0x342, MTVAL = 0x343 };
enum { CLINT_PAGE = GOLDEN_CLINT, MTIMECMP_PAGE = GOLDEN_CLINT + 0x4000 };
enum { IRQ_BITS = 0x88, MPP = 0x1800 };

/* The six forms; an operand of 0 in the set and clear forms only reads. */
static uint32_t csr_word(Gen *g, uint32_t number)
{
    static const uint8_t f3[] = { 1, 2, 3, 5, 6, 7 };
    return i_type(number, any(g), f3[below(g, 6)], any(g), 0x73);
}

/* Registers that any machine with machine mode has in full; with `strict` all, counters and read-only ones too. */
static void item_csr(Gen *g)
{
    static const uint16_t full[] = { MSCRATCH, MSCRATCH, MSCRATCH, MCAUSE, MTVAL };
    static const uint16_t others[] = { 0x300, 0x301, 0x304, 0x310, 0x320, 0x323, 0x33f, 0x341, 0x344, 0xb00, 0xb02, 0xb03, 0xb80, 0xb82, 0xb9f,
                                       0xc00, 0xc01, 0xc02, 0xc80, 0xc81, 0xc82, 0xf11, 0xf12, 0xf13, 0xf14, 0xf15 };
    if (g->strict && below(g, 2)) {
        emit(g, csr_word(g, others[below(g, sizeof others / sizeof *others)]));
        return;
    }
    switch (below(g, 5)) {
    case 0: /* mepc: a multiple of four */
        emit(g, i_type(-4u, any(g), 7, T0, 0x13));
        emit(g, CSRRW(any(g), MEPC, T0));
        break;
    case 1: /* mstatus and mie: the bits that all have */
        emit(g, i_type(IRQ_BITS, any(g), 7, T0, 0x13));
        emit(g, CSRRW(T0, below(g, 2) ? MSTATUS : MIE, T0));
        emit(g, i_type(IRQ_BITS, T0, 7, any(g), 0x13));
        break;
    default: emit(g, csr_word(g, full[below(g, 5)]));
    }
}

static void trap_illegal(Gen *g)
{
    static const uint32_t words[] = { 0,          0xffffffff, 0x0000000b, 0x00002063, 0x00003003, 0x00006003, 0x00003023, 0x0000201b,
                                      0x02001013, 0x00100173, 0x00008073, 0x302000f3, 0x10200073, 0x0200303b, 0x00004073, 0x00001067 };
    static const uint16_t missing[] = { 0x180, 0x100, 0x306, 0x5ff, 0x800, 0xfff, 0x345, 0xb01, 0xf10 };
    if (below(g, 2)) emit(g, words[below(g, sizeof words / sizeof *words)]);
    else if (below(g, 2)) emit(g, csr_word(g, missing[below(g, sizeof missing / sizeof *missing)]));
    else emit(g, CSRRW(any(g), 0xc00 + below(g, 3), any(g))); /* read-only */
}

static void trap_access(Gen *g)
{
    emit(g, LUI(ADDR, below(g, 2) ? 0xf0000000 : 0x00300000));
    uint32_t f3 = below(g, 3), imm = (random_next(g->r) & 0x7ff) & ~((1u << f3) - 1);
    emit(g, below(g, 2) ? i_type(imm, ADDR, f3, any(g), 0x03) : s_type(imm, any(g), ADDR, f3));
}

/* A jump to half an instruction; with `strict` a branch, too. */
static void trap_misaligned_jump(Gen *g)
{
    if (g->strict && below(g, 2)) {
        emit(g, below(g, 2) ? b_type(6, 0, 0, 0) : j_type(-2u & 0x1fffff, any(g)));
        return;
    }
    emit_li(g, ADDR, here(g) + 2);
    emit(g, JALR(any(g), ADDR, below(g, 2)));
}

/* The handler goes on where ADDR says. */
static void trap_fetch(Gen *g)
{
    emit(g, LUI(T1, 0xf0000000));
    emit_li(g, ADDR, here(g) + 12);
    emit(g, JALR(any(g), T1, below(g, 256) * 4));
}

static void trap_environment(Gen *g) { emit(g, below(g, 2) ? 0x00000073 : 0x00100073); }

static void item_trap(Gen *g)
{
    static void (*const kinds[])(Gen *) = { trap_illegal, trap_illegal, trap_access, trap_access, trap_misaligned_jump, trap_fetch, trap_environment };
    kinds[below(g, sizeof kinds / sizeof *kinds)](g);
}

static void item_mret(Gen *g)
{
    uint32_t skip = 4 * below(g, 3);
    emit_li(g, T0, MPP);
    emit(g, CSRRS(0, MSTATUS, T0)); /* where there is a user mode, it is not to be entered */
    emit_li(g, ADDR, here(g) + 16 + skip);
    emit(g, CSRRW(0, MEPC, ADDR));
    emit(g, MRET);
    for (; skip; skip -= 4) emit(g, random_next(g->r));
}

/* A software interrupt. It may come late, so that nothing happens for a while, and its mepc is forgotten. */
static void item_interrupt(Gen *g)
{
    emit(g, i_type(MIE, 8, 5, 0, 0x73));
    emit(g, i_type(MSTATUS, 8, 6, 0, 0x73));
    emit(g, LUI(T0, CLINT_PAGE));
    emit(g, ADDI(T1, 0, 1));
    emit(g, SW(T1, 0, T0));
    emit(g, j_type(4, 0)); /* the end of a block of code, for those who translate */
    for (int i = 0; i < 3; i++) emit(g, NOP);
    emit(g, i_type(MSTATUS, 8, 7, 0, 0x73));
    emit(g, i_type(MIE, 0, 5, 0, 0x73));
    emit(g, CSRRW(0, MEPC, 0));
}

/* ---- the whole ---- */
typedef struct {
    void (*make)(Gen *g);
    uint32_t weight, isa;
    bool nests;
} Item;
static const Item items[] = {
    { item_compute, 30, 0, false },  { item_value, 4, 0, false },      { item_memory, 16, 0, false },  { item_atomic, 5, ISA_A, false },
    { item_if, 8, 0, true },         { item_loop, 3, 0, true },        { item_call, 3, 0, true },      { item_computed_jump, 2, 0, false },
    { item_patch, 3, 0, false },     { item_csr, 6, ISA_MACHINE, false }, { item_trap, 4, ISA_MACHINE, false }, { item_mret, 1, ISA_MACHINE, false },
    { item_interrupt, 1, ISA_MACHINE | ISA_CLINT, false }, { item_nothing, 1, 0, false },
};

static void item(Gen *g)
{
    uint32_t n = sizeof items / sizeof *items, total = 0;
    for (uint32_t i = 0; i < n; i++) total += items[i].weight;
    uint32_t pick = below(g, total), i = 0;
    for (; pick >= items[i].weight; i++) pick -= items[i].weight;
    bool possible = !(items[i].isa & ~g->isa) && !(items[i].nests && g->depth >= MAX_DEPTH);
    (possible ? items[i].make : item_compute)(g);
}

static void block(Gen *g, int n)
{
    g->depth++;
    for (; n > 0; n--) item(g);
    g->depth--;
}

/* Logs cause, mepc, mtval and the interrupt bits; goes on behind the instruction, at ADDR after a fetch from nowhere, or, having taken back the
 * software interrupt, where it was. */
static void emit_handler(Gen *g)
{
    enum { CAUSE = 0, PLACE = 4, VALUE = 8, BITS = 12, ENTRY = 16 };
    emit(g, CSRRS(T0, MCAUSE, 0));
    emit(g, LW(T1, LOG_AT, DATA));
    emit(g, SW(T0, CAUSE, T1));
    emit(g, SW(0, PLACE, T1));
    uint32_t to_interrupt = g->at;
    emit(g, NOP);
    emit(g, CSRRS(T0, MEPC, 0));
    emit(g, SW(T0, PLACE, T1));
    emit(g, ADDI(T0, T0, 4));
    emit(g, CSRRW(0, MEPC, T0));
    emit(g, LW(T0, CAUSE, T1));
    emit(g, ADDI(T0, T0, -1));
    emit(g, BNE(T0, 0, 8));
    emit(g, CSRRW(0, MEPC, ADDR));
    emit(g, j_type(12, 0));
    patch_branch(g, to_interrupt, 4, T0, 0); /* blt T0, x0 */
    emit(g, LUI(T0, CLINT_PAGE));
    emit(g, SW(0, 0, T0));
    emit(g, CSRRS(T0, MTVAL, 0));
    emit(g, SW(T0, VALUE, T1));
    emit(g, CSRRS(T0, MSTATUS, 0));
    emit(g, i_type(IRQ_BITS, T0, 7, T0, 0x13));
    emit(g, SW(T0, BITS, T1));
    emit(g, ADDI(T1, T1, ENTRY)); /* the log is a ring */
    emit(g, i_type(LOG_BYTES - 1, T1, 7, T0, 0x13));
    emit(g, ADDI(T1, DATA, LOG));
    emit(g, r_type(0, T0, T1, 6, T1, 0x33));
    emit(g, SW(T1, LOG_AT, DATA));
    emit(g, MRET);
}

/* Every machine begins a program in the same state, whatever ran before. */
static void emit_machine_start(Gen *g)
{
    static const uint16_t cleared[] = { MSTATUS, MIE, MSCRATCH, MEPC, MCAUSE, MTVAL };
    uint32_t over = g->at;
    emit(g, NOP);
    uint32_t handler = here(g);
    emit_handler(g);
    put(g->ram + over, j_type(g->at - over, 0));
    emit_li(g, T0, handler);
    emit(g, CSRRW(0, MTVEC, T0));
    for (uint32_t i = 0; i < sizeof cleared / sizeof *cleared; i++) emit(g, CSRRW(0, cleared[i], 0));
    if (!(g->isa & ISA_CLINT)) return;
    emit(g, LUI(ADDR, MTIMECMP_PAGE));
    emit(g, ADDI(T0, 0, -1));
    emit(g, SW(T0, 4, ADDR)); /* no timer interrupt for a long time */
}

static void emit_end(Gen *g)
{
    emit(g, ADDI(T0, 0, 0));
    emit(g, ADDI(T1, 0, 0));
    for (uint32_t i = 1; i < DATA; i++) emit(g, SW(i, DUMP + 4 * i, DATA));
    emit(g, LW(1, -4, DATA));
    emit(g, JALR(0, 1, 0));
    put(g->ram + program_exit_word(g->limit + 2 * CODE_MARGIN), here(g));
    emit(g, LUI(1, GOLDEN_FINISHER));
    emit_li(g, 2, 0x5555);
    emit(g, SW(2, 0, 1));
    emit(g, j_type(0, 0));
}

uint32_t program_exit_word(uint32_t ram_size) { return ram_size - CODE_MARGIN - 4; }

void program_make(Random *r, uint32_t isa, bool strict, uint8_t *ram, uint32_t ram_size)
{
    uint32_t d = ram_size - CODE_MARGIN;
    Gen g = { .r = r, .isa = isa, .strict = strict, .ram = ram, .limit = d - CODE_MARGIN, .data = (uint32_t)GOLDEN_RAM_BASE + d };
    memset(ram, 0, ram_size);
    for (uint32_t i = 0; i < DATA_BYTES; i += 4) put(ram + d + i, random_value(r, ram_size));
    put(ram + d + LOG_AT, g.data + LOG);
    if (isa & ISA_MACHINE) emit_machine_start(&g);
    emit_li(&g, DATA, g.data);
    for (uint32_t i = 1; i < DATA; i++) emit_li(&g, i, random_value(r, ram_size));
    block(&g, MIN_ITEMS + (int)below(&g, MORE_ITEMS));
    emit_end(&g);
}
