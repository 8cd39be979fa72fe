/* folder.h: for tests that write chips and checkpoints: a folder that goes when they end, and CHECK. */
#ifndef TAPEOUT_FOLDER_H
#define TAPEOUT_FOLDER_H
#include "../../backend/build.h"
#include "../../frontend/frontend.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failures;
#define CHECK(cond, ...) ((void)((cond) || (failures++, fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))))

static char folder[] = "/tmp/unit-folder-XXXXXX";
static const char *in_folder(const char *name) { return xfmt("%s/%s", folder, name); }

/* The path of a chip of that machine. */
static const char *built(const char *source, const char *name, const Target *t)
{
    Design *d = design_load(source, NULL, 0);
    BuildOptions o = { .target = t, .bf16 = t->bf16, .vocab = 4096 };
    Build b = build_machine(circuit_optimize(d->circuit), &o);
    if (b.error || !chip_write(b.chip, in_folder(name), NULL, NULL)) die("%s: %s", source, b.error ? b.error : b.chip->error);
    return in_folder(name);
}

static void folder_begin(void)
{
    if (!mkdtemp(folder)) die("%s", folder);
}

static void remove_files(const char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *f; d && (f = readdir(d));)
        if (strcmp(f->d_name, ".") && strcmp(f->d_name, "..") && remove(xfmt("%s/%s", dir, f->d_name))) remove_files(xfmt("%s/%s", dir, f->d_name));
    if (d) closedir(d);
    remove(dir);
}

/* The exit status of the test. */
static int folder_end(void)
{
    remove_files(folder);
    return failures != 0;
}
#endif
