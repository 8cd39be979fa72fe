/* gpu_host.c: a "GPU" that is the host, so that the kernels' logic is tested where there is none: the same source (gpu_kernel.h), one block after the other, a
 * fiber per thread of a block. Fibers run one at a time from barrier to barrier, in an order that a seed shuffles anew for every stretch, so that a barrier that
 * is missing shows as a wrong result. With `parallel` each is a thread of the operating system and the barrier one of pthread's: for -fsanitize=thread.
 * It is an aid for tests: slow, and nothing to run machines with. */
#include "gpu_kernel.h"
#include "gpu_dense.h"
#include "runtime.h"
#include <pthread.h>
#include <stdlib.h>
#include <ucontext.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

enum { STACK = 256 << 10 };

typedef struct {
    void (*thread)(const void *argument);
    const void *argument;
    GpuSelf self;
    ucontext_t context;
    jmp_buf place;
    void *stack;
    bool begun, done;
    uint64_t barriers;
    uint32_t skip;
    const char *skip_in;
    void *fake; /* the address sanitizer's */
    pthread_barrier_t *barrier; /* parallel */
} Fiber;

static _Thread_local Fiber *running;
static _Thread_local struct {
    ucontext_t context;
    jmp_buf place;
    void *fake;
    const void *bottom;
    size_t size;
} scheduler;

const GpuSelf *gpu_self(void) { return &running->self; }

/* ---- fibers ---- */
/* Where the sanitizer wants to know of every switch, the slow way (swapcontext asks the system about signals each time). */
#if defined(__SANITIZE_ADDRESS__)
__attribute__((noinline)) static void leave(Fiber *f)
{
    __sanitizer_start_switch_fiber(f->done ? NULL : &f->fake, scheduler.bottom, scheduler.size);
    swapcontext(&f->context, &scheduler.context);
    __sanitizer_finish_switch_fiber(f->fake, &scheduler.bottom, &scheduler.size);
}

static void begin_fiber(void)
{
    __sanitizer_finish_switch_fiber(NULL, &scheduler.bottom, &scheduler.size);
    running->thread(running->argument);
    running->done = true;
    leave(running);
}

__attribute__((noinline)) static void enter(Fiber *f)
{
    __sanitizer_start_switch_fiber(&scheduler.fake, f->stack, STACK);
    swapcontext(&scheduler.context, &f->context);
    __sanitizer_finish_switch_fiber(scheduler.fake, NULL, NULL);
}
#else
__attribute__((noinline)) static void leave(Fiber *f)
{
    if (!_setjmp(f->place)) _longjmp(scheduler.place, 1);
}

static void begin_fiber(void)
{
    running->thread(running->argument);
    running->done = true;
    _longjmp(scheduler.place, 1);
}

__attribute__((noinline)) static void enter(Fiber *f)
{
    if (_setjmp(scheduler.place)) return;
    if (f->begun) _longjmp(f->place, 1);
    f->begun = true;
    setcontext(&f->context);
}
#endif

static bool ends_with(const char *s, const char *end) { return strlen(s) >= strlen(end) && !strcmp(s + strlen(s) - strlen(end), end); }

void gpu_barrier(const char *file, uint32_t line)
{
    Fiber *f = running;
    f->barriers++;
    if (line == f->skip && ends_with(file, f->skip_in)) return;
    if (f->barrier) pthread_barrier_wait(f->barrier);
    else leave(f);
}

static uint64_t random_next(uint64_t *s)
{
    *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
    return *s;
}

static void shuffle(uint32_t *order, uint32_t n, uint64_t *seed)
{
    for (uint32_t i = n; *seed && i > 1; i--) {
        uint32_t k = (uint32_t)(random_next(seed) % i), t = order[i - 1];
        order[i - 1] = order[k];
        order[k] = t;
    }
}

/* All of a block from barrier to barrier. A thread that has ended while others wait at a barrier would hang a GPU. */
static bool run_fibers(Fiber *f, uint32_t n, uint64_t *seed)
{
    uint32_t *order = xrealloc(NULL, n * sizeof *order), left = n;
    for (uint32_t i = 0; i < n; i++) order[i] = i;
    while (left) {
        shuffle(order, n, seed);
        for (uint32_t i = 0; i < n; i++) {
            running = &f[order[i]];
            enter(running);
        }
        left = 0;
        for (uint32_t i = 0; i < n; i++) left += !f[i].done;
        if (left && left < n) break;
    }
    free(order);
    return !left;
}

