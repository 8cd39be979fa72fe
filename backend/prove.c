/* prove.c: the proof's way through the model, the norms, and the report. */
#include "prove_priv.h"
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>

/* The first reason counts. */
static void end_with(Prover *p, bool undecided, const char *fmt, va_list ap)
{
    if (p->refusal) return;
    p->refusal_line = p->line;
    p->undecided = undecided;
    if (vasprintf(&p->refusal, fmt, ap) < 0) die("out of memory");
}

bool refuse(Prover *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    end_with(p, false, fmt, ap);
    va_end(ap);
    return false;
}

bool not_shown(Prover *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    end_with(p, true, fmt, ap);
    va_end(ap);
    return false;
}

void note(Prover *p, const char *fmt, ...)
{
    char *s;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0) die("out of memory");
    va_end(ap);
    vec_push(&p->notes, pool_str(p->pool, s));
    free(s);
}

static const char *const margin_name[M_KINDS] = {"norm", "exact sum", "rounding", "gate on", "gate off", "beta", "key", "cell", "read", "decay", "logit"};

static const char *source(const Prover *p, uint32_t place)
{
    const char *s = json_string_value(json_array_get(json_object_get(p->m->manifest, "sources"), place >> FILE_SHIFT));
    return s ? s : "line";
}

/* Where in the chip. */
static const char *spot(const Margin *x)
{
    static char s[160];
    int n = x->layer < 0 ? 0 : snprintf(s, sizeof s, "layer %d: ", x->layer);
    snprintf(s + n, sizeof s - (size_t)n, "%s %u", x->tensor, x->row);
    return s;
}

/* Where in the circuit: before or after the rest of a text. */
static void print_place(const Prover *p, FILE *f, const char *before, uint32_t place, const char *after)
{
    if (place) fprintf(f, "%s%s:%u%s", before, source(p, place), place & ((1u << FILE_SHIFT) - 1), after);
}

/* The worst of its kind, tensor and layer: the latest classes are the likely ones. */
static Margin *class_of(Prover *p, const Margin *x)
{
    for (uint32_t i = p->margins.n; i-- && p->margins.data[i].layer == x->layer;) {
        Margin *m = &p->margins.data[i];
        if (m->kind == x->kind && m->tensor == x->tensor) return m;
    }
    vec_push(&p->margins, *x);
    return &p->margins.data[p->margins.n - 1];
}

static const double edge[MARGIN_BINS - 1] = {1, 1.1, 1.25, 1.5, 2, 4, 16, 256};

bool margin(Prover *p, MarginKind kind, double ratio, const char *tensor, uint32_t row, uint32_t line)
{
    Margin x = {ratio, kind, p->layer, tensor, row, line ? line : p->line}, *worst = class_of(p, &x);
    if (!(ratio >= worst->ratio)) *worst = x;
    int b = 0;
    while (b < MARGIN_BINS - 1 && ratio > edge[b]) b++;
    p->bins[kind][b]++;
    if (ratio > 1) return true;
    p->line = x.line;
    bool (*say)(Prover *, const char *, ...) = kind == M_NORM ? not_shown : refuse; /* a norm's is of the sum of the channels' bounds */
    return say(p, "%s: %s margin is %.3g", spot(&x), margin_name[kind], ratio - 1);
}

/* ---- norms ---- */

/* The factor of an RMSNorm over the stream. float32: the pilots' squares absorb the data's in every order of summation, so the factor
 * is 2^-K exactly. bfloat16: the cast snaps as long as the factor's relative error is below 2^-9. */
bool prove_norm(Prover *p, const char *name)
{
    double data = 0, least = INFINITY, all = 0, eps = p->g->eps, d = p->g->hidden;
    for (uint32_t ch = 0; ch < p->g->hidden; ch++) {
        double sq = p->pilot[ch] ? p->pilot_value[ch] * p->pilot_value[ch] : 0;
        double top = p->pilot[ch] ? 0 : fmax(fabs((double)chan_lo(p, ch)), fabs((double)chan_hi(p, ch)));
        if (sq > 0) least = fmin(least, sq);
        all += sq, data += top * top;
    }
    data *= 1 + d * 0x1p-23; /* its own roundings */
    if (!(eps > 0)) return refuse(p, "rms_norm_eps is %g", eps);
    if (p->bf16) {
        for (uint32_t ch = 0; ch < p->g->hidden; ch++)
            if (p->pilot[ch] && !holds(true, p->pilot_value[ch] / p->scale)) return refuse(p, "pilot %u is no bfloat16 number", ch);
        double error = data / (2 * all) + d * 0x1p-23 + 8 * 0x1p-23 + eps / (2 * p->scale * p->scale);
        return margin(p, M_NORM, 0x1p-9 / error, name, 0, 0);
    }
    float mean = (float)(all / d), inverse = 1 / (float)p->g->hidden;
    if ((float)all * inverse != mean) return refuse(p, "layer %d: %s: 1/%u rounds so that a mean made by it is off", p->layer, name, p->g->hidden);
    double half = fmin(ldexp(1, ilogb(least) - 24), ldexp(1, ilogb(p->scale * p->scale) - 24));
    return margin(p, M_NORM, half / fmax(data, eps), name, 0, 0);
}

