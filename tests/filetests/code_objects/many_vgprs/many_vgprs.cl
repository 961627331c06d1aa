#include "wk.h"
/* 280 values of a work-item are live at once, so that they are in VGPRs beyond v255. */
#define COUNT 280

kernel void many_vgprs(global const uint *a, global uint *out, int n)
{
    uint v[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        v[k] = a[(GX * 7 + k * 13) & (n - 1)];
    /* Each round uses all values, each with another one. */
#pragma unroll 1
    for (int round = 0; round < 3; round++)
#pragma unroll
        for (int k = 0; k < COUNT; k++)
            v[k] = v[k] * 3 + (v[(k * 11 + 7) % COUNT] ^ k);
    uint sum = 0;
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        sum = sum * 5 + v[k];
    out[GX] = sum;
}
