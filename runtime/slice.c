/* slice.c: a chip as stages of logic over planes, compiled one after the other: embedding; for each layer what its state is asked for, then what
 * comes of it and the MLP; output head. Between two stages a channel is an Int whose planes lie in slots that the later stages read. A stage
 * whose assumed ranges do not hold is compiled again, with all after it, and the pass goes on from there: what lies before it stands. */
#include "slice_priv.h"
#include <pthread.h>
#include <stdlib.h>

const Model *slice_model(const Slice *s) { return s->m; }
size_t slice_bytes(const Slice *s) { return s->bytes; }
bool slice_shared(const Slice *s) { return s->shared; }
bool slice_stopped(const Slice *s) { return s->stop && atomic_load_explicit(s->stop, memory_order_relaxed); }
uint64_t *slice_active(Slice *s) { return s->active; }
const Plane *slice_special(const Slice *s) { return &s->plane[s->special]; }
const Plane *slice_retired(const Slice *s) { return &s->plane[s->retired]; }
Cells *slice_layer_cells(Slice *s, uint32_t layer) { return s->delta[layer] ? slice_delta_cells(s->delta[layer]) : NULL; }

/* ---- slots ---- */
uint16_t slice_new_slot(Slice *s)
{
    uint32_t slot = s->nfree ? s->free[--s->nfree] : s->next++;
    if (slot + s->kept >= SLICE_TEMP) die("a chip of more than %d planes", SLICE_TEMP); /* the channels of any model that fits number far fewer */
    return (uint16_t)slot;
}

uint16_t slice_kept_slot(Slice *s)
{
    if (s->next + s->kept + 1 >= SLICE_TEMP) die("a chip of more than %d planes", SLICE_TEMP);
    return (uint16_t)(SLICE_TEMP - ++s->kept);
}

/* Slots that the channels before a stage do not use are free from then on. */
static void free_unused(Slice *s, const Stage *st, uint32_t fixed)
{
    bool *used = calloc(s->next, sizeof *used);
    if (!used) die("out of memory");
    for (uint32_t c = 0; c < s->m->geo.hidden; c++)
        for (uint32_t p = 0; st->channel[c] && p < st->channel[c]->n; p++)
            if (st->channel[c]->slot[p] < s->next) used[st->channel[c]->slot[p]] = true; /* else 0, or a slot for good: state that is never written */
    s->nfree = 0;
    for (uint32_t i = s->next; i-- > fixed;)
        if (!used[i]) s->free[s->nfree++] = i;
    free(used);
}

/* ---- channels as a block sees them ---- */
static void begin_block(Slice *s, Block *k, Stage *st)
{
    pool_free(st->keep);
    st->keep = pool_new();
    bits_reset(&s->g);
    pool_free(s->block_pool);
    s->block_pool = pool_new();
    *k = (Block){.s = s, .g = &s->g, .pool = s->block_pool, .keep = st->keep, .layer = st->layer};
    k->x = pool_array(k->pool, s->m->geo.hidden, sizeof *k->x);
    for (uint32_t c = 0; c < s->m->geo.hidden; c++) {
        const Channel *ch = st->channel[c];
        if (!ch) continue;
        Int *x = k->x[c] = pool_alloc(k->pool, sizeof *x);
        *x = (Int){.lo = ch->lo, .hi = ch->hi, .n = ch->n};
        for (uint32_t p = 0; p < ch->n; p++) x->plane[p] = ch->slot[p] == NO_SLOT ? FALSE_REF : bits_leaf(&s->g, ch->slot[p]);
    }
}

/* A plane as a slot: a leaf stays where it is. */
uint16_t slice_goal_slot(Block *k, Ref r)
{
    const Node *x = &k->g->node.data[r >> 1];
    if (r == FALSE_REF) return NO_SLOT;
    if (x->op == NODE_LEAF && !(r & 1)) return (uint16_t)x->a;
    for (uint32_t i = 0; i < k->goal.n; i++)
        if (k->goal.data[i].ref == r && k->goal.n - i < 64) return (uint16_t)k->goal.data[i].slot;
    uint16_t slot = slice_new_slot(k->s);
    vec_push(&k->goal, ((BitGoal){r, slot}));
    return slot;
}

