//! Intersections of rays with nodes: random nodes, made from the layouts alone, and rays whose results are computed here in
//! double precision.

mod boxes;
mod nodes;
mod traversal;
mod triangles;

use nodes::Point;
use std::fmt::Write;
use wavesim::arch::Arch;
use wavesim_tests::random::Rng;
use wavesim_tests::{Setup, run, words};

/// A ray of a lane, and the nodes that it is tested against.
#[derive(Clone, Copy, Debug)]
struct Ray {
    /// The base of the hierarchy in units of 64 bytes from bit 3 on, and flags from bit 54 on.
    base: u64,
    extent: f32,
    mask: u32,
    origin: Point,
    direction: Point,
    nodes: [u32; 2],
}

/// Bits of the descriptor: sorted by the closest, eight at once, triangles first, with instances and flags.
const SORT: u64 = 1 << 63;
const TRIANGLES_FIRST: u64 = 1 << 52;
const COMPRESSED: u64 = 1 << 51;
const BOX_64: u64 = 1 << 52;
const WIDE_SORT: u64 = 1 << 53;
const INSTANCES: u64 = 1 << 54;
const FLAGS: u64 = 1 << 55;
const WEIGHTS: u64 = 1 << 56;

/// A kernel whose `body` has the rays of 32 lanes in v[4:15] and the descriptor in `s[16:19]`; `low` and `high` are bits of the
/// descriptor's halves. `end` follows it; v[20:29] and the ray's origin and direction are its result.
fn source(nodes: &[u32], rays: &[Ray], low: u64, high: u64, body: &str, end: &str) -> String {
    let mut list = Vec::new();
    for lane in 0..32 {
        let ray = rays[lane % rays.len()];
        list.extend([ray.base as u32, (ray.base >> 32) as u32, ray.extent.to_bits(), ray.mask]);
        list.extend(ray.origin.map(f32::to_bits));
        list.extend(ray.direction.map(f32::to_bits));
        list.extend(ray.nodes);
        list.extend([0; 4]);
    }
    let numbers = |list: &[u32]| list.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let mut source = format!("---\narg_nodes: u32[{}] = {}\n", nodes.len(), numbers(nodes));
    let _ = write!(
        source,
        "arg_rays: u32[32, 16] = {}\nout_y: u32[32, 16]\nlocal = 32\nlds = 4096\n---\n",
        numbers(&list)
    );
    let (word1, word2, word3) = ((low >> 32) as u32, 0xffff, (high >> 32) as u32 | 8 << 28);
    let _ = write!(
        source,
        "s_load_b64 s[6:7], s[3:4], 0x0\ns_load_b64 s[8:9], s[3:4], 0x8\ns_load_b64 s[10:11], s[3:4], 0x10\n\
         s_wait_kmcnt 0\ns_lshr_b64 s[16:17], s[6:7], 8\ns_or_b32 s17, s17, {word1:#x}\ns_mov_b32 s18, {word2:#x}\n\
         s_mov_b32 s19, {word3:#x}\nv_lshlrev_b32 v1, 6, v0\nglobal_load_b128 v[4:7], v1, s[8:9]\n\
         global_load_b128 v[8:11], v1, s[8:9] offset:16\nglobal_load_b128 v[12:15], v1, s[8:9] offset:32\n\
         s_wait_loadcnt 0\n{body}{end}\
         global_store_b128 v1, v[20:23], s[10:11]\nglobal_store_b128 v1, v[24:27], s[10:11] offset:16\n\
         global_store_b64 v1, v[28:29], s[10:11] offset:32\nglobal_store_b64 v1, v[8:9], s[10:11] offset:40\n\
         global_store_b128 v1, v[10:13], s[10:11] offset:48\ns_endpgm\n"
    );
    source
}

/// Tests the rays of 32 lanes. Returns for each lane the ten words of the result, and the ray's origin and direction after it.
fn intersect(op: &str, nodes: &[u32], rays: &[Ray], low: u64, high: u64) -> Vec<[u32; 16]> {
    let address = match op {
        "image_bvh_dual_intersect_ray" => "[v[4:5], v[6:7], v[8:10], v[11:13], v[14:15]]",
        _ => "[v[4:5], v[6:7], v[8:10], v[11:13], v14]",
    };
    let body = format!("{op} v[20:29], {address}, s[16:19]\n");
    let source = source(nodes, rays, low, high, &body, "s_wait_bvhcnt 0\n");
    let outputs = run(&source, &Setup { arch: Arch::Rdna4, ..Setup::default() })
        .unwrap_or_else(|error| panic!("{error}\n{source}"));
    let found = words(&outputs["out_y"]);
    found.chunks_exact(16).map(|lane| std::array::from_fn(|n| lane[n])).collect()
}

fn uniform(rng: &mut Rng, low: f32, high: f32) -> f32 {
    low + (high - low) * (rng.below(1 << 20) as f32 / (1 << 20) as f32)
}

fn point(rng: &mut Rng, size: f32) -> Point {
    [0; 3].map(|_| uniform(rng, -size, size))
}

/// A ray from outside towards a point in the middle.
fn ray(rng: &mut Rng, node: u32) -> Ray {
    let origin = point(rng, 1.0).map(|x| x + 6.0 * x.signum());
    let to = point(rng, 3.0);
    let direction = std::array::from_fn(|axis| to[axis] - origin[axis]);
    Ray { base: 0, extent: 1000.0, mask: 0xff, origin, direction, nodes: [node, u32::MAX] }
}

/// Where a ray enters and leaves a box.
fn interval(ray: &Ray, planes: &[Point; 2]) -> [f64; 2] {
    let mut out = [0.0f64, ray.extent as f64];
    let [low, high] = planes;
    for ((origin, direction), (low, high)) in ray.origin.iter().zip(&ray.direction).zip(low.iter().zip(high))
    {
        let at = |x: &f32| (*x as f64 - *origin as f64) / *direction as f64;
        let (near, far) = if *direction >= 0.0 { (low, high) } else { (high, low) };
        out[0] = out[0].max(at(near));
        out[1] = out[1].min(at(far));
    }
    out
}

/// Whether a ray hits a box, if that is certain in single precision.
fn hits(ray: &Ray, planes: &[Point; 2]) -> Option<bool> {
    let [enter, leave] = interval(ray, planes);
    let unclear = (leave - enter).abs() < 1e-4;
    (!unclear).then_some(enter <= leave)
}

fn near(a: f32, b: f64) -> bool {
    (a as f64 - b).abs() <= 1e-4 * b.abs().max(1.0)
}
