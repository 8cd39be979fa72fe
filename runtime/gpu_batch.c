/* gpu_batch.c: many machines on a device (gpu.h): lanes of blocks, many passes a launch. Between two launches outputs are collected, and lanes whose machines have ended
 * take the next jobs. */
#include "batch_priv.h"
#include "gpu_block.h"
#include <stdlib.h>

enum { PASSES = 512, IDLE = 0xffffffff };

typedef struct {
    Batch *b;
    GpuDevice *d;
    Slice *s;
    GpuBlocks *k;
    uint32_t *job;  /* [lanes] or IDLE */
    size_t *room;   /* [lanes] of the job's output */
    uint32_t *image; /* [jobs] */
    uint64_t *input; /* [jobs] places in: */
    VEC(uint8_t) inputs; /* all inputs, one behind the other */
    uint32_t busy, lanes;
    uint8_t *state; /* scratch for a lane's */
} GpuBatch;

static void give_up(GpuBatch *g, const char *why)
{
    Batch *b = g->b;
    for (uint32_t i = 0; i < g->lanes; i++)
        if (g->job[i] != IDLE) vec_push(&b->rest, g->job[i]);
    for (; b->next < b->n; b->next++) vec_push(&b->rest, b->next);
    snprintf(b->report->why, sizeof b->report->why, "%s", why);
}

/* The first state of every job; images are of different firmware. */
static bool find_images(GpuBatch *g)
{
    Batch *b = g->b;
    const char *why = NULL;
    g->image = calloc(b->n, sizeof *g->image);
    if (!g->image) die("out of memory");
    for (uint32_t i = 0; i < b->n; i++) {
        const uint8_t *image = batch_first_state(b, g->s, b->job[i].firmware, &why);
        if (!image && !b->err) give_up(g, why);
        if (!image) return false;
        while (b->image.data[g->image[i]] != image) g->image[i]++;
    }
    return true;
}

/* Machines may share an input: those that follow each other do here, too. */
static void join_inputs(GpuBatch *g)
{
    const Batch *b = g->b;
    g->input = calloc(b->n, sizeof *g->input);
    if (!g->input) die("out of memory");
    for (uint32_t i = 0; i < b->n; i++) {
        const BatchJob *j = &b->job[i];
        bool same = i && b->job[i - 1].input == j->input && b->job[i - 1].ninput == j->ninput;
        g->input[i] = same ? g->input[i - 1] : g->inputs.n;
        for (size_t k = 0; !same && k < j->ninput; k++) vec_push(&g->inputs, j->input[k]);
    }
}

static bool open_device(GpuBatch *g)
{
    Batch *b = g->b;
    char *why = NULL;
    if (!(g->s = slice_open(b->m, b->o->cells, true, &why))) {
        give_up(g, why);
        free(why);
        return false;
    }
    if (!find_images(g)) return false;
    join_inputs(g);
    uint32_t most = b->o->lanes && b->o->lanes < b->n ? b->o->lanes : b->n;
    GpuBlocksOptions o = {GPU_FEW, most, b->image.n, b->o->passes ? b->o->passes : PASSES, b->o->said != NULL, b->o->max_steps, g->inputs.data, g->inputs.n, NULL};
    g->k = gpu_blocks_open(g->d, g->s, &o, (const uint8_t *const *)b->image.data, &why, &b->err);
    if (!g->k && !b->err) give_up(g, why);
    free(why);
    if (!g->k) return false;
    g->lanes = g->k->blocks * g->k->lanes;
    g->job = calloc(g->lanes, sizeof *g->job);
    g->room = calloc(g->lanes, sizeof *g->room);
    g->state = calloc(1, slice_bytes(g->s) + 8);
    if (!g->job || !g->room || !g->state) die("out of memory");
    for (uint32_t i = 0; i < g->lanes; i++) g->job[i] = IDLE;
    return true;
}

static void begin_jobs(GpuBatch *g)
{
    Batch *b = g->b;
    for (uint32_t i = 0; i < g->lanes && b->next < b->n; i++) {
        if (g->job[i] != IDLE) continue;
        g->job[i] = b->next++;
        g->room[i] = 0;
        g->k->lane[i] = (GpuLane){.word = g->k->program->start, .stop = GPU_RUNNING, .load = g->image[g->job[i]], .feed = 1, .drop = b->input != NULL,
                                     .input = g->input[g->job[i]], .ninput = (uint32_t)b->job[g->job[i]].ninput};
        g->busy++;
    }
}

