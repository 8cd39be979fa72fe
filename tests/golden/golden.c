/* golden.c: the step loop, the memory map and the decoder of the golden interpreter. Owns the table of
 * instruction tables. Words are decoded once and kept; a store drops what was decoded from its word. */
#include "golden.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const GoldenInsn *insns;
    uint32_t isa; /* the extension that a CPU must have */
} tables[] = {
    { golden_rv32i, 0 },      { golden_m, ISA_M },     { golden_a, ISA_A },
    { golden_zba, ISA_ZBA },  { golden_zbb, ISA_ZBB }, { golden_machine, ISA_MACHINE },
};

const GoldenCpu golden_cpus[] = {
    { "rv32i", 0 },
    { "rv32im", ISA_M | ISA_ZBA | ISA_ZBB },
    { "rv32im_machine", ISA_M | ISA_ZBA | ISA_ZBB | ISA_MACHINE | ISA_CLINT | ISA_CONSOLE },
    { "rv32ima", ISA_M | ISA_A | ISA_ZBA | ISA_ZBB | ISA_MACHINE | ISA_CLINT | ISA_CONSOLE },
    { 0 },
};

const GoldenCpu *golden_cpu(const char *name)
{
    for (const GoldenCpu *c = golden_cpus; c->name; c++)
        if (!strcmp(c->name, name)) return c;
    return NULL;
}

Golden *golden_new(uint32_t isa, uint32_t ram_size)
{
    if (ram_size < 4096 || ram_size > 1u << 30 || (ram_size & (ram_size - 1))) return NULL;
    Golden *g = calloc(1, sizeof *g);
    if (!g) abort();
    g->ram = calloc(1, ram_size);
    g->decoded = calloc(ram_size / 4, sizeof *g->decoded);
    if (!g->ram || !g->decoded) abort();
    g->isa = isa;
    g->ram_size = ram_size;
    g->tohost = 0xffffffff;
    g->reserved = 1;
    g->key = -1;
    return g;
}

void golden_free(Golden *g)
{
    free(g->ram);
    free(g->decoded);
    free(g);
}

const char *golden_fault_name(uint32_t code)
{
    static const char *const names[] = {
        [FAULT_FETCH_MISALIGNED] = "instruction address misaligned",
        [FAULT_FETCH_ACCESS] = "instruction access outside memory",
        [FAULT_ILLEGAL] = "illegal instruction",
        [FAULT_BREAKPOINT] = "breakpoint",
        [FAULT_LOAD_MISALIGNED] = "misaligned load",
        [FAULT_LOAD_ACCESS] = "load access outside memory",
        [FAULT_STORE_MISALIGNED] = "misaligned store",
        [FAULT_STORE_ACCESS] = "store access outside memory",
        [FAULT_ECALL] = "environment call",
    };
    if (code == (uint32_t)FAULT_SOFTWARE_IRQ) return "software interrupt without a handler";
    if (code == (uint32_t)FAULT_TIMER_IRQ) return "timer interrupt without a handler";
    return code < sizeof names / sizeof *names && names[code] ? names[code] : "unknown fault";
}

void golden_fault(Golden *g, GoldenFault code, uint32_t tval)
{
    if (g->state != GOLDEN_RUNNING) return;
    g->state = GOLDEN_FAULT;
    g->code = (uint32_t)code;
    g->tval = tval;
}

void golden_exit(Golden *g, uint32_t status)
{
    if (g->state != GOLDEN_RUNNING) return;
    g->state = GOLDEN_EXIT;
    g->code = status & 0xff;
}

/* RAM begins and ends at multiples of four, so an aligned access that begins in it ends in it. */
static bool in_ram(const Golden *g, uint32_t addr) { return addr - (uint32_t)GOLDEN_RAM_BASE < g->ram_size; }

static int next_key(Golden *g)
{
    int byte = g->get ? g->get(g->get_ctx) : -1;
    return byte < 0 ? 0 : 0x100 + byte;
}

/* The UART's eight registers answer to any width: the line status says "ready to send" and whether a byte waits, the rest reads 0. */
static bool in_uart(uint32_t addr) { return addr >> 3 == GOLDEN_UART >> 3; }

