/* safetensors.c: maps a safetensors file and checks every rule of the format before anyone reads a tensor:
 * header length and JSON, no duplicate names, known dtypes, sizes that equal shape times dtype, tensors that tile the
 * buffer without hole or overlap, nothing after the last one. Errors name the file and the tensor. */
#include "runtime.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const st_dtype_name[ST_DTYPES] = {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8",
                                              "U64", "U32", "U16", "U8",   "BOOL"};
static const uint8_t dtype_size[ST_DTYPES] = {8, 4, 2, 2, 8, 4, 2, 1, 8, 4, 2, 1, 1};
#define MAX_HEADER 100000000ull /* the format's own limit */

/* One non-negative integer; false for anything else. */
static bool json_u64(const json_t *j, uint64_t *out)
{
    if (!json_is_integer(j) || json_integer_value(j) < 0) return false;
    *out = (uint64_t)json_integer_value(j);
    return true;
}

static bool read_dtype(const json_t *j, StDtype *out)
{
    const char *s = json_string_value(j);
    for (int i = 0; s && i < ST_DTYPES; i++)
        if (strcmp(s, st_dtype_name[i]) == 0) {
            *out = (StDtype)i;
            return true;
        }
    return false;
}

/* The shape, and its size in bytes. */
static bool read_shape(const json_t *j, StTensor *t, uint64_t *bytes)
{
    if (!json_is_array(j) || json_array_size(j) > ST_MAX_DIMS) return false;
    t->ndim = (uint32_t)json_array_size(j);
    *bytes = dtype_size[t->dtype];
    for (uint32_t i = 0; i < t->ndim; i++)
        if (!json_u64(json_array_get(j, i), &t->shape[i]) || __builtin_mul_overflow(*bytes, t->shape[i], bytes)) return false;
    return true;
}

static bool read_tensor(const StFile *f, const char *name, const json_t *j, StTensor *t, uint64_t buffer, uint64_t *begin, char **err)
{
    const json_t *off = json_object_get(j, "data_offsets");
    uint64_t end, bytes;
    t->name = name;
    if (!json_is_object(j) || json_object_size(j) != 3)
        return fail(err, "%s: tensor \"%s\": expected an object with dtype, shape and data_offsets", f->path, name);
    if (!read_dtype(json_object_get(j, "dtype"), &t->dtype)) return fail(err, "%s: tensor \"%s\": unknown dtype", f->path, name);
    if (!read_shape(json_object_get(j, "shape"), t, &bytes))
        return fail(err, "%s: tensor \"%s\": the shape is not a list of at most %d sizes", f->path, name, ST_MAX_DIMS);
    if (json_array_size(off) != 2 || !json_u64(json_array_get(off, 0), begin) || !json_u64(json_array_get(off, 1), &end))
        return fail(err, "%s: tensor \"%s\": data_offsets are not two non-negative integers", f->path, name);
    if (*begin > end || end > buffer)
        return fail(err, "%s: tensor \"%s\": data_offsets [%llu, %llu] lie outside the buffer of %llu bytes", f->path, name,
                    (unsigned long long)*begin, (unsigned long long)end, (unsigned long long)buffer);
    t->size = end - *begin;
    if (t->size != bytes)
        return fail(err, "%s: tensor \"%s\": %llu bytes of data, but the shape needs %llu", f->path, name,
                    (unsigned long long)t->size, (unsigned long long)bytes);
    return true;
}

static int by_place(const void *a, const void *b)
{
    const StTensor *s = a, *t = b;
    if (s->data != t->data) return s->data < t->data ? -1 : 1;
    return s->size < t->size ? -1 : s->size > t->size;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const StTensor *)a)->name, ((const StTensor *)b)->name);
}

/* The tensors, in order of place, must tile the buffer exactly. */
static bool check_tiling(const StFile *f, const uint8_t *buffer, uint64_t size, char **err)
{
    const uint8_t *at = buffer;
    for (uint32_t i = 0; i < f->n; i++) {
        const StTensor *t = &f->tensor[i];
        if (t->data < at) return fail(err, "%s: tensor \"%s\" overlaps the one before it", f->path, t->name);
        if (t->data > at) return fail(err, "%s: a hole of %td bytes before tensor \"%s\"", f->path, t->data - at, t->name);
        at += t->size;
    }
    if (at != buffer + size) return fail(err, "%s: %td bytes after the last tensor", f->path, buffer + size - at);
    return true;
}

