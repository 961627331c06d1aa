#include "wk.h"
/* What IEEE 754 rounds once: quotient, root and remainder of each pair, as the compiler expands them. */

/* The remainder of x / y with the sign of x, exact: the quotient's integer bits are taken off STEP at a time, so that every multiply-add
 * is exact. The compiler's own % on floats is not. */
#define REMAINDER(NAME, T, STEP, FREXP_MANT, FREXP_EXP, LDEXP, FMA, RINT, COPYSIGN, FABS, NAN_OF)                     \
  static T NAME(T x, T y) {                                                                                           \
    T a = FABS(x), b = FABS(y);                                                                                       \
    if (!(a < (T)INFINITY) || !(b > 0)) return NAN_OF;                                                                \
    if (b == (T)INFINITY || a < b) return b == b ? x : NAN_OF;                                                        \
    if (b != b) return NAN_OF;                                                                                        \
    int left = FREXP_EXP(a) - FREXP_EXP(b), back = FREXP_EXP(b);                                                      \
    T r = FREXP_MANT(a), d = FREXP_MANT(b);                                                                           \
    T inverse = (T)1 / d;                                                                                             \
    for (;;) {                                                                                                        \
      int n = left < STEP ? left : STEP;                                                                              \
      r = LDEXP(r, n);                                                                                                \
      r = FMA(-RINT(r * inverse), d, r);                                                                              \
      r = r < 0 ? r + d : r;                                                                                          \
      if (left <= STEP) break;                                                                                        \
      left -= STEP;                                                                                                   \
    }                                                                                                                 \
    r = r >= d ? r - d : r;                                                                                           \
    return COPYSIGN(LDEXP(r, back), x);                                                                               \
  }

REMAINDER(rem32, float, 11, __builtin_amdgcn_frexp_mantf, __builtin_amdgcn_frexp_expf, __builtin_ldexpf, __builtin_fmaf,
          __builtin_rintf, __builtin_copysignf, __builtin_fabsf, __builtin_nanf(""))
REMAINDER(rem64, double, 25, __builtin_amdgcn_frexp_mant, __builtin_amdgcn_frexp_exp, __builtin_ldexp, __builtin_fma,
          __builtin_rint, __builtin_copysign, __builtin_fabs, __builtin_nan(""))

kernel void round32(global const float *x, global const float *y, global float *quotient, global float *root,
                    global float *remainder) {
  int i = GX;
  quotient[i] = x[i] / y[i];
  root[i] = __builtin_sqrtf(x[i]);
  remainder[i] = rem32(x[i], y[i]);
}

kernel void round64(global const double *x, global const double *y, global double *quotient, global double *root,
                    global double *remainder) {
  int i = GX;
  quotient[i] = x[i] / y[i];
  root[i] = __builtin_sqrt(x[i]);
  remainder[i] = rem64(x[i], y[i]);
}
