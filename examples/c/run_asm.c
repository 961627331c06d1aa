/* Runs machine code that uses host pointers, with run_asm, an entry point that several emulators provide. */
#include "kernel.h"
#include "wavesim.h"
#include <stdio.h>
#include <string.h>

enum { GROUPS = 4, N = 64 * GROUPS };

int main(void) {
    static float a[N], b[N], c[N];
    for (int i = 0; i < N; i++) {
        a[i] = (float)i;
        b[i] = 0.5f;
    }
    uint64_t args[3] = {(uint64_t)(uintptr_t)c, (uint64_t)(uintptr_t)a, (uint64_t)(uintptr_t)b};
    if (run_asm((const char *)vector_add, sizeof vector_add, GROUPS, 1, 1, 64, 1, 1, args) != 0) {
        fprintf(stderr, "%s\n", wavesim_last_error());
        return 1;
    }
    printf("c[0] = %g, c[%d] = %g\n", c[0], N - 1, c[N - 1]);

    /* An access through an invalid pointer is an error, not a crash. */
    args[1] = 0x10;
    int status = run_asm((const char *)vector_add, sizeof vector_add, GROUPS, 1, 1, 64, 1, 1, args);
    printf("status %d: %.*s\n", status, (int)strcspn(wavesim_last_error(), "\n"), wavesim_last_error());
    return status == WAVESIM_FAULT ? 0 : 1;
}
