//! Triangles of packets: distances, barycentrics, numbers, sides, culling.

use super::nodes::{self, Pair, Point, Triangle};
use super::*;

/// Distance, weights of the second and third corner, and the determinant, which is negative for the back.
fn expected(ray: &Ray, [a, b, c]: [Point; 3]) -> Option<[f64; 4]> {
    let sub = |p: Point, q: Point| std::array::from_fn::<f64, 3, _>(|k| p[k] as f64 - q[k] as f64);
    let dot = |p: [f64; 3], q: [f64; 3]| p[0] * q[0] + p[1] * q[1] + p[2] * q[2];
    let cross = |p: [f64; 3], q: [f64; 3]| {
        [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]]
    };
    let (e1, e2, e3) = (sub(b, a), sub(c, a), sub(ray.origin, a));
    let direction = ray.direction.map(f64::from);
    let (s1, s2) = (cross(direction, e2), cross(e3, e1));
    let det = dot(s1, e1);
    let (t, i, j) = (dot(e2, s2) / det, dot(e3, s1) / det, dot(direction, s2) / det);
    // Far from an edge, and not from the side.
    let least = i.min(j).min(1.0 - i - j);
    (least.abs() > 1e-3 && det.abs() > 0.01 && t.abs() > 1e-2).then_some([
        t,
        i,
        j,
        if least > 0.0 && t > 0.0 { det } else { 0.0 },
    ])
}

/// The distance of a triangle, infinite if the ray misses it; none if that is not certain.
pub fn distance(ray: &Ray, corners: [Point; 3]) -> Option<f64> {
    expected(ray, corners).map(|[t, _, _, det]| if det != 0.0 { t } else { f64::INFINITY })
}

/// Corners in steps of 1/32, around the middle, so that packets have bits to leave out.
fn vertices(rng: &mut Rng, count: usize) -> Vec<Point> {
    (0..count).map(|_| point(rng, 3.0).map(|x| (x * 32.0).round() / 32.0 + 4.0)).collect()
}

fn triangle(rng: &mut Rng, vertices: usize) -> Triangle {
    let first = rng.below(vertices as u64 - 2) as u32;
    Triangle {
        corners: [first, first + 1, first + 2],
        opaque: rng.chance(2),
        both_sides: rng.chance(4),
        primitive: 1000 + rng.below(300) as u32,
        geometry: 5 + rng.below(40) as u32,
    }
}

/// What the flags of a ray do to a hit of a triangle; `front` is its side after a turn.
fn culled(flags: u32, t: &Triangle, front: bool) -> bool {
    let has = |bit: u32| flags >> bit & 1 != 0;
    let opaque = has(0) || !has(1) && t.opaque;
    let side = !t.both_sides && !has(2) && if front { has(5) } else { has(4) };
    side || has(8) || if opaque { has(6) } else { has(7) }
}

#[test]
fn packets_have_pairs_of_triangles() {
    let mut rng = Rng(5);
    let mut full = 0;
    for case in 0..60 {
        let count = 4 + rng.below(9) as usize;
        let list = vertices(&mut rng, count);
        let mut pairs: Vec<Pair> = (0..1 + rng.below(8))
            .map(|_| Pair {
                first: triangle(&mut rng, count),
                second: (!rng.chance(4)).then(|| triangle(&mut rng, count)),
                stop: rng.chance(3),
            })
            .collect();
        let mut words = vec![0; 64];
        while !nodes::packet(&mut words[32..], &list, &pairs) {
            pairs.pop();
        }
        full = full.max(pairs.len());
        let flags = if case % 2 == 0 { 0 } else { 1u64 << rng.below(9) };
        let rays: Vec<Ray> = (0..32)
            .map(|_| {
                let pair = rng.below(pairs.len() as u64) as u32;
                let node = 0x10 | pair & 3 | (pair & 4) << 1;
                let ray = Ray { base: flags << 54, ..ray(&mut rng, node) };
                // Towards a corner's surroundings.
                let to = list[pairs[pair as usize].first.corners[0] as usize];
                let near = point(&mut rng, 1.0);
                Ray { direction: std::array::from_fn(|k| to[k] + near[k] - ray.origin[k]), ..ray }
            })
            .collect();
        let found = intersect("image_bvh8_intersect_ray", &words, &rays, SORT, COMPRESSED | FLAGS | WEIGHTS);
        for (ray, found) in rays.iter().zip(found) {
            let number = ray.nodes[0] & 3 | (ray.nodes[0] & 8) >> 1;
            let pair = &pairs[number as usize];
            let steps = if pair.stop { 3 } else { (number as usize + 1 == pairs.len()) as u32 };
            let second = pair.second.unwrap_or(pair.first);
            assert_eq!(found[8], pair.first.geometry << 2 | steps);
            assert_eq!(found[9], second.geometry << 2 | steps);
            for (t, words) in [(Some(pair.first), &found[..4]), (pair.second, &found[4..8])] {
                let Some(t) = t else {
                    assert_eq!(words, [0x7f80_0000, 0x3f80_0000, 0x3f80_0000, 0]);
                    continue;
                };
                assert_eq!(words[3] >> 1, t.primitive);
                let opaque = flags & 1 != 0 || flags & 2 == 0 && t.opaque;
                assert_eq!(words[2] >> 31 == 0, opaque);
                let corners = t.corners.map(|n| list[n as usize]);
                let Some([distance, i, j, det]) = expected(ray, corners) else { continue };
                let turned = flags >> 3 & 1 != 0;
                let hit = det != 0.0 && !culled(flags as u32, &t, (det > 0.0) != turned);
                assert_eq!(words[0] != 0x7f80_0000, hit, "{ray:?} {t:?} {words:x?}");
                if hit {
                    assert_eq!(words[3] & 1 != 0, (det < 0.0) != turned, "the side");
                    let [t0, i0, j0] = [words[0], words[1], words[2] & 0x7fff_ffff].map(f32::from_bits);
                    assert!(
                        near(t0, distance) && near(i0, i) && near(j0, j),
                        "{words:x?} {distance} {i} {j}"
                    );
                }
            }
        }
    }
    assert_eq!(full, 8);
}

