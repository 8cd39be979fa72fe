/* main.c: the command line: one table of commands, one of options, and the parser that serves both. */
#include "../dsl/dsl.h"
#include "cli.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef enum { OPT_TEXT, OPT_NUMBER, OPT_FLAG, OPT_DEFINE } OptionKind;
typedef struct {
    const char *brief, *name; /* -t, --target; brief may be NULL */
    const char *value;        /* what the usage calls the value; a list "a|b" allows nothing else */
    OptionKind kind;
    size_t at;                /* in Args */
    const char *help;
} Option;

/* The order of the bits in Command.options. */
enum { O_TARGET, O_DTYPE, O_DEFINE, O_VOCAB, O_PAYLOAD, O_OUTPUT, O_QUIET, O_BACKEND, O_STEPS, O_TRACE, O_NETLIST, O_CHECK, O_STATS, O_AFTER, O_HF, O_FAMILY, O_SHARD, O_SAVE, O_LOAD, O_PROMPT, O_BATCH, O_SIGNATURE, O_NO_PROVE, O_OUT, O_FAULT, O_BASE, O_HIDDEN, O_AS, O_FIRST, O_GGUF, O_TOKENS, O_LOGITS, O_COUNT };
#define AT(field) offsetof(Args, field)
static const Option options[O_COUNT] = {
    [O_TARGET] = { "-t", "--target", "TARGET", OPT_TEXT, AT(target), "shape of the model (default native; `tapeout targets` lists them)" },
    [O_DTYPE] = { NULL, "--dtype", "f32|bf16", OPT_TEXT, AT(dtype), "type of the weights (default: the target's)" },
    [O_DEFINE] = { "-D", "--define", "NAME=VALUE", OPT_DEFINE, AT(defines), "value of a param of the source, written as in the language" },
    [O_VOCAB] = { NULL, "--vocab", "N", OPT_NUMBER, AT(vocab), "largest vocabulary (default: any)" },
    [O_PAYLOAD] = { NULL, "--payload", "N", OPT_NUMBER, AT(payload), "bits of a trace token's payload (default: chosen)" },
    [O_OUTPUT] = { "-o", "--output", "FILE", OPT_TEXT, AT(output), "where the result goes (default: NAME.chip here; graft: a folder, required)" },
    [O_QUIET] = { "-q", "--quiet", NULL, OPT_FLAG, AT(quiet), "no report" },
    [O_BACKEND] = { NULL, "--backend", "NAME", OPT_TEXT, AT(backend), "run: adaptive (default), sparse (the default with --check), dense, cuda, cuda-dense (a GPU), plan (no weights, exact integers); check and --batch: planes (default), sparse; --batch: cuda; DIR: dense (default), cuda-dense" },
    [O_STEPS] = { NULL, "--max-steps", "N", OPT_NUMBER, AT(max_steps), "stop after N steps of the machine (0: no limit)" },
    [O_TRACE] = { NULL, "--trace", "FILE", OPT_TEXT, AT(trace), "every token, one a line" },
    [O_NETLIST] = { NULL, "--netlist", NULL, OPT_FLAG, AT(netlist), "instead of a trace: all that the chip's netlist says, hundreds of tokens at a time" },
    [O_CHECK] = { NULL, "--check", NULL, OPT_FLAG, AT(check), "run the netlist beside the chip and compare every token" },
    [O_STATS] = { NULL, "--stats", NULL, OPT_FLAG, AT(stats), "counts and speed, to stderr" },
    [O_AFTER] = { NULL, "--after", "tree|netlist|optimized|plan", OPT_TEXT, AT(after), "which level to print (required)" },
    [O_HF] = { NULL, "--hf", "DIR", OPT_TEXT, AT(hf), "a folder that stock transformers load" },
    [O_FAMILY] = { NULL, "--family", "NAME", OPT_TEXT, AT(family), "qwen3_5 (default), qwen3_next, qwen3_5_moe, olmo_hybrid, gated_deltanet or kimi_linear" },
    [O_SHARD] = { NULL, "--shard", "BYTES", OPT_NUMBER, AT(shard), "size of a weight file at most (default 5 GB)" },
    [O_SAVE] = { NULL, "--save-state", "FILE", OPT_TEXT, AT(save), "what the chip has in mind when the run stops" },
    [O_LOAD] = { NULL, "--load-state", "FILE", OPT_TEXT, AT(load), "go on from such a file, without firmware" },
    [O_NO_PROVE] = { NULL, "--no-prove", NULL, OPT_FLAG, AT(no_prove), "write the chip without the proof that it is exact" },
    [O_SIGNATURE] = { NULL, "--signature", "FILE", OPT_TEXT, AT(signature), "memory from begin_signature to end_signature when the program exits" },
    [O_OUT] = { NULL, "--out", "DIR", OPT_TEXT, AT(out), "a folder for the kit (required)" },
    [O_FAULT] = { NULL, "--fault", "state-bf16|l2-mean|drop-state|drop-conv", OPT_TEXT, AT(fault), "compute as a faulty runtime does (only --backend dense): see conform" },
    [O_BATCH] = { NULL, "--batch", "LIST", OPT_TEXT, AT(batch), "many machines at once: a firmware a line, after tabs the files for its output and with its input" },
    [O_PROMPT] = { NULL, "--prompt", NULL, OPT_FLAG, AT(prompt), "load the program through tokens, as in a stock model" },
    [O_BASE] = { NULL, "--base", "DIR", OPT_TEXT, AT(base), "for `graft`: the shape and the type of the model in this folder, with room beside it" },
    [O_HIDDEN] = { NULL, "--hidden", "N", OPT_NUMBER, AT(hidden), "with --base: hidden size of both together (default: the smallest; 4 times the base's rounds nothing)" },
    [O_GGUF] = { NULL, "--gguf", "FILE", OPT_TEXT, AT(gguf), "a file that llama.cpp loads (a chip of target native64)" },
    [O_AS] = { NULL, "--as", "TOKEN", OPT_TEXT, AT(as), "the base model reads chip tokens as this one of its own (default: its end of text)" },
    [O_TOKENS] = { NULL, "--max-tokens", "N", OPT_NUMBER, AT(max_tokens), "DIR: stop after N tokens (0: at a token that ends generation)" },
    [O_LOGITS] = { NULL, "--logits", "FILE", OPT_TEXT, AT(logits), "DIR: the logits after every token that is fed, float32, a row of the vocabulary each" },
    [O_FIRST] = { NULL, "--first", "N", OPT_NUMBER, AT(first), "the id of the chip's token 0 (in a grafted model: its vocabulary before)" },
};

