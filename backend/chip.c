/* chip.c: the chip file of runtime/chip.md: safetensors with the manifest in its metadata. Written beside the target and renamed, so a failed
 * build leaves nothing behind. Two builds of the same source, target and options give the same bytes. */
#include "chip.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *name, *dtype;
    uint64_t n, bytes;
    const Weights *from; /* rows, cols or values of this one */
    char part;          /* 'r', 'c', 'v'; 'n' netlist, 'l' unit lines, 'f' unit files */
    unsigned layer;
} Slab;

typedef struct {
    Chip *c;
    VEC(Slab) slabs;
} File;

static void slab(File *f, const char *name, const char *dtype, unsigned size, uint64_t n, const Weights *from, char part, unsigned layer)
{
    vec_push(&f->slabs, ((Slab){name, dtype, n, n * size, from, part, layer}));
}

/* Sources are numbered from 1, the root first; 0 is none. */
static uint32_t file_index(Span s) { return s.file ? s.file - 1 : 0; }

/* Some unit of the layer comes from an imported file. */
static bool imported(const Chip *c, unsigned l)
{
    bool any = false;
    for (uint32_t u = 0; u < c->plan->mlp[l].units.n; u++) any |= file_index(c->unit_spans[l][u]) != 0;
    return any;
}

static void list_slabs(File *f)
{
    Chip *c = f->c;
    for (uint32_t i = 0; i < c->tensors.n; i++) {
        const Weights *t = &c->tensors.data[i];
        if (!t->nz.n) continue;
        slab(f, xfmt("%s.rows", t->name), "I32", 4, t->nz.n, t, 'r', 0);
        slab(f, xfmt("%s.cols", t->name), "I32", 4, t->nz.n, t, 'c', 0);
        if (!c->bf16) slab(f, xfmt("%s.values", t->name), "F32", 4, t->nz.n, t, 'v', 0);
    }
    for (unsigned l = 0; l + 1 < c->layers; l++)
        if (c->plan->mlp[l].units.n) slab(f, xfmt("debug.layers.%u.unit_line", l), "I32", 4, c->plan->mlp[l].units.n, NULL, 'l', l);
    for (unsigned l = 0; l + 1 < c->layers; l++)
        if (imported(c, l)) slab(f, xfmt("debug.layers.%u.unit_file", l), "I32", 4, c->plan->mlp[l].units.n, NULL, 'f', l);
    for (uint32_t i = 0; c->bf16 && i < c->tensors.n; i++) {
        const Weights *t = &c->tensors.data[i];
        if (t->nz.n) slab(f, xfmt("%s.values", t->name), "BF16", 2, t->nz.n, t, 'v', 0);
    }
    slab(f, "netlist", "U8", 1, strlen(c->netlist), NULL, 'n', 0);
}

/* ---- manifest ---- */

static json_t *geometry(const Chip *c)
{
    json_t *types = json_array();
    for (unsigned l = 0; l < c->layers; l++) json_array_append_new(types, json_string(chip_is_attention(c, l) ? "full_attention" : "linear_attention"));
    uint64_t vocab = (c->plan->p->vocab + 63) / 64 * 64;
    return json_pack("{s:i, s:i, s:i, s:o, s:i, s:i, s:i, s:f, s:i, s:i, s:i, s:i, s:i, s:I, s:f, s:f}", "hidden_size", (int)c->hidden,
                     "intermediate_size", (int)c->mlp, "num_hidden_layers", (int)c->layers, "layer_types", types, "num_attention_heads",
                     (int)c->attn_heads, "num_key_value_heads", (int)c->attn_kv, "head_dim", (int)c->head_dim, "rms_norm_eps", c->target->eps,
                     "linear_num_key_heads", (int)c->nk, "linear_num_value_heads", (int)c->nv, "linear_key_head_dim", (int)c->dk,
                     "linear_value_head_dim", (int)c->dv, "linear_conv_kernel_dim", 4, "vocab_size", (json_int_t)vocab, "rope_theta", 1e7,
                     "partial_rotary_factor", 0.25);
}

