/* graft_rows.c: every row of a chip and a base model in one. Columns and rows of the hidden dimension: [0, narrow) are the base model's, the chip's
 * used channels follow, then the copies of what the output head reads, the mark and the epsilon channels (graft.c). */
#include "graft.h"
#include <math.h>

#define UNIT ((float)GATE) /* a handover unit's gate: silu(256) = 256 in every dtype */
#define IDLE_A_LOG (-20.0f) /* with dt_bias: decay 1, as in heads.c */
#define IDLE_DT_BIAS (-100.0f)

int graft_hidden_dim(const FamilyTensor *t, const Geometry *g)
{
    Geometry other = *g;
    uint64_t a[MOST_DIMS], b[MOST_DIMS];
    other.hidden++;
    t->shape(g, a);
    t->shape(&other, b);
    return a[0] != b[0] ? 0 : a[1] != b[1] ? 1 : -1;
}

float graft_norm(const Graft *g, float w) { return cast(g->base->bf16, (float)((1.0 + (double)w) * g->gain - 1.0)); }

/* v * 2^by, which must lose nothing. */
static float scaled(const Graft *g, const Item *t, float v, int by)
{
    float s = ldexpf(v, by);
    if (ldexpf(s, -by) != v || (s != 0 && fabsf(s) < 0x1p-126f))
        if (!*g->x.err) fail(g->x.err, "%s: %g times 2^%d is no normal number of its type", t->name, (double)v, by);
    return s;
}

static int log2_scale(const Graft *g) { return ilogbf(g->scale); }

/* A row in the chip's channels, moved to their places; scratch is cleared. */
static void move_row(const Graft *g, float *out)
{
    for (uint32_t i = 0; i < g->nused; i++) out[g->narrow + i] = g->scratch[g->used[i]];
    memset(g->scratch, 0, g->wide * sizeof *g->scratch);
}

/* ---- the chip's layers ---- */
static bool chip_row(const Export *x, const Item *t, uint64_t r, float *out)
{
    const Graft *g = (const Graft *)x;
    int hidden = graft_hidden_dim(t->stock, &x->m->geo);
    uint64_t shape[MOST_DIMS];
    t->stock->shape(&x->m->geo, shape);
    if (hidden == 0) { /* rows are channels */
        if (r < g->narrow || r >= g->narrow + g->nused) return false;
        return export_stock_row(x, t, g->used[r - g->narrow], out);
    }
    if (r >= shape[0] * (t->dims == 3 ? shape[1] : 1)) return false; /* the base model's MLP is wider */
    if (hidden < 0) return export_stock_row(x, t, r, out);
    bool any = export_stock_row(x, t, r, g->scratch);
    if (any) move_row(g, out);
    if (!strcmp(t->stock->name, "linear_attn.in_proj_b.weight")) out[g->mark] = -g->kill, any = true;
    return any;
}

/* ---- the layer between: erases the chip's channels, leaves its answer small, and writes the stand-in token ---- */
static bool erase_row(const Graft *g, const Item *t, uint64_t r, float *out)
{
    uint32_t pilot = g->place[g->x.m->pilot[0]], copies = g->narrow + g->nused;
    float value = g->x.m->pilot_value[0]; /* a power of two */
    int by = -ilogbf(UNIT) - ilogbf(value) - g->x.m->pilot_scale;
    if (r < g->narrow) out[pilot] = scaled(g, t, g->stand_row[r], log2_scale(g) + by);
    else if (r < copies) out[r - g->narrow] = -1 / UNIT;
    else if (r < copies + g->ncopies) out[g->place[g->copied[r - copies]]] = ldexpf(1 / UNIT, LOG2_SHRINK);
    else if (r >= g->eps && r < g->eps + EPS_CHANNELS) out[pilot] = scaled(g, t, g->eps_value[r - g->eps], by);
    else return false;
    return true;
}

static bool handover_row(const Export *x, const Item *t, uint64_t r, float *out)
{
    const Graft *g = (const Graft *)x;
    const char *name = t->stock->name;
    if (!strcmp(name, "linear_attn.A_log")) *out = IDLE_A_LOG;
    else if (!strcmp(name, "linear_attn.dt_bias")) *out = IDLE_DT_BIAS;
    else if (!strcmp(name, "linear_attn.norm.weight")) *out = 1;
    else if (!strcmp(name, "mlp.down_proj.weight")) return erase_row(g, t, r, out);
    else if (r >= g->nused) return false;
    else if (!strcmp(name, "mlp.gate_proj.weight")) out[g->narrow + g->place[x->m->pilot[0]]] = UNIT / x->m->pilot_value[0];
    else if (!strcmp(name, "mlp.up_proj.weight")) out[g->narrow + r] = ldexpf(1, x->m->pilot_scale);
    else return false;
    return true;
}

