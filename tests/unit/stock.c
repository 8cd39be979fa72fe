/* unit/stock.c: checkpoints in our own layers, without the stock package: a chip in front of a random base model says what the chip says alone, and the
 * base model reads text as it does alone and chip tokens as so many stand-ins: the same logits, bit for bit, at 4 times its hidden size. However a text is
 * cut into pieces, the logits are the same. The GPU's kernels on the host (gpu_dense.h, gpu_stock.h) give them but for the order of sums, the chip's run exactly, and
 * each barrier of gpu_stock.h that is left out shows.
 *   stock [threads]  only the part with threads of the operating system */
#include "../../backend/graft.h"
#include "../../runtime/gpu.h"
#include "barriers.h"
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

static uint32_t greedy(const float *row, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

/* The logits after every token, fed in pieces of that many to a model that begins anew; NULL when the device fails, or
 * does not say the first of the largest after a piece. */
static float *logits_on(const StockBackend *b, Opened *o, const Ids *ids, uint32_t piece)
{
    char *err = NULL;
    bool ok = true;
    uint32_t next, vocab = o->k.geo.vocab;
    float *out = xrealloc(NULL, (size_t)ids->n * vocab * sizeof *out);
    void *self = b->open(&o->k, piece, ids->n, &err);
    if (!self) die("%s", err);
    for (uint32_t at = 0, n; ok && at < ids->n; at += n) {
        n = ids->n - at < piece ? ids->n - at : piece;
        ok = b->feed(self, ids->data + at, n, out + (size_t)at * vocab, &next, &err);
        ok = ok && next == greedy(out + (size_t)(at + n - 1) * vocab, vocab);
    }
    b->close(self);
    if (!ok) free(out);
    free(err);
    return ok ? out : NULL;
}

static float *logits(Opened *o, const Ids *ids, uint32_t piece)
{
    float *out = logits_on(&stock_dense_backend, o, ids, piece);
    if (!out) die("no logits");
    return out;
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

/* ---- the GPU's kernels ---- */
/* Every logit in pieces of several sizes; products of one token and of many. */
static void on_device(const char *name, Opened *o, const Ids *ids, float bound)
{
    static const uint32_t pieces[] = {1, 30};
    uint32_t vocab = o->k.geo.vocab;
    float *want = logits(o, ids, 64);
    for (unsigned i = 0; i < 2; i++) {
        float *got = logits_on(&stock_cuda_host_backend, o, ids, pieces[i]), far = got ? apart(want, vocab, got, vocab, ids->n) : INFINITY;
        CHECK(far <= bound, "%s on the device in pieces of %u: logits differ by %g", name, pieces[i], (double)far);
        free(got);
    }
    free(want);
}

/* The chip's run in the grafted model. */
static void chip_on_device(const char *name, Opened *both, const Ids *run, uint32_t nprompt, uint32_t first)
{
    Ids ids = {0};
    uint32_t vocab = both->k.geo.vocab, n = nprompt + 12;
    random_text(&ids, 5, first);
    for (uint32_t i = 0; i < n; i++) vec_push(&ids, first + run->data[i]);
    float *got = logits_on(&stock_cuda_host_backend, both, &ids, 40);
    for (uint32_t i = nprompt - 1; got && i + 1 < n; i++)
        CHECK(greedy(got + (size_t)(5 + i) * vocab, vocab) == first + run->data[i + 1], "%s on the device: another token than the chip's, %u of its run", name, i + 1 - nprompt);
    CHECK(got, "%s: the device fails", name);
    free(got);
    free(ids.data);
}

/* Each barrier left out in turn: what comes out is not what came out. */
static void barriers_count(Opened *o, const Ids *ids)
{
    uint32_t line[32], n = barriers("runtime/gpu_stock.h", line, 32), vocab = o->k.geo.vocab;
    float *want = logits_on(&stock_cuda_host_backend, o, ids, 9);
    gpu_host.skip_in = "gpu_stock.h";
    for (uint32_t i = 0; i < n; i++) {
        bool missed = false;
        gpu_host.skip = line[i];
        for (gpu_host.seed = 1; gpu_host.seed <= 3 && !missed; gpu_host.seed++) {
            float *got = logits_on(&stock_cuda_host_backend, o, ids, 9);
            missed = !got || memcmp(want, got, (size_t)ids->n * vocab * sizeof *got);
            free(got);
        }
        CHECK(missed, "nobody misses the barrier in line %u of gpu_stock.h", line[i]);
    }
    CHECK(n >= 6, "only %u barriers were found", n);
    gpu_host.skip = 0, gpu_host.seed = 1;
    free(want);
}

static void small_on_device(bool threads)
{
    RandomModel small = random_model;
    Ids ids = {0};
    small.geo.hidden = 80, small.geo.intermediate = 64, small.geo.layers = small.full_every = 2, small.geo.vocab = 96;
    random_checkpoint(&small, in_folder("small"));
    Opened o = open_folder(in_folder("small"));
    random_text(&ids, 9, small.geo.vocab);
    gpu_host.parallel = threads;
    on_device("small", &o, &ids, 1e-4f);
    if (!threads && !SLOW) barriers_count(&o, &ids);
    checkpoint_close(&o.k);
    free(ids.data);
}

static void pair(const char *name, const RandomModel *how, uint32_t hidden, float bound, float device_bound)
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
    Ids text = {0};
    random_text(&text, 40, base.k.geo.vocab);
    if (!SLOW) on_device(name, &base, &text, device_bound);
    if (how->bf16 && !SLOW) chip_on_device(name, &both, &run, nprompt, base.k.geo.vocab);
    free(text.data);
    model_close(chip);
    checkpoint_close(&base.k), checkpoint_close(&both.k);
    free(run.data);
}

int main(int argc, char **argv)
{
    RandomModel tied = random_model, untied = random_model;
    tied.tied = true, untied.shard = 3000000;
    folder_begin();
    if (argc > 1 && !strcmp(argv[1], "threads")) {
        small_on_device(true);
        return folder_end();
    }
    pair("tied, float32", &tied, 0, 1e-4f, 1e-4f);
    pair("untied, float32, 4 times", &untied, 4 * untied.geo.hidden, 0, 1e-4f);
    tied.bf16 = untied.bf16 = true;
    pair("tied, bfloat16, 4 times", &tied, 4 * tied.geo.hidden, 0, 0.1f);
    small_on_device(false);
    return folder_end();
}
