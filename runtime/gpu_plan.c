/* gpu_plan.c: from a slice's stages to a program for a thread block: two-input operations on slots become values that are never overwritten, values become tables
 * (gpu_map.c), tables go into waves of as many as the block does at once, an input always in an earlier wave, and values get slots that nobody else
 * touches from the wave that makes them to the last that reads them. gpu_image.c does the same for what is not planes. */
#include "gpu_map.h"
#include "gpu_plan.h"
#include <stdlib.h>

enum { UNSET = 0xffffffff };

/* ---- operations as values ---- */
typedef struct {
    const Slice *slice;
    Values v;
    uint32_t *cur; /* [65536] what a slot holds now: value << 1 | negated */
    GpuLuts copy;     /* goals that are made of another slot's value as it is */
    bool *wanted;
    uint32_t *place; /* [values] the slot of a goal, or UNSET */
} Stretch;

static uint32_t value_in(Stretch *t, uint32_t slot)
{
    if (t->cur[slot] == UNSET) t->cur[slot] = vec_push(&t->v, ((Value){.in = {slot}})) << 1;
    return t->cur[slot];
}

/* The table with the input negated; with both inputs the same. */
static uint8_t flip_first(uint8_t t) { return (uint8_t)((t & 5) << 1 | (t & 10) >> 1); }
static uint8_t flip_second(uint8_t t) { return (uint8_t)((t & 3) << 2 | (t & 12) >> 2); }

static uint32_t of_one(uint32_t ref, bool zero, bool one) { return zero == one ? (zero ? 1 : 0) : one ? ref : ref ^ 1; }

static uint32_t make_value(Stretch *t, uint32_t a, uint32_t b, uint8_t truth)
{
    if (a & 1) truth = flip_first(truth);
    if (b & 1) truth = flip_second(truth);
    if (a >> 1 == b >> 1) return of_one(a & ~1u, truth & 1, truth >> 3 & 1);
    if (a >> 1 == 0) return of_one(b & ~1u, truth & 1, truth >> 2 & 1);
    if (b >> 1 == 0) return of_one(a & ~1u, truth & 1, truth >> 1 & 1);
    return vec_push(&t->v, ((Value){2, {a >> 1, b >> 1}, truth})) << 1;
}

static void take_step(Stretch *t, BitOp op, const BitStep *s)
{
    static const uint8_t truth[BIT_OPS] = {[BIT_AND] = 8, [BIT_ANDN] = 4, [BIT_OR] = 14, [BIT_XOR] = 6};
    bool zero = op == BIT_XOR && s->a == s->b; /* whatever is there (bitcode.c: constants) */
    uint32_t a = zero ? 0 : value_in(t, s->a);
    t->cur[s->dst] = zero ? 0 : op == BIT_COPY ? a : op == BIT_NOT ? a ^ 1 : make_value(t, a, value_in(t, s->b), truth[op]);
}

static void take_code(Stretch *t, const BitCode *c, bool *written)
{
    for (uint32_t r = 0; r < c->run.n; r++)
        for (uint32_t i = c->run.data[r].first, end = i + c->run.data[r].n; i < end; i++) {
            take_step(t, (BitOp)c->run.data[r].op, &c->step.data[i]);
            written[c->step.data[i].dst] = true;
        }
}

static void add_copy(Stretch *t, uint32_t slot, uint32_t ref)
{
    if (ref >> 1 == 0) vec_push(&t->copy, ((GpuLut){.value = slot, .truth = ref ? ~0ull : 0}));
    else vec_push(&t->copy, ((GpuLut){.value = slot, .n = 1, .in = {ref >> 1}, .truth = ref & 1 ? 0x5555555555555555 : 0xaaaaaaaaaaaaaaaa}));
}

