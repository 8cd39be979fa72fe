/* runtime.h: everything that loads and runs a chip file. The file format is in chip.md.
 *
 * safetensors.c maps the file, chip.c turns it into a Model, a Backend runs forward passes of the Model, machine.c
 * installs the initial state and turns passes into a running machine. Nothing here knows RISC-V.
 * Files from outside are the user's: every function that reads one returns NULL or false and a malloc'd message in
 * *err; none of them dies on bad input. Sections name the file that defines their functions. */
#ifndef TAPEOUT_RUNTIME_H
#define TAPEOUT_RUNTIME_H
#include "../dsl/util.h"
#include "../frontend/ir.h" /* struct Image only */
#include <math.h>
#include <setjmp.h>
#include <string.h>

typedef struct json_t json_t; /* jansson's */

/* ---- pool.c: memory that is freed with its owner, so that loaders can be fuzzed and models closed ---- */
typedef struct Pool Pool;
Pool *pool_new(void);
void *pool_alloc(Pool *p, size_t bytes); /* zeroed, 64-byte aligned */
void *pool_array(Pool *p, size_t n, size_t size); /* dies when n * size overflows: check sizes from outside first */
char *pool_str(Pool *p, const char *s);
void pool_free(Pool *p);
/* Sets *err (when err is not NULL) to a malloc'd message; always returns false. */
bool fail(char **err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- safetensors.c: a strict reader ---- */
typedef enum { ST_F64, ST_F32, ST_F16, ST_BF16, ST_I64, ST_I32, ST_I16, ST_I8, ST_U64, ST_U32, ST_U16, ST_U8, ST_BOOL, ST_DTYPES } StDtype;
enum { ST_MAX_DIMS = 8 };

typedef struct {
    const char *name;
    StDtype dtype;
    uint32_t ndim;
    uint64_t shape[ST_MAX_DIMS];
    const uint8_t *data; /* into the mapped file, not necessarily aligned */
    uint64_t size;       /* bytes */
} StTensor;

typedef struct {
    const char *path; /* for messages */
    uint32_t n;
    StTensor *tensor; /* in order of name */
    json_t *metadata; /* object of strings, or NULL */
    Pool *pool;
    void *map; /* what st_close unmaps, or NULL */
    size_t map_size;
} StFile;

StFile *st_open(const char *path, char **err);
/* The same over bytes that the caller keeps alive until st_close. */
StFile *st_parse(const uint8_t *bytes, size_t size, const char *path, char **err);
void st_close(StFile *f);
const StTensor *st_find(const StFile *f, const char *name); /* NULL when there is none */
const char *st_metadata(const StFile *f, const char *key);
/* The element at p of an F32 (half: BF16) tensor. */
static inline float st_number(const uint8_t *p, bool half)
{
    uint32_t u = half ? (uint32_t)p[0] << 16 | (uint32_t)p[1] << 24 : (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
/* out[n] = elements [at, at + n) of an F32 or BF16 tensor. */
void st_read(const StTensor *t, uint64_t at, uint64_t n, float *out);
void st_forget(const StTensor *t); /* its memory is not needed again */
extern const char *const st_dtype_name[ST_DTYPES];

/* ---- chip.c: a chip file as a checked Model ---- */
enum { MOST_VOCABULARY = 1 << 28 };
typedef struct {
    uint32_t hidden, intermediate, layers, vocab; /* vocab: at most MOST_VOCABULARY */
    uint32_t heads, kv_heads, head_dim;        /* full attention */
    uint32_t nk, nv, dk, dv, taps;             /* Gated DeltaNet; value head j uses key head j / (nv / nk) */
    uint32_t conv_dim;                         /* 2 nk dk + nv dv */
    float eps;
    double rope_theta, rotary_factor;
} Geometry;

/* A stock tensor: `fill` everywhere but at the listed elements, which are in order of row, then column. */
typedef struct {
    uint32_t rows, cols; /* 1-d: cols 1; conv1d [C, 1, K]: C and K */
    uint32_t n;
    float fill;
    const int32_t *row, *col; /* [n] */
    const float *value;       /* [n] */
} Tensor;

typedef enum {
#define TENSOR(id, scope, dims, name, rows, cols) T_##id,
#include "tensors.def"
#undef TENSOR
    T_COUNT
} TensorId;

typedef enum { IN_LINEAR = 1, IN_FULL = 2, IN_ANY = 3 } LayerScope;
typedef struct {
    const char *name; /* after "model.layers.<i>." */
    LayerScope scope;
    int dims;
} ModelTensor;
extern const ModelTensor model_tensor[T_COUNT];
void model_shape(const Geometry *g, TensorId id, uint32_t shape[2]); /* rows, columns */

typedef struct {
    bool full; /* full attention; else Gated DeltaNet */
    Tensor t[T_COUNT];
} Layer;

typedef enum { CHIP_TRACE, CHIP_OUTPUT, CHIP_EXIT, CHIP_FAULT, CHIP_TAKE, CHIP_INPUT, CHIP_START, CHIP_LOAD, CHIP_COUNT } ChipRole;
extern const char *const chip_role_name[CHIP_COUNT];

typedef struct {
    const char *name;
    uint32_t base, width; /* ids base .. base + 2^width - 1 */
    ChipRole role;
    bool last, retire;
    const char *message; /* faults, else NULL */
    uint32_t code;       /* faults, else 0 */
} ChipKind;
/* What the host's answer says: a byte, or the end of the input (EOF). */
static inline uint32_t input_value(int byte) { return byte == EOF ? 0 : 0x100u | (uint32_t)byte; }
static inline uint32_t input_token(const ChipKind *input, int byte) { return input->base + (input_value(byte) & (uint32_t)mask64(input->width)); }

/* Where the rows [row0, row0 + nrows) of one copy of a state element live: chip.md, "A piece". */
typedef struct {
    int32_t head, lane; /* head relative to the group's first, may be negative; lane -1: not a cell */
} Cell;
typedef struct {
    uint32_t layer, head, row0, nrows, group_rows, group_heads;
    Cell *bit;       /* [width of the state] */
    uint32_t npilot;
    Cell *pilot;     /* [npilot] */
    float *pilot_value;
    float one;
    bool has_count;
    Cell count;
    uint32_t count_low, count_bits, count_max;
    float count_unit;
    uint32_t nhead;
    int32_t *heads; /* [nhead] the distinct head offsets that bit, pilot and count use */
} Piece;
typedef struct {
    uint32_t n;
    Piece *piece; /* in order of row0 */
} Copy;
typedef struct {
    const char *name;
    StateKind kind;
    uint32_t width, rows, lane;
    uint32_t file, line; /* of the circuit: file is an index in the manifest's sources; line 0: not known */
    uint64_t base;
    InitKind init;
    uint64_t *row_init;
    uint32_t nrow_init;
    const char *symbol;
    uint32_t init_shift;
    bool has_hard;
    uint32_t hard_row;
    uint64_t hard_value;
    uint32_t ncopies;
    Copy *copy;
} ChipState;

typedef struct {
    const char *path, *name;
    Geometry geo;
    bool bf16; /* model dtype T: bfloat16, else float32 */
    Layer *layer; /* [geo.layers] */
    Tensor final_norm;
    uint32_t nkinds, max_width, end; /* end: first id after the last kind */
    ChipKind *kind;
    Tensor embed_kind, embed_bit, head_kind, head_bit; /* [nkinds, hidden], [nkinds * max_width, hidden] */
    int32_t pilot_scale; /* K: channel pilot[i] holds pilot_value[i] * 2^K in every token */
    uint32_t npilots;
    uint32_t *pilot;
    float *pilot_value;
    uint32_t start;
    uint32_t nstates;
    ChipState *state;
    const char *netlist; /* NUL-terminated text, or NULL */
    json_t *manifest;    /* `protocol`, `report` and `sources` for whoever wants them */
    StFile *file;
    Pool *pool;
} Model;

Model *model_open(const char *path, char **err);
Model *model_parse(const uint8_t *bytes, size_t size, const char *path, char **err); /* the caller keeps bytes alive */
void model_close(Model *m);
const ChipState *model_state(const Model *m, const char *name);
/* False when the arrays that any back end needs would not fit in a sensible memory. */
bool model_fits(const Model *m, char **err);
bool geometry_fits(const Geometry *g, const char *path, char **err);
/* Its contents or its entry come from an ELF file. */
bool model_needs_firmware(const Model *m);
/* The kind of a token id; NULL for an unused id. */
const ChipKind *model_kind(const Model *m, uint32_t token);

/* ---- json.c: reading checked values; every function leaves through Reader.fail on the first that is wrong ---- */
typedef struct {
    const char *path; /* of the file, for messages */
    Pool *pool;
    char **err;
    jmp_buf fail;
} Reader;
void reader_fail(Reader *r, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));
/* The member `key` of object o, which messages call `where`. */
json_t *get_object(Reader *r, const json_t *o, const char *where, const char *key);
json_t *get_array(Reader *r, const json_t *o, const char *where, const char *key);
const char *get_string(Reader *r, const json_t *o, const char *where, const char *key); /* in the pool */
int64_t get_int(Reader *r, const json_t *o, const char *where, const char *key, int64_t min, int64_t max);
double get_number(Reader *r, const json_t *o, const char *where, const char *key);
float get_float(Reader *r, const json_t *o, const char *where, const char *key); /* finite, and exactly a float */
bool get_bool(Reader *r, const json_t *o, const char *where, const char *key, bool absent);
int get_word(Reader *r, const json_t *o, const char *where, const char *key, const char *const *words, int n);
int64_t item_int(Reader *r, const json_t *array, const char *where, const char *key, size_t i, int64_t min, int64_t max);
float item_float(Reader *r, const json_t *array, const char *where, const char *key, size_t i);
uint64_t json_to_u64(Reader *r, const json_t *j, const char *where, const char *key, unsigned width);

/* ---- chip.c: heads, sizes, vocabulary and epsilon, which a chip's geometry and a config.json call alike ---- */
void read_sizes(Reader *r, Geometry *g, const json_t *o, const char *where);

/* ---- states.c: the manifest's state map ---- */
void read_states(Reader *r, Model *m, const json_t *list);

/* ---- numbers: the elementary functions, with torch's saturation (see tests/unit/numeric.c) ---- */
static inline float bf16_round(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    u = x != x ? (u | 0x400000) & 0xffff0000u : (u + 0x7fff + (u >> 16 & 1)) & 0xffff0000u;
    memcpy(&x, &u, 4);
    return x;
}
/* The cast to the model's dtype, which the stock layer does after every operation outside its float32 islands. */
static inline float cast(bool bf16, float x) { return bf16 ? bf16_round(x) : x; }
/* Past 17 the exponential is below half an ulp of 1, past -89 it overflows: the shortcuts change no bit, they save time. */
static inline float sigmoidf(float x) { return x > 17.0f ? 1.0f : x < -89.0f ? 0.0f : 1.0f / (1.0f + expf(-x)); }
static inline float siluf(float x) { return x > 17.0f ? x : x < -89.0f ? -0.0f : x / (1.0f + expf(-x)); }
static inline float softplusf(float x) { return x > 20.0f ? x : log1pf(expf(x)); }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }

/* ---- Backend: one way to run forward passes of a Model ---- */
/* What a run may ask of a back end; all zero is the default. */
typedef struct {
    bool full_head;  /* dense: also argmax over every vocabulary row; a difference stops the machine */
    bool full_dense; /* dense: materialise every matrix and skip nothing */
    bool plain;      /* sparse: use no instructions beyond the processor's base set (for the whole process) */
    uint32_t patience; /* adaptive: tokens until it prepares its paths, waiting for them (for tests); 0: beside the run, in its own time */
    uint32_t faults; /* dense: FAULT_ bits, to show that a check would notice */
    /* Called with the embedding (layer -1, "embed") and the residual after each block ("mixer", "mlp"). */
    void (*probe)(void *ctx, int layer, const char *what, const float *x, uint32_t n);
    void *probe_ctx;
} BackendOptions;
enum {
    FAULT_STATE_BF16 = 1, /* the recurrent state is kept in bfloat16 */
    FAULT_L2_MEAN = 2,    /* l2norm puts its epsilon on the mean, not on the sum */
    FAULT_DROP_STATE = 4, /* every 64th token starts from an empty state, as a multi-token forward of old versions did */
    FAULT_DROP_CONV = 8,  /* every 64th token finds no earlier ones in the convolution */
};

typedef struct {
    const char *name;
    void *(*open)(const Model *m, const BackendOptions *o, char **err);
    /* Feeds `token`, then every token that comes out, until `max` tokens have come out or one came out whose kind's
     * role is not `trace` (the host must look at it before it is fed). Returns how many; out[max]. */
    uint32_t (*run)(void *self, uint32_t token, uint32_t *out, uint32_t max);
    /* One row of a linear layer's state: lanes[dv]; NaN for a lane that the back end does not keep, because nothing reads it. */
    void (*get)(void *self, uint32_t layer, uint32_t head, uint32_t row, float *lanes);
    void (*set)(void *self, uint32_t layer, uint32_t head, uint32_t row, const float *lanes);
    void (*close)(void *self);
    /* A linear layer's projections before the convolution, [conv_dim], of the token `back` (< taps) before the last one fed. `recall` may give 0 for what
     * no later token asks for; `remember` comes before the first token, oldest first. Both NULL: the back end keeps no such thing. */
    void (*recall)(void *self, uint32_t layer, uint32_t back, float *raw);
    void (*remember)(void *self, uint32_t layer, uint32_t back, const float *raw);
    void (*stats)(void *self, FILE *out); /* lines "name: value" of its own, or NULL */
} Backend;

extern const Backend *const backends[]; /* backends.c: NULL-terminated, the default first */
const Backend *backend_find(const char *name);
extern const Backend dense_backend;  /* dense.c */
extern const Backend sparse_backend; /* sparse.c */
extern const Backend adaptive_backend; /* adaptive.c: what a plain run uses */
extern const Backend cuda_backend;   /* gpu_one.c: one machine in a thread block */
extern const Backend cuda_host_backend; /* the same on the host, for tests (gpu_host.c) */
extern const Backend cuda_dense_backend, cuda_host_dense_backend; /* gpu_dense.c: every matrix in full */

/* ---- matrix.c: tensors in the forms that back ends compute with ---- */
/* Sparse rows: the elements of row r are [start[r], start[r + 1]), in order of column. When `full` is set the matrix
 * is there in full, row-major, when `stored` is, as the rows of a checkpoint's file; and the other arrays are NULL. */
typedef struct {
    uint32_t rows, cols;
    uint32_t *start; /* [rows + 1] */
    const int32_t *col;
    const float *value;
    float *full; /* [rows * cols] or NULL */
    const uint8_t *const *stored; /* [rows] or NULL */
    bool half, round; /* stored rows are bfloat16; are to be rounded to it */
} Matrix;
/* `full` asks for the materialised form, which a tensor with fill != 0 always gets. False when memory is short. */
bool matrix_make(Matrix *m, Pool *p, const Tensor *t, bool full, char **err);
/* sum over the row of w * x in column order, float32. */
float matrix_dot(const Matrix *m, uint32_t row, const float *x);
/* y[t][r] = cast(row r . x[t]) for n tokens; y[n * rows], x[n * cols] */
void matrix_mul(const Matrix *m, bool bf16, uint32_t n, const float *x, float *y);
/* stored.c: the same for stored rows; a row as float32 */
void stored_mul(const Matrix *m, bool bf16, uint32_t n, const float *x, float *y);
void stored_row(const Matrix *m, uint32_t r, float *out);
float *tensor_vector(Pool *p, const Tensor *t); /* [rows * cols] in full */

/* ---- head.c: the vocabulary in factored form ---- */
/* The first element of the row, or of what follows it, without an index: embeddings are looked up once a token. */
uint32_t tensor_first(const Tensor *t, uint32_t row);
void head_embed(const Model *m, uint32_t token, float *x); /* x[hidden] */
typedef struct Head Head;
Head *head_make(const Model *m, Pool *p);
/* argmax of the logits over normalised u[hidden]; m->end when an unused (all zero) row wins. */
uint32_t head_argmax(const Head *h, const float *u);
/* The same by computing every row of lm_head. */
uint32_t head_argmax_full(const Head *h, const float *u);

/* ---- attention.c: a full-attention layer, some tokens at a time ---- */
typedef struct Attention Attention;
/* m and v, by TensorId, must outlive it; `room`: tokens at a time. */
Attention *attention_new(const Geometry *g, bool bf16, const Matrix *m, const float *const *v, uint32_t room, Pool *p);
/* A chip's layer, a token at a time. */
Attention *attention_make(const Model *m, uint32_t layer, Pool *p, bool full, char **err);
/* out[n][hidden] = the mixer's output for normalised u[n][hidden]; returns false, out untouched, when o_proj is zero. */
bool attention_step(Attention *a, uint32_t n, const float *u, float *out);
bool attention_idle(const Attention *a); /* o_proj is zero: the layer's mixer does nothing */
void attention_close(Attention *a);
void rms_norm(bool bf16, float eps, uint32_t n, const float *x, const float *w, float *y); /* gain 1 + w */

/* ---- elf.c: firmware ---- */
typedef struct {
    uint64_t addr, file_size; /* load (physical) address, bytes from the file */
    uint64_t run, run_size;   /* run (virtual) address, bytes of memory */
    const uint8_t *data;
} Segment;
typedef struct {
    const char *name;
    uint64_t value;
    uint32_t index; /* in the symbol table */
} Symbol;
typedef struct {
    Image image; /* image.ctx is the Firmware */
    const char *path;
    uint32_t nsegments, nsymbols;
    Segment *segment; /* loadable, in order of load address, no two overlap */
    Symbol *symbol;   /* in order of name */
    Pool *pool;
    uint8_t *bytes;
} Firmware;
/* ELF32 little-endian RISC-V executables only. */
Firmware *firmware_open(const char *path, char **err);
Firmware *firmware_parse(const uint8_t *bytes, size_t size, const char *path, char **err); /* copies */
void firmware_close(Firmware *f);
/* Whether [addr, addr + n) holds bytes from the file; true for every image that is not a Firmware. */
bool image_covers(const Image *im, uint64_t addr, uint64_t n);
/* False when a segment lies outside every memory of the chip that an image fills, or the entry outside every segment. */
bool firmware_fits(const Firmware *f, const Model *m, char **err);
Image *image_open(const char *path, char **err); /* &firmware_open(...)->image */

/* ---- machine.c: a running machine ---- */
typedef struct Machine Machine;
double clock_seconds(void); /* of a clock that only advances, for durations */

/* Runs beside the machine and judges every token (`--check`). All but ctx may be NULL. */
typedef struct {
    void *ctx;
    /* Once, after the chip and image are loaded and before the first token. False ends the run with *err. */
    bool (*begin)(void *ctx, const Model *m, const Image *image, char **err);
    /* Every token that the machine emits, before it is fed back. Non-zero stops the run with exit status 1. */
    int (*token)(void *ctx, Machine *mc, uint32_t token);
    /* Every token that the host feeds: an `input` kind's. */
    void (*input)(void *ctx, Machine *mc, uint32_t token);
    /* After the last token (not after a stop by `token`): non-zero makes the exit status 1. */
    int (*end)(void *ctx, Machine *mc);
    uint64_t mismatches; /* printed with the statistics */
} Checker;

typedef struct {
    const char *chip, *firmware; /* firmware NULL: nothing is loaded */
    const char *backend;         /* NULL: adaptive; with a check, sparse */
    const Backend *use;          /* a back end that is not in the table, or NULL */
    uint64_t max_steps;          /* 0: no limit */
    const char *trace;           /* file for one token a line, or NULL */
    const char *signature;       /* file for the memory between two symbols when the machine has exited, or NULL (signature.c) */
    const char *save, *load;     /* state files, or NULL: written when the run stops, read instead of installing the initial state */
    bool prompt;                 /* the initial state comes from loader tokens, not through the state map */
    bool stats;
    Checker *check;              /* NULL: none */
    BackendOptions backend_options;
} RunOptions;
/* `tapeout run`: the whole of it, messages included. Returns the process's exit status: the machine's own when it
 * exits, 1 on a fault, a stopped run or a bad file, 2 for an unknown back end. */
int runtime_run(const RunOptions *o);

/* The parts of runtime_run, for tests and for the checker. */
Machine *machine_open(const Model *m, const Backend *b, const BackendOptions *o, const Image *image, char **err);
/* The same filled by the prompt of prompt.c, or by a state file: machine_run then goes on from there. */
Machine *machine_prompted(const Model *m, const Backend *b, const BackendOptions *o, const Image *image, char **err);
Machine *machine_resumed(const Model *m, const Backend *b, const BackendOptions *o, const char *state, char **err);
bool machine_save(Machine *mc, const char *state, char **err);
void machine_close(Machine *mc);
typedef enum { STOP_EXIT, STOP_FAULT, STOP_STEPS, STOP_CHECK, STOP_BROKEN } Stop;
typedef struct {
    Stop why;
    uint64_t payload;    /* exit status */
    const ChipKind *kind;    /* exit and fault */
    char message[160];   /* STOP_BROKEN */
} StopInfo;
typedef struct {
    uint64_t max_steps;
    FILE *trace, *out, *in; /* NULL: none */
    Checker *check;
    bool progress;
} LoopOptions;
/* After STOP_STEPS another call goes on from there (not with a Checker, nor when the machine waits for input). */
StopInfo machine_run(Machine *mc, const LoopOptions *o);
/* After STOP_STEPS: feeds the last step's last token, so that all its writes have happened when the state is read. Writes that the next
 * step makes without a token have then happened, too. The next machine_run knows. */
void machine_settle(Machine *mc);
const Model *machine_model(const Machine *mc);
/* Feeds one token outside the loop (the final step's last token, say, so that its writes happen); returns what came out. */
uint32_t machine_feed(Machine *mc, uint32_t token);
uint64_t machine_tokens(const Machine *mc);
void machine_stats(const Machine *mc, FILE *out); /* what the back end says of itself */
uint64_t machine_steps(const Machine *mc);

/* ---- prompt.c: a machine's initial contents as tokens ---- */
typedef VEC(uint32_t) Prompt;
/* The prompt that fills a chip with `image` (NULL: no firmware) and starts it; after it, greedy generation is the run.
 * With rom_only: just the rows of elements that no state map reaches (attention memories), and no start.
 * False with *err when the chip has no tokens for it. The state must be all zero before. */
bool prompt_make(const Model *m, const Image *image, bool rom_only, Prompt *out, char **err);

/* ---- signature.c: a stretch of memory as test suites print it ---- */
typedef struct {
    const ChipState *memory;
    uint64_t begin, end; /* addresses: the image's symbols begin_signature and end_signature */
} Signature;
/* False with *err when a symbol is missing or misaligned, or no memory has both. `firmware` is for messages. */
bool signature_find(Signature *out, const Model *m, const Image *image, const char *firmware, char **err);
/* After a machine has exited: 8 hex digits a line, lower case. Nothing is left behind when it fails. */
bool signature_write(const Signature *s, Machine *mc, const char *path, char **err);

/* ---- savestate.c: state files; `next` is the token to feed next ---- */
bool state_save(const Model *m, const Backend *b, void *self, uint32_t next, const char *path, char **err);
bool state_load(const Model *m, const Backend *b, void *self, uint32_t *next, const char *path, char **err); /* into an empty state */

/* ---- statemap.c: state elements through the state map ---- */
/* Reads a row from every copy; false when a cell holds no legal code or two copies differ. */
bool state_get(const Model *m, const Backend *b, void *self, const ChipState *s, uint32_t row, uint64_t *value, char **err);
/* Which of its bits the back end keeps. */
uint64_t state_known(const Model *m, const Backend *b, void *self, const ChipState *s, uint32_t row);
void state_set(const Model *m, const Backend *b, void *self, const ChipState *s, uint32_t row, uint64_t value);
bool machine_get(Machine *mc, const ChipState *s, uint32_t row, uint64_t *value, char **err);
void machine_set(Machine *mc, const ChipState *s, uint32_t row, uint64_t value);
/* Installs every element's initial contents; image may be NULL. */
bool state_install(const Model *m, const Backend *b, void *self, const Image *image, char **err);
#endif
