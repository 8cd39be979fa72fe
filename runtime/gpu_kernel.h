/* gpu_kernel.h: the kernel that runs a program (gpu.h): included by gpu.cu for the GPU and by gpu_host.c for the host, the same text.
 *
 * RULES. Between two barriers no thread reads or writes a word that another writes, but by gpu_or, gpu_and and gpu_add where the order does not matter.
 * Every thread of a block passes the same barriers: what decides a way is the block's, or in shared memory behind a barrier.
 * Shared memory: planes [nslots][W]; active, asked, drop, dropped [W] each; flags [4]; results of reads [nout][2][W * lanes]. */
#include "gpu.h"
#include "gpu_shim.h"

enum { FLAG_FAILED, FLAG_TROUBLE, FLAG_ACTIVE, FLAG_SPARE, FLAGS };

/* A thread's view of its block. */
typedef struct {
    const GpuRun *r;
    uint32_t t, threads, lanes, all; /* lanes of a plane's word; of the block */
    uint32_t *plane, *active, *asked, *drop, *dropped, *flag, *result;
    uint32_t *state;
    GpuLane *lane;
    uint8_t *output;
    uint64_t *trace;
} Self;

GPU_FN uint32_t *plane_word(const Self *s, uint32_t slot, uint32_t w) { return s->plane + slot * s->r->g.words + w; }
GPU_FN uint32_t word_of(const Self *s, uint32_t lane) { return s->lanes == 32 ? lane >> 5 : lane; }
GPU_FN uint32_t bit_of(const Self *s, uint32_t lane) { return s->lanes == 32 ? lane & 31 : 0; }
GPU_FN uint32_t plane_bit(const Self *s, uint32_t slot, uint32_t lane) { return *plane_word(s, slot, word_of(s, lane)) >> bit_of(s, lane) & 1; }
GPU_FN uint32_t lane_in(const Self *s, const uint32_t *mask, uint32_t lane) { return gpu_load(&mask[word_of(s, lane)]) >> bit_of(s, lane) & 1; }
GPU_FN uint32_t *state_word(const Self *s, uint32_t lane, uint32_t word)
{
    return s->state + ((size_t)word_of(s, lane) * s->r->g.state_words + word) * s->lanes + bit_of(s, lane);
}

/* ---- waves ---- */
typedef struct {
    uint32_t w[4];
} Words;
#ifdef __CUDACC__
GPU_FN Words load_words(const uint32_t *p)
{
    uint4 v = *(const uint4 *)p;
    Words r = {{v.x, v.y, v.z, v.w}};
    return r;
}
GPU_FN void store_words(uint32_t *p, Words v) { *(uint4 *)p = make_uint4(v.w[0], v.w[1], v.w[2], v.w[3]); }
#else
GPU_FN Words load_words(const uint32_t *p)
{
    Words r = {{p[0], p[1], p[2], p[3]}};
    return r;
}
GPU_FN void store_words(uint32_t *p, Words v) { p[0] = v.w[0], p[1] = v.w[1], p[2] = v.w[2], p[3] = v.w[3]; }
#endif

/* All ones where bit k of the table's polynomial is 1. */
GPU_FN uint32_t spread(uint32_t bits, uint32_t k) { return 0u - (bits >> k & 1u); }

/* Three inputs, all lanes of some words: the table as a polynomial modulo 2 (each term a mask), c's part apart: f(a, b, 0) + c (f(a, b, 0) + f(a, b, 1)). */
GPU_FN void few_inputs(const Self *s, uint64_t op, uint32_t w, uint32_t n)
{
    uint32_t truth = (uint32_t)(op >> 56), low = truth & 15, high = (truth ^ truth >> 4) & 15;
    low ^= (low & 5) << 1, low ^= (low & 3) << 2;
    high ^= (high & 5) << 1, high ^= (high & 3) << 2;
    uint32_t *to = plane_word(s, (uint32_t)op & 0x3fff, w);
    const uint32_t *a = plane_word(s, (uint32_t)(op >> 14) & 0x3fff, w), *b = plane_word(s, (uint32_t)(op >> 28) & 0x3fff, w), *c = plane_word(s, (uint32_t)(op >> 42) & 0x3fff, w);
    uint32_t l0 = spread(low, 0), la = spread(low, 1), lb = spread(low, 2), lab = spread(low, 3);
    uint32_t h0 = spread(high, 0), ha = spread(high, 1), hb = spread(high, 2), hab = spread(high, 3);
    if (n == 4) {
        Words x = load_words(a), y = load_words(b), z = load_words(c), r;
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t xy = x.w[i] & y.w[i];
            r.w[i] = (l0 ^ (x.w[i] & la) ^ (y.w[i] & lb) ^ (xy & lab)) ^ (z.w[i] & (h0 ^ (x.w[i] & ha) ^ (y.w[i] & hb) ^ (xy & hab)));
        }
        store_words(to, r);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = a[i], y = b[i], xy = x & y;
        to[i] = (l0 ^ (x & la) ^ (y & lb) ^ (xy & lab)) ^ (c[i] & (h0 ^ (x & ha) ^ (y & hb) ^ (xy & hab)));
    }
}

