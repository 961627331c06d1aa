/* A device that can access three buffers and nothing else. */
#include "kernel.h"
#include "wavesim.h"
#include <stdio.h>

enum { GROUPS = 4, N = 64 * GROUPS };

static void check(wavesim_status status) {
    if (status != WAVESIM_OK) fprintf(stderr, "%s\n", wavesim_last_error());
}

int main(void) {
    static float a[N], b[N], c[N];
    for (int i = 0; i < N; i++) {
        a[i] = (float)i;
        b[i] = 0.5f;
    }
    /* Device addresses are independent of host addresses; each buffer is mapped at a round one. */
    const uint64_t A = 0x100000, B = 0x200000, C = 0x300000, ARGS = 0x400000;
    uint64_t args[3] = {C, A, B};

    wavesim_device device;
    check(wavesim_device_create("gfx1100", &device));
    check(wavesim_device_map(device, A, a, sizeof a, false));
    check(wavesim_device_map(device, B, b, sizeof b, false));
    check(wavesim_device_map(device, C, c, sizeof c, true));
    check(wavesim_device_map(device, ARGS, args, sizeof args, false));

    /* s[0:1]: the arguments. Workgroup ids follow the user SGPRs: 15 of them put the first id into s15. */
    uint32_t user_sgprs[15] = {(uint32_t)ARGS, (uint32_t)(ARGS >> 32)};
    struct wavesim_launch launch;
    check(wavesim_launch_init(&launch));
    launch.code = vector_add;
    launch.code_bytes = sizeof vector_add;
    launch.grid[0] = GROUPS;
    launch.block[0] = 64;
    launch.user_sgprs = user_sgprs;
    launch.user_sgpr_count = 15;

    struct wavesim_outcome outcome;
    check(wavesim_device_launch(device, &launch, &outcome));
    printf("%llu instructions in %llu waves, c[%d] = %g\n", (unsigned long long)outcome.instructions,
           (unsigned long long)outcome.waves, N - 1, c[N - 1]);

    /* With one workgroup too many, the kernel reads beyond the end of a. */
    launch.grid[0] = GROUPS + 1;
    wavesim_status status = wavesim_device_launch(device, &launch, &outcome);
    printf("status %d, %s at address 0x%llx, workgroup %u, lane %d\n", (int)status, outcome.fault,
           (unsigned long long)outcome.address, outcome.workgroup[0], (int)outcome.lane);
    printf("%s\n", wavesim_last_error());
    check(wavesim_device_destroy(device));
    return 0;
}
