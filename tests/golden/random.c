/* random.c: random instructions and programs for the lockstep comparison. Encodings are written down here once more, on
 * purpose: this file, the golden tables and the circuit are three independent readings of the manual. */
#include "lockstep.h"

#include <string.h>

static const uint32_t RAM_BASE_HIGH = 0x80000; /* lui's immediate for 0x80000000 */

uint32_t random_next(Random *r)
{
    /* splitmix64: any seed will do */
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32);
}

static uint32_t below(Random *r, uint32_t n) { return random_next(r) % n; }

uint32_t random_value(Random *r, uint32_t ram_size)
{
    static const uint32_t edges[] = { 0, 1, 2, 31, 32, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0x80000001,
                                      0xfffffffe, 0xffffffff, 0x10000000, 0x10000005, 0x00100000, 0x55555555, 0x3333, 93 };
    switch (below(r, 8)) {
    case 0: return edges[below(r, sizeof edges / sizeof *edges)];
    case 1: return random_next(r);
    case 2: return 0u - below(r, 4096);
    case 3: return below(r, 4096);
    case 4: return 0x80000000u + ram_size - 2048 + below(r, 4096);
    case 5: return 0x80000000u - 2048 + below(r, 4096);
    default: return 0x80000000u + (below(r, ram_size) & ~3u);
    }
}

/* Opcodes of the formats, and what of funct3 and funct7 makes them legal. */
static const uint8_t load_funct3[] = { 0, 1, 2, 4, 5 }, branch_funct3[] = { 0, 1, 4, 5, 6, 7 };

typedef struct {
    uint32_t rd, rs1, rs2;
} Regs;

static uint32_t fields(Regs g, uint32_t funct3, uint32_t opcode) { return g.rs1 << 15 | funct3 << 12 | g.rd << 7 | opcode; }

static uint32_t alu(Random *r, Regs g)
{
    uint32_t f3 = below(r, 8), alternative = (f3 == 0 || f3 == 5) && below(r, 2) ? 0x40000000 : 0;
    if (below(r, 2)) return alternative | g.rs2 << 20 | fields(g, f3, 0x33);
    if (f3 == 1 || f3 == 5) return (f3 == 5 ? alternative : 0) | below(r, 32) << 20 | fields(g, f3, 0x13);
    return random_next(r) << 20 | fields(g, f3, 0x13);
}

/* Everything beyond RV32I: funct7 and funct3 of register forms, whole words otherwise; illegal where the CPU lacks the extension. */
static uint32_t extension(Random *r, Regs g)
{
    static const uint8_t f7[] = { 1, 1, 1, 1, 0x10, 0x05, 0x20, 0x30 };
    static const uint32_t unary[] = { 0x60001013, 0x60101013, 0x60201013, 0x60401013, 0x60501013, 0x08004033, 0x28705013, 0x69805013 };
    static const uint32_t whole[] = { 0x30200073, 0x10500073, 0x0000100f };
    switch (below(r, 8)) {
    case 0: return unary[below(r, 8)] | g.rs1 << 15 | g.rd << 7;
    case 1: return whole[below(r, 3)];
    case 2: return random_next(r) << 20 | fields(g, 1 + below(r, 7), 0x73); /* any CSR */
    case 3: return (0x300 + below(r, 0x50)) << 20 | fields(g, 1 + below(r, 7), 0x73);
    default: return (uint32_t)f7[below(r, sizeof f7)] << 25 | g.rs2 << 20 | fields(g, below(r, 8), 0x33);
    }
}

static uint32_t upper(Random *r, Regs g) { return (random_next(r) & 0xfffff000) | g.rd << 7 | (below(r, 2) ? 0x37 : 0x17); }

static uint32_t load(Random *r, Regs g, uint32_t imm)
{
    return imm << 20 | fields(g, load_funct3[below(r, sizeof load_funct3)], 0x03);
}

static uint32_t store(Random *r, Regs g, uint32_t imm)
{
    g.rd = imm & 31;
    return (imm >> 5 & 127) << 25 | g.rs2 << 20 | fields(g, below(r, 3), 0x23);
}

