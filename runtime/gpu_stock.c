/* gpu_stock.c: a checkpoint on a GPU: `run DIR IDS --backend cuda-dense`. Weights are copied there once, in the types that they are stored in (float32 in a bfloat16 model:
 * rounded). Two lists of steps (gpu_steps.h): one token, whose products read every weight once, and some tokens of a prompt together, with tensor cores
 * (gpu_stock.h). The host looks after every piece: it knows what ends generation. */
#include "dense.h"
#include "gpu_steps.h"
#include <jansson.h>
#include <stdlib.h>

enum { MOST_POSITIONS = 1 << 16, STAGE = 64 << 20 }; /* when nobody says how long a run gets; bytes on their way */

typedef struct {
    GpuList list;
    void *plan;
} Part;

typedef struct {
    GpuSteps s;
    StockDense weights;
    GpuLayer *layer;
    GpuMatrix embed, head;
    Part one, many, last, all; /* a token; some; the output head of the last of them, and of all */
    DenseNow *look; /* here */
    uint32_t *ids;  /* there */
    float *logits, *every; /* there: [vocab]; [room, vocab], or NULL until it is wanted */
    uint64_t pos;
} GpuStock;

/* ---- weights ---- */
/* A row as it will lie there; row: scratch for one. */
static void stage_row(const Matrix *m, uint32_t r, uint8_t *out, float *row)
{
    if (!m->round) {
        memcpy(out, m->stored[r], (size_t)m->cols * (m->half ? 2 : 4));
        return;
    }
    stored_row(m, r, row);
    for (uint32_t c = 0; c < m->cols; c++) memcpy(out + 2 * (size_t)c, (const uint8_t *)&row[c] + 2, 2);
}

static GpuMatrix send_matrix(GpuStock *s, const Matrix *m)
{
    bool half = m->half || m->round;
    size_t bytes = (size_t)steps_stride(m->cols) * (half ? 2 : 4);
    uint32_t some = STAGE / bytes ? (uint32_t)(STAGE / bytes) : 1;
    uint8_t *there = steps_room(&s->s, m->rows * bytes), *stage = calloc(some < m->rows ? some : m->rows, bytes);
    float *row = xrealloc(NULL, m->cols * sizeof *row);
    if (!stage) die("out of memory");
    for (uint32_t r = 0; r < m->rows && !s->s.failed; r += some) {
        uint32_t n = m->rows - r < some ? m->rows - r : some;
        for (uint32_t i = 0; i < n; i++) stage_row(m, r + i, stage + i * bytes, row);
        steps_put(&s->s, there + r * bytes, stage, n * bytes);
    }
    free(stage);
    free(row);
    return (GpuMatrix){there, half, m->rows, m->cols};
}

static void send_layer(GpuStock *s, uint32_t i)
{
    const DenseLayer *from = &s->weights.d.layer[i];
    GpuLayer *l = &s->layer[i];
    l->full = from->full;
    l->idle = from->full && !from->m[T_O_PROJ].stored;
    for (int id = 0; id < T_COUNT; id++) {
        uint32_t shape[2];
        model_shape(&s->s.geo, (TensorId)id, shape);
        if (from->m[id].stored) l->m[id] = send_matrix(s, &from->m[id]);
        if (from->v[id]) l->v[id] = steps_send(&s->s, from->v[id], (size_t)shape[0] * shape[1] * sizeof(float));
    }
    if (from->open.rows) l->open = send_matrix(s, &from->open);
    steps_remember(&s->s, l);
}

/* ---- steps ---- */
static void add_pass(GpuStock *s, Part *p, const float *norm, bool many)
{
    DenseStep *e = steps_add(&s->s, &p->list, STOCK_EMBED, s->s.geo.hidden, s->embed.w, NULL, s->s.x);
    e->ids = s->ids, e->half = s->embed.half, e->stride = steps_stride(s->s.geo.hidden);
    for (uint32_t i = 0; i < s->s.geo.layers; i++) steps_layer(&s->s, &p->list, &s->layer[i], many);
    steps_norm(&s->s, &p->list, norm);
}

static void add_all(GpuStock *s)
{
    const Geometry *g = &s->s.geo;
    s->layer = pool_array(s->weights.d.pool, g->layers, sizeof *s->layer);
    for (uint32_t i = 0; i < g->layers; i++) send_layer(s, i);
    s->embed = send_matrix(s, &s->weights.embed);
    s->head = s->weights.k->tied ? s->embed : send_matrix(s, &s->weights.head);
    const float *norm = steps_send(&s->s, s->weights.d.final_norm, g->hidden * sizeof(float));
    add_pass(s, &s->one, norm, false);
    add_pass(s, &s->many, norm, true);
    steps_product(&s->s, &s->last.list, &s->head, s->s.u, s->logits, false)->last = 1;
    steps_add(&s->s, &s->last.list, STOCK_ARGMAX, g->vocab, NULL, s->logits, NULL);
}

