/* unit/machine.c: two hand-made chips, run by every back end in float32 and bfloat16 against a model in plain C.
 *   counter: token feedback only; counts to 9, then exits with 9
 *   ram: a one-hot GDN memory of four 4-bit rows that is written and read in every pass */
#include "chipgen.h"

static int failures;
#define CHECK(cond, ...) ((void)((cond) || (failures++, fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))))

static Gen *gen_new(bool bf16)
{
    Gen *g = xalloc(sizeof *g);
    *g = (Gen){.hidden = 64, .intermediate = 32, .layers = 2, .nk = 1, .nv = 1, .dk = 4, .dv = 8, .vocab = 64, .max_width = 6, .bf16 = bf16, .pilot = 8};
    return g;
}

/* Channels: 0..3 payload, 4..7 payload + 1, 8 kind C, 9 kind X (exit). */
static Bytes counter_chip(bool bf16)
{
    Gen *g = gen_new(bf16);
    g->nkinds = 2, g->max_width = 4;
    g->kinds = "[{\"name\":\"C\",\"base\":0,\"width\":4,\"role\":\"trace\",\"last\":true,\"retire\":true},"
               "{\"name\":\"X\",\"base\":16,\"width\":4,\"role\":\"exit\",\"last\":true}]";
    g->states = "[]";
    g->start = 0;
    gen_begin(g);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t self = 4 + i;
        gen_set(g, "embed.bit", i, i, 1);
        /* sum bit i = b_i xor carry, carry = AND of the bits below: b_i + carry - 2 b_i carry */
        Term all[6] = {{-1, 1.0f - (float)i}}, both[6] = {{-1, 0.0f - (float)i}};
        for (uint32_t j = 0; j < i; j++) all[j + 1] = both[j + 1] = (Term){(int32_t)j, 1};
        both[i + 1] = (Term){(int32_t)i, 1};
        all[i + 1] = both[i + 2] = (Term){-2, 0};
        gen_unit(g, 0, FORM({(int32_t)i, 1}), FORM({-1, 1}), FORM({(int32_t)self, 1}));
        gen_unit(g, 0, all, FORM({-1, 1}), FORM({(int32_t)self, 1}));
        gen_unit(g, 0, both, FORM({-1, 1}), FORM({(int32_t)self, -2}));
    }
    gen_unit(g, 0, FORM({-1, 1}), FORM({-1, 1}), FORM({8, 1}));
    /* payload is 8: the next is 9, and the machine exits */
    gen_unit(g, 0, FORM({3, 1}, {0, -1}, {1, -1}, {2, -1}), FORM({-1, 1}), FORM({8, -1}, {9, 1}));
    gen_head(g, 0, 4, 4, 8);
    gen_head(g, 1, 4, 4, 9);
    return gen_finish(g);
}

/* Payload: address a (bits 0, 1), data d (bits 2..5). A pass writes row a with d, reads row (a + 1) % 4 and emits
 * address a + 1 and data read ^ d ^ 1. Channels: 0..5 payload, 6..9 read, 10, 11 next address, 12..15 next data. */
static Bytes ram_chip(bool bf16)
{
    Gen *g = gen_new(bf16);
    const char *layer = "linear_attn.in_proj_qkv.weight", *z = "linear_attn.in_proj_z.weight";
    float P = 1073741824.0f; /* 2^30 */
    g->nkinds = 1;
    g->kinds = "[{\"name\":\"T\",\"base\":0,\"width\":6,\"role\":\"trace\",\"last\":true,\"retire\":true}]";
    g->states = "[{\"name\":\"ram\",\"kind\":\"mem\",\"width\":4,\"rows\":4,\"lane\":4,\"base\":0,\"init\":\"rows\",\"row_init\":[5,0,9],"
                "\"init_shift\":0,\"copies\":[[{\"layer\":0,\"head\":0,\"row0\":0,\"nrows\":4,\"group_rows\":4,\"group_heads\":1,"
                "\"bits\":[[0,0],[0,1],[0,2],[0,3]],\"pilots\":[[0,4,1073741824],[0,5,1073741824]],\"one\":128.0}]]}]";
    g->start = 6;
    gen_begin(g);
    for (uint32_t i = 0; i < 6; i++) gen_set(g, "embed.bit", i, i, 1);
    for (uint32_t r = 0; r < 4; r++) { /* literal ANDs, 128 (2 L - 1) */
        uint32_t a = r, q = (r + 3) & 3; /* row r is read when a + 1 = r */
        float k0 = a & 1 ? 1 : -1, k1 = a & 2 ? 1 : -1, q0 = q & 1 ? 1 : -1, q1 = q & 2 ? 1 : -1;
        float kc = 1 - (float)(a & 1) - (float)(a >> 1 & 1), qc = 1 - (float)(q & 1) - (float)(q >> 1 & 1);
        gen_form(g, 0, layer, 4 + r, 128, FORM({0, 2 * k0}, {1, 2 * k1}, {-1, 2 * (kc - 0) - 1 - 0}));
        gen_form(g, 0, layer, r, 128, FORM({0, 2 * q0}, {1, 2 * q1}, {-1, 2 * (qc - 0) - 1 - 0}));
    }
    for (uint32_t i = 0; i < 4; i++) {
        gen_form(g, 0, layer, 8 + i, 128, FORM({2 + (int32_t)i, 2}, {-1, -1}));
        gen_form(g, 0, z, i, 65536, FORM({-1, 1})); /* rms = P q / 2, gain 64: 128 comes out as 2^-16 */
        gen_layer_set(g, 0, "linear_attn.out_proj.weight", 6 + i, i, 1);
    }
    for (uint32_t i = 4; i < 6; i++) gen_form(g, 0, layer, 8 + i, P, FORM({-1, 1}));
    gen_form(g, 0, "linear_attn.in_proj_b.weight", 0, 1, FORM({-1, 256}));
    for (uint32_t i = 0; i < 8; i++) gen_layer_set(g, 0, "linear_attn.norm.weight", i, 0, 64);
    gen_unit(g, 0, FORM({-1, 1}), FORM({-1, 1}, {0, -1}), FORM({10, 1}));
    gen_unit(g, 0, FORM({0, 1}, {1, 1}), FORM({-1, 1}), FORM({11, 1}));
    gen_unit(g, 0, FORM({0, 1}, {1, 1}, {-1, -1}), FORM({-1, 1}), FORM({11, -2}));
    for (int32_t i = 0; i < 4; i++) { /* x = r + d: relu(x) - 2 relu(x - 1), flipped for bit 0 */
        float sign = i == 0 ? -1 : 1;
        gen_unit(g, 0, FORM({6 + i, 1}, {2 + i, 1}), FORM({-1, 1}), FORM({12 + i, sign}));
        gen_unit(g, 0, FORM({6 + i, 1}, {2 + i, 1}, {-1, -1}), FORM({-1, 1}), FORM({12 + i, -2 * sign}));
        if (i == 0) gen_unit(g, 0, FORM({-1, 1}), FORM({-1, 1}), FORM({12, 1}));
    }
    gen_unit(g, 0, FORM({-1, 1}), FORM({-1, 1}), FORM({20, 1}));
    gen_head(g, 0, 6, 10, 20);
    return gen_finish(g);
}

