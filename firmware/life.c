/* life.c: Conway's Life on a torus; a glider and a blinker for sixteen generations, every eighth one drawn. */
#include "io.h"

enum { W = 16, H = 12 };
static uint8_t cells[2][H][W];

static unsigned neighbours(uint8_t (*c)[W], unsigned y, unsigned x)
{
    unsigned up = y ? y - 1 : H - 1, down = y + 1 < H ? y + 1 : 0, left = (x - 1) & (W - 1), right = (x + 1) & (W - 1);
    return c[up][left] + c[up][x] + c[up][right] + c[y][left] + c[y][right] + c[down][left] + c[down][x] + c[down][right];
}

static void generation(uint8_t (*from)[W], uint8_t (*to)[W])
{
    for (unsigned y = 0; y < H; y++)
        for (unsigned x = 0; x < W; x++) {
            unsigned n = neighbours(from, y, x);
            to[y][x] = n == 3 || (n == 2 && from[y][x]);
        }
}

static void draw(uint8_t (*c)[W])
{
    for (unsigned y = 0; y < H; y++) {
        for (unsigned x = 0; x < W; x++) put_char(c[y][x] ? '#' : '.');
        put_char('\n');
    }
    put_char('\n');
}

int main(void)
{
    static const uint8_t alive[][2] = { { 0, 1 }, { 1, 2 }, { 2, 0 }, { 2, 1 }, { 2, 2 }, { 8, 10 }, { 8, 11 }, { 8, 12 } };
    for (unsigned i = 0; i < sizeof alive / sizeof *alive; i++) cells[0][alive[i][0]][alive[i][1]] = 1;
    for (unsigned i = 0; i < 16; i++) {
        if (i % 8 == 0) draw(cells[i & 1]);
        generation(cells[i & 1], cells[~i & 1]);
    }
    draw(cells[0]);
    return 0;
}
