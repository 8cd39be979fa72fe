/* trace.h: reading a token trace, and checking one. A trace is what `run --trace` writes: the tokens that were fed to the model, one a line, as the
 * name of the kind, a blank and the payload in hexadecimal digits without leading zeros. The first is the start. */
#ifndef TAPEOUT_TRACE_H
#define TAPEOUT_TRACE_H
#include "runtime.h"

/* ---- trace.c ---- */
typedef struct TraceFile TraceFile;
TraceFile *trace_open(const Model *m, const char *path, char **err);
/* The next token: 1; 0 at the end; -1 and *err when the line is none. `fed`: where the host feeds an input (whose kind may share its name). */
int trace_next(TraceFile *t, bool fed, uint32_t *token, char **err);
void trace_close(TraceFile *t);

/* ---- follow.c ---- */
/* A trace that is made while it is checked: begin, next until it gives 0 (else 1: a token, as a host would feed it, the start first), end. */
typedef struct {
    void *ctx;
    bool (*begin)(void *ctx, const Model *m, const Image *image, char **err); /* image NULL: nothing is loaded */
    int (*next)(void *ctx, uint32_t *token);
    void (*end)(void *ctx); /* also after a failed begin; another begin may follow */
} TraceMaker;
typedef struct {
    const char *chip, *firmware, *trace; /* firmware NULL: nothing is loaded */
    TraceMaker *maker;                   /* instead of a trace */
    const char *single;                  /* why one token at a time, on the default back end; NULL: planes */
    bool stats;
} FollowOptions;
/* `tapeout check`: the whole of it, messages included. Returns the process's exit status: 0 when the model, fed the trace's tokens, says each next
 * one; 1 with the first wrong position, or a message, when not. */
int runtime_follow(const FollowOptions *o);
#endif