/// A procedural primitive is always reached: a shader tests it.
#[test]
fn procedural_primitives_are_always_reached() {
    let mut rng = Rng(6);
    let mut words = vec![0; 64];
    let t = Triangle { corners: [15, 15, 0], opaque: true, primitive: 7, geometry: 2, ..Triangle::default() };
    assert!(nodes::packet(
        &mut words[32..],
        &[[1.0; 3], [2.0; 3]],
        &[Pair { first: t, second: None, stop: true }]
    ));
    for flags in [0u64, 1 << 9, 1 << 6] {
        let rays: Vec<Ray> = (0..32).map(|_| Ray { base: flags << 54, ..ray(&mut rng, 0x10) }).collect();
        for found in intersect("image_bvh8_intersect_ray", &words, &rays, 0, COMPRESSED | FLAGS) {
            let t = if flags == 0 { 0 } else { 0x7f80_0000 };
            assert_eq!(found[..4], [t, 0xbf80_0000, 0x3f80_0000, 14]);
            assert_eq!(found[8], 2 << 2 | 3);
        }
    }
}

/// Triangle nodes of the other instructions: weights that the node selects, the geometry in the last words.
#[test]
fn dual_tests_two_triangle_nodes() {
    let mut rng = Rng(7);
    let mut words = vec![0; 64];
    let corners: Vec<[Point; 3]> = (0..2).map(|_| std::array::from_fn(|_| point(&mut rng, 6.0))).collect();
    for (n, triangle) in corners.iter().enumerate() {
        for (k, x) in triangle.iter().flatten().enumerate() {
            words[32 + 16 * n + k] = x.to_bits();
        }
        words[32 + 16 * n + 14] = 40 + n as u32;
        // Weights of corners 2 and 1, and opaque.
        words[32 + 16 * n + 15] = 2 | 1 << 2 | 1 << 7;
    }
    let rays: Vec<Ray> = (0..32).map(|_| Ray { nodes: [2 << 3, 3 << 3], ..ray(&mut rng, 0) }).collect();
    let found = intersect("image_bvh_dual_intersect_ray", &words, &rays, 0, WEIGHTS | FLAGS);
    let mut hits = 0;
    for (ray, found) in rays.iter().zip(found) {
        for n in 0..2 {
            assert_eq!(found[8 + n], 40 + n as u32);
            let [t, below, i, j] = std::array::from_fn(|k| f32::from_bits(found[4 * n + k]));
            let Some([distance, i0, j0, det]) = expected(ray, corners[n]) else { continue };
            assert_eq!(t.is_finite(), det != 0.0, "{ray:?} {found:x?}");
            if det != 0.0 {
                hits += 1;
                let weights = (i / below.abs(), j / below.abs());
                assert!(
                    near(t / below, distance) && near(weights.0, j0) && near(weights.1, i0),
                    "{found:x?}"
                );
            }
        }
    }
    assert!(hits > 3, "{hits}");
}
