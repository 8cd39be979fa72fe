/* drylike.c: the statement mix of the classic synthetic benchmarks for integer code (assignments, records behind pointers, enumerations,
 * strings of 30 characters, one- and two-dimensional arrays, short procedures with few parameters), written anew. About 400 instructions a round.
 * build: -march=rv32im_zba
 * needs: m zba */
#include "io.h"
#include <string.h>

enum { ROUNDS = 150, LENGTH = 31, SIDE = 12 };
typedef enum { NORTH, EAST, SOUTH, WEST } Direction;

typedef struct Record {
    struct Record *next;
    Direction direction;
    union {
        struct {
            int32_t value;
            char text[LENGTH];
        } named;
        int32_t raw[9];
    } body;
} Record;

static Record records[2];
static int32_t counts[SIDE], grid[SIDE][SIDE];
static char last_letter;
static int32_t total;

static __attribute__((noinline)) Direction turn(Direction d, int32_t by) { return (Direction)((uint32_t)(d + by) & 3); }

static __attribute__((noinline)) int same_letter(char a, char b)
{
    last_letter = a;
    return a == b;
}

/* Whether the second text comes later; the third letters decide whether it is asked at all. */
static __attribute__((noinline)) int later(const char *a, const char *b)
{
    int at = 2;
    while (at < 4 && !same_letter(a[at], b[at + 1])) at++;
    return strcmp(a, b) < 0 ? at : 0;
}

static __attribute__((noinline)) void fill(int32_t row, int32_t column, int32_t value)
{
    int32_t at = row + 1;
    counts[at] = value;
    counts[at + 1] = counts[at];
    counts[at + 4] = at;
    for (int32_t i = at; i <= at + 1; i++) grid[at][i] = at + column;
    grid[at][at - 1]++;
    grid[at + 2][at] = counts[at];
    total += 5;
}

static __attribute__((noinline)) void follow(Record *from)
{
    Record *to = from->next;
    *to = *from;
    from->body.named.value = 5;
    to->body.named.value = from->body.named.value;
    to->next = from;
    if (to->direction == EAST) {
        to->body.named.value = total % 7;
        to->direction = turn(from->direction, 2);
    } else {
        to->direction = turn(to->direction, 1);
        from->body.named.text[29] = (char)('0' + (total & 7));
    }
}

static __attribute__((noinline)) int32_t divide(int32_t a, int32_t b, int32_t c) { return (a * b + c) / (b - 2) - c % 3; }

static void one_round(int32_t round, char *first, char *second)
{
    strcpy(second, "SOME TEXT, AND ITS SECOND LINE");
    second[28] = (char)('A' + round % 26);
    int32_t a = 2, b = 3, c = 7;
    if (!later(first, second)) total++;
    while (a < b) {
        c = 5 * a - b;
        fill(a, b, c + round);
        a++;
    }
    follow(&records[round & 1]);
    for (char letter = 'A'; letter <= last_letter && letter < 'E'; letter++) c = divide(c + letter, b + round % 5, a);
    total += c + records[0].body.named.value + (int32_t)records[1].direction;
}

int main(void)
{
    char first[LENGTH] = "SOME TEXT, AND ITS FIRST LINE.", second[LENGTH];
    records[0] = (Record){ &records[1], EAST, { { 40, "A RECORD WITH A TEXT INSIDE IT" } } };
    records[1] = (Record){ &records[0], NORTH, { { 2, "ANOTHER, AND NOT MUCH LONGER.." } } };
    for (int32_t round = 0; round < ROUNDS; round++) one_round(round, first, second);
    int32_t sum = 0;
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) sum = sum * 31 + grid[i][j] + counts[j];
    put_line(second);
    put_line(records[1].body.named.text);
    put_str("total: ");
    put_int(total);
    put_str("\ngrid: ");
    put_hex((uint32_t)sum, 8);
    put_char('\n');
    return 0;
}
