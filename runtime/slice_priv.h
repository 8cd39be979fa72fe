/* slice_priv.h: what slice_family.c gives to slice_delta.c. */
#ifndef TAPEOUT_SLICE_PRIV_H
#define TAPEOUT_SLICE_PRIV_H
#include "slice.h"

/* A bit of an address: the sum of some channels, at most one of which is 1. */
typedef struct {
    uint32_t n, *channel;
    float w;
} AddressPlane;
typedef struct {
    float least;   /* smallest weight of an address bit */
    uint32_t ncommon, nbits, nforms;
    uint32_t *pattern; /* [nforms] the address */
    float *bias;       /* [nforms] */
    Entry *common;
    AddressPlane *bit;
    uint32_t *table; /* [2^nbits] form, or UINT32_MAX */
} PlaneFamily;
typedef struct {
    uint32_t n;
    PlaneFamily *family;
} PlaneFamilies;
/* The forms that are wanted, as families; false when there are too many that are alone. */
bool plane_families(PlaneFamilies *out, Pool *p, const Forms *f, const bool *want);
/* Keys and queries: silu, normalised; beta: a sigmoid; gates: silu, whose value counts. */
typedef enum { FAMILY_KEY, FAMILY_BETA, FAMILY_GATE } FamilyUse;
/* The planes of the address and of the condition, and the forms' value when on (the smallest; for a gate any other is a fatal check). */
bool family_planes(Block *k, Int **x, const PlaneFamily *y, FamilyUse use, Ref *address, Ref *on, double *value);
#endif
