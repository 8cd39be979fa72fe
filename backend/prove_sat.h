/* prove_sat.h: questions about bits under linear inequalities, by search with learning (prove_sat.c). */
#ifndef TAPEOUT_PROVE_SAT_H
#define TAPEOUT_PROVE_SAT_H
#include "prove_priv.h"

/* Twice the number of a bit, plus 1 for its negation. */
typedef uint32_t SatLit;
typedef struct {
    SatLit l;
    int32_t c;
} SatTerm;
typedef struct Sat Sat;

static inline SatLit sat_not(SatLit l) { return l ^ 1; }

Sat *sat_new(void);
void sat_free(Sat *s);
/* A new bit, as the literal that it is 1. */
SatLit sat_bit(Sat *s);
/* sum of c * l >= bound, for what defines the bit of `owner`: a question that meets that bit takes it into account, and all its bits. */
void sat_define(Sat *s, SatLit owner, const SatTerm *t, uint32_t n, int64_t bound);
/* The same for what is known of bits: a question that meets all of them takes it into account; with `whole`, one that meets any. */
void sat_fact(Sat *s, const SatTerm *t, uint32_t n, int64_t bound, bool whole);
typedef enum { SAT_NO, SAT_MAYBE, SAT_SPENT } SatAnswer;
/* Whether the literals can hold together: no; perhaps (an assignment has them all); or more than `budget` conflicts were met. */
SatAnswer sat_ask(Sat *s, const SatLit *l, uint32_t n, uint32_t depth, uint32_t budget);
/* After SAT_MAYBE: whether that assignment has the literal, 1 or -1; 0: the question did not meet it. */
int sat_model(const Sat *s, SatLit l);
#endif
