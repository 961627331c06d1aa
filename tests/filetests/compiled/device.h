/* What the kernels of this folder share. clang alone is needed: no device library. */
#define LANES 32
#define lid __builtin_amdgcn_workitem_id_x()
#define group __builtin_amdgcn_workgroup_id_x()
typedef __attribute__((address_space(1))) unsigned gu32;

/* barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE) */
static inline void meet(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#define load(p, order, scope) __opencl_atomic_load((p), (order), (scope))
#define store(p, v, order, scope) __opencl_atomic_store((p), (v), (order), (scope))
#define add(p, v, order, scope) __opencl_atomic_fetch_add((p), (v), (order), (scope))
#define RELAXED __ATOMIC_RELAXED
#define ACQUIRE __ATOMIC_ACQUIRE
#define RELEASE __ATOMIC_RELEASE
#define WORKGROUP 1
#define DEVICE 2
