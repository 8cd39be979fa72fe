/* encode.h: the manual's instruction formats, for the generators of random code. Written down here once more, on purpose: this file,
 * the golden tables and the circuit are independent readings of the manual. */
#ifndef ENCODE_H
#define ENCODE_H
#include <stdint.h>

static inline uint32_t r_type(uint32_t f7, uint32_t rs2, uint32_t rs1, uint32_t f3, uint32_t rd, uint32_t op)
{
    return f7 << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | rd << 7 | op;
}

/* imm: its lower 12 bits count. */
static inline uint32_t i_type(uint32_t imm, uint32_t rs1, uint32_t f3, uint32_t rd, uint32_t op)
{
    return imm << 20 | rs1 << 15 | f3 << 12 | rd << 7 | op;
}

static inline uint32_t s_type(uint32_t imm, uint32_t rs2, uint32_t rs1, uint32_t f3)
{
    return r_type(imm >> 5 & 127, rs2, rs1, f3, imm & 31, 0x23);
}

/* offset: even, in [-4096, 4094]. */
static inline uint32_t b_type(uint32_t offset, uint32_t rs2, uint32_t rs1, uint32_t f3)
{
    uint32_t high = (offset >> 12 & 1) << 6 | (offset >> 5 & 63), low = (offset >> 1 & 15) << 1 | (offset >> 11 & 1);
    return r_type(high, rs2, rs1, f3, low, 0x63);
}

static inline uint32_t u_type(uint32_t value, uint32_t rd, uint32_t op) { return (value & 0xfffff000) | rd << 7 | op; }

static inline uint32_t j_type(uint32_t o, uint32_t rd)
{
    return (o >> 20 & 1) << 31 | (o >> 1 & 1023) << 21 | (o >> 11 & 1) << 20 | (o >> 12 & 255) << 12 | rd << 7 | 0x6f;
}

#define ADDI(rd, rs1, imm) i_type(imm, rs1, 0, rd, 0x13)
#define LUI(rd, value) u_type(value, rd, 0x37)
#define LW(rd, imm, rs1) i_type(imm, rs1, 2, rd, 0x03)
#define SW(rs2, imm, rs1) s_type(imm, rs2, rs1, 2)
#define JALR(rd, rs1, imm) i_type(imm, rs1, 0, rd, 0x67)
#define BNE(rs1, rs2, offset) b_type(offset, rs2, rs1, 1)
#define CSRRW(rd, csr, rs1) i_type(csr, rs1, 1, rd, 0x73)
#define CSRRS(rd, csr, rs1) i_type(csr, rs1, 2, rd, 0x73)
#define FENCE_I 0x0000100fu
#define NOP 0x00000013u
#define MRET 0x30200073u
#endif