static json_t *tensors(const Chip *c)
{
    json_t *o = json_object();
    for (uint32_t i = 0; i < c->tensors.n; i++) {
        const Weights *t = &c->tensors.data[i];
        if (!t->listed) continue;
        json_t *shape = json_array();
        for (unsigned k = 0; k < t->ndim; k++) json_array_append_new(shape, json_integer((json_int_t)t->shape[k]));
        json_object_set_new(o, t->name, json_pack("{s:o, s:f}", "shape", shape, "fill", t->fill));
    }
    return o;
}

static json_t *kinds(const Chip *c)
{
    json_t *a = json_array();
    const Protocol *p = c->plan->p;
    for (uint32_t k = 0; k < p->kinds.n; k++) {
        const Kind *x = &p->kinds.data[k];
        json_t *o = json_pack("{s:s, s:I, s:i, s:s, s:b, s:b}", "name", x->name, "base", (json_int_t)x->base, "width", (int)x->width, "role",
                              role_name[x->role], "last", x->last, "retire", x->retire);
        if (x->message) json_object_set_new(o, "message", json_string(x->message));
        if (x->role == ROLE_FAULT) json_object_set_new(o, "code", json_integer((json_int_t)x->code));
        json_array_append_new(a, o);
    }
    return a;
}

static json_t *piece(const Chip *c, const CopyPiece *p)
{
    const Port *q = c->plan->ports.data[p->port].port;
    json_t *bits = json_array(), *pilots = json_array();
    for (unsigned i = 0; i < q->width; i++) json_array_append_new(bits, json_pack("[i, i]", p->bits[i].head, p->bits[i].lane));
    for (uint32_t i = 0; i < p->pilots.n; i++)
        json_array_append_new(pilots, json_pack("[i, i, f]", p->pilots.data[i].head, p->pilots.data[i].lane, p->pilots.data[i].value));
    json_t *o = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:f}", "layer", (int)p->layer, "head", (int)p->head0, "row0", (int)p->row0,
                          "nrows", (int)p->nrows, "group_rows", (int)p->group_rows, "group_heads", (int)p->group_heads, "bits", bits, "pilots",
                          pilots, "one", (double)HOT);
    if (p->count.head >= 0)
        json_object_set_new(o, "count", json_pack("{s:i, s:i, s:i, s:i, s:i, s:f}", "head", p->count.head, "lane", p->count.lane, "low",
                                                  (int)q->cnt_lo, "bits", (int)q->cnt_bits, "max", (int)q->cnt_max, "unit", (double)HOT));
    return o;
}

/* One copy: its pieces in order of their rows (layers are). */
static json_t *copy(const Chip *c, uint32_t port)
{
    json_t *a = json_array();
    for (uint32_t i = 0; i < c->pieces.n; i++)
        if (c->pieces.data[i].port == port) json_array_append_new(a, piece(c, &c->pieces.data[i]));
    return a;
}

static const char *const kind_name[] = {[ST_REG] = "reg", [ST_FILE] = "file", [ST_MEM] = "mem", [ST_HOST] = "host"};
static const char *const init_name[] = {[INIT_ZERO] = "zero", [INIT_ROWS] = "rows", [INIT_IMAGE] = "image", [INIT_ENTRY] = "entry", [INIT_SYMBOL] = "symbol"};