/* Six inputs, one lane. */
GPU_FN void many_inputs(const Self *s, uint64_t first, uint64_t second, uint64_t truth)
{
    uint32_t at = 0;
    for (uint32_t k = 0; k < 3; k++) at |= (*plane_word(s, (uint32_t)(first >> 16 * (k + 1)) & 0xffff, 0) & 1) << k;
    for (uint32_t k = 0; k < 3; k++) at |= (*plane_word(s, (uint32_t)(second >> 16 * k) & 0xffff, 0) & 1) << (3 + k);
    *plane_word(s, (uint32_t)first & 0xffff, 0) = (uint32_t)(truth >> at) & 1;
}

GPU_FN void load_op(const Gpu *g, uint32_t i, uint32_t stride, uint64_t *a, uint64_t *b, uint64_t *c)
{
    const uint64_t *op = g->op + (size_t)i * stride;
    *a = GPU_READ(op);
    if (stride == 3) *b = GPU_READ(op + 1), *c = GPU_READ(op + 2);
}

/* A wave's operation is loaded before the barrier that ends the wave before. */
GPU_FN void run_waves(const Self *s, const GpuStage *st)
{
    const Gpu *g = &s->r->g;
    uint32_t vector = g->words < 4 ? g->words : 4, parts = g->words / vector, mine = s->t / parts, w = s->t % parts * vector, n = st->nwaves;
    uint32_t stride = g->inputs == GPU_MANY ? 3 : 1, begin = GPU_READ(g->first + st->wave), end = GPU_READ(g->first + st->wave + 1);
    uint64_t a = 0, b = 0, c = 0;
    bool on = begin + mine < end;
    if (on) load_op(g, begin + mine, stride, &a, &b, &c);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t x = a, y = b, z = c;
        bool now = on;
        begin = end;
        if (i + 1 < n) end = GPU_READ(g->first + st->wave + i + 2);
        on = begin + mine < end;
        if (on) load_op(g, begin + mine, stride, &a, &b, &c);
        if (now && stride == 3) many_inputs(s, x, y, z);
        else if (now) few_inputs(s, x, w, vector);
        GPU_SYNC();
    }
}

/* Whether a check of the stage fails in an active lane; which ones is noted for the host. All threads get the same answer. */
GPU_FN bool look(const Self *s, const GpuStage *st)
{
    const Gpu *g = &s->r->g;
    for (uint32_t i = s->t; i < st->nchecks * g->words; i += s->threads) {
        uint32_t check = st->check + i / g->words, w = i % g->words;
        if (!(*plane_word(s, GPU_READ(g->check + check), w) & s->active[w])) continue;
        s->r->failed[(size_t)GPU_BLOCK * g->ncheck + check] = 1;
        gpu_or(&s->flag[FLAG_FAILED], 1);
    }
    GPU_SYNC();
    return s->flag[FLAG_FAILED] != 0;
}

/* ---- cells ---- */
GPU_FN uint32_t selected(const Self *s, const GpuSelect *x, uint32_t lane)
{
    const uint16_t *slot = s->r->g.slot + x->slots;
    uint32_t at = 0, n = x->bits;
    if (!plane_bit(s, GPU_READ(slot + n - 1), lane)) return GPU_NONE;
    for (uint32_t k = 0; k < n; k++) at |= plane_bit(s, GPU_READ(slot + k), lane) << k;
    return GPU_READ(s->r->g.table + x->table + at);
}

