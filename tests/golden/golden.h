/* golden.h: an independent, strict RV32 interpreter, the reference that chips and netlists are compared with.
 *
 * It shares no code with the compiler or the runtime. What the ISA manual does not define is refused, never guessed:
 * an encoding that no row of an instruction table matches in full is illegal. The memory map is that of the
 * machines in cpu-spec/: RAM at 0x80000000, UART at 0x10000000, finisher at 0x100000, CLINT at 0x2000000 (where there is
 * one), the ELF's `tohost`. An extension is one more file with a table of instructions and one more row in golden.c's `tables`.
 *
 * With machine mode an exception traps once the program has written an address to mtvec; until then it ends the run, as in
 * the machine without. A step is one instruction, or the taking of an interrupt, or the taking of an exception. */
#ifndef GOLDEN_H
#define GOLDEN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GOLDEN_RAM_BASE = (int)0x80000000, GOLDEN_UART = 0x10000000, GOLDEN_FINISHER = 0x00100000, GOLDEN_CLINT = 0x02000000 };

/* Extensions of RV32I, to be combined. MACHINE: Zicsr, Zifencei and machine mode; CLINT: the interrupts' device, and counters that count;
 * CONSOLE: a UART that receives. */
typedef enum { ISA_M = 1, ISA_A = 2, ISA_ZBA = 4, ISA_ZBB = 8, ISA_MACHINE = 16, ISA_CLINT = 32, ISA_CONSOLE = 64 } GoldenIsa;

/* A CPU of cpu-spec/ by the name of its machine, and what it can do. */
typedef struct {
    const char *name; /* NULL ends the table */
    uint32_t isa;     /* GoldenIsa bits */
} GoldenCpu;

/* RISC-V's exception numbers, as far as this machine raises them. */
typedef enum {
    FAULT_FETCH_MISALIGNED = 0,
    FAULT_FETCH_ACCESS = 1,
    FAULT_ILLEGAL = 2,
    FAULT_BREAKPOINT = 3,
    FAULT_LOAD_MISALIGNED = 4,
    FAULT_LOAD_ACCESS = 5,
    FAULT_STORE_MISALIGNED = 6,
    FAULT_STORE_ACCESS = 7,
    FAULT_ECALL = 11,
    FAULT_SOFTWARE_IRQ = -0x7ffffffd, /* 0x80000003 and 0x80000007: interrupts that find no handler */
    FAULT_TIMER_IRQ = -0x7ffffff9,
} GoldenFault;

typedef enum { GOLDEN_RUNNING, GOLDEN_EXIT, GOLDEN_FAULT } GoldenState;

typedef struct Golden Golden;
typedef struct GoldenInsn GoldenInsn;

/* One decoded instruction word; `insn` is NULL until the word has been fetched once since it was last written. */
typedef struct {
    const GoldenInsn *insn;
    void (*exec)(Golden *g, uint32_t rd, uint32_t rs1, uint32_t rs2, uint32_t imm);
    uint32_t imm;
    uint8_t rd, rs1, rs2;
} GoldenDecoded;

/* Machine mode's registers. Counters are kept as what has to be added to `ticks`. */
typedef struct {
    uint32_t mie_bit, mpie_bit; /* mstatus.MIE and MPIE, 0 or 1 */
    uint32_t mie, mtvec, mscratch, mepc, mcause, mtval;
    uint64_t cycle, instret, time; /* offsets */
    uint64_t mtimecmp;
    uint32_t msip;
    uint32_t enabled; /* mie while mstatus.MIE is set, else 0 */
    uint32_t mtip;    /* 0 or 1 */
    uint32_t due;     /* interrupts to be taken before the next instruction */
} GoldenCsr;

struct Golden {
    uint32_t isa;      /* GoldenIsa bits */
    uint32_t pc, next; /* next: where the current instruction sends the pc */
    uint32_t x[32];    /* x[0] is 0 between steps */
    uint8_t *ram;      /* [ram_size], little-endian */
    uint32_t ram_size; /* a power of two, at least 4 KiB */
    uint32_t tohost;   /* address of the symbol, 0xffffffff where there is none */
    uint32_t signature[2]; /* addresses of begin_signature and end_signature, 0 where there are none */
    uint64_t steps;    /* instructions retired; one that faults or traps does not retire */
    uint64_t traps;    /* exceptions and interrupts taken */
    uint64_t ticks;    /* what the counters count: instructions retired */
    uint32_t tval;     /* the fault's mtval */
    GoldenCsr csr;
    uint32_t reserved; /* address that lr.w has reserved, or 1 */
    GoldenState state;
    uint32_t code;     /* the exit status (8 bits) or the GoldenFault */
    void (*put)(void *ctx, uint8_t byte); /* console output; NULL: dropped */
    void *put_ctx;
    int (*get)(void *ctx); /* the next byte of the console's input, -1 at its end; NULL: there is none */
    void *get_ctx;
    int key; /* 0x100 + the byte that waits in the UART, 0: none; -1: not looked at yet */
    struct {
        uint32_t addr, data, size; /* the last step's store; size 0: none, or it faulted (addr is set then) */
    } store;
    GoldenDecoded *decoded; /* [ram_size / 4] */
};