/* ---- what came of it ---- */
static uint32_t token_of(const GpuBatch *g, uint64_t word)
{
    uint32_t kind = (uint32_t)(word & mask64(g->k->program->kind_bits));
    return kind < g->b->m->nkinds ? g->b->m->kind[kind].base + (uint32_t)(word >> g->k->program->kind_bits) : UINT32_MAX;
}

static void take_output(GpuBatch *g, uint32_t lane)
{
    const GpuLane *l = &g->k->lane[lane];
    BatchJob *j = &g->b->job[g->job[lane]];
    if (j->noutput + l->noutput > g->room[lane]) {
        g->room[lane] = 2 * (j->noutput + l->noutput);
        j->output = xrealloc(j->output, g->room[lane]);
    }
    if (l->noutput) memcpy(j->output + j->noutput, g->k->output + (size_t)lane * g->k->run.room, l->noutput);
    j->noutput += l->noutput;
}

static void take_trace(GpuBatch *g, uint32_t lane, uint64_t before)
{
    const uint64_t *trace = g->k->trace + (size_t)lane * g->k->run.room;
    for (uint64_t n = before, i = 0; n < g->k->lane[lane].tokens; i++)
        if (trace[i] != ~0ull) g->b->o->said(g->b->o->ctx, g->job[lane], token_of(g, trace[i])), n++;
}

static bool finish(GpuBatch *g, uint32_t lane)
{
    const GpuLane *l = &g->k->lane[lane];
    const Batch *b = g->b;
    BatchJob *j = &b->job[g->job[lane]];
    uint32_t token = token_of(g, l->word);
    const ChipKind *k = l->stop == GPU_STEPS || token == UINT32_MAX ? NULL : model_kind(b->m, token);
    j->steps = l->steps, j->tokens = l->tokens, j->kind = k;
    j->why = l->stop == GPU_STEPS ? STOP_STEPS : !k ? STOP_BROKEN : k->role == CHIP_EXIT ? STOP_EXIT : k->role == CHIP_FAULT ? STOP_FAULT : STOP_BROKEN;
    j->payload = k ? token - k->base : l->stop == GPU_STEPS ? 0 : token;
    if (b->o->ended) {
        if (!gpu_blocks_get(g->k, lane, g->state, &g->b->err)) return false;
        b->o->ended(b->o->ctx, g->job[lane], g->state, slice_bytes(g->s));
    }
    g->job[lane] = IDLE;
    g->busy--;
    return true;
}

static bool collect(GpuBatch *g, const uint64_t *before)
{
    for (uint32_t i = 0; i < g->lanes; i++) {
        if (g->job[i] == IDLE) continue;
        take_output(g, i);
        if (g->k->traced) take_trace(g, i, before[i]);
        if (g->k->lane[i].stop != GPU_RUNNING && !finish(g, i)) return false;
        if (g->job[i] == IDLE) g->k->lane[i].stop = GPU_IDLE;
    }
    return true;
}

static void run_all(GpuBatch *g)
{
    Batch *b = g->b;
    uint64_t *before = calloc(g->lanes, sizeof *before);
    if (!before) die("out of memory");
    for (begin_jobs(g); g->busy; begin_jobs(g)) {
        for (uint32_t i = 0; i < g->lanes; i++) before[i] = g->k->lane[i].load == GPU_NONE ? g->k->lane[i].tokens : 0;
        if (!gpu_blocks_run(g->k, g->k->run.room, &b->err)) {
            if (!b->err) give_up(g, g->k->why);
            break;
        }
        if (!collect(g, before)) break;
    }
    free(before);
}

static void report(const GpuBatch *g)
{
    BatchReport *r = g->b->report;
    SliceReport s = slice_report(g->s);
    r->planes = g->k->program->nslots, r->operations = g->k->report.tables, r->checks = s.checks, r->compilations = g->k->compilations + 1;
    r->bytes = g->k->program->state_words * sizeof(uint32_t);
    r->waves = g->k->report.waves, r->launches = g->k->launches, r->blocks = g->k->blocks, r->lanes = g->k->lanes, r->threads = g->k->threads;
}

void gpu_batch(Batch *b)
{
    GpuBatch g = {.b = b, .d = b->o->device};
    double t = clock_seconds();
    if (open_device(&g)) {
        b->report->opening = clock_seconds() - t;
        run_all(&g);
        report(&g);
    }
    if (g.k) gpu_blocks_close(g.k);
    if (g.s) slice_close(g.s);
    free(g.job);
    free(g.room);
    free(g.image);
    free(g.input);
    free(g.inputs.data);
    free(g.state);
}
