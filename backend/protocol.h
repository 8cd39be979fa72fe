/* protocol.h: the derived trace protocol; shared by protocol.c, pass.c and encode.c. */
#ifndef TAPEOUT_PROTOCOL_H
#define TAPEOUT_PROTOCOL_H
#include "modes.h"

/* Elements that one load token fills: of the same rows, width and source. */
typedef struct {
    uint32_t kind;
    VEC(uint32_t) states;
} LoadGroup;

typedef struct Protocol {
    Modes *m;
    const BuildOptions *options;
    unsigned payload;        /* most bits per token of a field or of a load record */
    unsigned pack;           /* most bits of small registers that share a field */
    uint32_t group_rows;     /* rows that one key addresses: larger elements need their write address early */
    VEC(Field) fields;
    uint32_t first_normal, first_field; /* fields before first_normal end the run; before first_field: emits */
    VEC(Kind) kinds;
    uint64_t vocab;
    /* loading: records of row number (low) and data, in chunks; the last chunk's kind says which elements are meant */
    unsigned load_index, load_data, load_chunks, load_payload;
    VEC(LoadGroup) loads;
    uint32_t load_kind;      /* of chunk 0; the others follow */
    bool *packed;            /* per write: in a packed field */
    VEC(TokChan) tok;
    Ref *kind_ref;           /* per kind: 1 bit */
    VEC(Ref) words;          /* what the kinds' payloads are, by Kind.word */
} Protocol;

/* Fields, kinds and conditions. Adds ops to m->c; m must be decided (modes_choose). */
Protocol *protocol_derive(Modes *m, const BuildOptions *o);
/* The first kind of the role, or NULL. */
const Kind *protocol_kind(const Protocol *p, Role role);
/* The state that an input kind's tokens set. */
static inline uint32_t kind_host_state(const Kind *k) { return (uint32_t)(-2 - k->field); }
/* Is the short form only for the end of a step? */
bool at_end_only(const Field *f, unsigned form);
/* Has the field a kind that ends a step in which the tail stays as it is? */
bool may_stay(const Protocol *p, const Field *f);
/* The token channel that is 1 for the kinds that `is` accepts; channels of one name are one. */
uint32_t protocol_channel(Protocol *p, const char *name, bool (*is)(const Protocol *, const Kind *, int, int), int a, int b);
bool protocol_has(const Protocol *p, bool (*is)(const Protocol *, const Kind *, int, int), int a, int b);
/* pass.c: the network of one pass, ports with their writes, labels, cover. */
Net *pass_build(Protocol *p);
#endif
