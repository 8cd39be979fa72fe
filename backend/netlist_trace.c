/* netlist_trace.c: the token trace that a chip's own netlist makes, a step after the other, on a thread of its own: the chip is checked against it while
 * it comes into being (runtime/follow.c). That the chip, fed each token, says the next is that a run of its own would have made this trace. */
#include "check.h"
#include <pthread.h>
#include <stdlib.h>

enum { BUFFER = 1 << 16 };

typedef struct {
    TraceMaker maker;
    uint64_t max_steps, steps;
    const Model *m;
    const ChipKind *input; /* NULL: it takes none */
    const Kind *input_kind; /* the same in the protocol */
    Build build;
    StepEncoder step;
    VEC(uint8_t) heard; /* of stdin: another begin hears it again */
    uint32_t heard_at;
    Tokens made; /* what is to be handed over */
    bool ended;
    /* handing over: `ready` is the reader's once it is set, the maker's when it is taken */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t turn;
    bool running, full, finished, quit;
    Tokens ready, reading;
    uint32_t at; /* in `reading` */
} Teller;

/* ---- the maker's side ---- */
static int next_byte(Teller *t)
{
    if (t->heard_at < t->heard.n) return t->heard.data[t->heard_at++];
    int c = getc(stdin);
    if (c != EOF) vec_push(&t->heard, (uint8_t)c), t->heard_at++;
    return c;
}

static void host_input(Teller *t)
{
    uint32_t token = input_token(t->input, next_byte(t));
    sim_set(t->step.sim, kind_host_state(t->input_kind), 0, token - t->input->base);
    vec_push(&t->made, token);
}

static bool takes(const Teller *t)
{
    for (uint32_t i = 0; t->input && i < t->step.said.n; i++)
        if (model_kind(t->m, t->step.said.data[i])->role == CHIP_TAKE) return true;
    return false;
}

static void one_step(Teller *t)
{
    encode_step(&t->step);
    t->ended = t->step.ended;
    for (uint32_t i = 0; i < t->step.said.n; i++) vec_push(&t->made, t->step.said.data[i]);
    encode_commit(&t->step, t->ended);
    t->steps += t->step.retired;
    if (!t->ended && takes(t)) host_input(t);
    t->ended |= t->max_steps && t->steps == t->max_steps;
}

static bool hand_over(Teller *t)
{
    pthread_mutex_lock(&t->lock);
    while (t->full && !t->quit) pthread_cond_wait(&t->turn, &t->lock);
    Tokens empty = t->ready;
    t->ready = t->made;
    t->made = empty;
    t->made.n = 0;
    t->full = true;
    t->finished = t->ended;
    bool more = !t->ended && !t->quit;
    pthread_cond_broadcast(&t->turn);
    pthread_mutex_unlock(&t->lock);
    return more;
}

static void *work(void *ctx)
{
    Teller *t = ctx;
    vec_push(&t->made, t->m->start);
    if (t->input) host_input(t);
    do
        while (!t->ended && t->made.n < BUFFER) one_step(t);
    while (hand_over(t));
    return NULL;
}

/* ---- the reader's side ---- */
static bool refill(Teller *t)
{
    bool more = true;
    pthread_mutex_lock(&t->lock);
    while (!t->full && !t->finished) pthread_cond_wait(&t->turn, &t->lock);
    if (t->full) {
        Tokens done = t->reading;
        t->reading = t->ready;
        t->ready = done;
        t->full = false;
        t->at = 0;
    } else more = false;
    pthread_cond_broadcast(&t->turn);
    pthread_mutex_unlock(&t->lock);
    return more && t->reading.n;
}

static int next(void *ctx, uint32_t *token)
{
    Teller *t = ctx;
    if (t->at == t->reading.n && !refill(t)) return 0;
    *token = t->reading.data[t->at++];
    return 1;
}

static bool begin(void *ctx, const Model *m, const Image *image, char **err)
{
    Teller *t = ctx;
    t->m = m;
    if (!chip_netlist(m, image, &t->build, &t->step, err)) return false;
    t->input_kind = protocol_kind(t->build.protocol, ROLE_INPUT);
    if (t->input_kind) t->input = &m->kind[t->input_kind - t->build.protocol->kinds.data];
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->turn, NULL);
    if (pthread_create(&t->thread, NULL, work, t)) return fail(err, "no thread can be started");
    return t->running = true;
}

static void end(void *ctx)
{
    Teller *t = ctx;
    if (t->running) {
        pthread_mutex_lock(&t->lock);
        t->quit = true;
        pthread_cond_broadcast(&t->turn);
        pthread_mutex_unlock(&t->lock);
        pthread_join(t->thread, NULL);
        pthread_mutex_destroy(&t->lock);
        pthread_cond_destroy(&t->turn);
    }
    if (t->step.sim) sim_free(t->step.sim);
    encode_free(&t->step);
    free(t->made.data);
    free(t->ready.data);
    free(t->reading.data);
    *t = (Teller){.maker = t->maker, .max_steps = t->max_steps, .heard = t->heard};
}

TraceMaker *netlist_trace_new(uint64_t max_steps)
{
    Teller *t = xalloc(sizeof *t);
    *t = (Teller){.max_steps = max_steps};
    t->maker = (TraceMaker){.ctx = t, .begin = begin, .next = next, .end = end};
    return &t->maker;
}
