/* cmd_build.c: `build` and `targets`; and the plan of a chip made again from what the chip file says. */
#include "base.h"
#include "build.h"
#include "chip.h"
#include "cli.h"
#include "prove.h"
#include <string.h>

/* The target that a base model's folder asks for. */
static const Target *target_of_base(const char *dir, uint64_t hidden, char **err)
{
    Checkpoint b;
    const Target *t = NULL;
    if (base_config(&b, dir, err)) {
        Target shape = base_target(&b);
        shape.hidden = hidden < UINT32_MAX ? (unsigned)hidden : UINT32_MAX;
        t = target_find(target_for_base(&shape));
        if (!t) fail(err, "%s: no chip can be built for its heads (their dimensions must be powers of two) with hidden size %llu (a multiple of 256 above the base model's)", dir, (unsigned long long)hidden);
    }
    checkpoint_close(&b);
    return t;
}

/* 0, or the exit status after a message. */
static int build_options(const Args *a, BuildOptions *o)
{
    const char *name = a->target ? a->target : "native";
    char *err = NULL;
    if (a->base && a->target) return usage_error("--base gives the shape: --target has no place beside it");
    if (a->hidden && !a->base) return usage_error("--hidden is for --base: other targets have their own");
    o->target = a->base ? target_of_base(a->base, a->hidden, &err) : target_find(name);
    if (a->base && !o->target) return input_error("%s", err);
    if (!o->target) return usage_error("unknown target \"%s\" (tapeout targets lists them)", name);
    if (a->payload > MAX_PAYLOAD) return usage_error("--payload: found %llu, expected at most %d", (unsigned long long)a->payload, MAX_PAYLOAD);
    o->bf16 = a->dtype ? !strcmp(a->dtype, "bf16") : o->target->bf16;
    o->vocab = a->vocab;
    o->payload = (unsigned)a->payload;
    return 0;
}

/* dir/rv32i.ckt -> rv32i.chip in the working directory. */
static const char *default_output(const char *source)
{
    const char *slash = strrchr(source, '/'), *base = slash ? slash + 1 : source, *dot = strrchr(base, '.');
    size_t n = dot && dot != base ? (size_t)(dot - base) : strlen(base);
    return xfmt("%.*s.chip", (int)n, base);
}

typedef struct {
    const char *source;
    Chip *chip;
    double worst;
    unsigned assumptions;
    const char *undecided; /* why the proof came to no end; NULL: it did */
} Verdict;

/* The proof, from what was written and nothing else. A chip whose numbers are not exact is refused; one whose logic the proof could not
 * follow is written, and the user told. */
static bool proved(const char *file, void *ctx)
{
    Verdict *v = ctx;
    Proof p;
    char *err = NULL;
    Model *m = model_open(file, &err);
    if (!m) return v->chip->error = xfmt("the chip cannot be read back: %s", err), false;
    bool ok = prove_run(m, NULL, NULL, &p);
    const char *why = ok ? NULL : xfmt("%s%s: not proved exact: %s", p.file ? p.file : v->source, p.line ? xfmt(":%u", p.line) : "", p.refusal);
    if (p.undecided) v->undecided = why, ok = true;
    else v->chip->error = why;
    v->worst = p.worst, v->assumptions = p.assumptions;
    proof_free(&p);
    model_close(m);
    return ok;
}

int cmd_build(const Args *a)
{
    BuildOptions o = { 0 };
    int bad = build_options(a, &o);
    if (bad) return bad;
    Design *d = load_design(a, true);
    if (!d) return 1;
    Build b = build_machine(circuit_optimize(d->circuit), &o);
    if (b.error) return circuit_error(a->input[0], b.where, b.error);
    Verdict v = { .source = a->input[0], .chip = b.chip };
    if (!chip_write(b.chip, a->output ? a->output : default_output(a->input[0]), a->no_prove ? NULL : proved, &v))
        return input_error("%s", b.chip->error);
    if (v.undecided) fprintf(stderr, "tapeout: warning: %s\ntapeout: the chip is written; `run --check` compares a run with the circuit\n", v.undecided);
    if (a->quiet) return 0;
    build_report(&b, stdout);
    if (a->no_prove) puts("proof: none was asked for");
    else if (v.undecided) puts("proof: none was found");
    else printf("proof: exact in every run (worst margin %.4g, assumptions: %u; tapeout prove prints them)\n", v.worst, v.assumptions);
    return 0;
}

int dump_plan(const Args *a, Circuit *c)
{
    BuildOptions o = { 0 };
    int bad = build_options(a, &o);
    if (bad) return bad;
    Build b = build_plan(circuit_optimize(c), &o);
    if (b.error) return circuit_error(a->input[0], b.where, b.error);
    plan_print(b.plan, stdout);
    return 0;
}

/* Bytes of memory, written one by one, that a layer above the lowest holds: a byte has a head of its own, four share a row of 32 bits. */
static uint64_t layer_bytes(const Target *t) { return (uint64_t)t->value_heads / 4 * t->dk * 4; }

int cmd_targets(const Args *a)
{
    (void)a;
    printf("%-19s %-14s %-8s %6s %6s %4s %4s %4s %4s %9s %-8s  %s\n", "name", "family", "dtype", "hidden", "mlp", "kh", "vh", "dk", "dv", "ram/layer", "exact", "about");
    for (const Target *t = targets; t < targets + ntargets; t++) {
        const char *size[5];
        uint64_t n[5] = { t->hidden, t->mlp, t->key_heads, t->value_heads, layer_bytes(t) };
        for (int i = 0; i < 5; i++) size[i] = n[i] ? xfmt("%llu", (unsigned long long)n[i]) : "any";
        printf("%-19s %-14s %-8s %6s %6s %4s %4s %4u %4u %9s %-8s  %s\n", t->name, t->family, t->bf16 ? "bfloat16" : "float32", size[0], size[1], size[2],
               size[3], t->dk, t->dv, size[4], "f32 bf16", t->about);
    }
    return 0;
}

struct PlanSim *plan_again(const Recipe *r, const Image *image, const char **err)
{
    BuildOptions o = { .target = target_find(r->target), .bf16 = r->bf16, .vocab = r->vocab, .payload = r->payload, .plan_only = true };
    if (!r->netlist) return *err = "there is no netlist in it", NULL;
    if (!o.target) return *err = xfmt("target \"%s\" is unknown here", r->target), NULL;
    Circuit *c = circuit_parse(r->netlist, err);
    if (!c) return *err = xfmt("its netlist: %s", *err), NULL;
    Build b = build_machine(c, &o);
    if (b.error) return *err = b.error, NULL;
    return plansim_new(b.plan, image);
}
