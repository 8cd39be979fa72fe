/* maze.c: carves a maze by depth-first search, then finds and draws the shortest way through by breadth-first search. */
#include "io.h"

enum { W = 25, H = 13, CELLS = W * H };
static char grid[CELLS + 1];
static uint16_t stack[CELLS], from[CELLS];
static const int step[4] = { 1, -1, W, -W };

static int inside(int x, int y) { return x > 0 && y > 0 && x < W - 1 && y < H - 1; }

static void carve(uint32_t seed)
{
    static uint8_t xs[CELLS], ys[CELLS];
    for (int i = 0; i < CELLS; i++) grid[i] = '#';
    for (int y = 0, i = 0; y < H; y++)
        for (int x = 0; x < W; x++, i++) xs[i] = (uint8_t)x, ys[i] = (uint8_t)y;
    int depth = 0, at = W + 1;
    grid[at] = ' ';
    for (;;) {
        unsigned first = next_random(&seed) >> 7 & 3, turn = 0;
        for (; turn < 4; turn++) {
            int d = step[(first + turn) & 3], to = at + 2 * d;
            int x = xs[at] + (d == 1 ? 2 : d == -1 ? -2 : 0), y = ys[at] + (d == W ? 2 : d == -W ? -2 : 0);
            if (!inside(x, y) || grid[to] != '#') continue;
            grid[at + d] = grid[to] = ' ';
            stack[depth++] = (uint16_t)at;
            at = to;
            break;
        }
        if (turn < 4) continue;
        if (depth == 0) return;
        at = stack[--depth];
    }
}

static uint32_t solve(int start, int goal)
{
    unsigned head = 0, tail = 0;
    stack[tail++] = (uint16_t)goal;
    from[goal] = (uint16_t)goal;
    while (head < tail && !from[start]) {
        int at = stack[head++];
        for (int i = 0; i < 4; i++) {
            int to = at + step[i];
            if (grid[to] == '#' || from[to]) continue;
            from[to] = (uint16_t)at;
            stack[tail++] = (uint16_t)to;
        }
    }
    uint32_t length = 0;
    for (int at = start; at != goal; at = from[at], length++) grid[at] = '.';
    grid[goal] = '.';
    return length;
}

int main(void)
{
    carve(2463534242u);
    uint32_t length = solve(W + 1, CELLS - W - 2);
    for (int i = 0; i < CELLS; i += W) {
        for (int x = 0; x < W; x++) put_char(grid[i + x]);
        put_char('\n');
    }
    put_value("steps", length);
    return 0;
}
