/* batch_list.c: `tapeout run --batch LIST`: reads the list, runs its machines, writes their outputs and a line for each. */
#include "batch.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    const char *firmware, *output; /* output NULL: dropped */
    uint32_t file;                 /* number of the firmware */
    uint32_t input;                /* number of the input, or NO_INPUT */
} Line;

typedef struct {
    const char *path;
    char *text;
    size_t n;
} Input;
enum { NO_INPUT = UINT32_MAX };

typedef struct {
    const BatchListOptions *o;
    Model *m;
    char *text;
    VEC(Line) line;
    VEC(Firmware *) firmware;
    VEC(Input) input; /* each file once */
    BatchJob *job;
    char *err;
} List;

/* A "-" stands for no firmware. */
static bool take_firmware(List *l, Line *line, uint32_t number)
{
    bool none = !strcmp(line->firmware, "-");
    for (uint32_t i = 0; i < l->firmware.n; i++)
        if (none ? !l->firmware.data[i] : l->firmware.data[i] && !strcmp(l->firmware.data[i]->path, line->firmware)) {
            line->file = i;
            return true;
        }
    Firmware *f = NULL;
    char *err = NULL;
    if (none ? model_needs_firmware(l->m) && !fail(&err, "%s runs firmware, and none is given", l->m->name)
             : !(f = firmware_open(line->firmware, &err)) || !firmware_fits(f, l->m, &err)) {
        fail(&l->err, "%s:%u: %s", l->o->list, number, err);
        free(err);
        firmware_close(f);
        return false;
    }
    line->file = vec_push(&l->firmware, f);
    return true;
}

static bool same_output(const List *l, const char *output)
{
    for (uint32_t i = 0; i < l->line.n; i++)
        if (l->line.data[i].output && !strcmp(l->line.data[i].output, output)) return true;
    return false;
}

static bool take_input(List *l, Line *line, const char *path, uint32_t number)
{
    for (uint32_t i = 0; i < l->input.n; i++)
        if (!strcmp(l->input.data[i].path, path)) {
            line->input = i;
            return true;
        }
    Input in = {.path = path};
    if (!(in.text = read_file(path, &in.n))) return fail(&l->err, "%s:%u: %s: %s", l->o->list, number, path, strerror(errno));
    line->input = vec_push(&l->input, in);
    return true;
}

/* Cuts s at its first tab; what is behind it, NULL when there is none. */
static char *cut(char *s)
{
    char *tab = strchr(s, '\t');
    if (tab) *tab++ = '\0';
    return tab;
}

static bool take_line(List *l, char *s, uint32_t number)
{
    if (!*s || *s == '#') return true;
    char *output = cut(s), *input = output ? cut(output) : NULL;
    Line line = {.firmware = s, .output = output && *output ? output : NULL, .input = NO_INPUT};
    if (input && strchr(input, '\t')) return fail(&l->err, "%s:%u: found more than FIRMWARE, OUTPUT and INPUT between tabs", l->o->list, number);
    if (line.output && same_output(l, line.output)) return fail(&l->err, "%s:%u: %s is the output of two machines", l->o->list, number, line.output);
    if (!*s) return fail(&l->err, "%s:%u: the firmware is missing", l->o->list, number);
    if (!take_firmware(l, &line, number) || (input && *input && !take_input(l, &line, input, number))) return false;
    vec_push(&l->line, line);
    return true;
}

static bool read_list(List *l)
{
    size_t n = 0;
    uint32_t number = 0;
    if (!(l->m = model_open(l->o->chip, &l->err))) return false;
    if (!(l->text = read_file(l->o->list, &n))) return fail(&l->err, "%s: %s", l->o->list, strerror(errno));
    if (strlen(l->text) != n) return fail(&l->err, "%s: not a text file", l->o->list);
    for (char *s = l->text, *end; *s; s = end) {
        end = strchr(s, '\n');
        if (end) *end++ = '\0';
        else end = s + strlen(s);
        if (!take_line(l, s, ++number)) return false;
    }
    return l->line.n || fail(&l->err, "%s: there is no machine in it", l->o->list);
}

static bool write_output(List *l, uint32_t i)
{
    const char *path = l->line.data[i].output;
    const BatchJob *j = &l->job[i];
    if (!path) return true;
    char *temp = xfmt("%s.tmp%ld", path, (long)getpid());
    FILE *f = fopen(temp, "wb");
    if (!f) return fail(&l->err, "%s: %s", path, strerror(errno));
    bool ok = fwrite(j->output ? j->output : (const uint8_t *)"", 1, j->noutput, f) == j->noutput;
    ok &= fclose(f) == 0;
    if (ok && rename(temp, path) == 0) return true;
    unlink(temp);
    return fail(&l->err, "%s: cannot be written", path);
}

