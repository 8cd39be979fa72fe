/* statemap.c: state elements as numbers, through the state map: reading, writing and installing initial contents.
 * A row is the same in all its copies; bit i is `one` or 0 in its lane, a counted field stands as n * unit in one lane. */
#include "runtime.h"
#include <stdlib.h>

/* The piece that holds the row; NULL for a hard-wired row that has no place. */
static const Piece *find_piece(const Copy *c, uint32_t row)
{
    uint32_t lo = 0, hi = c->n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        const Piece *p = &c->piece[mid];
        if (row < p->row0) hi = mid;
        else if (row - p->row0 >= p->nrows) lo = mid + 1;
        else return p;
    }
    return NULL;
}

static uint32_t first_head(const Piece *p, uint32_t row) { return p->head + (row - p->row0) / p->group_rows * p->group_heads; }
static uint32_t key_row(const Piece *p, uint32_t row) { return (row - p->row0) % p->group_rows; }

static bool read_bit(const Piece *p, float lane, uint64_t *bit)
{
    *bit = lane == p->one;
    return lane == p->one || lane == 0;
}

/* Adds what head offset `head` holds of the row to *value, and which bits these are to *known (a back end gives NaN for lanes that it does not keep); false
 * when a lane holds no legal code. */
static bool decode_head(const ChipState *s, const Piece *p, int32_t head, const float *lanes, uint64_t *value, uint64_t *known)
{
    for (uint32_t i = 0; i < s->width; i++) {
        uint64_t bit;
        if (p->bit[i].lane < 0 || p->bit[i].head != head || isnan(lanes[p->bit[i].lane])) continue;
        if (!read_bit(p, lanes[p->bit[i].lane], &bit)) return false;
        *value += bit << i;
        *known |= 1ull << i;
    }
    for (uint32_t i = 0; i < p->npilot; i++) {
        float v = p->pilot[i].head == head ? lanes[p->pilot[i].lane] : 0;
        if (v != 0 && v != p->pilot_value[i] && !isnan(v)) return false;
    }
    if (p->has_count && p->count.head == head && !isnan(lanes[p->count.lane])) {
        float units = lanes[p->count.lane] / p->count_unit, n = rintf(units); /* additions may be off by some ulps of a unit */
        if (!(n >= 0 && n <= (float)p->count_max) || fabsf(units - n) > 0.125f) return false;
        *value = (*value + ((uint64_t)n << p->count_low)) & mask64(s->width); /* a full count is one more in the bits above */
        *known |= mask64(p->count_bits) << p->count_low;
    }
    return true;
}

static bool read_copy(const Model *m, const Backend *b, void *self, const ChipState *s, const Copy *c, uint32_t row, uint64_t *value, uint64_t *known)
{
    const Piece *p = find_piece(c, row);
    float *lanes = xrealloc(NULL, m->geo.dv * sizeof *lanes);
    bool ok = p != NULL;
    *value = *known = 0;
    for (uint32_t i = 0; ok && i < p->nhead; i++) {
        b->get(self, p->layer, first_head(p, row) + (uint32_t)p->heads[i], key_row(p, row), lanes);
        ok = decode_head(s, p, p->heads[i], lanes, value, known);
    }
    free(lanes);
    return ok;
}

bool state_get(const Model *m, const Backend *b, void *self, const ChipState *s, uint32_t row, uint64_t *value, char **err)
{
    uint64_t before = 0;
    *value = 0;
    if (s->has_hard && row == s->hard_row) {
        *value = s->hard_value;
        return true;
    }
    for (uint32_t i = 0; i < s->ncopies; i++) {
        uint64_t v, known, differs;
        if (!read_copy(m, b, self, s, &s->copy[i], row, &v, &known))
            return fail(err, "%s[%u]: copy %u holds something that is no code", s->name, row, i);
        differs = (v ^ *value) & known & before;
        if (differs) return fail(err, "%s[%u]: copy 0 holds %#llx, copy %u holds %#llx", s->name, row, (unsigned long long)*value, i, (unsigned long long)v);
        *value |= v;
        before |= known;
    }
    return true;
}

uint64_t state_known(const Model *m, const Backend *b, void *self, const ChipState *s, uint32_t row)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < s->ncopies; i++) {
        uint64_t v, known;
        if (read_copy(m, b, self, s, &s->copy[i], row, &v, &known)) all |= known;
    }
    return all;
}

