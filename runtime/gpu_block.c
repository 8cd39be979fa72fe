/* gpu_block.c: a program on a device and the blocks that run it.
 *
 * WIDENING. When a check fails in a block it stops before that stage, in the middle of a pass, with its planes saved. The stage and all after it are then
 * compiled again with wider ranges, which leaves the planes before it as they are, and the block ends its pass. Blocks may have stopped at different
 * stages: the latest stage goes first, since compiling an earlier one would change what a later one finds; once all are between two passes only
 * planes of tokens count, which never move. */
#include "gpu_block.h"
#include "slice_priv.h"
#include <stdlib.h>

enum { MAX_WORDS = 32 };

/* ---- arrays there ---- */
static bool room_for(GpuBlocks *b, void *where, size_t bytes, char **err)
{
    void *p = b->device->alloc(b->device, bytes, err);
    if (p) memcpy(where, &p, sizeof p);
    return p != NULL;
}

static bool state_room(GpuBlocks *b, char **err)
{
    GpuRun *r = &b->run;
    size_t lanes = (size_t)b->blocks * b->lanes;
    return room_for(b, &r->state, lanes * b->program->state_words * 4, err) && room_for(b, &r->lane, lanes * sizeof(GpuLane), err) && room_for(b, &r->block, b->blocks * sizeof(GpuBlock), err) &&
           room_for(b, &r->output, lanes * r->room, err) && (!b->traced || room_for(b, &r->trace, lanes * r->room * 8, err)) &&
           room_for(b, &r->mask, (size_t)b->blocks * 2 * b->words * 4, err);
}

static void drop_state(GpuBlocks *b)
{
    GpuDevice *d = b->device;
    GpuRun *r = &b->run;
    d->free(d, r->state), d->free(d, r->lane), d->free(d, r->block), d->free(d, r->output), d->free(d, r->trace), d->free(d, r->mask);
    r->state = r->mask = NULL, r->lane = NULL, r->block = NULL, r->output = NULL, r->trace = NULL;
}

/* ---- the program ---- */
/* The copy's arrays as the device finds them: behind the piece there as behind the one here. */
static void point_there(Gpu *there, const Gpu *here, const uint8_t *piece)
{
    *there = *here;
#define MOVE(field) there->field = (const void *)(piece + ((const uint8_t *)here->field - (const uint8_t *)here))
    MOVE(op), MOVE(stage), MOVE(cells), MOVE(select), MOVE(item), MOVE(count), MOVE(pasts), MOVE(slot), MOVE(table), MOVE(outs), MOVE(check), MOVE(token_in), MOVE(token_out);
    MOVE(kind), MOVE(home), MOVE(first);
#undef MOVE
}

static bool send_program(GpuBlocks *b, char **err)
{
    GpuDevice *d = b->device;
    d->free(d, b->piece);
    b->piece = NULL;
    d->free(d, b->run.failed);
    b->run.failed = NULL;
    if (!room_for(b, &b->piece, b->program->bytes, err) || !room_for(b, &b->run.failed, (size_t)b->blocks * b->program->ncheck + 1, err)) return false;
    point_there(&b->run.g, b->program, b->piece);
    return d->put(d, b->piece, b->program, b->program->bytes, err);
}

/* Planes that are kept have the same numbers in the new program, `up` higher: new ones for good come first, and others last. */
static bool move_planes(GpuBlocks *b, uint32_t before, uint32_t up, char **err)
{
    GpuDevice *d = b->device;
    uint32_t now = b->program->kept, both = before < now - up ? before : now - up;
    size_t plane = b->words * sizeof(uint32_t);
    uint8_t *old = calloc((size_t)b->blocks * before + 1, plane), *new = calloc((size_t)b->blocks * now + 1, plane);
    if (!old || !new) die("out of memory");
    bool ok = !before || d->get(d, old, b->run.planes, b->blocks * before * plane, err);
    for (uint32_t i = 0; i < b->blocks; i++) memcpy(new + (i * now + up) * plane, old + i * before * plane, both * plane);
    d->free(d, b->run.planes);
    b->run.planes = NULL;
    ok = ok && room_for(b, &b->run.planes, b->blocks * now * plane, err) && d->put(d, b->run.planes, new, b->blocks * now * plane, err);
    free(old);
    free(new);
    return ok;
}

static bool too_large(GpuBlocks *b)
{
    if (b->program && gpu_shared_bytes(b->program, b->run.lanes) <= b->device->shared) return false;
    snprintf(b->why, sizeof b->why, "its planes do not fit in a thread block's memory");
    return true;
}

static void plan(GpuBlocks *b, uint32_t inputs)
{
    free(b->program);
    b->homes = b->slice->kept;
    b->program = gpu_plan(b->slice, inputs, b->words, b->threads, &b->report);
    if (b->program && b->prepare) b->prepare(b->program);
}

static bool plan_again(GpuBlocks *b, char **err)
{
    uint32_t before = b->program->kept, inputs = b->program->inputs, up = b->slice->kept - b->homes;
    plan(b, inputs);
    b->compilations++;
    return !too_large(b) && send_program(b, err) && ((b->program->kept == before && !up) || move_planes(b, before, up, err));
}

