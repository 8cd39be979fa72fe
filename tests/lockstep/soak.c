/* soak.c: a program without an end for `freerun`: sorting, hashing, matrices, lists, text, recursion and 64-bit arithmetic by turns, each
 * round on data that the rounds before have made, so that one wrong bit changes all that follows. 64 KiB. With machine mode it traps, too. */
#include "io.h"
#include <stddef.h>
#include <string.h>

enum { WORDS = 512, NODES = 96, SIDE = 8, TEXT = 256 };
static uint32_t seed = 0x2545f491, data[WORDS], hash = 1;

static uint32_t rol(uint32_t x, unsigned n) { return x << (n & 31) | x >> (-n & 31); }
static void mix(uint32_t v) { hash = rol(hash ^ v, 5) + (hash << 3) - v; }

static void shell_sort(void)
{
    static const unsigned gaps[] = { 132, 57, 23, 10, 4, 1 };
    for (unsigned g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (unsigned gap = gaps[g], i = gap; i < WORDS; i++) {
            uint32_t v = data[i];
            unsigned j = i;
            for (; j >= gap && data[j - gap] > v; j -= gap) data[j] = data[j - gap];
            data[j] = v;
        }
    for (unsigned i = 0; i < WORDS; i += 37) mix(data[i]);
}

static void fill(void)
{
    for (unsigned i = 0; i < WORDS; i++) data[i] = next_random(&seed) ^ hash;
}

static void stir(void)
{
    for (unsigned i = 0; i + 3 < WORDS; i += 2) {
        uint32_t *p = &data[i];
        p[0] += p[1], p[3] = rol(p[3] ^ p[0], 16);
        p[2] += p[3], p[1] = rol(p[1] ^ p[2], data[(i + hash) % WORDS]);
    }
    mix(data[hash % WORDS]);
}

static void matrices(void)
{
    const int16_t *a = (const int16_t *)data;
    const int8_t *b = (const int8_t *)(data + 64);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            int32_t sum = 0;
            for (int k = 0; k < SIDE; k++) sum += a[i * SIDE + k] * b[k * SIDE + j];
            mix((uint32_t)sum);
        }
}

static void quotients(void)
{
    for (unsigned i = 1; i < 24; i++) {
        uint32_t n = data[i], d = data[i + 64] >> (n & 31);
        if (d) mix(n / d), mix(n % d);
        int32_t sd = (int32_t)data[i + 128] >> (n & 15);
        if (sd && sd != -1) mix((uint32_t)((int32_t)n / sd) ^ (uint32_t)((int32_t)n % sd));
        mix((uint32_t)(((uint64_t)n * hash) >> 32));
        mix((uint32_t)(((int64_t)(int32_t)n * (int32_t)hash) >> 32));
    }
}

typedef struct Node {
    struct Node *next;
    uint16_t key;
    uint8_t kind, mark;
} Node;

static void lists(void)
{
    static Node nodes[NODES];
    Node *list = NULL, *sorted = NULL;
    for (unsigned i = 0; i < NODES; i++) {
        nodes[i] = (Node){ list, (uint16_t)(data[i] >> 3), (uint8_t)i, 0 };
        list = &nodes[i];
    }
    while (list) {
        Node *n = list, **at = &sorted;
        list = n->next;
        while (*at && (*at)->key < n->key) at = &(*at)->next, n->mark++;
        n->next = *at;
        *at = n;
    }
    for (const Node *n = sorted; n; n = n->next) mix(n->key ^ (uint32_t)n->kind << 16 ^ (uint32_t)n->mark << 24);
}

static void text(void)
{
    char line[TEXT], words[TEXT];
    for (int i = 0; i < TEXT - 1; i++) line[i] = "abcde fg"[((const uint8_t *)data)[i] & 7];
    line[TEXT - 1] = 0;
    size_t at = 0;
    for (char *p = line; *p && at + 16 < TEXT;) {
        char *end = strchr(p, ' ');
        size_t n = end ? (size_t)(end - p) : strlen(p);
        if (n > 15) n = 15;
        memcpy(words + at, p, n);
        at += n, words[at++] = (char)('0' + n % 10);
        p += n + (p[n] == ' ');
    }
    words[at] = 0;
    for (size_t i = 0; i < at; i++) mix((uint8_t)words[i]);
}

static uint32_t tree(uint32_t v, int depth)
{
    if (depth == 0) return v ^ data[v % WORDS];
    return tree(v * 5 + 1, depth - 1) + rol(tree(v >> 1, depth - 1), (unsigned)depth);
}

#ifdef __riscv_zicsr
static uint32_t traps;

static __attribute__((interrupt("machine"), aligned(4))) void handler(void)
{
    uint32_t cause, pc;
    __asm__ volatile("csrr %0, mcause\n csrr %1, mepc" : "=r"(cause), "=r"(pc));
    traps = traps * 3 + cause;
    __asm__ volatile("csrw mepc, %0" : : "r"(pc + 4));
}

static void machine(void)
{
    __asm__ volatile("csrw mtvec, %0" : : "r"(handler));
    __asm__ volatile("ecall\n .word 0\n ebreak\n lw x0, 0(%0)\n sw x0, 4(%0)\n lw x0, 1(sp)" : : "r"(0xf0000000u) : "memory");
    uint32_t old;
    __asm__ volatile("csrrw %0, mscratch, %1" : "=r"(old) : "r"(hash));
    mix(old ^ traps);
}
#else
static void machine(void) { }
#endif

int main(void)
{
    static void (*const work[])(void) = { stir, matrices, quotients, lists, text, shell_sort, machine };
    fill();
    for (uint32_t round = 0;; round++) {
        for (unsigned i = 0; i < sizeof work / sizeof *work; i++) work[i]();
        mix(tree(hash, 5));
        if (round % 4 == 3) fill();
        if (round % 64 == 63) put_hex(hash, 8), put_char('\n');
    }
}
