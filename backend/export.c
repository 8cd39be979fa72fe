/* export.c: the checkpoint folder: config.json, generation_config.json, and the order of things: every file is written beside its name, and all are
 * renamed when the last one is complete. */
#include "export.h"
#include <errno.h>
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_STOPS = 1 << 17, POSITIONS = 1 << 24 };

/* ---- files ---- */
FILE *export_create(Export *x, const char *name)
{
    OutFile f = { xfmt("%s/%s", x->o->dir, name), xfmt("%s/.%s.tmp%ld", x->o->dir, name, (long)getpid()) };
    FILE *out = fopen(f.temp, "wb");
    if (!out) fail(x->err, "%s: %s", f.final, strerror(errno));
    vec_push(&x->files, f);
    return out;
}

bool export_close(Export *x, FILE *f)
{
    bool bad = ferror(f) != 0;
    bad |= fclose(f) != 0;
    return !bad || fail(x->err, "%s: cannot be written", x->files.data[x->files.n - 1].final);
}

static bool has_file(const Export *x, const char *name)
{
    for (uint32_t i = 0; i < x->files.n; i++)
        if (!strcmp(strrchr(x->files.data[i].final, '/') + 1, name)) return true;
    return false;
}

/* A file of weights from an earlier export would be read instead of the new ones. */
static void remove_stale(const Export *x)
{
    static const char *const names[] = { "model.safetensors", "model.safetensors.index.json" };
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = xfmt("%s/%s", x->o->dir, names[i]);
        if (!has_file(x, names[i])) unlink(path);
    }
}

bool export_place(Export *x, bool ok)
{
    for (uint32_t i = 0; i < x->files.n; i++) {
        OutFile *f = &x->files.data[i];
        if (!ok) unlink(f->temp);
        else if (rename(f->temp, f->final)) ok = fail(x->err, "%s: %s", f->final, strerror(errno));
    }
    return ok;
}

bool export_finish(Export *x, bool ok)
{
    if (ok) remove_stale(x);
    return export_place(x, ok);
}

bool export_json(Export *x, const char *name, json_t *o)
{
    FILE *f = export_create(x, name);
    if (f && (json_dumpf(o, f, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) || fputc('\n', f) == EOF)) fail(x->err, "%s: cannot be written", x->o->dir);
    json_decref(o);
    return f && export_close(x, f);
}

/* ---- config.json ---- */
static void add_ids(const Export *x, json_t *o)
{
    json_object_set_new(o, "bos_token_id", json_integer(x->m->start));
    json_object_set_new(o, "pad_token_id", x->pad < x->vocab ? json_integer(x->pad) : json_null());
}

static json_t *geometry(const Export *x)
{
    const Geometry *g = &x->m->geo;
    json_t *o = json_object(), *types = json_array();
    const struct {
        const char *key;
        uint32_t value;
    } dims[] = {
        { "vocab_size", x->vocab }, { "hidden_size", g->hidden }, { "intermediate_size", g->intermediate },
        { "num_hidden_layers", g->layers }, { "num_attention_heads", g->heads }, { "num_key_value_heads", g->kv_heads },
        { "head_dim", g->head_dim }, { "linear_num_key_heads", g->nk }, { "linear_num_value_heads", g->nv },
        { "linear_key_head_dim", g->dk }, { "linear_value_head_dim", g->dv }, { "linear_conv_kernel_dim", g->taps },
        { "max_position_embeddings", POSITIONS },
    };
    for (unsigned i = 0; i < sizeof dims / sizeof *dims; i++) json_object_set_new(o, dims[i].key, json_integer(dims[i].value));
    for (uint32_t i = 0; i < g->layers; i++)
        json_array_append_new(types, json_string(x->m->layer[i].full ? "full_attention" : "linear_attention"));
    json_object_set_new(o, "layer_types", types);
    json_object_set(o, "rms_norm_eps", json_object_get(json_object_get(x->m->manifest, "geometry"), "rms_norm_eps"));
    return o;
}