/* The byte of a machine's state where the row of a bundle lies, or GPU_NONE. */
GPU_FN uint32_t row_at(const Self *s, uint32_t key, uint32_t rows, uint32_t base, uint32_t bytes, uint32_t lane)
{
    uint32_t row = selected(s, s->r->g.select + key, lane);
    return row == GPU_NONE ? GPU_NONE : base + GPU_READ(s->r->g.table + rows + row) * bytes;
}

GPU_FN uint32_t half_of(uint32_t bytes) { return bytes == 8 ? 2 : 1; }

/* Other threads may write other bits of the same word. */
GPU_FN void write_items(const Self *s, uint32_t i, uint32_t lane)
{
    for (const GpuItem *x = s->r->g.item + i;; x++) {
        uint32_t at = row_at(s, x->key, x->rows, x->base, x->bytes, lane);
        for (uint32_t h = 0; at != GPU_NONE && h < half_of(x->bytes); h++) {
            uint32_t mask = x->mask[h], v = 0, shift = at % 4 * 8, *to = state_word(s, lane, at / 4 + h);
            for (uint32_t k = 0; k < 32 && mask >> k; k++)
                if (mask >> k & 1) v |= plane_bit(s, GPU_READ(s->r->g.slot + x->at + 32 * h + k), lane) << k;
            if (!mask) continue;
            gpu_and(to, ~(mask << shift));
            gpu_or(to, v << shift);
        }
        if (x->last) return;
    }
}

/* What is read of a lane's word goes into its result; a bit that is there already is a sum, which cells do not make. */
GPU_FN void read_items(const Self *s, uint32_t i, uint32_t lane)
{
    for (const GpuItem *x = s->r->g.item + i;; x++) {
        uint32_t at = row_at(s, x->key, x->rows, x->base, x->bytes, lane);
        if (at != GPU_NONE) {
            uint64_t v = (*state_word(s, lane, at / 4) >> at % 4 * 8) & x->mask[0];
            if (x->bytes == 8) v |= (uint64_t)(*state_word(s, lane, at / 4 + 1) & x->mask[1]) << 32;
            v <<= x->at & 255;
            for (uint32_t h = 0; h < 2; h++) {
                uint32_t part = (uint32_t)(v >> 32 * h);
                if (part && gpu_or(&s->result[((x->at >> 8) * 2 + h) * s->all + lane], part) & part) gpu_or(&s->flag[FLAG_TROUBLE], GPU_TWICE);
            }
        }
        if (x->last) return;
    }
}

/* Lanes' counts, one after the other; from the last lane down, so that they are not by chance those of the thread that reads. */
GPU_FN void count_all(const Self *s, const GpuCells *c)
{
    for (uint32_t k = s->t; k < s->all; k += s->threads)
        for (uint32_t i = 0, lane = s->all - 1 - k; i < c->ncount && lane_in(s, s->active, lane); i++) {
            const GpuCount *n = s->r->g.count + c->count + i;
            uint32_t at = plane_bit(s, n->when, lane) ? row_at(s, n->key, n->rows, n->base, n->bytes, lane) : GPU_NONE;
            if (at == GPU_NONE) continue;
            uint32_t *low = state_word(s, lane, at / 4), *high = n->bytes == 8 ? state_word(s, lane, at / 4 + 1) : 0, shift = at % 4 * 8 + n->shift;
            uint64_t v = *low | (uint64_t)(high ? *high : 0) << 32, most = (1ull << n->bits) - 1, sum = (v >> shift & most) + n->amount;
            if (sum > most) gpu_or(&s->flag[FLAG_TROUBLE], GPU_FULL);
            v = (v & ~(most << shift)) | (sum & most) << shift;
            *low = (uint32_t)v;
            if (high) *high = (uint32_t)(v >> 32);
        }
}

/* The results as planes. */
GPU_FN void results_to_planes(const Self *s, const GpuCells *c)
{
    uint32_t words = s->r->g.words;
    for (uint32_t i = s->t; i < c->nplanes * words; i += s->threads) {
        uint32_t plane = i % c->nplanes, w = i / c->nplanes, v = 0;
        const uint16_t *out = s->r->g.outs + 2 * (c->out + plane);
        uint32_t bit = GPU_READ(out + 1), *from = s->result + (bit >> 5) * s->all + w * s->lanes;
        for (uint32_t k = 0; k < s->lanes; k++) v |= (from[k] >> (bit & 31) & 1) << k;
        *plane_word(s, GPU_READ(out), w) = v;
    }
}

