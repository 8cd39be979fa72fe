/* unit/graft.c: a chip in front of a small base model (another machine's export), tensor by tensor: what the base model's became, that text holds
 * nothing of the chip's and the chip nothing of the base's, and that no channel has two uses. */
#include "../../backend/graft.h"
#include "folder.h"
#include <jansson.h>

static float *row_of(const StTensor *t, uint64_t row)
{
    uint64_t cols = t->ndim == 3 ? t->shape[2] : t->ndim == 2 ? t->shape[1] : 1;
    float *out = xalloc(cols * sizeof *out + 1);
    st_read(t, row * cols, cols, out);
    return out;
}

typedef struct {
    Checkpoint base, out;
    uint32_t first_layer, d, wide;
    double gain;
} Pair;

static uint64_t rows_of(const StTensor *t) { return t->shape[0] * (t->ndim == 3 ? t->shape[1] : 1); }

/* Row r of a tensor of the result against the base model's: factor times it in the first `n` columns, zeros after. */
static void same_row(const char *name, const StTensor *a, const StTensor *b, uint64_t r, uint64_t n, uint64_t cols, float factor)
{
    float *x = row_of(a, r), *y = row_of(b, r);
    for (uint64_t i = 0; i < cols; i++) CHECK(y[i] == (i < n ? x[i] * factor : 0), "%s row %llu column %llu", name, (unsigned long long)r, (unsigned long long)i);
}

static void layer_tensor(Pair *p, uint32_t l, const FamilyTensor *s, float scale, float shrink)
{
    char *name = xfmt("model.layers.%u.%s", l, s->name);
    const StTensor *a = checkpoint_tensor(&p->base, name), *b = checkpoint_tensor(&p->out, xfmt("model.layers.%u.%s", l + p->first_layer, s->name));
    int hidden = graft_hidden_dim(s, &p->base.geo);
    uint64_t rows = rows_of(a), cols = a->ndim == 1 ? 1 : a->shape[a->ndim - 1], wide = hidden == 1 ? p->wide : cols;
    bool norm = hidden == 0 && s->dims == 1;
    for (uint64_t r = 0; r < rows && !norm; r += 7) same_row(name, a, b, r, cols, wide, hidden == 1 ? shrink : hidden == 0 ? scale : 1);
    for (uint64_t r = 0; r < rows && norm; r++) {
        double w = *row_of(a, r), y = *row_of(b, r);
        CHECK(fabs((1 + y) - (1 + w) * p->gain) <= 1e-6 * p->gain, "%s[%llu]: gain %g for %g", name, (unsigned long long)r, 1 + y, 1 + w);
    }
    for (uint64_t r = rows; r < rows_of(b); r += 5) CHECK(*row_of(b, r) == 0, "%s row %llu", name, (unsigned long long)r);
}

/* The chip's layers read and write its own channels only, and beta reads the mark. */
static void chip_layers(Pair *p, uint32_t mark)
{
    for (uint32_t l = 0; l + 1 < p->first_layer; l++) {
        static const char *const in[] = { "linear_attn.in_proj_qkv", "linear_attn.in_proj_z", "mlp.gate_proj", "mlp.up_proj", "linear_attn.in_proj_b" };
        for (unsigned k = 0; k < 5; k++) {
            const StTensor *t = checkpoint_tensor(&p->out, xfmt("model.layers.%u.%s.weight", l, in[k]));
            for (uint64_t r = 0; r < t->shape[0]; r++) {
                float *x = row_of(t, r);
                for (uint32_t i = 0; i < p->d; i++) CHECK(x[i] == 0, "layer %u reads the base model's channel %u", l, i);
                CHECK(k == 4 ? x[mark] < 0 : x[mark] == 0, "layer %u, %s, row %llu: the mark", l, in[k], (unsigned long long)r);
            }
        }
        const StTensor *down = checkpoint_tensor(&p->out, xfmt("model.layers.%u.mlp.down_proj.weight", l));
        for (uint64_t r = 0; r < p->wide; r++)
            for (uint64_t i = 0; (r < p->d || r >= mark) && i < down->shape[1]; i++) CHECK(row_of(down, r)[i] == 0, "layer %u writes channel %llu", l, (unsigned long long)r);
    }
}

