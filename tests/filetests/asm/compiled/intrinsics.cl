/* What only this machine has: lanes, waits, priorities, traps, text in assembly. */
#include "ids.h"

kernel __attribute__((reqd_work_group_size(64, 1, 1))) void intrinsics(global int *out, global uint *more) {
  int id = GLOBAL_ID, x = __builtin_amdgcn_ds_bpermute(id * 4, out[id]);
  x += __builtin_amdgcn_mov_dpp(x, 0x111, 0xf, 0xf, 1);
  x += __builtin_amdgcn_readfirstlane(x) + __builtin_amdgcn_ds_swizzle(x, 0x401f);
  x += __builtin_amdgcn_permlane16(x, x, 1, 2, 0, 0);
  __builtin_amdgcn_s_sleep(3);
  __builtin_amdgcn_s_setprio(1);
  __builtin_amdgcn_sched_barrier(0);
  more[id] = (uint)__builtin_readcyclecounter();
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "agent");
  __builtin_amdgcn_wave_barrier();
  x += __builtin_amdgcn_s_getreg(0xF801) + __builtin_amdgcn_mbcnt_lo(-1, 0);
  if (x == 77) __builtin_trap();
  __asm__ volatile("s_nop 3\n\tv_mov_b32 %0, 0x12345678" : "=v"(x));
  out[id] = x;
}
