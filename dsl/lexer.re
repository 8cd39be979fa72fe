/* lexer.re: characters to tokens, numbered by the grammar (grammar.h is lemon's). One function over one re2c block.
 *
 * A token is a place in the text. The text ends with a NUL at `limit`; a NUL before that is an illegal character. */
#include "dsl.h"
#include "grammar.h"
#include <ctype.h>

void lexer_init(Lexer *lx, uint32_t file)
{
    size_t len;
    const char *text = source_text(file, &len);
    *lx = (Lexer){ .file = file, .line = 1, .start = text, .cursor = text, .limit = text + len, .line_start = text };
}

static Span here(const Lexer *lx)
{
    return (Span){ lx->file, lx->line, (uint32_t)(lx->start - lx->line_start) + 1, (uint32_t)(lx->cursor - lx->start) };
}

static int opened(Lexer *lx, int kind)
{
    if (lx->depth < MAX_OPEN) {
        lx->open[lx->depth++] = *lx->start;
        return kind;
    }
    error_at(here(lx), "brackets are nested deeper than %d", MAX_OPEN);
    lx->cursor = lx->limit;
    lx->stop = true;
    return 0;
}

/* No ';' or '}' stands inside ( ) or [ ]: those that are open there were never closed. */
static void drop_unclosed(Lexer *lx)
{
    while (lx->depth && lx->open[lx->depth - 1] != '{') lx->depth--;
}

void lexer_close(Lexer *lx)
{
    drop_unclosed(lx);
    if (lx->depth) lx->depth--;
}

static int closed(Lexer *lx, int kind)
{
    if (kind == RBRACE) lexer_close(lx);
    else if (lx->depth && lx->open[lx->depth - 1] != '{') lx->depth--;
    return kind;
}

static void illegal(Lexer *lx)
{
    unsigned char ch = (unsigned char)*lx->start;
    while (ch >= 0xc0 && ((unsigned char)*lx->cursor & 0xc0) == 0x80) lx->cursor++; /* the rest of a UTF-8 sequence */
    int n = (int)(lx->cursor - lx->start);
    if (n > 1 || (ch > 32 && ch < 127)) error_at(here(lx), "found the character '%.*s', which begins no token", n, lx->start);
    else error_at(here(lx), "found the byte 0x%02x, which begins no token", ch);
}

