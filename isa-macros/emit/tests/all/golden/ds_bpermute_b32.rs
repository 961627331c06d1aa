///DS_BPERMUTE_B32 (Wave).
#[inline(always)]
unsafe fn op0<M: Mode>(cx: &mut Cx<'_>, op: &Op, m: &M) -> Flow {
    let mut flow = Flow::NEXT;
    let clamp = rt::clamp(op);
    let mut t0: rt::Array<u32, 64usize> = rt::Array([0; 64usize]);
    let mut t1: u32 = 0;
    let mut t2: u32 = 0;
    let mut t3: u32 = 0;
    'body: {
        let (source, to) = (rt::MoveSource::Operand(op.src[2usize]), op.d as u32);
        if let Some(lane_move) = rt::pull(cx, source, false, true, to) {
            for half in 0..cx.wave.halves() {
                let base = 32 * half as u32;
                t1 = base;
                let x0 = rt::operand_lanes::<32usize>(cx, op.src[0usize], t1, 0u32);
                let x1 = op.imm;
                let x2 = (cx.wave.size()).wrapping_sub(1u32);
                let mut lanes = LaneVec::ZERO;
                for l in 0..32usize {
                    t1 = base.wrapping_add(l as u32);
                    lanes.0[l] = (((x0[l]).wrapping_add(x1)) >> 2u32) & x2;
                }
                unsafe {
                    rt::pull_lanes(cx, lane_move, half, &lanes);
                }
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