/* The channels after the block, of those that anything later needs. */
static void end_block(Slice *s, Block *k, Channel **out, const bool *needed)
{
    for (uint32_t c = 0; c < s->m->geo.hidden; c++) {
        const Int *x = k->x[c];
        out[c] = NULL;
        if (!x || !needed[c] || (x->n == 0 && x->lo == 0)) continue;
        Channel *ch = out[c] = pool_alloc(k->keep, sizeof *ch);
        *ch = (Channel){.lo = (int32_t)x->lo, .hi = (int32_t)x->hi, .n = x->n};
        for (uint32_t p = 0; p < x->n; p++) ch->slot[p] = slice_goal_slot(k, x->plane[p]);
    }
}

/* Compilation keeps what comparison functions look at in statics: one at a time. */
static pthread_mutex_t compiling = PTHREAD_MUTEX_INITIALIZER;

/* ---- stages ---- */
static void grow_scratch(Slice *s, const Cells *c)
{
    size_t n = ((size_t)c->nin + c->nout) * LANES;
    if (n <= s->nscratch) return;
    s->nscratch = n;
    s->scratch = pool_array(s->pool, n, sizeof *s->scratch);
}

static bool stage_block(Slice *s, Stage *st, Block *k)
{
    bool ok = true;
    if (st->kind == STAGE_EMBED) return slice_embed(k, st->level);
    if (st->kind == STAGE_HEAD) return slice_head(k);
    if (st->kind == STAGE_IN) {
        ok = past_begin(k) && slice_delta_in(s->delta[st->layer], k);
        if (!ok) return false;
        past_end(k);
        grow_scratch(s, slice_delta_cells(s->delta[st->layer]));
        return !k->why;
    }
    if (s->delta[st->layer]) ok = slice_delta_out(s->delta[st->layer], k, st->level);
    return ok && slice_mlp(s->mlp[st->layer], k, st->level);
}

static void check_apart(Stage *st, Block *k, const CheckNode *c)
{
    uint16_t slot = slice_new_slot(k->s);
    vec_push(&k->goal, ((BitGoal){c->ref, slot}));
    vec_push(&st->check, ((Check){slot, c->what, c->level, c->why}));
}

/* One plane says that all is well; which check failed is found out when it does not. */
static void stage_checks(Stage *st, Block *k, bool apart)
{
    Ref any = FALSE_REF;
    st->check.n = 0;
    st->any = NO_SLOT;
    for (uint32_t i = 0; i < k->check.n; i++) {
        const CheckNode *c = &k->check.data[i];
        if (apart) check_apart(st, k, c);
        else vec_push(&st->check, ((Check){NO_SLOT, c->what, c->level, c->why}));
        any = bits_or(k->g, any, c->ref);
    }
    if (apart || any == FALSE_REF) return;
    st->any = slice_new_slot(k->s);
    vec_push(&k->goal, ((BitGoal){any, st->any}));
}

static void save_slots(Slice *s, Stage *st)
{
    st->next = s->next;
    st->nfree = s->nfree;
    st->free = xrealloc(st->free, (s->nfree + 1) * sizeof *st->free);
    memcpy(st->free, s->free, s->nfree * sizeof *st->free);
}

static void load_slots(Slice *s, const Stage *st)
{
    s->next = st->next;
    s->nfree = st->nfree;
    memcpy(s->free, st->free, s->nfree * sizeof *st->free);
}

/* Which channels the stages from this one on read. */
static const bool *needed_after(const Slice *s, const Stage *st)
{
    return st->kind == STAGE_EMBED ? s->needed[0] : st->kind == STAGE_IN ? s->needed[st->layer] : s->needed[st->layer + 1];
}

static bool compile_stage(Slice *s, Stage *st, bool apart, const char **why)
{
    Block k;
    bool last = st->kind == STAGE_HEAD;
    save_slots(s, st);
    begin_block(s, &k, st);
    bool ok = stage_block(s, st, &k);
    if (ok) {
        stage_checks(st, &k, apart);
        if (st->kind == STAGE_IN) memcpy(st[1].channel, st->channel, s->m->geo.hidden * sizeof *st->channel);
        else if (!last) end_block(s, &k, st[1].channel, needed_after(s, st));
        if (!bitcode_make(&st->code, &s->g, k.goal.data, k.goal.n, SLICE_TEMP)) ok = false, k.why = "too many planes";
    }
    free(k.goal.data);
    free(k.check.data);
    if (!ok) *why = k.why ? k.why : "a form that planes cannot hold";
    return ok;
}

