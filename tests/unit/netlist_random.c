/* netlist_random.c: random circuits from a seed, made op by op without folding. The text form must read back as the
 * same text, and the circuit read back, the circuit folded (dce alone) and the optimised circuit must do what the
 * first one does: the same events, `retire` and states, for random states and host inputs over some steps. Every
 * value of the first circuit is also evaluated both ways that the interpreter has: as code (watched) and again
 * after the step.
 *   netlist_random [FIRST_SEED [COUNT]]     one seed with its text: netlist_random SEED 1 */
#include "../../frontend/passes.h"
#include "netlistgen.h"
#include <sys/mman.h>

enum { COUNT = 3000, BATCH = 250, STARTS = 6, STEPS = 5 };

enum { MADE, READ_BACK, FOLDED, OPTIMISED, WATCHED, VARIANTS };

/* What all circuits of a run amount to, shared with the child processes. */
typedef struct {
    uint64_t seed, reads, merged, ops, optimised;
} Totals;

static Totals *totals;
/* ---- comparison ---- */

static char *printed(const Circuit *c)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f) die("out of memory");
    circuit_print(c, f);
    fclose(f);
    return text;
}

static Circuit *read_back(const Circuit *c)
{
    const char *err, *text = printed(c);
    Circuit *d = circuit_parse(text, &err);
    if (!d) die("its text does not read back: %s", err);
    if (strcmp(text, printed(d))) die("its text reads back as another one");
    return d;
}

static const char *const variant_name[VARIANTS] = {"as made", "read back", "folded", "optimised", "watched"};

static void set_all(Sim **s, const Circuit *c, bool host_only)
{
    for (uint32_t i = 0; i < c->states.n; i++) {
        const State *st = &c->states.data[i];
        if (host_only && st->kind != ST_HOST) continue;
        for (uint32_t r = 0; r < st->rows; r++) {
            uint64_t v = st->has_hard && st->hard_row == r ? st->hard_value : random_value(st->width);
            for (int k = 0; k < VARIANTS; k++) sim_set(s[k], i, r, v);
        }
    }
}

typedef struct {
    const Event *event;
    uint32_t n;
    bool retired;
} Outcome;

static void compare_events(const Circuit *c, const Circuit *d, const Outcome *x, const Outcome *y, const char *who)
{
    if (x->n != y->n || x->retired != y->retired) die("%s: %u events, not %u", who, y->n, x->n);
    for (uint32_t i = 0; i < x->n; i++) {
        const Event *e = &x->event[i], *f = &y->event[i];
        const char *a = c->emits.data[e->emit].name, *b = d->emits.data[f->emit].name;
        if (e->role != f->role || a != b || e->payload != f->payload)
            die("%s: event %s %llx, not %s %llx", who, b, (unsigned long long)f->payload, a,
                (unsigned long long)e->payload);
    }
}

static void compare_states(const Circuit *c, const Sim *x, const Sim *y, const char *who)
{
    for (uint32_t i = 0; i < c->states.n; i++)
        for (uint32_t r = 0; r < c->states.data[i].rows; r++)
            if (sim_get(x, i, r) != sim_get(y, i, r))
                die("%s: %s[%u] is %llx, not %llx", who, c->states.data[i].name, r,
                    (unsigned long long)sim_get(y, i, r), (unsigned long long)sim_get(x, i, r));
}

static void compare_values(const Circuit *c, const Sim *s, const Sim *watched)
{
    for (Ref r = 1; r < c->ops.n; r++)
        if (sim_value(s, r) != sim_value(watched, r))
            die("value %u is %llx as code, %llx evaluated again", r, (unsigned long long)sim_value(watched, r),
                (unsigned long long)sim_value(s, r));
}

static void compare_step(Circuit **c, Sim **s)
{
    Outcome out[VARIANTS];
    for (int k = 0; k < VARIANTS; k++) {
        out[k].n = sim_step(s[k], &out[k].event, &out[k].retired);
        compare_events(c[MADE], c[k], &out[MADE], &out[k], variant_name[k]);
    }
    compare_values(c[MADE], s[MADE], s[WATCHED]);
}

/* Reads of large memories: what the `ports` pass is to reduce. */
static unsigned count_reads(const Circuit *c)
{
    unsigned n = 0;
    for (Ref r = 1; r < c->ops.n; r++) n += op_at(c, r)->kind == OP_READ && c->states.data[op_at(c, r)->imm].rows > 64;
    return n;
}

static void test_seed(uint64_t seed, bool show)
{
    Circuit *c[VARIANTS];
    c[MADE] = c[WATCHED] = random_circuit(seed, false);
    if (show) circuit_print(c[MADE], stdout);
    c[READ_BACK] = read_back(c[MADE]);
    c[FOLDED] = pass_dce(c[MADE]);
    c[OPTIMISED] = circuit_optimize(c[READ_BACK]);
    read_back(c[OPTIMISED]);
    if (show) circuit_print(c[FOLDED], stdout), circuit_print(c[OPTIMISED], stdout);
    unsigned reads = count_reads(c[FOLDED]);
    totals->reads += reads, totals->merged += reads - count_reads(c[OPTIMISED]);
    totals->ops += c[FOLDED]->ops.n, totals->optimised += c[OPTIMISED]->ops.n;
    Sim *s[VARIANTS];
    for (int k = 0; k < VARIANTS; k++) {
        s[k] = sim_new(c[k], NULL);
        bool all = k == WATCHED || (k >= FOLDED && seed % 2);
        for (Ref r = 1; all && r < c[k]->ops.n; r++) sim_watch(s[k], r); /* no PMUX escapes, needed or not */
    }
    for (int start = 0; start < STARTS; start++) {
        if (start) set_all(s, c[MADE], false);
        for (int step = 0; step < STEPS; step++) {
            set_all(s, c[MADE], true);
            compare_step(c, s);
        }
        for (int k = 1; k < VARIANTS; k++) compare_states(c[MADE], s[MADE], s[k], variant_name[k]);
    }
    for (int k = 0; k < VARIANTS; k++) sim_free(s[k]);
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : COUNT;
    totals = mmap(NULL, sizeof *totals, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (totals == MAP_FAILED) die("out of memory");
    bool well = true;
    for (uint64_t i = 0; i < count; i += BATCH)
        well &= run_batch(test_seed, &totals->seed, first + i, count - i < BATCH ? count - i : BATCH, count == 1);
    printf("%llu reads of large memories, %llu merged; %llu values, %llu optimised\n",
           (unsigned long long)totals->reads, (unsigned long long)totals->merged, (unsigned long long)totals->ops,
           (unsigned long long)totals->optimised);
    if (count >= COUNT && totals->merged < count / 100) well = false, printf("too few merges to have tested them\n");
    return well ? 0 : 1;
}
