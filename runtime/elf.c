/* elf.c: firmware. Accepts ELF32 little-endian RISC-V executables whose loadable segments do not overlap; refuses
 * everything else with the reason. libelf reads the structures, the rules are ours.
 *
 * Bytes go to a segment's load (physical) address, as in QEMU: start-up code that copies .data to its run address
 * expects them there. Memory beyond the file bytes is zero, which needs no loading. */
#include "runtime.h"
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

/* ---- Image callbacks ---- */
static void firmware_read(const Image *im, uint64_t addr, uint8_t *out, size_t n)
{
    const Firmware *f = im->ctx;
    memset(out, 0, n);
    for (uint32_t i = 0; i < f->nsegments; i++) {
        const Segment *s = &f->segment[i];
        uint64_t lo = addr > s->addr ? addr : s->addr, end = s->addr + s->file_size;
        uint64_t hi = addr + n < end ? addr + n : end;
        if (lo < hi) memcpy(out + (lo - addr), s->data + (lo - s->addr), hi - lo);
    }
}

bool image_covers(const Image *im, uint64_t addr, uint64_t n)
{
    const Firmware *f = im->ctx;
    if (im->read != firmware_read) return true;
    for (uint32_t i = 0; i < f->nsegments; i++)
        if (addr < f->segment[i].addr + f->segment[i].file_size && f->segment[i].addr < addr + n) return true;
    return false;
}

static int by_symbol(const void *a, const void *b) { return strcmp(((const Symbol *)a)->name, ((const Symbol *)b)->name); }

static bool firmware_symbol(const Image *im, const char *name, uint64_t *value)
{
    const Firmware *f = im->ctx;
    Symbol key = {.name = name};
    const Symbol *s = f->nsymbols ? bsearch(&key, f->symbol, f->nsymbols, sizeof key, by_symbol) : NULL;
    if (s) *value = s->value;
    return s != NULL;
}

/* ---- reading ---- */
typedef struct {
    Firmware *f;
    Elf *elf;
    size_t size;
    GElf_Ehdr header;
    char **err;
} Loader;

static bool check_ident(Loader *l)
{
    const uint8_t *id = l->f->bytes;
    const char *path = l->f->path;
    if (l->size < EI_NIDENT || memcmp(id, ELFMAG, SELFMAG) != 0) return fail(l->err, "%s: not an ELF file", path);
    if (id[EI_CLASS] != ELFCLASS32) return fail(l->err, "%s: not a 32-bit ELF file", path);
    if (id[EI_DATA] != ELFDATA2LSB) return fail(l->err, "%s: not a little-endian ELF file", path);
    if (l->size < sizeof(Elf32_Ehdr)) return fail(l->err, "%s: truncated: %zu bytes", path, l->size);
    return true;
}

static bool check_header(Loader *l)
{
    GElf_Ehdr *h = &l->header;
    const char *path = l->f->path;
    if (!l->elf || elf_kind(l->elf) != ELF_K_ELF || !gelf_getehdr(l->elf, h)) return fail(l->err, "%s: not a readable ELF file", path);
    if (h->e_machine != EM_RISCV) return fail(l->err, "%s: not for RISC-V (machine %u)", path, h->e_machine);
    if (h->e_type != ET_EXEC) return fail(l->err, "%s: not an executable (type %u): link it at fixed addresses", path, h->e_type);
    if (h->e_version != EV_CURRENT) return fail(l->err, "%s: unknown ELF version %u", path, h->e_version);
    if (h->e_phnum && h->e_phentsize != sizeof(Elf32_Phdr)) return fail(l->err, "%s: program headers of %u bytes", path, h->e_phentsize);
    if (h->e_phoff > l->size || (uint64_t)h->e_phnum * sizeof(Elf32_Phdr) > l->size - h->e_phoff)
        return fail(l->err, "%s: the program headers are truncated", path);
    return true;
}

static bool add_segment(Loader *l, const GElf_Phdr *p, size_t i)
{
    Firmware *f = l->f;
    unsigned long long off = p->p_offset, fsz = p->p_filesz, msz = p->p_memsz, load = p->p_paddr, run = p->p_vaddr;
    if (fsz > msz) return fail(l->err, "%s: segment %zu has %#llx bytes in the file but only %#llx in memory", f->path, i, fsz, msz);
    if (fsz && (off > l->size || fsz > l->size - off))
        return fail(l->err, "%s: segment %zu is truncated: it ends at byte %#llx of a file of %#zx", f->path, i, off + fsz, l->size);
    if (run + msz > 1ull << 32 || load + fsz > 1ull << 32)
        return fail(l->err, "%s: segment %zu: %#llx bytes at %#llx wrap around the address space", f->path, i, msz, run);
    if (msz) f->segment[f->nsegments++] = (Segment){load, fsz, run, msz, f->bytes + (fsz ? off : 0)};
    return true;
}

