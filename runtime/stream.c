/* stream.c: the residual stream of the sparse back end: values, and bitmaps of what they are, brought up to date after every
 * block, 16 channels at a time, where something has been added. The bitmaps are what makes looking for active units cheap. */
#include "sparse.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

Stream stream_new(Pool *p, uint32_t n)
{
    uint32_t words = (n + 63) / 64;
    Stream s = {.n = n,
                .words = words,
                .x = pool_array(p, words * 64, sizeof(float)),
                .plane = pool_array(p, (size_t)PLANES * words, sizeof(uint64_t)),
                .dirty = pool_array(p, words + 1, CHUNKS),
                .coded = pool_array(p, words, CHUNKS),
                .low = pool_array(p, words, 64),
                .high = pool_array(p, words, 64)};
    memset(s.high, 1, words * 64);
    s.live = s.plane + (size_t)PLANE_LIVE * words;
    s.odd = s.plane + (size_t)PLANE_ODD * words;
    return s;
}

static void set_chunk(Stream *s, uint32_t plane, uint32_t chunk, uint32_t bits)
{
    uint64_t *w = &s->plane[(size_t)plane * s->words + chunk / CHUNKS];
    uint32_t shift = chunk % CHUNKS * CHUNK;
    *w = (*w & ~(0xffffull << shift)) | (uint64_t)bits << shift;
}

static void code_plain(Stream *s, uint32_t chunk)
{
    uint32_t bit[4] = {0}, wild = 0;
    for (uint32_t i = 0; i < CHUNK; i++) {
        float x = s->x[chunk * CHUNK + i];
        bool fits = x >= s->low[chunk * CHUNK + i] && x <= s->high[chunk * CHUNK + i] && x == (float)(int)x;
        uint32_t code = fits ? (uint32_t)(int)x : 0;
        for (uint32_t b = 0; b < 4; b++) bit[b] |= (code >> b & 1) << i;
        wild |= (uint32_t)!fits << i;
    }
    for (uint32_t b = 0; b < 4; b++) set_chunk(s, PLANE_CODE + b, chunk, bit[b]);
    set_chunk(s, PLANE_WILD, chunk, wild);
}

static void settle_plain(Stream *s, uint32_t chunk)
{
    uint32_t live = 0, odd = 0;
    for (uint32_t i = 0; i < CHUNK; i++) {
        float x = s->x[chunk * CHUNK + i];
        live |= (uint32_t)(x != 0) << i;
        odd |= (uint32_t)(x != 0 && x != 1) << i;
    }
    set_chunk(s, PLANE_LIVE, chunk, live);
    set_chunk(s, PLANE_ODD, chunk, odd);
    if (s->coded[chunk]) code_plain(s, chunk);
}

#if defined(__x86_64__)
/* This processor stores the low byte first: 16 bits of a word are two bytes of it. */
static inline void store_chunk(Stream *s, uint32_t plane, uint32_t chunk, uint32_t bits)
{
    uint16_t v = (uint16_t)bits;
    memcpy((char *)(s->plane + (size_t)plane * s->words) + 2 * chunk, &v, sizeof v);
}

__attribute__((target("avx2"))) static inline uint32_t mask_of(__m256 low, __m256 high)
{
    return (uint32_t)_mm256_movemask_ps(low) | (uint32_t)_mm256_movemask_ps(high) << 8;
}

/* Values become bytes, saturated; those outside the range, and those that do not convert back (so does an overflow, which gives
 * INT_MIN), are wild. Bit b of every byte is moved to its top, where a mask can be taken. */