static uint32_t load_uart(Golden *g, uint32_t at)
{
    if (g->key < 0) g->key = g->isa & ISA_CONSOLE ? next_key(g) : 0;
    int key = g->key;
    if (at == 0 && key) g->key = next_key(g);
    return at == 0 ? (uint32_t)key & 0xff : at == 5 ? 0x60 | (key != 0) : 0;
}

/* The CLINT's 64 KiB answer to aligned words only. */
static bool in_clint(const Golden *g, uint32_t addr, uint32_t size)
{
    return (g->isa & ISA_CLINT) && addr >> 16 == GOLDEN_CLINT >> 16 && size == 4 && !(addr & 3);
}

/* A misaligned access outside of memory counts as outside. */
uint32_t golden_load(Golden *g, uint32_t addr, uint32_t size)
{
    if (in_uart(addr)) return load_uart(g, addr & 7);
    if (in_clint(g, addr, size)) return golden_clint_load(g, addr & 0xffff);
    if (!in_ram(g, addr)) {
        golden_fault(g, FAULT_LOAD_ACCESS, addr);
        return 0;
    }
    if (addr & (size - 1)) {
        golden_fault(g, FAULT_LOAD_MISALIGNED, addr);
        return 0;
    }
    const uint8_t *p = g->ram + (addr - (uint32_t)GOLDEN_RAM_BASE);
    uint32_t v = p[0];
    if (size > 1) v |= (uint32_t)p[1] << 8;
    if (size > 2) v |= (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    return v;
}

static void finish(Golden *g, uint32_t value)
{
    if ((value & 0xffff) == 0x5555) golden_exit(g, 0);
    if ((value & 0xffff) == 0x3333) golden_exit(g, value >> 16);
}

static void store_ram(Golden *g, uint32_t addr, uint32_t value, uint32_t size)
{
    uint32_t off = addr - (uint32_t)GOLDEN_RAM_BASE;
    for (uint32_t i = 0; i < size; i++) g->ram[off + i] = (uint8_t)(value >> 8 * i);
    g->decoded[off >> 2].exec = NULL;
    if (size == 4 && addr == g->tohost && (value & 1)) golden_exit(g, value >> 1);
}

void golden_store(Golden *g, uint32_t addr, uint32_t value, uint32_t size)
{
    g->store.addr = addr;
    if (in_uart(addr)) {
        if ((addr & 7) == 0 && g->put) g->put(g->put_ctx, (uint8_t)value);
    } else if (addr == GOLDEN_FINISHER) {
        finish(g, value);
    } else if (in_clint(g, addr, size)) {
        golden_clint_store(g, addr & 0xffff, value);
    } else if (!in_ram(g, addr)) {
        golden_fault(g, FAULT_STORE_ACCESS, addr);
        return;
    } else if (addr & (size - 1)) {
        golden_fault(g, FAULT_STORE_MISALIGNED, addr);
        return;
    } else {
        store_ram(g, addr, value, size);
    }
    g->store.size = size;
    g->store.data = size == 4 ? value : value & ((1u << 8 * size) - 1);
}

bool golden_atomic(Golden *g, uint32_t addr, bool store)
{
    if (!in_ram(g, addr)) golden_fault(g, store ? FAULT_STORE_ACCESS : FAULT_LOAD_ACCESS, addr);
    else if (addr & 3) golden_fault(g, store ? FAULT_STORE_MISALIGNED : FAULT_LOAD_MISALIGNED, addr);
    return golden_ok(g);
}

void golden_jump(Golden *g, uint32_t target)
{
    if (target & 3) golden_fault(g, FAULT_FETCH_MISALIGNED, target);
    else g->next = target;
}

const GoldenInsn *golden_decode(uint32_t isa, uint32_t word)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const GoldenInsn *i = tables[t].insns; (tables[t].isa & ~isa) == 0 && i->name; i++)
            if ((word & i->mask) == i->match) return i;
    return NULL;
}

static uint32_t sext(uint32_t v, unsigned bits) { return (uint32_t)((int32_t)(v << (32 - bits)) >> (32 - bits)); }

