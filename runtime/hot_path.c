/* hot_path.c: a chip's planes as logic of single bits, and what is left of it where some bits are constants. The stages' code is run through once with
 * expressions instead of bits: a leaf for what is not known, a constant for what is; bits.c folds what follows. Then only what the cells, the next
 * state, the token that comes out and the range checks need is kept (hot_code.c visits from the goals). */
#include "hot.h"
#include <stdlib.h>

enum { NONE = 0xffffffff, SLOTS = 65536 };

/* ---- a chip ---- */
static uint32_t new_places(HotChip *c, uint32_t n)
{
    uint32_t at = c->top;
    c->top += (n + 7) / 8 * 8; /* whole words of eight, since bits are packed and spread by eight */
    return at;
}

static void key_slot(HotChip *c, uint16_t slot)
{
    c->place[slot] = (uint16_t)c->top++;
    c->slot_at[c->place[slot] - c->key_at] = slot;
}

/* What a token begins with: itself, earlier tokens' channels, heads of one row. */
static void make_key(HotChip *c)
{
    Slice *s = c->s;
    c->key_at = c->top;
    for (uint32_t b = 0; b < c->token_bits; b++) key_slot(c, s->token_in[b]);
    c->top = (c->top + 7) / 8 * 8;
    for (uint32_t l = 0; l < s->m->geo.layers; l++) {
        for (uint32_t i = 0; s->delta[l] && i < s->past[l].n; i++)
            for (uint32_t t = 1; t <= s->past[l].data[i].taps; t++)
                for (uint32_t b = 0; b < s->past[l].data[i].bits; b++) key_slot(c, s->past[l].data[i].past[t][b]);
        for (uint32_t i = 0; s->delta[l] && i < s->delta[l]->bundles.n; i++) {
            const DeltaBundle *b = &s->delta[l]->bundles.data[i];
            for (uint32_t n = 0; b->slot && n < s->delta[l]->cells.bundle[i].bits; n++) key_slot(c, b->slot[n]);
        }
    }
    c->top = (c->top + 7) / 8 * 8;
    c->key = c->top - c->key_at;
}

static HotWord *make_words(HotChip *c, const PackWord *w, uint32_t n)
{
    HotWord *out = pool_array(c->pool, n + 1, sizeof *out);
    for (uint32_t i = 0; i < n; i++) out[i] = (HotWord){(uint16_t)new_places(c, w[i].n), (uint8_t)w[i].n};
    return out;
}

static void make_layer(HotChip *c, uint32_t stage)
{
    HotLayer *l = &c->layer[c->nlayers++];
    l->stage = stage;
    l->delta = c->s->delta[c->s->stage[stage].layer];
    l->cells = &l->delta->cells;
    l->nin = l->cells->nin, l->nout = l->cells->nout;
    l->first_out = c->nout;
    c->nout += l->nout;
    l->out = make_words(c, l->cells->out, l->nout);
    l->in = make_words(c, l->cells->in, l->nin);
    for (uint32_t w = 0; w < l->nout; w++)
        for (uint32_t b = 0; b < l->cells->out[w].n; b++) c->place[l->cells->out[w].slot[b]] = (uint16_t)(l->out[w].place + b);
}

static bool too_wide(const HotChip *c)
{
    bool wide = c->top > HOT_PLACES;
    for (uint32_t l = 0; l < c->nlayers; l++) wide |= c->layer[l].nin > HOT_MOST_WORDS;
    return wide;
}

HotChip *hot_chip_new(Slice *s)
{
    Pool *p = pool_new();
    HotChip *c = pool_alloc(p, sizeof *c);
    c->s = s, c->pool = p;
    c->token_bits = s->kind_bits + s->payload_bits;
    c->place = pool_array(p, SLOTS, sizeof *c->place);
    memset(c->place, 0xff, SLOTS * sizeof *c->place);
    c->slot_at = pool_array(p, SLOTS, sizeof *c->slot_at);
    memset(c->slot_at, 0xff, SLOTS * sizeof *c->slot_at);
    c->env = pool_array(p, SLOTS, sizeof *c->env);
    c->layer = pool_array(p, s->m->geo.layers, sizeof *c->layer);
    bits_init(&c->g);
    c->top = HOT_TEMPS;
    make_key(c);
    for (uint32_t i = 0; i < s->nstages; i++)
        if (s->stage[i].kind == STAGE_IN) make_layer(c, i);
    c->token_at = new_places(c, c->token_bits);
    c->next_at = new_places(c, c->key);
    c->bad_at = new_places(c, c->nlayers + 1);
    if (!too_wide(c)) return c;
    hot_chip_free(c);
    return NULL;
}

