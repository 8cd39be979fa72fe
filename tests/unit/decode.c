/* decode.c: the instruction table that the compiler derives from cpu-spec/rv32i.ckt against the golden decoder, for every
 * opcode, funct3 and funct7 with several contents of the other fields: the same word is the same instruction, or illegal. */
#include "../../frontend/frontend.h"
#include "../golden/golden.h"

#include <string.h>

static const char *spec_name(const Design *d, uint32_t word)
{
    for (uint32_t i = 0; i < d->instrs.n; i++) {
        const Instr *in = &d->instrs.data[i];
        if ((word & in->mask) == in->match) return in->name;
    }
    return NULL;
}

static bool same_name(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

int main(void)
{
    /* rd, rs1 and rs2, and with them the words that ecall and ebreak require */
    static const uint32_t others[] = { 0, 1u << 20, 1u << 7, 1u << 15, 2u << 20, 0x01ff8f80, 0x00550500 };
    Design *d = design_load("cpu-spec/rv32i.ckt", NULL, 0);
    if (!d) return 1;
    unsigned wrong = 0;
    for (uint32_t i = 0; i < 1u << 17; i++)
        for (size_t k = 0; k < sizeof others / sizeof *others && wrong < 10; k++) {
            uint32_t word = (i & 127) | (i >> 7 & 7) << 12 | i >> 10 << 25 | others[k];
            const GoldenInsn *golden = golden_decode(word);
            const char *a = golden ? golden->name : NULL, *b = spec_name(d, word);
            if (same_name(a, b)) continue;
            fprintf(stderr, "0x%08x: golden %s, spec %s\n", word, a ? a : "illegal", b ? b : "illegal");
            wrong++;
        }
    return wrong ? 1 : 0;
}
