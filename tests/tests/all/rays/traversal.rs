//! A traversal of a whole hierarchy with IMAGE_BVH8_INTERSECT_RAY and DS_BVH_STACK_PUSH8_POP1_RTN_B32 finds the nearest
//! triangle; the stacks of the other instructions push and pop.

use super::nodes::{self, Child, Pair, Point, Triangle};
use super::*;

/// A hierarchy of compressed nodes: boxes of up to eight children, packets of up to four triangles.
#[derive(Default)]
struct Hierarchy {
    words: Vec<u32>,
}

fn bounds(list: &[(u32, [Point; 3])]) -> [Point; 2] {
    let mut out = [[f32::INFINITY; 3], [f32::NEG_INFINITY; 3]];
    for point in list.iter().flat_map(|(_, corners)| corners) {
        for axis in 0..3 {
            out[0][axis] = out[0][axis].min(point[axis]);
            out[1][axis] = out[1][axis].max(point[axis]);
        }
    }
    out
}

impl Hierarchy {
    fn allocate(&mut self, count: usize) -> u32 {
        let unit = self.words.len() as u32 / 32;
        self.words.resize(self.words.len() + 32 * count, 0);
        unit << 4
    }

    /// Fills the box node at a pointer (without its type).
    fn fill(&mut self, at: u32, list: &mut [(u32, [Point; 3])]) {
        let mut groups: Vec<&mut [(u32, [Point; 3])]> = vec![list];
        // The largest group is split until there are eight, or all are packets.
        while groups.len() < 8 {
            let Some(largest) = (0..groups.len()).max_by_key(|n| groups[*n].len()) else { break };
            if groups[largest].len() <= 4 {
                break;
            }
            let group = groups.swap_remove(largest);
            let [low, high] = bounds(group);
            let axis =
                (0..3).max_by(|a, b| (high[*a] - low[*a]).total_cmp(&(high[*b] - low[*b]))).unwrap_or(0);
            group.sort_by(|a, b| a.1[0][axis].total_cmp(&b.1[0][axis]));
            let (a, b) = group.split_at_mut(group.len() / 2);
            groups.extend([a, b]);
        }
        let leaves = groups.iter().filter(|group| group.len() <= 4).count();
        let inner = self.allocate(groups.len() - leaves);
        let leaf = self.allocate(leaves);
        let (mut next_inner, mut next_leaf, mut children) = (inner, leaf, Vec::new());
        for group in groups {
            let [lo, hi] = bounds(group);
            let kind = if group.len() <= 4 { 0 } else { 5 };
            children.push(Child { lo, hi, kind, range: 1, mask: 0xff, only: 0 });
            if kind == 5 {
                self.fill(next_inner, group);
                next_inner += 16;
            } else {
                self.packet(next_leaf, group);
                next_leaf += 16;
            }
        }
        nodes::box8(&mut self.words[at as usize * 2..][..32], inner, leaf, &children, false);
    }

    fn packet(&mut self, at: u32, list: &[(u32, [Point; 3])]) {
        let vertices: Vec<Point> = list.iter().flat_map(|(_, corners)| *corners).collect();
        let triangle = |n: usize| Triangle {
            corners: [0, 1, 2].map(|k| 3 * n as u32 + k),
            opaque: true,
            primitive: list[n].0,
            ..Triangle::default()
        };
        let pairs: Vec<Pair> = (0..list.len().div_ceil(2))
            .map(|n| Pair {
                first: triangle(2 * n),
                second: (2 * n + 1 < list.len()).then(|| triangle(2 * n + 1)),
                stop: 2 * n + 2 >= list.len(),
            })
            .collect();
        assert!(nodes::packet(&mut self.words[at as usize * 2..][..32], &vertices, &pairs));
    }
}

