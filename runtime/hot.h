/* hot.h: one machine of a long run as machine code for what it keeps doing.
 *
 *   adaptive.c     the back end: the sparse one first; when a run turns out long, the rest of this
 *   hot.c          a path for each token
 *   hot_choose.c   which bits are guards
 *   hot_path.c     a chip's planes under constants: what is left to compute
 *   hot_code.c     ... as machine code
 *   hot_cells.c    ... and the state's cells that it reads and writes
 *
 * A chip is logic over bits (slice.h). For one machine nearly all of it is the same again and again: the program counter has been here, the
 * word that was fetched is known, so which units matter is known too. A PATH is a token's logic where some bits, its GUARDS, are constants: what
 * follows from them alone is not computed. The guards are compared in every token, those of the start before it and those that are read from the
 * state when they are read; where they are not as expected, what was written is written back and another path is tried, at last the one without
 * constants. So a path is never believed. Like all planes it looks whether channels stay in their assumed ranges; if one does not, what was written
 * is written back, and slice.c widens.
 *
 * A bit is a byte of the FRAME, of which only bit 0 counts. */
#ifndef TAPEOUT_HOT_H
#define TAPEOUT_HOT_H
#include "slice_priv.h"

enum { HOT_TEMPS = 256, HOT_PLACES = 60000, HOT_MOST_WORDS = 64, HOT_NONE = 0xffff }; /* HOT_PLACES: of a frame, at most;
    what a token begins with comes after HOT_TEMPS, so that it is near too */

/* ---- hot_code.c ---- */
/* What a part of the code must leave in the frame. */
typedef struct {
    Ref ref; /* no constant */
    uint16_t place;
} HotGoal;
typedef struct HotArena HotArena;
HotArena *hot_arena_new(void);
void hot_arena_reset(HotArena *a); /* forgets all code */
void hot_arena_free(HotArena *a);
size_t hot_arena_bytes(const HotArena *a);
bool hot_code_usable(void); /* this processor and system can run it */
typedef void (*HotCode)(uint8_t *frame);
/* Code for the goals, part by part: those of part p are goal[end[p - 1]] .. goal[end[p] - 1]; between two parts the frame's other bytes may be read and
 * changed. A leaf's slot is its place. Temporaries are places below HOT_TEMPS and from *top on, which grows. code[parts]; NULL: nothing to do.
 * False when there is no memory for it. */
bool hot_code_make(HotArena *a, const Bits *g, const HotGoal *goal, const uint32_t *end, uint32_t parts, uint32_t *top, HotCode *code);

/* ---- the frame ---- */
/* Eight bits of the frame as a byte, and back. */
static inline uint64_t hot_pack8(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, 8);
    return (x & 0x0101010101010101ull) * 0x0102040810204080ull >> 56; /* byte i lands on bit 56 + i, and no two terms meet */
}
static inline uint64_t hot_pack(const uint8_t *p, uint32_t n)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < n; i += 8) v |= hot_pack8(p + i) << i;
    return v & mask64(n);
}
static inline void hot_spread(uint8_t *p, uint64_t v, uint32_t n) /* writes up to 7 bytes more */
{
    for (uint32_t i = 0; i < n; i += 8) {
        uint64_t x = (v >> i & 0xff) * 0x0101010101010101ull & 0x8040201008040201ull; /* byte k keeps bit k */
        x = (x + 0x7f7f7f7f7f7f7f7full) >> 7 & 0x0101010101010101ull;
        memcpy(p + i, &x, 8);
    }
}