/* What one step did. rd 0: no register was written. name NULL: no instruction retired, a trap was taken (mcause says which). */
typedef struct {
    uint32_t pc, word, rd, value, store_addr, store_data, store_size;
    const char *name;
} GoldenCommit;

/* Operand layouts: which fields of the word an instruction's effect gets. */
typedef enum { FMT_R, FMT_I, FMT_SHIFT, FMT_CSR, FMT_S, FMT_B, FMT_U, FMT_J } GoldenFormat; /* CSR: imm is the register's number */

struct GoldenInsn {
    const char *name; /* NULL ends a table */
    uint32_t mask, match;
    GoldenFormat format;
    void (*exec)(Golden *g, uint32_t rd, uint32_t rs1, uint32_t rs2, uint32_t imm);
};

/* ---- golden.c ---- */
extern const GoldenCpu golden_cpus[];
/* NULL: no CPU has this name. */
const GoldenCpu *golden_cpu(const char *name);
/* A machine with zeroed registers and RAM; NULL when ram_size is no power of two in [4 KiB, 1 GiB]. isa: GoldenIsa bits. */
Golden *golden_new(uint32_t isa, uint32_t ram_size);
void golden_free(Golden *g);
/* One step. False when the machine has stopped (state and code say why); *commit, if given, is then not set
 * unless the instruction retired (an exit retires, a fault does not). */
bool golden_step(Golden *g, GoldenCommit *commit);
/* Up to max_steps steps (0: no limit), without commit records: the fast way. Returns the steps done, traps included. */
uint64_t golden_run(Golden *g, uint64_t max_steps);
/* The instruction that the word encodes, or NULL: illegal. */
const GoldenInsn *golden_decode(uint32_t isa, uint32_t word);
const char *golden_fault_name(uint32_t code);
/* For instruction files. Loads give the zero-extended value; after a fault golden_ok is false until the step has ended. */
uint32_t golden_load(Golden *g, uint32_t addr, uint32_t size);
void golden_store(Golden *g, uint32_t addr, uint32_t value, uint32_t size);
/* Whether an atomic access to the word is possible: an aligned word of RAM. If not, faults as a load or a store would. */
bool golden_atomic(Golden *g, uint32_t addr, bool store);
void golden_jump(Golden *g, uint32_t target);
void golden_fault(Golden *g, GoldenFault code, uint32_t tval);
void golden_illegal(Golden *g);
void golden_exit(Golden *g, uint32_t status);
static inline bool golden_ok(const Golden *g) { return g->state != GOLDEN_FAULT; }

/* ---- machine.c: machine mode ---- */
/* Whether exceptions trap: machine mode, and mtvec is set. */
bool golden_has_handler(const Golden *g);
void golden_trap(Golden *g, uint32_t cause, uint32_t tval);
/* The interrupts that wait, as mip shows them. */
uint32_t golden_pending(const Golden *g);
/* Has mtime reached mtimecmp? */
bool golden_timer(const Golden *g);
/* At the end of an instruction: which interrupt comes before the next, by mstatus, mie and msip as they are now and the timer as the instruction found it. */
void golden_decide(Golden *g, bool timer);
/* Raises the first interrupt that is due, like a fault. */
void golden_interrupt(Golden *g);
uint32_t golden_clint_load(Golden *g, uint32_t offset);
void golden_clint_store(Golden *g, uint32_t offset, uint32_t value);

/* ---- load.c ---- */
/* Loads a static ELF32 RISC-V executable: segments by physical address, pc, tohost, signature. NULL, or what is wrong with it. */
const char *golden_load_elf(Golden *g, const char *path);

/* ---- rv32i.c, m.c, a.c, bits.c, machine.c: the tables of instructions ---- */
extern const GoldenInsn golden_rv32i[], golden_m[], golden_a[], golden_zba[], golden_zbb[], golden_machine[];
#endif