typedef struct {
    const char *name;
    Command *run;
    unsigned min, max;     /* arguments that are no options */
    const char *arguments, *help;
    uint32_t options;
} CommandRow;
#define O(x) (1u << O_##x)
static const CommandRow commands[] = {
    { "build", cmd_build, 1, 1, "SPEC.ckt", "compile a machine into a chip file, prove it exact and print the report",
      O(TARGET) | O(DTYPE) | O(DEFINE) | O(VOCAB) | O(PAYLOAD) | O(OUTPUT) | O(QUIET) | O(NO_PROVE) | O(BASE) | O(HIDDEN) },
    { "run", cmd_run, 1, 2, "CHIP [FIRMWARE.elf] | DIR IDS", "run a chip: console on stdout, the program's exit status is ours; or a checkpoint folder: token ids (a file; -: stdin) in, token ids out",
      O(BACKEND) | O(STEPS) | O(TRACE) | O(CHECK) | O(STATS) | O(SAVE) | O(LOAD) | O(PROMPT) | O(BATCH) | O(SIGNATURE) | O(FAULT) | O(TOKENS) | O(LOGITS) },
    { "sim", cmd_sim, 1, 2, "SPEC.ckt [FIRMWARE.elf]", "run the netlist itself: no weights", O(DEFINE) | O(STEPS) | O(STATS) },
    { "test", cmd_test, 1, 1, "SPEC.ckt", "run the source's own test blocks", O(DEFINE) },
    { "dump", cmd_dump, 1, 1, "SPEC.ckt", "print a level of the compilation as text", O(AFTER) | O(DEFINE) | O(TARGET) | O(DTYPE) | O(VOCAB) | O(PAYLOAD) },
    { "info", cmd_info, 1, 1, "CHIP", "what a chip consists of: layers, token kinds, state map", 0 },
    { "prove", cmd_prove, 1, 1, "CHIP", "prove from the weights alone that every decision of every run is exact", 0 },
    { "prompt", cmd_prompt, 1, 2, "CHIP [FIRMWARE.elf]", "the tokens that load a program; a stock model's answer to them is the run", O(FIRST) },
    { "check", cmd_check, 1, 3, "CHIP [FIRMWARE.elf] [TRACE]", "check that a chip says what a token trace, or its own netlist, says",
      O(NETLIST) | O(STEPS) | O(BACKEND) | O(STATS) },
    { "export", cmd_export, 1, 1, "CHIP", "a stock checkpoint: config, weights, tokenizer", O(HF) | O(FAMILY) | O(SHARD) | O(GGUF) },
    { "conform", cmd_conform, 0, 0, "", "a kit that tells whether another runtime computes exactly, and what it does wrong", O(OUT) },
    { "graft", cmd_graft, 2, 2, "BASE CHIP", "a stock checkpoint of the chip's layers in front of a Qwen3.5 base model", O(OUTPUT) | O(AS) | O(SHARD) | O(QUIET) },
    { "targets", cmd_targets, 0, 0, "", "the model shapes that `build` knows", 0 },
};
enum { NCOMMANDS = sizeof commands / sizeof *commands };

