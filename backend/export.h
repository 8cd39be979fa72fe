/* export.h: a chip as a stock checkpoint folder. export.c makes the small files and puts everything in place at the end, export_weights.c
 * streams the dense tensors, export_tokens.c writes the tokenizer, export_family.c knows what each family's config.json says.
 * Everything comes from the chip file alone. */
#ifndef TAPEOUT_EXPORT_H
#define TAPEOUT_EXPORT_H
#include "../runtime/stock.h"

typedef struct {
    const char *dir;
    const char *family;   /* NULL: the chip's own */
    uint64_t shard_bytes; /* 0: 5 GB */
    FILE *report;         /* where the size is said; NULL: nowhere */
} ExportOptions;
/* False and a malloc'd message when the chip does not fit the family or a file cannot be written; the folder then holds no new file. */
bool export_hf(const Model *m, const ExportOptions *o, char **err);
/* export_gguf.c: the same as one GGUF file. */
bool export_gguf(const Model *m, const char *path, char **err);

/* ---- export_family.c ---- */
typedef struct {
    const char *family;
    void (*config)(const Model *m, json_t *json); /* adds to config.json */
    const char *(*refuse)(const Model *m);        /* why the family cannot hold the chip, or NULL */
    const void *(*prepare)(const Model *m, uint32_t layer); /* Item.from of a layer's tensors, or NULL */
} Exporter;
const Exporter *exporter_of(const Family *f);
void export_rope_sections(const Geometry *g, uint32_t pairs[3]); /* how a multimodal model shares out the rotary pairs */
/* A conversation is what its messages say, one after the other: a prompt of token strings can go through a chat interface. */
#define EXPORT_CHAT_TEMPLATE "{% for message in messages %}{{ message['content'] }}{% endfor %}"

/* ---- files that appear together: written beside their names, renamed when all are complete ---- */
typedef struct {
    char *final, *temp;
} OutFile;
typedef struct {
    const Model *m;
    const Family *family;
    const ExportOptions *o;
    uint32_t vocab, pad; /* pad: an unused row, or `vocab` when there is none */
    VEC(OutFile) files;
    char **err;
} Export;
FILE *export_create(Export *x, const char *name); /* NULL and *err on failure */
bool export_close(Export *x, FILE *f);            /* the last one created */
bool export_json(Export *x, const char *name, json_t *o); /* takes the reference */
bool export_place(Export *x, bool ok);            /* puts everything in place, or removes it */
bool export_finish(Export *x, bool ok);           /* the same for a folder: an earlier export's weights go too */
/* Adds the ids (plus `first`) after which plain generation stops: exits, faults, waiting for a byte that only the host can give. */
void export_stops(const Model *m, uint32_t first, json_t *ids);

/* ---- export_weights.c: model*.safetensors and the index ---- */
typedef struct Item Item;
struct Item {
    char *name;
    unsigned dims;
    uint64_t shape[MOST_DIMS], rows, cols; /* rows, cols: set by export_add */
    bool half;                 /* bfloat16, else float32 */
    const FamilyTensor *stock; /* of a layer, else NULL */
    uint32_t layer;            /* of the chip or of the base model */
    bool (*row)(const Export *x, const Item *t, uint64_t r, float *out); /* out[cols] is zero; false: and stays so */
    const void *from;          /* for the use of row and done */
    void (*done)(const Item *t); /* now and then, and when the last row has been written: what was read for it may go. May be NULL */
    uint32_t shard;
};
typedef struct {
    Export *x;
    VEC(Item) items;
    uint32_t nshards;
    float *row;
    uint8_t *bytes;
} Items;
void export_add(Items *w, Item t);
bool export_items(Items *w); /* writes them all, a row at a time */
bool export_weights(Export *x);
/* ---- export_kimi.c ---- */
void kimi_config(const Model *m, json_t *json);
const char *kimi_refuse(const Model *m);
const void *kimi_prepare(const Model *m, uint32_t layer);
bool kimi_gate_row(const Model *m, const Item *t, From f, float *out); /* out is zero; false: and stays so */

/* For other formats: room for the widest row, until row and bytes are freed; one tensor's data (false: *err or errno says why); bytes of a tensor; a hole
 * at the end of a file made part of it. */
void export_rows(Items *w);
bool export_item(Items *w, const Item *t, FILE *f);
uint64_t export_bytes(const Item *t);
bool export_extend(FILE *f);
/* Rows of a chip's tensors: out += what row r of the item holds, in the chip's channels. */
bool export_stock_row(const Export *x, const Item *t, uint64_t r, float *out);
bool export_tensor_row(const Geometry *g, const Tensor *t, uint32_t row, uint32_t (*column)(const Geometry *g, uint32_t c), float *out); /* column: NULL or where one goes */
bool export_embed_row(const Export *x, const Item *t, uint64_t r, float *out);
bool export_final_norm_row(const Export *x, const Item *t, uint64_t r, float *out);
bool export_head_row(const Export *x, const Item *t, uint64_t r, float *out);
bool export_tokens(Export *x);  /* export_tokens.c: tokenizer.json and tokenizer_config.json */
const ChipKind *export_end(const Model *m); /* the machine's ordinary end, or NULL */
/* The readable string of a token id, JSON-escaped without quotes; `labels` from export_labels. */
typedef struct {
    char **label; /* [nkinds] */
    uint32_t n;
} Labels;
Labels export_labels(const Model *m);
void export_token_text(const Model *m, const Labels *l, uint32_t token, char *out, size_t size);
#endif
