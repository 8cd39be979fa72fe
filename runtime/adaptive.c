/* adaptive.c: the default back end of a run: the sparse one, and when the run turns out long, paths (hot.h). What paths need is prepared beside the
 * run, in a thread of its own. Then the state is carried over: the cells row by row; what convolutions look back to from the residuals of the last tokens,
 * which are watched for that. Whoever asks for the state gets it from the sparse back end, to which it is carried back.
 *
 * A chip that planes do not take (slice.h), or a machine without this machine code, stays with the sparse back end. */
#include "hot.h"
#include <pthread.h>
#include <stdlib.h>

enum { PATIENCE = 1 << 14 }; /* tokens: a quarter of a second, about what the preparation takes */

typedef struct {
    const Model *m;
    void *sparse;
    uint32_t patience;
    bool at_once; /* in this thread, for tests */
    uint64_t tokens;
    bool started, joined, refused;
    pthread_t thread;
    atomic_bool stop, ready;
    Slice *slice;
    char *why;
    uint32_t watched;
    bool strange;  /* a channel that no Past holds was watched */
    int8_t *seen;  /* [taps - 1][channels that are looked back to] */
    Hot *hot;
    HotReport report;
    uint8_t *state;
} Adaptive;

/* ---- preparation ---- */
static void *prepare(void *ctx)
{
    Adaptive *a = ctx;
    a->slice = slice_open_until(a->m, false, false, &a->stop, &a->why);
    atomic_store_explicit(&a->ready, true, memory_order_release);
    return NULL;
}

static void begin_preparation(Adaptive *a)
{
    a->refused = !hot_code_usable();
    if (a->refused) return;
    a->started = true;
    a->joined = a->at_once;
    if (a->at_once) prepare(a);
    else if (pthread_create(&a->thread, NULL, prepare, a)) a->refused = a->joined = true;
}

static void end_preparation(Adaptive *a)
{
    if (a->started && !a->joined) pthread_join(a->thread, NULL);
    a->joined = true;
}

static void refuse(Adaptive *a)
{
    end_preparation(a);
    if (a->slice) slice_close(a->slice);
    free(a->state);
    free(a->seen);
    a->slice = NULL, a->state = NULL, a->seen = NULL;
    a->refused = true;
    sparse_watch(a->sparse, NULL, NULL);
}

/* ---- what convolutions look back to ---- */
static uint32_t looked_back(const Slice *s, uint32_t layer)
{
    uint32_t n = 0;
    for (uint32_t l = 0; l < layer; l++) n += s->past[l].n;
    return n;
}

static uint32_t taps_back(const Adaptive *a) { return a->m->geo.taps - 1; }

static void watch(void *ctx, int layer, const char *what, const float *x, uint32_t n)
{
    Adaptive *a = ctx;
    const Slice *s = a->slice;
    uint32_t next = (uint32_t)(layer + 1); /* whose input x is */
    (void)n;
    if (!strcmp(what, "mixer") || next >= s->m->geo.layers) return;
    int8_t *seen = a->seen + (size_t)a->watched * looked_back(s, s->m->geo.layers) + looked_back(s, next);
    for (uint32_t i = 0; i < s->past[next].n; i++) {
        int64_t v = 0;
        a->strange |= !whole((double)x[s->past[next].data[i].channel], &v) || v != (int8_t)v;
        seen[i] = (int8_t)v;
    }
}

static void begin_watch(Adaptive *a)
{
    a->seen = calloc(taps_back(a) + 1, looked_back(a->slice, a->m->geo.layers) + 1);
    if (!a->seen) die("out of memory");
    sparse_watch(a->sparse, watch, a);
}

static int8_t seen_back(const Adaptive *a, uint32_t layer, uint32_t nth, uint32_t t)
{
    const Slice *s = a->slice;
    return a->seen[(size_t)(taps_back(a) - t) * looked_back(s, s->m->geo.layers) + looked_back(s, layer) + nth];
}

/* Assumed ranges that do not hold what was seen are widened. */
static bool reach_past(Adaptive *a)
{
    Slice *s = a->slice;
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; i < s->nstages; i++) {
        uint32_t l = s->stage[i].layer;
        for (uint32_t k = 0; s->stage[i].kind == STAGE_IN && k < s->past[l].n; k++) {
            Past *p = &s->past[l].data[k], before = *p;
            for (uint32_t t = 1; t <= p->taps; t++) past_reach(s, p, seen_back(a, l, k, t), seen_back(a, l, k, t));
            if (first > i && (p->lo < before.lo || p->hi > before.hi)) first = i;
        }
    }
    const char *why = first == UINT32_MAX ? NULL : slice_widen(s, first, NULL);
    return !why || fail(&a->why, "%s", why);
}