/* Writes, then counts, then reads, of all active lanes; every pair of a lane and a number is a thread's. */
GPU_FN void run_cells(const Self *s, const GpuCells *c)
{
    const Gpu *g = &s->r->g;
    for (uint32_t i = s->t; i < c->nout * 2 * s->all; i += s->threads) s->result[i] = 0;
    for (uint32_t i = s->t; i < c->nwrite * s->all; i += s->threads) {
        uint32_t lane = i % s->all, list = lane_in(s, s->active, lane) ? selected(s, g->select + c->write + i / s->all, lane) : GPU_NONE;
        if (list != GPU_NONE) write_items(s, list, lane);
    }
    GPU_SYNC();
    if (c->ncount) {
        count_all(s, c);
        GPU_SYNC();
    }
    for (uint32_t i = s->t; i < c->nread * s->all; i += s->threads) {
        uint32_t lane = i % s->all, list = lane_in(s, s->active, lane) ? selected(s, g->select + c->read + i / s->all, lane) : GPU_NONE;
        if (list != GPU_NONE) read_items(s, list, lane);
    }
    GPU_SYNC();
    results_to_planes(s, c);
}

/* State that is planes becomes what was computed; that of lanes that have ended stays for who wants to see it. */
GPU_FN void move_kept(const Self *s, uint32_t first, uint32_t n)
{
    uint32_t words = s->r->g.words;
    for (uint32_t i = s->t; i < n * words; i += s->threads) {
        const GpuPast *p = s->r->g.pasts + first + i / words;
        uint32_t *to = plane_word(s, p->slot[1], i % words), on = s->active[i % words];
        *to = (*to & ~on) | (*plane_word(s, p->slot[0], i % words) & on);
    }
}

/* A word of a chain is one thread's. */
GPU_FN void move_past(const Self *s, uint32_t first, uint32_t n)
{
    uint32_t words = s->r->g.words;
    for (uint32_t i = s->t; i < n * words; i += s->threads) {
        const GpuPast *p = s->r->g.pasts + first + i / words;
        for (uint32_t k = p->n; k > 0; k--) {
            uint32_t from = p->slot[k - 1];
            *plane_word(s, p->slot[k], i % words) = from == GPU_NO_SLOT ? 0 : from == GPU_ONES ? 0xffffffffu : *plane_word(s, from, i % words);
        }
    }
}

/* ---- lanes ---- */
GPU_FN void set_mask(uint32_t *mask, const Self *s, uint32_t lane, bool on)
{
    uint32_t bit = 1u << bit_of(s, lane);
    if (on) gpu_or(&mask[word_of(s, lane)], bit);
    else gpu_and(&mask[word_of(s, lane)], ~bit);
}

GPU_FN uint64_t token_of(const Self *s, uint32_t lane)
{
    const Gpu *g = &s->r->g;
    uint64_t v = 0;
    for (uint32_t k = 0; k < g->token_bits; k++) v |= (uint64_t)plane_bit(s, GPU_READ(g->token_out + k), lane) << k;
    return v;
}

/* What came out is fed next; to lanes whose token was dropped an input, so far the end of it. */
GPU_FN void feed_back(const Self *s)
{
    const Gpu *g = &s->r->g;
    for (uint32_t i = s->t; i < g->token_bits * g->words; i += s->threads) {
        uint32_t k = i / g->words, w = i % g->words, d = s->dropped[w];
        *plane_word(s, GPU_READ(g->token_in + k), w) = (*plane_word(s, GPU_READ(g->token_out + k), w) & ~d) | ((uint64_t)g->input >> k & 1 ? d : 0);
    }
}

