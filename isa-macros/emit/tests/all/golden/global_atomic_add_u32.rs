///GLOBAL_ATOMIC_ADD_U32 (Lane).
#[inline(always)]
unsafe fn op0<M: Mode>(cx: &mut Cx<'_>, op: &Op, m: &M) -> Flow {
    let mut flow = Flow::NEXT;
    let clamp = rt::clamp(op);
    let (mut new_exec, mut all_d0, mut all_vcc) = (0u64, 0u64, 0u64);
    for half in 0..cx.wave.halves() {
        let file = rt::file(cx, half);
        let lane_base: u32 = 32 * half as u32;
        let mut exec: u32 = (cx.wave.exec() >> lane_base) as u32;
        let mut r_vaddr = rt::stage::<2usize>(cx, file, op.src[0usize], 0usize);
        let mut r_saddr = rt::stage::<2usize>(cx, file, op.src[1usize], 1usize);
        let mut r_data = rt::stage::<1usize>(cx, file, op.src[2usize], 2usize);
        let mut o0 = LaneVec::ZERO;
        let (saddr,) = {
            let l = 0usize;
            let saddr = ((*r_saddr.add(0)).0[l] as u64
                | ((*r_saddr.add(1)).0[l] as u64) << 32);
            (saddr,)
        };
        for l in 0..32usize {
            if exec >> l & 1 == 0 {
                continue;
            }
            let lane: u32 = lane_base + l as u32;
            let vaddr = ((*r_vaddr.add(0)).0[l] as u64
                | ((*r_vaddr.add(1)).0[l] as u64) << 32);
            let data = (*r_data.add(0)).0[l];
            let mut d0: u32 = 0;
            let mut t0: u64 = 0;
            let mut t1: u32 = 0;
            let mut loaded: u128 = 0;
            'retry: loop {
                t0 = if (((op.src[1usize].number() as u32) == 124u32) as u32) != 0 {
                    vaddr.wrapping_add(((op.imm) as i32) as i64 as u64)
                } else {
                    (saddr.wrapping_add((vaddr as u32) as u64))
                        .wrapping_add(((op.imm) as i32) as i64 as u64)
                };
                t1 = ({
                    let addr = t0;
                    match rt::load::<4usize>(cx, rt::Space::Global, addr, Some(lane)) {
                        Ok(v) => {
                            loaded = v;
                            v
                        }
                        Err(flow) => return flow,
                    }
                }) as u32;
                {
                    let v = (t1.wrapping_add(data)) as u128;
                    let addr = t0;
                    match rt::exchange::<
                        4usize,
                    >(cx, rt::Space::Global, addr, loaded, v, Some(lane)) {
                        Ok(true) => {}
                        Ok(false) => continue 'retry,
                        Err(flow) => return flow,
                    }
                }
                d0 = t1;
                break;
            }
            o0.0[l] = (d0 >> 0u32) as u32;
        }
        rt::write::<1usize>(cx, file, op, exec, rt::Out::Bits, [o0]);
    }
    flow
}
pub unsafe fn op0_keep(cx: &mut Cx<'_>, op: &Op) -> Flow {
    let m = Keep;
    unsafe { op0(cx, op, &m) }
}
