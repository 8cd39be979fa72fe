/* grammar.y: tokens to tree. Read without its actions this is the grammar of the language.
 *
 * Every action is one constructor. Errors are reported in %syntax_error with what was found and what the parser could have
 * taken; `recover` then looks for the end of the broken declaration or statement, and the productions with `error` resume there. */
%include {
#include "dsl.h"
#include "grammar.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    NodeList *decls;
    bool failed;         /* an error was reported for the token that was fed last */
    bool unclosed;       /* ... which was a declaration where the enclosing block could have been closed */
    const char *refused; /* where the last such token stands */
} Parser;

#define SPAN(a, b) span_join(a, b)
typedef struct yyParser yyParser;
static void syntax_error(yyParser *yyp, int found, Token t);

/* The N of uN. */
static Big width_of(Token t)
{
    Big n;
    if (literal_value(t.s + 1, t.n - 1, &n) && n >= 1 && n <= 64) return n;
    error_at(t.span, "found %.*s, expected u1 to u64", t.n > 20 ? 20 : (int)t.n, t.s);
    return 1;
}

/* uN(e) is zext(e, N). */
static Node *sized(Token type, Node *e, Span end)
{
    Token zext = { "zext", 4, type.span };
    Node *n = node(N_INT, type.span, NULL, NULL, NULL);
    n->value = width_of(type);
    NodeList *args = list_add(list_add(list_new(), e), n);
    return node_set_list(node(N_CALL, span_join(type.span, end), node_named(N_NAME, zext, type.span, NULL, NULL, NULL), NULL, NULL), args);
}
}
%token_type { Token }
%default_type { Node * }
%extra_context { Parser *p }
%stack_size 0

%syntax_error { syntax_error(yypParser, yymajor, TOKEN); }

/* Words that mean something only in one place may name things elsewhere. */
%fallback ID ALIGN AT FORWARD CARRY UNTIL THEN RUN EXPECT EXTENSION.

%left OROR.
%left ANDAND.
%nonassoc EQ NE LT LE GT GE SLT SLE SGT SGE.
%left BAR.
%left CARET.
%left AMP.
%left SHL SHR SAR.
%left PLUS MINUS.
%left STAR SLASH PERCENT.
%right UNARY.

%type decls { NodeList * }
%type members { NodeList * }
%type consts { NodeList * }
%type params { NodeList * }
%type param_list { NodeList * }
%type enumerators { NodeList * }
%type pieces { NodeList * }
%type fixes { NodeList * }
%type fix_list { NodeList * }
%type hard { NodeList * }
%type stmts { NodeList * }
%type lets { NodeList * }
%type args { NodeList * }
%type exprs { NodeList * }
%type value_arms { NodeList * }
%type value_arm_list { NodeList * }
%type block_arms { NodeList * }
%type carries { NodeList * }
%type tests { NodeList * }
%type reduce_op { int }
%type forward_opt { int }
%type any_name { Token }

/* ---- files ---- */
file ::= decls(D). { if (D) for (uint32_t i = 0; i < D->n; i++) list_add(p->decls, D->data[i]); }
decls(L) ::= . { L = list_new(); }
decls(L) ::= decls(A) IMPORT(K) STRING(S) SEMI(E).
    { Node *n = node_string(N_IMPORT, S); n->span = SPAN(K.span, E.span); L = list_add(A, n); }
decls(L) ::= decls(A) MACHINE(K) ID(N) LBRACE members(M) RBRACE.
    { L = list_add(A, node_set_list(node_named(N_MACHINE, N, K.span, NULL, NULL, NULL), M)); }
decls(L) ::= decls(A) MACHINE(K) ID(N) COLON ID(B) LBRACE members(M) RBRACE.
    { L = list_add(A, node_set_list(node_named(N_MACHINE, N, K.span, node_named(N_NAME, B, B.span, NULL, NULL, NULL), NULL, NULL), M)); }
decls(L) ::= decls(A) EXTENSION(K) ID(N) LBRACE members(M) RBRACE.
    { L = list_add(A, node_set_list(node_named(N_EXTENSION, N, K.span, NULL, NULL, NULL), M)); }
decls(L) ::= decls(A) consts(C) SEMI. { for (uint32_t i = 0; i < C->n; i++) list_add(A, C->data[i]); L = A; }
decls(L) ::= decls(A) decl(D). { L = list_add(A, D); }
decls(L) ::= decls(A) error SEMI. { L = A; }

members(L) ::= . { L = list_new(); }
members(L) ::= members(A) USE(K) ID(N) SEMI. { L = list_add(A, node_named(N_USE, N, K.span, NULL, NULL, NULL)); }
members(L) ::= members(A) consts(C) SEMI. { for (uint32_t i = 0; i < C->n; i++) list_add(A, C->data[i]); L = A; }
members(L) ::= members(A) decl(D). { L = list_add(A, D); }
members(L) ::= members(A) error SEMI. { L = A; }