/* The byte that a lane is fed, where there is one left. */
GPU_FN void feed_input(const Self *s, uint32_t lane)
{
    const Gpu *g = &s->r->g;
    GpuLane *l = &s->lane[lane];
    if (l->fed == l->ninput) return;
    uint32_t value = 0x100u | GPU_READ(s->r->input + l->input + l->fed++);
    for (uint32_t k = 0; k < g->input_bits; k++)
        if (value >> k & 1) set_mask(plane_word(s, GPU_READ(g->token_in + g->kind_bits + k), 0), s, lane, true);
}

GPU_FN void stop_lane(const Self *s, uint32_t lane, uint32_t why, uint64_t word)
{
    s->lane[lane].stop = why;
    s->lane[lane].word = word;
    set_mask(s->active, s, lane, false);
}

/* The host's part for a lane out of which a token came that is not dropped (batch.c: serve, ask_all). */
GPU_FN void serve(const Self *s, uint32_t lane, uint32_t pass)
{
    const Gpu *g = &s->r->g;
    GpuLane *l = &s->lane[lane];
    bool special = plane_bit(s, g->special, lane), asked = lane_in(s, s->asked, lane);
    uint64_t word = special || asked || s->trace ? token_of(s, lane) : 0;
    uint32_t kind = (uint32_t)(word & ((1ull << g->kind_bits) - 1)), role = kind < g->nkinds ? GPU_READ(g->kind + kind) : GPU_STOP;
    l->tokens++;
    l->steps += plane_bit(s, g->retired, lane);
    if (s->trace) s->trace[(size_t)lane * s->r->room + pass] = word;
    if (special && (role & GPU_ROLE) == GPU_OUTPUT) s->output[(size_t)lane * s->r->room + l->noutput++] = (uint8_t)(word >> g->kind_bits);
    if (special && (role & GPU_ROLE) == GPU_STOP) {
        stop_lane(s, lane, GPU_EXITED, word);
        return;
    }
    if (special && (role & GPU_ROLE) == GPU_TAKE && g->has_input) asked = true;
    if (asked && role & GPU_LAST) set_mask(s->drop, s, lane, true), asked = false;
    set_mask(s->asked, s, lane, asked);
    if (s->r->max_steps && l->steps >= s->r->max_steps) stop_lane(s, lane, GPU_STEPS, 0);
}

/* After the output head. */
GPU_FN void end_pass(const Self *s, uint32_t pass)
{
    const Gpu *g = &s->r->g;
    for (uint32_t w = s->t; w < g->words; w += s->threads) s->dropped[w] = s->drop[w], s->drop[w] = 0;
    if (s->t == 0) s->flag[FLAG_ACTIVE] = 0;
    move_past(s, g->begun, 1);
    GPU_SYNC();
    feed_back(s);
    if (g->has_input) GPU_SYNC();
    for (uint32_t lane = s->t; lane < s->all; lane += s->threads) {
        if (!lane_in(s, s->active, lane)) continue; /* only this thread takes the lane's bit away */
        if (lane_in(s, s->dropped, lane)) {
            feed_input(s, lane);
            if (s->trace) s->trace[(size_t)lane * s->r->room + pass] = ~0ull;
        } else serve(s, lane, pass);
        if (lane_in(s, s->active, lane)) gpu_or(&s->flag[FLAG_ACTIVE], 1);
    }
    GPU_SYNC();
}

/* ---- a launch ---- */
/* A lane's first token, and where the host says so its first state. */
GPU_FN void begin_lanes(const Self *s)
{
    const Gpu *g = &s->r->g;
    for (uint32_t lane = 0; lane < s->all; lane++) {
        GpuLane *l = &s->lane[lane];
        if (l->load != GPU_NONE)
            for (uint32_t i = s->t; i < g->state_words; i += s->threads) *state_word(s, lane, i) = GPU_READ(s->r->image + (size_t)l->load * g->state_words + i);
        if (!l->feed) continue;
        for (uint32_t k = s->t; k < g->token_bits; k += s->threads) set_mask(plane_word(s, g->token_in[k], 0), s, lane, l->word >> k & 1);
        for (uint32_t k = s->t; l->load != GPU_NONE && k < g->nhome; k += s->threads) {
            uint32_t bit = GPU_READ(g->home + 2 * k + 1), word = GPU_READ(s->r->image + (size_t)l->load * g->state_words + bit / 32);
            set_mask(plane_word(s, GPU_READ(g->home + 2 * k), 0), s, lane, word >> bit % 32 & 1);
        }
        for (uint32_t k = s->t; l->load != GPU_NONE && k < g->pasts[g->begun].n; k += s->threads) set_mask(plane_word(s, g->pasts[g->begun].slot[1 + k], 0), s, lane, false);
    }
    GPU_SYNC();
    for (uint32_t lane = s->t; lane < s->all; lane += s->threads) {
        GpuLane *l = &s->lane[lane];
        if (l->load != GPU_NONE) {
            l->tokens = l->steps = 0;
            set_mask(s->asked, s, lane, false);
            set_mask(s->drop, s, lane, l->drop != 0);
        }
        if (l->stop == GPU_RUNNING) set_mask(s->active, s, lane, true);
        l->load = GPU_NONE, l->feed = 0;
    } /* the first wave's barrier is before the first who looks at it */
}