/* What must be in the slots that stages share. A negated operation is an operation of its own. */
static void find_goals(Stretch *t, const bool *written)
{
    VEC(uint32_t) goal = {0};
    for (uint32_t slot = 0; slot < SLICE_TEMP; slot++) {
        if (!written[slot]) continue;
        uint32_t ref = t->cur[slot];
        Value v = t->v.data[ref >> 1];
        if (ref & 1 && v.n) t->cur[slot] = vec_push(&t->v, ((Value){2, {v.in[0], v.in[1]}, (uint8_t)(~v.truth & 15)})) << 1;
        vec_push(&goal, slot);
    }
    t->wanted = xrealloc(NULL, t->v.n * sizeof *t->wanted);
    t->place = xrealloc(NULL, t->v.n * sizeof *t->place);
    for (uint32_t i = 0; i < t->v.n; i++) t->wanted[i] = false, t->place[i] = UNSET;
    for (uint32_t i = 0; i < goal.n; i++) {
        uint32_t ref = t->cur[goal.data[i]], v = ref >> 1;
        t->wanted[v] = true;
        if (t->v.data[v].n && t->place[v] == UNSET) t->place[v] = goal.data[i];
        else add_copy(t, goal.data[i], ref);
    }
    for (uint32_t i = 1; i < t->v.n; i++) /* stages never write what they read (slice.c: slots) */
        if (!t->v.data[i].n && t->v.data[i].in[0] < SLICE_TEMP && written[t->v.data[i].in[0]]) die("a stage writes what it reads");
    free(goal.data);
}

/* ---- waves ---- */
typedef struct {
    uint32_t wave, left, height; /* left: inputs that are not there yet */
} Job;

typedef struct {
    const GpuLuts *lut;
    uint32_t nvalues, *of; /* [values] the lut that makes it, or UNSET */
    Job *job;
    uint32_t *start, *user; /* by lut: those that read it */
    uint32_t *heap, nheap;
    bool deep;
} Schedule;

/* The one that most waits for goes first; where depth is not what counts, the order that keeps few values alive. */
static bool before(const Schedule *s, uint32_t a, uint32_t b)
{
    if (s->deep && s->job[a].height != s->job[b].height) return s->job[a].height > s->job[b].height;
    return a < b;
}

static void heap_push(Schedule *s, uint32_t x)
{
    uint32_t i = s->nheap++;
    for (; i && before(s, x, s->heap[(i - 1) / 2]); i = (i - 1) / 2) s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = x;
}

static uint32_t heap_pop(Schedule *s)
{
    uint32_t top = s->heap[0], x = s->heap[--s->nheap], i = 0;
    for (uint32_t c; (c = 2 * i + 1) < s->nheap; i = c) {
        if (c + 1 < s->nheap && before(s, s->heap[c + 1], s->heap[c])) c++;
        if (!before(s, s->heap[c], x)) break;
        s->heap[i] = s->heap[c];
    }
    if (s->nheap) s->heap[i] = x;
    return top;
}

static void find_users(Schedule *s, Pool *p)
{
    uint32_t n = s->lut->n, total = 0;
    s->of = pool_array(p, s->nvalues, sizeof *s->of);
    memset(s->of, 0xff, s->nvalues * sizeof *s->of);
    s->job = pool_array(p, n, sizeof *s->job);
    s->start = pool_array(p, n + 2, sizeof *s->start);
    for (uint32_t i = 0; i < n; i++) s->of[s->lut->data[i].value] = i;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < s->lut->data[i].n; k++)
            if (s->of[s->lut->data[i].in[k]] != UNSET) s->start[s->of[s->lut->data[i].in[k]] + 2]++, s->job[i].left++, total++;
    for (uint32_t i = 2; i < n + 2; i++) s->start[i] += s->start[i - 1];
    s->user = pool_array(p, total, sizeof *s->user);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < s->lut->data[i].n; k++)
            if (s->of[s->lut->data[i].in[k]] != UNSET) s->user[s->start[s->of[s->lut->data[i].in[k]] + 1]++] = i;
    for (uint32_t i = n; i-- > 0;)
        for (uint32_t e = s->start[i]; e < s->start[i + 1]; e++)
            if (s->job[s->user[e]].height + 1 > s->job[i].height) s->job[i].height = s->job[s->user[e]].height + 1;
}

/* Returns how many waves. */
static uint32_t make_waves(Schedule *s, Pool *p, uint32_t size)
{
    uint32_t n = s->lut->n, done = 0, wave = 0;
    uint32_t *now = pool_array(p, size, sizeof *now);
    s->heap = pool_array(p, n + 1, sizeof *s->heap);
    for (uint32_t i = 0; i < n; i++)
        if (!s->job[i].left) heap_push(s, i);
    for (; done < n; wave++) {
        uint32_t m = 0;
        while (m < size && s->nheap) now[m++] = heap_pop(s);
        for (uint32_t i = 0; i < m; i++) {
            s->job[now[i]].wave = wave;
            for (uint32_t e = s->start[now[i]]; e < s->start[now[i] + 1]; e++)
                if (!--s->job[s->user[e]].left) heap_push(s, s->user[e]);
        }
        done += m;
    }
    return wave;
}

