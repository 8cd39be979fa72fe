/* cmd_info.c: `info CHIP`: what a chip consists of, from the file alone. */
#include "../runtime/runtime.h"
#include "cli.h"
#include <inttypes.h>
#include <stdlib.h>

static uint64_t layer_nonzeros(const Layer *l)
{
    uint64_t n = 0;
    for (int i = 0; i < T_COUNT; i++) n += l->t[i].n;
    return n;
}

/* Rows of the gate projection that have an element: an MLP's units in use. */
static uint32_t layer_units(const Layer *l)
{
    const Tensor *t = &l->t[T_GATE];
    uint32_t units = 0;
    for (uint32_t i = 0; i < t->n; i++) units += i == 0 || t->row[i] != t->row[i - 1];
    return units;
}

static void print_layers(const Model *m)
{
    printf("layers:\n");
    for (uint32_t i = 0; i < m->geo.layers; i++)
        printf("  %-4u %-17s %8u units %10" PRIu64 " nonzeros\n", i, m->layer[i].full ? "full_attention" : "linear_attention", layer_units(&m->layer[i]),
               layer_nonzeros(&m->layer[i]));
}

static void print_totals(const Model *m)
{
    const Geometry *g = &m->geo;
    uint64_t units = 0, nonzeros = m->final_norm.n;
    for (uint32_t i = 0; i < g->layers; i++) units += layer_units(&m->layer[i]), nonzeros += layer_nonzeros(&m->layer[i]);
    printf("machine: %s\ndtype: %s\n", m->name, m->bf16 ? "bfloat16" : "float32");
    printf("geometry: hidden %u, mlp %u, layers %u, key heads %u, value heads %u, dk %u, dv %u, vocabulary %u\n", g->hidden, g->intermediate, g->layers,
           g->nk, g->nv, g->dk, g->dv, g->vocab);
    printf("units: %" PRIu64 "\nnonzeros: %" PRIu64 " without vocabulary, %" PRIu64 " in it\n", units, nonzeros,
           (uint64_t)m->embed_kind.n + m->embed_bit.n + m->head_kind.n + m->head_bit.n);
}

static void print_kinds(const Model *m)
{
    printf("tokens (first id, name, payload bits, role):\n");
    for (uint32_t i = 0; i < m->nkinds; i++) {
        const ChipKind *k = &m->kind[i];
        printf("  %8u  %-24s %2u  %s%s%s", k->base, k->name, k->width, chip_role_name[k->role], k->last ? ", ends the step" : "",
               k->retire ? ", counts" : "");
        if (k->message) printf("  \"%s\"", k->message);
        putchar('\n');
    }
}

/* One line a piece: rows, layer, heads, and the lane of each bit as runs of neighbouring lanes. */
static void print_piece(const Piece *p, uint32_t width)
{
    printf("    rows %u..%u: layer %u, head %u, %u rows a group of %u heads, bits", p->row0, p->row0 + p->nrows - 1, p->layer, p->head, p->group_rows,
           p->group_heads);
    for (uint32_t i = 0; i < width;) {
        uint32_t j = i + 1;
        const Cell *b = p->bit;
        if (b[i].lane < 0) {
            i++;
            continue;
        }
        while (j < width && b[j].head == b[i].head && b[j].lane == b[j - 1].lane + 1) j++;
        if (j - i == 1) printf(" %u=%d.%d", i, b[i].head, b[i].lane);
        else printf(" %u-%u=%d.%d-%d", i, j - 1, b[i].head, b[i].lane, b[j - 1].lane);
        i = j;
    }
    if (p->has_count) printf(", count of bits %u-%u=%d.%d", p->count_low, p->count_low + p->count_bits - 1, p->count.head, p->count.lane);
    putchar('\n');
}

static void print_states(const Model *m)
{
    static const char *const kind[] = { [ST_REG] = "reg", [ST_FILE] = "file", [ST_MEM] = "mem", [ST_HOST] = "host" };
    printf("state (bit = head offset.lane):\n");
    for (uint32_t i = 0; i < m->nstates; i++) {
        const ChipState *s = &m->state[i];
        printf("  %-4s %s: %u x %u bits", kind[s->kind], s->name, s->rows, s->width);
        if (s->kind == ST_MEM) printf(" at %#" PRIx64, s->base);
        printf(", %u %s\n", s->ncopies, s->ncopies == 1 ? "copy" : "copies");
        for (uint32_t c = 0; c < s->ncopies; c++)
            for (uint32_t p = 0; p < s->copy[c].n; p++) print_piece(&s->copy[c].piece[p], s->width);
    }
}

int cmd_info(const Args *a)
{
    char *err = NULL;
    Model *m = model_open(a->input[0], &err);
    if (!m) {
        input_error("%s", err);
        free(err);
        return 1;
    }
    print_totals(m);
    print_layers(m);
    print_kinds(m);
    print_states(m);
    model_close(m);
    return 0;
}