static int by_address(const void *a, const void *b)
{
    const Segment *s = a, *t = b;
    return s->addr < t->addr ? -1 : s->addr > t->addr;
}

static int by_run(const void *a, const void *b)
{
    const Segment *s = *(Segment *const *)a, *t = *(Segment *const *)b;
    return s->run < t->run ? -1 : s->run > t->run;
}

/* Neither the bytes to load nor the memory that the program will use may overlap. */
static bool check_overlap(Loader *l)
{
    Firmware *f = l->f;
    Segment **run = pool_array(f->pool, f->nsegments, sizeof *run);
    uint64_t load_end = 0, run_end = 0;
    qsort(f->segment, f->nsegments, sizeof *f->segment, by_address);
    for (uint32_t i = 0; i < f->nsegments; i++) run[i] = &f->segment[i];
    qsort(run, f->nsegments, sizeof *run, by_run);
    for (uint32_t i = 0; i < f->nsegments; i++) {
        const Segment *s = &f->segment[i];
        if (s->file_size && s->addr < load_end) return fail(l->err, "%s: two segments are loaded at %#llx", f->path, (unsigned long long)s->addr);
        if (s->file_size) load_end = s->addr + s->file_size;
        if (run[i]->run < run_end) return fail(l->err, "%s: two segments overlap at %#llx", f->path, (unsigned long long)run[i]->run);
        run_end = run[i]->run + run[i]->run_size;
    }
    return true;
}

static bool read_segments(Loader *l)
{
    Firmware *f = l->f;
    size_t n = 0;
    if (elf_getphdrnum(l->elf, &n) != 0 || n != l->header.e_phnum) return fail(l->err, "%s: bad number of program headers", f->path);
    f->segment = pool_array(f->pool, n, sizeof *f->segment);
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr p;
        if (!gelf_getphdr(l->elf, (int)i, &p)) return fail(l->err, "%s: program header %zu cannot be read", f->path, i);
        if (p.p_type == PT_INTERP || p.p_type == PT_DYNAMIC) return fail(l->err, "%s: dynamically linked", f->path);
        if (p.p_type == PT_LOAD && !add_segment(l, &p, i)) return false;
    }
    if (f->nsegments == 0) return fail(l->err, "%s: no loadable segment", f->path);
    return check_overlap(l);
}

static bool read_symbol(Loader *l, Elf_Data *data, size_t i, size_t strings)
{
    Firmware *f = l->f;
    GElf_Sym sym;
    if (!gelf_getsym(data, (int)i, &sym)) return fail(l->err, "%s: symbol %zu cannot be read", f->path, i);
    int type = GELF_ST_TYPE(sym.st_info);
    if (sym.st_shndx == SHN_UNDEF || sym.st_name == 0 || type == STT_FILE || type == STT_SECTION) return true;
    const char *name = elf_strptr(l->elf, strings, sym.st_name);
    if (!name) return fail(l->err, "%s: symbol %zu has no readable name", f->path, i);
    f->symbol[f->nsymbols++] = (Symbol){pool_str(f->pool, name), sym.st_value, (uint32_t)i};
    return true;
}

static int by_name_then_index(const void *a, const void *b)
{
    uint32_t i = ((const Symbol *)a)->index, j = ((const Symbol *)b)->index;
    int c = by_symbol(a, b);
    return c ? c : i < j ? -1 : i > j;
}

/* Of equal names the last wins: local symbols come first in a table, so a global one beats them. */
static void sort_symbols(Firmware *f)
{
    uint32_t out = 0;
    if (f->nsymbols) qsort(f->symbol, f->nsymbols, sizeof *f->symbol, by_name_then_index);
    for (uint32_t i = 0; i < f->nsymbols; i++) {
        if (out && by_symbol(&f->symbol[out - 1], &f->symbol[i]) == 0) out--;
        f->symbol[out++] = f->symbol[i];
    }
    f->nsymbols = out;
}