__attribute__((target("avx2"))) static inline void code_avx2(Stream *s, uint32_t chunk, __m256 a, __m256 b)
{
    __m256i n = _mm256_cvttps_epi32(a), m = _mm256_cvttps_epi32(b);
    uint32_t wild = mask_of(_mm256_cmp_ps(_mm256_cvtepi32_ps(n), a, _CMP_NEQ_UQ), _mm256_cmp_ps(_mm256_cvtepi32_ps(m), b, _CMP_NEQ_UQ));
    __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(n, m), 0xd8);
    __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    __m128i low = _mm_load_si128((const __m128i *)(s->low + chunk * CHUNK)), high = _mm_load_si128((const __m128i *)(s->high + chunk * CHUNK));
    __m128i out = _mm_or_si128(_mm_cmpgt_epi8(bytes, high), _mm_cmpgt_epi8(low, bytes));
    store_chunk(s, PLANE_WILD, chunk, wild | (uint32_t)_mm_movemask_epi8(out));
    store_chunk(s, PLANE_CODE, chunk, (uint32_t)_mm_movemask_epi8(_mm_slli_epi16(bytes, 7)));
    store_chunk(s, PLANE_CODE + 1, chunk, (uint32_t)_mm_movemask_epi8(_mm_slli_epi16(bytes, 6)));
    store_chunk(s, PLANE_CODE + 2, chunk, (uint32_t)_mm_movemask_epi8(_mm_slli_epi16(bytes, 5)));
    store_chunk(s, PLANE_CODE + 3, chunk, (uint32_t)_mm_movemask_epi8(_mm_slli_epi16(bytes, 4)));
}

/* The same where all are 0 or 1, which every range has. */
static inline void store_bits(Stream *s, uint32_t chunk, uint32_t live)
{
    store_chunk(s, PLANE_WILD, chunk, 0);
    store_chunk(s, PLANE_CODE, chunk, live);
    for (uint32_t b = 1; b < CODE_BITS; b++) store_chunk(s, PLANE_CODE + b, chunk, 0);
}

__attribute__((target("avx2"))) static inline void settle_avx2(Stream *s, uint32_t chunk)
{
    const __m256 zero = _mm256_setzero_ps(), one = _mm256_set1_ps(1);
    __m256 a = _mm256_load_ps(s->x + chunk * CHUNK), b = _mm256_load_ps(s->x + chunk * CHUNK + 8);
    uint32_t live = mask_of(_mm256_cmp_ps(a, zero, _CMP_NEQ_UQ), _mm256_cmp_ps(b, zero, _CMP_NEQ_UQ));
    uint32_t ones = mask_of(_mm256_cmp_ps(a, one, _CMP_EQ_OQ), _mm256_cmp_ps(b, one, _CMP_EQ_OQ));
    store_chunk(s, PLANE_LIVE, chunk, live);
    store_chunk(s, PLANE_ODD, chunk, live & ~ones);
    if (!s->coded[chunk]) return;
    if (live & ~ones) code_avx2(s, chunk, a, b);
    else store_bits(s, chunk, live);
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

static void settle_all_plain(Stream *s)
{
    for (uint32_t k = 0; k < s->words * CHUNKS; k++) {
        if (s->dirty[k]) settle_plain(s, k);
        s->dirty[k] = 0;
    }
}

#if defined(__x86_64__)
/* Flags are bytes of 0 or 1, looked at eight at a time. */
__attribute__((target("avx2,bmi"))) static void settle_all_avx2(Stream *s)
{
    for (uint32_t k = 0; k < s->words * CHUNKS; k += 8) {
        uint64_t flags;
        memcpy(&flags, s->dirty + k, sizeof flags);
        if (!flags) continue;
        memset(s->dirty + k, 0, sizeof flags);
        for (; flags; flags &= flags - 1) settle_avx2(s, k + (uint32_t)__builtin_ctzll(flags) / 8);
    }
}
#endif

void stream_settle(Stream *s)
{
#if defined(__x86_64__)
    if (simd) {
        settle_all_avx2(s);
        return;
    }
#endif
    settle_all_plain(s);
}

bool stream_range(Stream *s, uint32_t channel)
{
    float x = s->x[channel];
    if (!(x >= CODE_LOW && x <= CODE_HIGH) || x != (float)(int)x) return false;
    if (x < s->low[channel]) s->low[channel] = (int8_t)x;
    if (x > s->high[channel]) s->high[channel] = (int8_t)x;
    s->coded[channel / CHUNK] = 1;
    s->ranges++;
    code_plain(s, channel / CHUNK);
    return true;
}

void stream_clear(Stream *s)
{
    for (uint32_t w = 0; w < s->words; w++)
        if (s->live[w]) memset(s->x + w * 64, 0, 64 * sizeof *s->x);
    memset(s->plane, 0, (size_t)PLANES * s->words * sizeof *s->plane);
}
