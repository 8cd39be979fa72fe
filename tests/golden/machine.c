/* machine.c: Zicsr, Zifencei, machine mode and the CLINT: the only mode there is. The registers that exist are the rows of
 * `csrs`; every other number is an illegal instruction, and so is a write to one whose number says "read-only".
 *
 * All counters count retired instructions: cycle, instret and time differ only in what was written to them. Without a CLINT nothing counts: they are
 * there, read 0 and ignore writes, as the manual allows. */
#include "insn.h"

enum { MSTATUS_MIE = 3, MSTATUS_MPIE = 7, MSTATUS_MPP = 11 };
enum { IRQ_SOFTWARE = 3, IRQ_TIMER = 7, IRQ_EXTERNAL = 11 };
static const uint32_t MIE_WRITABLE = 1u << IRQ_SOFTWARE | 1u << IRQ_TIMER | 1u << IRQ_EXTERNAL;
static const uint32_t MISA_32_BIT = 0x40000000;

/* ---- traps ---- */
bool golden_has_handler(const Golden *g) { return (g->isa & ISA_MACHINE) && g->csr.mtvec; }

static void update_enabled(Golden *g) { g->csr.enabled = g->csr.mie_bit ? g->csr.mie : 0; }

void golden_trap(Golden *g, uint32_t cause, uint32_t tval)
{
    GoldenCsr *c = &g->csr;
    c->mepc = g->pc;
    c->mcause = cause;
    c->mtval = tval;
    c->mpie_bit = c->mie_bit;
    c->mie_bit = 0;
    update_enabled(g);
    c->due = 0;
    g->pc = c->mtvec;
    g->traps++;
}

uint32_t golden_pending(const Golden *g) { return g->csr.msip << IRQ_SOFTWARE | g->csr.mtip << IRQ_TIMER; }

bool golden_timer(const Golden *g) { return g->ticks + g->csr.time >= g->csr.mtimecmp; }

void golden_decide(Golden *g, bool timer)
{
    g->csr.mtip = timer;
    g->csr.due = g->csr.enabled & golden_pending(g);
}

void golden_interrupt(Golden *g) { golden_fault(g, g->csr.due >> IRQ_SOFTWARE & 1 ? FAULT_SOFTWARE_IRQ : FAULT_TIMER_IRQ, 0); }

/* ---- counters ---- */
/* The value that is seen after the instruction that writes it has itself been counted. */
static void set_half(const Golden *g, uint64_t *offset, bool high, uint32_t value)
{
    uint64_t now = g->ticks + 1 + *offset;
    now = high ? (uint64_t)value << 32 | (uint32_t)now : now >> 32 << 32 | value;
    *offset = now - g->ticks - 1;
}

static uint32_t half(uint64_t value, bool high) { return (uint32_t)(high ? value >> 32 : value); }
static uint32_t counter(const Golden *g, uint64_t offset, bool high) { return g->isa & ISA_CLINT ? half(g->ticks + offset, high) : 0; }

/* ---- CLINT ---- */
enum { CLINT_MSIP = 0, CLINT_MTIMECMP = 0x4000, CLINT_MTIME = 0xbff8 };

uint32_t golden_clint_load(Golden *g, uint32_t offset)
{
    bool high = offset & 4;
    if (offset == CLINT_MSIP) return g->csr.msip;
    if ((offset & ~4u) == CLINT_MTIMECMP) return half(g->csr.mtimecmp, high);
    if ((offset & ~4u) == CLINT_MTIME) return half(g->ticks + g->csr.time, high);
    return 0;
}

void golden_clint_store(Golden *g, uint32_t offset, uint32_t value)
{
    uint64_t *cmp = &g->csr.mtimecmp;
    if (offset == CLINT_MSIP) g->csr.msip = value & 1;
    if (offset == CLINT_MTIMECMP) *cmp = *cmp >> 32 << 32 | value;
    if (offset == CLINT_MTIMECMP + 4) *cmp = (uint64_t)value << 32 | (uint32_t)*cmp;
    if ((offset & ~4u) == CLINT_MTIME) set_half(g, &g->csr.time, offset & 4, value);
}