static bool read_symbols(Loader *l)
{
    Firmware *f = l->f;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(l->elf, scn));) {
        GElf_Shdr sh;
        if (!gelf_getshdr(scn, &sh)) return fail(l->err, "%s: a section header cannot be read", f->path);
        if (sh.sh_type != SHT_SYMTAB || f->symbol) continue;
        Elf_Data *data = elf_getdata(scn, NULL);
        if (!data || sh.sh_entsize != sizeof(Elf32_Sym)) return fail(l->err, "%s: the symbol table cannot be read", f->path);
        size_t n = data->d_size / sizeof(Elf32_Sym);
        f->symbol = pool_array(f->pool, n + 1, sizeof *f->symbol);
        for (size_t i = 1; i < n; i++)
            if (!read_symbol(l, data, i, sh.sh_link)) return false;
    }
    sort_symbols(f);
    return true;
}

static bool load(Firmware *f, size_t size, char **err)
{
    Loader l = {.f = f, .size = size, .err = err};
    if (elf_version(EV_CURRENT) == EV_NONE) die("libelf is older than its header");
    if (!check_ident(&l)) return false;
    l.elf = elf_memory((char *)f->bytes, size);
    bool ok = check_header(&l) && read_segments(&l) && read_symbols(&l);
    elf_end(l.elf);
    return ok;
}

Firmware *firmware_parse(const uint8_t *bytes, size_t size, const char *path, char **err)
{
    Pool *p = pool_new();
    Firmware *f = pool_alloc(p, sizeof *f);
    f->pool = p;
    f->path = pool_str(p, path);
    f->bytes = memcpy(pool_alloc(p, size), bytes, size); /* libelf may convert in place; also aligns */
    if (!load(f, size, err)) {
        pool_free(p);
        return NULL;
    }
    f->image = (Image){0, firmware_read, firmware_symbol, f};
    f->image.entry = (uint64_t)f->bytes[24] | (uint64_t)f->bytes[25] << 8 | (uint64_t)f->bytes[26] << 16 | (uint64_t)f->bytes[27] << 24;
    return f;
}

Firmware *firmware_open(const char *path, char **err)
{
    size_t size;
    char *bytes = read_file(path, &size);
    if (!bytes) {
        fail(err, "%s: %s", path, strerror(errno));
        return NULL;
    }
    Firmware *f = firmware_parse((uint8_t *)bytes, size, path, err);
    free(bytes);
    return f;
}

void firmware_close(Firmware *f)
{
    if (f) pool_free(f->pool);
}

Image *image_open(const char *path, char **err)
{
    Firmware *f = firmware_open(path, err);
    return f ? &f->image : NULL;
}

/* ---- against a chip ---- */
static bool in_memory(const Model *m, uint64_t addr, uint64_t size)
{
    for (uint32_t i = 0; i < m->nstates; i++) {
        const ChipState *s = &m->state[i];
        uint64_t bytes = (uint64_t)s->rows * (s->width / 8);
        if (s->init == INIT_IMAGE && addr >= s->base && addr - s->base <= bytes && size <= bytes - (addr - s->base)) return true;
    }
    return size == 0;
}

/* The register that starts as the entry address, or NULL. */
static const ChipState *entry_state(const Model *m)
{
    for (uint32_t i = 0; i < m->nstates; i++)
        if (m->state[i].init == INIT_ENTRY) return &m->state[i];
    return NULL;
}

bool firmware_fits(const Firmware *f, const Model *m, char **err)
{
    const ChipState *pc = entry_state(m);
    bool entry = !pc;
    if (pc && f->image.entry & mask64(pc->init_shift))
        return fail(err, "%s: the entry address %#llx is not aligned to %llu", f->path, (unsigned long long)f->image.entry, 1ull << pc->init_shift);
    for (uint32_t i = 0; i < f->nsegments; i++) {
        const Segment *s = &f->segment[i];
        if (!in_memory(m, s->addr, s->file_size) || !in_memory(m, s->run, s->run_size))
            return fail(err, "%s: the segment at %#llx (%#llx bytes) lies outside every memory of %s", f->path, (unsigned long long)s->run,
                        (unsigned long long)s->run_size, m->name);
        entry |= f->image.entry >= s->run && f->image.entry < s->run + s->run_size;
    }
    return entry || fail(err, "%s: the entry address %#llx lies in no segment", f->path, (unsigned long long)f->image.entry);
}
