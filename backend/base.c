/* base.c: reads a stock Qwen3.5 checkpoint: what a chip is put before. Files are mapped, never copied: a page is in memory while it is being read. */
#include "base.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_SIZE = 1 << 20, MAX_LAYERS = 4096, MAX_VOCAB = 1 << 28, FULL_INTERVAL = 4 /* where the config says nothing */ };

/* ---- config.json ---- */
static json_t *load_json(const char *path, char **err)
{
    json_error_t je;
    json_t *o = json_load_file(path, JSON_REJECT_DUPLICATES, &je);
    if (o && json_is_object(o)) return o;
    if (o) fail(err, "%s: not an object", path);
    else if (je.line > 0) fail(err, "%s:%d: %s", path, je.line, je.text);
    else fail(err, "%s: %s", path, je.text);
    json_decref(o);
    return NULL;
}

static void read_heads(Reader *r, const json_t *c, Geometry *g)
{
    static const char where[] = "the model";
    g->heads = (uint32_t)get_int(r, c, where, "num_attention_heads", 1, MAX_SIZE);
    g->kv_heads = (uint32_t)get_int(r, c, where, "num_key_value_heads", 1, MAX_SIZE);
    g->head_dim = (uint32_t)get_int(r, c, where, "head_dim", 1, MAX_SIZE);
    g->nk = (uint32_t)get_int(r, c, where, "linear_num_key_heads", 1, MAX_SIZE);
    g->nv = (uint32_t)get_int(r, c, where, "linear_num_value_heads", 1, MAX_SIZE);
    g->dk = (uint32_t)get_int(r, c, where, "linear_key_head_dim", 1, MAX_SIZE);
    g->dv = (uint32_t)get_int(r, c, where, "linear_value_head_dim", 1, MAX_SIZE);
    g->taps = (uint32_t)get_int(r, c, where, "linear_conv_kernel_dim", 1, MAX_SIZE);
    if (g->taps != 4) reader_fail(r, "linear_conv_kernel_dim is %u: a chip has 4", g->taps);
    if (g->nv % g->nk) reader_fail(r, "%u value heads do not share %u key heads evenly", g->nv, g->nk);
    g->conv_dim = 2 * g->nk * g->dk + g->nv * g->dv;
}

static void read_layers(Reader *r, const json_t *c, Base *b)
{
    const json_t *types = json_object_get(c, "layer_types");
    json_int_t every = json_is_integer(json_object_get(c, "full_attention_interval")) ? json_integer_value(json_object_get(c, "full_attention_interval")) : FULL_INTERVAL;
    uint32_t n = b->geo.layers = (uint32_t)get_int(r, c, "the model", "num_hidden_layers", 1, MAX_LAYERS);
    b->full = pool_array(r->pool, n, sizeof *b->full);
    if (every < 1) reader_fail(r, "full_attention_interval is not positive");
    if (json_is_array(types) && json_array_size(types) != n) reader_fail(r, "%zu layer_types for %u layers", json_array_size(types), n);
    for (uint32_t i = 0; i < n; i++) {
        const char *s = json_string_value(json_array_get(types, i));
        if (!json_is_array(types)) b->full[i] = (i + 1) % (uint32_t)every == 0;
        else if (s && !strcmp(s, "full_attention")) b->full[i] = true;
        else if (!s || strcmp(s, "linear_attention")) reader_fail(r, "layer %u: unknown layer type \"%s\"", i, s ? s : "");
    }
}

static void read_dtype(Reader *r, const json_t *c, Base *b)
{
    const char *s = json_string_value(json_object_get(c, "dtype"));
    if (!s) s = json_string_value(json_object_get(c, "torch_dtype"));
    b->bf16 = s && !strcmp(s, "bfloat16");
    if (!b->bf16 && (!s || strcmp(s, "float32"))) reader_fail(r, "its dtype is %s: expected bfloat16 or float32", s ? s : "not stated");
}

