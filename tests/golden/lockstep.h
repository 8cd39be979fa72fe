/* lockstep.h: random instructions and programs for lockstep.c and versus.c. */
#ifndef LOCKSTEP_H
#define LOCKSTEP_H
#include <stdbool.h>
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

/* ---- program.c ---- */
/* Fills ram [ram_size, at least 16 KiB] with a program for a CPU with these GoldenIsa bits that starts at its first byte and ends by itself after a few
 * thousand steps: all registers stand in memory then, and it jumps to the address in the word at program_exit_word, which exits with 0. */
void program_make(Random *r, uint32_t isa, bool strict, uint8_t *ram, uint32_t ram_size);
uint32_t program_exit_word(uint32_t ram_size);
#endif
