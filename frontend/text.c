/* text.c: the netlist as text, one line per thing, in this order:
 *
 *   circuit NAME
 *   state reg|file|mem|host NAME WIDTH[ROWS] [lane N] [base N] [INIT [>> N]] [hard ROW = VALUE] [home H] [forward] [hidden] [@PLACE]
 *       INIT: rows { N ... } | image | entry | symbol "NAME" [N]
 *   %1 : WIDTH = OP OPERANDS [@PLACE]     operands: %N; a number (const, token; last for slice); a state name (first for read)
 *   write STATE en=%N [index=%N] data=%N [lanes=%N] [@PLACE]
 *   emit output|exit|fault|take "NAME" ["MESSAGE"] en=%N [payload=%N] [state=NAME] [@PLACE]
 *   retire %N
 *
 * PLACE is [FILE/]LINE:COL[+LEN], FILE 1 where it is missing. Names that are not identifiers are quoted. `//` starts a
 * comment. Values are numbered from 1 without holes. circuit_parse(circuit_print(c)) prints the same again. */
#include "ir.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_name[] = {"reg", "file", "mem", "host", NULL};
static const char *const home_name[] = {"auto", "deltanet", "attention", "weights", NULL};
static const char *const role_names[] = {"output", "exit", "fault", "take", NULL};
static const char *const init_name[] = {"zero", "rows", "image", "entry", "symbol", NULL};

/* ---- printing ---- */

static void print_string(FILE *out, const char *s)
{
    fputc('"', out);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') fprintf(out, "\\%c", *s);
        else if (*s == '\n') fputs("\\n", out);
        else if ((unsigned char)*s < 32 || *s == 127) fprintf(out, "\\x%02x", (unsigned char)*s);
        else fputc(*s, out);
    }
    fputc('"', out);
}

static bool is_word_start(char ch) { return isalpha((unsigned char)ch) || ch == '_'; }
static bool is_word(char ch) { return isalnum((unsigned char)ch) || ch == '_' || ch == '.' || ch == '$'; }

static void print_name(FILE *out, const char *s)
{
    bool plain = is_word_start(*s);
    for (const char *p = s; *p; p++) plain = plain && is_word(*p);
    if (plain) fputs(s, out);
    else print_string(out, s);
}

static void print_place(FILE *out, Span s)
{
    if (s.file) {
        fputs(" @", out);
        if (s.file != 1) fprintf(out, "%u/", s.file);
        fprintf(out, "%u:%u", s.line, s.col);
        if (s.len) fprintf(out, "+%u", s.len);
    }
    fputc('\n', out);
}

static void print_init(const State *s, FILE *out)
{
    if (s->init != INIT_ZERO) fprintf(out, " %s", init_name[s->init]);
    if (s->init == INIT_SYMBOL) {
        fputc(' ', out);
        print_string(out, s->symbol);
        if (s->nrow_init) fprintf(out, " 0x%" PRIx64, s->row_init[0]);
    }
    if (s->init == INIT_ROWS) {
        fputs(" {", out);
        for (uint32_t i = 0; i < s->nrow_init; i++) fprintf(out, " 0x%" PRIx64, s->row_init[i]);
        fputs(" }", out);
    }
    if (s->init_shift) fprintf(out, " >> %u", s->init_shift);
}

static void print_state(const State *s, FILE *out)
{
    fprintf(out, "state %s ", kind_name[s->kind]);
    print_name(out, s->name);
    fprintf(out, " %u", s->width);
    if (s->rows != 1) fprintf(out, "[%u]", s->rows);
    if (s->lane != s->width) fprintf(out, " lane %u", s->lane);
    if (s->base) fprintf(out, " base 0x%" PRIx64, s->base);
    print_init(s, out);
    if (s->has_hard) fprintf(out, " hard %u = 0x%" PRIx64, s->hard_row, s->hard_value);
    if (s->home != HOME_AUTO) fprintf(out, " home %s", home_name[s->home]);
    if (s->forward) fputs(" forward", out);
    if (s->hidden) fputs(" hidden", out);
    print_place(out, s->span);
}

