/* unit/stock.c: checkpoints in our own layers, without the stock package: a chip in front of a random base model says what the chip says alone, and the
 * base model reads text as it does alone and chip tokens as so many stand-ins: the same logits, bit for bit, at 4 times its hidden size. However a text is
 * cut into pieces, the logits are the same. Bad folders are refused. */
#include "../../backend/graft.h"
#include "../../runtime/dense.h"
#include "folder.h"
#include "stockgen.h"

enum { TEXT = 90, RUN = 60, ROOM = 64 };
typedef VEC(uint32_t) Ids;

typedef struct {
    Checkpoint k;
    void *self;
} Opened;

static Opened open_folder(const char *dir)
{
    Opened o;
    char *err = NULL;
    if (!checkpoint_config(&o.k, dir, &err) || !checkpoint_open(&o.k, &err)) die("%s", err);
    return o;
}

/* The logits after every token, fed in pieces of that many to a model that begins anew. */
static float *logits(Opened *o, const Ids *ids, uint32_t piece)
{
    char *err = NULL;
    uint32_t next, vocab = o->k.geo.vocab;
    float *out = xrealloc(NULL, (size_t)ids->n * vocab * sizeof *out);
    void *self = stock_dense_backend.open(&o->k, piece, &err);
    if (!self) die("%s", err);
    for (uint32_t at = 0; at < ids->n; at += piece)
        if (!stock_dense_backend.feed(self, ids->data + at, ids->n - at < piece ? ids->n - at : piece, out + (size_t)at * vocab, &next, &err)) die("%s", err);
    stock_dense_backend.close(self);
    return out;
}

static uint32_t greedy(const float *row, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

/* ---- what is fed ---- */
/* The chip's prompt, then what it says alone. */
static void chip_run(const Model *m, Ids *out, uint32_t *nprompt)
{
    char *err = NULL;
    Prompt p = {0};
    uint32_t next = 0;
    BackendOptions none = {0};
    void *self = dense_backend.open(m, &none, &err);
    if (!self || !prompt_make(m, NULL, false, &p, &err)) die("%s", err);
    for (uint32_t i = 0; i < p.n; i++) vec_push(out, p.data[i]), dense_backend.run(self, p.data[i], &next, 1);
    *nprompt = p.n;
    for (uint32_t i = 0; i < RUN; i++) vec_push(out, next), dense_backend.run(self, next, &next, 1);
    dense_backend.close(self);
    free(p.data);
}

static void random_text(Ids *out, uint32_t n, uint32_t vocab)
{
    for (uint32_t i = 0; i < n; i++) vec_push(out, (uint32_t)(random64() % vocab));
}

/* ---- comparing ---- */
/* Largest difference in the columns of the base model's tokens. */
static float apart(const float *a, uint32_t na, const float *b, uint32_t nb, uint32_t rows)
{
    float most = 0;
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t i = 0; i < na; i++) most = fmaxf(most, fabsf(a[(size_t)r * na + i] - b[(size_t)r * nb + i]));
    return most;
}

/* Text, the chip's run, text; the base model is given stand-ins for the run. */
static void between_texts(const char *name, Opened *base, Opened *both, const Ids *run, uint32_t nprompt, uint32_t stand_in, float bound)
{
    uint32_t first = base->k.geo.vocab, vocab = both->k.geo.vocab;
    Ids mine = {0}, theirs = {0};
    random_text(&mine, TEXT, first);
    for (uint32_t i = 0; i < TEXT; i++) vec_push(&theirs, mine.data[i]);
    for (uint32_t i = 0; i < run->n; i++) vec_push(&mine, first + run->data[i]), vec_push(&theirs, stand_in);
    random_text(&mine, TEXT, first);
    for (uint32_t i = 0; i < TEXT; i++) vec_push(&theirs, mine.data[TEXT + run->n + i]);
    float *a = logits(base, &theirs, ROOM), *b = logits(both, &mine, ROOM), far = apart(a, first, b, vocab, mine.n);
    CHECK(far <= bound, "%s: the base model's logits differ by %g, allowed %g", name, (double)far, (double)bound);
    for (uint32_t i = nprompt - 1; i + 1 < run->n; i++)
        CHECK(greedy(b + (size_t)(TEXT + i) * vocab, vocab) == first + run->data[i + 1], "%s: another token than the chip's, %u of its run", name, i + 1 - nprompt);
    for (uint32_t i = 0; i < mine.n; i++)
        if (i < TEXT || i >= TEXT + run->n) CHECK(greedy(b + (size_t)i * vocab, vocab) < first, "%s: a chip token after text", name);
    float *c = logits(both, &mine, 7);
    CHECK(!memcmp(b, c, (size_t)mine.n * vocab * sizeof *b), "%s: other logits in pieces of 7", name);
    free(a), free(b), free(c);
}

static void pair(const char *name, const RandomModel *how, uint32_t hidden, float bound)
{
    char *err = NULL;
    Ids run = {0};
    uint32_t nprompt;
    random_checkpoint(how, in_folder("base"));
    Opened base = open_folder(in_folder("base"));
    Target t = base_target(&base.k);
    t.hidden = hidden;
    Model *chip = model_open(built("tests/hf/mix.ckt", "mix.chip", target_find(target_for_base(&t))), &err);
    GraftOptions o = {.dir = in_folder("both"), .stand_in = -1, .shard_bytes = how->shard};
    if (!chip || !graft(&base.k, chip, &o, NULL, &err)) die("%s", err);
    Opened both = open_folder(o.dir);
    CHECK((both.k.nfiles > 1) == (how->shard != 0), "%s: %u files", name, both.k.nfiles);
    chip_run(chip, &run, &nprompt);
    between_texts(name, &base, &both, &run, nprompt, 5, bound);
    model_close(chip);
    checkpoint_close(&base.k), checkpoint_close(&both.k);
    free(run.data);
}

int main(void)
{
    RandomModel tied = random_model, untied = random_model;
    tied.tied = true, untied.shard = 3000000;
    folder_begin();
    pair("tied, float32", &tied, 0, 1e-4f);
    pair("untied, float32, 4 times", &untied, 4 * untied.geo.hidden, 0);
    tied.bf16 = untied.bf16 = true;
    pair("tied, bfloat16, 4 times", &tied, 4 * tied.geo.hidden, 0);
    return folder_end();
}
