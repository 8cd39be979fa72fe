/* lockstep.h: random instructions for lockstep.c. */
#ifndef LOCKSTEP_H
#define LOCKSTEP_H
#include <stdint.h>

typedef struct {
    uint64_t state;
} Random;

/* ---- random.c ---- */
uint32_t random_next(Random *r);
/* A register's contents: edge values, small numbers, addresses in and around RAM and the devices, or anything. */
uint32_t random_value(Random *r, uint32_t ram_size);
/* An instruction word: mostly legal, some with one bit changed, some arbitrary. */
uint32_t random_word(Random *r);
/* Fills ram with a program that starts at its first byte: all registers get values, then instructions follow whose loads,
 * stores and jumps mostly stay inside. It ends in a fault sooner or later, or not at all. */
void random_program(Random *r, uint8_t *ram, uint32_t ram_size);
#endif