static void print_op(const Circuit *c, Ref r, FILE *out)
{
    const Op *op = op_at(c, r);
    fprintf(out, "%%%u : %u = %s", r, op->width, op_name[op->kind]);
    const char *sep = " ";
    if (op->kind == OP_CONST) fprintf(out, " 0x%" PRIx64, op->imm);
    if (op->kind == OP_TOKEN) fprintf(out, " %" PRIu64, op->imm);
    if (op->kind == OP_READ) {
        fputc(' ', out);
        print_name(out, c->states.data[op->imm].name);
        sep = ", ";
    }
    for (uint32_t i = 0; i < op->nargs; i++, sep = ", ") fprintf(out, "%s%%%u", sep, arg_at(c, r, i));
    if (op->kind == OP_SLICE) fprintf(out, ", %" PRIu64, op->imm);
    print_place(out, op->span);
}

static void print_field(FILE *out, const char *name, Ref r)
{
    if (r) fprintf(out, " %s=%%%u", name, r);
}

static void print_write(const Circuit *c, const Write *w, FILE *out)
{
    fputs("write ", out);
    print_name(out, c->states.data[w->state].name);
    print_field(out, "en", w->en);
    print_field(out, "index", w->index);
    print_field(out, "data", w->data);
    print_field(out, "lanes", w->lanes);
    print_place(out, w->span);
}

static void print_emit(const Circuit *c, const Emit *e, FILE *out)
{
    fprintf(out, "emit %s ", role_names[e->role]);
    print_string(out, e->name);
    if (e->message) {
        fputc(' ', out);
        print_string(out, e->message);
    }
    print_field(out, "en", e->en);
    print_field(out, "payload", e->payload);
    if (e->role == EMIT_TAKE) {
        fputs(" state=", out);
        print_name(out, c->states.data[e->state].name);
    }
    print_place(out, e->span);
}

void circuit_print(const Circuit *c, FILE *out)
{
    fputs("circuit ", out);
    print_name(out, c->name);
    fputc('\n', out);
    for (uint32_t i = 0; i < c->states.n; i++) print_state(&c->states.data[i], out);
    for (Ref r = 1; r < c->ops.n; r++) print_op(c, r, out);
    for (uint32_t i = 0; i < c->writes.n; i++) print_write(c, &c->writes.data[i], out);
    for (uint32_t i = 0; i < c->emits.n; i++) print_emit(c, &c->emits.data[i], out);
    if (c->retire) fprintf(out, "retire %%%u\n", c->retire);
}

/* ---- parsing: every reader returns a value that is harmless after an error; the first error is kept ---- */

typedef struct {
    Circuit *c;
    const char *p;
    unsigned line;
    const char *err;
} Reader;

__attribute__((format(printf, 2, 3))) static void fail(Reader *rd, const char *fmt, ...)
{
    if (rd->err) return;
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    rd->err = xfmt("line %u: %s", rd->line, text);
}

static void skip_blanks(Reader *rd)
{
    while (*rd->p == ' ' || *rd->p == '\t' || *rd->p == '\r') rd->p++;
    if (rd->p[0] == '/' && rd->p[1] == '/')
        while (*rd->p && *rd->p != '\n') rd->p++;
}

/* Takes a mark such as "=" when it is next. */
static bool accept(Reader *rd, const char *mark)
{
    skip_blanks(rd);
    size_t n = strlen(mark);
    if (rd->err || strncmp(rd->p, mark, n)) return false;
    rd->p += n;
    return true;
}

static void expect(Reader *rd, const char *mark)
{
    if (!accept(rd, mark)) fail(rd, "expected `%s`", mark);
}