static json_t *states(const Chip *c)
{
    json_t *a = json_array();
    const Circuit *n = c->plan->net->c;
    for (uint32_t s = 0; s < n->states.n; s++) {
        const State *st = &n->states.data[s];
        json_t *rows = json_array(), *copies = json_array();
        for (uint32_t i = 0; i < st->nrow_init; i++) json_array_append_new(rows, json_integer((json_int_t)st->row_init[i]));
        for (uint32_t i = 0; i < c->plan->ports.n; i++)
            if (c->plan->ports.data[i].port->kind == PORT_STATE && c->plan->ports.data[i].port->state == s) json_array_append_new(copies, copy(c, i));
        json_t *o = json_pack("{s:s, s:s, s:i, s:I, s:i, s:I, s:s, s:o, s:i}", "name", st->name, "kind", kind_name[st->kind], "width",
                              (int)st->width, "rows", (json_int_t)st->rows, "lane", (int)st->lane, "base", (json_int_t)st->base, "init",
                              init_name[st->init], "row_init", rows, "init_shift", (int)st->init_shift);
        if (st->span.line) json_object_set_new(o, "line", json_integer(st->span.line));
        if (file_index(st->span)) json_object_set_new(o, "file", json_integer(file_index(st->span)));
        if (st->symbol) json_object_set_new(o, "symbol", json_string(st->symbol));
        if (st->has_hard) json_object_set_new(o, "hard", json_pack("[I, I]", (json_int_t)st->hard_row, (json_int_t)st->hard_value));
        json_object_set_new(o, "copies", copies);
        json_array_append_new(a, o);
    }
    return a;
}

static json_t *report(const Chip *c)
{
    return json_pack("{s:i, s:I, s:I, s:i, s:I, s:i, s:I}", "layers", (int)c->layers, "units", (json_int_t)c->units, "nonzeros",
                     (json_int_t)c->nonzeros, "channels", (int)c->plan->nchannels, "erased", (json_int_t)c->plan->erased, "payload_bits",
                     (int)c->plan->p->payload, "vocabulary", (json_int_t)c->plan->p->vocab);
}

/* How a prompt fills the machine: records, and the tokens that set the tail register last of all. */
static json_t *loading(const Chip *c)
{
    const Protocol *p = c->plan->p;
    json_t *groups = json_array(), *tail = json_array();
    for (uint32_t g = 0; g < p->loads.n; g++) {
        json_t *states = json_array();
        for (uint32_t i = 0; i < p->loads.data[g].states.n; i++) json_array_append_new(states, json_integer(p->loads.data[g].states.data[i]));
        json_array_append_new(groups, json_pack("{s:i, s:o}", "kind", (int)p->loads.data[g].kind, "states", states));
    }
    for (uint32_t k = p->kinds.n; k-- > 0;) { /* top chunk first, as the machine says them */
        const Kind *x = &p->kinds.data[k];
        if (x->field >= 0 && p->fields.data[x->field].tail) json_array_append_new(tail, json_integer(k));
    }
    json_t *o = json_pack("{s:i, s:i, s:i, s:i, s:i, s:o, s:o}", "first_kind", (int)p->load_kind, "chunks", (int)p->load_chunks, "chunk_bits",
                          (int)p->load_payload, "index_bits", (int)p->load_index, "data_bits", (int)p->load_data, "groups", groups, "tail_kinds", tail);
    if (c->plan->canary_kind) json_object_set_new(o, "before", json_integer(p->kinds.data[c->plan->canary_kind].base));
    if (p->m->tail >= 0) json_object_set_new(o, "tail_state", json_integer(p->m->tail));
    return o;
}

