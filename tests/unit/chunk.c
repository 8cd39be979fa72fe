/* unit/chunk.c: the chunked form of the gated delta rule, which runtimes use for prompts, leaves in a chip's cells what decode does: numerics.md, section 7.
 * One row of a head, random tokens, every sum in a random order, products fused or not: in float32 and bit by bit. Heads that only set must agree
 * in every order; a head that counts, in the order of the forward substitution as it is defined and any order elsewhere. A cell beside a count is shown to
 * fail, which is why there is none. The form, for tokens i, j of a chunk with addressed row a, beta b, value v (decay 1, S the row before):
 *     A[i][j] = -b_i a_i a_j (j < i);  T = (1 - A)^-1;  u = T (b v) - (T (b a)) S;  S' = S + a^T u;  o_i = q S + sum over j <= i of q a_j u_j. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK = 64, LANES = 4, COUNT = 0, CELL = 1, PILOT = 3, FULL = 127 };
static const float H = 128, P = 1073741824.0f, BETA = 0x1p-44f; /* a set bit; the pilots; what a count's beta is in bfloat16 */

typedef struct {
    float a[CHUNK], b[CHUNK], v[CHUNK][LANES];
} Tokens;

static uint64_t seed = 88172645463325252ull;
static uint32_t below(uint32_t n)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)(seed >> 20) % n;
}

/* The sum of x[i] y[i] in a random order, with or without a rounding of the products. */
static float dot(const float *x, const float *y, uint32_t n)
{
    uint32_t at[CHUNK];
    float sum = 0, part = 0;
    bool fused = below(2), two = below(2);
    for (uint32_t i = 0; i < n; i++) at[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = below(i), t = at[i - 1];
        at[i - 1] = at[j], at[j] = t;
    }
    for (uint32_t i = 0; i < n; i++) {
        float *to = two && i & 1 ? &part : &sum, product = x[at[i]] * y[at[i]];
        *to = fused ? fmaf(x[at[i]], y[at[i]], *to) : *to + product;
    }
    return sum + part;
}

static void solve(const Tokens *t, float T[CHUNK][CHUNK])
{
    memset(T, 0, sizeof(float) * CHUNK * CHUNK);
    for (uint32_t i = 0; i < CHUNK; i++) {
        float A[CHUNK], column[CHUNK];
        for (uint32_t j = 0; j < i; j++) A[j] = -(t->b[i] * t->a[i]) * t->a[j];
        for (uint32_t j = 0; j < i; j++) {
            for (uint32_t m = 0; m < i; m++) column[m] = m > j ? T[m][j] : 0;
            T[i][j] = A[j] + dot(A, column, i);
        }
        T[i][i] = 1;
    }
}

/* The row after the chunk, and what each token reads (q = 1). */
static void chunked(const Tokens *t, float *S, float out[CHUNK][LANES])
{
    static float T[CHUNK][CHUNK];
    float w[CHUNK], u[CHUNK], cum[CHUNK];
    solve(t, T);
    for (uint32_t i = 0; i < CHUNK; i++) w[i] = t->b[i] * t->a[i];
    for (uint32_t i = 0; i < CHUNK; i++) cum[i] = dot(T[i], w, CHUNK);
    for (uint32_t l = 0; l < LANES; l++) {
        for (uint32_t i = 0; i < CHUNK; i++) w[i] = t->v[i][l] * t->b[i];
        for (uint32_t i = 0; i < CHUNK; i++) u[i] = dot(T[i], w, CHUNK) - cum[i] * S[l];
        for (uint32_t i = 0; i < CHUNK; i++) out[i][l] = S[l] + dot(t->a, u, i + 1);
        S[l] += dot(t->a, u, CHUNK);
    }
}

static void one_by_one(const Tokens *t, float *S, float out[CHUNK][LANES])
{
    for (uint32_t i = 0; i < CHUNK; i++)
        for (uint32_t l = 0; l < LANES; l++) {
            S[l] += t->a[i] * (t->b[i] * (t->v[i][l] - t->a[i] * S[l]));
            out[i][l] = S[l];
        }
}

/* Tokens that set the row, add to its count, write another row, or nothing; a count is never added to when it is full. `beside`: cells change too. */
static Tokens draw(bool counts, bool beside, float *S)
{
    Tokens t = {0};
    uint32_t n = below(20), often = below(8);
    memcpy(S, (float[LANES]){n * H, below(2) * H * beside, below(2) * H * beside, P}, LANES * sizeof *S);
    for (uint32_t i = 0; i < CHUNK; i++) {
        uint32_t what = below(10);
        t.a[i] = what != 9;
        for (uint32_t l = CELL; l < PILOT; l++) t.v[i][l] = below(2) * H * beside;
        t.v[i][PILOT] = P;
        if (what < often) t.b[i] = 1, n = below(60), t.v[i][COUNT] = n * H;
        else if (counts && what < 9 && n < FULL) t.b[i] = BETA, n++, memset(t.v[i], 0, sizeof(float) * PILOT), t.v[i][COUNT] = H / BETA;
        else t.b[i] = what == 9; /* another row's */
    }
    return t;
}

static uint32_t differing(bool counts, bool beside, uint32_t trials)
{
    static float x[CHUNK][LANES], y[CHUNK][LANES];
    uint32_t wrong = 0;
    while (trials--) {
        float S[LANES], R[LANES];
        Tokens t = draw(counts, beside, S);
        memcpy(R, S, sizeof S);
        chunked(&t, S, x), one_by_one(&t, R, y);
        bool same = true;
        for (uint32_t l = 0; l < LANES; l++) same &= S[l] == R[l];
        if (!counts)
            for (uint32_t i = 0; i < CHUNK; i++)
                for (uint32_t l = 0; l < LANES; l++) same &= x[i][l] == y[i][l];
        wrong += !same;
    }
    return wrong;
}

int main(void)
{
    uint32_t sets = differing(false, true, 1500), counts = differing(true, false, 1500), beside = differing(true, true, 300);
    if (sets) fprintf(stderr, "heads that only set: %u chunks differ from decode\n", sets);
    if (counts) fprintf(stderr, "heads that count: %u chunks differ from decode\n", counts);
    if (!beside) fprintf(stderr, "cells beside a count: no chunk differs, though none is allowed there\n");
    return sets || counts || !beside;
}
