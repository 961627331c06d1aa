///V_DOT4_I32_IU8 (Lane).
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
        let mut r_s2 = rt::stage::<1usize>(cx, file, op.src[2usize], 2usize);
        if op.flags & Op::MODIFY != 0 {
            let mut list: [(usize, *const LaneVec); 3usize] = [
                (0usize, r_s0),
                (1usize, r_s1),
                (2usize, r_s2),
            ];
            exec = rt::modify(cx, op, half, exec, &mut list);
            r_s0 = list[0usize].1;
            r_s1 = list[1usize].1;
            r_s2 = list[2usize].1;
        }
        let mut o0 = LaneVec::ZERO;
        for l in 0..32usize {
            let lane: u32 = lane_base + l as u32;
            let s0 = (*r_s0.add(0)).0[l];
            let s1 = (*r_s1.add(0)).0[l];
            let s2 = (*r_s2.add(0)).0[l];
            let mut d0: u32 = 0;
            let mut t0: u64 = 0;
            let mut t1: u32 = 0;
            let mut t2: u32 = 0;
            let mut t3: u32 = 0;
            let mut t4: u32 = 0;
            let mut t5: u32 = 0;
            t0 = (s2 as i32) as i64 as u64;
            {
                let (mut i, end) = (0u32 as i32, 3u32 as i32);
                while i <= end {
                    t1 = i as u32;
                    t2 = rt::shr32(s0, t1.wrapping_mul(8u32));
                    t3 = (((cx.raw(op).neg) & 7u32) >> 0u32) & 1u32;
                    t4 = rt::shr32(s1, t1.wrapping_mul(8u32));
                    t5 = (((cx.raw(op).neg) & 7u32) >> 1u32) & 1u32;
                    t0 = t0
                        .wrapping_add(
                            (if t3 != 0 {
                                ((((t2 & 255u32) << 24u32) as i32) >> 24u32) as i64 as u64
                            } else {
                                (t2 & 255u32) as u64
                            })
                                .wrapping_mul(
                                    if t5 != 0 {
                                        ((((t4 & 255u32) << 24u32) as i32) >> 24u32) as i64 as u64
                                    } else {
                                        (t4 & 255u32) as u64
                                    },
                                ),
                        );
                    i += 1;
                }
            }
            d0 = rt::narrow64(t0, 64u32, true, 32u32, true, clamp) as u32;
            o0.0[l] = (d0 >> 0u32) as u32;
        }
        rt::write::<1usize>(cx, file, op, exec, rt::Out::Bits, [o0]);
    }
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
    let r_s2 = rt::fast_source(file, op.src[2usize]);
    let mut o0 = LaneVec::ZERO;
    for l in 0..32usize {
        let lane: u32 = lane_base + l as u32;
        let s0 = (*r_s0.add(0)).0[l];
        let s1 = (*r_s1.add(0)).0[l];
        let s2 = (*r_s2.add(0)).0[l];
        let mut d0: u32 = 0;
        let mut t0: u64 = 0;
        let mut t1: u32 = 0;
        let mut t2: u32 = 0;
        let mut t3: u32 = 0;
        let mut t4: u32 = 0;
        let mut t5: u32 = 0;
        t0 = (s2 as i32) as i64 as u64;
        {
            let (mut i, end) = (0u32 as i32, 3u32 as i32);
            while i <= end {
                t1 = i as u32;
                t2 = rt::shr32(s0, t1.wrapping_mul(8u32));
                t3 = (((cx.raw(op).neg) & 7u32) >> 0u32) & 1u32;
                t4 = rt::shr32(s1, t1.wrapping_mul(8u32));
                t5 = (((cx.raw(op).neg) & 7u32) >> 1u32) & 1u32;
                t0 = t0
                    .wrapping_add(
                        (if t3 != 0 {
                            ((((t2 & 255u32) << 24u32) as i32) >> 24u32) as i64 as u64
                        } else {
                            (t2 & 255u32) as u64
                        })
                            .wrapping_mul(
                                if t5 != 0 {
                                    ((((t4 & 255u32) << 24u32) as i32) >> 24u32) as i64 as u64
                                } else {
                                    (t4 & 255u32) as u64
                                },
                            ),
                    );
                i += 1;
            }
        }
        d0 = rt::narrow64(t0, 64u32, true, 32u32, true, clamp) as u32;
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
#[cfg_attr(
    target_arch = "x86_64",
    target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt")
)]
pub unsafe fn op0_keep_general(cx: &mut Cx<'_>, op: &Op) -> Flow {
    let m = Keep;
    unsafe { op0(cx, op, &m) }
}