/* ---- control and status registers ---- */
typedef uint32_t Read(const Golden *g);
typedef void Write(Golden *g, uint32_t value);

static uint32_t read_zero(const Golden *g) { (void)g; return 0; }
static uint32_t read_misa(const Golden *g)
{
    uint32_t a = g->isa & ISA_A ? 1u << 0 : 0, i = 1u << 8, m = g->isa & ISA_M ? 1u << 12 : 0;
    return MISA_32_BIT | a | i | m;
}
static uint32_t read_mstatus(const Golden *g) { return 3u << MSTATUS_MPP | g->csr.mpie_bit << MSTATUS_MPIE | g->csr.mie_bit << MSTATUS_MIE; }
static uint32_t read_mie(const Golden *g) { return g->csr.mie; }
static uint32_t read_mtvec(const Golden *g) { return g->csr.mtvec; }
static uint32_t read_mscratch(const Golden *g) { return g->csr.mscratch; }
static uint32_t read_mepc(const Golden *g) { return g->csr.mepc; }
static uint32_t read_mcause(const Golden *g) { return g->csr.mcause; }
static uint32_t read_mtval(const Golden *g) { return g->csr.mtval; }
static uint32_t read_mip(const Golden *g) { return golden_pending(g); }
static uint32_t read_cycle(const Golden *g) { return counter(g, g->csr.cycle, false); }
static uint32_t read_cycleh(const Golden *g) { return counter(g, g->csr.cycle, true); }
static uint32_t read_instret(const Golden *g) { return counter(g, g->csr.instret, false); }
static uint32_t read_instreth(const Golden *g) { return counter(g, g->csr.instret, true); }
static uint32_t read_time(const Golden *g) { return counter(g, g->csr.time, false); }
static uint32_t read_timeh(const Golden *g) { return counter(g, g->csr.time, true); }

static void ignore(Golden *g, uint32_t v) { (void)g, (void)v; }
static void write_mstatus(Golden *g, uint32_t v)
{
    g->csr.mie_bit = v >> MSTATUS_MIE & 1;
    g->csr.mpie_bit = v >> MSTATUS_MPIE & 1;
    update_enabled(g);
}
static void write_mie(Golden *g, uint32_t v)
{
    g->csr.mie = v & MIE_WRITABLE;
    update_enabled(g);
}
static void write_mtvec(Golden *g, uint32_t v) { g->csr.mtvec = v & ~3u; } /* direct mode only */
static void write_mscratch(Golden *g, uint32_t v) { g->csr.mscratch = v; }
static void write_mepc(Golden *g, uint32_t v) { g->csr.mepc = v & ~3u; }
static void write_mcause(Golden *g, uint32_t v) { g->csr.mcause = v; }
static void write_mtval(Golden *g, uint32_t v) { g->csr.mtval = v; }
static void write_cycle(Golden *g, uint32_t v) { set_half(g, &g->csr.cycle, false, v); }
static void write_cycleh(Golden *g, uint32_t v) { set_half(g, &g->csr.cycle, true, v); }
static void write_instret(Golden *g, uint32_t v) { set_half(g, &g->csr.instret, false, v); }
static void write_instreth(Golden *g, uint32_t v) { set_half(g, &g->csr.instret, true, v); }

