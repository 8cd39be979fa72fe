/* netlistgen.h: random circuits from a seed, made op by op without folding: every kind of op and state, forward states, lanes, hard-wired
 * rows, reads that exclude each other. For the tests that compare levels of the compilation. */
#ifndef TAPEOUT_NETLISTGEN_H
#define TAPEOUT_NETLISTGEN_H
#include "../../frontend/ir.h"
#include "random64.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned below(unsigned n) { return (unsigned)(random64() % n); }
static bool chance(unsigned percent) { return below(100) < percent; }

/* Full range, or a value at an end, or a small one: where mistakes are. */
static uint64_t random_value(unsigned width)
{
    switch (below(4)) {
    case 0: return random64() & mask64(width);
    case 1: return below(4) & mask64(width);
    case 2: return (0 - (uint64_t)below(3)) & mask64(width);
    default: return 1ull << below(width);
    }
}

/* ---- states ---- */

static unsigned random_width(void)
{
    static const uint8_t often[] = {1, 1, 2, 3, 5, 8, 8, 16, 32, 64};
    return chance(80) ? often[below(sizeof often)] : 1 + below(64);
}

/* What the language makes of states: large memories, and read-only ones in attention. */
static void as_in_a_machine(State *s)
{
    if (s->kind == ST_MEM && chance(20)) s->rows = 200 + below(1200);
    if (s->kind == ST_REG || s->kind == ST_HOST || chance(88)) return;
    s->home = HOME_ATTENTION;
    s->forward = s->has_hard = false;
    s->lane = s->width;
}

static State random_state(unsigned i, bool hosts)
{
    State s = {.kind = chance(40) ? ST_REG : (StateKind)below(hosts ? 4 : 3), .width = random_width(), .rows = 1};
    s.name = xfmt("s%u", i);
    s.name = intern(s.name, strlen(s.name));
    if (s.kind == ST_FILE) s.rows = 1 + below(20);
    if (s.kind == ST_MEM) s.rows = chance(80) ? 65 + below(100) : 1 + below(64);
    s.lane = s.width % 4 == 0 && s.width / 4 <= 64 && chance(50) ? s.width / (chance(50) ? 4 : 2) : s.width;
    if (s.kind != ST_HOST && chance(25)) {
        s.has_hard = true;
        s.hard_row = below(s.rows);
        s.hard_value = random_value(s.width);
    }
    s.forward = s.kind != ST_HOST && chance(20);
    if (!hosts) as_in_a_machine(&s);
    if (chance(30) || s.home == HOME_ATTENTION) {
        s.init = INIT_ROWS;
        s.nrow_init = 1 + below(s.rows);
        s.row_init = xalloc(s.nrow_init * sizeof *s.row_init);
        for (uint32_t r = 0; r < s.nrow_init; r++) s.row_init[r] = random_value(s.width);
    }
    return s;
}

/* ---- values ---- */

/* `rank` of a value: 1 + the highest forward state it reads, so that no forward write depends on its own READ. */
static struct {
    Circuit *c;
    VEC(uint32_t) rank;
    uint32_t limit; /* pick() takes values of at most this rank */
} g;

static Ref put(OpKind kind, unsigned width, uint64_t imm, unsigned n, const Ref *args)
{
    const char *bad = op_check(g.c, kind, width, imm, n, args);
    if (bad) die("generated %s: %s", op_name[kind], bad);
    Op op = {.kind = (uint8_t)kind, .width = (uint8_t)width, .nargs = n, .imm = imm};
    uint32_t rank = kind == OP_READ && g.c->states.data[imm].forward ? (uint32_t)imm + 1 : 0;
    for (unsigned i = 0; i < n; i++)
        if (g.rank.data[args[i]] > rank) rank = g.rank.data[args[i]];
    vec_push(&g.rank, rank);
    return ir_raw(g.c, &op, args, false);
}

static Ref put1(OpKind kind, unsigned width, uint64_t imm, Ref a) { return put(kind, width, imm, 1, &a); }
static Ref put2(OpKind kind, unsigned width, Ref a, Ref b) { return put(kind, width, 0, 2, (Ref[]){a, b}); }

/* Any value, more often a recent one. */
static Ref any_value(void)
{
    for (int tries = 0; tries < 40; tries++) {
        uint32_t n = g.c->ops.n - 1, span = chance(50) && n > 12 ? 12 : n;
        Ref r = n ? g.c->ops.n - 1 - below(span) : 0;
        if (r && g.rank.data[r] <= g.limit && (op_at(g.c, r)->kind != OP_CONST || chance(5))) return r;
    }
    return put(OP_CONST, 8, random64() & 255, 0, NULL);
}

