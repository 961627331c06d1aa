///V_CMP_LT_I32 (Lane).
#[inline(always)]
unsafe fn fast0<M: Mode>(cx: &mut Cx<'_>, op: &Op, m: &M) -> Flow {
    let mut flow = Flow::NEXT;
    const clamp: bool = false;
    let (mut new_exec, mut all_d0, mut all_vcc) = (0u64, 0u64, 0u64);
    let file = cx.file;
    let lane_base: u32 = 32 * cx.half() as u32;
    let exec = file.exec();
    let r_s0 = rt::fast_source(file, op.src[0usize]);
    let r_s1 = rt::fast_source(file, op.src[1usize]);
    let mut k_d0 = LaneVec::ZERO;
    for l in 0..32usize {
        let lane: u32 = lane_base + l as u32;
        let s0 = (*r_s0.add(0)).0[l];
        let s1 = (*r_s1.add(0)).0[l];
        let mut m_d0: u32 = 0;
        m_d0 = ((s0 as i32) < (s1 as i32)) as u32;
        k_d0.0[l] = (m_d0 & 1) << l;
    }
    let bits = rt::gather(&k_d0) & exec;
    all_d0 = bits as u64;
    rt::set_half_mask(cx, op.d, all_d0 as u32);
    flow
}
#[cfg_attr(
    target_arch = "x86_64",
    target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt")
)]
pub unsafe fn op0_keep(cx: &mut Cx<'_>, op: &Op) -> Flow {
    let m = Keep;
    unsafe { fast0(cx, op, &m) }
}