static const struct {
    uint32_t first, last; /* numbers */
    Read *read;
    Write *write; /* never reached where the number is read-only */
} csrs[] = {
    { 0x300, 0x300, read_mstatus, write_mstatus },
    { 0x301, 0x301, read_misa, ignore },
    { 0x304, 0x304, read_mie, write_mie },
    { 0x305, 0x305, read_mtvec, write_mtvec },
    { 0x310, 0x310, read_zero, ignore }, /* mstatush: little-endian always */
    { 0x320, 0x320, read_zero, ignore }, /* mcountinhibit: nothing can be stopped */
    { 0x323, 0x33f, read_zero, ignore }, /* mhpmevent3..31 */
    { 0x340, 0x340, read_mscratch, write_mscratch },
    { 0x341, 0x341, read_mepc, write_mepc },
    { 0x342, 0x342, read_mcause, write_mcause },
    { 0x343, 0x343, read_mtval, write_mtval },
    { 0x344, 0x344, read_mip, ignore },
    { 0xb00, 0xb00, read_cycle, write_cycle },
    { 0xb02, 0xb02, read_instret, write_instret },
    { 0xb03, 0xb1f, read_zero, ignore }, /* mhpmcounter3..31 */
    { 0xb80, 0xb80, read_cycleh, write_cycleh },
    { 0xb82, 0xb82, read_instreth, write_instreth },
    { 0xb83, 0xb9f, read_zero, ignore }, /* mhpmcounter3h..31h */
    { 0xc00, 0xc00, read_cycle, ignore },
    { 0xc01, 0xc01, read_time, ignore },
    { 0xc02, 0xc02, read_instret, ignore },
    { 0xc80, 0xc80, read_cycleh, ignore },
    { 0xc81, 0xc81, read_timeh, ignore },
    { 0xc82, 0xc82, read_instreth, ignore },
    { 0xf11, 0xf15, read_zero, ignore }, /* mvendorid, marchid, mimpid, mhartid, mconfigptr */
};

typedef enum { CSR_WRITE, CSR_SET, CSR_CLEAR } CsrOp;

/* `writes` is false for the forms that only read: csrrs and csrrc with x0 or an immediate of 0. */
static void access_csr(Golden *g, uint32_t number, uint32_t rd, CsrOp op, uint32_t operand, bool writes)
{
    size_t i = 0, n = sizeof csrs / sizeof *csrs;
    while (i < n && (number < csrs[i].first || number > csrs[i].last)) i++;
    if (i == n || (writes && number >> 10 == 3)) {
        golden_illegal(g);
        return;
    }
    uint32_t old = csrs[i].read(g);
    uint32_t new = op == CSR_WRITE ? operand : op == CSR_SET ? old | operand : old & ~operand;
    if (writes) csrs[i].write(g, new);
    g->x[rd] = old;
}

#define CSR(name, op, operand, writes)                                \
    EFFECT(name)                                                      \
    {                                                                 \
        (void)rs2;                                                    \
        access_csr(g, imm, rd, op, operand, writes);                  \
    }
CSR(do_csrrw, CSR_WRITE, g->x[rs1], true)
CSR(do_csrrs, CSR_SET, g->x[rs1], rs1 != 0)
CSR(do_csrrc, CSR_CLEAR, g->x[rs1], rs1 != 0)
CSR(do_csrrwi, CSR_WRITE, rs1, true)
CSR(do_csrrsi, CSR_SET, rs1, rs1 != 0)
CSR(do_csrrci, CSR_CLEAR, rs1, rs1 != 0)

EFFECT(do_mret)
{
    UNUSED;
    g->csr.mie_bit = g->csr.mpie_bit;
    g->csr.mpie_bit = 1;
    update_enabled(g);
    g->next = g->csr.mepc;
}
EFFECT(do_wfi) { UNUSED; }     /* waiting may always end at once */
EFFECT(do_fence_i) { UNUSED; } /* fetch sees every store at once */

const GoldenInsn golden_machine[] = {
    { "csrrw", F3(1, 0x73), FMT_CSR, do_csrrw },
    { "csrrs", F3(2, 0x73), FMT_CSR, do_csrrs },
    { "csrrc", F3(3, 0x73), FMT_CSR, do_csrrc },
    { "csrrwi", F3(5, 0x73), FMT_CSR, do_csrrwi },
    { "csrrsi", F3(6, 0x73), FMT_CSR, do_csrrsi },
    { "csrrci", F3(7, 0x73), FMT_CSR, do_csrrci },
    { "mret", WORD(0x30200073), FMT_R, do_mret },
    { "wfi", WORD(0x10500073), FMT_R, do_wfi },
    { "fence.i", F3(1, 0x0f), FMT_I, do_fence_i }, /* its other fields are reserved and must be ignored */
    { 0 },
};
