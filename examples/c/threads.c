/* Two threads, each with its own device. */
#include "kernel.h"
#include "wavesim.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { GROUPS = 4, N = 64 * GROUPS, ROUNDS = 20 };

struct job {
    float step;
    uint64_t wrong_address; /* 0: none */
    float a[N], b[N], c[N];
    int failures;
    char error[200];
};

static void *work(void *pointer) {
    struct job *job = pointer;
    uint64_t args[3] = {(uint64_t)(uintptr_t)job->c, (uint64_t)(uintptr_t)job->a, (uint64_t)(uintptr_t)job->b};
    if (job->wrong_address) args[1] = job->wrong_address;
    uint32_t user_sgprs[15] = {(uint32_t)(uintptr_t)args, (uint32_t)((uint64_t)(uintptr_t)args >> 32)};
    wavesim_device device;
    wavesim_device_create("rdna3", &device);
    /* Guest addresses equal host addresses in this example. */
    wavesim_device_map(device, (uint64_t)(uintptr_t)job, job, sizeof *job, true);
    wavesim_device_map(device, (uint64_t)(uintptr_t)args, args, sizeof args, false);
    struct wavesim_launch launch;
    wavesim_launch_init(&launch);
    launch.code = vector_add;
    launch.code_bytes = sizeof vector_add;
    launch.grid[0] = GROUPS;
    launch.block[0] = 64;
    launch.user_sgprs = user_sgprs;
    launch.user_sgpr_count = 15;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++) {
            job->a[i] = (float)(i + round);
            job->b[i] = job->step;
        }
        if (wavesim_device_launch(device, &launch, NULL) != WAVESIM_OK) {
            job->failures++;
            /* The error message is thread-local. */
            snprintf(job->error, sizeof job->error, "%.*s", (int)strcspn(wavesim_last_error(), "\n"), wavesim_last_error());
        }
    }
    wavesim_device_destroy(device);
    return NULL;
}

int main(void) {
    static struct job jobs[2] = {{.step = 0.25f}, {.step = 0.5f, .wrong_address = 0x1000}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, &jobs[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("first: %d failures, c[1] = %g\n", jobs[0].failures, jobs[0].c[1]);
    printf("second: %d failures: %s\n", jobs[1].failures, jobs[1].error);
    return 0;
}