static void encode_head(const ChipState *s, const Piece *p, int32_t head, uint64_t value, float *lanes)
{
    for (uint32_t i = 0; i < s->width; i++)
        if (p->bit[i].lane >= 0 && p->bit[i].head == head) lanes[p->bit[i].lane] = value >> i & 1 ? p->one : 0;
    for (uint32_t i = 0; i < p->npilot; i++)
        if (p->pilot[i].head == head) lanes[p->pilot[i].lane] = p->pilot_value[i];
    if (p->has_count && p->count.head == head)
        lanes[p->count.lane] = (float)(value >> p->count_low & mask64(p->count_bits)) * p->count_unit;
}

/* `lanes` is scratch of dv floats: installing a memory calls this once a row. */
static void write_row(const Backend *b, void *self, const ChipState *s, uint32_t row, uint64_t value, float *lanes)
{
    if (s->has_hard && row == s->hard_row) return;
    for (uint32_t i = 0; i < s->ncopies; i++) {
        const Piece *p = find_piece(&s->copy[i], row);
        uint32_t head = first_head(p, row), key = key_row(p, row);
        for (uint32_t h = 0; h < p->nhead; h++) { /* other elements may share the row's other lanes */
            b->get(self, p->layer, head + (uint32_t)p->heads[h], key, lanes);
            encode_head(s, p, p->heads[h], value, lanes);
            b->set(self, p->layer, head + (uint32_t)p->heads[h], key, lanes);
        }
    }
}

void state_set(const Model *m, const Backend *b, void *self, const ChipState *s, uint32_t row, uint64_t value)
{
    float *lanes = xrealloc(NULL, m->geo.dv * sizeof *lanes);
    write_row(b, self, s, row, value, lanes);
    free(lanes);
}

/* ---- initial contents ---- */
typedef struct {
    const Backend *b;
    void *self;
    const Image *image;
    float *lanes;
    char **err;
} Install;

/* A register is written even where it is 0: one that counts is added to before it is ever replaced, so its pilots must stand. */
static bool install_zero(Install *in, const ChipState *s)
{
    if (s->rows == 1) write_row(in->b, in->self, s, 0, 0, in->lanes);
    return true;
}

static bool install_rows(Install *in, const ChipState *s)
{
    for (uint32_t r = 0; r < s->nrow_init; r++) write_row(in->b, in->self, s, r, s->row_init[r], in->lanes);
    return s->nrow_init || install_zero(in, s);
}

/* Rows that the file does not cover stay unwritten, which reads as 0. */
static bool install_image(Install *in, const ChipState *s)
{
    uint32_t bytes = s->width / 8;
    for (uint32_t r = 0; in->image && r < s->rows; r++) {
        uint8_t raw[8];
        uint64_t value = 0, addr = s->base + (uint64_t)r * bytes;
        if (!image_covers(in->image, addr, bytes)) continue;
        in->image->read(in->image, addr, raw, bytes);
        for (uint32_t i = bytes; i-- > 0;) value = value << 8 | raw[i];
        write_row(in->b, in->self, s, r, value, in->lanes);
    }
    return true;
}

static bool install_value(Install *in, const ChipState *s, const char *what, uint64_t value)
{
    uint64_t v = value >> s->init_shift;
    if (v << s->init_shift != value) return fail(in->err, "%s: %s %#llx is not aligned to %llu", s->name, what, (unsigned long long)value, 1ull << s->init_shift);
    if (v & ~mask64(s->width)) return fail(in->err, "%s: %s %#llx does not fit in %u bits", s->name, what, (unsigned long long)value, s->width);
    write_row(in->b, in->self, s, 0, v, in->lanes);
    return true;
}

static bool install_entry(Install *in, const ChipState *s)
{
    return install_value(in, s, "the entry address", in->image ? in->image->entry : 0);
}

static bool install_symbol(Install *in, const ChipState *s)
{
    uint64_t value = s->nrow_init ? s->row_init[0] : 0;
    if (in->image) in->image->symbol(in->image, s->symbol, &value);
    return install_value(in, s, s->symbol, value);
}

bool state_install(const Model *m, const Backend *b, void *self, const Image *image, char **err)
{
    static bool (*const install[])(Install *, const ChipState *) = {install_zero, install_rows, install_image, install_entry,
                                                                    install_symbol}; /* ORDER InitKind */
    Install in = {b, self, image, xrealloc(NULL, m->geo.dv * sizeof(float)), err};
    bool ok = true;
    for (uint32_t i = 0; ok && i < m->nstates; i++) ok = install[m->state[i].init](&in, &m->state[i]);
    free(in.lanes);
    return ok;
}
