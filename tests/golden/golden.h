/* golden.h: an independent, strict RV32I interpreter, the reference that chips and netlists are compared with.
 *
 * It shares no code with the compiler or the runtime. What the ISA manual does not define is refused, never guessed:
 * an encoding that no row of an instruction table matches in full is illegal. The memory map is that of the
 * machine in cpu-spec/rv32i.ckt: RAM at 0x80000000, UART at 0x10000000, finisher at 0x100000, the ELF's `tohost`.
 * An extension is one more file with a table of instructions and one more row in golden.c's `tables`. */
#ifndef GOLDEN_H
#define GOLDEN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GOLDEN_RAM_BASE = (int)0x80000000, GOLDEN_UART = 0x10000000, GOLDEN_FINISHER = 0x00100000 };

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

struct Golden {
    uint32_t pc, next; /* next: where the current instruction sends the pc */
    uint32_t x[32];    /* x[0] is 0 between steps */
    uint8_t *ram;      /* [ram_size], little-endian */
    uint32_t ram_size; /* a power of two, at least 4 KiB */
    uint32_t tohost;   /* address of the symbol, 0xffffffff where there is none */
    uint64_t steps;    /* instructions retired; one that faults does not retire */
    GoldenState state;
    uint32_t code;     /* the exit status (8 bits) or the GoldenFault */
    void (*put)(void *ctx, uint8_t byte); /* console output; NULL: dropped */
    void *put_ctx;
    struct {
        uint32_t addr, data, size; /* the last step's store; size 0: none, or it faulted (addr is set then) */
    } store;
    GoldenDecoded *decoded; /* [ram_size / 4] */
};

/* What one retired instruction did. rd 0: no register was written. */
typedef struct {
    uint32_t pc, word, rd, value, store_addr, store_data, store_size;
    const char *name;
} GoldenCommit;

/* Operand layouts: which fields of the word an instruction's effect gets. */
typedef enum { FMT_R, FMT_I, FMT_SHIFT, FMT_S, FMT_B, FMT_U, FMT_J } GoldenFormat;

struct GoldenInsn {
    const char *name; /* NULL ends a table */
    uint32_t mask, match;
    GoldenFormat format;
    void (*exec)(Golden *g, uint32_t rd, uint32_t rs1, uint32_t rs2, uint32_t imm);
};

/* ---- golden.c ---- */
/* A machine with zeroed registers and RAM; NULL when ram_size is no power of two in [4 KiB, 1 GiB]. */
Golden *golden_new(uint32_t ram_size);
void golden_free(Golden *g);
/* One instruction. False when the machine has stopped (state and code say why); *commit, if given, is then not set
 * unless the instruction retired (an exit retires, a fault does not). */
bool golden_step(Golden *g, GoldenCommit *commit);
/* Up to max_steps instructions (0: no limit), without commit records: the fast way. Returns the steps done. */
uint64_t golden_run(Golden *g, uint64_t max_steps);
/* The instruction that the word encodes, or NULL: illegal. */
const GoldenInsn *golden_decode(uint32_t word);
const char *golden_fault_name(uint32_t code);
/* For instruction files. Loads give the zero-extended value; after a fault the machine has stopped. */
uint32_t golden_load(Golden *g, uint32_t addr, uint32_t size);
void golden_store(Golden *g, uint32_t addr, uint32_t value, uint32_t size);
void golden_jump(Golden *g, uint32_t target);
void golden_fault(Golden *g, GoldenFault code);
void golden_exit(Golden *g, uint32_t status);

/* ---- load.c ---- */
/* Loads a static ELF32 RISC-V executable: segments by physical address, pc, tohost. NULL, or what is wrong with it. */
const char *golden_load_elf(Golden *g, const char *path);

/* ---- rv32i.c ---- */
extern const GoldenInsn golden_rv32i[];
#endif
