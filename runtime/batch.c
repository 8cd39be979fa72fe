/* batch.c: many machines on one chip: lanes of planes (slice.h), a block of lanes a thread. A lane whose machine has ended takes the next job. What the
 * host does for a machine (chip.md, "Running") is done lane by lane for the few tokens that ask for it. */
#include "batch_priv.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COUNTER = 48, NO_JOB = 0xffffffff };

typedef struct {
    uint32_t job;
    bool asked, drop; /* the step has taken its input; what comes out next is dropped, and an input fed */
    uint64_t begun, look; /* passes: when it began, and before which it cannot have made all its steps */
    uint64_t dropped;
    size_t room, fed; /* of the output; of the input */
} Lane;

typedef struct {
    Batch *b;
    Slice *s;
    uint8_t *state;
    size_t stride, mapped;
    uint32_t lanes, busy;
    uint64_t pass, look;
    Lane lane[LANES];
    Plane counter[COUNTER]; /* steps of each lane, bit k */
    uint64_t asked[PLANE_WORDS], drop[PLANE_WORDS];
} Worker;

/* ---- jobs ---- */
const uint8_t *batch_first_state(Batch *b, Slice *s, const Firmware *f, const char **why)
{
    for (uint32_t i = 0; i < b->firmware.n; i++)
        if (b->firmware.data[i] == f) return b->image.data[i];
    uint8_t *image = calloc(1, slice_bytes(s) + 8);
    if (!image) die("out of memory");
    SliceState state = {s, image, NULL};
    if (!state_install(b->m, &slice_cells_backend, &state, f ? &f->image : NULL, &b->err) || state.bad) {
        *why = state.bad;
        free(image);
        return NULL;
    }
    vec_push(&b->firmware, f);
    vec_push(&b->image, image);
    return image;
}

static uint64_t steps_of(const Worker *w, uint32_t lane)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < COUNTER; k++) n |= (w->counter[k].w[lane >> 6] >> (lane & 63) & 1) << k;
    return n;
}

static void set_bit(uint64_t *mask, uint32_t lane, bool on)
{
    uint64_t bit = 1ull << (lane & 63);
    mask[lane >> 6] = on ? mask[lane >> 6] | bit : mask[lane >> 6] & ~bit;
}

static void begin_lane(Worker *w, uint32_t lane, uint32_t job, const uint8_t *image)
{
    Lane *l = &w->lane[lane];
    *l = (Lane){.job = job, .drop = w->b->input != NULL, .begun = w->pass, .look = w->b->o->max_steps ? w->pass + w->b->o->max_steps : UINT64_MAX};
    memcpy(w->state + lane * w->stride, image, slice_bytes(w->s));
    for (uint32_t k = 0; k < COUNTER; k++) w->counter[k].w[lane >> 6] &= ~(1ull << (lane & 63));
    slice_restart_lane(w->s, lane, image);
    slice_put(w->s, lane, w->b->m->start);
    set_bit(slice_active(w->s), lane, true);
    set_bit(w->drop, lane, l->drop);
    set_bit(w->asked, lane, false);
    if (l->look < w->look) w->look = l->look;
    w->busy++;
}

/* Gives the lane a job, when there is one left. */
static bool refill(Worker *w, uint32_t lane)
{
    Batch *b = w->b;
    bool begun = false;
    pthread_mutex_lock(&b->lock);
    while (!begun && !b->err && b->next < b->n) {
        uint32_t job = b->next++;
        const char *why = NULL;
        const uint8_t *image = batch_first_state(b, w->s, b->job[job].firmware, &why);
        if (image) {
            begin_lane(w, lane, job, image);
            begun = true;
        } else if (!b->err) vec_push(&b->rest, job);
    }
    pthread_mutex_unlock(&b->lock);
    return begun;
}

/* ---- the host's part ---- */
static void finish(Worker *w, uint32_t lane, Stop why, const ChipKind *k, uint64_t payload)
{
    Lane *l = &w->lane[lane];
    BatchJob *j = &w->b->job[l->job];
    j->why = why;
    j->kind = k;
    j->payload = payload;
    j->steps = steps_of(w, lane);
    j->tokens = w->pass - l->begun - l->dropped;
    if (w->b->o->ended) slice_save_lane(w->s, lane, w->state + lane * w->stride);
    if (w->b->o->ended) w->b->o->ended(w->b->o->ctx, l->job, w->state + lane * w->stride, slice_bytes(w->s));
    l->job = NO_JOB;
    set_bit(slice_active(w->s), lane, false);
    set_bit(w->asked, lane, false);
    set_bit(w->drop, lane, false);
    w->busy--;
    refill(w, lane);
}

static void put_byte(Worker *w, Lane *l, uint8_t byte)
{
    BatchJob *j = &w->b->job[l->job];
    if (j->noutput == l->room) {
        l->room = l->room ? 2 * l->room : 256;
        j->output = xrealloc(j->output, l->room);
    }
    j->output[j->noutput++] = byte;
}

