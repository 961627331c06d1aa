///DS_STORE_B8 (Lane).
#[inline(always)]
unsafe fn op0<M: Mode>(cx: &mut Cx<'_>, op: &Op, m: &M, half: usize) -> Flow {
    let mut flow = Flow::NEXT;
    let clamp = rt::clamp(op);
    let (mut new_exec, mut all_d0, mut all_vcc) = (0u64, 0u64, 0u64);
    let file = rt::file(cx, half);
    let lane_base: u32 = 32 * half as u32;
    let mut exec: u32 = (cx.wave.exec() >> lane_base) as u32;
    let mut r_vaddr = rt::stage::<1usize>(cx, file, op.src[0usize], 0usize);
    let mut r_data = rt::stage::<1usize>(cx, file, op.src[2usize], 2usize);
    let mut addresses = LaneVec::ZERO;
    let mut stored = [LaneVec::ZERO; 1usize];
    for l in 0..32usize {
        let lane: u32 = lane_base + l as u32;
        let vaddr = (*r_vaddr.add(0)).0[l];
        let data = (*r_data.add(0)).0[l];
        let mut t0: u64 = 0;
        t0 = (vaddr.wrapping_add(op.imm)) as u64;
        {
            let v = data & 255u32;
            addresses.0[l] = rt::lds_offset(t0);
            stored[0usize].0[l] = (v >> 0u32) as u32;
        }
    }
    if let Err(flow) = rt::store_lds::<
        1usize,
        1usize,
    >(cx, &addresses, exec, lane_base, &stored) {
        return flow;
    }
    flow
}
#[cfg_attr(
    target_arch = "x86_64",
    target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt")
)]
#[inline(never)]
pub unsafe fn op0_keep(cx: &mut Cx<'_>, op: &Op) -> Flow {
    let m = Keep;
    unsafe { op0(cx, op, &m, cx.half()) }
}