static bool write_config(Export *x)
{
    json_t *o = json_pack("{s:[s], s:s, s:s, s:s, s:b, s:f, s:b, s:b}", "architectures", x->family->architecture, "model_type", x->family->model_type,
                          "dtype", x->m->bf16 ? "bfloat16" : "float32", "hidden_act", "silu", "attention_bias", 0, "attention_dropout", 0.0,
                          "tie_word_embeddings", 0, "use_cache", 1);
    json_t *g = geometry(x);
    uint32_t last = x->m->geo.layers;
    json_object_update(o, g);
    json_decref(g);
    json_object_set_new(o, "full_attention_interval", json_integer(last)); /* engines that ignore layer_types: the last layer only */
    add_ids(x, o);
    json_object_set_new(o, "eos_token_id", json_null());
    exporter_of(x->family)->config(x->m, o);
    return export_json(x, "config.json", o);
}

void export_stops(const Model *m, uint32_t first, json_t *ids)
{
    static const bool stops[CHIP_COUNT] = { [CHIP_EXIT] = true, [CHIP_FAULT] = true, [CHIP_TAKE] = true };
    for (uint32_t i = 0; i < m->nkinds; i++) {
        const ChipKind *k = &m->kind[i];
        for (uint64_t p = 0; stops[k->role] && p < 1ull << k->width && json_array_size(ids) < MAX_STOPS; p++)
            json_array_append_new(ids, json_integer((json_int_t)(first + k->base + p)));
    }
}

/* Plain greedy decoding, until the machine ends or waits for a byte that only the host can give. */
static bool write_generation(Export *x)
{
    json_t *o = json_pack("{s:b, s:b}", "do_sample", 0, "use_cache", 1), *ids = json_array();
    export_stops(x->m, 0, ids);
    add_ids(x, o);
    json_object_set_new(o, "eos_token_id", ids);
    return export_json(x, "generation_config.json", o);
}

/* ---- the whole ---- */
static const Family *chip_family(const Export *x)
{
    const char *name = x->o->family ? x->o->family : json_string_value(json_object_get(x->m->manifest, "family"));
    const Family *f = name ? family_find(name) : NULL;
    const char *why = f ? exporter_of(f)->refuse(x->m) : NULL;
    if (f && !why) return f;
    if (why) fail(x->err, "%s: %s cannot hold it: %s", x->m->path, f->name, why);
    else fail(x->err, "%s: unknown family \"%s\"", x->m->path, name ? name : "");
    return NULL;
}

/* A vocabulary costs two rows of the hidden size per token, whether a program says it or not. */
static void say_size(const Export *x)
{
    const Geometry *g = &x->m->geo;
    const double each = x->m->bf16 ? 2e-9 : 4e-9, rows = 2.0 * each * g->vocab * g->hidden;
    double layers = 0;
    for (uint32_t l = 0; l < g->layers; l++)
        for (unsigned i = 0; i < T_COUNT; i++) layers += each * x->m->layer[l].t[i].rows * x->m->layer[l].t[i].cols;
    fprintf(x->o->report, "%s: %.2f GB: layers %.2f, embedding and head %.2f\n", x->o->dir, layers + rows, layers, rows);
    if (rows > 4) fputs("a chip built with --vocab 16384 (or 65536) has less of both; its prompts are longer\n", x->o->report);
}

bool export_hf(const Model *m, const ExportOptions *o, char **err)
{
    Export x = { .m = m, .o = o, .vocab = m->geo.vocab, .pad = m->end, .err = err };
    if (!(x.family = chip_family(&x))) return false;
    if (mkdir(o->dir, 0777) && errno != EEXIST) return fail(err, "%s: %s", o->dir, strerror(errno));
    bool ok = export_finish(&x, write_config(&x) && write_generation(&x) && export_tokens(&x) && export_weights(&x));
    if (ok && o->report) say_size(&x);
    return ok;
}