/* The slots below are for good: tokens, past tokens. */
static uint32_t fixed_slots(const Slice *s) { return s->stage[0].next; }

/* The stage and all after it are to be compiled (again). */
static void compile_anew(Slice *s, uint32_t stage)
{
    if (s->compilations++) load_slots(s, &s->stage[stage]);
    s->compiled = stage;
}

/* Compiles what is to be compiled of the first `end` stages. */
static bool compile_to(Slice *s, uint32_t end, const char **why)
{
    double t = clock_seconds();
    bool ok = true;
    for (; ok && s->compiled < end; s->compiled += ok) {
        Stage *st = &s->stage[s->compiled];
        /* what STAGE_IN makes is used by STAGE_OUT */
        if (s->compiled && st->kind != STAGE_OUT) free_unused(s, st, fixed_slots(s));
        ok = !slice_stopped(s) && compile_stage(s, st, s->apart, why);
    }
    s->seconds += clock_seconds() - t;
    return ok;
}

/* ---- opening ---- */
static const Basis *find_basis(Slice *s, const Tensor *norm)
{
    float *gain = norm_gains(s->m, s->pool, s->pilot, norm);
    if (!gain) return NULL;
    s->basis[s->nbases] = (Basis){s->pilot, gain};
    return &s->basis[s->nbases++];
}

static bool open_layer(Slice *s, uint32_t i, const char **why)
{
    const Layer *l = &s->m->layer[i];
    const Basis *input = find_basis(s, &l->t[T_INPUT_NORM]), *post = find_basis(s, &l->t[T_POST_NORM]);
    *why = "norms that are no powers of two";
    if (!input || !post || !(s->mlp[i] = slice_mlp_make(s->m, i, post, s->pool, why))) return false;
    if (l->full) {
        *why = "a memory in an attention layer";
        return l->t[T_O_PROJ].n == 0 && l->t[T_O_PROJ].fill == 0;
    }
    return (s->delta[i] = slice_delta_make(s->m, i, input, s->pool, &s->bytes, why)) != NULL;
}

static bool same_rows(const Slice *s, uint32_t a, uint32_t b)
{
    const Model *m = s->m;
    return m->kind[a].width == m->kind[b].width &&
           !memcmp(s->bit_form + a * m->max_width, s->bit_form + b * m->max_width, m->kind[a].width * sizeof *s->bit_form);
}

static bool open_head(Slice *s, const char **why)
{
    const Model *m = s->m;
    const Basis *b = find_basis(s, &m->final_norm);
    Matrix kind, bit;
    *why = "norms that are no powers of two";
    if (!b) return false;
    matrix_make(&kind, s->pool, &m->head_kind, false, NULL);
    matrix_make(&bit, s->pool, &m->head_bit, false, NULL);
    s->kind_form = pool_array(s->pool, m->nkinds, sizeof *s->kind_form);
    s->code_of = pool_array(s->pool, m->nkinds, sizeof *s->code_of);
    s->bit_form = pool_array(s->pool, (size_t)m->nkinds * m->max_width, sizeof *s->bit_form);
    for (uint32_t k = 0; k < m->nkinds; k++)
        s->kind_form[k] = forms_add(&s->head, b, kind.col + kind.start[k], kind.value + kind.start[k], kind.start[k + 1] - kind.start[k], 1);
    for (uint32_t i = 0; i < m->nkinds * m->max_width; i++)
        s->bit_form[i] = forms_add(&s->head, b, bit.col + bit.start[i], bit.value + bit.start[i], bit.start[i + 1] - bit.start[i], 1);
    for (uint32_t k = 0; k < m->nkinds; k++)
        while (!same_rows(s, s->code_of[k], k)) s->code_of[k]++;
    return true;
}

/* What each layer's mixer, or anything above it, reads; and what is asked of earlier tokens. */
static void find_uses(Slice *s)
{
    uint32_t n = s->m->geo.hidden, layers = s->m->geo.layers;
    bool *past = xrealloc(NULL, (size_t)MAX_TAPS * n * sizeof *past);
    for (uint32_t i = 0; i < s->head.e.n; i++) s->needed[layers][s->head.e.data[i].at] = true;
    for (uint32_t i = layers; i-- > 0;) {
        memcpy(s->needed[i], s->needed[i + 1], n * sizeof **s->needed);
        slice_mlp_uses(s->mlp[i], s->needed[i]);
        if (!s->delta[i]) continue;
        memset(past, 0, (size_t)MAX_TAPS * n * sizeof *past);
        slice_delta_uses(s->delta[i], s->needed[i], past);
        past_note(s, i, past);
        for (uint32_t c = 0; c < MAX_TAPS * n; c++) s->needed[i][c % n] |= past[c];
    }
    free(past);
}

