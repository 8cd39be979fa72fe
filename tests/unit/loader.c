/* unit/loader.c: every rule of the chip loader. A good chip is changed in one place at a time, in its JSON or its bytes, and
 * must be refused with a message that names what is wrong. */
#include "chipgen.h"

static int failures;

static Bytes good_chip(void)
{
    Gen *g = xalloc(sizeof *g);
    *g = (Gen){.hidden = 64, .intermediate = 4, .layers = 2, .nk = 1, .nv = 2, .dk = 4, .dv = 8, .vocab = 64, .max_width = 4, .nkinds = 2, .pilot = 8};
    g->kinds = "[{\"name\":\"A\",\"base\":0,\"width\":4,\"role\":\"trace\",\"last\":true},{\"name\":\"B\",\"base\":16,\"width\":2,\"role\":\"exit\"}]";
    g->states = "[{\"name\":\"m\",\"kind\":\"mem\",\"width\":8,\"rows\":8,\"lane\":8,\"base\":256,\"init\":\"image\",\"row_init\":[],\"init_shift\":0,"
                "\"hard\":[7,1],\"copies\":[[{\"layer\":0,\"head\":0,\"row0\":0,\"nrows\":7,\"group_rows\":4,\"group_heads\":1,"
                "\"bits\":[[0,0],[0,1],[0,2],[0,3],[0,4],[-1,-1],[-1,-1],[-1,-1]],\"pilots\":[[0,6,1024]],\"one\":128.0,"
                "\"count\":{\"head\":0,\"lane\":5,\"low\":5,\"bits\":2,\"unit\":128.0}}]]}]";
    gen_begin(g);
    gen_set(g, "embed.bit", 0, 0, 1);
    return gen_finish(g);
}

static uint64_t header_size(Bytes b)
{
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--) n = n << 8 | b.data[i];
    return n;
}

static void expect_refused(Bytes b, const char *what, const char *why)
{
    char *err = NULL;
    Model *m = model_parse(b.data, b.n, "x.chip", &err);
    if (!m && strstr(err, why) && strncmp(err, "x.chip: ", 8) == 0) {
        free(err);
        return;
    }
    failures++;
    fprintf(stderr, "loader: %s: expected \"%s\", got %s\n", what, why, m ? "a model" : err);
    free(err);
    model_close(m);
}

/* The good chip with the first `from` in its header replaced by `to`, the header length put right. */
static void replaced(const char *from, const char *to, const char *why)
{
    Bytes b = good_chip();
    uint64_t n = header_size(b);
    char *text = memcpy(xrealloc(NULL, n + 1), b.data + 8, n);
    text[n] = 0;
    char *at = strstr(text, from);
    if (!at) die("the good chip has no %s", from);
    size_t lf = strlen(from), lt = strlen(to), size = b.n - lf + lt, head = (size_t)(at - text);
    Bytes c = {xrealloc(NULL, size), size};
    uint64_t m = n - lf + lt;
    for (int i = 0; i < 8; i++) c.data[i] = (uint8_t)(m >> 8 * i);
    memcpy(c.data + 8, text, head);
    memcpy(c.data + 8 + head, to, lt);
    memcpy(c.data + 8 + head + lt, b.data + 8 + head + lf, b.n - 8 - head - lf);
    expect_refused(c, from, why);
    free(text);
    free(b.data);
    free(c.data);
}

