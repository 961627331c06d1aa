/* c[i] = a[i] + b[i] for RDNA 3, in workgroups of 64. The examples run this kernel.
 *
 * s[0:1] points to the arguments (the addresses of c, a and b), s15 is the number of the workgroup, v0 that of
 * the work-item.
 * `wavesim asm --show-encoding` prints these words for the instructions on the right. */
#include <stdint.h>

static const uint32_t vector_add[] = {
    0xf4080100, 0xf8000000, /* s_load_b128 s[4:7], s[0:1], null */
    0xf4040200, 0xf8000010, /* s_load_b64 s[8:9], s[0:1], 0x10 */
    0xd6560000, 0x04010c0f, /* v_lshl_or_b32 v0, s15, 6, v0 */
    0x30000082,             /* v_lshlrev_b32_e32 v0, 2, v0 */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xdc520000, 0x01060000, /* global_load_b32 v1, v0, s[6:7] */
    0xdc520000, 0x02080000, /* global_load_b32 v2, v0, s[8:9] */
    0xbf8903f7,             /* s_waitcnt vmcnt(0) */
    0x06020501,             /* v_add_f32_e32 v1, v1, v2 */
    0xdc6a0000, 0x00040100, /* global_store_b32 v0, v1, s[4:5] */
    0xbfb00000,             /* s_endpgm */
};
