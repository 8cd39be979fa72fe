/* tree.c: constructors of the tree, and the tree as text.
 *
 * Every constructor keeps `depth`; a node that would be deeper than MAX_TREE is reported once and loses its children,
 * so that no later stage can recurse without bound. */
#include "dsl.h"
#include <string.h>

const char *const node_kind_name[N_COUNT] = {
#define X(k) #k,
    NODE_KINDS(X)
#undef X
};
const char *const node_op_text[B_COUNT] = {
#define X(k, t) t,
    NODE_OPS(X)
#undef X
};

static void deepen(Node *n, const Node *child)
{
    if (!child || child->depth < n->depth) return;
    n->depth = (uint16_t)(child->depth + 1);
    if (n->depth <= MAX_TREE) return;
    error_at(n->span, "this is nested deeper than %d", MAX_TREE);
    *n = (Node){ .kind = N_BAD, .depth = 1, .span = n->span };
}

static void set_kids(Node *n, Node *a, Node *b, Node *c)
{
    n->a = a;
    n->b = b;
    n->c = c;
    deepen(n, a);
    deepen(n, b);
    deepen(n, c);
}

Node *node(NodeKind kind, Span span, Node *a, Node *b, Node *c)
{
    Node *n = xalloc(sizeof *n);
    n->kind = (uint8_t)kind;
    n->depth = 1;
    n->span = n->name_span = span;
    set_kids(n, a, b, c);
    return n;
}

Node *node_op(NodeKind kind, NodeOp op, Span span, Node *a, Node *b)
{
    Node *n = node(kind, span, a, b, NULL);
    n->op = (uint8_t)op;
    return n;
}

Node *node_named(NodeKind kind, Token name, Span span, Node *a, Node *b, Node *c)
{
    Node *n = node(kind, span, a, b, c);
    n->name = intern(name.s, name.n);
    n->name_span = name.span;
    return n;
}

Node *node_int(Token t)
{
    Node *n = node(N_INT, t.span, NULL, NULL, NULL);
    if (literal_value(t.s, t.n, &n->value)) return n;
    if (n->value >= 0) error_at(t.span, "the number %.*s is not below 2^64", t.n > 40 ? 40 : (int)t.n, t.s);
    else
        error_at(t.span,
                 "found the number '%.*s', expected digits, 0x.. or 0b.., with KiB, MiB or GiB behind or nothing",
                 t.n > 40 ? 40 : (int)t.n, t.s);
    n->value = 0;
    return n;
}

static int hex_digit(char ch)
{
    const char *at = ch ? strchr("0123456789abcdef", ch >= 'A' && ch <= 'F' ? ch + 32 : ch) : NULL;
    return at ? (int)(at - "0123456789abcdef") : -1;
}

/* One character of a string, escapes resolved; returns how much of s it took, 0 for an unknown escape. */
static unsigned unescape(const char *s, uint32_t left, char *out)
{
    static const char from[] = "nrt0\\\"'", to[] = "\n\r\t\0\\\"'";
    *out = *s;
    if (*s != '\\') return 1;
    if (left >= 4 && s[1] == 'x' && hex_digit(s[2]) >= 0 && hex_digit(s[3]) >= 0) {
        *out = (char)(hex_digit(s[2]) * 16 + hex_digit(s[3]));
        return 4;
    }
    for (int i = 0; from[i]; i++)
        if (left >= 2 && s[1] == from[i]) {
            *out = to[i];
            return 2;
        }
    return 0;
}

Node *node_string(NodeKind kind, Token t)
{
    Node *n = node(kind, t.span, NULL, NULL, NULL);
    char *text = xalloc(t.n + 1);
    for (uint32_t i = 1; i + 1 < t.n;) {
        unsigned took = unescape(t.s + i, t.n - 1 - i, &text[n->len]);
        if (!took) {
            Span at = t.span;
            at.col += i;
            at.len = 2;
            error_at(at, "found an unknown escape, expected one of \\n \\r \\t \\0 \\\\ \\\" \\' \\xHH");
            took = 2;
        }
        n->len++;
        i += took;
    }
    n->name = text;
    return n;
}

Node *node_set_list(Node *n, NodeList *list)
{
    n->list = *list;
    for (uint32_t i = 0; i < list->n && n->kind != N_BAD; i++) deepen(n, list->data[i]);
    return n;
}

Node *node_list(NodeKind kind, Span span, NodeList *list, Node *a)
{
    return node_set_list(node(kind, span, a, NULL, NULL), list);
}

NodeList *list_new(void) { return xalloc(sizeof(NodeList)); }

NodeList *list_add(NodeList *l, Node *n)
{
    if (n) vec_push(l, n);
    return l;
}

Node *node_set(Node *n, Node *d, Node *e)
{
    n->d = d;
    n->e = e;
    deepen(n, d);
    deepen(n, e);
    return n;
}

static void print_big(Big v, FILE *out)
{
    if (v < 0) fputc('-', out), v = -v;
    if (v >> 64) fprintf(out, "0x%llx%016llx", (unsigned long long)(v >> 64), (unsigned long long)v);
    else fprintf(out, "%llu", (unsigned long long)v);
}

static void print_node(const Node *n, int indent, const char *role, FILE *out)
{
    if (!n) return;
    fprintf(out, "%*s%s%s", indent * 2, "", role, node_kind_name[n->kind]);
    if (n->op) fprintf(out, " %s", node_op_text[n->op]);
    if (n->len) fprintf(out, " \"%.*s\"", (int)n->len, n->name);
    else if (n->name) fprintf(out, " %s", n->name);
    if (n->kind == N_INT || n->value) fputc(' ', out), print_big(n->value, out);
    fprintf(out, " @%u:%u\n", n->span.line, n->span.col);
    const Node *kids[] = { n->a, n->b, n->c, n->d, n->e };
    static const char *const roles[] = { "a=", "b=", "c=", "d=", "e=" };
    for (int i = 0; i < 5; i++) print_node(kids[i], indent + 1, roles[i], out);
    for (uint32_t i = 0; i < n->list.n; i++) print_node(n->list.data[i], indent + 1, "", out);
}

void tree_print(const NodeList *decls, FILE *out)
{
    for (uint32_t i = 0; i < decls->n; i++) print_node(decls->data[i], 0, "", out);
}