static void put_past(Adaptive *a)
{
    Slice *s = a->slice;
    for (uint32_t l = 0; l < s->m->geo.layers; l++)
        for (uint32_t i = 0; i < s->past[l].n; i++)
            for (uint32_t t = 1; t <= s->past[l].data[i].taps; t++) past_put(s, &s->past[l].data[i], t, 0, seen_back(a, l, i, t));
}

/* The residuals that came into the layers `t` tokens ago, as far as anything looks back to them. */
static void tell_past(Adaptive *a, uint32_t t)
{
    const Slice *s = a->slice;
    uint32_t n = s->m->geo.hidden;
    float *x = xrealloc(NULL, n * sizeof *x);
    for (uint32_t l = 0; l < s->m->geo.layers; l++) {
        if (!s->delta[l]) continue;
        for (uint32_t c = 0; c < n; c++) x[c] = s->pilot[c] != 0 ? ldexpf(s->pilot[c], s->m->pilot_scale) : 0;
        for (uint32_t i = 0; i < s->past[l].n; i++)
            if (t <= s->past[l].data[i].taps) x[s->past[l].data[i].channel] = (float)past_get(s, &s->past[l].data[i], t, 0);
        sparse_tell(a->sparse, l, x);
    }
    free(x);
}

/* ---- from the sparse back end to paths ---- */
/* Planes leave out what is written and never read; but whoever asks for the state wants that too, unless it is the compiler's own (a name with a dot). */
static bool all_kept(Adaptive *a, SliceState *cells)
{
    for (uint32_t i = 0; i < a->m->nstates; i++) {
        const ChipState *s = &a->m->state[i];
        for (uint32_t p = 0; s->ncopies && !strchr(s->name, '.') && p < s->copy[0].n; p++) {
            uint32_t row = s->copy[0].piece[p].row0;
            if (s->has_hard && row == s->hard_row && ++row == s->rows) continue;
            if (state_known(a->m, &sparse_backend, a->sparse, s, row) & ~state_known(a->m, &slice_cells_backend, cells, s, row)) return fail(&a->why, "%s is written and not read", s->name);
        }
    }
    return true;
}

static bool carry_over(Adaptive *a)
{
    const Geometry *g = &a->m->geo;
    float *lanes = xrealloc(NULL, g->dv * sizeof *lanes);
    a->state = calloc(1, slice_bytes(a->slice) + 64);
    if (!a->state) die("out of memory");
    SliceState s = {a->slice, a->state, NULL};
    for (uint32_t l = 0; l < g->layers; l++)
        for (uint32_t j = 0; !a->m->layer[l].full && j < g->nv * g->dk && !s.bad; j++) {
            sparse_backend.get(a->sparse, l, j / g->dk, j % g->dk, lanes);
            for (uint32_t i = 0; i < g->dv; i++)
                if (isnan(lanes[i])) lanes[i] = 0; /* nothing reads it */
            slice_cells_backend.set(&s, l, j / g->dk, j % g->dk, lanes);
        }
    free(lanes);
    if (s.bad) return fail(&a->why, "%s", s.bad);
    if (!all_kept(a, &s) || !reach_past(a)) return false;
    slice_restart_lane(a->slice, 0, a->state);
    put_past(a);
    return true;
}

static void heat(Adaptive *a)
{
    sparse_watch(a->sparse, NULL, NULL);
    if (a->strange) fail(&a->why, "a number of an earlier token is too wide");
    else if (carry_over(a) && !(a->hot = hot_new(a->slice, a->state, a->at_once))) fail(&a->why, "no path");
    if (!a->hot) refuse(a);
}

/* Lanes of a row that cells keep. A row that was written is one with its pilots; one that still holds what it held may stay without. */
static bool merge_row(const Adaptive *a, const DeltaHead *h, const SliceDelta *d, float *mine, const float *theirs)
{
    bool differs = false;
    for (uint32_t i = 0; i < a->m->geo.dv; i++) differs |= !isnan(theirs[i]) && mine[i] != theirs[i];
    for (uint32_t i = 0; differs && i < a->m->geo.dv; i++)
        if (!isnan(theirs[i])) mine[i] = theirs[i];
        else if (d->classes.data[h->class]->fixed[i] != 0) mine[i] = d->classes.data[h->class]->fixed[i];
    return differs;
}

/* Elements have copies, of which the sparse back end may keep more than planes do. */
static void tell_elements(Adaptive *a, SliceState *cells)
{
    for (uint32_t i = 0; i < a->m->nstates; i++)
        for (uint32_t r = 0; a->m->state[i].ncopies && r < a->m->state[i].rows; r++) {
            uint64_t want = 0, have = 0;
            char *err = NULL;
            if (!state_get(a->m, &slice_cells_backend, cells, &a->m->state[i], r, &want, &err)) die("%s", err);
            bool same = state_get(a->m, &sparse_backend, a->sparse, &a->m->state[i], r, &have, &err) && have == want;
            free(err);
            if (!same) state_set(a->m, &sparse_backend, a->sparse, &a->m->state[i], r, want);
        }
}

