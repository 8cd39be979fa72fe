/* queens.c: all ways to put eight queens on a board, by bit masks; draws the first. */
#include "io.h"

enum { N = 8 };
static uint32_t row_bit[N], solutions;

static void draw(void)
{
    for (unsigned r = 0; r < N; r++) {
        for (uint32_t bit = 1; bit < 1u << N; bit <<= 1) put_str(row_bit[r] == bit ? " Q" : " .");
        put_char('\n');
    }
}

static void place(unsigned row, uint32_t columns, uint32_t left, uint32_t right)
{
    if (row == N) {
        if (++solutions == 1) draw();
        return;
    }
    uint32_t free = ~(columns | left | right) & ((1u << N) - 1);
    while (free) {
        uint32_t bit = free & -free;
        free ^= bit;
        row_bit[row] = bit;
        place(row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1);
    }
}

int main(void)
{
    place(0, 0, 0, 0);
    put_value("solutions", solutions);
    return solutions == 92 ? 0 : 1;
}
