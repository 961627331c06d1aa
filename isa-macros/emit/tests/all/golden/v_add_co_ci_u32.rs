///V_ADD_CO_CI_U32 (Lane).
#[inline(always)]
unsafe fn op0<M: Mode>(cx: &mut Cx<'_>, op: &Op, m: &M) -> Flow {
    let mut flow = Flow::NEXT;
    let clamp = rt::clamp(op);
    let (mut new_exec, mut all_d0, mut all_vcc) = (0u64, 0u64, 0u64);
    if op.flags & Op::BROADCAST != 0 {
        rt::broadcast(cx, op);
    }
    for half in 0..cx.wave.halves() {
        let file = rt::file(cx, half);
        let lane_base: u32 = 32 * half as u32;
        let mut exec: u32 = (cx.wave.exec() >> lane_base) as u32;
        let mut r_s0 = rt::stage::<1usize>(cx, file, op.src[0usize], 0usize);
        let mut r_s1 = rt::stage::<1usize>(cx, file, op.src[1usize], 1usize);
        if op.flags & Op::MODIFY != 0 {
            let mut list: [(usize, *const LaneVec); 2usize] = [
                (0usize, r_s0),
                (1usize, r_s1),
            ];
            exec = rt::modify(cx, op, half, exec, &mut list);
            r_s0 = list[0usize].1;
            r_s1 = list[1usize].1;
        }
        let vcc_in = rt::read_mask_half(cx, op.src[3], half);
        let mut o0 = LaneVec::ZERO;
        let mut k_vcc = LaneVec::ZERO;
        for l in 0..32usize {
            let lane: u32 = lane_base + l as u32;
            let s0 = (*r_s0.add(0)).0[l];
            let s1 = (*r_s1.add(0)).0[l];
            let mut d0: u32 = 0;
            let mut m_vcc: u32 = 0;
            let mut t0: u64 = 0;
            t0 = ((s0 as u64).wrapping_add(s1 as u64))
                .wrapping_add(((vcc_in >> l) & 1) as u64);
            m_vcc = ((t0 as i64) >= (4294967296u64 as i64)) as u32;
            d0 = rt::narrow64(t0, 64u32, true, 32u32, false, clamp) as u32;
            o0.0[l] = (d0 >> 0u32) as u32;
            k_vcc.0[l] = (m_vcc & 1) << l;
        }
        let bits = rt::gather(&k_vcc) & exec;
        all_vcc |= (bits as u64) << lane_base;
        rt::write::<1usize>(cx, file, op, exec, rt::Out::Bits, [o0]);
    }
    rt::set_mask(cx, op.d1, all_vcc);
    flow
}
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
    let vcc_in = rt::half_mask(cx, op.src[3]);
    let mut o0 = LaneVec::ZERO;
    let mut k_vcc = LaneVec::ZERO;
    for l in 0..32usize {
        let lane: u32 = lane_base + l as u32;
        let s0 = (*r_s0.add(0)).0[l];
        let s1 = (*r_s1.add(0)).0[l];
        let mut d0: u32 = 0;
        let mut m_vcc: u32 = 0;
        let mut t0: u64 = 0;
        t0 = ((s0 as u64).wrapping_add(s1 as u64))
            .wrapping_add(((vcc_in >> l) & 1) as u64);
        m_vcc = ((t0 as i64) >= (4294967296u64 as i64)) as u32;
        d0 = rt::narrow64(t0, 64u32, true, 32u32, false, clamp) as u32;
        o0.0[l] = (d0 >> 0u32) as u32;
        k_vcc.0[l] = (m_vcc & 1) << l;
    }
    let bits = rt::gather(&k_vcc) & exec;
    all_vcc = bits as u64;
    rt::fast_write::<1usize>(file, op, exec, [o0]);
    rt::written::<1usize>(file, op.d);
    rt::set_half_mask(cx, op.d1, all_vcc as u32);
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
#[cfg_attr(
    target_arch = "x86_64",
    target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt")
)]
pub unsafe fn op0_keep_general(cx: &mut Cx<'_>, op: &Op) -> Flow {
    let m = Keep;
    unsafe { op0(cx, op, &m) }
}
