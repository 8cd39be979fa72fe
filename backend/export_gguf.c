/* export_gguf.c: a chip as one GGUF file, version 3, of architecture qwen35 as llama.cpp reads it. The format (little-endian):
 *   "GGUF", u32 version, i64 tensors, i64 pairs; a pair: key, u32 type, value (an array: u32 type, u64 n, values); a tensor: name, u32 dimensions, those
 *   sizes (i64, the contiguous one first), u32 type, u64 offset; then the data, each tensor at a multiple of 32. A string: u64 length, bytes.
 * What that engine stores otherwise than the stock checkpoint: norms as gains, A as -exp(A_log), the convolution as a matrix, and value heads dealt to the
 * key heads in turn: its value head j uses key head j mod nk, where a chip's uses j / (nv / nk). Numbers beside matrices are always float32.
 * Tokens are strings of the kind that text is searched for; between them text has no meaning. */
#include "export.h"
#include <errno.h>
#include <jansson.h>
#include <libgen.h>
#include <stdlib.h>

enum { VERSION = 3, ALIGN = 32, CONTEXT = 1 << 24 };
enum { KV_U32 = 4, KV_I32 = 5, KV_F32 = 6, KV_BOOL = 7, KV_STRING = 8, KV_ARRAY = 9 }; /* types of values */
enum { DATA_F32 = 0, DATA_BF16 = 30 };                                               /* types of tensors */
enum { FILE_F32 = 0, FILE_BF16 = 32 };                                               /* general.file_type */
enum { USER_DEFINED = 4 };                                                           /* a kind of token */

/* ---- tensors ---- */
typedef enum {
    AS_IT_IS,
    GAIN,      /* + 1 */
    MINUS_EXP, /* of a number per value head */
    HEAD,      /* a row per value head */
    HEAD_ROWS, /* dv rows per value head */
    VALUES,    /* after 2 nk dk other rows, dv rows per value head */
    COLUMNS,   /* dv columns per value head */
} How;
typedef struct {
    const char *name; /* after "blk.<i>." */
    LayerScope scope;
    TensorId from;
    How how;
} GgufTensor;

static const GgufTensor layer_tensors[] = {
    { "attn_norm.weight", IN_ANY, T_INPUT_NORM, GAIN },
    { "post_attention_norm.weight", IN_ANY, T_POST_NORM, GAIN },
    { "ffn_gate.weight", IN_ANY, T_GATE, AS_IT_IS },
    { "ffn_up.weight", IN_ANY, T_UP, AS_IT_IS },
    { "ffn_down.weight", IN_ANY, T_DOWN, AS_IT_IS },
    { "attn_qkv.weight", IN_LINEAR, T_QKV, VALUES },
    { "attn_gate.weight", IN_LINEAR, T_Z, HEAD_ROWS },
    { "ssm_beta.weight", IN_LINEAR, T_B, HEAD },
    { "ssm_alpha.weight", IN_LINEAR, T_A, HEAD },
    { "ssm_conv1d.weight", IN_LINEAR, T_CONV, VALUES },
    { "ssm_a", IN_LINEAR, T_A_LOG, MINUS_EXP },
    { "ssm_dt.bias", IN_LINEAR, T_DT_BIAS, HEAD },
    { "ssm_norm.weight", IN_LINEAR, T_NORM, AS_IT_IS },
    { "ssm_out.weight", IN_LINEAR, T_OUT, COLUMNS },
    { "attn_q.weight", IN_FULL, T_Q_PROJ, AS_IT_IS },
    { "attn_k.weight", IN_FULL, T_K_PROJ, AS_IT_IS },
    { "attn_v.weight", IN_FULL, T_V_PROJ, AS_IT_IS },
    { "attn_output.weight", IN_FULL, T_O_PROJ, AS_IT_IS },
    { "attn_q_norm.weight", IN_FULL, T_Q_NORM, GAIN },
    { "attn_k_norm.weight", IN_FULL, T_K_NORM, GAIN },
};

/* Row r of a tensor with `each` rows per value head in the engine's order: the chip's row. */
static uint32_t dealt(const Geometry *g, uint32_t r, uint32_t each)
{
    uint32_t j = r / each, share = g->nv / g->nk;
    return (j % g->nk * share + j / g->nk) * each + r % each;
}

/* The other way: where column c of the chip's goes. */
static uint32_t deal_column(const Geometry *g, uint32_t c)
{
    uint32_t h = c / g->dv, share = g->nv / g->nk;
    return (h % share * g->nk + h / share) * g->dv + c % g->dv;
}

