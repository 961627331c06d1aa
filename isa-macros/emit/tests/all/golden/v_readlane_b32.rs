///V_READLANE_B32 (Wave).
#[inline(always)]
unsafe fn op0<M: Mode>(cx: &mut Cx<'_>, op: &Op, m: &M) -> Flow {
    let mut flow = Flow::NEXT;
    let clamp = rt::clamp(op);
    'body: {
        {
            let v = (rt::operand_lane(
                cx,
                op.src[0usize],
                (rt::once_source(cx, op, 1usize, rt::scalar1(cx, op.src[1usize]) as u128)
                    as u32) & ((cx.wave.size()).wrapping_sub(1u32)),
                0u32,
            )) as u128;
            rt::set_scalar::<1usize>(cx, op, v);
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
    unsafe { op0(cx, op, &m) }
}