/* ---- messages ---- */
static void say(const char *fmt, va_list ap)
{
    fflush(stdout);
    fputs("tapeout: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

int usage_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
    return 2;
}

int input_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
    return 1;
}

int circuit_error(const char *file, Span where, const char *what)
{
    if (!where.file) return input_error("%s: %s", file, what);
    error_at(where, "%s", what);
    return 1;
}

static void print_usage(FILE *out)
{
    fputs("usage: tapeout COMMAND ...\n\n", out);
    for (const CommandRow *c = commands; c < commands + NCOMMANDS; c++)
        fprintf(out, "  %-33s %s\n", xfmt("%s %s", c->name, c->arguments), c->help);
    fputs("\n`tapeout COMMAND --help` lists the options of a command.\n", out);
}

static void print_help(const CommandRow *c)
{
    printf("usage: tapeout %s%s%s%s\n\n%s\n", c->name, c->options ? " [OPTION]..." : "", *c->arguments ? " " : "", c->arguments, c->help);
    if (c->options) putchar('\n');
    for (unsigned i = 0; i < O_COUNT; i++) {
        const Option *o = &options[i];
        if (!(c->options >> i & 1)) continue;
        printf("  %-36s %s\n", xfmt("%s%s%s%s%s", o->brief ? o->brief : "", o->brief ? ", " : "", o->name, o->value ? " " : "", o->value ? o->value : ""),
               o->help);
    }
}

/* ---- options ---- */
static const Option *option_find(const CommandRow *c, const char *s, size_t n)
{
    for (unsigned i = 0; i < O_COUNT; i++) {
        const Option *o = &options[i];
        if (!(c->options >> i & 1)) continue;
        if (strlen(o->name) == n && !memcmp(o->name, s, n)) return o;
        if (o->brief && n == 2 && !memcmp(o->brief, s, 2)) return o;
    }
    return NULL;
}

static bool allowed(const char *choices, const char *value)
{
    size_t n = strlen(value);
    if (!strchr(choices, '|')) return true;
    for (const char *p = choices; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL)
        if (!strncmp(p, value, n) && (p[n] == '|' || !p[n])) return true;
    return false;
}

static int set_number(const Option *o, Args *a, const char *value)
{
    char *end;
    errno = 0;
    uint64_t n = strtoull(value, &end, 0);
    if (*value < '0' || *value > '9' || *end || errno) return usage_error("%s: found \"%s\", expected a number", o->name, value);
    *(uint64_t *)((char *)a + o->at) = n;
    return 0;
}