/* ---- the pass ---- */
static const int32_t *debug_column(Prover *p, uint32_t layer, const char *what, uint32_t *n)
{
    char name[64];
    snprintf(name, sizeof name, "debug.layers.%u.%s", layer, what);
    const StTensor *t = st_find(p->m->file, name);
    *n = 0;
    if (!t || t->dtype != ST_I32 || t->ndim != 1) return NULL;
    int32_t *copy = pool_alloc(p->pool, t->size);
    memcpy(copy, t->data, t->size);
    *n = (uint32_t)t->shape[0];
    return copy;
}

static void layer_lines(Prover *p, uint32_t layer)
{
    uint32_t n;
    p->lines = debug_column(p, layer, "unit_line", &p->nlines);
    p->files = debug_column(p, layer, "unit_file", &n);
    if (n < p->nlines) p->files = NULL;
}

static void save_bands(Prover *p, int stage)
{
    if (!p->bands) return;
    for (uint32_t ch = 0; ch < p->g->hidden; ch++) {
        Band *b = &p->bands[(size_t)(stage + 1) * p->g->hidden + ch];
        int32_t pilot = (int32_t)p->pilot_value[ch];
        *b = p->pilot[ch] ? (Band){pilot, pilot} : (Band){chan_lo(p, ch), chan_hi(p, ch)};
    }
}

static bool pass(Prover *p)
{
    p->layer = -1;
    if (!prove_embedding(p)) return false;
    save_bands(p, -1);
    for (uint32_t i = 0; i < p->g->layers; i++) {
        const Layer *l = &p->m->layer[i];
        p->layer = (int)i, p->line = 0;
        layer_lines(p, i);
        if (!prove_norm(p, "input_layernorm")) return false;
        if (l->full ? !prove_attention(p, l) : !prove_delta(p, l)) return false;
        save_bands(p, 2 * (int)i);
        p->line = 0;
        if (!prove_norm(p, "post_attention_layernorm") || !prove_mlp(p, l)) return false;
        save_bands(p, 2 * (int)i + 1);
    }
    p->layer = -1, p->line = 0;
    return prove_norm(p, "norm") && prove_argmax(p);
}

/* ---- report ---- */
static int by_ratio(const void *a, const void *b)
{
    const Margin *x = a, *y = b;
    if (x->ratio != y->ratio) return x->ratio < y->ratio ? -1 : 1;
    return x->layer != y->layer ? x->layer - y->layer : x->row < y->row ? -1 : x->row > y->row;
}

static void histogram(const Prover *p, FILE *f)
{
    fprintf(f, "margins by kind (the number of decisions whose decisive quantity is this many times what it must be):\n  %-10s %8s", "", "all");
    static const char *const head[MARGIN_BINS] = {"refused", "to 1.1", "to 1.25", "to 1.5", "to 2", "to 4", "to 16", "to 256", "above"};
    for (int i = 0; i < MARGIN_BINS; i++) fprintf(f, " %8s", head[i]);
    fputc('\n', f);
    for (int k = 0; k < M_KINDS; k++) {
        uint32_t all = 0;
        for (int i = 0; i < MARGIN_BINS; i++) all += p->bins[k][i];
        fprintf(f, "  %-10s %8u", margin_name[k], all);
        for (int i = 0; i < MARGIN_BINS; i++) p->bins[k][i] ? fprintf(f, " %8u", p->bins[k][i]) : fprintf(f, " %8s", ".");
        fputc('\n', f);
    }
}

