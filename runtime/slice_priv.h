/* slice_priv.h: what the files of slice.h share among themselves. */
#ifndef TAPEOUT_SLICE_PRIV_H
#define TAPEOUT_SLICE_PRIV_H
#include "slice.h"

/* A bit of an address: the sum of some channels, at most one of which is 1. */
typedef struct {
    uint32_t n, *channel;
    float w;
} AddressPlane;
typedef struct {
    float least;   /* smallest weight of an address bit */
    uint32_t ncommon, nbits, nforms;
    uint32_t *pattern; /* [nforms] the address */
    float *bias;       /* [nforms] */
    Entry *common;
    AddressPlane *bit;
    uint32_t *table; /* [2^nbits] form, or UINT32_MAX */
    bool exact;      /* a lookup: its address bits are 0 or 1; one pattern, that of all zeros, stands for all forms */
    uint8_t *never;  /* [2^nbits] addresses that do not occur, or NULL */
} PlaneFamily;
typedef struct {
    uint32_t n;
    PlaneFamily *family;
} PlaneFamilies;
/* The forms that are wanted, as families; false when there are too many that are alone. */
bool plane_families(PlaneFamilies *out, Pool *p, const Forms *f, const bool *want);
/* The forms, which may stand there several times, as a lookup whose table has places in the list; false when they are too many or two may be on at once. */
bool plane_lookup(PlaneFamily *out, Pool *p, const Forms *f, const uint32_t *form, uint32_t n);
/* Keys and queries: silu, normalised; beta: a sigmoid; gates: silu, whose value counts. */
typedef enum { FAMILY_KEY, FAMILY_BETA, FAMILY_GATE } FamilyUse;
/* The planes of the address and of the condition, and the forms' value when on (the smallest; for a gate any other is a fatal check). */
bool family_planes(Block *k, Int **x, const PlaneFamily *y, FamilyUse use, Ref *address, Ref *on, double *value);
/* The same planes, in a block. */
typedef struct {
    const PlaneFamily *family;
    Ref bit[64], on;
    double value;
} FamilyRefs;
/* A form of gates: its family, NULL when it is not asked for. */
typedef struct {
    const FamilyRefs *family;
    double value;
} GateRefs;
enum { MAX_TAPS = 16, SLICE_TEMP = 32768 }; /* slots of temporaries begin there */
enum { PART_Q, PART_K, PART_V, PARTS };
/* A channel of q, k or v: tap << 26 | form; NONE: always 0. */
#define CODE_TAP(c) ((c) >> 26)
#define CODE_FORM(c) ((c) & 0x3ffffff)
#define HUGE_WEIGHT 0x1p30f /* per channel of value 1: no cell holds such a number but by a tiny beta */

/* The rows of a key head for a key or a query. */
typedef struct {
    uint32_t tap;
    PlaneFamily family; /* its table: rows */
    uint32_t select;
} RowFamily;

/* A stored lane. */
typedef struct {
    uint32_t lane, code;
    float one;             /* as the state map has it; 0: it is no bit there */
    bool counts;           /* takes additive writes: */
    uint32_t count_channel;
    float count_weight;
} Lane;
typedef struct {
    CellClass cell;
    uint32_t nlanes;
    Lane *lane;
    float *fixed; /* [dv] */
    bool placed, any_fixed;
    Ref bit[64]; /* of the value to be written, while a block is compiled */
} DeltaClass;

/* The heads of a bundle, in order, which of them share a value: bundles of the same classes are of one kind. */
typedef struct {
    uint32_t n, *class;
    Field value;
} BundleKind;
typedef struct {
    uint32_t kind, *head; /* [kind's n] */
    uint16_t *slot;       /* [bits] heads of one row: the planes of the state; NULL: it is in memory */
    Ref *state;           /* [bits] while a block is compiled: what it becomes */
    uint16_t *next;       /* [bits] ... its slots, where it changes */
} DeltaBundle;

/* Bundles whose words go the same way. */
typedef struct {
    uint32_t bundle; /* the first such */
    double gate;
    Field field;
    Ref *bit; /* of planes, while a block is compiled; NULL: of memory */
    uint16_t slot[64];
} OutGroup;