static inline uint64_t hot_mix(uint64_t hash, uint64_t v)
{
    hash = (hash ^ v) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

/* ---- hot_path.c: a chip ---- */
/* A layer's words between code and cells: where their bits are in the frame. */
typedef struct {
    uint16_t place;
    uint8_t n;
} HotWord;
typedef struct {
    uint32_t stage; /* of Slice */
    SliceDelta *delta;
    const Cells *cells;
    uint32_t nin, nout, first_out; /* first_out: number of its first word among all layers' */
    HotWord *in, *out;
} HotLayer;
/* The key: what is there before a token, that is bits of itself, of earlier ones, and of the state of one-row heads. */
typedef struct {
    Slice *s;
    Pool *pool;
    uint16_t *place;   /* [65536] of a slot that a token begins with or that cells write, else HOT_NONE */
    uint16_t *slot_at; /* [key] slot of a place of the key */
    uint32_t key_at, key; /* places key_at .. key_at + key - 1: what a token begins with; first the token itself */
    uint32_t token_bits;
    uint32_t token_at, next_at, bad_at; /* what comes out; what the state becomes; whether a range was left, a place for each part */
    uint32_t nlayers, nout, top;   /* top: places in use by all */
    HotLayer *layer;
    Bits g;
    Ref *env;          /* [65536] */
} HotChip;
HotChip *hot_chip_new(Slice *s); /* NULL: one that is too wide for a frame */
void hot_chip_free(HotChip *c);

typedef struct {
    uint16_t to, from; /* from == HOT_NONE: a constant */
    uint8_t value;
} HotMove;
/* What a path does at a layer's cells. */
typedef struct {
    uint64_t *varies, *fixed; /* [nin] bits that the code makes; the others' values */
    uint64_t *may;            /* [nout] bits that may be read */
    uint64_t *guard, *expect; /* [nout] */
    uint32_t nwrite, ncount, nread;
    uint16_t *write, *count, *read; /* numbers among the layer's */
} HotAccess;
typedef struct HotPath {
    Pool *pool;
    uint64_t *key; /* what a token begins with, guards only */
    struct HotPath *chain, *next; /* with the same hash; the one that came after it last */
    HotCode *code; /* [nlayers + 1] */
    const void *text; /* all of it */
    size_t bytes;
    HotAccess *access;
    uint32_t nmoves;
    HotMove *move;
    uint64_t token_varies, token_fixed;
    uint32_t nchecks; /* places from bad_at on that must be 0 */
} HotPath;
/* Bits that are constants: [key] and [words of out] with their values; guards NULL: none. Returns NULL when the constants make a check fail, or there is no memory. */
typedef struct {
    const uint8_t *key_guard, *key_value; /* [key] */
    const uint64_t *out_guard, *out_value; /* [nout] */
} HotGuards;
HotPath *hot_path_make(HotChip *c, HotArena *a, const HotGuards *g);
uint32_t hot_path_size(HotChip *c, const HotGuards *g); /* operations that are left */
void hot_path_free(HotPath *p);

/* ---- hot_cells.c ---- */
typedef struct {
    uint8_t *at;
    uint32_t bytes;
    uint64_t old;
} HotUndo;
typedef struct {
    uint8_t *state, *frame;
    uint64_t *out; /* [HotChip.nout] what was read, for who chooses guards */
    VEC(HotUndo) undo;
} HotMachine;
typedef enum { HOT_FINE, HOT_UNEXPECTED, HOT_TROUBLE } HotResult; /* a guard does not hold; cells cannot do this */
HotResult hot_cells(const HotLayer *l, const HotAccess *x, HotMachine *m);
void hot_undo(HotMachine *m);

/* ---- hot_choose.c ---- */
typedef struct {
    uint64_t *key; /* [key / 8] a byte for each bit */
    uint64_t *out; /* [nout] */
} HotMask;
typedef struct HotSamples HotSamples;
HotSamples *hot_samples_new(HotChip *c); /* in the chip's memory */
void hot_sample(HotSamples *s, const uint8_t *key, const uint64_t *out); /* what a token began with, what it read */
/* Chooses guards from the samples. False: those in *mask stay, because others would not be clearly better; `anew`: there are none. */
bool hot_choose(HotSamples *s, HotMask *mask, bool anew);

/* ---- hot.c ---- */
typedef struct Hot Hot;
/* Takes the slice, whose lane 0 is the machine, and its cells. `eager`: paths are made at once, which only tests want. NULL: not possible. */
Hot *hot_new(Slice *s, uint8_t *state, bool eager);
/* Feeds a token; *out: what comes out (UINT32_MAX: no kind's). False when planes cannot go on, or paths do not help this run: then nothing has happened. */
bool hot_token(Hot *h, uint32_t token, uint32_t *out);
/* Puts everything back into the slice's lane 0 and its cells, and ends. */
void hot_end(Hot *h);
typedef struct {
    uint64_t tokens, general; /* tokens; those that no path was there for */
    uint32_t paths;
    size_t code; /* bytes */
} HotReport;
HotReport hot_report(const Hot *h);
#endif
