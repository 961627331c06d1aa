// An index too large, in a function that the compiler inlines into another, and that into the kernel.
static inline float element(__global const float *x, int i) {
    return x[i + 1];
}

static inline float sum(__global const float *x, int i) {
    return element(x, i) + 1.0f;
}

__kernel void inlined(__global const float *x, __global float *y) {
    int i = (int)__builtin_amdgcn_workitem_id_x();
    y[i] = sum(x, i);
}