/// The traversal; v14 is the next node, v15 the stack's address, v6 and v17 the nearest distance and triangle.
const TRAVERSAL: &str = "v_mov_b32 v14, 5
v_lshlrev_b32 v15, 15, v0
v_mov_b32 v17, -1
next:
image_bvh8_intersect_ray v[20:29], [v[4:5], v[6:7], v[8:10], v[11:13], v14], s[16:19]
v_mov_b32 v16, -1
s_wait_bvhcnt 0
v_and_b32 v18, 7, v14
v_cmp_gt_u32 vcc_lo, 4, v18
s_and_saveexec_b32 s30, vcc_lo
s_cbranch_execz push
v_cmp_lt_f32 vcc_lo, v20, v6
v_cndmask_b32 v6, v6, v20, vcc_lo
v_lshrrev_b32 v18, 1, v23
v_cndmask_b32 v17, v17, v18, vcc_lo
v_cmp_lt_f32 vcc_lo, v24, v6
v_cndmask_b32 v6, v6, v24, vcc_lo
v_lshrrev_b32 v18, 1, v27
v_cndmask_b32 v17, v17, v18, vcc_lo
v_and_b32 v18, 3, v28
v_or_b32 v16, -8, v18
v_mov_b32 v27, v14
push:
s_mov_b32 exec_lo, s30
ds_bvh_stack_push8_pop1_rtn_b32 v14, v15, v16, v[20:27] offset:528
s_wait_dscnt 0
v_cmp_ne_u32 vcc_lo, -2, v14
s_and_b32 exec_lo, exec_lo, vcc_lo
s_cbranch_execnz next
s_mov_b32 exec_lo, -1
";

#[test]
fn a_traversal_finds_the_nearest_triangle() {
    let mut rng = Rng(8);
    for count in [1, 3, 7, 40, 150] {
        let middle = |rng: &mut Rng| point(rng, 4.0);
        let mut list: Vec<(u32, [Point; 3])> = (0..count)
            .map(|n| {
                let center = middle(&mut rng);
                let corner = |rng: &mut Rng| {
                    let offset = point(rng, 1.5);
                    // Few bits, so that four triangles fit in a packet.
                    std::array::from_fn(|k| ((center[k] + offset[k]) * 32.0).round() / 32.0)
                };
                (n, std::array::from_fn(|_| corner(&mut rng)))
            })
            .collect();
        let mut hierarchy = Hierarchy::default();
        let root = hierarchy.allocate(1);
        hierarchy.fill(root, &mut list);
        let rays: Vec<Ray> = (0..32).map(|_| ray(&mut rng, 5)).collect();
        let found = trace(&hierarchy.words, &rays);
        let mut hits = 0;
        for (ray, [distance, number]) in rays.iter().zip(found) {
            let all: Option<Vec<(u32, f64)>> =
                list.iter().map(|(n, corners)| Some((*n, triangles::distance(ray, *corners)?))).collect();
            let Some(all) = all else { continue };
            let nearest = all.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
            let (n, t) = nearest.unwrap_or((u32::MAX, f64::INFINITY));
            if t.is_infinite() {
                assert_eq!(number, u32::MAX, "{ray:?}");
                continue;
            }
            hits += 1;
            assert!(
                near(f32::from_bits(distance), t),
                "{ray:?} {n} {t} {number} {}",
                f32::from_bits(distance)
            );
            assert_eq!(number, n);
        }
        assert!(count < 40 || hits > 3, "{hits} of {count}");
    }
}

/// Distance and number of the nearest triangle of each ray.
fn trace(nodes: &[u32], rays: &[Ray]) -> Vec<[u32; 2]> {
    let low = SORT | TRIANGLES_FIRST;
    let source = source(
        nodes,
        rays,
        low,
        COMPRESSED | WIDE_SORT | FLAGS,
        TRAVERSAL,
        "v_mov_b32 v20, v6\nv_mov_b32 v21, v17\n",
    );
    let outputs = run(&source, &Setup { arch: Arch::Rdna4, ..Setup::default() })
        .unwrap_or_else(|error| panic!("{error}\n{source}"));
    words(&outputs["out_y"]).chunks_exact(16).map(|lane| [lane[0], lane[1]]).collect()
}