/* ---- opening ---- */
static void stock_close(void *self)
{
    GpuStock *s = self;
    Part *const part[] = {&s->one, &s->many, &s->last, &s->all};
    for (unsigned i = 0; i < sizeof part / sizeof *part; i++) {
        s->s.d->forget(s->s.d, part[i]->plan);
        free(part[i]->list.data);
    }
    steps_end(&s->s);
    stock_dense_close(&s->weights);
    free(s->look);
    free(s);
}

static uint32_t positions_of(const Checkpoint *k, uint64_t wanted)
{
    const json_t *most = json_object_get(k->config, "max_position_embeddings");
    uint64_t n = wanted ? wanted : json_is_integer(most) ? (uint64_t)json_integer_value(most) : MOST_POSITIONS;
    return n < MOST_POSITIONS || wanted ? (uint32_t)(n < UINT32_MAX ? n : UINT32_MAX) : MOST_POSITIONS;
}

static bool any_full(const Checkpoint *k)
{
    for (uint32_t i = 0; i < k->geo.layers; i++)
        if (k->full[i]) return true;
    return false;
}

static void *open_on(const char *name, const Checkpoint *k, uint32_t room, uint64_t positions, char **err)
{
    GpuDevice *d = gpu_device(name, err);
    if (!d) return NULL;
    GpuStock *s = memset(xrealloc(NULL, sizeof *s), 0, sizeof *s);
    s->look = memset(xrealloc(NULL, sizeof *s->look), 0, sizeof *s->look);
    s->s.d = d;
    if (stock_dense_open(&s->weights, k, 0, err)) {
        s->s = (GpuSteps){.d = d, .geo = k->geo, .bf16 = k->bf16, .head_eps = s->weights.d.head_eps, .room = room, .positions = positions_of(k, positions), .err = err};
        s->ids = steps_room(&s->s, room * sizeof *s->ids), s->logits = steps_floats(&s->s, k->geo.vocab);
        steps_begin(&s->s, any_full(k));
        add_all(s);
        if (!s->s.failed) return s;
    }
    stock_close(s);
    return NULL;
}

static void *open_cuda(const Checkpoint *k, uint32_t room, uint64_t positions, char **err) { return open_on("cuda", k, room, positions, err); }
static void *open_host(const Checkpoint *k, uint32_t room, uint64_t positions, char **err) { return open_on("cuda-host", k, room, positions, err); }

/* ---- running ---- */
static bool run_part(GpuStock *s, Part *p, char **err) { return s->s.d->tokens(s->s.d, p->list.data, p->list.n, 1, &p->plan, err); }

/* The logits of all n tokens, which are not kept for who does not ask. */
static bool every_logit(GpuStock *s, uint32_t n, float *logits, char **err)
{
    const uint32_t vocab = s->s.geo.vocab;
    s->s.err = err;
    if (!s->every && (s->every = steps_floats(&s->s, (size_t)s->s.room * vocab))) steps_product(&s->s, &s->all.list, &s->head, s->s.u, s->every, true);
    return s->every && run_part(s, &s->all, err) && s->s.d->get(s->s.d, logits, s->every, (size_t)n * vocab * sizeof *logits, err);
}

static bool stock_feed(void *self, const uint32_t *token, uint32_t n, float *logits, uint32_t *next, char **err)
{
    GpuStock *s = self;
    GpuDevice *d = s->s.d;
    if (s->pos + n > s->s.positions) return fail(err, "%s: the cache has room for %u tokens: --max-tokens says how long a run gets", s->weights.k->dir, s->s.positions);
    s->look->pos = (uint32_t)s->pos, s->look->count = n, s->look->stop = 0;
    s->pos += n;
    if (!d->put(d, s->ids, token, n * sizeof *token, err) || !d->put(d, s->s.now, s->look, offsetof(DenseNow, said), err)) return false;
    if (!run_part(s, n == 1 ? &s->one : &s->many, err) || (logits && !every_logit(s, n, logits, err)) || !run_part(s, &s->last, err)) return false;
    if (!d->get(d, s->look, s->s.now, offsetof(DenseNow, said), err)) return false;
    *next = s->look->token;
    return !s->look->stop || fail(err, "%s: token %llu: its logits are no numbers", s->weights.k->dir, (unsigned long long)s->pos - 1);
}

const StockBackend stock_cuda_backend = {"cuda-dense", 256, open_cuda, stock_feed, stock_close};
const StockBackend stock_cuda_host_backend = {"cuda-host-dense", 64, open_host, stock_feed, stock_close};