static void vocabulary(Pair *p, const Model *m, uint32_t mark, float scale, float shrink)
{
    const StTensor *a = checkpoint_tensor(&p->base, "model.embed_tokens.weight"), *b = checkpoint_tensor(&p->out, "model.embed_tokens.weight");
    const StTensor *h = checkpoint_tensor(&p->base, "lm_head.weight"), *g = checkpoint_tensor(&p->out, "lm_head.weight");
    for (uint32_t t = 0; t < p->base.geo.vocab; t += 3) {
        float *x = row_of(a, t), *y = row_of(b, t);
        for (uint32_t i = 0; i < mark; i++) CHECK(y[i] == (i < p->d ? x[i] * scale : 0), "embedding of token %u, channel %u", t, i);
        CHECK(y[mark] > 0, "token %u has no mark", t);
        same_row("lm_head", h, g, t, p->d, p->wide, shrink);
    }
    float *row = xalloc(m->geo.hidden * sizeof *row);
    for (uint32_t t = 0; t < m->end; t += 5) {
        float *y = row_of(b, p->base.geo.vocab + t), *o = row_of(g, p->base.geo.vocab + t);
        double sum = 0, own = 0;
        head_embed(m, t, memset(row, 0, m->geo.hidden * sizeof *row));
        for (uint32_t i = 0; i < m->geo.hidden; i++) sum += (double)row[i] * (double)row[i], own += (double)y[i] * (double)y[i];
        for (uint32_t i = 0; i < p->d; i++) CHECK(y[i] == 0 && o[i] == 0, "chip token %u in the base model's channel %u", t, i);
        CHECK(sum == own && y[mark] == 0 && o[mark] < 0, "chip token %u", t);
    }
}

static void compare(Pair *p, const Model *m)
{
    const json_t *note = json_object_get(p->out.config, "tapeout");
    CHECK(json_integer_value(json_object_get(note, "first_token")) == p->base.geo.vocab, "first_token");
    p->d = p->base.geo.hidden, p->wide = p->out.geo.hidden, p->first_layer = p->out.geo.layers - p->base.geo.layers;
    float scale = 1, *text = row_of(checkpoint_tensor(&p->out, "model.embed_tokens.weight"), 0);
    while ((double)scale * (double)scale * p->d < p->wide) scale *= 2;
    uint32_t mark = p->d;
    while (mark < p->wide && text[mark] == 0) mark++;
    /* the projections' factor is a power of two, and with it the gain */
    const char *q = xfmt("model.layers.%u.mlp.gate_proj.weight", 0);
    float shrink = 0;
    for (uint64_t r = 0; r < p->base.geo.intermediate && shrink == 0; r++)
        for (uint32_t i = 0; i < p->d && shrink == 0; i++) {
            float x = row_of(checkpoint_tensor(&p->base, q), r)[i];
            if (x != 0) shrink = row_of(checkpoint_tensor(&p->out, xfmt("model.layers.%u.mlp.gate_proj.weight", p->first_layer)), r)[i] / x;
        }
    CHECK(shrink > 0 && exp2(ilogbf(shrink)) == (double)shrink, "projections are scaled by %g", (double)shrink);
    p->gain = sqrt((double)p->d / p->wide) / (double)shrink;
    for (uint32_t l = 0; l < p->base.geo.layers; l++)
        for (unsigned i = 0; i < nfamily_tensors; i++)
            if (family_tensors[i].families & family_find("qwen3_5")->bit && family_tensors[i].scope & (p->base.full[l] ? IN_FULL : IN_LINEAR))
                layer_tensor(p, l, &family_tensors[i], scale, shrink);
    chip_layers(p, mark);
    vocabulary(p, m, mark, scale, shrink);
}

static void one(bool exact)
{
    char *err = NULL;
    const Target *native = target_find("native");
    Model *machine = model_open(built("tests/hf/mix.ckt", "base.chip", native), &err);
    ExportOptions e = { .dir = in_folder("base"), .shard_bytes = exact ? 200000 : 0 };
    Pair p;
    if (!machine || !export_hf(machine, &e, &err) || !base_config(&p.base, e.dir, &err) || !checkpoint_open(&p.base, &err)) die("%s", err);
    Target t = base_target(&p.base);
    t.hidden = exact ? 4 * t.base_hidden : 0;
    Model *chip = model_open(built("tests/machines/count.ckt", "count.chip", target_find(target_for_base(&t))), &err);
    GraftOptions o = { .dir = in_folder("out"), .shard_bytes = exact ? 1000000 : 0, .stand_in = exact ? 3 : -1 };
    if (!chip || !graft(&p.base, chip, &o, NULL, &err) || !base_config(&p.out, o.dir, &err) || !checkpoint_open(&p.out, &err)) die("%s", err);
    CHECK(exact ? p.out.nfiles > 1 : p.out.nfiles == 1, "%u files", p.out.nfiles);
    compare(&p, chip);
    if (exact) CHECK(p.gain == 1, "gain %g", p.gain);
}

int main(void)
{
    folder_begin();
    one(false);
    one(true);
    return folder_end();
}