/* A value of that width: an existing one, a constant, or an existing one cut or widened. */
static Ref pick(unsigned width)
{
    for (int tries = 0; tries < 25; tries++) {
        Ref r = any_value();
        if (op_at(g.c, r)->width == width) return r;
    }
    if (chance(4)) return put(OP_CONST, width, random_value(width), 0, NULL);
    Ref r = any_value();
    unsigned w = op_at(g.c, r)->width;
    if (w == width) return r;
    if (w > width) return put1(OP_SLICE, width, chance(60) ? 0 : below(w - width + 1), r);
    return put1(chance(20) ? OP_ZEXT : OP_SEXT, width, 0, r);
}

/* A bit that is likely to be independent of the others: long conjunctions are soon constant. */
static Ref bit(void)
{
    for (int tries = 0; tries < 8; tries++) {
        Ref r = 1 + below(g.c->ops.n > 1 ? g.c->ops.n - 1 : 1);
        if (r >= g.c->ops.n || g.rank.data[r] > g.limit || op_at(g.c, r)->kind != OP_READ) continue;
        unsigned w = op_at(g.c, r)->width;
        return w == 1 ? r : put1(OP_SLICE, 1, below(w < 3 ? w : 3), r);
    }
    return pick(1);
}

static Ref condition(void)
{
    unsigned w = 1 + below(3);
    switch (below(8)) {
    case 0: return put2(OP_EQ, 1, pick(w), put(OP_CONST, w, random_value(w), 0, NULL));
    case 1: return put1(OP_NOT, 1, 0, bit());
    case 2: return put2(OP_AND, 1, bit(), bit());
    case 3: return put2(OP_OR, 1, bit(), pick(1));
    case 4: return pick(1);
    default: return bit();
    }
}

static Ref read_state(uint32_t s)
{
    const State *st = &g.c->states.data[s];
    if (st->kind == ST_REG || st->kind == ST_HOST) return put(OP_READ, st->width, s, 0, NULL);
    unsigned w = clog2(st->rows) ? clog2(st->rows) : 1;
    return put1(OP_READ, st->width, s, pick(w));
}

static uint32_t readable_state(void)
{
    uint32_t s = below(g.c->states.n);
    for (int i = 0; i < 20 && g.c->states.data[s].forward && s + 1 > g.limit; i++) s = below(g.c->states.n);
    return s;
}

/* Conditions that exclude each other as functions of any values: a decoder, a chain of priorities, or either under
 * a guard. */
static unsigned exclusive(Ref *cond)
{
    unsigned n = 2 + below(4);
    Ref x = pick(3), rest = condition();
    unsigned first = below(8);
    bool decoder = chance(50), guarded = chance(40);
    for (unsigned i = 0; i < n; i++) {
        if (decoder) {
            cond[i] = put2(OP_EQ, 1, x, put(OP_CONST, 3, (first + i) & 7, 0, NULL));
            if (chance(30)) cond[i] = put2(OP_AND, 1, cond[i], condition());
        } else {
            Ref own = condition();
            cond[i] = put2(OP_AND, 1, rest, own);
            rest = put2(OP_AND, 1, rest, put1(OP_NOT, 1, 0, own));
        }
    }
    Ref guard = guarded ? condition() : 0;
    for (unsigned i = 0; guarded && i < n; i++) cond[i] = put2(OP_AND, 1, guard, cond[i]);
    return n;
}

/* Arms that exclude each other for a reason that no pass sees, used where one of the reasons is known. */
static Ref opaque_pmux(unsigned width)
{
    Ref a = pick(8), b = pick(8), less = put2(OP_ULT, 1, a, b), more = put2(OP_ULT, 1, b, a);
    Ref arm[4] = {put2(OP_AND, 1, less, bit()), pick(width), put2(OP_AND, 1, more, bit()), pick(width)};
    return put(OP_MUX, width, 0, 3, (Ref[]){chance(50) ? less : more, put(OP_PMUX, width, 0, 4, arm), pick(width)});
}

static Ref pmux(unsigned width)
{
    Ref cond[8], arm[16];
    if (chance(15)) return opaque_pmux(width);
    unsigned n = exclusive(cond);
    for (unsigned i = 0; i < n; i++) {
        arm[2 * i] = cond[i];
        arm[2 * i + 1] = pick(width);
    }
    return put(OP_PMUX, width, 0, 2 * n, arm);
}

/* Two reads of one memory, each in its own arm. */
static Ref two_reads(void)
{
    for (uint32_t s = 0; s < g.c->states.n; s++) {
        const State *st = &g.c->states.data[s];
        if (st->kind != ST_MEM || (st->forward && s + 1 > g.limit)) continue;
        Ref cond = condition(), x = read_state(s), y = read_state(s);
        if (chance(50)) x = put2(OP_ADD, st->width, x, pick(st->width));
        return put(OP_MUX, st->width, 0, 3, (Ref[]){cond, x, y});
    }
    return any_value();
}

static Ref shift_amount(void)
{
    return chance(40) ? put(OP_CONST, 7, below(80), 0, NULL) : pick(random_width());
}