static uint32_t source_row(const Geometry *g, How how, uint32_t r)
{
    const uint32_t keys = 2 * g->nk * g->dk;
    if (how == VALUES) return r < keys ? r : keys + dealt(g, r - keys, g->dv);
    return how == HEAD_ROWS ? dealt(g, r, g->dv) : how == HEAD || how == MINUS_EXP ? dealt(g, r, 1) : r;
}

static bool layer_row(const Export *x, const Item *t, uint64_t r, float *out)
{
    const GgufTensor *s = t->from;
    const Geometry *g = &x->m->geo;
    bool any = export_tensor_row(g, &x->m->layer[t->layer].t[s->from], source_row(g, s->how, (uint32_t)r), s->how == COLUMNS ? deal_column : NULL, out);
    if (s->how == GAIN) *out += 1;
    if (s->how == MINUS_EXP) *out = -expf(*out);
    return any || s->how == GAIN || s->how == MINUS_EXP;
}

static void list_items(Items *w)
{
    const Model *m = w->x->m;
    const uint64_t vocab = w->x->vocab, hidden = m->geo.hidden;
    const bool half = m->bf16;
    export_add(w, (Item){ .half = half, .name = xfmt("token_embd.weight"), .dims = 2, .shape = { vocab, hidden }, .row = export_embed_row });
    export_add(w, (Item){ .name = xfmt("output_norm.weight"), .dims = 1, .shape = { hidden }, .row = export_final_norm_row });
    export_add(w, (Item){ .half = half, .name = xfmt("output.weight"), .dims = 2, .shape = { vocab, hidden }, .row = export_head_row });
    for (uint32_t l = 0; l < m->geo.layers; l++)
        for (unsigned i = 0; i < sizeof layer_tensors / sizeof *layer_tensors; i++) {
            const GgufTensor *s = &layer_tensors[i];
            const Tensor *t = &m->layer[l].t[s->from];
            if (!(s->scope & (m->layer[l].full ? IN_FULL : IN_LINEAR))) continue;
            export_add(w, (Item){ .half = half && t->cols > 1 && s->from != T_CONV, .name = xfmt("blk.%u.%s", l, s->name), .dims = t->cols > 1 ? 2 : 1,
                                  .shape = { t->rows, t->cols }, .layer = l, .row = layer_row, .from = s });
        }
}

/* ---- bytes; errors of the stream are found when it is closed ---- */
static void put(FILE *f, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) putc((int)(v >> 8 * i & 0xff), f);
}

static void put_string(FILE *f, const char *s)
{
    put(f, strlen(s), 8);
    fputs(s, f);
}

/* ---- pairs ---- */
typedef struct {
    FILE *f;
    uint64_t n;
} Pairs;

static void pair(Pairs *p, const char *key, uint32_t type)
{
    p->n++;
    put_string(p->f, key);
    put(p->f, type, 4);
}

static void pair_array(Pairs *p, const char *key, uint32_t type, uint64_t n)
{
    pair(p, key, KV_ARRAY);
    put(p->f, type, 4);
    put(p->f, n, 8);
}

static void pair_int(Pairs *p, const char *key, uint32_t v) { pair(p, key, KV_U32), put(p->f, v, 4); }

static void pair_text(Pairs *p, const char *key, const char *v) { pair(p, key, KV_STRING), put_string(p->f, v); }

static void pair_float(Pairs *p, const char *key, float v)
{
    uint32_t u;
    memcpy(&u, &v, 4);
    pair(p, key, KV_F32);
    put(p->f, u, 4);
}

static void write_shape(Pairs *p, const Export *x)
{
    const Geometry *g = &x->m->geo;
    uint32_t sections[4] = { 0 }; /* of rotary pairs, for time, height, width and nothing */
    const struct {
        const char *key;
        uint32_t value;
    } sizes[] = {
        { "vocab_size", x->vocab }, { "context_length", CONTEXT }, { "embedding_length", g->hidden }, { "block_count", g->layers },
        { "feed_forward_length", g->intermediate }, { "attention.head_count", g->heads }, { "attention.head_count_kv", g->kv_heads },
        { "attention.key_length", g->head_dim }, { "attention.value_length", g->head_dim }, { "full_attention_interval", g->layers },
        { "rope.dimension_count", (uint32_t)(g->head_dim * g->rotary_factor) }, { "ssm.conv_kernel", g->taps }, { "ssm.state_size", g->dk },
        { "ssm.group_count", g->nk }, { "ssm.time_step_rank", g->nv }, { "ssm.inner_size", g->nv * g->dv },
    };
    pair_text(p, "general.architecture", "qwen35");
    pair_text(p, "general.name", x->m->name);
    pair_int(p, "general.file_type", x->m->bf16 ? FILE_BF16 : FILE_F32);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) pair_int(p, xfmt("qwen35.%s", sizes[i].key), sizes[i].value);
    pair_float(p, "qwen35.attention.layer_norm_rms_epsilon", g->eps);
    pair_float(p, "qwen35.rope.freq_base", (float)g->rope_theta);
    export_rope_sections(g, sections);
    pair_array(p, "qwen35.rope.dimension_sections", KV_I32, 4);
    for (unsigned i = 0; i < 4; i++) put(p->f, sections[i], 4);
}