/* Takes the word when it is next; a longer word does not match. */
static bool accept_word(Reader *rd, const char *word)
{
    skip_blanks(rd);
    size_t n = strlen(word);
    if (rd->err || strncmp(rd->p, word, n) || is_word(rd->p[n])) return false;
    rd->p += n;
    return true;
}

static uint64_t read_number(Reader *rd, uint64_t most, const char *what)
{
    skip_blanks(rd);
    unsigned base = 10;
    const char *digits = "0123456789abcdef", *at;
    uint64_t v = 0;
    if (rd->p[0] == '0' && rd->p[1] == 'x') base = 16, rd->p += 2;
    if (!*rd->p || !(at = strchr(digits, *rd->p)) || at >= digits + base) fail(rd, "expected a number: %s", what);
    for (; !rd->err && *rd->p && (at = strchr(digits, *rd->p)) && at < digits + base; rd->p++) {
        unsigned d = (unsigned)(at - digits);
        if (d > most || v > (most - d) / base) fail(rd, "%s is too large", what);
        else v = v * base + d;
    }
    return v;
}

static unsigned read_small(Reader *rd, unsigned most, const char *what) { return (unsigned)read_number(rd, most, what); }

static int hex_pair(const char *p)
{
    int v = 0;
    for (int i = 0; i < 2; i++) {
        if (!isxdigit((unsigned char)p[i])) return 0;
        v = v * 16 + (isdigit((unsigned char)p[i]) ? p[i] - '0' : tolower((unsigned char)p[i]) - 'a' + 10);
    }
    return v;
}

static const char *read_string(Reader *rd)
{
    VEC(char) s = {0};
    expect(rd, "\"");
    while (!rd->err && *rd->p != '"') {
        char ch = *rd->p++;
        if (!ch || ch == '\n') {
            rd->p--;
            fail(rd, "a string does not end");
        } else if (ch == '\\') {
            ch = *rd->p ? *rd->p++ : 0;
            int code = ch == 'x' ? hex_pair(rd->p) : ch == 'n' ? '\n' : ch == '"' || ch == '\\' ? ch : 0;
            if (!code) fail(rd, "bad escape in a string");
            else if (ch == 'x') rd->p += 2;
            ch = (char)code;
        }
        vec_push(&s, ch);
    }
    if (!rd->err) rd->p++;
    const char *name = intern(s.n ? s.data : "", s.n);
    free(s.data);
    return name;
}

static const char *read_name(Reader *rd)
{
    skip_blanks(rd);
    if (*rd->p == '"') return read_string(rd);
    const char *start = rd->p;
    if (is_word_start(*rd->p))
        while (is_word(*rd->p)) rd->p++;
    if (rd->p == start) fail(rd, "expected a name");
    return intern(start, (size_t)(rd->p - start));
}

/* The index of the next word in a table that NULL ends. */
static unsigned read_choice(Reader *rd, const char *const *table, const char *what)
{
    for (unsigned i = 0; table[i]; i++)
        if (accept_word(rd, table[i])) return i;
    fail(rd, "expected %s", what);
    return 0;
}

static Ref read_ref(Reader *rd)
{
    expect(rd, "%");
    Ref r = read_small(rd, UINT32_MAX, "a value");
    if (!rd->err && (!r || r >= rd->c->ops.n)) fail(rd, "value %%%u does not exist here", r);
    return rd->err ? 0 : r;
}

static uint32_t read_state_ref(Reader *rd)
{
    const char *name = read_name(rd);
    for (uint32_t i = 0; i < rd->c->states.n; i++)
        if (rd->c->states.data[i].name == name) return i;
    fail(rd, "there is no state `%s`", name);
    return 0;
}

static Span read_place(Reader *rd)
{
    Span s = {0};
    if (!accept(rd, "@")) return s;
    s.file = 1;
    s.line = read_small(rd, UINT32_MAX, "a line");
    if (accept(rd, "/")) {
        s.file = s.line;
        s.line = read_small(rd, UINT32_MAX, "a line");
    }
    expect(rd, ":");
    s.col = read_small(rd, UINT32_MAX, "a column");
    if (accept(rd, "+")) s.len = read_small(rd, UINT32_MAX, "a length");
    if (!s.file) fail(rd, "file 0 is no place");
    return s;
}

