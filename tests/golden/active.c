/* active.c: `active CHIP FIRMWARE.elf [--steps N]`: how much of each layer's SwiGLU a token needs, mean of a run: units that are on (gate and product are
 * not 0) and their multiply-adds (weights that are not 0 of gate, up and down; of these, those whose input is not 0 either: no runtime can do with fewer
 * that adds unit by unit). What is on is worked out from the residual that the sparse back end shows, as the stock layer would. */
#include "../../runtime/runtime.h"

#include <stdlib.h>

typedef struct {
    Matrix gate, up;
    float *norm;      /* [hidden] */
    uint32_t *outputs; /* [intermediate] weights that are not 0 of the unit's column of down */
    uint64_t on, adds, needed;
} LayerCount;
typedef struct {
    Model *m;
    LayerCount *layer;
    float *u; /* [hidden] */
} Counter;

static float *normed(const Counter *c, const LayerCount *l, const float *x)
{
    for (uint32_t i = 0; i < c->m->geo.hidden; i++) c->u[i] = x[i] * ldexpf(1 + l->norm[i], -c->m->pilot_scale);
    return c->u;
}

static void count_row(const Matrix *m, uint32_t row, const float *u, LayerCount *l)
{
    for (uint32_t i = m->start[row]; i < m->start[row + 1]; i++)
        if (m->value[i] != 0) l->adds++, l->needed += u[m->col[i]] != 0;
}

static void count_layer(void *ctx, int layer, const char *what, const float *x, uint32_t n)
{
    Counter *c = ctx;
    (void)n;
    if (strcmp(what, "mixer")) return;
    LayerCount *l = &c->layer[layer];
    const float *u = normed(c, l, x);
    for (uint32_t r = 0; r < l->gate.rows; r++) {
        if (l->gate.start[r] == l->gate.start[r + 1] || siluf(matrix_dot(&l->gate, r, u)) * matrix_dot(&l->up, r, u) == 0) continue;
        l->on++;
        count_row(&l->gate, r, u, l);
        count_row(&l->up, r, u, l);
        l->adds += l->outputs[r], l->needed += l->outputs[r];
    }
}

static bool open_layer(const Model *m, Pool *p, uint32_t i, LayerCount *l, char **err)
{
    const Tensor *t = m->layer[i].t, *down = &t[T_DOWN];
    *l = (LayerCount){.norm = tensor_vector(p, &t[T_POST_NORM]), .outputs = pool_array(p, m->geo.intermediate, sizeof *l->outputs)};
    for (uint32_t k = 0; k < down->n; k++) l->outputs[down->col[k]] += down->value[k] != 0;
    return matrix_make(&l->gate, p, &t[T_GATE], false, err) && matrix_make(&l->up, p, &t[T_UP], false, err);
}

static void report(const Counter *c, double tokens)
{
    LayerCount all = {0};
    printf("layer       units  multiply-adds  with an input that is not 0 (of a token)\n");
    for (uint32_t i = 0; i < c->m->geo.layers; i++) {
        const LayerCount *l = &c->layer[i];
        printf("%-5u %11.1f %14.1f %9.1f\n", i, (double)l->on / tokens, (double)l->adds / tokens, (double)l->needed / tokens);
        all.on += l->on, all.adds += l->adds, all.needed += l->needed;
    }
    printf("all   %11.1f %14.1f %9.1f\ntokens: %.0f\n", (double)all.on / tokens, (double)all.adds / tokens, (double)all.needed / tokens, tokens);
}

int main(int argc, char **argv)
{
    bool limited = argc == 5 && !strcmp(argv[3], "--steps");
    if (argc != 3 && !limited) {
        fputs("usage: active CHIP FIRMWARE.elf [--steps N]\n", stderr);
        return 2;
    }
    char *err = NULL;
    Pool *p = pool_new();
    Counter c = {.m = model_open(argv[1], &err)};
    Firmware *f = c.m ? firmware_open(argv[2], &err) : NULL;
    bool ok = f && firmware_fits(f, c.m, &err);
    if (ok) c.u = pool_array(p, c.m->geo.hidden, sizeof *c.u), c.layer = pool_array(p, c.m->geo.layers, sizeof *c.layer);
    for (uint32_t i = 0; ok && i < c.m->geo.layers; i++) ok = open_layer(c.m, p, i, &c.layer[i], &err);
    Machine *mc = ok ? machine_open(c.m, &sparse_backend, &(BackendOptions){.probe = count_layer, .probe_ctx = &c}, &f->image, &err) : NULL;
    if (!mc) {
        fprintf(stderr, "active: %s\n", err ? err : "no machine");
        return 1;
    }
    FILE *nowhere = tmpfile();
    machine_run(mc, &(LoopOptions){.max_steps = limited ? strtoull(argv[4], NULL, 0) : UINT64_MAX, .out = nowhere});
    report(&c, (double)machine_tokens(mc));
    return 0;
}
