/* gpu.h: a chip as logic over planes on a GPU (or on the host, in its place): the program that slice.h compiles, scheduled for a thread block.
 *
 *   gpu_plan.c     a stage's operations as look-up tables in waves; slots; everything as one image of plain arrays
 *   gpu_map.c      ... covering: the two-input operations become tables of up to 3 or 6 inputs
 *   gpu_kernel.h   the kernel: one source for the GPU and for the host
 *   gpu_host.c     a device that is the host: a fiber or a thread per GPU thread, real barriers (gpu_shim.h)
 *   gpu.cu         a device that is a GPU
 *   gpu_block.c    a program on a device, its blocks; widening of assumed ranges
 *   gpu_batch.c    many machines: `run --batch LIST --backend cuda`
 *   gpu_one.c      one machine in one thread block: `run --backend cuda`
 *   gpu_dense.h    another kernel: every matrix in full: `run --backend cuda-dense`; gpu_stock.h: its steps for checkpoints alone
 *   gpu_steps.c    its lists of steps, made by gpu_dense.c of a chip and by gpu_stock.c of a checkpoint
 *   gpu_image.c    the rest of gpu_plan.c; gpu_devices.c: devices by name
 *
 * WHO DOES WHAT. A thread block owns 32 * W lanes: a plane is W words of shared memory. An operation of a wave is done by the threads of one place in the
 * block, W / V of them with V words each; all operations of a wave are independent, a barrier ends it. Cells of a lane's state lie in global memory, the words of 32
 * lanes side by side. A launch runs many passes: what the host does for a machine (console, exit, end of input, steps) is done by the lane's
 * thread and collected by the host after the launch. One machine is the same with one lane, W = 1, and tables of 6 inputs instead of 3. */
#ifndef TAPEOUT_GPU_H
#define TAPEOUT_GPU_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

enum {
    GPU_NONE = 0xffffffff,
    GPU_NO_SLOT = 0xffff,   /* of an operation: there is none; of a past plane: all zeros */
    GPU_ONES = 0xfffe,      /* of a past plane: all ones */
    GPU_FEW = 3, GPU_MANY = 6, /* inputs of a table: many lanes, one lane */
    GPU_FEW_SLOTS = 0x3fff, /* slots that fit in an operation of few inputs */
    GPU_CHAIN = 17          /* slots of a GpuPast */
};

/* An address and whether it counts: table[the bits] is a number or GPU_NONE; the last bit says whether it counts at all. */
typedef struct {
    uint32_t slots, bits, table; /* places in Gpu.slot, Gpu.table */
} GpuSelect;

/* A write or read of a word under a number; a number's items stand together, the last one says so. */
typedef struct {
    uint32_t key;            /* GpuSelect of the row */
    uint32_t rows, base, bytes; /* row r is at base + table[rows + r] * bytes of a machine's state; GPU_NONE: it has none */
    uint32_t mask[2];
    uint32_t at;             /* write: slots of the value, by bit; read: word of the result << 8 | shift */
    uint32_t last;
} GpuItem;

typedef struct {
    uint32_t when, key, rows, base, bytes, shift, bits, amount; /* when: a slot */
} GpuCount;

typedef struct {
    uint32_t write, nwrite, read, nread; /* GpuSelects: tables hold items */
    uint32_t count, ncount;
    uint32_t nout, out, nplanes; /* words of a lane's result; (slot, bit of the result) pairs in Gpu.out */
} GpuCells;

typedef struct {
    uint16_t n, slot[GPU_CHAIN]; /* slot[n] <- slot[n - 1] <- ... <- slot[0] */
} GpuPast;

typedef struct {
    uint32_t wave, nwaves, check, nchecks;
    uint32_t keep, nkeep, past, npast; /* GpuPasts: state that is planes, which then becomes what was computed; earlier tokens */
    uint32_t cells; /* GPU_NONE: none of the three after this stage */
} GpuStage;

enum { GPU_TRACE, GPU_OUTPUT, GPU_TAKE, GPU_STOP, GPU_ROLE = 15, GPU_LAST = 16 }; /* what a lane does with a token of a kind; a step's last */

/* The program; on a device all pointers are the device's. */
typedef struct {
    uint32_t inputs;      /* of a table: GPU_FEW or GPU_MANY */
    uint32_t words, wave_ops; /* W; operations in a wave, threads * V / W of them */
    uint32_t nstages, nslots, kept; /* slots [0, kept) hold something between two stages */
    uint32_t nout;        /* most words of a lane's result */
    uint32_t state_words; /* of a machine */
    uint32_t nkinds, kind_bits, token_bits, special, retired;
    uint32_t begun;       /* place in Gpu.pasts: the planes that tell how old a lane is, one chain */
    uint32_t has_input, input, input_bits; /* the kind of what is fed to who asks, and its payload's bits */
    uint64_t start;       /* token word: kind | payload << kind_bits */
    size_t bytes;         /* of this and all arrays: they lie behind it */
    uint32_t nop, nstage, ncells, nselect, nitem, ncount, npasts, nslot, ntable, nouts, ncheck, nhome; /* lengths of: */
    const uint32_t *first; /* [waves + 1] a wave's operations are [first[i], first[i + 1]), at most wave_ops */
    /* 3 inputs: 14 bits each for the destination (least) and the inputs, 8 for the table, whose bit i is the result where the
     * inputs, the first least, say i. 6 inputs: three words: destination and 3 inputs, 16 bits each; 3 inputs; table. */
    const uint64_t *op;
    const GpuStage *stage;
    const GpuCells *cells;
    const GpuSelect *select;
    const GpuItem *item;
    const GpuCount *count;
    const GpuPast *pasts;
    const uint16_t *slot;
    const uint32_t *table;
    const uint16_t *outs;  /* [nouts][2] */
    const uint16_t *check; /* slots that must be 0 in active lanes */
    const uint32_t *home;  /* [nhome][2] planes that are state, and the bits of a machine's state that stand for them */
    const uint16_t *token_in, *token_out; /* [token_bits] */
    const uint8_t *kind;   /* [nkinds] GPU_TRACE ... | GPU_LAST */
} Gpu;

