/* norms.c: whether a chip's norms are no more than a change of unit: the pilots stand in every embedding, nothing writes them, and their squares
 * alone give the factor 2^-K (that data cannot disturb it is part of the chip's proof). */
#include "sparse.h"

static bool writes_pilots(const float *pilot, const Tensor *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (pilot[t->row[i]] != 0) return true;
    return t->fill != 0;
}

static bool embedded(const Model *m, const float *pilot)
{
    uint64_t good = 0;
    for (uint32_t i = 0; i < m->embed_bit.n; i++)
        if (pilot[m->embed_bit.col[i]] != 0) return false;
    for (uint32_t i = 0; i < m->embed_kind.n; i++) {
        float p = pilot[m->embed_kind.col[i]];
        if (p != 0 && m->embed_kind.value[i] != ldexpf(p, m->pilot_scale)) return false;
        good += p != 0;
    }
    return good == (uint64_t)m->npilots * m->nkinds;
}

bool pilots_hold(const Model *m, float *pilot)
{
    float sum = 0;
    for (uint32_t i = 0; i < m->npilots; i++) pilot[m->pilot[i]] = m->pilot_value[i];
    for (uint32_t c = 0; c < m->geo.hidden; c++) {
        float x = ldexpf(pilot[c], m->pilot_scale);
        sum += x * x;
    }
    if (rsqrtf(sum / (float)m->geo.hidden + m->geo.eps) != ldexpf(1, -m->pilot_scale) || !embedded(m, pilot)) return false;
    for (uint32_t i = 0; i < m->geo.layers; i++) {
        const Layer *l = &m->layer[i];
        if (writes_pilots(pilot, &l->t[T_DOWN]) || writes_pilots(pilot, &l->t[l->full ? T_O_PROJ : T_OUT])) return false;
    }
    return true;
}

static bool usable_gain(float g)
{
    int e;
    return g == 0 || fabsf(frexpf(g, &e)) == 0.5f;
}

float *norm_gains(const Model *m, Pool *p, const float *pilot, const Tensor *norm)
{
    float *gain = tensor_vector(p, norm), unit = ldexpf(1, -m->pilot_scale);
    for (uint32_t c = 0; c < m->geo.hidden; c++) {
        gain[c] += 1.0f;
        if (!usable_gain(gain[c])) return NULL;
        if (pilot[c] == 0) gain[c] *= unit;
    }
    return gain;
}
