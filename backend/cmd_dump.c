/* cmd_dump.c: `dump SPEC --after LEVEL`: any level of the compilation as text. A SPEC that ends in .net is a netlist already. */
#include "../dsl/dsl.h"
#include "cli.h"
#include <errno.h>
#include <string.h>

static int dump_tree(const Args *a)
{
    uint32_t root;
    NodeList *decls = program_parse(a->input[0], &root);
    if (!decls || error_count()) return 1;
    tree_print(decls, stdout);
    return 0;
}

/* NULL after a printed error. */
static Circuit *load_circuit(const Args *a)
{
    const char *path = a->input[0], *dot = strrchr(path, '.'), *err;
    if (!dot || strcmp(dot, ".net")) {
        Design *d = load_design(a, true);
        return d ? d->circuit : NULL;
    }
    size_t n;
    const char *text = read_file(path, &n);
    Circuit *c = text ? circuit_parse(text, &err) : NULL;
    if (!c) input_error("%s: %s", path, text ? err : strerror(errno));
    return c;
}

static int dump_netlist(const Args *a)
{
    Circuit *c = load_circuit(a);
    if (!c) return 1;
    circuit_print(c, stdout);
    return 0;
}

static int dump_optimized(const Args *a)
{
    Circuit *c = load_circuit(a);
    if (!c) return 1;
    circuit_print(circuit_optimize(c), stdout);
    return 0;
}

static int dump_the_plan(const Args *a)
{
    Circuit *c = load_circuit(a);
    return c ? dump_plan(a, c) : 1;
}

/* In the order of the compilation; the names are those that main.c allows. */
static const struct {
    const char *name;
    Command *dump;
} levels[] = { { "tree", dump_tree }, { "netlist", dump_netlist }, { "optimized", dump_optimized }, { "plan", dump_the_plan } };

int cmd_dump(const Args *a)
{
    if (!a->after) return usage_error("dump: --after LEVEL is missing");
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (!strcmp(levels[i].name, a->after)) return levels[i].dump(a);
    die("no level %s", a->after);
}