/* ---- constants ---- */
consts(L) ::= CONST ID(N) type_opt(T) EQUALS expr(V).
    { L = list_add(list_new(), node_named(N_CONST, N, N.span, T, V, NULL)); }
consts(L) ::= consts(A) COMMA ID(N) type_opt(T) EQUALS expr(V).
    { L = list_add(A, node_named(N_CONST, N, N.span, T, V, NULL)); }
decl(X) ::= PARAM(K) ID(N) EQUALS expr(V) SEMI. { X = node_named(N_PARAM, N, K.span, NULL, V, NULL); }
decl(X) ::= ENUM(K) ID(N) type_opt(T) LBRACE enumerators(L) comma_opt RBRACE.
    { X = node_set_list(node_named(N_ENUM, N, K.span, T, NULL, NULL), L); }
enumerators(L) ::= enumerator(E). { L = list_add(list_new(), E); }
enumerators(L) ::= enumerators(A) COMMA enumerator(E). { L = list_add(A, E); }
enumerator(X) ::= ID(N). { X = node_named(N_ENUMERATOR, N, N.span, NULL, NULL, NULL); }
enumerator(X) ::= ID(N) EQUALS expr(V). { X = node_named(N_ENUMERATOR, N, N.span, V, NULL, NULL); }

/* ---- types ---- */
type(X) ::= TYPE(T). { X = node(N_TYPE, T.span, NULL, NULL, NULL); X->value = width_of(T); }
type(X) ::= ID(N). { X = node_named(N_TYPE, N, N.span, NULL, NULL, NULL); }
type(X) ::= ID(N) LPAREN expr(E) RPAREN(R). { X = node_named(N_TYPE, N, SPAN(N.span, R.span), E, NULL, NULL); }
type(X) ::= CONST(K). { X = node_op(N_TYPE, B_NEG, K.span, NULL, NULL); }
type_opt(X) ::= . { X = NULL; }
type_opt(X) ::= COLON type(T). { X = T; }

/* ---- state and devices ---- */
decl(X) ::= REG(K) ID(N) COLON type(T) align_opt(A) hint_opt(H) init_opt(I) SEMI.
    { X = node_set(node_named(N_REG, N, SPAN(K.span, N.span), T, A, I), H, NULL); }
decl(X) ::= FILEKW(K) ID(N) LBRACKET expr(R) RBRACKET COLON type(T) hard(L) forward_opt(F) hint_opt(H) init_opt(I) SEMI.
    { X = node_set_list(node_set(node_named(N_FILE, N, SPAN(K.span, N.span), T, R, I), H, NULL), L); X->forward = F; }
decl(X) ::= MEM(K) ID(N) LBRACKET expr(R) RBRACKET COLON type(T) at_opt(B) forward_opt(F) hint_opt(H) init_opt(I) SEMI.
    { X = node_set(node_named(N_MEM, N, SPAN(K.span, N.span), T, R, I), H, B); X->forward = F; }
decl(X) ::= OUTPUT(K) ID(N) COLON type(T) SEMI. { X = node_named(N_OUTPUT, N, SPAN(K.span, N.span), T, NULL, NULL); }
decl(X) ::= EXIT(K) ID(N) COLON type(T) SEMI. { X = node_named(N_EXIT, N, SPAN(K.span, N.span), T, NULL, NULL); }
decl(X) ::= INPUT(K) ID(N) COLON type(T) SEMI. { X = node_named(N_INPUT, N, SPAN(K.span, N.span), T, NULL, NULL); }
align_opt(X) ::= . { X = NULL; }
align_opt(X) ::= ALIGN expr(E). { X = E; }
forward_opt(X) ::= . { X = 0; }
forward_opt(X) ::= FORWARD. { X = 1; }
at_opt(X) ::= . { X = NULL; }
at_opt(X) ::= AT expr(E). { X = E; }
hint_opt(X) ::= . { X = NULL; }
hint_opt(X) ::= IN ID(N). { X = node_named(N_NAME, N, N.span, NULL, NULL, NULL); }
init_opt(X) ::= . { X = NULL; }
init_opt(X) ::= EQUALS expr(E). { X = E; }
hard(L) ::= . { L = list_new(); }
hard(L) ::= hard(A) COMMA ID(N) LBRACKET expr(R) RBRACKET EQUALS expr(V).
    { L = list_add(A, node_named(N_FIX, N, N.span, R, V, NULL)); }

/* ---- instructions ---- */
decl(X) ::= FORMAT(K) ID(N) LBRACE pieces(L) RBRACE.
    { X = node_set_list(node_named(N_FORMAT, N, SPAN(K.span, N.span), NULL, NULL, NULL), L); }
pieces(L) ::= piece(P). { L = list_add(list_new(), P); }
pieces(L) ::= pieces(A) piece(P). { L = list_add(A, P); }
piece(X) ::= ID(N) COLON INT(W).
    { X = node_named(N_PIECE, N, SPAN(N.span, W.span), NULL, NULL, NULL); X->value = node_int(W)->value - 1; }
