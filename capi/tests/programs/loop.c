/* Loads, runs and frees repeatedly, so that a leak grows with the number of rounds. usage: loop CODE-OBJECT ROUNDS */
#include "wavesim.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(void) {
    fprintf(stderr, "%s\n", wavesim_last_error());
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s CODE-OBJECT ROUNDS\n", argv[0]);
        return 2;
    }
    static char bytes[1 << 20];
    FILE *file = fopen(argv[1], "rb");
    if (!file) {
        perror(argv[1]);
        return 1;
    }
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);

    enum { N = 64 };
    static float a[N], b[N], c[N];
    struct {
        uint64_t a, b, c;
        uint32_t n, unused;
    } arguments = {(uintptr_t)a, (uintptr_t)b, (uintptr_t)c, N, 0};
    for (int n = 0; n < N; n++) {
        a[n] = n;
        b[n] = 0.5f;
    }
    for (int round = 0; round < atoi(argv[2]); round++) {
        wavesim_device device;
        wavesim_module module;
        if (wavesim_device_create("gfx1100", &device) || wavesim_module_load(device, bytes, length, &module))
            return failed();
        float *arrays[] = {a, b, c};
        for (int k = 0; k < 3; k++)
            if (wavesim_device_map(device, (uintptr_t)arrays[k], arrays[k], sizeof a, true))
                return failed();
        struct wavesim_object_launch launch;
        if (wavesim_object_launch_init(&launch))
            return failed();
        launch.kernarg = &arguments;
        launch.kernarg_bytes = sizeof arguments;
        launch.grid[0] = 1;
        launch.block[0] = 64;
        memset(c, 0, sizeof c);
        if (wavesim_module_launch(module, &launch, NULL))
            return failed();
        if (c[N - 1] != N - 1 + 0.5f) {
            fprintf(stderr, "c[%d] = %g\n", N - 1, c[N - 1]);
            return 1;
        }
        /* A launch that fails: an access outside of what is mapped. */
        if (wavesim_device_unmap(device, (uintptr_t)c) || !wavesim_module_launch(module, &launch, NULL))
            return failed();
        if (wavesim_module_unload(module) || wavesim_device_destroy(device))
            return failed();
    }
    return 0;
}
