/* barriers.h: for tests that leave out a kernel's barriers, each of which must show. */
#ifndef TAPEOUT_BARRIERS_H
#define TAPEOUT_BARRIERS_H
#include "../../dsl/util.h"
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
enum { SLOW = 1 }; /* a switch of fibers costs a call of the system: barriers are left out in the plain build alone */
#else
enum { SLOW = 0 };
#endif

/* The lines of a kernel that have a barrier. */
static uint32_t barriers(const char *kernel, uint32_t *line, uint32_t most)
{
    char text[512];
    uint32_t n = 0;
    FILE *f = fopen(kernel, "r");
    if (!f) die("%s is not here", kernel);
    for (uint32_t i = 1; fgets(text, sizeof text, f); i++)
        if (strstr(text, "GPU_SYNC();") && n < most) line[n++] = i;
    fclose(f);
    return n;
}

#endif