static char *manifest(const Chip *c)
{
    json_t *pch = json_array(), *pv = json_array(), *src = json_array();
    for (uint32_t i = 1; i <= source_count(); i++) { /* without folders: the same source gives the same bytes wherever it lies */
        const char *name = source_name(i), *slash = strrchr(name, '/');
        json_array_append_new(src, json_string(slash ? slash + 1 : name));
    }
    for (unsigned i = 0; i < c->npilots; i++) {
        json_array_append_new(pch, json_integer(c->pilot_ch[i]));
        json_array_append_new(pv, json_integer(c->pilot_value[i]));
    }
    json_t *m = json_pack("{s:i, s:s, s:s, s:s, s:s, s:o, s:o, s:{s:i, s:o, s:o}, s:o, s:i, s:o, s:{s:i, s:I}, s:o, s:o, s:o}", "version", 1, "name",
                          c->plan->net->c->name, "target", c->target->name, "family", c->target->family, "dtype", c->bf16 ? "bfloat16" : "float32",
                          "geometry", geometry(c), "tensors", tensors(c), "pilot", "log2_scale", LOG2_SCALE, "channels", pch, "values", pv,
                          "kinds", kinds(c), "start", 0, "states", states(c), "protocol", "payload", (int)c->plan->p->payload, "vocab_limit",
                          (json_int_t)c->plan->opt->vocab, "load", loading(c), "report", report(c), "sources", src);
    char *s = json_dumps(m, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(m);
    if (!s) die("manifest");
    return s;
}

/* ---- the file ---- */

static char *header(const File *f)
{
    char *text = manifest(f->c);
    json_t *h = json_object();
    json_object_set_new(h, "__metadata__", json_pack("{s:s, s:s}", "format", "tapeout-chip", "tapeout", text));
    uint64_t at = 0;
    for (uint32_t i = 0; i < f->slabs.n; i++) {
        const Slab *s = &f->slabs.data[i];
        json_object_set_new(h, s->name, json_pack("{s:s, s:[I], s:[I, I]}", "dtype", s->dtype, "shape", (json_int_t)s->n, "data_offsets",
                                                  (json_int_t)at, (json_int_t)(at + s->bytes)));
        at += s->bytes;
    }
    char *out = json_dumps(h, JSON_COMPACT);
    json_decref(h);
    free(text);
    return out;
}

static bool write_slab(const File *f, const Slab *s, FILE *out)
{
    if (s->part == 'n') return fwrite(f->c->netlist, 1, s->bytes, out) == s->bytes;
    bool half = s->part == 'v' && f->c->bf16;
    uint8_t *buf = xrealloc(NULL, s->bytes);
    for (uint64_t i = 0; i < s->n; i++) {
        uint32_t u;
        if (s->part == 'l') u = f->c->unit_spans[s->layer][i].line;
        else if (s->part == 'f') u = file_index(f->c->unit_spans[s->layer][i]);
        else if (s->part == 'v') memcpy(&u, &s->from->nz.data[i].v, 4);
        else u = s->part == 'r' ? s->from->nz.data[i].row : s->from->nz.data[i].col;
        if (half) u >>= 16;
        for (unsigned k = 0; k < (half ? 2u : 4u); k++) buf[i * (half ? 2 : 4) + k] = (uint8_t)(u >> 8 * k);
    }
    bool ok = fwrite(buf, 1, s->bytes, out) == s->bytes;
    free(buf);
    return ok;
}

static bool write_file(const File *f, FILE *out)
{
    char *h = header(f);
    uint64_t n = strlen(h), padded = (n + 7) / 8 * 8;
    uint8_t len[8];
    for (unsigned i = 0; i < 8; i++) len[i] = (uint8_t)(padded >> 8 * i);
    bool ok = fwrite(len, 1, 8, out) == 8 && fwrite(h, 1, n, out) == n;
    for (uint64_t i = n; ok && i < padded; i++) ok = fputc(' ', out) != EOF;
    free(h);
    for (uint32_t i = 0; ok && i < f->slabs.n; i++) ok = write_slab(f, &f->slabs.data[i], out);
    return ok;
}

bool chip_write(Chip *c, const char *path, ChipAccept *accept, void *ctx)
{
    File f = {.c = c};
    char *tmp = xfmt("%s.tmp%ld", path, (long)getpid());
    FILE *out = fopen(tmp, "wb");
    if (!out) {
        c->error = xfmt("cannot write %s: %s", path, strerror(errno));
        return false;
    }
    list_slabs(&f);
    bool ok = write_file(&f, out);
    ok = fclose(out) == 0 && ok;
    bool accepted = ok && (!accept || accept(tmp, ctx));
    if (accepted && rename(tmp, path) == 0) return true;
    if (!ok || accepted) c->error = xfmt("cannot write %s: %s", path, strerror(errno));
    unlink(tmp);
    return false;
}
