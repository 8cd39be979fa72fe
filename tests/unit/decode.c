/* decode.c: the instruction tables that the compiler derives from the CPUs in cpu-spec/ against the golden decoder, for every
 * opcode, funct3 and funct7 with several contents of the other fields: the same word is the same instruction, or illegal. */
#include "../../frontend/frontend.h"
#include "../golden/golden.h"

#include <string.h>
#include <unistd.h>

static const char *spec_name(const Design *d, uint32_t word)
{
    for (uint32_t i = 0; i < d->instrs.n; i++) {
        const Instr *in = &d->instrs.data[i];
        if ((word & in->mask) == in->match) return in->name;
    }
    return NULL;
}

/* The golden name's dots are underscores in the language. */
static bool same_name(const char *golden, const char *spec)
{
    if (!golden || !spec) return golden == spec;
    while (*golden && *spec && (*golden == *spec || (*golden == '.' && *spec == '_'))) golden++, spec++;
    return *golden == *spec;
}

/* How many words the CPU's source decodes otherwise. */
static unsigned compare(const GoldenCpu *cpu, const char *path)
{
    /* rd, rs1 and rs2, and with them the words that instructions without operands require */
    static const uint32_t others[] = { 0, 1u << 20, 1u << 7, 1u << 15, 2u << 20, 4u << 20, 5u << 20, 7u << 20, 24u << 20,
                                       0x01ff8f80, 0x00550500 };
    Design *d = design_load(path, NULL, 0);
    if (!d) return 1;
    unsigned wrong = 0;
    for (uint32_t i = 0; i < 1u << 17; i++)
        for (size_t k = 0; k < sizeof others / sizeof *others && wrong < 10; k++) {
            uint32_t word = (i & 127) | (i >> 7 & 7) << 12 | i >> 10 << 25 | others[k];
            const GoldenInsn *golden = golden_decode(cpu->isa, word);
            const char *a = golden ? golden->name : NULL, *b = spec_name(d, word);
            if (same_name(a, b)) continue;
            fprintf(stderr, "%s: 0x%08x: golden %s, spec %s\n", path, word, a ? a : "illegal", b ? b : "illegal");
            wrong++;
        }
    return wrong;
}

int main(void)
{
    unsigned wrong = 0;
    for (const GoldenCpu *cpu = golden_cpus; cpu->name; cpu++) {
        char path[80];
        snprintf(path, sizeof path, "cpu-spec/%s.ckt", cpu->name);
        if (access(path, R_OK) == 0) wrong += compare(cpu, path);
    }
    return wrong ? 1 : 0;
}