/* A double quote of the manifest, which is a string inside the header. */
#define Q "\\\""
static const struct {
    const char *from, *to, *why;
} rules[] = {
    /* safetensors */
    {"{\"__metadata__\"", "[\"__metadata__\"", "does not begin with '{'"},
    {"{\"__metadata__\":", "{\"__metadata__\" ", "header, byte"},
    {"\"dtype\":\"I32\"", "\"dtype\":\"I33\"", "unknown dtype"},
    {"\"dtype\":\"I32\"", "\"dtype\":\"I64\"", "bytes of data, but the shape needs"},
    {"\"shape\":[2]", "\"shape\":[-2]", "the shape is not a list"},
    {"\"shape\":[2]", "\"shape\":[1.5]", "the shape is not a list"},
    {"\"shape\":[2]", "\"shape\":[9223372036854775807,9223372036854775807]", "the shape is not a list"},
    {"\"data_offsets\":[0,", "\"data_offsets\":[-1,", "not two non-negative integers"},
    {"\"data_offsets\":[0,", "\"data_offsets\":[999999,", "outside the buffer"},
    {"\"dtype\":\"I32\",", "\"dtype\":\"I32\",\"x\":1,", "expected an object with dtype, shape and data_offsets"},
    {"\"embed.bit.rows\"", "\"embed.bit.cols\"", "duplicate"},
    {"\"format\":\"tapeout-chip\"", "\"format\":1", "is not a string"},
    {"\"format\":\"tapeout-chip\"", "\"format\":\"pt\"", "not a chip"},
    {"\"embed.bit.rows\"", "\"embed.bin.rows\"", "one of rows, cols and values is missing"},
    {"\"embed.bit.values\"", "\"embed.bin.values\"", "one of rows, cols and values is missing"},
    /* manifest */
    {Q "version" Q ":1", Q "version" Q ":2", "\"version\" is 2"},
    {Q "version" Q ":1", Q "version" Q ":true", "\"version\" is not an integer"},
    {Q "version" Q ":1,", "", "\"version\" is missing"},
    {Q "family" Q ":" Q "qwen3_5", Q "family" Q ":" Q "rwkv", "\"family\" is \"rwkv\""},
    {Q "dtype" Q ":" Q "float32", Q "dtype" Q ":" Q "float16", "\"dtype\" is \"float16\""},
    {Q "dtype" Q ":" Q "float32", Q "dtype" Q ":" Q "bfloat16", "expected BF16"},
    {Q "geometry" Q ":{", Q "geometry" Q ":[],{", "manifest, byte"},
    {Q "hidden_size" Q ":64", Q "hidden_size" Q ":0", "\"hidden_size\" is 0"},
    {Q "hidden_size" Q ":64", Q "hidden_size" Q ":65", "the shape is not what the geometry says"},
    {Q "num_hidden_layers" Q ":2", Q "num_hidden_layers" Q ":3", "2 layer_types for 3 layers"},
    {"linear_attention", "sliding_attention", "layer 0 has an unknown type"},
    {Q "linear_num_value_heads" Q ":2", Q "linear_num_value_heads" Q ":1", "the shape is not what the geometry says"},
    {Q "linear_num_key_heads" Q ":1", Q "linear_num_key_heads" Q ":3", "no multiple of 3 key heads"},
    {Q "linear_value_head_dim" Q ":8", Q "linear_value_head_dim" Q ":16777216", "the shape is not what the geometry says"},
    {Q "linear_key_head_dim" Q ":4", Q "linear_key_head_dim" Q ":16777217", "outside 1..16777216"},
    {Q "rms_norm_eps" Q ":1e-6", Q "rms_norm_eps" Q ":0", "rms_norm_eps is not positive"},
    {Q "partial_rotary_factor" Q ":0.25", Q "partial_rotary_factor" Q ":2", "partial_rotary_factor"},
    {Q "vocab_size" Q ":64", Q "vocab_size" Q ":17", "above vocab_size"},
    {Q "fill" Q ":0", Q "fill" Q ":1e99", "not a float32"},
    {Q "fill" Q ":0", Q "fall" Q ":0", "\"fill\" is missing"},
    {Q "log2_scale" Q ":20", Q "log2_scale" Q ":200", "\"log2_scale\" is 200"},
    {Q "channels" Q ":[63]", Q "channels" Q ":[64]", "\"channels\" is 64"},
    {Q "channels" Q ":[63]", Q "channels" Q ":[63,62]", "do not match"},
    {Q "base" Q ":16", Q "base" Q ":17", "not where the one before it ends"},
    {Q "width" Q ":4", Q "width" Q ":25", "\"width\" is 25"},
    {Q "role" Q ":" Q "exit", Q "role" Q ":" Q "quit", "\"role\" is \"quit\""},
    {Q "last" Q ":true", Q "last" Q ":true," Q "code" Q ":-1", "\"code\" is -1"},
    {Q "last" Q ":true", Q "last" Q ":1", "neither true nor false"},
    {Q "start" Q ":0", Q "start" Q ":20", "\"start\" is 20"},
    /* state map */
    {Q "kind" Q ":" Q "mem", Q "kind" Q ":" Q "rom", "\"kind\" is \"rom\""},
    {Q "rows" Q ":8", Q "rows" Q ":9", "a copy holds 8 of 9 rows"},
    {Q "hard" Q ":[7,1],", "", "a copy holds 7 of 8 rows"},
    {Q "hard" Q ":[7,1]", Q "hard" Q ":[8,1]", "\"hard\" is 8"},
    {Q "hard" Q ":[7,1]", Q "hard" Q ":[7,256]", "more than 8 bits"},
    {Q "layer" Q ":0", Q "layer" Q ":1", "layer 1 has no recurrent state"},
    {Q "head" Q ":0", Q "head" Q ":1", "do not fit in 2 heads"},
    {Q "row0" Q ":0", Q "row0" Q ":1", "a piece begins at row 1, expected 0"},
    {Q "group_rows" Q ":4", Q "group_rows" Q ":5", "\"group_rows\" is 5"},
    {Q "group_heads" Q ":1", Q "group_heads" Q ":2", "do not fit in 2 heads"},
    {"[[0,0],[0,1],", "[[0,0],", "a piece places 7 bits of 8"},
    {"[[0,0],[0,1],", "[[0,0],[0,8],", "cell [0, 8] is outside"},
    {"[[0,0],[0,1],", "[[0,0],[1,1],", "cell [1, 1] is outside"},
    {"[[0,0],[0,1],", "[[0,0],[-2,1],", "cell [-2, 1] is outside"},
    {"[[0,0],[0,1],", "[[0,0],[0],", "expected a list of 2"},
    {"[[0,6,1024]]", "[[0,6]]", "expected a list of 3"},
    {Q "one" Q ":128.0", Q "one" Q ":0", "the code for 1 is 0"},
    {Q "low" Q ":5", Q "low" Q ":4", "is both a cell and counted"},
    {Q "low" Q ":5", Q "low" Q ":8", "\"low\" is 8"},
    {Q "unit" Q ":128.0", Q "unit" Q ":0", "a count of 2 bits of unit 0"},
    {Q "init" Q ":" Q "image", Q "init" Q ":" Q "ones", "\"init\" is \"ones\""},
    {Q "base" Q ":256", Q "base" Q ":-1", "wraps around"},
    {Q "row_init" Q ":[]", Q "row_init" Q ":[1,2,3,4,5,6,7,8,9]", "9 initial rows for 8"},
    {Q "row_init" Q ":[]", Q "row_init" Q ":[256]", "more than 8 bits"},
};