void hot_chip_free(HotChip *c)
{
    if (!c) return;
    bits_free(&c->g);
    pool_free(c->pool);
}

/* ---- a path ---- */
typedef struct {
    HotChip *c;
    HotPath *p;
    const HotGuards *guards;
    VEC(HotGoal) goal;
    VEC(HotMove) move;
    uint32_t *end;
    Ref bad; /* of this part */
    bool broken; /* a check fails whatever the other bits are */
} Maker;

static void run_code(HotChip *c, const BitCode *code)
{
    Ref *env = c->env;
    Bits *g = &c->g;
    for (uint32_t k = 0; k < code->run.n; k++) {
        const BitRun *r = &code->run.data[k];
        for (const BitStep *s = code->step.data + r->first, *end = s + r->n; s < end; s++)
            switch ((BitOp)r->op) {
            case BIT_AND: env[s->dst] = bits_and(g, env[s->a], env[s->b]); break;
            case BIT_ANDN: env[s->dst] = bits_and(g, bits_not(env[s->a]), env[s->b]); break;
            case BIT_OR: env[s->dst] = bits_or(g, env[s->a], env[s->b]); break;
            case BIT_XOR: env[s->dst] = s->a == s->b ? FALSE_REF : bits_xor(g, env[s->a], env[s->b]); break;
            case BIT_COPY: env[s->dst] = env[s->a]; break;
            case BIT_NOT: env[s->dst] = bits_not(env[s->a]); break;
            case BIT_OPS: break;
            }
    }
}

static void begin_env(Maker *mk)
{
    HotChip *c = mk->c;
    const HotGuards *g = mk->guards;
    bits_reset(&c->g);
    memset(c->env, 0, SLOTS * sizeof *c->env);
    for (uint32_t t = 1; t < MAX_TAPS; t++) c->env[c->s->begun[t]] = TRUE_REF; /* a long run has begun */
    for (uint32_t k = 0; k < c->key; k++) {
        uint16_t slot = c->slot_at[k];
        if (slot == HOT_NONE) continue;
        c->env[slot] = g && g->key_guard[k] ? (g->key_value[k] & 1 ? TRUE_REF : FALSE_REF) : bits_leaf(&c->g, c->key_at + k);
    }
}

static void add_goal(Maker *mk, Ref r, uint32_t place) { vec_push(&mk->goal, ((HotGoal){r, (uint16_t)place})); }

/* ---- a layer's cells ---- */
/* Which bits are asked for by what may happen. */
typedef struct {
    const HotLayer *l;
    HotAccess *x;
    const Ref *env;
    uint64_t need[HOT_MOST_WORDS];
} Asking;

static void need_field(Asking *a, Field f) { a->need[f.word] |= mask64(f.bits) << f.shift; }
static Ref field_bit(const Asking *a, Field f, uint32_t b) { return a->env[a->l->cells->in[f.word].slot[f.shift + b]]; }

/* The field's value where all of it is constant, else NONE. */
static uint32_t constant_field(const Asking *a, Field f)
{
    uint32_t v = 0;
    for (uint32_t b = 0; b < f.bits; b++) {
        Ref r = field_bit(a, f, b);
        if (r > TRUE_REF) return NONE;
        v |= r << b;
    }
    return v;
}

/* A select's top bit is its condition. */
static bool may_choose(const Asking *a, const Select *s)
{
    uint32_t v = constant_field(a, s->field);
    return v != NONE ? s->table[v] != NONE : field_bit(a, s->field, s->field.bits - 1u) != FALSE_REF;
}

static void ask_write(Asking *a, const CellWrite *w)
{
    need_field(a, w->value);
    need_field(a, a->l->cells->key[a->l->cells->bundle[w->bundle].key].field);
}

static void ask_read(Asking *a, const CellRead *r)
{
    need_field(a, a->l->cells->key[a->l->cells->bundle[r->bundle].query].field);
    a->x->may[r->out.word] |= r->mask << r->out.shift;
}

/* The lists that a select may choose: one, or any. */
static void ask_lists(Asking *a, const Select *s, bool writes)
{
    const Cells *c = a->l->cells;
    const uint32_t *start = writes ? c->write_start : c->read_start;
    uint32_t v = constant_field(a, s->field), last = NONE;
    need_field(a, s->field);
    for (uint32_t t = v == NONE ? 0 : v; t < (v == NONE ? 1u << s->field.bits : v + 1); t++) {
        uint32_t list = s->table[t];
        if (list == NONE || list == last) continue;
        last = list;
        for (uint32_t i = start[list]; i < start[list + 1]; i++)
            if (writes) ask_write(a, &c->write_list[i]);
            else ask_read(a, &c->read_list[i]);
    }
}

