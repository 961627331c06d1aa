///V_ADD_F32 (Lane).
#[inline(always)]
unsafe fn fast0<M: Mode>(cx: &mut Cx<'_>, op: &Op, m: &M) -> Flow {
    let mut flow = Flow::NEXT;
    const clamp: bool = false;
    let (mut new_exec, mut all_d0, mut all_vcc) = (0u64, 0u64, 0u64);
    let file = cx.file;
    let lane_base: u32 = 32 * cx.half() as u32;
    let r_s0 = rt::fast_source(file, op.src[0usize]);
    let r_s1 = rt::fast_source(file, op.src[1usize]);
    let mut o0 = LaneVec::ZERO;
    #[cfg(target_arch = "x86_64")]
    {
        if M::DIRECT {
            o0 = rt::ordered::add_f32(file, op.src[0usize], op.src[1usize]);
        }
    }
    if !M::DIRECT {
        for l in 0..32usize {
            let lane: u32 = lane_base + l as u32;
            let s0 = (*r_s0.add(0)).0[l];
            let s1 = (*r_s1.add(0)).0[l];
            let mut d0: u32 = 0;
            d0 = rt::add_f32(m, s0, s1);
            o0.0[l] = (d0 >> 0u32) as u32;
        }
    }
    let exec = file.exec();
    if M::FLUSH_VECS {
        return rt::flushing_write(cx, file, op, exec, o0);
    }
    rt::fast_write::<1usize>(file, op, exec, [o0]);
    if M::FLUSH {
        rt::flushed(file, op, exec);
    } else {
        rt::written::<1usize>(file, op.d);
    }
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
    if unsafe { rt::have_no_denormals(cx.file, [op.src[0usize], op.src[1usize]]) } {
        let m = FlushVecs;
        return unsafe { fast0(cx, op, &m) };
    }
    unsafe { op0_flush_slow(cx, op) }
}
#[cfg_attr(
    target_arch = "x86_64",
    target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt")
)]
#[inline(never)]
unsafe fn op0_flush_slow(cx: &mut Cx<'_>, op: &Op) -> Flow {
    if unsafe { rt::search_denormals(cx.file, [op.src[0usize], op.src[1usize]]) } {
        return unsafe { op0_flush(cx, op) };
    }
    let m = Flush;
    rt::tail_call(unsafe { fast0(cx, op, &m) })
}
