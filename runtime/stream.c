/* stream.c: the residual stream of the sparse back end: values, and bitmaps of what they are, brought up to date word by word
 * after every block. The bitmaps are what makes looking for active units cheap. */
#include "sparse.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

Stream stream_new(Pool *p, uint32_t n)
{
    uint32_t words = (n + 63) / 64;
    return (Stream){.n = n,
                    .words = words,
                    .x = pool_array(p, words * 64, sizeof(float)),
                    .live = pool_array(p, words, sizeof(uint64_t)),
                    .odd = pool_array(p, words, sizeof(uint64_t)),
                    .code = pool_array(p, words * 64, sizeof(int8_t)),
                    .wild = pool_array(p, words, sizeof(uint64_t)),
                    .coded = pool_array(p, words / 64 + 1, sizeof(uint64_t))};
}

static void settle_plain(const float *x, uint64_t *live, uint64_t *odd)
{
    uint64_t l = 0, o = 0;
    for (uint32_t i = 0; i < 64; i++) {
        l |= (uint64_t)(x[i] != 0) << i;
        o |= (uint64_t)(x[i] != 0 && x[i] != 1) << i;
    }
    *live = l;
    *odd = o;
}

static uint64_t code_plain(const float *x, int8_t *code)
{
    uint64_t wild = 0;
    for (uint32_t i = 0; i < 64; i++) {
        bool fits = x[i] >= CODE_LOW && x[i] <= CODE_HIGH && x[i] == (float)(int)x[i];
        code[i] = fits ? (int8_t)x[i] : 0;
        wild |= (uint64_t)!fits << i;
    }
    return wild;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void settle_avx2(const float *x, uint64_t *live, uint64_t *odd)
{
    const __m256 zero = _mm256_setzero_ps(), one = _mm256_set1_ps(1);
    uint64_t l = 0, ones = 0;
    for (int i = 0; i < 64; i += 8) {
        __m256 v = _mm256_load_ps(x + i);
        l |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(v, zero, _CMP_NEQ_UQ)) << i;
        ones |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(v, one, _CMP_EQ_OQ)) << i;
    }
    *live = l;
    *odd = l & ~ones;
}

/* The low bytes of eight integers are picked out of each half and stored together; values that do not fit are wild
 * (a conversion that overflows gives INT_MIN, which does not convert back). */
__attribute__((target("avx2"))) static uint64_t code_avx2(const float *x, int8_t *code)
{
    const __m256 low = _mm256_set1_ps(CODE_LOW), high = _mm256_set1_ps(CODE_HIGH);
    const __m256i pick = _mm256_set_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 12, 8, 4, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                         -1, 12, 8, 4, 0);
    uint64_t fits = 0;
    for (int i = 0; i < 64; i += 8) {
        __m256 v = _mm256_load_ps(x + i);
        __m256i n = _mm256_cvttps_epi32(v);
        __m256 ok = _mm256_and_ps(_mm256_cmp_ps(_mm256_cvtepi32_ps(n), v, _CMP_EQ_OQ),
                                  _mm256_and_ps(_mm256_cmp_ps(v, low, _CMP_GE_OQ), _mm256_cmp_ps(v, high, _CMP_LE_OQ)));
        __m256i bytes = _mm256_shuffle_epi8(n, pick);
        uint32_t first = (uint32_t)_mm256_extract_epi32(bytes, 0), second = (uint32_t)_mm256_extract_epi32(bytes, 4);
        memcpy(code + i, &first, 4);
        memcpy(code + i + 4, &second, 4);
        fits |= (uint64_t)(uint32_t)_mm256_movemask_ps(ok) << i;
    }
    return ~fits;
}
#endif

bool simd;

void simd_choose(bool plain)
{
    simd = false;
#if defined(__x86_64__)
    simd = !plain && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
#else
    (void)plain;
#endif
}

static void settle(const float *x, uint64_t *live, uint64_t *odd)
{
#if defined(__x86_64__)
    if (simd) {
        settle_avx2(x, live, odd);
        return;
    }
#endif
    settle_plain(x, live, odd);
}

static uint64_t make_code(const float *x, int8_t *code)
{
#if defined(__x86_64__)
    if (simd) return code_avx2(x, code);
#endif
    return code_plain(x, code);
}

void stream_settle(Stream *s)
{
    for (uint64_t t = s->touched; t; t &= t - 1) {
        uint32_t w = (uint32_t)__builtin_ctzll(t), end = w == 63 ? s->words : w + 1;
        for (; w < end; w++) {
            settle(s->x + w * 64, &s->live[w], &s->odd[w]);
            if (s->coded[w >> 6] >> (w & 63) & 1) s->wild[w] = make_code(s->x + w * 64, s->code + w * 64);
        }
    }
    s->touched = 0;
}

void stream_code(Stream *s, uint32_t word)
{
    s->coded[word >> 6] |= 1ull << (word & 63);
    s->wild[word] = make_code(s->x + word * 64, s->code + word * 64);
}

void stream_clear(Stream *s)
{
    memset(s->x, 0, s->words * 64 * sizeof *s->x);
    memset(s->live, 0, s->words * sizeof *s->live);
    memset(s->odd, 0, s->words * sizeof *s->odd);
    memset(s->code, 0, s->words * 64);
    memset(s->wild, 0, s->words * sizeof *s->wild);
    s->touched = 0;
}
