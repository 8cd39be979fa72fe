/* encode.h: what a step says, in tokens, from values: the protocol without the model. */
#ifndef TAPEOUT_ENCODE_H
#define TAPEOUT_ENCODE_H
#include "protocol.h"

typedef VEC(uint32_t) Tokens;
/* Makes the interpreter keep every value that encoding needs. */
void encode_watch(const Protocol *p, Sim *s);
/* Appends what comes before the next step's tokens when the step before it, already committed, retired: the carries of silent counts that
 * have become full. Nothing comes before the first step. */
void encode_carries(const Protocol *p, const Sim *s, Tokens *out);
/* Appends the tokens of the step that s has just evaluated (sim_eval). True when the last one ends the run. */
bool encode_step(const Protocol *p, const Sim *s, Tokens *out);
/* The step's writes. What the machine does of them by the time that its last token is fed back is told by `direct_only`: of a step that ends
 * the run, and of the step after the last, only those that cost no token happen. */
void encode_commit(const Protocol *p, Sim *s, bool direct_only);
#endif
