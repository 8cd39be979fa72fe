/* stock.h: models as stock software has them. stock.c knows how each family names and arranges a chip's tensors, checkpoint.c reads a checkpoint folder in
 * place, dense_stock.c makes layers of it that dense.h computes, gpu_stock.c the same on a GPU, stock_run.c decodes with them: `tapeout run DIR PROMPT`. */
#ifndef TAPEOUT_STOCK_H
#define TAPEOUT_STOCK_H
#include "runtime.h"

/* ---- stock.c ---- */
/* Where a row of a stock tensor comes from: that row of the chip's tensor `id`. */
typedef struct {
    enum {
        FROM_CHIP,
        FROM_ZERO,
        FROM_PILOT,        /* the gate of a shared expert: in an export a logit from the pilots whose sigmoid is 1 */
        FROM_GATE_CHANNEL, /* backend/export_kimi.c: the row-th channel that gates look at, */
        FROM_GATE_ROW,     /* a row of in_proj_z over those channels, */
        FROM_GATED_OUT     /* and one of out_proj times what an open gate multiplies with */
    } what;
    TensorId id;
    uint32_t row;
} From;
enum { MOST_DIMS = 4 }; /* of a stock tensor; its shape always has so many numbers */
enum { LATENT = 8 };    /* every size of Kimi Linear's attention layer, which does nothing */
enum { EXPERTS = 2, EXPERT_SIZE = 8 }; /* MoE families: experts that do nothing; the shared one is the chip's MLP */
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
    float norm_add;           /* 1 where norm weights are plain gains: the chip's are zero-centred */
    float head_eps;           /* of the gated norm; 0: rms_norm_eps */
    const char *embedding;    /* the tensor's name, after "model." */
    const char *intermediate; /* the word for the MLP's size in config.json; NULL: checkpoints are written, but not run */
} Family;
extern const FamilyTensor family_tensors[];
extern const unsigned nfamily_tensors;
extern const Family families[];
extern const unsigned nfamilies;
const Family *family_find(const char *name);
/* What is added to every element of the tensor in a family. */
float family_add(const Family *f, const FamilyTensor *t);

/* ---- checkpoint.c: config.json and one or several safetensors files. The text part of a model with vision is taken from it ---- */
typedef struct {
    const char *dir;
    const Family *family;
    json_t *config; /* of the text model */
    Geometry geo;   /* vocab: rows of the embedding; rope_theta 0: nothing turns */
    bool bf16, tied;
    bool *full;     /* [geo.layers] */
    uint32_t nfiles;
    StFile **file;
    uint32_t nends, *end; /* tokens after which generation stops: generation_config.json's, else config.json's */
    Pool *pool;
} Checkpoint;
/* Reads config.json alone. False and a malloc'd message when it describes no model of a family that is run. */
bool checkpoint_config(Checkpoint *c, const char *dir, char **err);
/* Maps the weights and checks that every tensor of the shape is there with its size and dtype, and no other. After checkpoint_config. */
bool checkpoint_open(Checkpoint *c, char **err);
/* The same of bytes, which the caller keeps alive, without generation_config.json: for tests. */
bool checkpoint_parse(Checkpoint *c, const char *config, size_t nconfig, const uint8_t *weights, size_t nweights, char **err);
/* The tensor of that name in the text model's terms ("model.layers.0..."); NULL when there is none. */
const StTensor *checkpoint_tensor(const Checkpoint *c, const char *name);
void checkpoint_close(Checkpoint *c);

/* ---- stock_run.c: greedy decoding ---- */
typedef struct {
    const char *name;
    uint32_t room; /* tokens of a prompt that had best pass together */
    /* positions: tokens that will be fed at most, 0: nobody knows */
    void *(*open)(const Checkpoint *k, uint32_t room, uint64_t positions, char **err);
    /* Feeds n <= room tokens. *next: the greedy token after the last one. logits: [n, vocab] of all, or NULL. */
    bool (*feed)(void *self, const uint32_t *token, uint32_t n, float *logits, uint32_t *next, char **err);
    void (*close)(void *self);
} StockBackend;
extern const StockBackend stock_dense_backend; /* dense_stock.c */
extern const StockBackend stock_cuda_backend, stock_cuda_host_backend; /* gpu_stock.c */

typedef struct {
    const char *dir, *prompt; /* prompt: a file of token ids, "-" for stdin */
    const char *backend;      /* NULL: dense */
    const char *logits;       /* file for the logits after every token that is fed, float32, or NULL */
    uint64_t max_tokens;      /* 0: until a token that ends generation */
    bool stats;
} StockOptions;
int stock_run(const StockOptions *o); /* the whole of `tapeout run DIR PROMPT`: returns the exit status */
#endif