/* One per kind, tensor and layer, so that twenty equal ones do not hide the rest. */
static void worst_twenty(const Prover *p, FILE *f)
{
    fprintf(f, "worst margins (one per kind and tensor of a layer):\n");
    for (uint32_t i = 0; i < p->margins.n && i < 20; i++) {
        const Margin *m = &p->margins.data[i];
        fprintf(f, "  %10.4g  %-10s %s", m->ratio - 1, margin_name[m->kind], spot(m));
        print_place(p, f, " (", m->line, ")");
        fputc('\n', f);
    }
}

static void gaps(const Prover *p, FILE *f)
{
    if (!p->kind_gap) return;
    fprintf(f, "logit gap per kind of token (right less best wrong):\n");
    for (uint32_t k = 0; k < p->m->nkinds; k++)
        if (p->kind_gap[k] < INFINITY) fprintf(f, "  %-32s %g\n", p->m->kind[k].name, p->kind_gap[k]);
        else fprintf(f, "  %-32s never said\n", p->m->kind[k].name);
}

static void report(Prover *p, FILE *f)
{
    fprintf(f, "proof of %s: %s, hidden %u, layers %u, dk %u, dv %u\n", p->m->path, p->bf16 ? "bfloat16" : "float32", p->g->hidden, p->g->layers, p->g->dk, p->g->dv);
    histogram(p, f);
    worst_twenty(p, f);
    gaps(p, f);
    fprintf(f, "case splits: %llu; sums of gates that are no bits: %u\n", (unsigned long long)solver_nodes(p->s), p->wide);
    fprintf(f, "assumptions beyond numerics.md: %u\n", p->notes.n);
    for (uint32_t i = 0; i < p->notes.n; i++) fprintf(f, "  %s\n", p->notes.data[i]);
    if (p->refusal) {
        fputs(p->undecided ? "verdict: UNDECIDED: not shown: " : "verdict: REFUSED: ", f);
        print_place(p, f, "", p->refusal_line, ": ");
        fprintf(f, "%s\n", p->refusal);
    } else fprintf(f, "verdict: exact (worst margin %.4g)\n", p->margins.n ? p->margins.data[0].ratio - 1 : INFINITY);
}

static void *big(Prover *p, size_t size) { return pool_array(p->pool, p->g->hidden, size); }

bool prove_run(const Model *m, const ProveOptions *o, FILE *out, Proof *proof)
{
    Prover p = {.m = m, .g = &m->geo, .pool = pool_new(), .bf16 = m->bf16};
    if (o) p.opt = *o;
    p.s = solver_new(p.pool);
    p.pilot = big(&p, sizeof *p.pilot), p.pilot_value = big(&p, sizeof *p.pilot_value);
    p.chan = big(&p, sizeof *p.chan), p.constant = big(&p, sizeof *p.constant);
    p.read_of = big(&p, sizeof *p.read_of);
    p.head_line = pool_array(p.pool, m->geo.nv + 1, sizeof *p.head_line);
    for (uint32_t ch = 0; ch < m->geo.hidden; ch++) p.read_of[ch].abstract = p.read_of[ch].exact = NO_VAR;
    if (p.opt.bands) p.bands = calloc((size_t)(2 * m->geo.layers + 1) * m->geo.hidden, sizeof *p.bands);
    if (p.opt.bands) p.cells = calloc((size_t)m->geo.layers * m->geo.nv * m->geo.dv + 1, sizeof *p.cells);
    if (!pass(&p) && !p.refusal) die("a refusal without a reason");
    if (p.margins.n) qsort(p.margins.data, p.margins.n, sizeof *p.margins.data, by_ratio);
    if (out) report(&p, out);
    *proof = (Proof){.exact = !p.refusal, .undecided = p.undecided, .refusal = p.refusal, .assumptions = p.notes.n, .bands = p.bands, .cells = p.cells};
    proof->worst = p.margins.n ? p.margins.data[0].ratio - 1 : INFINITY;
    proof->line = p.refusal_line & ((1u << FILE_SHIFT) - 1);
    if (p.refusal_line >> FILE_SHIFT) proof->file = strdup(source(&p, p.refusal_line));
    free(p.margins.data), free(p.notes.data), free(p.counts.data), free(p.pairs.data), free(p.first_pair.data);
    solver_free(p.s);
    pool_free(p.pool);
    return proof->exact;
}

void proof_free(Proof *p)
{
    free((char *)p->refusal), free((char *)p->file);
    free(p->bands), free(p->cells);
}

bool prove_model(const Model *m, FILE *out, double *worst)
{
    Proof p;
    bool ok = prove_run(m, NULL, out, &p);
    if (worst) *worst = p.worst;
    proof_free(&p);
    return ok;
}
