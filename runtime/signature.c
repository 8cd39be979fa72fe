/* signature.c: what public test suites compare: the memory between the program's symbols begin_signature and end_signature when it
 * has ended, one 32-bit little-endian word in hex a line. The memory is the first of the chip that firmware fills and that
 * has these addresses (a machine may keep copies of it, which stand later in its source). */
#include "runtime.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORD = 4 }; /* bytes a line */

static const ChipState *memory_at(const Model *m, uint64_t begin, uint64_t end)
{
    for (uint32_t i = 0; i < m->nstates; i++) {
        const ChipState *s = &m->state[i];
        uint64_t bytes = (uint64_t)s->rows * (s->width / 8);
        if (s->init == INIT_IMAGE && s->ncopies && s->width % 8 == 0 && begin >= s->base && end >= begin && end - s->base <= bytes) return s;
    }
    return NULL;
}

bool signature_find(Signature *out, const Model *m, const Image *image, const char *firmware, char **err)
{
    static const char *const names[2] = {"begin_signature", "end_signature"};
    uint64_t at[2];
    for (int i = 0; i < 2; i++) {
        if (!image->symbol(image, names[i], &at[i])) return fail(err, "%s: there is no symbol %s, which --signature needs", firmware, names[i]);
        if (at[i] % WORD) return fail(err, "%s: %s at %#" PRIx64 " is not aligned to %d bytes", firmware, names[i], at[i], WORD);
    }
    if (at[1] < at[0]) return fail(err, "%s: end_signature lies before begin_signature", firmware);
    *out = (Signature){memory_at(m, at[0], at[1]), at[0], at[1]};
    return out->memory || fail(err, "%s: the signature, %#" PRIx64 " to %#" PRIx64 ", lies outside every memory of %s", firmware, at[0], at[1], m->name);
}

/* One byte of the memory; rows are little-endian. */
static bool read_byte(const Signature *s, Machine *mc, uint64_t addr, uint8_t *out, char **err)
{
    uint64_t bytes = s->memory->width / 8, off = addr - s->memory->base, value;
    if (!machine_get(mc, s->memory, (uint32_t)(off / bytes), &value, err)) return false;
    *out = (uint8_t)(value >> 8 * (off % bytes));
    return true;
}

static bool write_words(const Signature *s, Machine *mc, FILE *f, char **err)
{
    for (uint64_t addr = s->begin; addr < s->end; addr += WORD) {
        uint8_t b[WORD];
        for (unsigned i = 0; i < WORD; i++)
            if (!read_byte(s, mc, addr + i, &b[i], err)) return false;
        fprintf(f, "%02x%02x%02x%02x\n", b[3], b[2], b[1], b[0]);
    }
    return true;
}

bool signature_write(const Signature *s, Machine *mc, const char *path, char **err)
{
    char *temp = xfmt("%s.tmp", path);
    FILE *f = fopen(temp, "w");
    if (!f) return fail(err, "%s: %s", path, strerror(errno));
    bool ok = write_words(s, mc, f, err), bad = ferror(f) != 0;
    bad |= fclose(f) != 0;
    if (ok && (bad || rename(temp, path) != 0)) ok = fail(err, "%s: cannot be written", path);
    if (!ok) unlink(temp);
    return ok;
}
