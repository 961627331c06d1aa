///V_PK_MUL_F32 (Lane).
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
    let mut o0 = LaneVec::ZERO;
    let mut o1 = LaneVec::ZERO;
    for l in 0..32usize {
        let lane: u32 = lane_base + l as u32;
        let s0 = ((*r_s0.add(0)).0[l] as u64 | ((*r_s0.add(1)).0[l] as u64) << 32);
        let s1 = ((*r_s1.add(0)).0[l] as u64 | ((*r_s1.add(1)).0[l] as u64) << 32);
        let mut d0: u64 = 0;
        let mut t0: u32 = 0;
        let mut t1: u32 = 0;
        let mut t2: u32 = 0;
        let mut t3: u32 = 0;
        let mut t4: u32 = 0;
        let mut t5: u32 = 0;
        t0 = (*r_s0.add((cx.raw(op).by_source.op_sel()[0usize]) as usize)).0[l];
        t1 = (*r_s1.add((cx.raw(op).by_source.op_sel()[1usize]) as usize)).0[l];
        t2 = rt::mul_f32(
            m,
            t0 ^ (cx.raw(op).by_source.neg()[0usize]),
            t1 ^ (cx.raw(op).by_source.neg()[1usize]),
        );
        t3 = (*r_s0.add((cx.raw(op).by_source.op_sel_hi()[0usize]) as usize)).0[l];
        t4 = (*r_s1.add((cx.raw(op).by_source.op_sel_hi()[1usize]) as usize)).0[l];
        t5 = rt::mul_f32(
            m,
            t3 ^ (cx.raw(op).by_source.neg_hi()[0usize]),
            t4 ^ (cx.raw(op).by_source.neg_hi()[1usize]),
        );
        d0 = ((t5 as u64) << 32u32) | (t2 as u64);
        o0.0[l] = (d0 >> 0u32) as u32;
        o1.0[l] = (d0 >> 32u32) as u32;
    }
    rt::fast_write::<2usize>(file, op, exec, [o0, o1]);
    rt::written::<2usize>(file, op.d);
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
pub unsafe fn op0_flush(cx: &mut Cx<'_>, op: &Op) -> Flow {
    let m = Flush;
    unsafe { fast0(cx, op, &m) }
}