static void read_config(Reader *r, Base *b)
{
    const json_t *c = b->config;
    Geometry *g = &b->geo;
    g->hidden = (uint32_t)get_int(r, c, "the model", "hidden_size", 1, MAX_SIZE);
    g->intermediate = (uint32_t)get_int(r, c, "the model", "intermediate_size", 1, MAX_SIZE);
    g->vocab = (uint32_t)get_int(r, c, "the model", "vocab_size", 1, MAX_VOCAB);
    g->eps = (float)get_number(r, c, "the model", "rms_norm_eps");
    if (!(g->eps > 0)) reader_fail(r, "rms_norm_eps is not positive");
    b->tied = get_bool(r, c, "the model", "tie_word_embeddings", false);
    if (get_bool(r, c, "the model", "attention_bias", false)) reader_fail(r, "its attention has biases: not supported");
    read_heads(r, c, g);
    read_layers(r, c, b);
    read_dtype(r, c, b);
}

/* The text model's part, with what stands beside it in a model with vision. */
static json_t *text_config(json_t *whole)
{
    json_t *text = json_object_get(whole, "text_config");
    static const char *const outer[] = { "dtype", "torch_dtype", "tie_word_embeddings" };
    if (!text) return json_incref(whole);
    for (unsigned i = 0; i < sizeof outer / sizeof *outer; i++)
        if (!json_object_get(text, outer[i]) && json_object_get(whole, outer[i])) json_object_set(text, outer[i], json_object_get(whole, outer[i]));
    return json_incref(text);
}

bool base_shape(Base *b, const char *dir, char **err)
{
    char *path = xfmt("%s/config.json", dir);
    json_t *whole = load_json(path, err);
    *b = (Base){ .dir = dir };
    if (!whole) return false;
    b->config = text_config(whole);
    json_decref(whole);
    const char *type = json_string_value(json_object_get(b->config, "model_type"));
    if (!type || (strcmp(type, "qwen3_5_text") && strcmp(type, "qwen3_5")))
        return fail(err, "%s: its model_type is \"%s\": a chip can be put before qwen3_5_text only", path, type ? type : "");
    Reader r = { .path = path, .pool = pool_new(), .err = err };
    if (setjmp(r.fail)) return false;
    read_config(&r, b);
    return true;
}

Target base_target(const Base *b)
{
    const Geometry *g = &b->geo;
    double eps = json_number_value(json_object_get(b->config, "rms_norm_eps"));
    return (Target){ .bf16 = b->bf16, .base_hidden = g->hidden, .mlp = g->intermediate, .key_heads = g->nk, .value_heads = g->nv, .dk = g->dk, .dv = g->dv,
                     .attn_heads = g->heads, .attn_kv_heads = g->kv_heads, .head_dim = g->head_dim, .eps = eps };
}

/* ---- weights ---- */
/* Names of the text part of a model with vision; what belongs to other parts is NULL. */
static const char *text_name(const char *name)
{
    static const char inner[] = "model.language_model.";
    if (!strncmp(name, "mtp.", 4) || !strncmp(name, "model.visual.", 13)) return NULL;
    return strncmp(name, inner, sizeof inner - 1) ? name : xfmt("model.%s", name + sizeof inner - 1);
}

static bool add_file(Base *b, const char *name, char **err)
{
    for (uint32_t i = 0; i < b->nfiles; i++)
        if (!strcmp(strrchr(b->file[i]->path, '/') + 1, name)) return true;
    if (strchr(name, '/')) return fail(err, "%s/model.safetensors.index.json: \"%s\" is no file name", b->dir, name);
    b->file = xrealloc(b->file, (b->nfiles + 1) * sizeof *b->file);
    StFile *f = st_open(xfmt("%s/%s", b->dir, name), err);
    if (!f) return false;
    for (uint32_t i = 0; i < f->n; i++)
        if (text_name(f->tensor[i].name)) f->tensor[i].name = text_name(f->tensor[i].name);
    b->file[b->nfiles++] = f;
    return true;
}

static bool open_files(Base *b, char **err)
{
    char *path = xfmt("%s/model.safetensors.index.json", b->dir);
    if (access(path, F_OK)) return add_file(b, "model.safetensors", err);
    json_t *index = load_json(path, err), *map = json_object_get(index, "weight_map"), *v;
    const char *k;
    bool ok = index && (json_is_object(map) || fail(err, "%s: there is no weight_map", path));
    if (ok) json_object_foreach(map, k, v) {
        ok = json_is_string(v) ? add_file(b, json_string_value(v), err) : fail(err, "%s: \"%s\": expected a file name", path, k);
        if (!ok) break;
    }
    json_decref(index);
    return ok;
}

