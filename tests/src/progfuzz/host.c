// The host side of generated programs: `program BYTES...` reads the contents of all buffers, one after the
// other, runs the program with a wave size of 32 and of 64, and writes both contents.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
unsigned wave_size;
void program(unsigned char **buffers);
int main(int count, char **words) {
    unsigned char *initial[16], *buffers[16];
    size_t sizes[16];
    for (int i = 1; i < count; i++) {
        sizes[i] = strtoull(words[i], 0, 10);
        initial[i] = malloc(sizes[i]);
        // Aligned for all vectors, as on devices.
        buffers[i] = aligned_alloc(256, (sizes[i] + 255) & ~(size_t)255);
        if (fread(initial[i], 1, sizes[i], stdin) != sizes[i]) return 2;
    }
    for (wave_size = 32; wave_size <= 64; wave_size += 32) {
        for (int i = 1; i < count; i++) memcpy(buffers[i], initial[i], sizes[i]);
        program(buffers + 1);
        for (int i = 1; i < count; i++) fwrite(buffers[i], 1, sizes[i], stdout);
    }
    return 0;
}
