// What a loader must relocate: addresses of variables and functions in initialised data. Two kernels in one file.
#define DEVICE __attribute__((device))
#define KERNEL extern "C" __attribute__((global)) void

DEVICE int value = 7;
DEVICE int zeros[1000];
DEVICE int *pointers[2] = {&value, zeros + 5};

DEVICE __attribute__((noinline)) int triple(int x) { return x * 3; }
DEVICE __attribute__((noinline)) int plus_value(int x) { return x + value; }
DEVICE int (*functions[2])(int) = {triple, plus_value};

KERNEL relocated(int *out, int which) {
  *pointers[1] = 40 + which;
  out[0] = *pointers[which];
  out[1] = functions[which](out[2]);
  out[3] = zeros[5] + zeros[999];
}

KERNEL other(int *out) { out[0] = value; }