static int scan(Lexer *lx)
{
    const char *YYMARKER;
    for (;;) {
        lx->start = lx->cursor;
        /*!re2c
        re2c:define:YYCTYPE = "unsigned char";
        re2c:define:YYCURSOR = lx->cursor;
        re2c:define:YYLIMIT = lx->limit;
        re2c:yyfill:enable = 0;

        end    = "\x00";
        letter = [a-zA-Z_];
        digit  = [0-9];
        word   = letter (letter | digit)*;
        digits = digit [0-9_]*;
        hex    = "0x" [0-9a-fA-F_]+;
        bin    = "0b" [01_]+;
        other  = [^a-zA-Z0-9_];

        end {
            if (lx->start >= lx->limit) { lx->cursor = lx->limit; return 0; }
            error_at(here(lx), "found a NUL byte: this is not a text");
            continue;
        }
        [ \t\r]+        { continue; }
        "\n"            { lx->line++; lx->line_start = lx->cursor; continue; }
        "//" [^\n\x00]* { continue; }

        "machine"   { return MACHINE; }
        "extension" { return EXTENSION; }
        "monitor"   { return MONITOR; }
        "import"    { return IMPORT; }
        "use"       { return USE; }
        "const"     { return CONST; }
        "param"     { return PARAM; }
        "enum"      { return ENUM; }
        "reg"       { return REG; }
        "file"      { return FILEKW; }
        "mem"       { return MEM; }
        "align"     { return ALIGN; }
        "at"        { return AT; }
        "forward"   { return FORWARD; }
        "in"        { return IN; }
        "output"    { return OUTPUT; }
        "exit"      { return EXIT; }
        "input"     { return INPUT; }
        "format"    { return FORMAT; }
        "instr"     { return INSTR; }
        "fn"        { return FN; }
        "proc"      { return PROC; }
        "step"      { return STEP; }
        "test"      { return TEST; }
        "run"       { return RUN; }
        "expect"    { return EXPECT; }
        "let"       { return LET; }
        "return"    { return RETURN; }
        "if"        { return IF; }
        "else"      { return ELSE; }
        "match"     { return MATCH; }
        "for"       { return FOR; }
        "reduce"    { return REDUCE; }
        "concat"    { return CONCAT; }
        "iterate"   { return ITERATE; }
        "carry"     { return CARRY; }
        "until"     { return UNTIL; }
        "then"      { return THEN; }
        "execute"   { return EXECUTE; }
        "fault"     { return FAULT; }
        "take"      { return TAKE; }
        "next"      { return NEXT; }

        "u" digits  { return TYPE; }
        word        { return ID; }
        (digits | hex | bin) ([ ]* [KMG] "iB")? / other { return INT; }
        (digits | hex | bin) {
            while (*lx->cursor == '_' || isalnum((unsigned char)*lx->cursor)) lx->cursor++; /* reported when its value is taken */
            return INT;
        }
        "'" [^'\\\n\x00] "'" { return INT; }
        "'" "\\" [nrt0\\'"] "'" { return INT; }
        "\"" ([^"\\\n\x00] | "\\" [^\n\x00])* "\"" { return STRING; }
        "\"" ([^"\\\n\x00] | "\\" [^\n\x00])* {
            error_at(here(lx), "found a string without its closing '\"' on the same line");
            continue;
        }

        "{"  { return opened(lx, LBRACE); }
        "}"  { return closed(lx, RBRACE); }
        "("  { return opened(lx, LPAREN); }
        ")"  { return closed(lx, RPAREN); }
        "["  { return opened(lx, LBRACKET); }
        "]"  { return closed(lx, RBRACKET); }
        ";"  { drop_unclosed(lx); return SEMI; }
        ":"  { return COLON; }
        ","  { return COMMA; }
        "."  { return DOT; }
        ".." { return DOTDOT; }
        "->" { return ARROW; }
        "=>" { return FATARROW; }
        ":=" { return BECOMES; }
        "="  { return EQUALS; }
        "+"  { return PLUS; }
        "-"  { return MINUS; }
        "*"  { return STAR; }
        "/"  { return SLASH; }
        "%"  { return PERCENT; }
        "&"  { return AMP; }
        "|"  { return BAR; }
        "^"  { return CARET; }
        "~"  { return TILDE; }
        "!"  { return BANG; }
        "&&" { return ANDAND; }
        "||" { return OROR; }
        "<<" { return SHL; }
        ">>" { return SHR; }
        ">>>" { return SAR; }
        "==" { return EQ; }
        "!=" { return NE; }
        "<"  { return LT; }
        "<=" { return LE; }
        ">"  { return GT; }
        ">=" { return GE; }
        "<s"  / other { return SLT; }
        "<=s" / other { return SLE; }
        ">s"  / other { return SGT; }
        ">=s" / other { return SGE; }
        *    { illegal(lx); continue; }
        */
    }
}

int lexer_next(Lexer *lx, Token *t)
{
    int kind = scan(lx);
    t->s = lx->start;
    t->n = (uint32_t)(lx->cursor - lx->start);
    t->span = here(lx);
    if (!kind) t->span.len = 1;
    return kind;
}

static int digit_value(char ch)
{
    if (ch >= '0' && ch <= '9') return ch - '0';
    if (ch >= 'a' && ch <= 'f') return ch - 'a' + 10;
    if (ch >= 'A' && ch <= 'F') return ch - 'A' + 10;
    return -1;
}

static bool character_value(const char *s, size_t n, Big *value)
{
    static const char from[] = "nrt0\\'\"", to[] = "\n\r\t\0\\'\"";
    *value = n > 1 ? (unsigned char)s[1] : -1;
    if (n != 4) return n == 3;
    for (int i = 0; from[i]; i++)
        if (from[i] == s[2]) *value = (unsigned char)to[i];
    return true;
}

bool literal_value(const char *s, size_t n, Big *value)
{
    if (n && *s == '\'') return character_value(s, n, value);
    int radix = 10;
    size_t i = 0;
    if (n > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'b')) radix = s[1] == 'x' ? 16 : 2, i = 2;
    Big v = 0;
    size_t first = i;
    for (; i < n; i++) {
        if (s[i] == '_' && i > first) continue;
        int d = digit_value(s[i]);
        if (d < 0 || d >= radix) break;
        v = v < MAX_CONST ? v * radix + d : v;
    }
    *value = -1;
    if (i == first) return false;
    while (i < n && s[i] == ' ') i++;
    if (i + 3 == n && s[i + 1] == 'i' && s[i + 2] == 'B') {
        int shift = s[i] == 'K' ? 10 : s[i] == 'M' ? 20 : s[i] == 'G' ? 30 : 0;
        v = v < MAX_CONST ? v << shift : v;
        i = shift ? n : i;
    }
    if (i < n) return false;
    *value = v;
    return v < MAX_CONST;
}