piece(X) ::= ID(N) LBRACKET INT(H) RBRACKET(R).
    {
        X = node_named(N_PIECE, N, SPAN(N.span, R.span), NULL, NULL, NULL); X->op = 1;
        X->value = X->low = node_int(H)->value;
    }
piece(X) ::= ID(N) LBRACKET INT(H) COLON INT(L) RBRACKET(R).
    {
        X = node_named(N_PIECE, N, SPAN(N.span, R.span), NULL, NULL, NULL); X->op = 1;
        X->value = node_int(H)->value; X->low = node_int(L)->value;
    }
decl(X) ::= INSTR(K) any_name(N) COLON ID(F) LBRACE fixes(L) RBRACE asm_opt(S) block(B).
    { X = node_set_list(node_named(N_INSTR, N, SPAN(K.span, N.span), node_named(N_NAME, F, F.span, NULL, NULL, NULL), S, B), L); }
any_name(X) ::= ID(N). { X = N; }
any_name(X) ::= STRING(N). { X = N; if (X.n > 2) { X.s++; X.n -= 2; } else error_at(N.span, "found an empty name"); }
fixes(L) ::= . { L = list_new(); }
fixes(L) ::= fix_list(A) comma_opt. { L = A; }
fix_list(L) ::= fix(F). { L = list_add(list_new(), F); }
fix_list(L) ::= fix_list(A) COMMA fix(F). { L = list_add(A, F); }
fix(X) ::= ID(N) EQUALS expr(V). { X = node_named(N_FIX, N, N.span, V, NULL, NULL); }
asm_opt(X) ::= . { X = NULL; }
asm_opt(X) ::= STRING(S). { X = node_string(N_STRING, S); }

/* ---- functions, procedures, the step ---- */
decl(X) ::= FN(K) ID(N) LPAREN params(P) RPAREN result_opt(T) EQUALS expr(E) SEMI.
    { X = node_set_list(node_named(N_FN, N, SPAN(K.span, N.span), T, E, NULL), P); }
decl(X) ::= FN(K) ID(N) LPAREN params(P) RPAREN result_opt(T) block(B).
    { X = node_set_list(node_named(N_FN, N, SPAN(K.span, N.span), T, B, NULL), P); }
decl(X) ::= PROC(K) ID(N) LPAREN params(P) RPAREN result_opt(T) block(B).
    { X = node_set_list(node_named(N_PROC, N, SPAN(K.span, N.span), T, B, NULL), P); }
decl(X) ::= STEP(K) block(B). { X = node(N_STEP, K.span, B, NULL, NULL); }
decl(X) ::= FAULT(K) ID(C) COMMA ID(V) block(B).
    {
        NodeList *l = list_add(list_new(), node_named(N_FORMAL, C, C.span, NULL, NULL, NULL));
        X = node_set_list(node(N_HANDLER, SPAN(K.span, V.span), B, NULL, NULL), list_add(l, node_named(N_FORMAL, V, V.span, NULL, NULL, NULL)));
    }
decl(X) ::= MONITOR(K) ID(N) LBRACE members RBRACE.
    { X = node_named(N_MONITOR, N, SPAN(K.span, N.span), NULL, NULL, NULL); }
params(L) ::= . { L = list_new(); }
params(L) ::= param_list(A) comma_opt. { L = A; }
param_list(L) ::= param(P). { L = list_add(list_new(), P); }
param_list(L) ::= param_list(A) COMMA param(P). { L = list_add(A, P); }
param(X) ::= ID(N) COLON type(T). { X = node_named(N_FORMAL, N, N.span, T, NULL, NULL); }
result_opt(X) ::= . { X = NULL; }
result_opt(X) ::= ARROW type(T). { X = T; }
comma_opt ::= .
comma_opt ::= COMMA.

/* ---- statements ---- */
block(X) ::= LBRACE(K) stmts(L) RBRACE(E). { X = node_list(N_BLOCK, SPAN(K.span, E.span), L, NULL); }
stmts(L) ::= . { L = list_new(); }
stmts(L) ::= stmts(A) stmt(S). { L = list_add(A, S); }
stmts(L) ::= stmts(A) error SEMI. { L = A; }
stmt(X) ::= let(A). { X = A; }
stmt(X) ::= place(A) BECOMES expr(V) SEMI. { X = node(N_ASSIGN, SPAN(A->span, V->span), A, V, NULL); }
stmt(X) ::= place(A) SEMI. { X = node(N_DO, A->span, A, NULL, NULL); }
stmt(X) ::= RETURN(K) SEMI. { X = node(N_RETURN, K.span, NULL, NULL, NULL); }
stmt(X) ::= RETURN(K) expr(V) SEMI. { X = node(N_RETURN, K.span, V, NULL, NULL); }
stmt(X) ::= if_stmt(A). { X = A; }
stmt(X) ::= MATCH(K) expr(V) LBRACE block_arms(L) RBRACE. { X = node_list(N_MATCH, SPAN(K.span, V->span), L, V); }
stmt(X) ::= FOR(K) ID(N) IN expr(A) DOTDOT expr(B) block(S).
    { X = node_named(N_FOR, N, SPAN(K.span, B->span), A, B, S); }