/// Runs one stack instruction with the same operands in all lanes, several times: each line has the last node and the nodes.
/// The stack of lane 0 begins with `address`. Returns the addresses and what was popped.
fn stack(arch: Arch, op: &str, offset: u32, address: u32, calls: &[(u32, &[u32])]) -> Vec<[u32; 3]> {
    let lgkm = if arch == Arch::Rdna4 { "s_wait_dscnt 0" } else { "s_waitcnt lgkmcnt(0)" };
    let kmcnt = if arch == Arch::Rdna4 { "s_wait_kmcnt 0" } else { "s_waitcnt lgkmcnt(0)" };
    let mut source = format!(
        "---\nout_y: u32[{}]\nlocal = 1\nlds = 4096\n---\ns_load_b64 s[10:11], s[3:4], 0x0\n{kmcnt}\nv_mov_b32 v1, 0\n\
         v_mov_b32 v15, {address:#x}\n",
        4 * calls.len()
    );
    for (n, (last, nodes)) in calls.iter().enumerate() {
        let _ = writeln!(source, "v_mov_b32 v16, {last:#x}\nv_mov_b32 v3, 0");
        for (k, node) in nodes.iter().enumerate() {
            let _ = writeln!(source, "v_mov_b32 v{}, {node:#x}", 20 + k);
        }
        let popped = if op.ends_with("b64") { "v[2:3]" } else { "v2" };
        let data = 19 + nodes.len();
        let _ = writeln!(
            source,
            "{op} {popped}, v15, v16, v[20:{data}] offset:{offset}\n{lgkm}\nv_mov_b32 v4, v15\n\
             global_store_b64 v1, v[2:3], s[10:11] offset:{}\nglobal_store_b32 v1, v4, s[10:11] offset:{}",
            16 * n,
            16 * n + 8
        );
    }
    source += "s_endpgm\n";
    let outputs =
        run(&source, &Setup { arch, ..Setup::default() }).unwrap_or_else(|error| panic!("{error}\n{source}"));
    words(&outputs["out_y"]).chunks_exact(4).map(|call| [call[0], call[1], call[2]]).collect()
}

const NONE: u32 = u32::MAX;
/// What an empty stack returns.
const END: u32 = 0xffff_fffe;

#[test]
fn rdna3_stacks_return_the_first_node_and_keep_the_others() {
    let (a, b) = ([0x15, 0x25, 0x35, NONE], [0x45, NONE, NONE, NONE]);
    let empty = [NONE; 4];
    // 0x25 was visited: of the way up, only 0x35 is left.
    let up = [0x15, 0x25, 0x35, NONE];
    let calls: [(u32, &[u32]); 7] =
        [(NONE, &a), (NONE, &b), (NONE, &empty), (NONE, &empty), (NONE, &empty), (0x25, &up), (0x999, &up)];
    let found = stack(Arch::Rdna3, "ds_bvh_stack_rtn_b32", 1 << 12, 3 << 18, &calls);
    let popped: Vec<u32> = found.iter().map(|call| call[0]).collect();
    assert_eq!(popped, [0x15, 0x45, 0x25, 0x35, END, 0x35, END]);
    let depths: Vec<u32> = found.iter().map(|call| call[2] ^ 3 << 18).collect();
    assert_eq!(depths, [8, 8, 4, 0, 0, 0, 0]);
    // A stack of 8 entries loses the oldest.
    let many = [0x105, 0x115, 0x125, 0x135];
    let calls: Vec<(u32, &[u32])> =
        (0..3).map(|_| (NONE, &many[..])).chain((0..10).map(|_| (NONE, &empty[..]))).collect();
    let found = stack(Arch::Rdna3, "ds_bvh_stack_rtn_b32", 0, 0, &calls);
    let popped: Vec<u32> = found[3..].iter().map(|call| call[0]).collect();
    assert_eq!(popped[..8], [0x115, 0x125, 0x135, 0x115, 0x125, 0x135, 0x115, 0x125]);
    assert_eq!(popped[8..], [NONE, END]);
}