static Machine *open_machine(Bytes chip, const Backend *b, Model **m, const BackendOptions *o)
{
    char *err = NULL;
    *m = model_parse(chip.data, chip.n, "chip", &err);
    CHECK(*m, "%s", err);
    Machine *mc = *m ? machine_open(*m, b, o, NULL, &err) : NULL;
    if (*m) CHECK(mc, "%s", err);
    return mc;
}

static void close_machine(Machine *mc, Model *m, Bytes chip)
{
    machine_close(mc);
    model_close(m);
    free(chip.data);
}

static void test_counter(const Backend *b, bool bf16, const BackendOptions *o)
{
    Model *m;
    Bytes chip = counter_chip(bf16);
    Machine *mc = open_machine(chip, b, &m, o);
    if (!mc) return;
    StopInfo s = machine_run(mc, &(LoopOptions){.max_steps = 100});
    CHECK(s.why == STOP_EXIT && s.payload == 9, "%s counter: stop %d, payload %d, %s", b->name, s.why, (int)s.payload, s.message);
    CHECK(machine_tokens(mc) == 9 && machine_steps(mc) == 8, "%s counter: %d tokens", b->name, (int)machine_tokens(mc));
    close_machine(mc, m, chip);
}

static void test_ram(const Backend *b, bool bf16, const BackendOptions *o)
{
    Model *m;
    Bytes chip = ram_chip(bf16);
    Machine *mc = open_machine(chip, b, &m, o);
    uint32_t ram[4] = {5, 0, 9, 0}, token = 6;
    if (!mc) return;
    for (int pass = 0; pass < 500; pass++) {
        uint32_t a = token & 3, d = token >> 2, next;
        if (pass % 7 == 3) token = (uint32_t)(pass * 2654435761u >> 26), a = token & 3, d = token >> 2;
        ram[a] = d;
        next = ((a + 1) & 3) | (ram[(a + 1) & 3] ^ d ^ 1) << 2;
        uint32_t got = machine_feed(mc, token);
        CHECK(got == next, "%s ram, pass %d: token %u gave %u, not %u", b->name, pass, token, got, next);
        if (got != next) break;
        token = got;
    }
    for (uint32_t r = 0; r < 4; r++) {
        uint64_t v = 99;
        char *err = NULL;
        CHECK(machine_get(mc, model_state(m, "ram"), r, &v, &err) && v == ram[r], "%s ram[%u] is %d, not %u: %s", b->name, r, (int)v, ram[r], err ? err : "");
    }
    machine_set(mc, model_state(m, "ram"), 2, 11);
    uint64_t v = 0;
    CHECK(machine_get(mc, model_state(m, "ram"), 2, &v, NULL) && v == 11, "%s: a row set reads %d", b->name, (int)v);
    close_machine(mc, m, chip);
}

int main(void)
{
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const BackendOptions plain = {0}, full = {.full_dense = true, .full_head = true};
        const Backend *const any[] = {&sparse_backend, &dense_backend}; /* those that every build has; unit/gpu runs the others */
        for (int b = 0; b < 2; b++) {
            test_counter(any[b], bf16, &plain);
            test_ram(any[b], bf16, &plain);
        }
        test_counter(&dense_backend, bf16, &full);
        test_ram(&dense_backend, bf16, &full);
    }
    return failures != 0;
}