static int set_define(const Option *o, Args *a, const char *value)
{
    const char *eq = strchr(value, '=');
    if (!eq || eq == value) return usage_error("%s: found \"%s\", expected NAME=VALUE", o->name, value);
    vec_push(&a->defines, ((Define){ xfmt("%.*s", (int)(eq - value), value), eq + 1 }));
    return 0;
}

static int set_text(const Option *o, Args *a, const char *value)
{
    if (!allowed(o->value, value)) return usage_error("%s: found \"%s\", expected %s", o->name, value, o->value);
    *(const char **)((char *)a + o->at) = value;
    return 0;
}

static int set_option(const Option *o, Args *a, const char *value)
{
    static int (*const set[])(const Option *, Args *, const char *) = { [OPT_TEXT] = set_text, [OPT_NUMBER] = set_number, [OPT_DEFINE] = set_define };
    if (o->kind != OPT_FLAG) return set[o->kind](o, a, value);
    *(bool *)((char *)a + o->at) = true;
    return 0;
}

/* One option at argv[*i], with its value: --name VALUE, --name=VALUE, -x VALUE or -xVALUE. */
static int parse_option(const CommandRow *c, Args *a, char **argv, int argc, int *i)
{
    const char *s = argv[*i], *eq = strchr(s, '=');
    bool full = s[1] == '-';
    size_t n = !full ? 2 : eq ? (size_t)(eq - s) : strlen(s);
    const Option *o = option_find(c, s, n);
    const char *value = full ? (eq ? eq + 1 : NULL) : s[2] ? s + 2 : NULL;
    if (!o) return usage_error("%s: unknown option \"%s\" (tapeout %s --help lists them)", c->name, s, c->name);
    if (o->kind == OPT_FLAG && value) return usage_error("%s takes no value", o->name);
    if (o->kind != OPT_FLAG && !value && *i + 1 == argc) return usage_error("%s: the value is missing, expected %s", o->name, o->value);
    if (o->kind != OPT_FLAG && !value) value = argv[++*i];
    return set_option(o, a, value);
}

static int run_command(const CommandRow *c, int argc, char **argv)
{
    Args a = { 0 };
    unsigned n = 0;
    bool plain = false; /* "--" was seen */
    for (int i = 0; i < argc; i++) {
        const char *s = argv[i];
        if (!plain && (!strcmp(s, "-h") || !strcmp(s, "--help"))) return print_help(c), 0;
        if (!plain && !strcmp(s, "--")) {
            plain = true;
        } else if (!plain && s[0] == '-' && s[1]) {
            int bad = parse_option(c, &a, argv, argc, &i);
            if (bad) return bad;
        } else {
            if (n == c->max) return usage_error("%s: one argument too many: \"%s\" (usage: tapeout %s %s)", c->name, s, c->name, c->arguments);
            a.input[n++] = s;
        }
    }
    if (n < c->min) return usage_error("%s: an argument is missing (usage: tapeout %s %s)", c->name, c->name, c->arguments);
    return c->run(&a);
}

/* ---- shared by commands ---- */
Design *load_design(const Args *a, bool machine)
{
    Design *d = design_load(a->input[0], a->defines.data, a->defines.n);
    if (!d || !machine || d->circuit->states.n || d->circuit->emits.n) return d;
    input_error(d->machine ? "%s: the machine does nothing" : "%s: there is no machine in it", a->input[0]);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 2) return print_usage(stderr), 2;
    if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) return print_usage(stdout), 0;
    for (const CommandRow *c = commands; c < commands + NCOMMANDS; c++) {
        if (strcmp(c->name, argv[1])) continue;
        int status = run_command(c, argc - 2, argv + 2);
        if (fflush(stdout) || ferror(stdout)) return input_error("stdout: cannot be written"); /* a full disk must not look like success */
        return status;
    }
    return usage_error("unknown command \"%s\" (tapeout --help lists them)", argv[1]);
}