#[test]
fn rdna4_stacks_know_instances_and_pairs() {
    let op = "ds_bvh_stack_push8_pop1_rtn_b32";
    let mut top = [NONE; 8];
    (top[0], top[1]) = (0x46, 0x55);
    let mut below = [NONE; 8];
    (below[0], below[1]) = (0x65, 0x75);
    let empty = [NONE; 8];
    // The instance 0x46 is popped; in it two nodes, after which the parent's is next.
    let calls: [(u32, &[u32]); 5] =
        [(NONE, &top), (NONE, &below), (NONE, &empty), (NONE, &empty), (NONE, &empty)];
    let found = stack(Arch::Rdna4, op, 16, 5 << 15, &calls);
    let popped: Vec<u32> = found.iter().map(|call| call[0]).collect();
    assert_eq!(popped, [0x46, 0x65, 0x75, 0x55, END]);
    let flags: Vec<u32> = found.iter().map(|call| call[2] >> 29).collect();
    // In an instance; then back in the parent.
    assert_eq!(flags, [1, 1, 1, 4, 0]);
    assert!(found.iter().all(|call| call[2] >> 15 & 0x3fff == 5));
    // Ranges of primitives: the next pair, the next packet, the end.
    let pair = |node: u32| [0, 0, 0, 0, 0, 0, 0, node];
    let (first, third, last) = (pair(0x10), pair(0x13), pair(0x1b));
    let calls: [(u32, &[u32]); 4] =
        [(0xffff_fff8, &first), (0xffff_fff8, &third), (0xffff_fff9, &last), (0xffff_fffb, &last)];
    let found = stack(Arch::Rdna4, op, 16 | 2 << 8, 0, &calls);
    assert_eq!(found.iter().map(|call| call[0]).collect::<Vec<_>>(), [0x11, 0x18, 0x20, END]);
    // Two at a time: a pair is both of its triangles.
    let op = "ds_bvh_stack_push8_pop2_rtn_b64";
    let mut three = [NONE; 8];
    (three[0], three[1], three[2]) = (0x25, 0x31, 0x45);
    let calls: [(u32, &[u32]); 3] = [(NONE, &three), (NONE, &empty), (NONE, &empty)];
    let found = stack(Arch::Rdna4, op, 16, 0, &calls);
    assert_eq!(
        found.iter().map(|call| [call[0], call[1]]).collect::<Vec<_>>(),
        [[0x31, 0x25], [0x45, NONE], [END, NONE]]
    );
    let found =
        stack(Arch::Rdna4, op, 16 | 1 << 8, 0, &[(NONE, &[NONE, 0x31, NONE, NONE, NONE, NONE, NONE, NONE])]);
    assert_eq!(found[0][..2], [0x30, 0x31]);
    // Four at a time, and an overflow, after which an empty stack says so.
    let op = "ds_bvh_stack_push4_pop1_rtn_b32";
    let four = [0x15, 0x25, 0x35, 0x45];
    let none = [NONE; 4];
    let calls: [(u32, &[u32]); 5] =
        [(NONE, &four), (NONE, &none), (NONE, &none), (NONE, &none), (NONE, &none)];
    let found = stack(Arch::Rdna4, op, 3, 0, &calls);
    let popped: Vec<u32> = found.iter().map(|call| call[0]).collect();
    assert_eq!(popped, [0x15, 0x25, 0x35, NONE, NONE]);
    assert!(found.iter().all(|call| call[2] >> 30 & 1 == 1));
}
