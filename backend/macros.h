/* macros.h: what the files of word arithmetic share: macros.c (adders, comparisons, shifts) and sums.c (products). */
#ifndef TAPEOUT_MACROS_H
#define TAPEOUT_MACROS_H
#include "backend.h"

enum { DIGIT = 4 }; /* bits of a digit of a sum */

/* f(s, arg) as a node of its own (one level above s), or as it stands where it is constant or s itself. */
typedef int (*DigitFn)(int v, int arg);
Lin m_table(Net *n, Lin s, DigitFn fn, int arg, Span span);
Lit m_table_bit(Net *n, Lin s, DigitFn fn, int arg, Span span); /* of values 0 and 1 */
/* Digits with partial sums form[k][i] (bits 0..i of the digit, at most 30) to the w bits of the sum: two levels. */
void m_finish(Net *n, unsigned w, Lin (*form)[DIGIT], Lit gate, Lit *sum, Span span);
#endif