static void new_stage(Slice *s, StageKind kind, uint32_t layer)
{
    Stage *st = &s->stage[s->nstages++];
    st->kind = kind;
    st->layer = layer;
    st->level = pool_array(s->pool, s->m->geo.hidden, sizeof *st->level);
    st->channel = pool_array(s->pool, s->m->geo.hidden, sizeof *st->channel);
}

static void make_stages(Slice *s)
{
    s->stage = pool_array(s->pool, 2 * (size_t)s->m->geo.layers + 2, sizeof *s->stage);
    new_stage(s, STAGE_EMBED, 0);
    for (uint32_t i = 0; i < s->m->geo.layers; i++) {
        if (s->delta[i]) new_stage(s, STAGE_IN, i);
        new_stage(s, STAGE_OUT, i);
    }
    new_stage(s, STAGE_HEAD, s->m->geo.layers);
}

static void fixed_planes(Slice *s)
{
    const Model *m = s->m;
    s->kind_bits = bits_width(m->nkinds - 1);
    s->payload_bits = m->max_width;
    for (uint32_t b = 0; b < s->kind_bits + s->payload_bits; b++) s->token_in[b] = slice_new_slot(s), s->token_out[b] = slice_new_slot(s);
    s->special = slice_new_slot(s), s->retired = slice_new_slot(s), s->wrong = slice_new_slot(s);
    for (uint32_t t = 0; t < MAX_TAPS; t++) s->begun[t] = slice_new_slot(s);
}

static bool open_all(Slice *s, const char **why)
{
    const Model *m = s->m;
    uint32_t n = m->geo.hidden, layers = m->geo.layers;
    if (m->bf16) return *why = "bfloat16", false;
    if (m->geo.taps > MAX_TAPS || m->max_width > 32) return *why = "its geometry", false;
    if (!pilots_hold(m, s->pilot)) return *why = "its norms depend on the data", false;
    forms_init(&s->head);
    s->basis = pool_array(s->pool, 2 * (size_t)layers + 1, sizeof *s->basis);
    s->delta = pool_array(s->pool, layers, sizeof *s->delta);
    s->mlp = pool_array(s->pool, layers, sizeof *s->mlp);
    s->past = pool_array(s->pool, layers, sizeof *s->past);
    s->needed = pool_array(s->pool, layers + 1, sizeof *s->needed);
    for (uint32_t i = 0; i <= layers; i++) s->needed[i] = pool_array(s->pool, n, sizeof **s->needed);
    if (!open_head(s, why)) return false;
    for (uint32_t i = 0; i < layers; i++)
        if (!open_layer(s, i, why)) return false;
    fixed_planes(s);
    find_uses(s);
    make_stages(s);
    compile_anew(s, 0);
    return compile_to(s, s->nstages, why);
}

Slice *slice_open(const Model *m, bool shared, bool apart, char **err) { return slice_open_until(m, shared, apart, NULL, err); }

Slice *slice_open_until(const Model *m, bool shared, bool apart, const atomic_bool *stop, char **err)
{
    Pool *p = pool_new();
    Slice *s = pool_alloc(p, sizeof *s);
    const char *why = NULL;
    *s = (Slice){.m = m, .shared = shared, .apart = apart, .pool = p, .stop = stop};
    bits_init(&s->g);
    s->plane = pool_array(p, 65536, sizeof *s->plane);
    s->free = pool_array(p, SLICE_TEMP, sizeof *s->free);
    s->pilot = pool_array(p, m->geo.hidden, sizeof *s->pilot);
    pthread_mutex_lock(&compiling);
    bool ok = open_all(s, &why);
    pthread_mutex_unlock(&compiling);
    if (ok) return s;
    slice_close(s);
    fail(err, "%s", why);
    return NULL;
}