static void read_rows(Reader *rd, State *s)
{
    VEC(uint64_t) rows = {0};
    expect(rd, "{");
    while (!rd->err && !accept(rd, "}")) vec_push(&rows, read_number(rd, UINT64_MAX, "a row"));
    s->nrow_init = rows.n;
    s->row_init = xalloc((rows.n + 1) * sizeof *s->row_init);
    if (rows.n) memcpy(s->row_init, rows.data, rows.n * sizeof *rows.data);
    free(rows.data);
}

static void read_init(Reader *rd, State *s)
{
    if (accept_word(rd, "rows")) {
        s->init = INIT_ROWS;
        read_rows(rd, s);
    } else if (accept_word(rd, "image")) s->init = INIT_IMAGE;
    else if (accept_word(rd, "entry")) s->init = INIT_ENTRY;
    else if (accept_word(rd, "symbol")) {
        s->init = INIT_SYMBOL;
        s->symbol = read_string(rd);
        skip_blanks(rd);
        if (isdigit((unsigned char)*rd->p)) {
            s->row_init = xalloc(sizeof *s->row_init);
            s->row_init[0] = read_number(rd, UINT64_MAX, "a value");
            s->nrow_init = 1;
        }
    }
    if (accept(rd, ">>")) s->init_shift = read_small(rd, 63, "a shift");
}

static void read_state(Reader *rd)
{
    State s = {.kind = (StateKind)read_choice(rd, kind_name, "reg, file, mem or host"), .rows = 1};
    s.name = read_name(rd);
    s.width = read_small(rd, 64, "a width");
    if (accept(rd, "[")) {
        s.rows = read_small(rd, UINT32_MAX, "a number of rows");
        expect(rd, "]");
    }
    s.lane = accept_word(rd, "lane") ? read_small(rd, 64, "a lane") : s.width;
    if (accept_word(rd, "base")) s.base = read_number(rd, UINT64_MAX, "a base");
    read_init(rd, &s);
    if (accept_word(rd, "hard")) {
        s.has_hard = true;
        s.hard_row = read_small(rd, UINT32_MAX, "a row");
        expect(rd, "=");
        s.hard_value = read_number(rd, UINT64_MAX, "a value");
    }
    if (accept_word(rd, "home")) s.home = (HomeHint)read_choice(rd, home_name, "a home");
    s.forward = accept_word(rd, "forward");
    s.hidden = accept_word(rd, "hidden");
    s.span = read_place(rd);
    if (!rd->err) vec_push(&rd->c->states, s);
}

/* The operands of an op whose kind is known. */
static void read_operands(Reader *rd, Op *op, Ref **args)
{
    VEC(Ref) list = {0};
    bool more = op->kind != OP_CONST && op->kind != OP_TOKEN;
    if (!more) op->imm = read_number(rd, UINT64_MAX, "a value");
    if (op->kind == OP_READ) {
        op->imm = read_state_ref(rd);
        more = accept(rd, ",");
    }
    skip_blanks(rd);
    if (op->kind == OP_PMUX && *rd->p != '%') more = false; /* no arms: 0 */
    while (more && !rd->err) {
        vec_push(&list, read_ref(rd));
        more = op->kind != OP_SLICE && accept(rd, ",");
    }
    if (op->kind == OP_SLICE) {
        expect(rd, ",");
        op->imm = read_small(rd, 63, "a bit number");
    }
    op->nargs = list.n;
    *args = list.data;
}

