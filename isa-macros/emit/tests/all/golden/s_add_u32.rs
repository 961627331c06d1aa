///S_ADD_U32 (Scalar).
#[inline(always)]
unsafe fn op0<M: Mode>(cx: &mut Cx<'_>, op: &Op, m: &M) -> Flow {
    let mut flow = Flow::NEXT;
    let clamp = rt::clamp(op);
    let s0 = rt::scalar1(cx, op.src[0usize]) as u32;
    let s1 = rt::scalar1(cx, op.src[1usize]) as u32;
    let mut t0: u64 = 0;
    'body: {
        t0 = (s0 as u64).wrapping_add(s1 as u64);
        cx.wave.scc = core::hint::select_unpredictable(
            ((t0 >= 4294967296u64) as u32) != 0,
            1u32,
            0u32,
        );
        {
            let v = (t0 as u32) as u128;
            rt::set_scalar::<1usize>(cx, op, v);
        }
    }
    flow
}
#[inline(always)]
unsafe fn fast0<M: Mode>(cx: &mut Cx<'_>, op: &Op, m: &M) -> Flow {
    let mut flow = Flow::NEXT;
    let clamp = rt::clamp(op);
    let s0 = unsafe { rt::fast_scalar1(cx, op.src[0usize]) } as u32;
    let s1 = unsafe { rt::fast_scalar1(cx, op.src[1usize]) } as u32;
    let mut t0: u64 = 0;
    'body: {
        t0 = (s0 as u64).wrapping_add(s1 as u64);
        cx.wave.scc = core::hint::select_unpredictable(
            ((t0 >= 4294967296u64) as u32) != 0,
            1u32,
            0u32,
        );
        {
            let v = (t0 as u32) as u64;
            unsafe { rt::fast_set_scalar::<1usize>(cx, op, v) };
        }
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
pub unsafe fn op0_keep_general(cx: &mut Cx<'_>, op: &Op) -> Flow {
    let m = Keep;
    unsafe { op0(cx, op, &m) }
}
