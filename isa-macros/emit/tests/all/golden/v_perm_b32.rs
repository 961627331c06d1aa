///V_PERM_B32 (Lane).
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
    let r_s2 = rt::fast_source(file, op.src[2usize]);
    let mut o0 = LaneVec::ZERO;
    let mut simd0 = LaneVec::ZERO;
    let mut simd1 = LaneVec::ZERO;
    for vector in 0..4usize {
        let mut args0 = [rt::U32x8::ZERO; 3usize];
        let mut args1 = [rt::U32x8::ZERO; 3usize];
        for k in 0..8usize {
            let l = 8 * vector + k;
            let lane: u32 = lane_base + l as u32;
            let s0 = (*r_s0.add(0)).0[l];
            let s1 = (*r_s1.add(0)).0[l];
            let s2 = (*r_s2.add(0)).0[l];
            let mut t0: u32 = 0;
            let mut t1: u32 = 0;
            t0 = ((((rt::sar32(((s1 << 16u32) as i32), 31u32) as u32) & 255u32)
                | ((rt::sar32((s1 as i32), 31u32) as u32) & 65280u32))
                | ((rt::sar32(((s0 << 16u32) as i32), 31u32) as u32) & 16711680u32))
                | ((rt::sar32((s0 as i32), 31u32) as u32) & 4278190080u32);
            t1 = ((((s2 >> 1u32) & 2021161080u32).wrapping_add(2021161080u32)) >> 7u32)
                & 16843009u32;
            args0[0usize].0[k] = s0;
            args0[1usize].0[k] = s1;
            args0[2usize].0[k] = s2;
            args1[0usize].0[k] = 4294967040u32;
            args1[1usize].0[k] = t0;
            args1[2usize].0[k] = s2 ^ 134744072u32;
        }
        rt::select_bytes_x8(m, args0).put(&mut simd0, vector);
        rt::select_bytes_x8(m, args1).put(&mut simd1, vector);
    }
    for l in 0..32usize {
        let lane: u32 = lane_base + l as u32;
        let s0 = (*r_s0.add(0)).0[l];
        let s1 = (*r_s1.add(0)).0[l];
        let s2 = (*r_s2.add(0)).0[l];
        let mut d0: u32 = 0;
        let mut t0: u32 = 0;
        let mut t1: u32 = 0;
        t0 = ((((rt::sar32(((s1 << 16u32) as i32), 31u32) as u32) & 255u32)
            | ((rt::sar32((s1 as i32), 31u32) as u32) & 65280u32))
            | ((rt::sar32(((s0 << 16u32) as i32), 31u32) as u32) & 16711680u32))
            | ((rt::sar32((s0 as i32), 31u32) as u32) & 4278190080u32);
        t1 = ((((s2 >> 1u32) & 2021161080u32).wrapping_add(2021161080u32)) >> 7u32)
            & 16843009u32;
        d0 = ((simd0.0[l]) | (simd1.0[l])) | ((t1 << 8u32).wrapping_sub(t1));
        o0.0[l] = (d0 >> 0u32) as u32;
    }
    rt::fast_write::<1usize>(file, op, exec, [o0]);
    rt::written::<1usize>(file, op.d);
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
