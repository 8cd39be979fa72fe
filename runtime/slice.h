/* slice.h: a chip as logic over bit planes: many lanes at once, each a machine (batch.c) or a token of a given trace (follow.c).
 *
 *   slice.c        channels between blocks, compilation stage by stage, a pass
 *   slice_past.c   channels of earlier tokens
 *   slice_head.c   embedding and output head
 *   slice_form.c   affine forms over channels as sums of planes; ranges
 *   slice_mlp.c    a SwiGLU block as logic
 *   slice_delta.c  a Gated DeltaNet layer: which heads are written and read, at which rows
 *   slice_family.c ... under which addresses and conditions
 *   slice_ports.c  ... compiled
 *   slice_planes.c its heads of one row: the state is planes
 *   slice_cells.c  its state: packed cells of every lane, reads and writes lane by lane
 *
 * WHY IT IS THE SAME. In a chip whose margins are proved every channel is an integer (within a band that no decision notices), so that a
 * channel is a few bit planes, a unit is a function of a sum of planes, and a table of that function, worked out here with the stock layer's own
 * arithmetic, is that unit for ever. A chip with a number that is no integer, a gate between off and linear, a write that is no plain
 * overwrite or any other thing that planes cannot hold is refused with the reason, and run one machine at a time. Of what the compiler makes that is known to be:
 * bfloat16, memories in attention, and now and then an address whose bits depend on each other (one in a hundred random circuits: unit/machine_random).
 * What is taken on trust at first is how far a channel's value goes: contributions to one channel usually exclude each other, and the sum that a unit is a function of
 * does not go as far as its channels do, which the weights alone do not say. So a range is ASSUMED, and whether a lane leaves one is computed with the rest, as one
 * plane of each block, and looked at in every pass, before anything depends on it; then the block is compiled again with a wider range, at last the widest possible
 * one, and run again. */
#ifndef TAPEOUT_SLICE_H
#define TAPEOUT_SLICE_H
#include "bits.h"
#include "sparse.h"
#include <stdatomic.h>

enum { NO_SLOT = 0xffff, MAX_SUM = 1 << 14, MAX_DIRECT = 12, WIDEST = 3 };

/* A channel between two blocks: an Int whose planes are in memory. */
typedef struct {
    int32_t lo, hi;
    uint32_t n;
    uint16_t slot[MAX_PLANES];
} Channel;

/* Something that must be 0 in every active lane. */
typedef struct {
    uint16_t slot; /* NO_SLOT: part of the stage's common plane */
    uint32_t what; /* channel of which something was assumed, or CHECK_FATAL */
    uint8_t level; /* of the channel, to go on with */
    const char *why;
} Check;
enum { CHECK_FATAL = 0xffffffff };
/* A channel's level: how far its assumed range goes, 0 to WIDEST; and whether the ends of its tables may occur. */
enum { LEVEL_RANGE = 0x7f, LEVEL_ENDS = 0x80 };
typedef struct {
    Ref ref;
    uint32_t what;
    uint8_t level;
    const char *why;
} CheckNode;

/* A block being compiled. */
typedef struct Slice Slice;
typedef struct {
    Slice *s;
    Bits *g;
    uint32_t layer;
    Int **x;   /* [hidden] channels as the block sees them; a pointer each, NULL where the channel is 0 */
    Int **past; /* [taps][hidden] the same some tokens back; NULL entries are 0 */
    VEC(BitGoal) goal;
    VEC(CheckNode) check;
    Pool *pool, *keep; /* for this compilation; for what it makes, until the next one */
    const char *why; /* set when the chip cannot be taken */
} Block;

/* ---- slice_form.c ---- */
/* A form's value as a function of a few planes: value[i] where the planes say i, i < size. */
typedef struct {
    uint32_t n, size;
    bool summed; /* the index is the sum, least first; else the planes themselves */
    Ref in[MAX_PLANES];
    double *value;
    uint32_t nterms; /* summed: of what */
    Term *term;
} Table;
/* bias + sum w * channel, channels x; false when it is too wide. */
bool form_table(Block *k, Int **x, const Entry *e, uint32_t n, double bias, Table *out);
double form_unit(const Entry *e, uint32_t n); /* the largest power of two that every weight is a multiple of */
Ref table_plane(Block *k, const Table *t, const uint8_t *bit); /* bit[size] */
bool whole(double v, int64_t *out); /* near an integer; which */
bool is_bit(const Int *x);
static inline const Int *channel_int(Int **x, uint32_t c)
{
    static const Int zero;
    return x[c] ? x[c] : &zero;
}
/* One contribution to a channel: its terms are Term [first, end) of the sum's list; with `offset`, which stands in the sum's constant, it is in
 * lo .. hi; and the literals (channels of one plane, weights' signs) must hold for it not to be 0. */
typedef struct {
    uint32_t first, end;
    int64_t lo, hi, offset;
    const Entry *literal;
    uint32_t literals;
} Part;
typedef struct {
    VEC(Term) term;
    VEC(Part) part;
    int64_t constant;
} Sum;
/* The channel's new value; `old` is its old one when it goes on counting (part 0 is then the old value), else NULL. level: how far the assumed
 * range goes. NULL when it cannot be held. */
Int *sum_channel(Block *k, Sum *s, const Int *old, uint32_t channel, uint8_t level);
/* A plane for a sum of bits of which at most one may be 1; a fatal check when that is not certain. */
Ref one_of(Block *k, const Ref *bit, uint32_t n, const char *why);

/* ---- slice_mlp.c ---- */
typedef struct SliceMlp SliceMlp;
SliceMlp *slice_mlp_make(const Model *m, uint32_t layer, const Basis *basis, Pool *p, const char **why);
/* Replaces the channels in k->x that the block changes. */
bool slice_mlp(SliceMlp *l, Block *k, const uint8_t *level);
void slice_mlp_close(SliceMlp *l);
/* Marks the channels that the block reads or adds to. */
void slice_mlp_uses(const SliceMlp *l, bool *used);

