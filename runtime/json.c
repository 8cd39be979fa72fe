/* json.c: checked access to a manifest. Each function returns a good value or leaves through Reader.fail with a message
 * that names the file, the object and the key; so readers are written as straight lines. */
#include "runtime.h"
#include <jansson.h>
#include <stdarg.h>

void reader_fail(Reader *r, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fail(r->err, "%s: %s", r->path, text);
    longjmp(r->fail, 1);
}

static json_t *get(Reader *r, const json_t *o, const char *where, const char *key)
{
    json_t *j = json_object_get(o, key);
    if (!j) reader_fail(r, "%s: \"%s\" is missing", where, key);
    return j;
}

json_t *get_object(Reader *r, const json_t *o, const char *where, const char *key)
{
    json_t *j = get(r, o, where, key);
    if (!json_is_object(j)) reader_fail(r, "%s: \"%s\" is not an object", where, key);
    return j;
}

json_t *get_array(Reader *r, const json_t *o, const char *where, const char *key)
{
    json_t *j = get(r, o, where, key);
    if (!json_is_array(j)) reader_fail(r, "%s: \"%s\" is not a list", where, key);
    return j;
}

const char *get_string(Reader *r, const json_t *o, const char *where, const char *key)
{
    const char *s = json_string_value(get(r, o, where, key));
    if (!s) reader_fail(r, "%s: \"%s\" is not a string", where, key);
    return pool_str(r->pool, s);
}

static int64_t to_int(Reader *r, const json_t *j, const char *where, const char *key, int64_t min, int64_t max)
{
    if (!json_is_integer(j)) reader_fail(r, "%s: \"%s\" is not an integer", where, key);
    int64_t v = json_integer_value(j);
    if (v < min || v > max)
        reader_fail(r, "%s: \"%s\" is %lld, outside %lld..%lld", where, key, (long long)v, (long long)min, (long long)max);
    return v;
}

static float to_float(Reader *r, const json_t *j, const char *where, const char *key)
{
    if (!json_is_number(j)) reader_fail(r, "%s: \"%s\" is not a number", where, key);
    double v = json_number_value(j);
    float f = v >= -3.4028234663852886e38 && v <= 3.4028234663852886e38 ? (float)v : 0;
    if ((double)f != v) reader_fail(r, "%s: \"%s\" is %g, which is not a float32", where, key, v);
    return f;
}

int64_t get_int(Reader *r, const json_t *o, const char *where, const char *key, int64_t min, int64_t max)
{
    return to_int(r, get(r, o, where, key), where, key, min, max);
}

double get_number(Reader *r, const json_t *o, const char *where, const char *key)
{
    json_t *j = get(r, o, where, key);
    if (!json_is_number(j)) reader_fail(r, "%s: \"%s\" is not a number", where, key);
    return json_number_value(j);
}

float get_float(Reader *r, const json_t *o, const char *where, const char *key)
{
    return to_float(r, get(r, o, where, key), where, key);
}

bool get_bool(Reader *r, const json_t *o, const char *where, const char *key, bool absent)
{
    json_t *j = json_object_get(o, key);
    if (!j) return absent;
    if (!json_is_boolean(j)) reader_fail(r, "%s: \"%s\" is neither true nor false", where, key);
    return json_is_true(j);
}

int get_word(Reader *r, const json_t *o, const char *where, const char *key, const char *const *words, int n)
{
    const char *s = get_string(r, o, where, key);
    for (int i = 0; i < n; i++)
        if (strcmp(s, words[i]) == 0) return i;
    reader_fail(r, "%s: \"%s\" is \"%.40s\", which this version does not know", where, key, s);
}

int64_t item_int(Reader *r, const json_t *array, const char *where, const char *key, size_t i, int64_t min, int64_t max)
{
    return to_int(r, json_array_get(array, i), where, key, min, max);
}

float item_float(Reader *r, const json_t *array, const char *where, const char *key, size_t i)
{
    return to_float(r, json_array_get(array, i), where, key);
}

/* Values of 64 bits stand as a JSON integer: as a negative one when bit 63 is set. */
uint64_t json_to_u64(Reader *r, const json_t *j, const char *where, const char *key, unsigned width)
{
    if (!json_is_integer(j)) reader_fail(r, "%s: \"%s\" holds something that is not an integer", where, key);
    uint64_t v = (uint64_t)json_integer_value(j);
    if (v & ~mask64(width)) reader_fail(r, "%s: \"%s\" holds %#llx, more than %u bits", where, key, (unsigned long long)v, width);
    return v;
}
