/* checkpoint.c: reads a checkpoint folder of stock software. Files are mapped, never copied: a page is in memory while it is being read. */
#include "stock.h"
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_SIZE = 1 << 24, MAX_LAYERS = 4096, FULL_INTERVAL = 4 /* where the config says nothing */ };
static const char model[] = "the model"; /* what messages call config.json's object */

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

static bool is_given(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return v && !json_is_null(v);
}

/* Old files have its numbers beside it, and OLMo-Hybrid's say that nothing turns. */
static double rope_number(Reader *r, const json_t *c, const char *key, double absent)
{
    const json_t *rope = json_object_get(c, "rope_parameters");
    if (json_object_get(rope, key)) return get_number(r, rope, "rope_parameters", key);
    return json_object_get(c, key) ? get_number(r, c, model, key) : absent;
}

static void read_rope(Reader *r, const json_t *c, Geometry *g)
{
    const char *type = json_string_value(json_object_get(json_object_get(c, "rope_parameters"), "rope_type"));
    if (type && strcmp(type, "default")) reader_fail(r, "its rope_type is \"%s\": only the default is known", type);
    if (is_given(c, "rope_scaling")) reader_fail(r, "it has rope_scaling: not supported");
    g->rope_theta = rope_number(r, c, "rope_theta", 0);
    g->rotary_factor = rope_number(r, c, "partial_rotary_factor", 0.25);
    if (g->rope_theta != 0 && !(g->rope_theta >= 1 && isfinite(g->rope_theta))) reader_fail(r, "rope_theta is below 1");
    if (!(g->rotary_factor >= 0 && g->rotary_factor <= 1)) reader_fail(r, "partial_rotary_factor is not in 0..1");
}

static void read_layers(Reader *r, Checkpoint *k)
{
    const json_t *types = json_object_get(k->config, "layer_types"), *interval = json_object_get(k->config, "full_attention_interval");
    json_int_t every = json_is_integer(interval) ? json_integer_value(interval) : FULL_INTERVAL;
    uint32_t n = k->geo.layers = (uint32_t)get_int(r, k->config, model, "num_hidden_layers", 1, MAX_LAYERS);
    k->full = pool_array(r->pool, n, sizeof *k->full);
    if (every < 1) reader_fail(r, "full_attention_interval is not positive");
    if (is_given(k->config, "layer_types") && !json_is_array(types)) reader_fail(r, "layer_types is not a list");
    if (json_is_array(types) && json_array_size(types) != n) reader_fail(r, "%zu layer_types for %u layers", json_array_size(types), n);
    for (uint32_t i = 0; i < n; i++) {
        const char *s = json_string_value(json_array_get(types, i));
        if (!json_is_array(types)) k->full[i] = (i + 1) % every == 0;
        else if (s && !strcmp(s, "full_attention")) k->full[i] = true;
        else if (!s || strcmp(s, "linear_attention")) reader_fail(r, "layer %u: unknown layer type \"%s\"", i, s ? s : "");
    }
}

static void read_dtype(Reader *r, Checkpoint *k)
{
    const char *s = json_string_value(json_object_get(k->config, "dtype"));
    if (!s) s = json_string_value(json_object_get(k->config, "torch_dtype"));
    k->bf16 = s && !strcmp(s, "bfloat16");
    if (!k->bf16 && (!s || strcmp(s, "float32"))) reader_fail(r, "its dtype is %s: expected bfloat16 or float32", s ? s : "not stated");
}

/* The table of families or a message that lists it. */
static const Family *find_type(Reader *r, const char *type)
{
    char known[256] = "";
    for (unsigned i = 0; i < nfamilies; i++) {
        const Family *f = &families[i];
        if (!f->intermediate) continue;
        if (type && (!strcmp(type, f->model_type) || !strcmp(type, f->name))) return f;
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", *known ? ", " : "", f->model_type);
    }
    reader_fail(r, "its model_type is \"%.40s\": expected %s", type ? type : "", known);
}

/* What a config may ask for beyond the layers that are computed here. */
static void refuse_extras(Reader *r, const json_t *c)
{
    const json_t *act = json_object_get(c, "hidden_act"), *experts = json_object_get(c, "num_experts");
    if (get_bool(r, c, model, "attention_bias", false)) reader_fail(r, "its attention has biases: not supported");
    if (get_bool(r, c, model, "linear_allow_neg_eigval", false)) reader_fail(r, "it has linear_allow_neg_eigval: not supported");
    if (is_given(c, "hidden_act") && (!json_is_string(act) || strcmp(json_string_value(act), "silu"))) reader_fail(r, "its hidden_act is not silu");
    if (json_is_integer(experts) && json_integer_value(experts) != 0 && json_integer_value(experts) != EXPERTS)
        reader_fail(r, "it has %lld experts: only a shared one is run", (long long)json_integer_value(experts));
}

