/* Lists the contents of a code object: kernels with their arguments, and variables. */
#include "wavesim.h"
#include <stdio.h>
#include <stdlib.h>

static int failed(void) {
    fprintf(stderr, "%s\n", wavesim_last_error());
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s TARGET CODE-OBJECT\n", argv[0]);
        return 2;
    }
    static char bytes[1 << 20];
    FILE *file = fopen(argv[2], "rb");
    if (!file) {
        perror(argv[2]);
        return 1;
    }
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);

    wavesim_device device;
    wavesim_module module;
    if (wavesim_device_create(argv[1], &device) || wavesim_module_load(device, bytes, length, &module))
        return failed();
    uint32_t kernels, variables;
    if (wavesim_module_counts(module, &kernels, &variables))
        return failed();
    for (uint32_t k = 0; k < kernels; k++) {
        char name[256];
        struct wavesim_kernel kernel = {.struct_size = sizeof kernel};
        if (wavesim_module_kernel_name(module, k, name, sizeof name) || wavesim_module_kernel(module, name, &kernel))
            return failed();
        printf("%s: wave%u, %u VGPRs, %u bytes of LDS, at most %u work-items, %u bytes of arguments\n", name,
               kernel.wave_size, kernel.vgprs, kernel.lds_bytes, kernel.max_items, kernel.kernarg_bytes);
        for (uint32_t n = 0; n < kernel.argument_count; n++) {
            struct wavesim_argument argument = {.struct_size = sizeof argument};
            if (wavesim_module_argument(module, name, n, &argument))
                return failed();
            printf("  %3u: %u bytes, %s %s\n", argument.offset, argument.size, argument.kind, argument.name);
        }
    }
    for (uint32_t v = 0; v < variables; v++) {
        char name[256];
        uint64_t address, size;
        if (wavesim_module_variable_name(module, v, name, sizeof name) ||
            wavesim_module_variable(module, name, &address, &size))
            return failed();
        printf("%s: %llu bytes%s\n", name, (unsigned long long)size, address ? "" : " at no address");
    }
    /* An index beyond the last kernel is an error. */
    char name[4];
    if (wavesim_module_kernel_name(module, kernels, name, sizeof name) != WAVESIM_BAD_ARGUMENT)
        return 1;
    printf("%s\n", wavesim_last_error());
    wavesim_module_unload(module);
    wavesim_device_destroy(device);
    return 0;
}