stmt(X) ::= EXECUTE(K) expr(V) SEMI. { X = node(N_EXECUTE, SPAN(K.span, V->span), V, NULL, NULL); }
stmt(X) ::= EXECUTE(K) expr(V) ELSE block(B). { X = node(N_EXECUTE, SPAN(K.span, V->span), V, B, NULL); }
stmt(X) ::= FAULT(K) expr(V) STRING(S) SEMI. { X = node_string(N_FAULT, S); X->span = SPAN(K.span, S.span); X->a = V; }
stmt(X) ::= FAULT(K) expr(V) STRING(S) COMMA expr(B) SEMI.
    { X = node_string(N_FAULT, S); X->span = SPAN(K.span, S.span); X->a = V; X->b = B; }
stmt(X) ::= FAULT(K) STRING(S) SEMI.
    { error_at(S.span, "found the message, expected the fault's code before it"); X = node(N_FAULT, K.span, NULL, NULL, NULL); }
stmt(X) ::= FAULT(K) SEMI. { X = node(N_FAULT, K.span, NULL, NULL, NULL); }
stmt(X) ::= TAKE(K) ID(N) SEMI. { X = node_named(N_TAKE, N, SPAN(K.span, N.span), NULL, NULL, NULL); }
stmt(X) ::= ITERATE(K) ID(N) IN expr(A) DOTDOT expr(B) CARRY carries(L) until_opt(U) block(S) then_opt(T).
    { X = node_set(node_set_list(node_named(N_ITERATE, N, SPAN(K.span, B->span), A, B, U), L), S, T); }
stmt(X) ::= block(A). { X = A; }
let(X) ::= LET(K) ID(N) type_opt(T) EQUALS expr(V) SEMI.
    { X = node_named(N_LET, N, SPAN(K.span, V->span), T, V, NULL); }
if_stmt(X) ::= IF(K) expr(C) block(A). { X = node(N_IF, SPAN(K.span, C->span), C, A, NULL); }
if_stmt(X) ::= IF(K) expr(C) block(A) ELSE block(B). { X = node(N_IF, SPAN(K.span, C->span), C, A, B); }
if_stmt(X) ::= IF(K) expr(C) block(A) ELSE if_stmt(B). { X = node(N_IF, SPAN(K.span, C->span), C, A, B); }
block_arms(L) ::= . { L = list_new(); }
block_arms(L) ::= block_arms(A) exprs(P) FATARROW block(B) comma_opt.
    { L = list_add(A, node_list(N_ARM, SPAN(P->data[0]->span, P->data[P->n - 1]->span), P, B)); }
block_arms(L) ::= block_arms(A) ELSE(K) FATARROW block(B) comma_opt.
    { L = list_add(A, node(N_ARM, K.span, B, NULL, NULL)); }
until_opt(X) ::= . { X = NULL; }
until_opt(X) ::= UNTIL expr(E). { X = E; }
then_opt(X) ::= . { X = NULL; }
then_opt(X) ::= THEN block(B). { X = B; }
carries(L) ::= carry(C). { L = list_add(list_new(), C); }
carries(L) ::= carries(A) COMMA carry(C). { L = list_add(A, C); }
carry(X) ::= ID(N) COLON type(T) EQUALS expr(V). { X = node_named(N_CARRY, N, N.span, T, V, NULL); }