/* Tensors stay in the order of their file's own names, so the search is a plain one. */
const StTensor *base_tensor(const Base *b, const char *name)
{
    for (uint32_t i = 0; i < b->nfiles; i++)
        for (uint32_t k = 0; k < b->file[i]->n; k++)
            if (!strcmp(b->file[i]->tensor[k].name, name)) return &b->file[i]->tensor[k];
    return NULL;
}

static bool check_tensor(const Base *b, const char *name, unsigned dims, const uint64_t *shape, char **err)
{
    const StTensor *t = base_tensor(b, name);
    if (!t) return fail(err, "%s: tensor \"%s\" is missing", b->dir, name);
    if (t->dtype != ST_F32 && t->dtype != ST_BF16) return fail(err, "%s: tensor \"%s\" is %s: expected F32 or BF16", b->dir, name, st_dtype_name[t->dtype]);
    bool same = t->ndim == dims;
    for (unsigned i = 0; i < dims && same; i++) same = t->shape[i] == shape[i];
    return same || fail(err, "%s: tensor \"%s\" has another shape than config.json gives", b->dir, name);
}

static bool check_model(const Base *b, uint32_t *expected, char **err)
{
    const Geometry *g = &b->geo;
    const uint64_t rows[2] = { g->vocab, g->hidden };
    const Family *family = family_find("qwen3_5");
    if (!check_tensor(b, "model.embed_tokens.weight", 2, rows, err) || !check_tensor(b, "model.norm.weight", 1, rows + 1, err)) return false;
    if (!b->tied && !check_tensor(b, "lm_head.weight", 2, rows, err)) return false;
    *expected = 2 + (b->tied ? base_tensor(b, "lm_head.weight") != NULL : 1);
    for (uint32_t l = 0; l < g->layers; l++)
        for (unsigned i = 0; i < nfamily_tensors; i++) {
            const FamilyTensor *s = &family_tensors[i];
            uint64_t shape[MOST_DIMS];
            if (!(s->families & family->bit) || !(s->scope & (b->full[l] ? IN_FULL : IN_LINEAR))) continue;
            s->shape(g, shape);
            if (!check_tensor(b, xfmt("model.layers.%u.%s", l, s->name), s->dims, shape, err)) return false;
            ++*expected;
        }
    return true;
}

/* A tensor that no one asks for would be lost without a word. */
static bool nothing_else(const Base *b, uint32_t expected, char **err)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < b->nfiles; i++)
        for (uint32_t k = 0; k < b->file[i]->n; k++) found += text_name(b->file[i]->tensor[k].name) != NULL;
    return found == expected || fail(err, "%s: %u tensors where its config.json asks for %u", b->dir, found, expected);
}

bool base_open(Base *b, char **err)
{
    uint32_t expected = 0;
    return open_files(b, err) && check_model(b, &expected, err) && nothing_else(b, expected, err);
}

void base_read(const StTensor *t, uint64_t at, uint64_t n, float *out)
{
    const uint8_t *p = t->data + at * (t->dtype == ST_BF16 ? 2 : 4);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t u;
        if (t->dtype == ST_BF16) u = (uint32_t)p[2 * i] << 16 | (uint32_t)p[2 * i + 1] << 24;
        else u = (uint32_t)p[4 * i] | (uint32_t)p[4 * i + 1] << 8 | (uint32_t)p[4 * i + 2] << 16 | (uint32_t)p[4 * i + 3] << 24;
        memcpy(&out[i], &u, 4);
    }
}

void base_forget(const StTensor *t)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = ((uintptr_t)t->data + page - 1) / page * page, to = ((uintptr_t)t->data + t->size) / page * page;
    if (to > from) madvise((void *)from, to - from, MADV_DONTNEED);
}

void base_close(Base *b)
{
    for (uint32_t i = 0; i < b->nfiles; i++) st_close(b->file[i]);
    free(b->file);
    json_decref(b->config);
}