static void ask(Asking *a, Pool *pool)
{
    const Cells *c = a->l->cells;
    HotAccess *x = a->x;
    x->write = pool_array(pool, c->nwrite, sizeof *x->write);
    x->count = pool_array(pool, c->ncount, sizeof *x->count);
    x->read = pool_array(pool, c->nread, sizeof *x->read);
    for (uint32_t i = 0; i < c->nwrite; i++)
        if (may_choose(a, &c->write[i])) ask_lists(a, &c->write[i], true), x->write[x->nwrite++] = (uint16_t)i;
    for (uint32_t i = 0; i < c->ncount; i++) {
        if (field_bit(a, c->count[i].when, 0) == FALSE_REF) continue;
        need_field(a, c->count[i].when);
        need_field(a, c->key[c->bundle[c->count[i].bundle].key].field);
        x->count[x->ncount++] = (uint16_t)i;
    }
    for (uint32_t i = 0; i < c->nread; i++)
        if (may_choose(a, &c->read[i])) ask_lists(a, &c->read[i], false), x->read[x->nread++] = (uint16_t)i;
}

static void access_cells(Maker *mk, uint32_t nth)
{
    HotChip *c = mk->c;
    const HotLayer *l = &c->layer[nth];
    HotAccess *x = &mk->p->access[nth];
    Pool *pool = mk->p->pool;
    Asking a = {.l = l, .x = x, .env = c->env};
    x->varies = pool_array(pool, l->nin, sizeof *x->varies), x->fixed = pool_array(pool, l->nin, sizeof *x->fixed);
    x->may = pool_array(pool, l->nout, sizeof *x->may);
    x->guard = pool_array(pool, l->nout, sizeof *x->guard), x->expect = pool_array(pool, l->nout, sizeof *x->expect);
    ask(&a, pool);
    for (uint32_t w = 0; w < l->nin; w++)
        for (uint64_t bits = a.need[w]; bits; bits &= bits - 1) {
            uint32_t b = (uint32_t)__builtin_ctzll(bits);
            Ref r = c->env[l->cells->in[w].slot[b]];
            if (r <= TRUE_REF) x->fixed[w] |= (uint64_t)r << b;
            else x->varies[w] |= 1ull << b, add_goal(mk, r, l->in[w].place + b);
        }
    for (uint32_t w = 0; w < l->nout; w++) {
        const HotGuards *g = mk->guards;
        if (g) x->guard[w] = g->out_guard[l->first_out + w] & x->may[w], x->expect[w] = g->out_value[l->first_out + w] & x->guard[w];
        for (uint32_t b = 0; b < l->out[w].n; b++) {
            bool may = x->may[w] >> b & 1, guarded = x->guard[w] >> b & 1;
            c->env[l->cells->out[w].slot[b]] = !may ? FALSE_REF : guarded ? (Ref)(x->expect[w] >> b & 1) : bits_leaf(&c->g, l->out[w].place + b);
        }
    }
}

/* ---- what the bits before a token become ---- */
/* By way of a place of its own: what another bit becomes may still ask for what it was. */
static void becomes(Maker *mk, uint16_t slot, Ref r)
{
    HotChip *c = mk->c;
    uint32_t at = c->place[slot];
    HotMove m = {(uint16_t)at, HOT_NONE, (uint8_t)r};
    if (r == c->env[slot]) return;
    if (r > TRUE_REF) add_goal(mk, r, m.from = (uint16_t)(c->next_at + at - c->key_at));
    vec_push(&mk->move, m);
}

static void next_state(Maker *mk, const HotLayer *l)
{
    HotChip *c = mk->c;
    const Slice *s = c->s;
    uint32_t layer = s->stage[l->stage].layer;
    for (uint32_t i = 0; i < l->delta->bundles.n; i++) {
        const DeltaBundle *b = &l->delta->bundles.data[i];
        for (uint32_t n = 0; b->slot && n < l->cells->bundle[i].bits; n++) becomes(mk, b->slot[n], c->env[b->next[n]]);
    }
    for (uint32_t i = 0; i < s->past[layer].n; i++) {
        const Past *p = &s->past[layer].data[i];
        for (uint32_t b = 0; b < p->bits; b++) {
            for (uint32_t t = p->taps; t > 1; t--) becomes(mk, p->past[t][b], c->env[p->past[t - 1][b]]);
            becomes(mk, p->past[1][b], p->now[b] == NO_SLOT ? FALSE_REF : c->env[p->now[b]]);
        }
    }
}

