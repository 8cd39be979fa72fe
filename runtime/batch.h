/* batch.h: many machines on one chip at once. */
#ifndef TAPEOUT_BATCH_H
#define TAPEOUT_BATCH_H
#include "gpu.h"
#include "runtime.h"

/* One machine: what it runs, and what came of it. */
typedef struct {
    const Firmware *firmware; /* NULL: nothing is loaded; several machines may share one */
    const uint8_t *input;     /* what it is fed where it takes input; may be shared too */
    size_t ninput;
    Stop why;                 /* results from here on */
    uint64_t payload;         /* of an exit or a fault */
    const ChipKind *kind;
    uint64_t steps, tokens;
    uint8_t *output;          /* malloc'd, the caller frees it */
    size_t noutput;
} BatchJob;

typedef struct {
    uint64_t max_steps; /* 0: no limit */
    uint32_t threads;   /* 0: one for each processor */
    bool single;        /* one after the other on the default back end */
    GpuDevice *device;  /* NULL: on the processor's cores (gpu.h) */
    uint32_t passes, lanes; /* of a launch there, and machines there at once; 0: a sensible number, all */
    /* For tests, or NULL: a job has ended with this state of so many bytes (not when it ran one after the other); it said this token (on a device only). */
    void (*ended)(void *ctx, uint32_t job, const uint8_t *state, size_t bytes);
    void (*said)(void *ctx, uint32_t job, uint32_t token);
    void *ctx;
    bool cells; /* for tests, on a device: state of one row is in memory, too, not in planes (slice_planes.c) */
} BatchOptions;

typedef struct {
    uint32_t threads, planes, operations, checks, compilations;
    size_t bytes; /* of memory for a machine's state */
    uint32_t waves, launches, blocks, lanes; /* on a device: waves of a pass; lanes of a block */
    double opening, seconds;
    char why[160]; /* not empty: why machines ran one after the other */
} BatchReport;

/* ---- batch.c ---- */
/* Runs all jobs to their end, each as machine_run would: the same tokens, output and steps. False and *err when a firmware
 * cannot be installed. */
bool batch_run(const Model *m, BatchJob *job, uint32_t n, const BatchOptions *o, BatchReport *report, char **err);

/* ---- batch_list.c ---- */
typedef struct {
    const char *chip, *list;
    uint64_t max_steps;
    bool stats, single;
    const char *device; /* NULL: the processor */
} BatchListOptions;
/* `tapeout run --batch LIST`: the whole of it, messages included. The list has a line for each machine: the firmware's path, after a tab the
 * file for its console output (nothing: it is dropped), after another the file with its input; empty lines and lines that begin with # do not count. Prints for each machine, in order, a line of fields between
 * tabs: status, steps, tokens, bytes of output, how it ended (exit, fault NAME, steps, broken), firmware. Returns 0 when all statuses are 0, else 1. */
int runtime_batch(const BatchListOptions *o);
/* slice_past.c, for tests: the compilation from which on all that is kept of earlier tokens is taken for numbers; the first is 1. */
extern uint32_t past_numbers_from;
#endif