static const uint8_t *data_of(Bytes b, const char *name, uint64_t *size)
{
    StFile *f = st_parse(b.data, b.n, "x.chip", NULL);
    const StTensor *t = st_find(f, name);
    const uint8_t *data = t->data;
    *size = t->size;
    st_close(f);
    return data;
}

/* Element k of an index or value array set to the given 32 bits. */
static void patched(const char *name, uint32_t k, uint32_t bits, const char *why)
{
    Bytes b = good_chip();
    uint64_t size;
    const uint8_t *data = data_of(b, name, &size);
    memcpy(b.data + (data - b.data) + 4 * k, &bits, 4);
    expect_refused(b, name, why);
    free(b.data);
}

/* Cut anywhere, or with bytes added, the file is refused. */
static void test_sizes(void)
{
    Bytes b = good_chip();
    for (size_t n = 0; n < b.n; n += n < 64 ? 1 : b.n / 97) {
        Bytes cut = {memcpy(xrealloc(NULL, n + 1), b.data, n), n};
        char *err = NULL;
        Model *m = model_parse(cut.data, n, "x.chip", &err);
        if (m || !err) failures++, fprintf(stderr, "loader: cut to %zu of %zu bytes it is accepted\n", n, b.n);
        model_close(m);
        free(err);
        free(cut.data);
    }
    Bytes more = {xrealloc(NULL, b.n + 4), b.n + 4};
    memcpy(more.data, b.data, b.n);
    memset(more.data + b.n, 0, 4);
    expect_refused(more, "four bytes more", "4 bytes after the last tensor");
    more.data[7] = 0x7f;
    expect_refused(more, "huge header", "not a safetensors file: header of");
    free(more.data);
    free(b.data);
}

static void test_good(void)
{
    char *err = NULL;
    Bytes b = good_chip();
    Model *m = model_parse(b.data, b.n, "x.chip", &err);
    if (!m) die("the good chip is refused: %s", err);
    if (!model_state(m, "m") || model_state(m, "n") || model_kind(m, 15) != &m->kind[0] || model_kind(m, 16) != &m->kind[1] || model_kind(m, 20))
        failures++, fprintf(stderr, "loader: look-ups go wrong\n");
    model_close(m);
    free(b.data);
}

int main(void)
{
    test_good();
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) replaced(rules[i].from, rules[i].to, rules[i].why);
    patched("model.layers.0.linear_attn.conv1d.weight.rows", 1, 0x7fffffff, "lies outside");
    patched("model.layers.0.linear_attn.conv1d.weight.rows", 1, 0xffffffff, "lies outside");
    patched("model.layers.0.linear_attn.conv1d.weight.cols", 1, 4, "lies outside");
    patched("model.layers.0.linear_attn.conv1d.weight.rows", 1, 0, "is not after the one before it");
    patched("model.layers.0.linear_attn.conv1d.weight.values", 0, 0x7f800000, "is not finite");
    test_sizes();
    return failures != 0;
}
