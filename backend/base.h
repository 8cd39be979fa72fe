/* base.h: a stock Qwen3.5 checkpoint folder, read in place: config.json and one or several safetensors files. The text part of a model with
 * vision is taken from it. */
#ifndef TAPEOUT_BASE_H
#define TAPEOUT_BASE_H
#include "backend.h"
#include "export.h"

typedef struct {
    const char *dir;
    json_t *config; /* of the text model */
    Geometry geo;   /* vocab: rows of the embedding */
    bool bf16, tied;
    bool *full;     /* [geo.layers] */
    uint32_t nfiles;
    StFile **file;
} Base;

/* Reads config.json alone. False and a malloc'd message when it describes no model that a chip can stand before. */
bool base_shape(Base *b, const char *dir, char **err);
/* Maps the weights and checks that every tensor of the shape is there with its size and dtype, and no other. After base_shape. */
bool base_open(Base *b, char **err);
/* The tensor of that name in the text model's terms ("model.layers.0..."); NULL when there is none. */
const StTensor *base_tensor(const Base *b, const char *name);
/* out[n] = elements [at, at + n) as float32. */
void base_read(const StTensor *t, uint64_t at, uint64_t n, float *out);
/* The memory of a tensor that is not needed again. */
void base_forget(const StTensor *t);
void base_close(Base *b);
/* The shape as a target for `build`; its hidden size for both together is still to be chosen. */
Target base_target(const Base *b);
#endif
