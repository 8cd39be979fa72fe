/* gpu_one.c: one machine in one thread block, as a back end: tables of six inputs spread over the block's threads, a barrier after every wave, many tokens a launch. A
 * launch goes on through console output, which the host only writes down: what was said after it is kept here until it is asked for. */
#include "gpu_block.h"
#include "slice_priv.h"
#include <stdlib.h>

enum { ROOM = 1024 };

typedef struct {
    const Model *m;
    Slice *slice;
    GpuBlocks *k;
    SliceState cells; /* the machine's state here */
    bool here, there; /* where it is up to date */
    uint32_t said[ROOM], nsaid, next;
    char *err;
} One;

static void one_close(void *self)
{
    One *o = self;
    if (o->k) gpu_blocks_close(o->k);
    if (o->slice) slice_close(o->slice);
    free(o->cells.state);
    free(o->err);
    free(o);
}

/* Output is nothing to stop for; what asks the host for anything is. */
static void choose_roles(Gpu *g)
{
    uint8_t *kind = (uint8_t *)(uintptr_t)g->kind;
    for (uint32_t i = 0; i < g->nkinds; i++) {
        uint8_t role = kind[i] & GPU_ROLE;
        kind[i] = (uint8_t)((kind[i] & ~GPU_ROLE) | (role == GPU_OUTPUT ? GPU_TRACE : role == GPU_TAKE ? GPU_STOP : role));
    }
}

static bool open_planes(One *o, GpuDevice *d, char **err)
{
    char *why = NULL;
    GpuBlocksOptions options = {.inputs = GPU_MANY, .machines = 1, .room = ROOM, .trace = true, .prepare = choose_roles};
    if ((o->slice = slice_open(o->m, false, true, &why))) o->k = gpu_blocks_open(d, o->slice, &options, NULL, &why, err);
    if (o->k) return true;
    if (why) fail(err, "%s: back end %s cannot run it: %s", o->m->path, d->name, why);
    free(why);
    return false;
}

static void *open_on(const char *name, const Model *m, char **err)
{
    GpuDevice *d = gpu_device(name, err);
    if (!d) return NULL;
    One *o = calloc(1, sizeof *o);
    if (!o) die("out of memory");
    o->m = m;
    o->here = true;
    if (!open_planes(o, d, err)) {
        one_close(o);
        return NULL;
    }
    o->cells = (SliceState){o->slice, calloc(1, slice_bytes(o->slice) + 8), NULL};
    if (!o->cells.state) die("out of memory");
    return o;
}

static void *open_cuda(const Model *m, const BackendOptions *o, char **err) { return (void)o, open_on("cuda", m, err); }
static void *open_host(const Model *m, const BackendOptions *o, char **err) { return (void)o, open_on("cuda-host", m, err); }

/* ---- running ---- */
static uint64_t word_of(const One *o, uint32_t token)
{
    const ChipKind *k = model_kind(o->m, token);
    return k ? (uint64_t)(k - o->m->kind) | (uint64_t)(token - k->base) << o->slice->kind_bits : 0;
}

static uint32_t token_of(const One *o, uint64_t word)
{
    uint32_t kind = (uint32_t)(word & mask64(o->slice->kind_bits));
    return kind < o->m->nkinds ? o->m->kind[kind].base + (uint32_t)(word >> o->slice->kind_bits) : UINT32_MAX;
}

/* A launch; what came out is in o->said. */
static bool launch(One *o, uint32_t token, uint32_t passes)
{
    GpuLane *l = o->k->lane;
    if (o->cells.bad) return fail(&o->err, "%s", o->cells.bad);
    if (!o->there && !gpu_blocks_put(o->k, 0, o->cells.state, &o->err)) return false;
    o->there = true, o->here = false;
    *l = (GpuLane){.word = word_of(o, token), .stop = GPU_RUNNING, .load = GPU_NONE, .feed = 1};
    if (!gpu_blocks_run(o->k, passes, &o->err)) return o->err ? false : fail(&o->err, "%s", o->k->why);
    o->next = 0;
    o->nsaid = o->k->block->base;
    for (uint32_t i = 0; i < o->nsaid; i++) o->said[i] = token_of(o, o->k->trace[i]);
    return true;
}

/* What cannot be done is said, and no kind's token ends the run. */
static uint32_t broken(One *o, uint32_t *out)
{
    fprintf(stderr, "%s: back end %s: %s\n", o->m->path, o->k->device->name, o->err);
    free(o->err);
    o->err = NULL;
    o->nsaid = o->next = 0;
    *out = UINT32_MAX;
    return 1;
}

static uint32_t one_run(void *self, uint32_t token, uint32_t *out, uint32_t max)
{
    One *o = self;
    uint32_t n = 0;
    if (o->next == o->nsaid && !launch(o, token, max < ROOM ? max : ROOM)) return broken(o, out);
    while (n < max && o->next < o->nsaid) {
        const ChipKind *k = model_kind(o->m, out[n++] = o->said[o->next++]);
        if (!k || k->role != CHIP_TRACE) break;
    }
    return n;
}

/* ---- state ---- */
static void fetch(One *o)
{
    if (o->here || gpu_blocks_get(o->k, 0, o->cells.state, &o->err)) {
        o->here = true;
        return;
    }
    die("%s", o->err);
}

static void one_get(void *self, uint32_t layer, uint32_t head, uint32_t row, float *lanes)
{
    One *o = self;
    fetch(o);
    slice_cells_backend.get(&o->cells, layer, head, row, lanes);
}

static void one_set(void *self, uint32_t layer, uint32_t head, uint32_t row, const float *lanes)
{
    One *o = self;
    fetch(o);
    o->there = false;
    slice_cells_backend.set(&o->cells, layer, head, row, lanes);
}

const Backend cuda_backend = {"cuda", open_cuda, one_run, one_get, one_set, one_close, NULL, NULL, NULL};
const Backend cuda_host_backend = {"cuda-host", open_host, one_run, one_get, one_set, one_close, NULL, NULL, NULL};
