/* prompt.h: a machine's initial contents as tokens. */
#ifndef TAPEOUT_PROMPT_H
#define TAPEOUT_PROMPT_H
#include "../runtime/runtime.h"

typedef VEC(uint32_t) Prompt;
/* The prompt that fills a chip with `image` (NULL: no firmware) and starts it; after it, greedy generation is the run.
 * False with *err when the chip has no such tokens for something that must be filled. The state must be all zero before. */
bool prompt_make(const Model *m, const Image *image, Prompt *out, char **err);
#endif