static void keep_moves(Maker *mk)
{
    mk->p->nmoves = mk->move.n;
    mk->p->move = pool_array(mk->p->pool, mk->move.n, sizeof *mk->move.data);
    if (mk->move.n) memcpy(mk->p->move, mk->move.data, mk->move.n * sizeof *mk->move.data);
}

static void token_out(Maker *mk)
{
    HotChip *c = mk->c;
    for (uint32_t b = 0; b < c->token_bits; b++) {
        Ref r = c->env[c->s->token_out[b]];
        if (r <= TRUE_REF) mk->p->token_fixed |= (uint64_t)r << b;
        else mk->p->token_varies |= 1ull << b, add_goal(mk, r, c->token_at + b);
    }
}

static void end_part(Maker *mk, uint32_t nth)
{
    if (mk->bad == TRUE_REF) mk->broken = true;
    else if (mk->bad != FALSE_REF) add_goal(mk, mk->bad, mk->c->bad_at + mk->p->nchecks++);
    mk->bad = FALSE_REF;
    mk->end[nth] = mk->goal.n;
}

static void run_stages(Maker *mk)
{
    HotChip *c = mk->c;
    uint32_t nth = 0;
    begin_env(mk);
    for (uint32_t i = 0; i < c->s->nstages; i++) {
        const Stage *st = &c->s->stage[i];
        run_code(c, &st->code);
        if (st->any != NO_SLOT) mk->bad = bits_or(&c->g, mk->bad, c->env[st->any]);
        if (st->kind != STAGE_IN) continue;
        access_cells(mk, nth);
        next_state(mk, &c->layer[nth]);
        end_part(mk, nth++);
    }
    token_out(mk);
    end_part(mk, nth);
    keep_moves(mk);
}

static void keep_key(Maker *mk)
{
    const HotChip *c = mk->c;
    mk->p->key = pool_array(mk->p->pool, c->key / 8, sizeof *mk->p->key);
    uint8_t *at = (uint8_t *)mk->p->key;
    for (uint32_t k = 0; k < c->key; k++) at[k] = mk->guards && mk->guards->key_guard[k] ? mk->guards->key_value[k] & 1 : 0;
}

static Maker begin_path(HotChip *c, const HotGuards *guards)
{
    Pool *pool = pool_new();
    HotPath *p = pool_alloc(pool, sizeof *p);
    Maker mk = {.c = c, .p = p, .guards = guards};
    p->pool = pool;
    p->access = pool_array(pool, c->nlayers, sizeof *p->access);
    p->code = pool_array(pool, c->nlayers + 1, sizeof *p->code);
    mk.end = pool_array(pool, c->nlayers + 1, sizeof *mk.end);
    run_stages(&mk);
    return mk;
}

static void end_path(Maker *mk)
{
    free(mk->goal.data);
    free(mk->move.data);
}

HotPath *hot_path_make(HotChip *c, HotArena *a, const HotGuards *guards)
{
    Maker mk = begin_path(c, guards);
    HotPath *p = mk.p;
    keep_key(&mk);
    uint32_t top = c->top;
    size_t before = hot_arena_bytes(a);
    bool ok = !mk.broken && hot_code_make(a, &c->g, mk.goal.data, mk.end, c->nlayers + 1, &top, p->code);
    end_path(&mk);
    for (uint32_t i = c->nlayers + 1; ok && i-- > 0;)
        if (p->code[i]) memcpy(&p->text, &p->code[i], sizeof p->text);
    p->bytes = hot_arena_bytes(a) - before;
    if (ok) return p;
    hot_path_free(p);
    return NULL;
}

uint32_t hot_path_size(HotChip *c, const HotGuards *guards)
{
    Maker mk = begin_path(c, guards);
    NodeList stack = {0}, order = {0};
    uint8_t *seen = pool_alloc(mk.p->pool, c->g.node.n);
    for (uint32_t i = 0; i < mk.goal.n; i++) bits_order(&c->g, mk.goal.data[i].ref >> 1, seen, &stack, &order);
    uint32_t n = order.n;
    free(stack.data);
    free(order.data);
    end_path(&mk);
    hot_path_free(mk.p);
    return n;
}

void hot_path_free(HotPath *p)
{
    if (p) pool_free(p->pool);
}