enum { GPU_IDLE, GPU_RUNNING, GPU_EXITED, GPU_STEPS };
typedef struct {
    uint64_t tokens, steps, word; /* word: the last token, when stopped; the token to feed first, with `feed` */
    uint32_t stop, noutput;       /* GPU_RUNNING ...; bytes in its output since the last launch */
    uint32_t load;                /* the image to begin with, or GPU_NONE */
    uint16_t feed, drop;          /* drop: what comes out for the first token is dropped, and an input fed */
    uint64_t input;               /* place of its input in GpuRun.input */
    uint32_t ninput, fed;         /* bytes of it; fed already */
} GpuLane;

enum { GPU_FINE, GPU_FULL, GPU_TWICE };
typedef struct {
    uint32_t passes;  /* to do in this launch; 0: the block rests */
    uint32_t done;    /* of them */
    uint32_t base;    /* passes since outputs and traces were last taken */
    uint32_t stage;   /* to go on with */
    uint32_t failed;  /* it stopped there, since checks failed or there is trouble: */
    uint32_t trouble; /* GPU_FULL: a count ran over; GPU_TWICE: two rows were read at once */
    uint32_t active;  /* lanes that go on */
} GpuBlock;

/* What a launch is given. */
typedef struct {
    Gpu g;
    uint32_t lanes;        /* of a block that are used: of each word of a plane, 1 or 32 */
    uint32_t room;         /* bytes of a lane's output, tokens of a lane's trace: at least the passes */
    uint64_t max_steps;    /* 0: no limit */
    uint32_t *planes;      /* [blocks][kept][W] */
    uint32_t *state;       /* [blocks][W][state_words][lanes] */
    const uint32_t *image; /* [images][state_words] */
    const uint8_t *input;
    GpuLane *lane;         /* [blocks][W * lanes] */
    GpuBlock *block;       /* [blocks] */
    uint32_t *mask;        /* [blocks][2][W] lanes that have taken an input; whose next token is dropped. Active lanes are those that run. */
    uint8_t *output;       /* [blocks][W * lanes][room] */
    uint64_t *trace;       /* the same, token words, or NULL */
    uint8_t *failed;       /* [blocks][ncheck] */
} GpuRun;

struct DenseStep;
/* Where programs run. Errors are messages of *err, malloc'd; false then. */
typedef struct GpuDevice GpuDevice;
struct GpuDevice {
    const char *name;
    bool (*open)(GpuDevice *d, char **err); /* sets the rest */
    void *(*alloc)(GpuDevice *d, size_t bytes, char **err); /* zeroed; NULL when there is no room */
    void (*free)(GpuDevice *d, void *p);
    bool (*put)(GpuDevice *d, void *to, const void *from, size_t bytes, char **err);
    bool (*get)(GpuDevice *d, void *to, const void *from, size_t bytes, char **err);
    /* Runs the kernel of gpu_kernel.h and waits for it. */
    bool (*run)(GpuDevice *d, const GpuRun *r, uint32_t blocks, uint32_t threads, char **err);
    /* The dense executor (gpu_dense.h): a token is these steps; so many tokens, fewer when the last step says so. *plan is the device's own, NULL at first. */
    bool (*tokens)(GpuDevice *d, const struct DenseStep *step, uint32_t n, uint32_t tokens, void **plan, char **err);
    void (*forget)(GpuDevice *d, void *plan);
    uint32_t processors, threads; /* threads of a block that it likes */
    size_t shared;                /* bytes of shared memory that a block may have */
    uint64_t seed;                /* host only: of the order in which threads run; 0: in order */
    bool parallel;                /* host only: threads of the operating system instead of fibers */
    uint32_t skip;                /* host only: the barrier in this line is left out, to show that it would be missed; 0: none */
    const char *skip_in;          /* of the file whose name ends so */
};
/* By name: "cuda", "cuda-host"; NULL and *err when there is no such device here. */
GpuDevice *gpu_device(const char *name, char **err);
extern GpuDevice gpu_host; /* gpu_host.c */

/* Bytes of shared memory that a block of the program needs. */
static inline size_t gpu_shared_bytes(const Gpu *g, uint32_t lanes)
{
    return ((size_t)g->nslots * g->words + 4 * g->words + 4 + (size_t)2 * g->nout * g->words * lanes) * sizeof(uint32_t);
}

/* ---- gpu_plan.c ---- */
struct Slice;
typedef struct {
    uint32_t operations, tables, waves; /* of a pass: two-input operations, tables, waves */
    double seconds;
} GpuPlanReport;
/* The program of a slice for blocks of `threads` threads and planes of `words` words, as one malloc'd piece (free() it); NULL when it has more slots
 * than an operation can name. */
Gpu *gpu_plan(struct Slice *s, uint32_t inputs, uint32_t words, uint32_t threads, GpuPlanReport *report);
/* Words of each thread in an operation. */
static inline uint32_t gpu_vector(uint32_t words) { return words < 4 ? words : 4; }

#ifdef __cplusplus
}
#endif
#endif
