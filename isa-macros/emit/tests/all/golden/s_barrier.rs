///S_BARRIER (Scalar).
#[inline(always)]
unsafe fn op0<M: Mode>(cx: &mut Cx<'_>, op: &Op, m: &M) -> Flow {
    let mut flow = Flow::NEXT;
    let clamp = rt::clamp(op);
    'body: {
        {
            let args = [];
            if let Err(flow) = rt::control(cx, rt::Control::Barrier, &args) {
                return flow;
            }
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
