/* base.h: a stock checkpoint as the base model that a chip is put before. */
#ifndef TAPEOUT_BASE_H
#define TAPEOUT_BASE_H
#include "../runtime/stock.h"
#include "backend.h"

/* checkpoint_config for a model that a chip can stand before. */
bool base_config(Checkpoint *b, const char *dir, char **err);
/* The shape as a target for `build`; its hidden size for both together is still to be chosen. */
Target base_target(const Checkpoint *b);
#endif
