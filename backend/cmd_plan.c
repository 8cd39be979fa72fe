/* cmd_plan.c: `run --backend plan`: the plan's simulator as a back end of the runtime, so that loop, trace and messages are the same
 * as with weights. There are no state lanes: the simulator fills its own state from the image, and `get` shows nothing. */
#include "cmd_plan.h"
#include "cli.h"
#include "plan.h"
#include <jansson.h>

static const Image *firmware; /* a back end's `open` is not told; set by plan_run before it */

typedef struct {
    const Model *m;
    PlanSim *sim;
} PlanBackend;

/* The file's strings were not checked by the loader, which does not need them. */
static Recipe recipe(const Model *m)
{
    const json_t *protocol = json_object_get(m->manifest, "protocol");
    const char *target = json_string_value(json_object_get(m->manifest, "target"));
    return (Recipe){ m->netlist, target ? target : "", m->bf16, (unsigned)json_integer_value(json_object_get(protocol, "payload")),
                     (uint64_t)json_integer_value(json_object_get(protocol, "vocab_limit")) };
}

static void *plan_open(const Model *m, const BackendOptions *o, char **err)
{
    (void)o;
    const char *why = NULL;
    Recipe r = recipe(m);
    PlanBackend *b = xalloc(sizeof *b);
    b->m = m;
    b->sim = plan_again(&r, firmware, &why);
    if (b->sim) return b;
    fail(err, "%s: no plan can be made of it: %s", m->path, why);
    return NULL;
}

static uint32_t plan_tokens(void *self, uint32_t token, uint32_t *out, uint32_t max)
{
    PlanBackend *b = self;
    uint32_t n = 0;
    while (n < max) {
        out[n++] = token = plansim_step(b->sim, token);
        const ChipKind *k = model_kind(b->m, token);
        if (!k || k->role != CHIP_TRACE) break;
    }
    return n;
}

static void plan_get(void *self, uint32_t layer, uint32_t head, uint32_t row, float *lanes)
{
    const PlanBackend *b = self;
    (void)layer, (void)head, (void)row;
    memset(lanes, 0, b->m->geo.dv * sizeof *lanes);
}

static void plan_set(void *self, uint32_t layer, uint32_t head, uint32_t row, const float *lanes)
{
    (void)self, (void)layer, (void)head, (void)row, (void)lanes;
}

static void plan_close(void *self) { (void)self; }

static const Backend plan_backend = { "plan", plan_open, plan_tokens, plan_get, plan_set, plan_close, NULL, NULL, NULL };

int plan_run(RunOptions *o)
{
    char *err = NULL;
    if (o->check) return usage_error("--check compares a chip's state, --backend plan has none");
    if (o->signature) return usage_error("--signature reads a chip's state, --backend plan has none");
    if (o->firmware && !(firmware = image_open(o->firmware, &err))) {
        input_error("%s", err);
        free(err);
        return 1;
    }
    o->use = &plan_backend;
    return runtime_run(o);
}