/* ---- values ---- */
expr(X) ::= expr(A) OROR expr(B).   { X = node_op(N_BINARY, B_LOR, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) ANDAND expr(B). { X = node_op(N_BINARY, B_LAND, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) EQ expr(B).     { X = node_op(N_BINARY, B_EQ, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) NE expr(B).     { X = node_op(N_BINARY, B_NE, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) LT expr(B).     { X = node_op(N_BINARY, B_LT, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) LE expr(B).     { X = node_op(N_BINARY, B_LE, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) GT expr(B).     { X = node_op(N_BINARY, B_GT, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) GE expr(B).     { X = node_op(N_BINARY, B_GE, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) SLT expr(B).    { X = node_op(N_BINARY, B_SLT, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) SLE expr(B).    { X = node_op(N_BINARY, B_SLE, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) SGT expr(B).    { X = node_op(N_BINARY, B_SGT, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) SGE expr(B).    { X = node_op(N_BINARY, B_SGE, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) BAR expr(B).    { X = node_op(N_BINARY, B_OR, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) CARET expr(B).  { X = node_op(N_BINARY, B_XOR, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) AMP expr(B).    { X = node_op(N_BINARY, B_AND, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) SHL expr(B).    { X = node_op(N_BINARY, B_SHL, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) SHR expr(B).    { X = node_op(N_BINARY, B_SHR, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) SAR expr(B).    { X = node_op(N_BINARY, B_SAR, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) PLUS expr(B).   { X = node_op(N_BINARY, B_ADD, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) MINUS expr(B).  { X = node_op(N_BINARY, B_SUB, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) STAR expr(B).   { X = node_op(N_BINARY, B_MUL, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) SLASH expr(B).  { X = node_op(N_BINARY, B_DIV, SPAN(A->span, B->span), A, B); }
expr(X) ::= expr(A) PERCENT expr(B). { X = node_op(N_BINARY, B_MOD, SPAN(A->span, B->span), A, B); }
expr(X) ::= MINUS(K) expr(A). [UNARY] { X = node_op(N_UNARY, B_NEG, SPAN(K.span, A->span), A, NULL); }
expr(X) ::= TILDE(K) expr(A). [UNARY] { X = node_op(N_UNARY, B_INV, SPAN(K.span, A->span), A, NULL); }
expr(X) ::= BANG(K) expr(A).  [UNARY] { X = node_op(N_UNARY, B_NOT, SPAN(K.span, A->span), A, NULL); }
expr(X) ::= NEXT(K) place(A). { X = node_op(N_UNARY, B_NEXT, SPAN(K.span, A->span), A, NULL); }
expr(X) ::= place(A). { X = A; }
expr(X) ::= atom(A). { X = A; }
expr(X) ::= if_value(A). { X = A; }
expr(X) ::= MATCH(K) expr(V) LBRACE value_arms(L) RBRACE(E). { X = node_list(N_CHOOSE, SPAN(K.span, E.span), L, V); }
expr(X) ::= REDUCE(K) reduce_op(O) ID(N) IN expr(A) DOTDOT expr(B) value_block(V).
    { X = node_named(N_REDUCE, N, SPAN(K.span, V->span), A, B, V); X->op = (uint8_t)O; }
expr(X) ::= CONCAT(K) ID(N) IN expr(A) DOTDOT expr(B) value_block(V).
    { X = node_named(N_REDUCE, N, SPAN(K.span, V->span), A, B, V); X->op = B_CONCAT; }
reduce_op(X) ::= PLUS. { X = B_ADD; }
reduce_op(X) ::= STAR. { X = B_MUL; }
reduce_op(X) ::= AMP. { X = B_AND; }
reduce_op(X) ::= BAR. { X = B_OR; }
reduce_op(X) ::= CARET. { X = B_XOR; }

/* A place is what may stand left of `:=`; the checker says which ones really may. */
place(X) ::= ID(N). { X = node_named(N_NAME, N, N.span, NULL, NULL, NULL); }
place(X) ::= place(A) LBRACKET expr(I) RBRACKET(R). { X = node(N_INDEX, SPAN(A->span, R.span), A, I, NULL); }
place(X) ::= place(A) LBRACKET expr(H) COLON expr(L) RBRACKET(R). { X = node(N_SLICE, SPAN(A->span, R.span), A, H, L); }
place(X) ::= place(A) DOT ID(N). { X = node_named(N_MEMBER, N, SPAN(A->span, N.span), A, NULL, NULL); }
place(X) ::= place(A) DOT IN(N). { X = node_named(N_MEMBER, N, SPAN(A->span, N.span), A, NULL, NULL); }
place(X) ::= place(A) DOT TYPE(N).
    { X = node_named(N_MEMBER, N, SPAN(A->span, N.span), A, NULL, NULL); X->value = width_of(N); }
place(X) ::= place(A) LPAREN args(L) RPAREN(R).
    { X = node_set_list(node(N_CALL, SPAN(A->span, R.span), A, NULL, NULL), L); }

atom(X) ::= INT(T). { X = node_int(T); }
atom(X) ::= STRING(T). { X = node_string(N_STRING, T); }
atom(X) ::= LPAREN expr(A) RPAREN. { X = A; }
atom(X) ::= TYPE(T) LPAREN expr(A) RPAREN(R). { X = sized(T, A, R.span); }
atom(X) ::= LBRACE(K) exprs(L) comma_opt RBRACE(E). { X = node_list(N_CAT, SPAN(K.span, E.span), L, NULL); }
atom(X) ::= LBRACE(K) expr(N) LBRACE exprs(L) RBRACE RBRACE(E).
    { X = node(N_REP, SPAN(K.span, E.span), N, node_list(N_CAT, SPAN(K.span, E.span), L, NULL), NULL); }
atom(X) ::= atom(A) LBRACKET expr(I) RBRACKET(R). { X = node(N_INDEX, SPAN(A->span, R.span), A, I, NULL); }
atom(X) ::= atom(A) LBRACKET expr(H) COLON expr(L) RBRACKET(R). { X = node(N_SLICE, SPAN(A->span, R.span), A, H, L); }

args(L) ::= . { L = list_new(); }
args(L) ::= exprs(A) comma_opt. { L = A; }
exprs(L) ::= expr(E). { L = list_add(list_new(), E); }
exprs(L) ::= exprs(A) COMMA expr(E). { L = list_add(A, E); }

if_value(X) ::= IF(K) expr(C) value_block(A) ELSE value_block(B). { X = node(N_COND, SPAN(K.span, B->span), C, A, B); }
if_value(X) ::= IF(K) expr(C) value_block(A) ELSE if_value(B). { X = node(N_COND, SPAN(K.span, B->span), C, A, B); }
value_block(X) ::= LBRACE(K) lets(L) expr(E) RBRACE(R).
    { X = L->n ? node_list(N_LETIN, SPAN(K.span, R.span), L, E) : E; }
lets(L) ::= . { L = list_new(); }
lets(L) ::= lets(A) let(S). { L = list_add(A, S); }
value_arms(L) ::= value_arm_list(A) comma_opt. { L = A; }
value_arm_list(L) ::= value_arm(A). { L = list_add(list_new(), A); }
value_arm_list(L) ::= value_arm_list(A) COMMA value_arm(B). { L = list_add(A, B); }
value_arm(X) ::= exprs(P) FATARROW expr(V).
    { X = node_list(N_ARM, SPAN(P->data[0]->span, P->data[P->n - 1]->span), P, V); }
value_arm(X) ::= ELSE(K) FATARROW expr(V). { X = node(N_ARM, K.span, V, NULL, NULL); }

/* ---- tests ---- */
decl(X) ::= TEST(K) STRING(S) LBRACE tests(L) RBRACE.
    { X = node_set_list(node_string(N_TEST, S), L); X->span = SPAN(K.span, S.span); }
tests(L) ::= . { L = list_new(); }
tests(L) ::= tests(A) test(T) SEMI. { L = list_add(A, T); }
tests(L) ::= tests(A) error SEMI. { L = A; }
test(X) ::= place(A) EQUALS expr(V). { X = node(N_TSET, SPAN(A->span, V->span), A, V, NULL); }
test(X) ::= STEP(K). { X = node(N_TSTEP, K.span, NULL, NULL, NULL); }
test(X) ::= STEP(K) expr(N). { X = node(N_TSTEP, SPAN(K.span, N->span), N, NULL, NULL); }
test(X) ::= RUN(K). { X = node(N_TRUN, K.span, NULL, NULL, NULL); }
test(X) ::= INPUT(K) STRING(S). { X = node_string(N_TINPUT, S); X->span = SPAN(K.span, S.span); }
test(X) ::= EXPECT(K) expr(E). { X = node(N_TEXPECT, SPAN(K.span, E->span), E, NULL, NULL); }
test(X) ::= EXPECT(K) OUTPUT STRING(S). { X = node_string(N_TOUTPUT, S); X->span = SPAN(K.span, S.span); }
test(X) ::= EXPECT(K) EXIT expr(E). { X = node(N_TEXIT, SPAN(K.span, E->span), E, NULL, NULL); }
test(X) ::= EXPECT(K) FAULT expr(E). { X = node(N_TFAULT, SPAN(K.span, E->span), E, NULL, NULL); }

%code {
/* What an error message calls a token, and with which others it is summed up. */
typedef enum { PLAIN, CLOSER, OPERATOR, VALUE, STATEMENT, DECLARATION, WORD } TokenClass;
static const struct {
    const char *text;
    TokenClass class;
} token_info[YYNTOKEN] = {
    [ID] = { "a name", WORD }, [INT] = { "a number", VALUE }, [STRING] = { "a string", VALUE }, [TYPE] = { "a type uN", VALUE },
    [SEMI] = { "';'", CLOSER }, [RBRACE] = { "'}'", CLOSER }, [RPAREN] = { "')'", CLOSER }, [RBRACKET] = { "']'", CLOSER },
    [COMMA] = { "','", CLOSER }, [ELSE] = { "'else'", CLOSER }, [DOTDOT] = { "'..'", CLOSER }, [FATARROW] = { "'=>'", CLOSER },
    [LBRACE] = { "'{'", PLAIN }, [LPAREN] = { "'('", PLAIN }, [LBRACKET] = { "'['", PLAIN }, [DOT] = { "'.'", PLAIN },
    [COLON] = { "':'", PLAIN }, [EQUALS] = { "'='", PLAIN }, [BECOMES] = { "':='", PLAIN }, [ARROW] = { "'->'", PLAIN },
    [ALIGN] = { "'align'", PLAIN }, [AT] = { "'at'", PLAIN }, [FORWARD] = { "'forward'", PLAIN }, [IN] = { "'in'", PLAIN }, [CARRY] = { "'carry'", PLAIN },
    [UNTIL] = { "'until'", PLAIN }, [THEN] = { "'then'", PLAIN }, [OROR] = { "'||'", OPERATOR }, [ANDAND] = { "'&&'", OPERATOR },
    [EQ] = { "'=='", OPERATOR }, [NE] = { "'!='", OPERATOR }, [LT] = { "'<'", OPERATOR }, [LE] = { "'<='", OPERATOR },
    [GT] = { "'>'", OPERATOR }, [GE] = { "'>='", OPERATOR }, [SLT] = { "'<s'", OPERATOR }, [SLE] = { "'<=s'", OPERATOR },
    [SGT] = { "'>s'", OPERATOR }, [SGE] = { "'>=s'", OPERATOR }, [BAR] = { "'|'", OPERATOR }, [CARET] = { "'^'", OPERATOR },
    [AMP] = { "'&'", OPERATOR }, [SHL] = { "'<<'", OPERATOR }, [SHR] = { "'>>'", OPERATOR }, [SAR] = { "'>>>'", OPERATOR },
    [PLUS] = { "'+'", OPERATOR }, [MINUS] = { "'-'", OPERATOR }, [STAR] = { "'*'", OPERATOR }, [SLASH] = { "'/'", OPERATOR },
    [PERCENT] = { "'%'", OPERATOR }, [TILDE] = { "'~'", VALUE }, [BANG] = { "'!'", VALUE }, [NEXT] = { "'next'", VALUE },
    [REDUCE] = { "'reduce'", VALUE }, [CONCAT] = { "'concat'", VALUE }, [IF] = { "'if'", STATEMENT }, [MATCH] = { "'match'", STATEMENT },
    [LET] = { "'let'", STATEMENT }, [RETURN] = { "'return'", STATEMENT }, [FOR] = { "'for'", STATEMENT },
    [EXECUTE] = { "'execute'", STATEMENT }, [FAULT] = { "'fault'", STATEMENT }, [TAKE] = { "'take'", STATEMENT },
    [ITERATE] = { "'iterate'", STATEMENT }, [IMPORT] = { "'import'", DECLARATION }, [MACHINE] = { "'machine'", DECLARATION },
    [EXTENSION] = { "'extension'", DECLARATION }, [CONST] = { "'const'", DECLARATION }, [PARAM] = { "'param'", DECLARATION },
    [ENUM] = { "'enum'", DECLARATION }, [REG] = { "'reg'", DECLARATION }, [FILEKW] = { "'file'", DECLARATION },
    [MEM] = { "'mem'", DECLARATION }, [OUTPUT] = { "'output'", DECLARATION }, [EXIT] = { "'exit'", DECLARATION },
    [INPUT] = { "'input'", DECLARATION }, [FORMAT] = { "'format'", DECLARATION }, [INSTR] = { "'instr'", DECLARATION },
    [FN] = { "'fn'", DECLARATION }, [PROC] = { "'proc'", DECLARATION }, [STEP] = { "'step'", DECLARATION },
    [TEST] = { "'test'", DECLARATION }, [MONITOR] = { "'monitor'", DECLARATION }, [USE] = { "'use'", DECLARATION },
    [RUN] = { "'run'", PLAIN }, [EXPECT] = { "'expect'", PLAIN },
};

/* Can the parser go on with this token? Words that would only be taken as names do not count. */
static bool acceptable(yyParser *yyp, int token)
{
    YYACTIONTYPE state = yyp->yytos->stateno, act = yy_find_shift_action((YYCODETYPE)token, state);
    if (act == YY_ERROR_ACTION || !token_info[token].text) return false;
    return !yyFallback[token] || act != yy_find_shift_action(yyFallback[token], state);
}

static void add_expected(char *out, size_t size, const char *text, unsigned *n)
{
    size_t used = strlen(out);
    snprintf(out + used, size - used, "%s%s", *n ? ", " : "", text);
    ++*n;
}

static bool is_comparison(int token)
{
    return token == EQ || token == NE || token == LT || token == LE || token == GT || token == GE || token == SLT || token == SLE || token == SGT || token == SGE;
}

static bool is_key_word(int token)
{
    const char *text = token_info[token].text;
    return text && text[0] == '\'' && isalpha((unsigned char)text[1]);
}

/* "found .. expected ..": whole families of tokens are called by the family's name. */
static void syntax_error(yyParser *yyp, int found, Token t)
{
    bool ok[YYNTOKEN], closers = false;
    for (int i = 1; i < YYNTOKEN; i++) {
        ok[i] = acceptable(yyp, i);
        if (ok[i] && token_info[i].class == CLOSER) closers = true;
    }
    Parser *p = yyp->p;
    p->failed = true;
    if (p->refused == t.s) return; /* what looked like a new beginning is none */
    p->unclosed = found && token_info[found].class == DECLARATION && ok[RBRACE];
    bool statement = ok[RETURN], value = ok[INT] && ok[LPAREN], declaration = ok[REG];
    char text[300] = "";
    unsigned n = 0;
    if (declaration) add_expected(text, sizeof text, "a declaration", &n);
    if (statement) add_expected(text, sizeof text, "a statement", &n);
    if (value) add_expected(text, sizeof text, "a value", &n);
    if (ok[PLUS] && !closers && !value) add_expected(text, sizeof text, "an operator", &n);
    bool mixed_up = found == EQUALS && ok[BECOMES];
    if (mixed_up) add_expected(text, sizeof text, "':='", &n);
    for (int i = 1; i < YYNTOKEN && !mixed_up; i++) {
        TokenClass class = token_info[i].class;
        if (!ok[i] || class == OPERATOR) continue;
        if (statement && (class == STATEMENT || class == WORD || i == LBRACE)) continue;
        if (value && (class == VALUE || class == WORD || i == LPAREN || i == LBRACE || i == IF || i == MATCH)) continue;
        if (declaration && class == DECLARATION) continue;
        if (ok[PLUS] && (i == LPAREN || i == LBRACKET || i == DOT)) continue;
        add_expected(text, sizeof text, token_info[i].text, &n);
    }
    if (!found) error_at(t.span, "found the end of the file, expected %s", n ? text : "more");
    else if (is_comparison(found) && ok[PLUS] && !ok[found]) error_at(t.span, "comparisons do not associate: write && or brackets");
    else if (n) error_at(t.span, "found %s'%.*s', expected %s", ok[ID] && is_key_word(found) ? "the key word " : "", t.n > 40 ? 40 : (int)t.n, t.s, text);
    else error_at(t.span, "found '%.*s', which cannot stand here", t.n > 40 ? 40 : (int)t.n, t.s);
}

/* Brackets that are open on the parser's stack, where some stand that are closed already: `fn f(..) {`. */
static unsigned open_brackets(const yyParser *yyp)
{
    unsigned n = 0;
    for (const yyStackEntry *e = yyp->yystack; e <= yyp->yytos; e++) {
        n += e->major == LBRACE || e->major == LPAREN || e->major == LBRACKET;
        n -= e->major == RBRACE || e->major == RPAREN || e->major == RBRACKET;
    }
    return n;
}

/* May this token begin a declaration or statement, seen from the end of a broken one? `previous` is the token before it. */
static bool begins(int kind, int previous, bool new_line)
{
    TokenClass class = token_info[kind].class;
    return class == DECLARATION || ((class == STATEMENT || class == WORD) && (previous == RBRACE || (new_line && class == STATEMENT)));
}

/* Skips to the end of what was broken: a `;` at the same depth of brackets, the bracket that closes around it, or what looks
 * like a new beginning. *t is the offending token, which the parser has dropped; returns the token to go on with. */
static int skip_broken(yyParser *yyp, Lexer *lx, int kind, Token *t, bool keep_first)
{
    unsigned target = open_brackets(yyp);
    int previous = 0;
    bool first = true;
    for (uint32_t line = t->span.line; kind && !lx->stop; first = false, line = t->span.line, previous = kind, kind = lexer_next(lx, t)) {
        bool closer = kind == RBRACE || kind == RPAREN || kind == RBRACKET;
        if (kind == SEMI && lx->depth <= target) return lexer_next(lx, t);
        if (closer && lx->depth < target) return kind;
        if (first ? keep_first : lx->depth == target && begins(kind, previous, t->span.line > line)) return kind;
    }
    return kind;
}

/* After an error the parser waits behind an error symbol for `;`. A declaration inside a block that could end here
 * is taken for a sign that its `}` is missing. */
static int recover(yyParser *yyp, Lexer *lx, int kind, Token *t)
{
    Parser *p = yyp->p;
    bool again = p->refused == t->s, close = p->unclosed && !again;
    bool keep = !again && token_info[kind].class == DECLARATION;
    Token semi = *t;
    p->refused = t->s;
    kind = skip_broken(yyp, lx, kind, t, keep);
    Parse(yyp, SEMI, semi);
    if (close) {
        lexer_close(lx);
        Parse(yyp, RBRACE, semi);
    }
    return kind;
}

void parse_source(uint32_t file, NodeList *decls)
{
    Parser ctx = { .decls = decls };
    Lexer lx;
    Token t;
    lexer_init(&lx, file);
    yyParser *parser = ParseAlloc(malloc, &ctx);
    if (!parser) die("out of memory");
    for (int kind = lexer_next(&lx, &t); !lx.stop && !error_limit();) {
        ctx.failed = ctx.unclosed = false;
        Parse(parser, kind, t);
        if (!kind) break;
        if (ctx.failed && parser->yytos->major == YYERRORSYMBOL) kind = recover(parser, &lx, kind, &t);
        else kind = lexer_next(&lx, &t);
        parser->yyerrcnt = -1; /* report the next error even when it comes at once */
    }
    ParseFree(parser, free);
}
}