static void *run_thread(void *f)
{
    running = f;
    running->thread(running->argument);
    return NULL;
}

static bool run_parallel(Fiber *f, uint32_t n)
{
    pthread_t *id = xrealloc(NULL, n * sizeof *id);
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, n);
    for (uint32_t i = 0; i < n; i++) {
        f[i].barrier = &barrier;
        if (pthread_create(&id[i], NULL, run_thread, &f[i])) die("no thread");
    }
    for (uint32_t i = 0; i < n; i++) pthread_join(id[i], NULL);
    pthread_barrier_destroy(&barrier);
    free(id);
    return true;
}

__attribute__((noinline)) static void make_fiber(Fiber *f, void *stack)
{
    f->stack = stack;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = stack;
    f->context.uc_stack.ss_size = STACK;
    makecontext(&f->context, begin_fiber, 0);
}

bool gpu_host_launch(GpuDevice *d, void (*thread)(const void *), const void *argument, uint32_t blocks, uint32_t threads, size_t shared, char **err)
{
    Fiber *f = calloc(threads, sizeof *f);
    uint8_t *stacks = d->parallel ? NULL : malloc((size_t)threads * STACK), *memory = aligned_alloc(64, (shared + 63) / 64 * 64 + 64);
    if (!f || !memory || (!stacks && !d->parallel)) die("out of memory");
    bool ok = true;
    for (uint32_t b = 0; ok && b < blocks; b++) {
        memset(memory, 0xa5, shared); /* nothing is there at first */
        for (uint32_t i = 0; i < threads; i++) {
            f[i] = (Fiber){.thread = thread, .argument = argument, .self = {i, threads, b, blocks, (uint32_t *)(void *)memory}, .skip = d->skip, .skip_in = d->skip_in};
            if (d->parallel) continue;
            make_fiber(&f[i], stacks + (size_t)i * STACK);
        }
        ok = d->parallel ? run_parallel(f, threads) : run_fibers(f, threads, &d->seed);
    }
    free(f);
    free(stacks);
    free(memory);
    return ok || fail(err, "threads of a block part at a barrier");
}

/* ---- the device ---- */
static bool host_open(GpuDevice *d, char **err)
{
    (void)err;
    d->processors = 2, d->threads = 32, d->shared = 227 << 10;
    return true;
}

static void *host_alloc(GpuDevice *d, size_t bytes, char **err)
{
    void *p = calloc(1, bytes ? bytes : 1);
    (void)d;
    if (!p) fail(err, "out of memory (%zu bytes)", bytes);
    return p;
}

static void host_free(GpuDevice *d, void *p)
{
    (void)d;
    free(p);
}

static bool host_copy(GpuDevice *d, void *to, const void *from, size_t bytes, char **err)
{
    (void)d, (void)err;
    if (bytes) memcpy(to, from, bytes);
    return true;
}

static void planes_thread(const void *run) { gpu_planes_thread(*(const GpuRun *)run); }

static bool host_run(GpuDevice *d, const GpuRun *r, uint32_t blocks, uint32_t threads, char **err)
{
    return gpu_host_launch(d, planes_thread, r, blocks, threads, gpu_shared_bytes(&r->g, r->lanes), err);
}

static void dense_thread(const void *step) { gpu_dense_thread(*(const DenseStep *)step); }

static bool host_tokens(GpuDevice *d, const DenseStep *step, uint32_t n, uint32_t tokens, void **plan, char **err)
{
    (void)plan;
    for (uint32_t k = 0; k < tokens && !step->now->stop; k++)
        for (uint32_t i = 0; i < n; i++) {
            uint32_t threads = dense_threads(&step[i], d->threads);
            if (!gpu_host_launch(d, dense_thread, &step[i], step[i].blocks, threads, dense_shared(&step[i], threads), err)) return false;
        }
    return true;
}

static void host_forget(GpuDevice *d, void *plan) { (void)d, (void)plan; }

GpuDevice gpu_host = {"cuda-host", host_open, host_alloc, host_free, host_copy, host_copy, host_run, host_tokens, host_forget, 0, 0, 0, 1, false, 0, NULL};
