/* export_tokens.c: a tokenizer whose vocabulary is the chip's kinds of token in readable form: "<kind 0xPAYLOAD>", "<kind>" for one without a payload.
 * Text is read by those strings alone, whatever stands between them is skipped; a string that is no token is an error. */
#include "export.h"
#include <jansson.h>
#include <stdlib.h>

/* ---- names ---- */
static char *escaped(const char *s)
{
    json_t *j = json_string(s);
    char *quoted = json_dumps(j, JSON_ENCODE_ANY | JSON_ENSURE_ASCII), *out;
    json_decref(j);
    if (!quoted) die("name");
    out = xfmt("%.*s", (int)strlen(quoted) - 2, quoted + 1);
    free(quoted);
    for (char *c = out; *c; c++)
        if (*c == '<' || *c == '>') *c = '_'; /* they delimit tokens */
    return out;
}

static bool taken(const Labels *l, const char *s)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (!strcmp(l->label[i], s)) return true;
    return !strncmp(s, "unused", 6);
}

/* A kind is called by its name; where another has it already, by its role and name, then also its number. */
Labels export_labels(const Model *m)
{
    Labels l = { xrealloc(NULL, m->nkinds * sizeof *l.label), 0 };
    for (; l.n < m->nkinds; l.n++) {
        const ChipKind *k = &m->kind[l.n];
        char *name = escaped(k->name), *longer = xfmt("%s %s", chip_role_name[k->role], name), *all = xfmt("%s #%u", longer, l.n);
        char *use = !taken(&l, name) ? name : !taken(&l, longer) ? longer : all;
        l.label[l.n] = use;
    }
    return l;
}

void export_token_text(const Model *m, const Labels *l, uint32_t token, char *out, size_t size)
{
    const ChipKind *k = model_kind(m, token);
    if (!k) snprintf(out, size, "<unused 0x%x>", token);
    else if (!k->width) snprintf(out, size, "<%s>", l->label[k - m->kind]);
    else snprintf(out, size, "<%s 0x%0*x>", l->label[k - m->kind], (int)(k->width + 3) / 4, token - k->base);
}

/* ---- files ---- */
/* No token stands for a byte, but some readers of this format (toktrie) take no decoder without ByteFallback or ByteLevel. */
static bool write_tokenizer(Export *x, const Labels *l)
{
    char text[512];
    FILE *f = export_create(x, "tokenizer.json");
    if (!f) return false;
    fputs("{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],\"normalizer\":null,\n"
          "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"<[^<>]*>\"},\"behavior\":\"Removed\",\"invert\":true},\n"
          "\"post_processor\":null,\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]},\n"
          "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"no such token\",\"vocab\":{", f);
    for (uint32_t t = 0; t < x->vocab; t++) {
        export_token_text(x->m, l, t, text, sizeof text);
        fprintf(f, "%s\n\"%s\":%u", t ? "," : "", text, t);
    }
    fputs("}}}\n", f);
    return export_close(x, f);
}

/* The first exit; its payload 0 ends well. */
const ChipKind *export_end(const Model *m)
{
    for (uint32_t i = 0; i < m->nkinds; i++)
        if (m->kind[i].role == CHIP_EXIT) return &m->kind[i];
    return NULL;
}

static void name_token(Export *x, const Labels *l, json_t *o, const char *key, uint32_t token)
{
    char text[512];
    json_error_t je;
    export_token_text(x->m, l, token, text, sizeof text);
    json_t *list = json_loads(xfmt("[\"%s\"]", text), 0, &je);
    json_object_set(o, key, json_array_get(list, 0));
    json_decref(list);
}

static bool write_config(Export *x, const Labels *l)
{
    FILE *f = export_create(x, "tokenizer_config.json");
    const ChipKind *end = export_end(x->m);
    if (!f) return false;
    json_t *o = json_pack("{s:s, s:b, s:b}", "tokenizer_class", "PreTrainedTokenizerFast", "clean_up_tokenization_spaces", 0, "add_bos_token", 0);
    name_token(x, l, o, "bos_token", x->m->start);
    if (end) name_token(x, l, o, "eos_token", end->base);
    if (x->pad < x->vocab) name_token(x, l, o, "pad_token", x->pad);
    json_object_set_new(o, "padding_side", json_string("left"));
    json_object_set_new(o, "chat_template", json_string(EXPORT_CHAT_TEMPLATE));
    json_object_set_new(o, "model_input_names", json_pack("[s, s]", "input_ids", "attention_mask"));
    if (json_dumpf(o, f, JSON_INDENT(2))) fail(x->err, "%s: cannot be written", x->o->dir);
    json_decref(o);
    return export_close(x, f);
}

bool export_tokens(Export *x)
{
    Labels l = export_labels(x->m);
    return write_tokenizer(x, &l) && write_config(x, &l);
}