static void read_op(Reader *rd)
{
    Ref number = read_small(rd, UINT32_MAX, "a value");
    if (number != rd->c->ops.n) fail(rd, "values are numbered in order: %%%u is next", rd->c->ops.n);
    expect(rd, ":");
    Op op = {.width = (uint8_t)read_small(rd, 64, "a width")};
    expect(rd, "=");
    const char *const *table = op_name;
    unsigned kind = 0;
    while (kind < OP_COUNT && !accept_word(rd, table[kind])) kind++;
    if (kind == OP_COUNT) {
        fail(rd, "unknown operation");
        return;
    }
    op.kind = (uint8_t)kind;
    Ref *args;
    read_operands(rd, &op, &args);
    op.span = read_place(rd);
    const char *bad = rd->err ? NULL : op_check(rd->c, kind, op.width, op.imm, op.nargs, args);
    if (bad) fail(rd, "%s: %s", op_name[kind], bad);
    if (!rd->err) ir_raw(rd->c, &op, args, false);
    free(args);
}

static Ref read_field(Reader *rd, const char *name, bool must)
{
    if (!accept_word(rd, name)) {
        if (must) fail(rd, "expected `%s=`", name);
        return 0;
    }
    expect(rd, "=");
    return read_ref(rd);
}

static void read_write(Reader *rd)
{
    Write w = {.state = read_state_ref(rd)};
    w.en = read_field(rd, "en", true);
    w.index = read_field(rd, "index", false);
    w.data = read_field(rd, "data", true);
    w.lanes = read_field(rd, "lanes", false);
    w.span = read_place(rd);
    if (!rd->err) vec_push(&rd->c->writes, w);
}

static void read_emit(Reader *rd)
{
    Emit e = {.role = (EmitRole)read_choice(rd, role_names, "output, exit, fault or take")};
    e.name = read_string(rd);
    skip_blanks(rd);
    if (*rd->p == '"') e.message = read_string(rd);
    e.en = read_field(rd, "en", true);
    e.payload = read_field(rd, "payload", false);
    if (e.role == EMIT_TAKE) {
        if (!accept_word(rd, "state")) fail(rd, "expected `state=`");
        expect(rd, "=");
        e.state = read_state_ref(rd);
    }
    e.span = read_place(rd);
    if (!rd->err) vec_push(&rd->c->emits, e);
}

static void read_retire(Reader *rd) { rd->c->retire = read_ref(rd); }

static const struct {
    const char *word;
    void (*read)(Reader *);
} line_kind[] = {{"state", read_state}, {"write", read_write}, {"emit", read_emit}, {"retire", read_retire}};

static void end_line(Reader *rd)
{
    skip_blanks(rd);
    if (*rd->p && *rd->p != '\n') fail(rd, "unexpected text at the end of the line");
}

static void read_line(Reader *rd)
{
    enum { KINDS = sizeof line_kind / sizeof *line_kind };
    skip_blanks(rd);
    if (!*rd->p || *rd->p == '\n') return;
    unsigned i = 0;
    if (accept(rd, "%")) read_op(rd);
    else {
        while (i < KINDS && !accept_word(rd, line_kind[i].word)) i++;
        if (i < KINDS) line_kind[i].read(rd);
        else fail(rd, "expected state, %%N, write, emit or retire");
    }
    end_line(rd);
}

static void next_line(Reader *rd)
{
    while (*rd->p && *rd->p != '\n') rd->p++;
    if (*rd->p) rd->p++, rd->line++;
}

Circuit *circuit_parse(const char *text, const char **err)
{
    Reader rd = {.c = circuit_new("?"), .p = text, .line = 1};
    for (skip_blanks(&rd); *rd.p == '\n'; skip_blanks(&rd)) next_line(&rd);
    if (!accept_word(&rd, "circuit")) fail(&rd, "expected `circuit NAME`");
    rd.c->name = read_name(&rd);
    end_line(&rd);
    for (next_line(&rd); !rd.err && *rd.p; next_line(&rd)) read_line(&rd);
    const char *bad = rd.err ? NULL : circuit_check(rd.c);
    *err = bad ? bad : rd.err;
    return *err ? NULL : rd.c;
}