static Ref random_op(void)
{
    static const uint8_t plain[] = {OP_ADD, OP_SUB, OP_MUL, OP_AND, OP_OR, OP_XOR};
    static const uint8_t shifts[] = {OP_SHL, OP_LSHR, OP_ASHR}, compares[] = {OP_EQ, OP_ULT, OP_SLT};
    unsigned w = random_width();
    switch (below(16)) {
    case 0: case 1: return put2(plain[below(sizeof plain)], w, pick(w), pick(w));
    case 2: return put2(shifts[below(sizeof shifts)], w, pick(w), shift_amount());
    case 3: return put2(compares[below(sizeof compares)], 1, pick(w), pick(w));
    case 4: case 5: return put(OP_MUX, w, 0, 3, (Ref[]){condition(), pick(w), pick(w)});
    case 6: case 7: return pmux(w);
    case 8: w = 1 + below(32); return put2(OP_CAT, w + w / 2 + 1, pick(w), pick(w / 2 + 1));
    case 9: return put1(OP_NOT, w, 0, pick(w));
    case 10: return pick(w);
    case 11: return two_reads();
    case 12: return read_state(readable_state());
    default: return condition();
    }
}

/* ---- writes and emits ---- */

static void random_write(uint32_t s)
{
    const State *st = &g.c->states.data[s];
    g.limit = st->forward ? s : g.c->states.n;
    Write w = {.state = s, .en = condition()};
    if (chance(40)) w.en = put2(OP_AND, 1, w.en, condition());
    if (st->kind != ST_REG) w.index = pick(clog2(st->rows) ? clog2(st->rows) : 1);
    w.data = chance(30) ? pmux(st->width) : pick(st->width);
    if (st->lane != st->width) w.lanes = pick(st->width / st->lane);
    vec_push(&g.c->writes, w);
}

/* The host's byte, 0x100 | byte or 0, as an `input` of the language has it. */
static State host_state(void) { return (State){.kind = ST_HOST, .width = 9, .lane = 9, .rows = 1, .name = intern("input", 5)}; }

static void random_take(uint32_t host)
{
    Emit e = {.role = EMIT_TAKE, .name = intern("input", 5), .state = host, .en = condition()};
    vec_push(&g.c->emits, e);
}

static void random_emit(unsigned i, bool seldom)
{
    static const EmitRole roles[] = {EMIT_OUTPUT, EMIT_EXIT, EMIT_FAULT};
    Emit e = {.role = roles[below(3)], .name = xfmt("e%u", i), .en = condition()};
    e.name = intern(e.name, strlen(e.name));
    for (int k = 0; k < 3 && seldom && e.role != EMIT_OUTPUT; k++) e.en = put2(OP_AND, 1, e.en, condition());
    if (e.role == EMIT_FAULT) e.message = "a fault";
    if (e.role != EMIT_FAULT && chance(80)) e.payload = chance(40) ? pmux(8) : pick(8);
    vec_push(&g.c->emits, e);
}

/* With `machine` what a compiled circuit may be: no host states (they come with inputs), every step retires (only loops have others), and
 * few steps end the run. */
static Circuit *random_circuit(uint64_t seed, bool machine)
{
    rng = seed * 0xd1342543de82ef95ull + 1;
    memset(&g, 0, sizeof g);
    g.c = circuit_new("random");
    vec_push(&g.rank, 0);
    unsigned nstates = 4 + below(6);
    bool input = machine && chance(25);
    for (unsigned i = 0; i < nstates; i++) vec_push(&g.c->states, i == 0 && input ? host_state() : random_state(i, !machine));
    g.limit = chance(30) ? nstates : below(nstates);
    for (uint32_t i = 0; i < nstates; i++)
        if (g.c->states.data[i].kind == ST_REG || g.c->states.data[i].kind == ST_HOST) read_state(i);
    for (unsigned n = 20 + below(100); n > 0; n--) {
        random_op();
        if (chance(20)) g.limit = below(nstates + 1);
    }
    for (uint32_t i = 0; i < nstates; i++)
        if (g.c->states.data[i].kind != ST_HOST && g.c->states.data[i].home != HOME_ATTENTION && chance(80)) random_write(i);
    g.limit = nstates;
    for (unsigned n = 1 + below(4); n > 0; n--) random_emit(n, machine);
    if (input) random_take(0);
    g.c->retire = machine ? put(OP_CONST, 1, 1, 0, NULL) : condition();
    const char *bad = circuit_check(g.c);
    if (bad) die("generated: %s", bad);
    return g.c;
}

/* ---- batches ---- */

/* A process per batch: what circuits leave in memory goes with it, and a `die` costs only one batch. *seed is shared memory. */
static bool run_batch(void (*test)(uint64_t seed, bool show), uint64_t *seed, uint64_t first, uint64_t count, bool show)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        for (uint64_t i = 0; i < count; i++) test(*seed = first + i, show);
        fflush(stdout);
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) die("fork failed");
    if (status) printf("seed %llu fails\n", (unsigned long long)*seed);
    return !status;
}
#endif
