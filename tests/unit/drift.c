/* unit/drift.c: what is written a million times over does not drift. A hand-made memory of four rows, run by every back end in float32 and bfloat16:
 * a million overwrites of one cell, then a million of neighbouring cells in turn, with passes that write nothing between; every written row is
 * compared bit by bit after every token, all rows now and then. (A zero may have either sign.) */
#include "chipgen.h"

static int failures;
enum { ROWS = 4, LANES = 4, DATA = 3, WRITES = 1 << 20, LOOK_ALL = 1 << 12 };
static const float H = 128, P = 1073741824.0f; /* a set bit; 2^30: the pilot lane */

/* Payload: row (bits 0, 1), enable (2), data (3..5). Channels 0..5. */
static Bytes memory_chip(bool bf16)
{
    const char *qkv = "linear_attn.in_proj_qkv.weight";
    Gen g = {.hidden = 16, .intermediate = 1, .layers = 2, .nk = 1, .nv = 1, .dk = ROWS, .dv = LANES, .vocab = 64, .max_width = 6, .nkinds = 1, .bf16 = bf16, .pilot = 4};
    g.kinds = "[{\"name\":\"T\",\"base\":0,\"width\":6,\"role\":\"trace\",\"last\":true,\"retire\":true}]";
    g.states = "[]";
    gen_begin(&g);
    for (uint32_t i = 0; i < 6; i++) gen_set(&g, "embed.bit", i, i, 1);
    for (uint32_t r = 0; r < ROWS; r++) { /* 128 (2 AND - 1) of the row's literals, as key and as query */
        float k0 = r & 1 ? 2 : -2, k1 = r & 2 ? 2 : -2, c = 1 - 2 * (float)((r & 1) + (r >> 1));
        gen_form(&g, 0, qkv, r, H, FORM({0, k0}, {1, k1}, {-1, c}));
        gen_form(&g, 0, qkv, ROWS + r, H, FORM({0, k0}, {1, k1}, {-1, c}));
    }
    for (uint32_t i = 0; i < DATA; i++) gen_form(&g, 0, qkv, 2 * ROWS + i, H, FORM({3 + (int32_t)i, 2}, {-1, -1}));
    gen_form(&g, 0, qkv, 2 * ROWS + DATA, P, FORM({-1, 1}));
    gen_form(&g, 0, "linear_attn.in_proj_b.weight", 0, H, FORM({2, 2})); /* -1 is there already */
    for (uint32_t i = 0; i < LANES; i++) gen_layer_set(&g, 0, "linear_attn.norm.weight", i, 0, 64);
    gen_head(&g, 0, 6, 6, 12); /* says payload 0, whatever it reads */
    return gen_finish(&g);
}

typedef struct {
    const Backend *b;
    const char *what;
    void *self;
    float row[ROWS][LANES]; /* what must be there */
    uint32_t wrong;
} Memory;

static void look(Memory *m, uint32_t row, uint32_t token)
{
    float got[LANES];
    m->b->get(m->self, 0, 0, row, got);
    for (uint32_t i = 0; i < LANES; i++)
        if (!(got[i] == m->row[row][i]) && m->wrong++ < 3)
            failures++, fprintf(stderr, "%s, %s: token %u: row %u lane %u holds %.9g, not %.9g\n", m->b->name, m->what, token, row, i, got[i], m->row[row][i]);
}

static void feed(Memory *m, uint32_t i, uint32_t row, bool write, uint32_t data)
{
    uint32_t out;
    m->b->run(m->self, row | (uint32_t)write << 2 | data << 3, &out, 1);
    for (uint32_t k = 0; write && k < LANES; k++) m->row[row][k] = k == DATA ? P : data >> k & 1 ? H : 0;
    look(m, row, i);
    for (uint32_t r = 0; i % LOOK_ALL == 0 && r < ROWS; r++) look(m, r, i);
}

static uint32_t random_bits(void)
{
    static uint64_t x = 88172645463325252ull;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return (uint32_t)(x >> 20);
}

static void overwrite(const Backend *b, bool bf16)
{
    Bytes chip = memory_chip(bf16);
    char *err = NULL;
    Model *model = model_parse(chip.data, chip.n, "chip", &err);
    Memory m = {.b = b, .what = bf16 ? "bfloat16" : "float32", .self = model ? b->open(model, &(BackendOptions){0}, &err) : NULL};
    if (!m.self) fprintf(stderr, "%s\n", err), exit(1);
    for (uint32_t r = 0; r < ROWS; r++) feed(&m, r, r, true, r + 1);
    for (uint32_t i = 0; i < WRITES; i++) feed(&m, i, 1, true, random_bits() & 7);
    for (uint32_t i = 0; i < WRITES + WRITES / 8; i++) { /* in turn; an eighth of the passes writes nothing */
        uint32_t v = random_bits();
        feed(&m, i, i % ROWS, v >> 3 & 7, v & 7);
    }
    b->close(m.self);
    model_close(model);
    free(chip.data);
}

int main(void)
{
    const Backend *sparse = backend_find(NULL);
    for (int bf16 = 0; bf16 < 2; bf16++) overwrite(&dense_backend, bf16), overwrite(sparse, bf16);
    return failures != 0;
}