/* A token that is more than a trace token. */
static void serve(Worker *w, uint32_t lane)
{
    Lane *l = &w->lane[lane];
    uint32_t token = slice_got(w->s, lane);
    const ChipKind *k = token == UINT32_MAX ? NULL : model_kind(w->b->m, token);
    if (!k) finish(w, lane, STOP_BROKEN, NULL, token);
    else if (k->role == CHIP_OUTPUT) put_byte(w, l, (uint8_t)(token - k->base));
    else if (k->role == CHIP_TAKE) l->asked = w->b->input != NULL, set_bit(w->asked, lane, l->asked);
    else finish(w, lane, k->role == CHIP_EXIT ? STOP_EXIT : k->role == CHIP_FAULT ? STOP_FAULT : STOP_BROKEN, k, token - k->base);
}

static void serve_all(Worker *w, const uint64_t *dropped)
{
    const Plane *special = slice_special(w->s);
    uint64_t *active = slice_active(w->s), todo[PLANE_WORDS];
    for (uint32_t i = 0; i < PLANE_WORDS; i++) todo[i] = special->w[i] & active[i] & ~dropped[i];
    for (uint32_t i = 0; i < PLANE_WORDS; i++)
        for (; todo[i]; todo[i] &= todo[i] - 1) serve(w, i * 64 + (uint32_t)__builtin_ctzll(todo[i]));
}

/* Lanes whose step has taken its input: after the step's last token the input is fed, once what that token's own pass says has been dropped. */
static void ask_all(Worker *w, const uint64_t *fresh)
{
    for (uint32_t i = 0; i < PLANE_WORDS; i++)
        for (uint64_t bits = w->asked[i] & ~fresh[i]; bits; bits &= bits - 1) {
            uint32_t lane = i * 64 + (uint32_t)__builtin_ctzll(bits), token = slice_got(w->s, lane);
            const ChipKind *k = token == UINT32_MAX ? NULL : model_kind(w->b->m, token);
            if (!k || !k->last) continue;
            w->lane[lane].asked = false;
            set_bit(w->asked, lane, false);
            set_bit(w->drop, lane, true);
        }
}

static void feed_inputs(Worker *w, const uint64_t *dropped)
{
    for (uint32_t i = 0; i < PLANE_WORDS; i++)
        for (uint64_t bits = dropped[i]; bits; bits &= bits - 1) {
            uint32_t lane = i * 64 + (uint32_t)__builtin_ctzll(bits);
            Lane *l = &w->lane[lane];
            const BatchJob *j = &w->b->job[l->job];
            l->dropped++;
            slice_put(w->s, lane, input_token(w->b->input, l->fed < j->ninput ? j->input[l->fed++] : EOF));
        }
}

static void count_steps(Worker *w, const uint64_t *dropped)
{
    const Plane *retired = slice_retired(w->s);
    const uint64_t *active = slice_active(w->s);
    uint64_t carry[PLANE_WORDS], any = 0;
    for (uint32_t i = 0; i < PLANE_WORDS; i++) any |= carry[i] = retired->w[i] & active[i] & ~dropped[i];
    for (uint32_t k = 0; any && k < COUNTER; k++) {
        any = 0;
        for (uint32_t i = 0; i < PLANE_WORDS; i++) {
            uint64_t x = w->counter[k].w[i];
            w->counter[k].w[i] = x ^ carry[i];
            any |= carry[i] &= x;
        }
    }
}

/* Lanes that may have made all the steps that they were allowed. */
static void look_at_steps(Worker *w)
{
    uint64_t most = w->b->o->max_steps;
    if (w->pass < w->look) return;
    w->look = UINT64_MAX;
    for (uint32_t lane = 0; lane < w->lanes; lane++) {
        Lane *l = &w->lane[lane];
        if (l->job == NO_JOB) continue;
        uint64_t steps = steps_of(w, lane);
        if (steps >= most) finish(w, lane, STOP_STEPS, NULL, 0);
        else l->look = w->pass + (most - steps);
        if (l->job != NO_JOB && l->look < w->look) w->look = l->look;
    }
}

static const char *run_lanes(Worker *w)
{
    while (w->busy) {
        uint64_t dropped[PLANE_WORDS];
        memcpy(dropped, w->drop, sizeof dropped);
        memset(w->drop, 0, sizeof w->drop);
        const char *why = slice_pass(w->s, w->state, w->stride);
        if (why) return why;
        w->pass++;
        count_steps(w, dropped);
        slice_feed_back(w->s);
        feed_inputs(w, dropped);
        /* from here on a lane may begin another job, whose first token is then in place */
        serve_all(w, dropped);
        ask_all(w, dropped);
        look_at_steps(w);
    }
    return NULL;
}

