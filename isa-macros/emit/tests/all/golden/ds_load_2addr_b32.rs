///DS_LOAD_2ADDR_B32 (Lane).
#[inline(always)]
unsafe fn op0<M: Mode>(cx: &mut Cx<'_>, op: &Op, m: &M, half: usize) -> Flow {
    let mut flow = Flow::NEXT;
    let clamp = rt::clamp(op);
    let (mut new_exec, mut all_d0, mut all_vcc) = (0u64, 0u64, 0u64);
    let file = rt::file(cx, half);
    let lane_base: u32 = 32 * half as u32;
    let mut exec: u32 = (cx.wave.exec() >> lane_base) as u32;
    let mut r_vaddr = rt::stage::<1usize>(cx, file, op.src[0usize], 0usize);
    let mut o0 = LaneVec::ZERO;
    let mut o1 = LaneVec::ZERO;
    let loaded0 = match {
        let mut addresses = LaneVec::ZERO;
        for l in 0..32usize {
            let lane: u32 = lane_base + l as u32;
            let vaddr = (*r_vaddr.add(0)).0[l];
            let mut t0: u32 = 0;
            let mut t1: u32 = 0;
            addresses.0[l] = rt::lds_offset(
                (vaddr.wrapping_add(((op.imm & 0xff) & 255u32).wrapping_mul(4u32)))
                    as u64,
            );
        }
        rt::load_lds::<4usize, 1usize>(cx, &addresses, exec, lane_base)
    } {
        Ok(vecs) => vecs,
        Err(flow) => return flow,
    };
    let loaded1 = match {
        let mut addresses = LaneVec::ZERO;
        for l in 0..32usize {
            let lane: u32 = lane_base + l as u32;
            let vaddr = (*r_vaddr.add(0)).0[l];
            let mut t0: u32 = 0;
            let mut t1: u32 = 0;
            t0 = (loaded0[0usize].0[l] as u32);
            addresses.0[l] = rt::lds_offset(
                (vaddr
                    .wrapping_add((((op.imm >> 8) & 0xff) & 255u32).wrapping_mul(4u32)))
                    as u64,
            );
        }
        rt::load_lds::<4usize, 1usize>(cx, &addresses, exec, lane_base)
    } {
        Ok(vecs) => vecs,
        Err(flow) => return flow,
    };
    for l in 0..32usize {
        let lane: u32 = lane_base + l as u32;
        let vaddr = (*r_vaddr.add(0)).0[l];
        let mut d0: u64 = 0;
        let mut t0: u32 = 0;
        let mut t1: u32 = 0;
        t0 = (loaded0[0usize].0[l] as u32);
        t1 = (loaded1[0usize].0[l] as u32);
        d0 = ((t1 as u64) << 32u32) | (t0 as u64);
        o0.0[l] = (d0 >> 0u32) as u32;
        o1.0[l] = (d0 >> 32u32) as u32;
    }
    rt::write::<2usize>(cx, file, op, exec, rt::Out::Bits, [o0, o1]);
    flow
}
#[cfg_attr(
    target_arch = "x86_64",
    target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt")
)]
pub unsafe fn op0_keep(cx: &mut Cx<'_>, op: &Op) -> Flow {
    if unsafe {
        rt::load_lds_block::<
            false,
            2usize,
            1usize,
        >(
            cx,
            op.src[0usize],
            [
                ((op.imm & 0xff) & 255u32).wrapping_mul(4u32),
                (((op.imm >> 8) & 0xff) & 255u32).wrapping_mul(4u32),
            ],
            op.d,
        )
    } {
        Flow::NEXT
    } else {
        unsafe { op0_keep_watched(cx, op) }
    }
}
#[cfg_attr(
    target_arch = "x86_64",
    target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt")
)]
#[cold]
#[inline(never)]
unsafe fn op0_keep_watched(cx: &mut Cx<'_>, op: &Op) -> Flow {
    if cx.watch.is_none() {
        return unsafe { op0_keep_general(cx, op) };
    }
    if unsafe {
        rt::load_lds_block::<
            true,
            2usize,
            1usize,
        >(
            cx,
            op.src[0usize],
            [
                ((op.imm & 0xff) & 255u32).wrapping_mul(4u32),
                (((op.imm >> 8) & 0xff) & 255u32).wrapping_mul(4u32),
            ],
            op.d,
        )
    } {
        Flow::NEXT
    } else {
        unsafe { op0_keep_general(cx, op) }
    }
}
#[cfg_attr(
    target_arch = "x86_64",
    target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt")
)]
#[inline(never)]
pub unsafe fn op0_keep_general(cx: &mut Cx<'_>, op: &Op) -> Flow {
    let m = Keep;
    unsafe { op0(cx, op, &m, cx.half()) }
}