/* ... and back, for good. */
static void cool(Adaptive *a)
{
    const Geometry *g = &a->m->geo;
    float *mine = xrealloc(NULL, 2 * (size_t)g->dv * sizeof *mine), *theirs = mine + g->dv;
    a->report = hot_report(a->hot);
    hot_end(a->hot);
    a->hot = NULL;
    for (uint32_t t = taps_back(a); t > 0; t--) tell_past(a, t);
    SliceState s = {a->slice, a->state, NULL};
    for (uint32_t l = 0; l < g->layers; l++)
        for (uint32_t j = 0; !a->m->layer[l].full && j < g->nv * g->dk; j++) {
            const DeltaHead *h = &a->slice->delta[l]->head[j / g->dk];
            if (!h->kept) continue;
            sparse_backend.get(a->sparse, l, j / g->dk, j % g->dk, mine);
            slice_cells_backend.get(&s, l, j / g->dk, j % g->dk, theirs);
            if (merge_row(a, h, a->slice->delta[l], mine, theirs)) sparse_backend.set(a->sparse, l, j / g->dk, j % g->dk, mine);
        }
    free(mine);
    tell_elements(a, &s);
    refuse(a);
}

/* What is to be done after some tokens of the sparse back end. */
static void look_ahead(Adaptive *a)
{
    if (a->refused) return;
    if (!a->started && a->tokens >= a->patience && sparse_plain(a->sparse)) begin_preparation(a);
    if (!a->started || !atomic_load_explicit(&a->ready, memory_order_acquire)) return;
    end_preparation(a);
    if (!a->slice) refuse(a);
    else if (!a->seen) begin_watch(a);
    else a->watched++;
    if (a->seen && a->watched == taps_back(a)) heat(a);
}

/* ---- the back end ---- */
static void *adaptive_open(const Model *m, const BackendOptions *o, char **err)
{
    Adaptive *a = xrealloc(NULL, sizeof *a);
    *a = (Adaptive){.m = m, .patience = o->patience ? o->patience : PATIENCE, .at_once = o->patience != 0};
    a->refused = o->plain || o->probe;
    if ((a->sparse = sparse_backend.open(m, o, err)) != NULL) return a;
    free(a);
    return NULL;
}

static uint32_t portion(const Adaptive *a, uint32_t most)
{
    if (a->seen || most == 0) return most < 1 ? most : 1;
    if (a->started || a->refused || a->tokens >= a->patience) return most;
    uint64_t left = a->patience - a->tokens;
    return most < left ? most : (uint32_t)left;
}

static uint32_t adaptive_run(void *self, uint32_t token, uint32_t *out, uint32_t max)
{
    Adaptive *a = self;
    for (uint32_t n = 0; n < max;) {
        if (a->hot) {
            if (!hot_token(a->hot, token, &out[n])) {
                cool(a);
                continue;
            }
            n++;
        } else {
            uint32_t made = sparse_backend.run(a->sparse, token, out + n, portion(a, max - n));
            n += made;
            a->tokens += made;
            look_ahead(a);
        }
        token = out[n - 1];
        const ChipKind *k = model_kind(a->m, token);
        if (!k || k->role != CHIP_TRACE) return n;
    }
    return max;
}

static void *settled(void *self)
{
    Adaptive *a = self;
    if (a->hot) cool(a);
    return a->sparse;
}

static void adaptive_get(void *self, uint32_t layer, uint32_t head, uint32_t row, float *lanes) { sparse_backend.get(settled(self), layer, head, row, lanes); }
static void adaptive_set(void *self, uint32_t layer, uint32_t head, uint32_t row, const float *lanes) { sparse_backend.set(settled(self), layer, head, row, lanes); }
static void adaptive_recall(void *self, uint32_t layer, uint32_t back, float *raw) { sparse_backend.recall(settled(self), layer, back, raw); }
static void adaptive_remember(void *self, uint32_t layer, uint32_t back, const float *raw) { sparse_backend.remember(settled(self), layer, back, raw); }

static void adaptive_stats(void *self, FILE *out)
{
    const Adaptive *a = self;
    HotReport r = a->hot ? hot_report(a->hot) : a->report;
    fprintf(out, "path_tokens: %llu\npaths: %u\npath_code_bytes: %zu\n", (unsigned long long)(r.tokens - r.general), r.paths, r.code);
    if (a->why) fprintf(out, "no_paths: %s\n", a->why);
}

static void adaptive_close(void *self)
{
    Adaptive *a = self;
    atomic_store(&a->stop, true);
    if (a->hot) hot_end(a->hot);
    a->hot = NULL;
    refuse(a);
    sparse_backend.close(a->sparse);
    free(a->why);
    free(a);
}

const Backend adaptive_backend = {"adaptive", adaptive_open, adaptive_run, adaptive_get, adaptive_set, adaptive_close, adaptive_recall, adaptive_remember, adaptive_stats};