static bool check_metadata(const StFile *f, json_t *meta, char **err)
{
    const char *key;
    json_t *value;
    if (!json_is_object(meta)) return fail(err, "%s: __metadata__ is not an object", f->path);
    json_object_foreach(meta, key, value)
        if (!json_is_string(value)) return fail(err, "%s: __metadata__: \"%s\" is not a string", f->path, key);
    return true;
}

static bool read_header(StFile *f, json_t *header, const uint8_t *buffer, uint64_t size, char **err)
{
    const char *key;
    json_t *value;
    f->tensor = pool_array(f->pool, json_object_size(header), sizeof *f->tensor);
    json_object_foreach(header, key, value) {
        uint64_t begin = 0;
        StTensor *t = &f->tensor[f->n];
        if (strcmp(key, "__metadata__") == 0) {
            if (!check_metadata(f, value, err)) return false;
            f->metadata = json_incref(value);
            continue;
        }
        if (!read_tensor(f, pool_str(f->pool, key), value, t, size, &begin, err)) return false;
        t->data = buffer + begin;
        f->n++;
    }
    qsort(f->tensor, f->n, sizeof *f->tensor, by_place);
    if (!check_tiling(f, buffer, size, err)) return false;
    qsort(f->tensor, f->n, sizeof *f->tensor, by_name);
    return true;
}

/* Header length and JSON text; the buffer is what follows. */
static bool read_file_header(StFile *f, const uint8_t *bytes, size_t size, char **err)
{
    uint64_t n = 0;
    if (size < 8) return fail(err, "%s: %zu bytes are too few for a safetensors file", f->path, size);
    for (int i = 7; i >= 0; i--) n = n << 8 | bytes[i];
    if (n > MAX_HEADER) return fail(err, "%s: not a safetensors file: header of %llu bytes (chips and checkpoints are such files)", f->path, (unsigned long long)n);
    if (n > size - 8)
        return fail(err, "%s: truncated: header of %llu bytes in a file of %zu", f->path, (unsigned long long)n, size);
    if (n < 2 || bytes[8] != '{') return fail(err, "%s: not a safetensors file: the header does not begin with '{'", f->path);
    json_error_t je;
    json_t *header = json_loadb((const char *)bytes + 8, n, JSON_REJECT_DUPLICATES, &je);
    if (!header) return fail(err, "%s: header, byte %d: %s", f->path, je.position, je.text);
    bool ok = json_is_object(header) ? read_header(f, header, bytes + 8 + n, size - 8 - n, err)
                                     : fail(err, "%s: the header is not an object", f->path);
    json_decref(header);
    return ok;
}

StFile *st_parse(const uint8_t *bytes, size_t size, const char *path, char **err)
{
    Pool *p = pool_new();
    StFile *f = pool_alloc(p, sizeof *f);
    f->pool = p;
    f->path = pool_str(p, path);
    if (read_file_header(f, bytes, size, err)) return f;
    st_close(f);
    return NULL;
}

StFile *st_open(const char *path, char **err)
{
    struct stat sb;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &sb) != 0) {
        fail(err, "%s: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        return NULL;
    }
    void *map = MAP_FAILED;
    if (!S_ISREG(sb.st_mode)) fail(err, "%s: not a regular file", path);
    else if (sb.st_size == 0) fail(err, "%s: the file is empty", path);
    else if ((map = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED) fail(err, "%s: %s", path, strerror(errno));
    close(fd);
    if (map == MAP_FAILED) return NULL;
    StFile *f = st_parse(map, (size_t)sb.st_size, path, err);
    if (!f) {
        munmap(map, (size_t)sb.st_size);
        return NULL;
    }
    f->map = map;
    f->map_size = (size_t)sb.st_size;
    return f;
}

void st_close(StFile *f)
{
    if (!f) return;
    if (f->map) munmap(f->map, f->map_size);
    json_decref(f->metadata);
    pool_free(f->pool);
}

const StTensor *st_find(const StFile *f, const char *name)
{
    StTensor key = {.name = name};
    return f->n ? bsearch(&key, f->tensor, f->n, sizeof key, by_name) : NULL;
}

const char *st_metadata(const StFile *f, const char *key)
{
    return json_string_value(json_object_get(f->metadata, key));
}

void st_read(const StTensor *t, uint64_t at, uint64_t n, float *out)
{
    const size_t size = dtype_size[t->dtype];
    for (uint64_t i = 0; i < n; i++) out[i] = st_number(t->data + (at + i) * size, t->dtype == ST_BF16);
}

void st_forget(const StTensor *t)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = ((uintptr_t)t->data + page - 1) / page * page, to = ((uintptr_t)t->data + t->size) / page * page;
    if (to > from) madvise((void *)from, to - from, MADV_DONTNEED);
}
