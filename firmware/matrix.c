/* matrix.c: integer matrices through the compiler's software multiply: trace and checksum of A * B, and det of a 3 by 3. */
#include "io.h"

enum { N = 8 };
static int32_t a[N][N], b[N][N], c[N][N];

static void multiply(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int32_t sum = 0;
            for (int k = 0; k < N; k++) sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
}

static int32_t det3(int32_t m[3][3])
{
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
           + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

int main(void)
{
    uint32_t seed = 99;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (int32_t)next_random(&seed) >> 20;
            b[i][j] = (int32_t)next_random(&seed) >> 20;
        }
    multiply();
    int32_t trace = 0;
    uint32_t sum = 0;
    for (int i = 0; i < N; i++) {
        trace += c[i][i];
        for (int j = 0; j < N; j++) sum = (sum << 1 | sum >> 31) ^ (uint32_t)c[i][j];
    }
    put_str("trace: ");
    put_int(trace);
    put_str("\nchecksum: ");
    put_hex(sum, 8);
    int32_t m[3][3] = { { 2, -3, 1 }, { 2, 0, -1 }, { 1, 4, 5 } };
    int32_t det = det3(m);
    put_str("\ndeterminant: ");
    put_int(det);
    put_char('\n');
    return det == 49 ? 0 : 1;
}
