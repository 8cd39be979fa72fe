/* unit/conform.c: the detectors of the conformance kit, beside a machine of tests/machines: silent in the stock layer's arithmetic of both executors,
 * and each says its token when its fault is simulated; twice over in the shape of another head. */
#include "../../backend/build.h"
#include "../../backend/canary.h"
#include "../../frontend/frontend.h"
#include "../../runtime/runtime.h"
#include <stdlib.h>
#include <unistd.h>

static int failures;
enum { TOKENS = 200 };

static Model *compile(const char *target)
{
    char path[] = "/tmp/tapeout-conform-XXXXXX", *err = NULL;
    int fd = mkstemp(path);
    Design *d = design_load("tests/machines/subleq.ckt", NULL, 0);
    if (fd < 0 || !d) exit(1);
    close(fd);
    BuildOptions o = {.target = target_find(target), .canaries = true};
    Build b = build_machine(circuit_optimize(d->circuit), &o);
    if (b.error || !chip_write(b.chip, path, NULL, NULL)) fprintf(stderr, "%s\n", b.error ? b.error : b.chip->error), exit(1);
    Model *m = model_open(path, &err);
    if (!m) fprintf(stderr, "%s\n", err), exit(1);
    unlink(path);
    return m;
}

/* The kind that ends a run from the prompt. */
static const char *ending(const Model *m, const Backend *b, uint32_t faults)
{
    char *err = NULL;
    BackendOptions o = {.faults = faults};
    Machine *mc = machine_prompted(m, b, &o, NULL, &err);
    if (!mc) fprintf(stderr, "%s\n", err), exit(1);
    StopInfo s = machine_run(mc, &(LoopOptions){.max_steps = TOKENS});
    machine_close(mc);
    return s.kind ? s.kind->name : "none";
}

static void expect(const Model *m, const Backend *b, uint32_t faults, const char *name, const char *what)
{
    const char *said = ending(m, b, faults);
    if (strcmp(said, name)) failures++, fprintf(stderr, "%s: %s: the run ends with %s, expected %s\n", m->path, what, said, name);
}

static void check(const char *target)
{
    Model *m = compile(target);
    float eps = m->geo.eps;
    expect(m, &dense_backend, 0, "stop", "dense");
    expect(m, backend_find(NULL), 0, "stop", "sparse");
    expect(m, &dense_backend, FAULT_STATE_BF16, "rounded.state", "state in bfloat16");
    expect(m, &dense_backend, FAULT_L2_MEAN, "wrong.epsilon", "epsilon on the mean");
    expect(m, &dense_backend, FAULT_DROP_STATE, "lost.state", "state lost");
    expect(m, &dense_backend, FAULT_DROP_CONV, "lost.conv", "convolution lost");
    m->geo.eps = 1e-5f;
    expect(m, &dense_backend, 0, "wrong.epsilon", "another rms_norm_eps");
    m->geo.eps = eps;
    m->bf16 = true; /* activations; the weights are as they were */
    expect(m, &dense_backend, 0, "rounded.weights", "activations in bfloat16");
    model_close(m);
}

int main(void)
{
    check("native64");
    check("native");
    return failures != 0;
}