/* ---- the base model's tensors ---- */
/* False when all are zero. */
static bool read_scaled(const Graft *g, const Item *t, uint64_t r, uint64_t n, int by, float *out)
{
    bool any = false;
    st_read(t->from, r * n, n, out);
    for (uint64_t i = 0; i < n; i++) any |= out[i] != 0, out[i] = scaled(g, t, out[i], by);
    return any;
}

static bool norm_row(const Export *x, const Item *t, uint64_t r, float *out)
{
    const Graft *g = (const Graft *)x;
    if (r >= g->narrow) return false;
    st_read(t->from, r, 1, out);
    *out = graft_norm(g, *out);
    return *out != 0;
}

static bool base_row(const Export *x, const Item *t, uint64_t r, float *out)
{
    const Graft *g = (const Graft *)x;
    int hidden = graft_hidden_dim(t->stock, &g->base->geo);
    if (hidden == 0 && t->dims == 1) return norm_row(x, t, r, out);
    if (hidden == 0 && r >= g->narrow) return false;
    return read_scaled(g, t, r, hidden == 1 ? g->narrow : t->cols, hidden == 1 ? -g->shift : hidden == 0 ? log2_scale(g) : 0, out);
}

static bool embed_row(const Export *x, const Item *t, uint64_t r, float *out)
{
    const Graft *g = (const Graft *)x;
    if (r >= g->first) {
        head_embed(x->m, (uint32_t)(r - g->first), g->scratch);
        move_row(g, out);
        return true;
    }
    read_scaled(g, t, r, g->narrow, log2_scale(g), out);
    out[g->mark] = ldexpf(1, LOG2_MARK);
    for (unsigned i = 0; i < EPS_CHANNELS; i++) out[g->eps + i] = g->eps_value[i];
    return true;
}

static bool head_row(const Export *x, const Item *t, uint64_t r, float *out)
{
    const Graft *g = (const Graft *)x;
    if (r < g->first) return read_scaled(g, t, r, g->narrow, -g->shift, out);
    export_head_row(x, t, r - g->first, g->scratch);
    for (uint32_t i = 0; i < g->ncopies; i++)
        out[g->narrow + g->nused + i] = scaled(g, t, g->scratch[g->copied[i]], LOG2_LOUD - x->m->pilot_scale);
    memset(g->scratch, 0, g->wide * sizeof *g->scratch);
    out[g->mark] = -ldexpf(1, LOG2_HUSH);
    return true;
}

/* ---- the list ---- */
static void forget(const Item *t) { st_forget(t->from); }

static Item layer_item(const Graft *g, const FamilyTensor *s, uint32_t number)
{
    Geometry geo = g->base->geo;
    Item t = { .name = xfmt("model.layers.%u.%s", number, s->name), .dims = s->dims, .stock = s, .half = g->base->bf16 };
    geo.hidden = g->wide;
    s->shape(&geo, t.shape);
    return t;
}

static void add_layer(const Graft *g, Items *w, uint32_t number)
{
    uint32_t before = g->chip_layers + 1;
    bool full = number >= before && g->base->full[number - before];
    for (unsigned i = 0; i < nfamily_tensors; i++) {
        const FamilyTensor *s = &family_tensors[i];
        if (!(s->families & g->x.family->bit) || !(s->scope & (full ? IN_FULL : IN_LINEAR))) continue;
        Item t = layer_item(g, s, number);
        t.layer = number < before ? number : number - before;
        t.row = number < g->chip_layers ? chip_row : number < before ? handover_row : base_row;
        if (number >= before) {
            const StTensor *from = checkpoint_tensor(g->base, xfmt("model.layers.%u.%s", number - before, s->name));
            bool norm = graft_hidden_dim(s, &g->base->geo) == 0 && s->dims == 1;
            t.from = from, t.done = forget;
            if (!norm) t.half = from->dtype == ST_BF16;
        }
        export_add(w, t);
    }
}

void graft_items(const Graft *g, Items *w)
{
    const uint64_t vocab = g->x.vocab, wide = g->wide;
    const StTensor *embed = checkpoint_tensor(g->base, "model.embed_tokens.weight"), *head = g->base->tied ? embed : checkpoint_tensor(g->base, "lm_head.weight");
    const bool half = g->base->bf16;
    export_add(w, (Item){ .name = xfmt("model.embed_tokens.weight"), .dims = 2, .shape = { vocab, wide }, .half = half, .row = embed_row, .from = embed, .done = forget });
    for (uint32_t l = 0; l < g->chip_layers + 1 + g->base->geo.layers; l++) add_layer(g, w, l);
    export_add(w, (Item){ .name = xfmt("model.norm.weight"), .dims = 1, .shape = { wide }, .half = half, .row = norm_row, .from = checkpoint_tensor(g->base, "model.norm.weight") });
    export_add(w, (Item){ .name = xfmt("lm_head.weight"), .dims = 2, .shape = { vocab, wide }, .half = half, .row = head_row, .from = head, .done = forget });
}