static void write_tokens(Pairs *p, const Export *x)
{
    char text[512];
    Labels l = export_labels(x->m);
    const ChipKind *end = export_end(x->m);
    pair_text(p, "tokenizer.ggml.model", "gpt2");
    pair_text(p, "tokenizer.ggml.pre", "qwen2");
    pair_array(p, "tokenizer.ggml.tokens", KV_STRING, x->vocab);
    for (uint32_t t = 0; t < x->vocab; t++) {
        export_token_text(x->m, &l, t, text, sizeof text);
        put_string(p->f, text);
    }
    pair_array(p, "tokenizer.ggml.token_type", KV_I32, x->vocab);
    for (uint32_t t = 0; t < x->vocab; t++) put(p->f, USER_DEFINED, 4);
    pair_array(p, "tokenizer.ggml.merges", KV_STRING, 0);
    pair_int(p, "tokenizer.ggml.bos_token_id", x->m->start);
    if (end || x->pad < x->vocab) pair_int(p, "tokenizer.ggml.eos_token_id", end ? end->base : x->pad); /* an engine wants one even where no run ends */
    if (x->pad < x->vocab) pair_int(p, "tokenizer.ggml.padding_token_id", x->pad);
    pair_text(p, "tokenizer.chat_template", EXPORT_CHAT_TEMPLATE);
    pair(p, "tokenizer.ggml.add_bos_token", KV_BOOL);
    put(p->f, 0, 1);
}

/* ---- the file ---- */
static uint64_t aligned(uint64_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

static void describe(FILE *f, const Items *w)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < w->items.n; i++) {
        const Item *t = &w->items.data[i];
        put_string(f, t->name);
        put(f, t->dims, 4);
        for (unsigned k = t->dims; k-- > 0;) put(f, t->shape[k], 8);
        put(f, t->half ? DATA_BF16 : DATA_F32, 4);
        put(f, at, 8);
        at += aligned(export_bytes(t));
    }
}

static void pad(FILE *f) { fseeko(f, (off_t)(aligned((uint64_t)ftello(f)) - (uint64_t)ftello(f)), SEEK_CUR); }

static bool write_file(Items *w, FILE *f)
{
    Pairs p = { f, 0 };
    fputs("GGUF", f);
    put(f, VERSION, 4);
    put(f, w->items.n, 8);
    put(f, 0, 8); /* the number of pairs, below */
    write_shape(&p, w->x);
    write_tokens(&p, w->x);
    describe(f, w);
    pad(f);
    bool ok = true;
    for (uint32_t i = 0; ok && i < w->items.n; i++) {
        ok = export_item(w, &w->items.data[i], f);
        pad(f);
    }
    ok = ok && export_extend(f) && !fseeko(f, 16, SEEK_SET);
    put(f, p.n, 8);
    return ok;
}

/* What the engine's fused kernels and its one number for both sizes of a head leave. */
static const char *refuse(const Model *m)
{
    if (m->geo.dk != m->geo.dv) return "keys and values are not of one size: build it with -t native64";
    for (uint32_t i = 0; i < m->geo.layers; i++) {
        if (m->layer[i].full != (i + 1 == m->geo.layers)) return "its attention layers do not stand where the engine looks for them";
        if (m->layer[i].full && m->layer[i].t[T_O_PROJ].n) return "it has a memory in an attention layer, which the engine keeps in float16";
    }
    return NULL;
}

bool export_gguf(const Model *m, const char *path, char **err)
{
    static const Family plain = { .name = "qwen35", .norm_add = 1 };
    char *whole = xfmt("%s", path), *last = xfmt("%s", path);
    ExportOptions o = { .dir = dirname(whole) };
    Export x = { .m = m, .o = &o, .family = &plain, .vocab = m->geo.vocab, .pad = m->end, .err = err };
    Items w = { .x = &x };
    const char *why = refuse(m);
    if (why) return fail(err, "%s: llama.cpp cannot hold it: %s", m->path, why);
    FILE *f = export_create(&x, basename(last));
    if (!f) return false;
    list_items(&w);
    export_rows(&w);
    bool ok = write_file(&w, f);
    ok = export_close(&x, f) && ok;
    free(w.row);
    free(w.bytes);
    if (!ok && !*err) fail(err, "%s: %s", path, strerror(errno));
    return export_place(&x, ok);
}