/* ---- threads ---- */
static bool open_worker(Worker *w, char **why)
{
    enum { HUGE_PAGE = 1 << 21 };
    if (!(w->s = slice_open(w->b->m, false, false, why))) return false;
    w->stride = (slice_bytes(w->s) + 63) / 64 * 64;
    w->stride += w->stride % 128 ? 0 : 64; /* an odd number of cache lines, so that lanes do not meet in a few sets */
    w->mapped = (w->stride * w->lanes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    w->state = mmap(NULL, w->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (w->state == MAP_FAILED) die("out of memory (%zu bytes)", w->mapped);
#ifdef MADV_HUGEPAGE
    madvise(w->state, w->mapped, MADV_HUGEPAGE); /* fewer misses of the address cache; no matter when refused */
#endif
    for (uint32_t i = 0; i < LANES; i++) w->lane[i].job = NO_JOB;
    w->look = UINT64_MAX;
    return true;
}

static void give_up(Worker *w, const char *why)
{
    Batch *b = w->b;
    pthread_mutex_lock(&b->lock);
    for (uint32_t i = 0; i < w->lanes; i++)
        if (w->lane[i].job != NO_JOB) vec_push(&b->rest, w->lane[i].job);
    for (; b->next < b->n; b->next++) vec_push(&b->rest, b->next);
    snprintf(b->report->why, sizeof b->report->why, "%s", why);
    pthread_mutex_unlock(&b->lock);
}

static void report(Worker *w)
{
    BatchReport *r = w->b->report;
    SliceReport s = slice_report(w->s);
    pthread_mutex_lock(&w->b->lock);
    r->planes = s.planes, r->operations = s.operations, r->checks = s.checks;
    r->compilations += s.compilations;
    r->bytes = w->stride;
    pthread_mutex_unlock(&w->b->lock);
}

static void *work(void *ctx)
{
    Worker *w = ctx;
    char *why = NULL;
    double t = clock_seconds();
    if (!open_worker(w, &why)) {
        give_up(w, why);
        free(why);
        return NULL;
    }
    w->b->report->opening = clock_seconds() - t;
    for (uint32_t i = 0; i < w->lanes && refill(w, i); i++) {}
    const char *reason = run_lanes(w);
    if (reason) give_up(w, reason);
    report(w);
    munmap(w->state, w->mapped);
    slice_close(w->s);
    return NULL;
}

static void run_workers(Batch *b)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t n = b->o->threads ? b->o->threads : processors > 0 ? (uint32_t)processors : 1, most = (b->n + 63) / 64;
    if (n > most) n = most;
    Worker *w = calloc(n, sizeof *w);
    pthread_t *thread = calloc(n, sizeof *thread);
    if (!w || !thread) die("out of memory");
    b->report->threads = n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t lanes = (b->n + n - 1) / n;
        w[i].b = b;
        w[i].lanes = lanes < LANES ? lanes : LANES;
        if (i && pthread_create(&thread[i], NULL, work, &w[i])) die("no thread");
    }
    work(&w[0]);
    for (uint32_t i = 1; i < n; i++) pthread_join(thread[i], NULL);
    free(thread);
    free(w);
}

/* ---- one after the other ---- */
static bool run_single(const Model *m, BatchJob *j, const BatchOptions *o, char **err)
{
    BackendOptions backend = {0};
    Machine *mc = machine_open(m, backends[0], &backend, j->firmware ? &j->firmware->image : NULL, err);
    if (!mc) return false;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    FILE *in = j->ninput ? fmemopen((void *)(uintptr_t)j->input, j->ninput, "rb") : NULL;
    if (!out || (j->ninput && !in)) die("out of memory");
    LoopOptions loop = {.max_steps = o->max_steps, .out = out, .in = in};
    StopInfo s = machine_run(mc, &loop);
    fclose(out);
    if (in) fclose(in);
    free(j->output);
    j->output = (uint8_t *)text;
    j->noutput = n;
    j->why = s.why, j->payload = s.payload, j->kind = s.kind;
    j->steps = machine_steps(mc);
    j->tokens = machine_tokens(mc);
    machine_close(mc);
    return true;
}

bool batch_run(const Model *m, BatchJob *job, uint32_t n, const BatchOptions *o, BatchReport *report, char **err)
{
    Batch b = {.m = m, .job = job, .n = n, .o = o, .report = report, .lock = PTHREAD_MUTEX_INITIALIZER};
    double t = clock_seconds();
    *report = (BatchReport){0};
    for (uint32_t i = 0; i < m->nkinds; i++)
        if (m->kind[i].role == CHIP_INPUT) b.input = &m->kind[i];
    if (o->single) {
        snprintf(report->why, sizeof report->why, "as asked");
        for (uint32_t i = 0; i < n; i++) vec_push(&b.rest, i);
    } else if (n && o->device) gpu_batch(&b);
    else if (n) run_workers(&b);
    bool ok = !b.err;
    for (uint32_t i = 0; ok && i < b.rest.n; i++) ok = run_single(m, &job[b.rest.data[i]], o, &b.err);
    if (!ok) *err = b.err;
    for (uint32_t i = 0; i < b.image.n; i++) free(b.image.data[i]);
    free(b.image.data);
    free(b.firmware.data);
    free(b.rest.data);
    report->seconds = clock_seconds() - t;
    return ok;
}