/* What `run` with this firmware would return; a status whose low byte is 0 must not look like success. */
static int status_of(const BatchJob *j)
{
    if (j->why != STOP_EXIT) return 1;
    return j->payload & 0xff || !j->payload ? (int)(j->payload & 0xff) : 1;
}

static bool print_results(List *l, int *status)
{
    static const char *const how[] = {[STOP_EXIT] = "exit", [STOP_FAULT] = "fault", [STOP_STEPS] = "steps", [STOP_CHECK] = "check", [STOP_BROKEN] = "broken"};
    bool ok = true;
    for (uint32_t i = 0; i < l->line.n; i++) {
        const BatchJob *j = &l->job[i];
        int s = status_of(j);
        if (s) *status = 1;
        printf("%d\t%" PRIu64 "\t%" PRIu64 "\t%zu\t%s%s%s\t%s\n", s, j->steps, j->tokens, j->noutput, how[j->why], j->why == STOP_FAULT ? " " : "",
               j->why == STOP_FAULT ? j->kind->name : "", l->line.data[i].firmware);
        ok &= ok && write_output(l, i);
    }
    return ok;
}

static void print_stats(const List *l, const BatchReport *r)
{
    uint64_t tokens = 0, steps = 0;
    double s = r->seconds > 0 ? r->seconds : 1e-9;
    for (uint32_t i = 0; i < l->line.n; i++) tokens += l->job[i].tokens, steps += l->job[i].steps;
    fprintf(stderr, "machines: %u\ntokens: %" PRIu64 "\nsteps: %" PRIu64 "\ntokens_per_step: %.4f\nseconds: %.6f\n", l->line.n, tokens, steps,
            steps ? (double)tokens / (double)steps : 0.0, r->seconds);
    fprintf(stderr, "tokens_per_second: %.0f\nsteps_per_second: %.0f\n", (double)tokens / s, (double)steps / s);
    if (*r->why) fprintf(stderr, "path: one machine after the other (%s)\n", r->why);
    if (r->operations)
        fprintf(stderr, "threads: %u\nopening_seconds: %.6f\nbytes_per_machine: %zu\nplanes: %u\noperations: %u\nchecks: %u\ncompilations: %u\n", r->threads,
                r->opening, r->bytes, r->planes, r->operations, r->checks, r->compilations);
    if (r->waves) fprintf(stderr, "device: %s\nblocks: %u\nlanes_per_block: %u\nwaves: %u\nlaunches: %u\n", l->o->device, r->blocks, r->lanes, r->waves, r->launches);
}

static bool run_list(List *l, int *status)
{
    BatchOptions o = {.max_steps = l->o->max_steps, .single = l->o->single};
    BatchReport report;
    if (l->o->device && !(o.device = gpu_device(l->o->device, &l->err))) return false;
    l->job = calloc(l->line.n, sizeof *l->job);
    if (!l->job) die("out of memory");
    for (uint32_t i = 0; i < l->line.n; i++) {
        const Line *x = &l->line.data[i];
        l->job[i].firmware = l->firmware.data[x->file];
        if (x->input != NO_INPUT) l->job[i].input = (const uint8_t *)l->input.data[x->input].text, l->job[i].ninput = l->input.data[x->input].n;
    }
    if (!batch_run(l->m, l->job, l->line.n, &o, &report, &l->err)) return false;
    bool ok = print_results(l, status);
    if (l->o->stats) print_stats(l, &report);
    return ok;
}

int runtime_batch(const BatchListOptions *o)
{
    List l = {.o = o};
    int status = 0;
    if (!read_list(&l) || !run_list(&l, &status)) status = 1;
    if (l.err) fprintf(stderr, "tapeout: %s\n", l.err);
    for (uint32_t i = 0; l.job && i < l.line.n; i++) free(l.job[i].output);
    for (uint32_t i = 0; i < l.firmware.n; i++) firmware_close(l.firmware.data[i]);
    for (uint32_t i = 0; i < l.input.n; i++) free(l.input.data[i].text);
    free(l.input.data);
    free(l.job);
    free(l.line.data);
    free(l.firmware.data);
    free(l.text);
    free(l.err);
    model_close(l.m);
    return status;
}