static void read_config(Reader *r, Checkpoint *k)
{
    const json_t *c = k->config;
    Geometry *g = &k->geo;
    k->family = find_type(r, json_string_value(json_object_get(c, "model_type")));
    read_sizes(r, g, c, model);
    g->intermediate = (uint32_t)get_int(r, c, model, k->family->intermediate, 1, MAX_SIZE);
    k->tied = get_bool(r, c, model, "tie_word_embeddings", false);
    refuse_extras(r, c);
    read_rope(r, c, g);
    read_layers(r, k);
    read_dtype(r, k);
}

/* The text model's part, with what stands beside it in a model with vision. */
static json_t *text_config(json_t *whole)
{
    json_t *text = json_object_get(whole, "text_config");
    static const char *const outer[] = {"dtype", "torch_dtype", "tie_word_embeddings"};
    if (!json_is_object(text)) return json_incref(whole);
    for (unsigned i = 0; i < sizeof outer / sizeof *outer; i++)
        if (!json_object_get(text, outer[i]) && json_object_get(whole, outer[i])) json_object_set(text, outer[i], json_object_get(whole, outer[i]));
    return json_incref(text);
}

static char *in_folder(const Checkpoint *k, const char *name)
{
    size_t n = strlen(k->dir) + strlen(name) + 2;
    char *path = pool_alloc(k->pool, n);
    snprintf(path, n, "%s/%s", k->dir, name);
    return path;
}

/* Takes the reference. */
static bool take_config(Checkpoint *k, json_t *whole, char **err)
{
    Reader r = {.path = in_folder(k, "config.json"), .pool = k->pool, .err = err};
    if (!whole) return false;
    k->config = text_config(whole);
    json_decref(whole);
    if (setjmp(r.fail)) return false;
    read_config(&r, k);
    return true;
}

bool checkpoint_config(Checkpoint *k, const char *dir, char **err)
{
    *k = (Checkpoint){.dir = dir, .pool = pool_new()};
    return take_config(k, load_json(in_folder(k, "config.json"), err), err);
}

/* ---- generation_config.json ---- */
static bool read_ends(Checkpoint *k, char **err)
{
    char *path = in_folder(k, "generation_config.json");
    json_t *o = access(path, F_OK) ? json_object() : load_json(path, err);
    if (!o) return false;
    json_t *ids = json_object_get(o, "eos_token_id"), *one;
    size_t i;
    if (!is_given(o, "eos_token_id")) ids = json_object_get(k->config, "eos_token_id"), path = in_folder(k, "config.json");
    json_t *list = json_is_array(ids) ? json_incref(ids) : ids && !json_is_null(ids) ? json_pack("[O]", ids) : json_array();
    k->end = pool_array(k->pool, json_array_size(list), sizeof *k->end);
    bool ok = true;
    json_array_foreach(list, i, one) {
        json_int_t id = json_is_integer(one) ? json_integer_value(one) : -1;
        if (id < 0 || id >= MOST_VOCABULARY) ok = fail(err, "%s: eos_token_id: expected token ids", path);
        if (!ok) break;
        k->end[k->nends++] = (uint32_t)id;
    }
    json_decref(list);
    json_decref(o);
    return ok;
}

/* ---- weights ---- */
/* Names of the text part of a model with vision; what belongs to other parts is NULL. */
static const char *text_name(Pool *p, const char *name)
{
    static const char inner[] = "model.language_model.", plain[] = "model.";
    if (!strncmp(name, "mtp.", 4) || !strncmp(name, "model.visual.", 13)) return NULL;
    if (strncmp(name, inner, sizeof inner - 1)) return name;
    char *out = pool_str(p, name + sizeof inner - sizeof plain);
    return memcpy(out, plain, sizeof plain - 1);
}

static bool take_file(Checkpoint *k, StFile *f)
{
    if (!f) return false;
    k->file = xrealloc(k->file, (k->nfiles + 1) * sizeof *k->file);
    for (uint32_t i = 0; i < f->n; i++) {
        const char *inner = text_name(k->pool, f->tensor[i].name);
        if (inner) f->tensor[i].name = inner;
    }
    k->file[k->nfiles++] = f;
    return true;
}

static bool add_file(Checkpoint *k, const char *name, char **err)
{
    for (uint32_t i = 0; i < k->nfiles; i++)
        if (!strcmp(strrchr(k->file[i]->path, '/') + 1, name)) return true;
    if (strchr(name, '/')) return fail(err, "%s/model.safetensors.index.json: \"%s\" is no file name", k->dir, name);
    return take_file(k, st_open(in_folder(k, name), err));
}