void slice_close(Slice *s)
{
    for (uint32_t i = 0; s->delta && i < s->m->geo.layers; i++) {
        slice_delta_close(s->delta[i]);
        slice_mlp_close(s->mlp[i]);
        free(s->past[i].data);
    }
    for (uint32_t i = 0; i < s->nstages; i++) {
        bitcode_free(&s->stage[i].code);
        free(s->stage[i].check.data);
        free(s->stage[i].free);
        pool_free(s->stage[i].keep);
    }
    if (s->basis) forms_free(&s->head);
    bits_free(&s->g);
    pool_free(s->block_pool);
    pool_free(s->pool);
}

/* ---- tokens ---- */
uint64_t slice_token_word(const Slice *s, uint32_t token)
{
    const ChipKind *k = model_kind(s->m, token);
    return k ? (uint64_t)(k - s->m->kind) | (uint64_t)(token - k->base) << s->kind_bits : 0;
}

uint32_t slice_word_token(const Slice *s, uint64_t word)
{
    uint32_t kind = (uint32_t)(word & mask64(s->kind_bits));
    return kind < s->m->nkinds ? s->m->kind[kind].base + (uint32_t)(word >> s->kind_bits) : UINT32_MAX;
}

void slice_put(Slice *s, uint32_t lane, uint32_t token)
{
    uint64_t v = slice_token_word(s, token), bit = 1ull << (lane & 63);
    for (uint32_t b = 0; b < s->kind_bits + s->payload_bits; b++) {
        uint64_t *w = &s->plane[s->token_in[b]].w[lane >> 6];
        *w = v >> b & 1 ? *w | bit : *w & ~bit;
    }
}

void slice_put_all(Slice *s, const uint32_t *token)
{
    uint64_t word[LANES];
    for (uint32_t i = 0; i < LANES; i++) word[lane_place(i)] = slice_token_word(s, token[i]);
    lanes_to_planes(word, s->plane, s->token_in, s->kind_bits + s->payload_bits);
}

void slice_feed_back(Slice *s)
{
    for (uint32_t b = 0; b < s->kind_bits + s->payload_bits; b++) s->plane[s->token_in[b]] = s->plane[s->token_out[b]];
}

uint32_t slice_got(const Slice *s, uint32_t lane)
{
    uint64_t v = 0;
    for (uint32_t b = 0; b < s->kind_bits + s->payload_bits; b++) v |= (s->plane[s->token_out[b]].w[lane >> 6] >> (lane & 63) & 1) << b;
    return slice_word_token(s, v);
}

const Plane *slice_wrong(Slice *s, uint32_t next)
{
    Plane *wrong = &s->plane[s->wrong];
    uint64_t v = slice_token_word(s, next);
    memset(wrong, 0, sizeof *wrong);
    for (uint32_t b = 0; b < s->kind_bits + s->payload_bits; b++) {
        const Plane *in = &s->plane[s->token_in[b]], *out = &s->plane[s->token_out[b]];
        for (uint32_t w = 0; w < PLANE_WORDS; w++) {
            uint64_t after = w + 1 < PLANE_WORDS ? in->w[w + 1] & 1 : v >> b & 1;
            wrong->w[w] |= out->w[w] ^ (in->w[w] >> 1 | after << 63);
        }
    }
    return wrong;
}

void slice_save_lane(const Slice *s, uint32_t lane, uint8_t *state)
{
    for (uint32_t i = 0; i < s->m->geo.layers; i++)
        if (s->delta[i]) slice_plane_save(s->delta[i], s->plane, lane, state);
}

void slice_restart_lane(Slice *s, uint32_t lane, const uint8_t *state)
{
    for (uint32_t i = 0; i < s->m->geo.layers; i++)
        if (s->delta[i]) slice_plane_load(s->delta[i], s->plane, lane, state);
    for (uint32_t t = 0; t < MAX_TAPS; t++) s->plane[s->begun[t]].w[lane >> 6] &= ~(1ull << (lane & 63));
}

/* ---- a pass ---- */
static bool in_active_lane(const Slice *s, uint16_t slot)
{
    uint64_t any = 0;
    for (uint32_t w = 0; w < PLANE_WORDS && slot != NO_SLOT; w++) any |= s->plane[slot].w[w] & s->active[w];
    return any != 0;
}

/* The check does not hold: its channel's range is widened; NULL, or the reason why that cannot be. */
static const char *widen(Stage *st, const Check *c)
{
    if (c->what == CHECK_FATAL) return c->why;
    uint8_t *level = &st->level[c->what], range = c->level & LEVEL_RANGE;
    *level |= c->level & LEVEL_ENDS;
    if ((*level & LEVEL_RANGE) < range) *level = (*level & LEVEL_ENDS) | range;
    return NULL;
}