/* ---- slots ---- */
typedef struct {
    uint32_t *slot;          /* [values] */
    uint32_t *last;          /* [values] wave of the last reader */
    uint32_t next, top;      /* temporaries */
    VEC(uint32_t) free;
} Slots;

static int by_wave(const void *p, const void *q)
{
    const uint32_t *x = p, *y = q;
    if (x[0] != y[0]) return x[0] < y[0] ? -1 : 1;
    return x[1] < y[1] ? -1 : x[1] > y[1];
}

static void find_last(const Schedule *s, const Stretch *t, uint32_t waves, Slots *out)
{
    for (uint32_t i = 0; i < s->lut->n; i++)
        for (uint32_t k = 0; k < s->lut->data[i].n; k++) {
            uint32_t v = s->lut->data[i].in[k];
            if (s->job[i].wave > out->last[v]) out->last[v] = s->job[i].wave;
        }
    for (uint32_t i = 0; i < t->copy.n; i++)
        if (t->copy.data[i].n) out->last[t->copy.data[i].in[0]] = waves;
}

static void give_slots(const Schedule *s, const Stretch *t, Pool *p, uint32_t waves, Slots *out)
{
    uint32_t n = s->lut->n;
    uint32_t(*order)[2] = pool_array(p, n, sizeof *order), (*end)[2] = pool_array(p, n, sizeof *end), at = 0, nend = 0;
    out->slot = pool_array(p, t->v.n, sizeof *out->slot), out->last = pool_array(p, t->v.n, sizeof *out->last);
    for (uint32_t i = 0; i < t->v.n; i++) {
        uint32_t slot = t->v.data[i].n ? t->place[i] : t->v.data[i].in[0];
        out->slot[i] = slot == UNSET ? UNSET : gpu_slot(t->slice, slot);
    }
    find_last(s, t, waves, out);
    for (uint32_t i = 0; i < n; i++) {
        order[i][0] = s->job[i].wave, order[i][1] = i;
        if (out->slot[s->lut->data[i].value] == UNSET) end[nend][0] = out->last[s->lut->data[i].value], end[nend++][1] = s->lut->data[i].value;
    }
    qsort(order, n, sizeof *order, by_wave);
    qsort(end, nend, sizeof *end, by_wave);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = s->lut->data[order[i][1]].value;
        for (; at < nend && end[at][0] < order[i][0]; at++) vec_push(&out->free, out->slot[end[at][1]]);
        if (out->slot[v] != UNSET) continue;
        out->slot[v] = out->free.n ? out->free.data[--out->free.n] : out->next++;
    }
    if (out->next > out->top) out->top = out->next;
    out->free.n = 0;
}

/* ---- what the kernel reads ---- */
static uint64_t slots_of(const uint32_t *slot, uint32_t n, uint32_t bits)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < n; i++) v |= (uint64_t)slot[i] << bits * i;
    return v;
}

/* Inputs that are not there are the first one, on which the table does not depend; a constant reads its own slot. */
static void emit(GpuImage *g, const GpuLut *l, uint32_t dst, const uint32_t *in)
{
    uint32_t slot[1 + GPU_MANY] = {dst};
    for (uint32_t k = 0; k < GPU_MANY; k++) slot[1 + k] = k < l->n ? in[k] : l->n ? in[0] : dst;
    if (g->g.inputs == GPU_FEW) {
        vec_push(&g->op, slots_of(slot, 1 + GPU_FEW, 14) | (l->truth & 255) << 56);
    } else {
        vec_push(&g->op, slots_of(slot, 4, 16));
        vec_push(&g->op, slots_of(slot + 4, 3, 16));
        vec_push(&g->op, l->truth);
    }
    g->g.nop++;
}

static void end_wave(GpuImage *g) { vec_push(&g->first, g->g.nop); }