static bool open_files(Checkpoint *k, char **err)
{
    char *path = in_folder(k, "model.safetensors.index.json");
    if (access(path, F_OK)) return add_file(k, "model.safetensors", err);
    json_t *index = load_json(path, err), *map = json_object_get(index, "weight_map"), *v;
    const char *key;
    bool ok = index && (json_is_object(map) || fail(err, "%s: there is no weight_map", path));
    if (ok) json_object_foreach(map, key, v) {
        ok = json_is_string(v) ? add_file(k, json_string_value(v), err) : fail(err, "%s: \"%s\": expected a file name", path, key);
        if (!ok) break;
    }
    json_decref(index);
    return ok;
}

/* Tensors stay in the order of their file's own names, so the search is a plain one. */
const StTensor *checkpoint_tensor(const Checkpoint *k, const char *name)
{
    for (uint32_t i = 0; i < k->nfiles; i++)
        for (uint32_t n = 0; n < k->file[i]->n; n++)
            if (!strcmp(k->file[i]->tensor[n].name, name)) return &k->file[i]->tensor[n];
    return NULL;
}

static bool check_tensor(const Checkpoint *k, const char *name, unsigned dims, const uint64_t *shape, char **err)
{
    const StTensor *t = checkpoint_tensor(k, name);
    if (!t) return fail(err, "%s: tensor \"%s\" is missing", k->dir, name);
    if (t->dtype != ST_F32 && t->dtype != ST_BF16) return fail(err, "%s: tensor \"%s\" is %s: expected F32 or BF16", k->dir, name, st_dtype_name[t->dtype]);
    bool same = t->ndim == dims;
    for (unsigned i = 0; i < dims && same; i++) same = t->shape[i] == shape[i];
    return same || fail(err, "%s: tensor \"%s\" has another shape than config.json gives", k->dir, name);
}

static bool check_layer(const Checkpoint *k, uint32_t layer, uint32_t *expected, char **err)
{
    for (unsigned i = 0; i < nfamily_tensors; i++) {
        const FamilyTensor *s = &family_tensors[i];
        uint64_t shape[MOST_DIMS];
        char name[128];
        if (!(s->families & k->family->bit) || !(s->scope & (k->full[layer] ? IN_FULL : IN_LINEAR))) continue;
        s->shape(&k->geo, shape);
        snprintf(name, sizeof name, "model.layers.%u.%s", layer, s->name);
        if (!check_tensor(k, name, s->dims, shape, err)) return false;
        ++*expected;
    }
    return true;
}

static bool check_model(const Checkpoint *k, uint32_t *expected, char **err)
{
    const uint64_t rows[2] = {k->geo.vocab, k->geo.hidden};
    if (!check_tensor(k, "model.embed_tokens.weight", 2, rows, err) || !check_tensor(k, "model.norm.weight", 1, rows + 1, err)) return false;
    if (!k->tied && !check_tensor(k, "lm_head.weight", 2, rows, err)) return false;
    *expected = 2 + (k->tied ? checkpoint_tensor(k, "lm_head.weight") != NULL : 1);
    for (uint32_t l = 0; l < k->geo.layers; l++)
        if (!check_layer(k, l, expected, err)) return false;
    return true;
}

/* A tensor that no one asks for would be lost without a word. */
static bool nothing_else(const Checkpoint *k, uint32_t expected, char **err)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < k->nfiles; i++)
        for (uint32_t n = 0; n < k->file[i]->n; n++) found += text_name(k->pool, k->file[i]->tensor[n].name) != NULL;
    return found == expected || fail(err, "%s: %u tensors where its config.json asks for %u", k->dir, found, expected);
}

bool checkpoint_open(Checkpoint *k, char **err)
{
    uint32_t expected = 0;
    return read_ends(k, err) && open_files(k, err) && check_model(k, &expected, err) && nothing_else(k, expected, err);
}

bool checkpoint_parse(Checkpoint *k, const char *config, size_t nconfig, const uint8_t *weights, size_t nweights, char **err)
{
    json_error_t je;
    uint32_t expected = 0;
    *k = (Checkpoint){.dir = "bytes", .pool = pool_new()};
    json_t *whole = json_loadb(config, nconfig, JSON_REJECT_DUPLICATES, &je);
    if (!whole) return fail(err, "config.json:%d: %s", je.line, je.text);
    return take_config(k, whole, err) && take_file(k, st_parse(weights, nweights, "weights", err)) && check_model(k, &expected, err) && nothing_else(k, expected, err);
}

void checkpoint_close(Checkpoint *k)
{
    for (uint32_t i = 0; i < k->nfiles; i++) st_close(k->file[i]);
    free(k->file);
    json_decref(k->config);
    pool_free(k->pool);
}