/* ---- slice_delta.c ---- */
typedef struct {
    uint8_t word, shift, bits;
} Field;
/* An address of each lane and whether it counts: table[field] is a number, or NONE. */
typedef struct {
    Field field;
    uint32_t *table;
} Select;
typedef struct {
    uint32_t lane, shift, bits, most; /* most: its greatest value, below 2^bits */
    float one;
} CellField;
/* What a row of a head holds: heads with equal value channels share one. */
typedef struct {
    uint32_t nfields, bits;
    CellField *field;
} CellClass;
/* Heads that one gate opens at one row: their cells of a row are one word in memory. */
typedef struct {
    uint32_t base, bytes, bits, rows;  /* bytes within a machine's state; of a row */
    uint32_t key, query;               /* Selects of rows, or NONE */
    int32_t *row_at;                   /* [dk] where a row's word is, in rows; -1: it has none */
} Bundle;
typedef struct {
    const CellClass *cell; /* NULL: the head is not there */
    uint32_t bundle, shift;
} CellHead;
typedef struct {
    uint32_t bundle;
    uint64_t mask;
    Field value;
} CellWrite;
typedef struct {
    uint32_t bundle;
    uint64_t mask;
    Field out; /* where the result goes */
} CellRead;
/* Adds `amount` to a cell's field. */
typedef struct {
    Field when;
    uint32_t bundle, shift, bits, amount;
} CellCount;
typedef struct {
    uint32_t n;
    uint16_t slot[64];
} PackWord;

typedef struct SliceDelta SliceDelta;
SliceDelta *slice_delta_make(const Model *m, uint32_t layer, const Basis *basis, Pool *p, uint32_t *bytes, const char **why);
/* What is to be known before the state is looked at: goals for the packed words. */
bool slice_delta_in(SliceDelta *d, Block *k);
/* Adds what was read to the channels; leaves are the slots that slice_delta_in was given. */
bool slice_delta_out(SliceDelta *d, Block *k, const uint8_t *level);
void slice_delta_close(SliceDelta *d);
void slice_delta_uses(const SliceDelta *d, bool *now, bool *past); /* past: [taps * hidden] */

/* ---- slice_cells.c ---- */
typedef struct {
    uint32_t nkey, nwrite, nread, ncount, nin, nout, nheads, nbundles;
    Select *key;           /* rows of key and query families */
    Select *write;         /* numbers into write_list */
    uint32_t *write_start; /* write_list[write_start[i] .. write_start[i + 1]) */
    CellWrite *write_list;
    Select *read;
    uint32_t *read_start;
    CellRead *read_list;
    CellCount *count;
    CellHead *head;        /* [nheads] */
    Bundle *bundle;        /* [nbundles] */
    PackWord *in, *out;
} Cells;
/* Writes, then reads, of all active lanes; lane i's state is at state + i * stride (0: one machine's tokens, in order). Returns a reason when a lane did what cells cannot do. */
const char *cells_run(const Cells *c, Plane *plane, const uint64_t *active, uint8_t *state, size_t stride, uint64_t *scratch);
Cells *slice_delta_cells(SliceDelta *d);

/* ---- slice.c ---- */
/* `shared`: the lanes are tokens of one machine, in order, not machines. `apart`: for who runs the stages elsewhere, every check of a stage has a plane of its
 * own; else all have one. NULL and a reason when the chip cannot be taken. */
Slice *slice_open(const Model *m, bool shared, bool apart, char **why);
/* The same in a thread of its own: NULL soon after *stop is set. */
Slice *slice_open_until(const Model *m, bool shared, bool apart, const atomic_bool *stop, char **why);
bool slice_stopped(const Slice *s);
void slice_close(Slice *s);
const Model *slice_model(const Slice *s);
size_t slice_bytes(const Slice *s); /* of a machine's state */
/* One lane's state (of slice_bytes, zeroed at first) through the state map: a Backend that only gets and sets. */
extern const Backend slice_cells_backend;
typedef struct {
    Slice *s;
    uint8_t *state;
    const char *bad; /* set when something was set that cells cannot hold */
} SliceState;
/* The token that a lane is fed next, and the one that came out of it. */
void slice_put(Slice *s, uint32_t lane, uint32_t token);
void slice_put_all(Slice *s, const uint32_t *token); /* [LANES] */
void slice_feed_back(Slice *s);                      /* what came out is fed next */
uint32_t slice_got(const Slice *s, uint32_t lane);   /* UINT32_MAX: no kind's */
uint64_t *slice_active(Slice *s);                    /* [PLANE_WORDS] lanes that count; the others do nothing */
const Plane *slice_special(const Slice *s);          /* lanes out of which a token came whose role is not `trace` */
const Plane *slice_retired(const Slice *s);          /* ... that counts as a step */
/* Shared lanes: those of the first n - 1 whose token is not what the lane before said. */
const Plane *slice_wrong(Slice *s, uint32_t next);
/* One pass of all lanes; states as in cells_run. NULL, or why it could not be done (then the states are spoilt). */
const char *slice_pass(Slice *s, uint8_t *state, size_t stride);
void slice_restart_lane(Slice *s, uint32_t lane, const uint8_t *state); /* a new machine in this state: it has fed no token yet */
void slice_save_lane(const Slice *s, uint32_t lane, uint8_t *state); /* puts what is kept in planes into the lane's state */
typedef struct {
    uint32_t planes, operations, checks, compilations;
    double seconds;
} SliceReport;
SliceReport slice_report(const Slice *s);
#endif
