/* gpu_block.h: a program on a device and the blocks that run it (gpu_block.c), for gpu_batch.c and gpu_one.c. */
#ifndef TAPEOUT_GPU_BLOCK_H
#define TAPEOUT_GPU_BLOCK_H
#include "gpu.h"
#include "slice.h"

typedef struct {
    GpuDevice *device;
    Slice *slice;
    Gpu *program;            /* here */
    GpuRun run;              /* its pointers are the device's */
    GpuPlanReport report;
    void (*prepare)(Gpu *program);
    uint32_t blocks, threads, lanes, words; /* lanes: of a block */
    uint32_t images, compilations, launches, homes; /* homes: slots for good when it was planned */
    void *piece;             /* the program there */
    GpuLane *lane;           /* [blocks * lanes] here: the caller fills in what to begin, and reads what came of it */
    GpuBlock *block;         /* [blocks] */
    uint8_t *output;         /* [blocks * lanes][room] */
    bool traced;
    uint64_t *trace;         /* the same, or NULL: token words, all ones where nothing was said */
    char why[160];           /* not empty: why planes could not do it */
} GpuBlocks;

typedef struct {
    uint32_t inputs, machines, images, room; /* room: passes in a launch at most */
    bool trace;
    uint64_t max_steps;
    const uint8_t *input; /* [ninput] what lanes' inputs lie in */
    size_t ninput;
    void (*prepare)(Gpu *program); /* changes what lanes do with kinds of tokens, or NULL */
} GpuBlocksOptions;
/* For `machines` lanes at once, or as many as the device's memory has room for. Images are [images][state bytes], slice_bytes each. NULL with *err; or with
 * *why when planes cannot hold the chip. Closes neither device nor slice. */
GpuBlocks *gpu_blocks_open(GpuDevice *d, Slice *s, const GpuBlocksOptions *o, const uint8_t *const *image, char **why, char **err);
void gpu_blocks_close(GpuBlocks *b);
/* `passes` of all blocks in which a lane runs or begins; outputs and traces begin anew. Blocks may do fewer (block[].base of them), when ranges were widened. False with
 * *err, or with b->why when planes cannot do it. */
bool gpu_blocks_run(GpuBlocks *b, uint32_t passes, char **err);
/* A lane's state, slice_bytes. */
bool gpu_blocks_get(GpuBlocks *b, uint32_t lane, uint8_t *state, char **err);
bool gpu_blocks_put(GpuBlocks *b, uint32_t lane, const uint8_t *state, char **err);
#endif