/* ---- opening ---- */
/* Few machines are spread over the processors, many fill planes, as wide as memory allows. */
static bool choose_words(GpuBlocks *b, const GpuBlocksOptions *o)
{
    uint32_t most = o->inputs == GPU_MANY ? 1 : MAX_WORDS;
    b->threads = b->device->threads;
    b->run.lanes = o->inputs == GPU_MANY ? 1 : 32;
    for (b->words = 1; b->words < most && o->machines > b->device->processors * 32 * b->words; b->words *= 2) {}
    for (;; b->words /= 2) {
        plan(b, o->inputs);
        if (!too_large(b)) break;
        if (b->words == 1) return false;
    }
    b->why[0] = '\0';
    b->lanes = b->words * b->run.lanes;
    b->blocks = (o->machines + b->lanes - 1) / b->lanes;
    return true;
}

static bool send_images(GpuBlocks *b, const uint8_t *const *image, char **err)
{
    size_t words = b->program->state_words * (size_t)4;
    uint8_t *all = calloc(b->images + 1, words);
    if (!all) die("out of memory");
    for (uint32_t i = 0; i < b->images; i++) memcpy(all + i * words, image[i], slice_bytes(b->slice));
    bool ok = room_for(b, &b->run.image, b->images * words + 1, err) && b->device->put(b->device, (void *)(uintptr_t)b->run.image, all, b->images * words, err);
    free(all);
    return ok;
}

static bool send_inputs(GpuBlocks *b, const GpuBlocksOptions *o, char **err)
{
    return room_for(b, &b->run.input, o->ninput, err) && b->device->put(b->device, (void *)(uintptr_t)b->run.input, o->input, o->ninput, err);
}

static bool open_here(GpuBlocks *b)
{
    size_t lanes = (size_t)b->blocks * b->lanes;
    b->lane = calloc(lanes, sizeof *b->lane);
    b->block = calloc(b->blocks, sizeof *b->block);
    b->output = calloc(lanes, b->run.room);
    if (b->traced) b->trace = calloc(lanes * b->run.room, sizeof *b->trace);
    if (!b->lane || !b->block || !b->output) die("out of memory");
    for (size_t i = 0; i < lanes; i++) b->lane[i].load = GPU_NONE;
    return true;
}

GpuBlocks *gpu_blocks_open(GpuDevice *d, Slice *s, const GpuBlocksOptions *o, const uint8_t *const *image, char **why, char **err)
{
    GpuBlocks *b = calloc(1, sizeof *b);
    if (!b) die("out of memory");
    b->device = d, b->slice = s, b->images = o->images;
    b->run.room = o->room, b->run.max_steps = o->max_steps;
    b->traced = o->trace, b->prepare = o->prepare;
    if (!choose_words(b, o)) {
        fail(why, "%s", b->why);
        gpu_blocks_close(b);
        return NULL;
    }
    for (; !state_room(b, err); b->blocks = (b->blocks + 1) / 2) {
        drop_state(b);
        if (b->blocks == 1) break;
        free(*err);
        *err = NULL;
    }
    if (b->run.state && send_inputs(b, o, err) && send_images(b, image, err) && send_program(b, err) && move_planes(b, 0, 0, err) && open_here(b)) return b;
    gpu_blocks_close(b);
    return NULL;
}

void gpu_blocks_close(GpuBlocks *b)
{
    GpuDevice *d = b->device;
    drop_state(b);
    d->free(d, b->piece), d->free(d, b->run.failed), d->free(d, b->run.planes), d->free(d, (void *)(uintptr_t)b->run.image), d->free(d, (void *)(uintptr_t)b->run.input);
    free(b->program);
    free(b->lane);
    free(b->block);
    free(b->output);
    free(b->trace);
    free(b);
}

/* ---- running ---- */
static bool launch(GpuBlocks *b, char **err)
{
    GpuDevice *d = b->device;
    b->launches++;
    return d->put(d, b->run.block, b->block, b->blocks * sizeof *b->block, err) && d->run(d, &b->run, b->blocks, b->threads, err) &&
           d->get(d, b->block, b->run.block, b->blocks * sizeof *b->block, err);
}

static bool in_trouble(GpuBlocks *b)
{
    for (uint32_t i = 0; i < b->blocks; i++) {
        if (!b->block[i].passes || !b->block[i].failed || !b->block[i].trouble) continue;
        snprintf(b->why, sizeof b->why, "%s", b->block[i].trouble & GPU_FULL ? "a count ran over" : "two rows were read at once");
        return true;
    }
    return false;
}

static void note_done(GpuBlocks *b)
{
    for (uint32_t i = 0; i < b->blocks; i++)
        if (b->block[i].passes) b->block[i].base += b->block[i].done;
}

