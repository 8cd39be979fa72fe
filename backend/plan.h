/* plan.h: the plan of a chip: channels of the residual stream, units of every MLP, ports of every memory block. Affine forms here are
 * over channels (Lin with `node` = channel). Everything is an exact integer; blocks.c turns it into weights, sim.c runs it. */
#ifndef TAPEOUT_PLAN_H
#define TAPEOUT_PLAN_H
#include "protocol.h"

typedef struct {
    uint32_t ch;
    double coef;
} Out;
typedef struct {
    uint32_t ch, tok;
} EmbedChan;
/* A channel that begins as a constant: what a read adds to it is rounded to an integer by the addition (plan.c). */
typedef struct {
    uint32_t ch;
    int32_t value;
} StartChan;

/* out += coef * relu(gate) * up, for every out. gate <= gmax for all inputs. */
typedef struct {
    Lin gate, up;
    int32_t gmax;
    VEC(Out) out;
    Span span;
} Unit;

typedef struct {
    VEC(Unit) units;
    uint32_t *hash, hash_cap;
} Mlp;

/* A port with its forms over channels; names as in Port (backend.h). A list of forms is an AND of bits, or bits of a word. */
typedef struct {
    const Port *port;
    int home;          /* the layer at which its read is complete */
    uint32_t *out;     /* per bit: the channel that receives it, UINT32_MAX: nobody needs it. A count: out[cnt_lo] */
    bool counted;      /* out[cnt_lo] receives the count */
    bool reads;        /* some output is needed */
    Lin *raddr, *waddr, *en, *en_any, *lanes, *lane_key, *data;
    Lin bump, late, latch_begin, latch_set, rgate, load_on;
    Lin *load_addr, *load_data; /* PORT_ROM */
    int en_idle;       /* what the enable's AND counts to while loading (blocks.c): load_on lifts it to 1 */
} PlanPort;

typedef struct {
    Protocol *p;
    Net *net;
    const BuildOptions *opt;
    unsigned layers;       /* of the machine, without the final attention layer */
    uint32_t nchannels;    /* data channels used; pilots come after them */
    uint32_t limit;        /* most data channels the target has; 0: as many as wanted */
    Lin *alias;            /* per node: its value over channels, once computed */
    Mlp *mlp;              /* per layer */
    VEC(PlanPort) ports;
    VEC(EmbedChan) embed; /* channel ch holds token channel tok */
    VEC(StartChan) start; /* channel ch holds value in every token */
    Lin *kind_out;         /* per kind */
    Lin **word_out;        /* per word of the protocol: its bits */
    uint32_t canary_kind, canary_ch; /* canary.c: the first kind and channel; 0: none */
    uint32_t erased;       /* units that only free a channel */
    bool overflow;         /* the target has too few channels */
} Plan;

Plan *plan_make(Protocol *p, Net *n, const BuildOptions *o, uint32_t limit);

/* plantext.c */
void plan_print(const Plan *p, FILE *out);
/* NULL, or what is wrong: a channel out of range, or read before it is written. */
const char *plan_check(const Plan *p);

/* sim.c: the second oracle. Tokens in, tokens out, all in integers. */
typedef struct PlanSim PlanSim;
PlanSim *plansim_new(const Plan *p, const Image *image);
/* The token that follows `token`. */
uint32_t plansim_step(PlanSim *s, uint32_t token);
/* Called with the data channels after the embedding and after every block, as the dense executor's probe is. */
typedef void PlanProbe(void *ctx, int layer, const char *what, const double *channels);
void plansim_probe(PlanSim *s, PlanProbe *probe, void *ctx);
uint64_t plansim_get(const PlanSim *s, uint32_t state, uint32_t row);
/* For a run from another state: forgets every token (rows stay); sets a row in every copy; has every copy this value? A hard-wired
 * row keeps its value. */
void plansim_clear(PlanSim *s);
void plansim_set(PlanSim *s, uint32_t state, uint32_t row, uint64_t value);
bool plansim_holds(const PlanSim *s, uint32_t state, uint32_t row, uint64_t value);
const Kind *plan_kind(const Plan *p, uint32_t token, uint32_t *payload);
#endif