static uint32_t immediate(uint32_t w, GoldenFormat format)
{
    switch (format) {
    case FMT_I: return sext(w >> 20, 12);
    case FMT_SHIFT: return w >> 20 & 31;
    case FMT_CSR: return w >> 20;
    case FMT_S: return sext(w >> 25 << 5 | (w >> 7 & 31), 12);
    case FMT_B: return sext((w >> 31) << 12 | (w >> 7 & 1) << 11 | (w >> 25 & 63) << 5 | (w >> 8 & 15) << 1, 13);
    case FMT_U: return w & 0xfffff000;
    case FMT_J: return sext((w >> 31) << 20 | (w >> 12 & 255) << 12 | (w >> 20 & 1) << 11 | (w >> 21 & 1023) << 1, 21);
    case FMT_R: break;
    }
    return 0;
}

static bool has_rd(GoldenFormat format) { return format != FMT_S && format != FMT_B; }

static uint32_t ram_word(const Golden *g, uint32_t off)
{
    const uint8_t *p = g->ram + off;
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void golden_illegal(Golden *g) { golden_fault(g, FAULT_ILLEGAL, ram_word(g, g->pc - (uint32_t)GOLDEN_RAM_BASE)); }

static void do_illegal(Golden *g, uint32_t rd, uint32_t rs1, uint32_t rs2, uint32_t imm)
{
    (void)rd, (void)rs1, (void)rs2, (void)imm;
    golden_illegal(g);
}

static void decode_at(Golden *g, uint32_t off)
{
    uint32_t word = ram_word(g, off);
    const GoldenInsn *insn = golden_decode(g->isa, word);
    GoldenDecoded *d = &g->decoded[off >> 2];
    *d = (GoldenDecoded){ .insn = insn, .exec = insn ? insn->exec : do_illegal };
    if (!insn) return;
    d->imm = immediate(word, insn->format);
    d->rd = has_rd(insn->format) ? word >> 7 & 31 : 0;
    d->rs1 = word >> 15 & 31;
    d->rs2 = word >> 20 & 31;
}

/* After a fault: the handler, or the end. */
static bool take_fault(Golden *g)
{
    if (!golden_has_handler(g)) return false;
    g->state = GOLDEN_RUNNING;
    golden_trap(g, g->code, g->tval);
    return true;
}

/* One step; false when the machine has stopped. The pc stays on an instruction that ends the run by a fault. */
static inline bool step(Golden *g)
{
    if (g->csr.due) {
        golden_interrupt(g);
        return take_fault(g);
    }
    bool late = golden_timer(g);
    uint32_t off = g->pc - (uint32_t)GOLDEN_RAM_BASE;
    if (off >= g->ram_size) {
        golden_fault(g, FAULT_FETCH_ACCESS, g->pc);
        return take_fault(g);
    }
    const GoldenDecoded *d = &g->decoded[off >> 2];
    if (!d->exec) decode_at(g, off);
    g->next = g->pc + 4;
    d->exec(g, d->rd, d->rs1, d->rs2, d->imm);
    g->x[0] = 0;
    if (g->state == GOLDEN_FAULT) return take_fault(g);
    g->pc = g->next;
    g->steps++;
    g->ticks++;
    if (g->isa & ISA_CLINT) golden_decide(g, late);
    return g->state == GOLDEN_RUNNING;
}

bool golden_step(Golden *g, GoldenCommit *commit)
{
    if (g->state != GOLDEN_RUNNING) return false;
    uint32_t pc = g->pc, off = pc - (uint32_t)GOLDEN_RAM_BASE;
    uint32_t word = off < g->ram_size ? ram_word(g, off) : 0;
    uint64_t traps = g->traps;
    g->store.size = 0;
    bool running = step(g);
    if (!commit || g->state == GOLDEN_FAULT) return running;
    *commit = (GoldenCommit){ .pc = pc, .word = word };
    if (g->traps != traps) return running;
    const GoldenInsn *insn = golden_decode(g->isa, word);
    commit->name = insn->name;
    commit->rd = has_rd(insn->format) ? word >> 7 & 31 : 0;
    commit->value = g->x[commit->rd];
    commit->store_size = g->store.size;
    commit->store_addr = g->store.addr;
    commit->store_data = g->store.data;
    return running;
}

uint64_t golden_run(Golden *g, uint64_t max_steps)
{
    uint64_t start = g->steps + g->traps, end = max_steps ? start + max_steps : UINT64_MAX;
    while (g->state == GOLDEN_RUNNING && g->steps + g->traps < end && step(g)) continue;
    return g->steps + g->traps - start;
}