/* Widens what failed at the latest stage; its blocks are to end their pass. */
static bool widen(GpuBlocks *b, uint32_t stage, char **err)
{
    GpuDevice *d = b->device;
    uint32_t checks = b->program->ncheck, first = b->program->stage[stage].check, n = b->program->stage[stage].nchecks;
    uint8_t *all = calloc((size_t)b->blocks * checks + 1, 1), *failed = calloc(n + 1, 1);
    bool ok = d->get(d, all, b->run.failed, (size_t)b->blocks * checks, err);
    for (uint32_t i = 0; ok && i < b->blocks; i++) {
        b->block[i].passes = b->block[i].failed && b->block[i].stage == stage;
        for (uint32_t k = 0; b->block[i].passes && k < n; k++) failed[k] |= all[(size_t)i * checks + first + k];
    }
    const char *why = ok ? slice_widen(b->slice, stage, failed) : NULL;
    if (why) snprintf(b->why, sizeof b->why, "%s", why);
    free(all);
    free(failed);
    return ok && !why && plan_again(b, err);
}

static bool end_passes(GpuBlocks *b, char **err)
{
    for (;;) {
        uint32_t stage = GPU_NONE;
        for (uint32_t i = 0; i < b->blocks; i++)
            if (b->block[i].failed && (stage == GPU_NONE || b->block[i].stage > stage)) stage = b->block[i].stage;
        if (stage == GPU_NONE) return true;
        if (!widen(b, stage, err) || !launch(b, err)) return false;
        if (in_trouble(b)) return false;
        note_done(b);
    }
}

bool gpu_blocks_run(GpuBlocks *b, uint32_t passes, char **err)
{
    GpuDevice *d = b->device;
    size_t lanes = (size_t)b->blocks * b->lanes;
    for (uint32_t i = 0; i < b->blocks; i++) {
        bool busy = false;
        for (uint32_t k = 0; k < b->lanes; k++) {
            GpuLane *l = &b->lane[(size_t)i * b->lanes + k];
            l->noutput = 0;
            busy |= l->stop == GPU_RUNNING;
        }
        b->block[i] = (GpuBlock){.passes = busy ? passes : 0};
    }
    if (!d->put(d, b->run.lane, b->lane, lanes * sizeof *b->lane, err) || !launch(b, err) || in_trouble(b)) return false;
    note_done(b);
    return end_passes(b, err) && d->get(d, b->lane, b->run.lane, lanes * sizeof *b->lane, err) && d->get(d, b->output, b->run.output, lanes * b->run.room, err) &&
           (!b->traced || d->get(d, b->trace, b->run.trace, lanes * b->run.room * sizeof *b->trace, err));
}

/* ---- states ---- */
/* The state that is planes, of a lane. */
static bool move_home(GpuBlocks *b, uint32_t lane, uint8_t *state, const uint8_t *new, char **err)
{
    GpuDevice *d = b->device;
    const Gpu *g = b->program;
    size_t bytes = (size_t)g->kept * b->words * sizeof(uint32_t);
    uint32_t *all = calloc(1, bytes), *there = b->run.planes + (size_t)(lane / b->lanes) * g->kept * b->words, at = lane % b->lanes / b->run.lanes, bit = lane % b->run.lanes;
    if (!all) die("out of memory");
    bool ok = d->get(d, all, there, bytes, err);
    for (uint32_t i = 0; ok && i < g->nhome; i++) {
        uint32_t *w = &all[g->home[2 * i] * b->words + at], home = g->home[2 * i + 1];
        if (state) state[home / 8] = (uint8_t)((state[home / 8] & ~(1u << home % 8)) | (*w >> bit & 1) << home % 8);
        if (new) *w = (*w & ~(1u << bit)) | (uint32_t)(new[home / 8] >> home % 8 & 1) << bit;
    }
    if (new) ok = ok && d->put(d, there, all, bytes, err);
    free(all);
    return ok;
}

static bool move_state(GpuBlocks *b, uint32_t lane, uint8_t *state, const uint8_t *new, char **err)
{
    GpuDevice *d = b->device;
    uint32_t n = b->run.lanes, words = b->program->state_words;
    size_t bytes = (size_t)words * n * sizeof(uint32_t);
    uint32_t *all = calloc(1, bytes), *there = b->run.state + (size_t)(lane / n) * words * n, v;
    if (!all) die("out of memory");
    bool ok = d->get(d, all, there, bytes, err);
    for (uint32_t i = 0; ok && i < words; i++) {
        size_t left = slice_bytes(b->slice) > 4 * (size_t)i ? slice_bytes(b->slice) - 4 * (size_t)i : 0, some = left < 4 ? left : 4;
        v = all[(size_t)i * n + lane % n];
        if (state) memcpy(state + 4 * (size_t)i, &v, some);
        if (new) memcpy(&v, new + 4 * (size_t)i, some), all[(size_t)i * n + lane % n] = v;
    }
    if (new) ok = ok && d->put(d, there, all, bytes, err);
    free(all);
    return ok && move_home(b, lane, state, new, err);
}

bool gpu_blocks_get(GpuBlocks *b, uint32_t lane, uint8_t *state, char **err) { return move_state(b, lane, state, NULL, err); }
bool gpu_blocks_put(GpuBlocks *b, uint32_t lane, const uint8_t *state, char **err) { return move_state(b, lane, NULL, state, err); }