static void emit_all(GpuImage *g, const Schedule *s, const Stretch *t, const Slots *o, Pool *p)
{
    uint32_t n = s->lut->n, wave = 0, in[GPU_MANY];
    uint32_t(*order)[2] = pool_array(p, n, sizeof *order);
    for (uint32_t i = 0; i < n; i++) order[i][0] = s->job[i].wave, order[i][1] = i;
    qsort(order, n, sizeof *order, by_wave);
    for (uint32_t i = 0; i < n; i++) {
        const GpuLut *l = &s->lut->data[order[i][1]];
        if (order[i][0] != wave) end_wave(g), wave = order[i][0];
        for (uint32_t k = 0; k < l->n; k++) in[k] = o->slot[l->in[k]];
        emit(g, l, o->slot[l->value], in);
    }
    end_wave(g); /* of a stage without any, too: the kernel counts on a barrier */
    for (uint32_t i = 0; i < t->copy.n; i++) {
        if (i && i % g->g.wave_ops == 0) end_wave(g);
        const GpuLut *l = &t->copy.data[i];
        if (l->n) in[0] = o->slot[l->in[0]];
        emit(g, l, gpu_slot(t->slice, l->value), in);
    }
    if (t->copy.n) end_wave(g);
}

/* One stage: appends its waves. `top`: the highest slot beyond those of temporaries. */
static void plan_stage(GpuImage *g, const Slice *slice, const Stage *st, uint32_t *cur, bool *written, uint32_t *top, GpuPlanReport *r)
{
    Pool *p = pool_new();
    Stretch t = {.slice = slice, .cur = cur};
    GpuLuts lut = {0};
    memset(cur, 0xff, 65536 * sizeof *cur);
    memset(written, 0, 65536 * sizeof *written);
    vec_push(&t.v, ((Value){.in = {GPU_NO_SLOT}})); /* value 0: never 1 */
    take_code(&t, &st->code, written);
    find_goals(&t, written);
    gpu_cover(&t.v, t.wanted, g->g.inputs, g->g.inputs == GPU_MANY, &lut);
    Schedule s = {.lut = &lut, .nvalues = t.v.n, .deep = g->g.inputs == GPU_MANY};
    find_users(&s, p);
    uint32_t waves = make_waves(&s, p, g->g.wave_ops);
    Slots slots = {.next = g->g.kept, .top = *top};
    give_slots(&s, &t, p, waves, &slots);
    emit_all(g, &s, &t, &slots, p);
    *top = slots.top;
    r->operations += st->code.step.n;
    r->tables += lut.n + t.copy.n;
    free(lut.data);
    free(t.v.data);
    free(t.copy.data);
    free(t.wanted);
    free(t.place);
    free(slots.free.data);
    pool_free(p);
}

static void plan_all(GpuImage *g, Slice *s, uint32_t threads, GpuPlanReport *r)
{
    uint32_t *cur = xrealloc(NULL, 65536 * sizeof *cur), top;
    bool *written = xrealloc(NULL, 65536 * sizeof *written);
    g->g.kept = s->next;
    for (uint32_t i = 0; i < s->nstages; i++)
        if (s->stage[i].next > g->g.kept) g->g.kept = s->stage[i].next;
    g->g.kept += s->kept;
    top = g->g.kept;
    end_wave(g);
    g->g.wave_ops = threads * gpu_vector(g->g.words) / g->g.words;
    for (uint32_t i = 0; i < s->nstages; i++) {
        GpuStage st = {.wave = g->first.n - 1, .cells = GPU_NONE};
        plan_stage(g, s, &s->stage[i], cur, written, &top, r);
        st.nwaves = g->first.n - 1 - st.wave;
        r->waves += st.nwaves;
        gpu_image_stage(g, s, i, &st);
    }
    g->g.nslots = top;
    free(cur);
    free(written);
}

Gpu *gpu_plan(Slice *s, uint32_t inputs, uint32_t words, uint32_t threads, GpuPlanReport *r)
{
    double began = clock_seconds();
    GpuImage g = {.g = {.inputs = inputs, .words = words}, .slice = s};
    *r = (GpuPlanReport){0};
    plan_all(&g, s, threads, r);
    Gpu *out = gpu_image_make(&g, s);
    if (inputs == GPU_FEW && out->nslots >= GPU_FEW_SLOTS) free(out), out = NULL;
    r->seconds = clock_seconds() - began;
    return out;
}
