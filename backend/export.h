/* export.h: a chip as a stock checkpoint folder. export.c makes the small files and puts everything in place at the end, export_weights.c
 * streams the dense tensors, export_tokens.c writes the tokenizer, export_family.c knows how each model family names and arranges a chip's weights.
 * Everything comes from the chip file alone. */
#ifndef TAPEOUT_EXPORT_H
#define TAPEOUT_EXPORT_H
#include "../runtime/runtime.h"

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
typedef enum { IN_LINEAR = 1, IN_FULL = 2, IN_ANY = 3 } LayerScope;
/* Where a row of a stock tensor comes from: that row of the chip's tensor `id`. */
typedef struct {
    enum {
        FROM_CHIP,
        FROM_ZERO,
        FROM_PILOT,        /* the row makes a logit of at least GATE_ON from the pilots */
        FROM_GATE_CHANNEL, /* export_kimi.c: the row-th channel that gates look at, */
        FROM_GATE_ROW,     /* a row of in_proj_z over those channels, */
        FROM_GATED_OUT     /* and one of out_proj times what an open gate multiplies with */
    } what;
    TensorId id;
    uint32_t row;
} From;
enum { MOST_DIMS = 4 }; /* of a stock tensor; its shape always has so many numbers */
typedef struct {
    const char *name;  /* after "model.layers.<i>." */
    unsigned families; /* bits of Family.bit */
    LayerScope scope;
    unsigned dims;
    void (*shape)(const Geometry *g, uint64_t shape[MOST_DIMS]);
    From (*from)(const Geometry *g, uint32_t row);
    float add; /* to every element; NORM_WEIGHT: the family's norm_add */
} FamilyTensor;
#define NORM_WEIGHT (-1.0f)
typedef struct {
    const char *name, *model_type, *architecture;
    unsigned bit;
    float norm_add;                               /* 1 where norm weights are plain gains: the chip's are zero-centred */
    const char *embedding;                        /* the tensor's name, after "model." */
    void (*config)(const Model *m, json_t *json); /* adds to config.json */
    const char *(*refuse)(const Model *m);        /* why the family cannot hold the chip, or NULL */
    const void *(*prepare)(const Model *m, uint32_t layer); /* Item.from of a layer's tensors, or NULL */
} Family;
extern const FamilyTensor family_tensors[];
extern const unsigned nfamily_tensors;
extern const Family families[];
extern const unsigned nfamilies;
const Family *family_find(const char *name);

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
enum { LATENT = 8 }; /* every size of the attention layer that does nothing */
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