typedef struct {
    uint32_t class, key, query; /* RowFamily or NONE */
    bool written, kept;
    bool planes; /* its state is planes, not memory */
    Entry *out;          /* by stored lane */
    uint32_t *out_start; /* [nlanes + 1] */
} DeltaHead;

struct SliceDelta {
    const Model *m;
    const Geometry *g;
    Pool *pool;
    Forms form[PARTS][MAX_TAPS], b, z;
    uint32_t *code[PARTS], *b_of, *z_of;
    float *one, *pilot; /* [nv * dv] the state map's, of cells that are bits, of pilots; else 0 */
    bool *asked;        /* [nv * dv] bits for which somebody may ask */
    VEC(RowFamily) rows;
    FamilyRefs *row_refs; /* by select, while a block is compiled */
    VEC(DeltaClass *) classes;
    DeltaHead *head; /* [nv] */
    PlaneFamilies beta, gate;
    VEC(uint32_t) counting; /* heads */
    float *norm;
    Entry *out;
    uint32_t *out_start; /* by column of out_proj */
    Cells cells;
    VEC(BundleKind) kinds;
    VEC(DeltaBundle) bundles;
    VEC(OutGroup) groups;
    VEC(PackWord) in, outw;
    uint32_t *bytes;
    bool compiled;
};

typedef enum { STAGE_EMBED, STAGE_IN, STAGE_OUT, STAGE_HEAD } StageKind;
typedef struct {
    StageKind kind;
    uint32_t layer;
    BitCode code;
    VEC(Check) check;
    uint16_t any;      /* where one of them fails; NO_SLOT: there are none, or they have slots of their own */
    uint8_t *level;    /* [hidden] */
    Channel **channel; /* [hidden] before the stage; NULL: 0 */
    uint32_t next, nfree, *free; /* slots at its beginning */
    Pool *keep;
} Stage;

/* A channel of earlier tokens: past[t] is what it was t tokens back; `bits` planes, one or PAST_BITS, least first. */
enum { PAST_BITS = 8 };
typedef struct {
    uint32_t channel, taps, bits;
    int32_t lo, hi;                          /* as far as was ever assumed, with the 0 of a lane's beginning */
    uint16_t past[MAX_TAPS][PAST_BITS];
    uint16_t now[PAST_BITS];                 /* the slots of this token's, NO_SLOT: 0 */
    bool made;                               /* ... by the code of the block that looks back, not before it */
    uint64_t carry[PAST_BITS];               /* shared lanes: its last 64 lanes of the block before */
} Past;

struct Slice {
    const Model *m;
    bool shared;
    Pool *pool, *block_pool;
    Bits g;
    Plane *plane;
    float *pilot;
    uint32_t nbases;
    Basis *basis;
    SliceDelta **delta; /* [layers], NULL: attention */
    SliceMlp **mlp;
    const Basis *final;
    VEC(Past) *past; /* [layers] */
    bool **needed;   /* [layers + 1][hidden] read by that layer's mixer or later */
    uint32_t nstages, compiled; /* compiled: the first so many are */
    Stage *stage;
    uint32_t next, nfree, *free; /* allocator */
    uint32_t kept;               /* slots for good, from SLICE_TEMP downward */
    uint32_t kind_bits, payload_bits;
    uint16_t token_in[64], token_out[64], special, retired, wrong, begun[MAX_TAPS];
    uint64_t active[PLANE_WORDS];
    uint64_t *scratch;
    size_t nscratch;
    uint32_t bytes, compilations;
    double seconds;
    Forms head;
    uint32_t *kind_form, *bit_form, *code_of;
    bool began; /* shared: a block has been run */
    bool apart; /* each check has a slot of its own */
    const atomic_bool *stop; /* set: nobody waits for the compilation any more; or NULL */
};

/* ---- cells in memory: little-endian words of 1, 2, 4 or 8 bytes, aligned ---- */
static inline uint64_t cell_load(const uint8_t *p, uint32_t bytes)
{
    uint64_t v = 0;
    switch (bytes) {
    case 1: return *p;
    case 2: return *(const uint16_t *)(const void *)p;
    case 4: return *(const uint32_t *)(const void *)p;
    default: memcpy(&v, p, 8); return v;
    }
}

