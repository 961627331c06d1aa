///GLOBAL_STORE_B64 (Lane).
#[inline(always)]
unsafe fn op0<M: Mode>(cx: &mut Cx<'_>, op: &Op, m: &M, half: usize) -> Flow {
    let mut flow = Flow::NEXT;
    let clamp = rt::clamp(op);
    let (mut new_exec, mut all_d0, mut all_vcc) = (0u64, 0u64, 0u64);
    let file = rt::file(cx, half);
    let lane_base: u32 = 32 * half as u32;
    let mut exec: u32 = (cx.wave.exec() >> lane_base) as u32;
    let mut r_vaddr = rt::stage::<2usize>(cx, file, op.src[0usize], 0usize);
    let mut r_data = rt::stage::<2usize>(cx, file, op.src[2usize], 2usize);
    let mut stored = [LaneVec::ZERO; 2usize];
    for l in 0..32usize {
        let lane: u32 = lane_base + l as u32;
        let vaddr = ((*r_vaddr.add(0)).0[l] as u64
            | ((*r_vaddr.add(1)).0[l] as u64) << 32);
        let data = ((*r_data.add(0)).0[l] as u64 | ((*r_data.add(1)).0[l] as u64) << 32);
        let mut t0: u64 = 0;
        {
            let v = data;
            stored[0usize].0[l] = (v >> 0u32) as u32;
            stored[1usize].0[l] = (v >> 32u32) as u32;
        }
    }
    if let Err(flow) = if (((op.src[1usize].number() as u32) == 124u32) as u32) != 0 {
        let mut addresses = [0u64; 32];
        for l in 0..32usize {
            let lane: u32 = lane_base + l as u32;
            let vaddr = ((*r_vaddr.add(0)).0[l] as u64
                | ((*r_vaddr.add(1)).0[l] as u64) << 32);
            let data = ((*r_data.add(0)).0[l] as u64
                | ((*r_data.add(1)).0[l] as u64) << 32);
            let mut t0: u64 = 0;
            t0 = vaddr.wrapping_add(((op.imm) as i32) as i64 as u64);
            addresses[l] = t0;
        }
        rt::store_vecs::<
            8usize,
            2usize,
        >(cx, rt::Space::Global, &addresses, exec, lane_base, &stored)
    } else {
        let saddr = rt::scalar2(cx, op.src[1usize]) as u64;
        let base = 0u64
            .wrapping_add(saddr)
            .wrapping_add(((op.imm) as i32) as i64 as u64);
        rt::store_offsets::<8usize, 2usize>(cx, base, r_vaddr, exec, lane_base, &stored)
    } {
        return flow;
    }
    flow
}
#[cfg_attr(
    target_arch = "x86_64",
    target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt")
)]
#[inline(never)]
unsafe fn op0_keep_wide(cx: &mut Cx<'_>, op: &Op) -> Flow {
    let base = 0u64.wrapping_add(((op.imm) as i32) as i64 as u64);
    if unsafe {
        rt::store_block::<
            false,
            true,
            1usize,
            2usize,
        >(cx, base, op.src[0usize], false, op.src[2usize])
    } {
        Flow::NEXT
    } else {
        unsafe { op0_keep_watched_wide(cx, op) }
    }
}
#[cfg_attr(
    target_arch = "x86_64",
    target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt")
)]
#[cold]
#[inline(never)]
unsafe fn op0_keep_watched_wide(cx: &mut Cx<'_>, op: &Op) -> Flow {
    if cx.watch.is_none() {
        return unsafe { op0_keep_general(cx, op) };
    }
    let base = 0u64.wrapping_add(((op.imm) as i32) as i64 as u64);
    if unsafe {
        rt::store_block::<
            true,
            true,
            1usize,
            2usize,
        >(cx, base, op.src[0usize], false, op.src[2usize])
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
pub unsafe fn op0_keep(cx: &mut Cx<'_>, op: &Op) -> Flow {
    if (((op.src[1usize].number() as u32) == 124u32) as u32) != 0 {
        return unsafe { op0_keep_wide(cx, op) };
    }
    let saddr = unsafe { rt::fast_scalar2(cx, op.src[1]) };
    let base = 0u64.wrapping_add(saddr).wrapping_add(((op.imm) as i32) as i64 as u64);
    if unsafe {
        rt::store_block::<
            false,
            false,
            1usize,
            2usize,
        >(cx, base, op.src[0usize], false, op.src[2usize])
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
    if (((op.src[1usize].number() as u32) == 124u32) as u32) != 0 {
        return unsafe { op0_keep_general(cx, op) };
    }
    let saddr = unsafe { rt::fast_scalar2(cx, op.src[1]) };
    let base = 0u64.wrapping_add(saddr).wrapping_add(((op.imm) as i32) as i64 as u64);
    if unsafe {
        rt::store_block::<
            true,
            false,
            1usize,
            2usize,
        >(cx, base, op.src[0usize], false, op.src[2usize])
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