GPU_FN void copy_planes(const Self *s, bool save)
{
    const Gpu *g = &s->r->g;
    uint32_t *planes = s->r->planes + (size_t)GPU_BLOCK * g->kept * g->words, *mask = s->r->mask + (size_t)GPU_BLOCK * 2 * g->words;
    for (uint32_t i = s->t; i < g->kept * g->words; i += s->threads)
        if (save) planes[i] = s->plane[i];
        else s->plane[i] = planes[i];
    for (uint32_t w = s->t; w < g->words; w += s->threads)
        if (save) mask[w] = s->asked[w], mask[g->words + w] = s->drop[w];
        else s->asked[w] = mask[w], s->drop[w] = mask[g->words + w], s->active[w] = 0;
}

GPU_FN Self make_self(const GpuRun *r, uint32_t *shared)
{
    const Gpu *g = &r->g;
    Self s;
    size_t first = (size_t)GPU_BLOCK * g->words * r->lanes;
    s.r = r;
    s.t = GPU_THREAD, s.threads = GPU_THREADS;
    s.lanes = r->lanes, s.all = g->words * r->lanes;
    s.plane = shared;
    s.active = shared + (size_t)g->nslots * g->words;
    s.asked = s.active + g->words, s.drop = s.asked + g->words, s.dropped = s.drop + g->words;
    s.flag = s.dropped + g->words;
    s.result = s.flag + FLAGS;
    s.state = r->state + first * g->state_words;
    s.lane = r->lane + first;
    s.output = r->output + first * r->room;
    s.trace = r->trace ? r->trace + first * r->room : 0;
    return s;
}

/* The pass from a stage on; the stage at which it could not go on, or nstages. */
GPU_FN uint32_t run_pass(const Self *s, uint32_t stage)
{
    const Gpu *g = &s->r->g;
    for (uint32_t i = stage; i < g->nstages; i++) {
        const GpuStage *st = g->stage + i;
        run_waves(s, st);
        if (look(s, st)) return i;
        if (st->cells != GPU_NONE) {
            move_kept(s, st->keep, st->nkeep);
            run_cells(s, g->cells + st->cells);
            move_past(s, st->past, st->npast); /* planes that only this stage reads */
        }
        GPU_SYNC();
        if (s->flag[FLAG_TROUBLE]) return i;
    }
    return g->nstages;
}

GPU_KERNEL(gpu_planes, GpuRun)
{
    GPU_SHARED(shared);
    Self self = make_self(&run, shared), *s = &self;
    GpuBlock *block = run.block + GPU_BLOCK;
    uint32_t passes = block->passes, stage = block->stage, done = 0, failed = 0;
    if (!passes) return;
    for (uint32_t i = s->t; i < FLAGS; i += s->threads) s->flag[i] = 0;
    copy_planes(s, false);
    GPU_SYNC();
    begin_lanes(s);
    while (done < passes) {
        uint32_t end = run_pass(s, stage);
        if (end < run.g.nstages) {
            stage = end, failed = 1;
            break;
        }
        end_pass(s, block->base + done);
        stage = 0;
        done++;
        if (!s->flag[FLAG_ACTIVE]) break;
    }
    copy_planes(s, true); /* all have passed the barrier of what ended the loop */
    if (s->t == 0) {
        block->done = done, block->stage = stage, block->failed = failed, block->trouble = s->flag[FLAG_TROUBLE];
        block->active = s->flag[FLAG_ACTIVE];
    }
}