static inline void cell_store(uint8_t *p, uint32_t bytes, uint64_t v)
{
    switch (bytes) {
    case 1: *p = (uint8_t)v; break;
    case 2: *(uint16_t *)(void *)p = (uint16_t)v; break;
    case 4: *(uint32_t *)(void *)p = (uint32_t)v; break;
    default: memcpy(p, &v, 8);
    }
}

/* A bundle's word of a row that has one. */
static inline uint8_t *cell_word(const Bundle *b, uint8_t *state, uint32_t row) { return state + b->base + (size_t)(uint32_t)b->row_at[row] * b->bytes; }

/* ---- slice.c ---- */
/* A token as bits: its kind's number, then its payload; 0 for an unused id. And back: UINT32_MAX where there is no such kind. */
uint64_t slice_token_word(const Slice *s, uint32_t token);
uint32_t slice_word_token(const Slice *s, uint64_t word);
uint16_t slice_new_slot(Slice *s);
/* For who runs the stages elsewhere: widens what failed (of the stage's checks; NULL: nothing, but past_reach has) and compiles the stage and all after it; what
 * lies before it stands. NULL, or why that cannot be. */
const char *slice_widen(Slice *s, uint32_t stage, const uint8_t *failed);
uint16_t slice_goal_slot(Block *k, Ref r); /* a slot that holds it when the block's code has run; NO_SLOT: it is 0 */
Cells *slice_layer_cells(Slice *s, uint32_t layer); /* NULL for an attention layer */
bool slice_shared(const Slice *s);
uint16_t slice_kept_slot(Slice *s); /* for good */
/* ---- slice_past.c ---- */
void past_note(Slice *s, uint32_t layer, const bool *past); /* [taps * hidden] what is asked for */
bool past_reach(Slice *s, Past *p, int64_t lo, int64_t hi); /* it may be lo .. hi too; false: it is too wide */
/* At the beginning and the end of a block before the cells: ranges; what later tokens will look back to. */
bool past_begin(Block *k);
void past_end(Block *k);
Int **slice_past(Block *k, uint32_t tap);
Ref slice_begun(Block *k, uint32_t tap); /* 1 where a token `tap` back exists */
/* In a pass: shared lanes before that block, which must have run once when it makes what is shifted; all when it has run. */
bool past_made(const Slice *s, uint32_t layer);
void past_shift(Slice *s, uint32_t layer);
void past_keep(Slice *s, uint32_t layer);
int32_t past_get(const Slice *s, const Past *p, uint32_t tap, uint32_t lane);
void past_put(Slice *s, const Past *p, uint32_t tap, uint32_t lane, int32_t v);
/* ---- slice_planes.c ---- */
Ref slice_family_form(Block *k, const FamilyRefs *r, uint32_t form); /* the condition of one form */
void slice_plane_slots(SliceDelta *d, Block *k, uint32_t bundle);
void slice_plane_begin(SliceDelta *d, Block *k);
void slice_plane_write(SliceDelta *d, Block *k, uint32_t head, Ref when);
void slice_plane_count(SliceDelta *d, Block *k, uint32_t head, uint32_t lane, Ref when, uint32_t amount);
/* Adds what the bits of `mask` are, after the writes, when the gate and the query are on. */
void slice_plane_read(SliceDelta *d, Block *k, uint32_t bundle, uint64_t mask, Ref when, Ref *out);
void slice_plane_end(SliceDelta *d, Block *k, uint16_t (*slot_of)(Block *, Ref));
void slice_plane_keep(const SliceDelta *d, Plane *plane); /* after a pass: the state becomes what was computed */
void slice_plane_save(const SliceDelta *d, const Plane *plane, uint32_t lane, uint8_t *state); /* into a machine's state */
void slice_plane_load(const SliceDelta *d, Plane *plane, uint32_t lane, const uint8_t *state);
/* ---- slice_head.c ---- */
bool slice_embed(Block *k, const uint8_t *level);
bool slice_head(Block *k);
/* ---- slice_delta.c ---- */
bool slice_counts(const SliceDelta *d, uint32_t head); /* takes additive writes */
#endif
