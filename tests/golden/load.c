/* load.c: a static ELF32 RISC-V executable into the golden machine's RAM, through libelf. Strict: what does not fit,
 * overlaps or is no RV32 executable is refused with a message. */
#include "golden.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *check_header(const GElf_Ehdr *eh)
{
    if (eh->e_ident[EI_CLASS] != ELFCLASS32) return "not a 32-bit ELF file";
    if (eh->e_ident[EI_DATA] != ELFDATA2LSB) return "not a little-endian ELF file";
    if (eh->e_machine != EM_RISCV) return "not a RISC-V ELF file";
    if (eh->e_type != ET_EXEC) return "not a static executable";
    if (eh->e_entry & 3) return "the entry point is misaligned";
    return NULL;
}

/* Segments go to their physical address, as a boot loader or QEMU puts them. */
static const char *load_segment(Golden *g, const GElf_Phdr *ph, const char *file, size_t file_size, uint8_t *taken)
{
    if (ph->p_type == PT_INTERP || ph->p_type == PT_DYNAMIC) return "dynamically linked";
    if (ph->p_type != PT_LOAD || ph->p_memsz == 0) return NULL;
    if (ph->p_filesz > ph->p_memsz) return "a segment is larger in the file than in memory";
    if (ph->p_offset > file_size || ph->p_filesz > file_size - ph->p_offset) return "a segment lies outside the file";
    uint64_t off = ph->p_paddr - (uint32_t)GOLDEN_RAM_BASE;
    if (ph->p_paddr < (uint32_t)GOLDEN_RAM_BASE || off > g->ram_size || ph->p_memsz > g->ram_size - off)
        return "a segment lies outside of RAM";
    for (uint64_t i = 0; i < ph->p_filesz; i++)
        if (taken[off + i]++) return "segments overlap";
    memcpy(g->ram + off, file + ph->p_offset, ph->p_filesz);
    return NULL;
}

static const char *load_segments(Golden *g, Elf *elf)
{
    size_t n, file_size;
    const char *file = elf_rawfile(elf, &file_size), *err = NULL;
    if (!file || elf_getphdrnum(elf, &n) || n == 0) return "no program headers";
    uint8_t *taken = calloc(1, g->ram_size);
    if (!taken) abort();
    for (size_t i = 0; i < n && !err; i++) {
        GElf_Phdr ph;
        err = gelf_getphdr(elf, (int)i, &ph) ? load_segment(g, &ph, file, file_size, taken) : "bad program header";
    }
    free(taken);
    return err;
}

static void find_symbols(Golden *g, Elf *elf)
{
    const struct {
        const char *name;
        uint32_t *value;
    } wanted[] = { { "tohost", &g->tohost }, { "begin_signature", &g->signature[0] }, { "end_signature", &g->signature[1] } };
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr sh;
        Elf_Data *data;
        if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_SYMTAB || !(data = elf_getdata(scn, NULL))) continue;
        GElf_Sym sym;
        for (int i = 0; gelf_getsym(data, i, &sym); i++) {
            const char *name = elf_strptr(elf, sh.sh_link, sym.st_name);
            for (int k = 0; k < 3; k++)
                if (name && !strcmp(name, wanted[k].name) && sym.st_shndx != SHN_UNDEF) *wanted[k].value = (uint32_t)sym.st_value;
        }
    }
}

static const char *load(Golden *g, Elf *elf)
{
    GElf_Ehdr eh;
    if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh)) return "not an ELF file";
    const char *err = check_header(&eh);
    if (!err) err = load_segments(g, elf);
    if (err) return err;
    g->pc = (uint32_t)eh.e_entry;
    find_symbols(g, elf);
    return NULL;
}

const char *golden_load_elf(Golden *g, const char *path)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0) return "cannot be opened";
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    const char *err = load(g, elf);
    if (elf) elf_end(elf);
    close(fd);
    return err;
}