static const char *look(Slice *s, Stage *st)
{
    const char *why = NULL;
    for (uint32_t i = 0; i < st->check.n; i++) {
        const char *fatal = in_active_lane(s, st->check.data[i].slot) ? widen(st, &st->check.data[i]) : NULL;
        if (fatal) why = fatal;
    }
    return why;
}

/* A check of the stage has failed: the stage with its checks apart says which, and is compiled anew. So are all after it when the pass comes to them: they may
 * have to be widened, too. What the stage reads is still there. */
static const char *widen_here(Slice *s, uint32_t stage)
{
    Stage *st = &s->stage[stage];
    const char *why = NULL;
    pthread_mutex_lock(&compiling);
    load_slots(s, st);
    bool ok = compile_stage(s, st, true, &why);
    if (ok) {
        bitcode_run(&st->code, s->plane);
        why = look(s, st);
    }
    if (ok && !why) {
        compile_anew(s, stage);
        compile_to(s, stage + 1, &why);
    }
    pthread_mutex_unlock(&compiling);
    return why;
}

static const char *compile_late(Slice *s, uint32_t stage)
{
    const char *why = NULL;
    pthread_mutex_lock(&compiling);
    compile_to(s, stage + 1, &why);
    pthread_mutex_unlock(&compiling);
    return why;
}

const char *slice_widen(Slice *s, uint32_t stage, const uint8_t *failed)
{
    Stage *st = &s->stage[stage];
    const char *why = NULL;
    for (uint32_t i = 0; failed && i < st->check.n && !why; i++)
        if (failed[i]) why = widen(st, &st->check.data[i]);
    if (why) return why;
    pthread_mutex_lock(&compiling);
    compile_anew(s, stage);
    bool ok = compile_to(s, s->nstages, &why);
    pthread_mutex_unlock(&compiling);
    return ok ? NULL : why;
}

static void set_begun(Slice *s)
{
    for (uint32_t t = 1; s->shared && t < MAX_TAPS; t++) {
        memset(&s->plane[s->begun[t]], 0xff, sizeof(Plane));
        if (!s->began) s->plane[s->begun[t]].w[0] = ~0ull << t;
    }
}

static void count_begun(Slice *s)
{
    s->began = true;
    for (uint32_t t = MAX_TAPS; !s->shared && t-- > 1;) {
        if (t == 1) memset(&s->plane[s->begun[t]], 0xff, sizeof(Plane));
        else s->plane[s->begun[t]] = s->plane[s->begun[t - 1]];
    }
}

static const char *run_stage(Slice *s, uint32_t i)
{
    Stage *st = &s->stage[i];
    const char *late = i < s->compiled ? NULL : compile_late(s, i);
    if (late) return late;
    for (;;) {
        if (st->kind == STAGE_IN && s->shared) {
            if (past_made(s, st->layer)) bitcode_run(&st->code, s->plane);
            past_shift(s, st->layer);
        }
        bitcode_run(&st->code, s->plane);
        if (!in_active_lane(s, st->any)) return NULL;
        const char *why = widen_here(s, i);
        if (why) return why;
    }
}

const char *slice_pass(Slice *s, uint8_t *state, size_t stride)
{
    set_begun(s);
    for (uint32_t i = 0; i < s->nstages; i++) {
        const char *why = run_stage(s, i);
        if (why) return why;
        if (s->stage[i].kind != STAGE_IN) continue;
        why = cells_run(slice_delta_cells(s->delta[s->stage[i].layer]), s->plane, s->active, state, stride, s->scratch);
        if (why) return why;
        slice_plane_keep(s->delta[s->stage[i].layer], s->plane);
        past_keep(s, s->stage[i].layer);
    }
    count_begun(s);
    return NULL;
}

SliceReport slice_report(const Slice *s)
{
    SliceReport r = {.compilations = s->compilations, .seconds = s->seconds};
    for (uint32_t i = 0; i < s->nstages; i++) {
        r.operations += s->stage[i].code.step.n;
        r.checks += s->stage[i].check.n;
        if (s->stage[i].next > r.planes) r.planes = s->stage[i].next;
    }
    return r;
}