static uint32_t branch(Random *r, Regs g, uint32_t offset)
{
    g.rd = (offset >> 1 & 15) << 1 | (offset >> 11 & 1);
    uint32_t high = (offset >> 12 & 1) << 6 | (offset >> 5 & 63);
    return high << 25 | g.rs2 << 20 | fields(g, branch_funct3[below(r, sizeof branch_funct3)], 0x63);
}

static uint32_t jal(Regs g, uint32_t o)
{
    return (o >> 20 & 1) << 31 | (o >> 1 & 1023) << 21 | (o >> 11 & 1) << 20 | (o >> 12 & 255) << 12 | g.rd << 7 | 0x6f;
}

static uint32_t jalr(Regs g, uint32_t imm) { return imm << 20 | fields(g, 0, 0x67); }

static Regs any_regs(Random *r) { return (Regs){ below(r, 32), below(r, 32), below(r, 32) }; }

static uint32_t legal_word(Random *r)
{
    Regs g = any_regs(r);
    uint32_t any = random_next(r);
    switch (below(r, 13)) {
    case 10:
    case 11:
    case 12: return extension(r, g);
    case 0: return upper(r, g);
    case 1: return load(r, g, any);
    case 2: return store(r, g, any);
    case 3: return branch(r, g, any);
    case 4: return jal(g, any);
    case 5: return jalr(g, any);
    case 6: return below(r, 2) ? (any & 0xffff8f80) | 0x0f : below(r, 2) ? 0x73 : 0x00100073;
    default: return alu(r, g);
    }
}

uint32_t random_word(Random *r)
{
    switch (below(r, 10)) {
    case 0: return random_next(r);
    case 1: return random_next(r) | 3;
    case 2: return legal_word(r) ^ 1u << below(r, 32);
    default: return legal_word(r);
    }
}

/* In programs s0 and s1 (x8, x9) always point into RAM and t6 (x31) to the UART. */
static Regs program_regs(Random *r)
{
    Regs g = any_regs(r);
    if (g.rd == 8 || g.rd == 9 || g.rd == 31) g.rd = 10;
    return g;
}

/* Registers as targets of loads and stores: an aligned offset from s0 or s1, now and then a free one or the UART's. */
static uint32_t memory_word(Random *r)
{
    Regs g = program_regs(r);
    uint32_t imm = random_next(r) & 0xffc;
    g.rs1 = 8 + below(r, 2);
    if (below(r, 400) == 0) imm |= below(r, 4), g.rs1 = below(r, 32);
    else if (below(r, 40) == 0) imm = below(r, 8), g.rs1 = 31;
    return below(r, 2) ? load(r, g, imm) : store(r, g, imm);
}

static uint32_t program_word(Random *r)
{
    uint32_t forward = 4 + 4 * below(r, 12), backward = 0u - 4 - 4 * below(r, 24);
    uint32_t offset = below(r, 8) ? forward : backward; /* a loop on something constant is the end of most programs */
    switch (below(r, 20)) {
    case 0: return jal(program_regs(r), forward);
    case 1:
    case 2:
    case 3: return branch(r, program_regs(r), offset);
    case 4:
    case 5: return upper(r, program_regs(r));
    case 6: return below(r, 30) ? 0x0ff0000f : random_word(r);
    case 7:
    case 8:
    case 9:
    case 10: return memory_word(r);
    default: return alu(r, program_regs(r));
    }
}

static void put_word(uint8_t *p, uint32_t w)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(w >> 8 * i);
}

void random_program(Random *r, uint8_t *ram, uint32_t ram_size)
{
    uint32_t at = 0;
    for (uint32_t i = 1; i < 32; i++) { /* lui and addi into every register */
        Regs g = { i, i, 0 };
        uint32_t v = random_next(r), high = i == 31 ? 0x10000000 : v & 0xfffff000, low = i == 31 ? 0 : v << 20;
        if (i == 8 || i == 9) high = (RAM_BASE_HIGH + 1 + below(r, ram_size / 4096 - 2)) << 12, low &= 0x7fc00000;
        if (i == 9 && below(r, 3) == 0) high = RAM_BASE_HIGH << 12; /* stores meet the program itself */
        put_word(ram + at, high | i << 7 | 0x37);
        put_word(ram + at + 4, low | fields(g, 0, 0x13));
        at += 8;
    }
    for (; at < ram_size; at += 4) put_word(ram + at, program_word(r));
}
