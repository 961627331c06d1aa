//! Boxes: compressed, of 32 bits, of high precision, of instances.

use super::nodes::{self, Child, Point};
use super::*;

/// A box with corners in multiples of 1/64.
fn random_box(rng: &mut Rng) -> [Point; 2] {
    let (a, b) = (point(rng, 4.0), point(rng, 4.0));
    let snap = |x: f32| (x * 64.0).round() / 64.0;
    let low = std::array::from_fn(|k| snap(a[k].min(b[k])));
    [low, std::array::from_fn(|k| snap(a[k].max(b[k])).max(low[k] + 0.25))]
}

fn random_children(rng: &mut Rng, count: usize) -> Vec<Child> {
    let child = |rng: &mut Rng| {
        let [lo, hi] = random_box(rng);
        let (kind, range) = (rng.pick(&[5, 5, 0, 2, 6, 9]), 1 + rng.below(3) as u32);
        Child { lo, hi, kind, range, mask: 1 << rng.below(3) | 8, only: 1 << rng.below(4) }
    };
    (0..count).map(|_| child(rng)).collect()
}

/// What a ray of `flags` does not test, of a box with `only`.
fn skips(flags: u32, only: u32) -> bool {
    let forced = (flags & 1 != 0, flags & 2 != 0);
    let opaque = (only & 1 != 0 || forced.0) && !forced.1;
    let transparent = (only & 2 != 0 || forced.1) && !forced.0;
    opaque && flags >> 6 & 1 != 0
        || transparent && flags >> 7 & 1 != 0
        || only & 4 != 0 && flags >> 8 & 1 != 0
        || only & 8 != 0 && flags >> 9 & 1 != 0
}

/// A box with its pointer; whether it is tested at all.
type Entry = (u32, [Point; 2], bool);

/// Compares found pointers with those of boxes: in the places of these, or sorted by a rank, then the distance to the box.
fn compare(ray: &Ray, found: &[u32], boxes: &[Entry], sorted: bool, rank: impl Fn(u32) -> u32) {
    let hit: Vec<u32> = found.iter().copied().filter(|pointer| *pointer != u32::MAX).collect();
    for (pointer, planes, tested) in boxes.iter().filter(|entry| entry.0 != u32::MAX) {
        if let Some(expected) = hits(ray, planes) {
            let expected = expected && *tested;
            assert_eq!(hit.contains(pointer), expected, "{pointer:#x} {planes:?} {ray:?} {found:x?}");
        }
    }
    let of = |pointer: u32| boxes.iter().find(|entry| entry.0 == pointer).expect("a child of the node");
    if sorted {
        assert!(found.iter().take(hit.len()).all(|pointer| *pointer != u32::MAX), "{found:x?}");
        let key = |pointer: u32| (rank(pointer), interval(ray, &of(pointer).1)[0]);
        for pair in hit.windows(2) {
            let (a, b) = (key(pair[0]), key(pair[1]));
            assert!(a.0 < b.0 || a.0 == b.0 && a.1 <= b.1 + 1e-4, "{ray:?} {found:x?} {a:?} {b:?}");
        }
    } else {
        for (place, pointer) in found.iter().enumerate().filter(|(_, pointer)| **pointer != u32::MAX) {
            assert_eq!(boxes[place].0, *pointer, "{found:x?}");
        }
    }
}

fn no_order(_: u32) -> u32 {
    0
}

/// Triangles come first, of these the ones of pair 1.
fn triangles_first(pointer: u32) -> u32 {
    (pointer & 7 > 3) as u32 * 2 + (pointer & 7 != 1) as u32
}

#[test]
fn compressed_boxes_are_those_of_the_node() {
    let mut rng = Rng(1);
    for count in 1..=8 {
        for case in 0..6 {
            let (sort, unsorted) = (case % 3 != 0, case == 5);
            let children = random_children(&mut rng, count);
            let mut words = vec![0; 64];
            let (inner, leaf) = (0x1000, 0x8000);
            let boxes = nodes::box8(&mut words[32..], inner, leaf, &children, unsorted);
            let list: Vec<_> = nodes::pointers(inner, leaf, &children).into_iter().zip(boxes).collect();
            let flags = if case >= 3 { 1u64 << rng.below(10) } else { 0 };
            let rays: Vec<Ray> = (0..32)
                .map(|_| Ray { base: flags << 54, mask: 1 << rng.below(4), ..ray(&mut rng, 0x10 | 5) })
                .collect();
            let first = if case == 4 { TRIANGLES_FIRST } else { 0 };
            let low = if sort { SORT | first } else { 0 };
            let high = COMPRESSED | WIDE_SORT | FLAGS;
            let found = intersect("image_bvh8_intersect_ray", &words, &rays, low, high);
            for (ray, found) in rays.iter().zip(found) {
                let tested = |child: &Child| child.mask & ray.mask != 0 && !skips(flags as u32, child.only);
                let entries =
                    list.iter().zip(&children).map(|(entry, child)| (entry.0, entry.1, tested(child)));
                let entries: Vec<Entry> = entries.collect();
                let rank = if first != 0 { triangles_first } else { no_order };
                compare(ray, &found[..8], &entries, sort && !unsorted, rank);
                assert_eq!(found[8..10], [u32::MAX; 2]);
            }
        }
    }
}

/// Four boxes and their pointers, fewer in some nodes.
fn four(rng: &mut Rng, pointer: u32) -> Vec<(u32, [Point; 2])> {
    (0..1 + rng.below(4) as u32).map(|k| (pointer + 16 * k + 5, random_box(rng))).collect()
}

fn entries(boxes: &[(u32, [Point; 2])]) -> Vec<Entry> {
    let some = boxes.iter().map(|entry| (entry.0, entry.1, true));
    some.chain(std::iter::repeat((u32::MAX, [[0.0; 3]; 2], false))).take(4).collect()
}

#[test]
fn two_nodes_of_four_boxes_are_eight() {
    let mut rng = Rng(2);
    for case in 0..12 {
        let (wide, dual) = (case % 2 == 1, case % 3 == 0);
        let (mut words, mut lists) = (vec![0; 96], Vec::new());
        for h in 0..2 {
            let boxes = four(&mut rng, 0x400 + 0x100 * h);
            let at = 32 * (1 + h as usize);
            nodes::box4(&mut words[at..], &boxes, 0);
            lists.push(entries(&boxes));
        }
        // Units of 64 bytes, and the type: 5 of each node, or 2 of both.
        let numbers = if dual { [2 << 3 | 5, 4 << 3 | 5] } else { [2 << 3 | 2, u32::MAX] };
        let op = if dual { "image_bvh_dual_intersect_ray" } else { "image_bvh8_intersect_ray" };
        let rays: Vec<Ray> = (0..32).map(|_| Ray { nodes: numbers, ..ray(&mut rng, 0) }).collect();
        let found = intersect(op, &words, &rays, SORT, if wide { WIDE_SORT } else { 0 });
        for (ray, found) in rays.iter().zip(found) {
            if wide {
                compare(ray, &found[..8], &lists.concat(), true, no_order);
            } else {
                compare(ray, &found[..4], &lists[0], true, no_order);
                compare(ray, &found[4..8], &lists[1], true, no_order);
            }
        }
    }
}

#[test]
fn boxes_of_high_precision_are_rounded_outwards() {
    let mut rng = Rng(3);
    for case in 0..12 {
        let dual = case % 2 == 0;
        let (mut words, mut lists) = (vec![0; 64], Vec::new());
        for h in 0..2usize {
            let count = 1 + rng.below(4) as usize;
            let kinds: Vec<u32> = (0..count).map(|_| rng.pick(&[0, 1, 3, 4, 6])).collect();
            // Coordinates with all their bits.
            let precise =
                |rng: &mut Rng| random_box(rng).map(|corner| corner.map(|x| x * 1.000_123 + 0.000_321));
            let boxes: Vec<[Point; 2]> = (0..count).map(|_| precise(&mut rng)).collect();
            let base = 0x100 * (1 + h as u32);
            let decoded = nodes::box64(&mut words[32 + 16 * h..48 + 16 * h], base, &kinds, &boxes);
            let outside = decoded.iter().zip(&boxes).all(|(outer, inner)| {
                (0..3).all(|axis| outer[0][axis] <= inner[0][axis] && outer[1][axis] >= inner[1][axis])
            });
            assert!(outside);
            let mut unit = base;
            let list = kinds.iter().zip(decoded).map(|(kind, planes)| {
                let pointer = unit << 3 | kind;
                unit += if *kind == 6 || *kind == 3 { 2 } else { 1 };
                (pointer, planes)
            });
            lists.push(entries(&list.collect::<Vec<_>>()));
        }
        let numbers = if dual { [2 << 3 | 4, 3 << 3 | 4] } else { [2 << 3 | 3, u32::MAX] };
        let op = if dual { "image_bvh_dual_intersect_ray" } else { "image_bvh8_intersect_ray" };
        let rays: Vec<Ray> = (0..32).map(|_| Ray { nodes: numbers, ..ray(&mut rng, 0) }).collect();
        let found = intersect(op, &words, &rays, SORT, WIDE_SORT | BOX_64);
        for (ray, found) in rays.iter().zip(found) {
            compare(ray, &found[..8], &lists.concat(), true, no_order);
        }
    }
}

/// An instance turns the ray into its own space, and tests four boxes there.
#[test]
fn instances_move_the_ray() {
    let mut rng = Rng(4);
    for case in 0..16 {
        let compressed = case % 4 != 3;
        let rows: [[f32; 4]; 3] = std::array::from_fn(|row| {
            std::array::from_fn(|k| uniform(&mut rng, -1.0, 1.0) + (row == k) as u32 as f32)
        });
        let count = 1 + rng.below(4) as usize;
        let mut children = random_children(&mut rng, count);
        children.iter_mut().enumerate().for_each(|(n, child)| (child.kind, child.range) = (n as u32 & 3, 1));
        let mut words = vec![0; 64];
        let own_flags = 1u64 << rng.below(9);
        let base = 0x1234_5678u64 << 3 | own_flags << 54;
        let boxes = nodes::instance(&mut words[32..], &rows, base, 0xabcdef, 0x0f, &children);
        words[32 + 14] = 0x777;
        let flags = if case % 2 == 0 { 0 } else { 1u64 << rng.below(10) };
        let masks = [1, 2, 0x30];
        let rays: Vec<Ray> = (0..32)
            .map(|_| Ray { base: flags << 54, mask: rng.pick(&masks), ..ray(&mut rng, 0x10 | 6) })
            .collect();
        let high = INSTANCES | FLAGS | WIDE_SORT | if compressed { COMPRESSED } else { 0 };
        let found = intersect("image_bvh8_intersect_ray", &words, &rays, SORT, high);
        let dual = intersect("image_bvh_dual_intersect_ray", &words, &rays, SORT, high);
        for (ray, (found, dual)) in rays.iter().zip(found.into_iter().zip(dual)) {
            let procedural = own_flags >> 8 & 1;
            let culled = ray.mask & 0x0f == 0 || flags >> (8 + procedural) & 1 != 0;
            let row = |row: usize, p: Point, w: f64| {
                (0..3).map(|k| rows[row][k] as f64 * p[k] as f64).sum::<f64>() + w * rows[row][3] as f64
            };
            let moved = Ray {
                origin: std::array::from_fn(|k| row(k, ray.origin, 1.0) as f32),
                direction: std::array::from_fn(|k| row(k, ray.direction, 0.0) as f32),
                ..*ray
            };
            let expected = if culled { ray } else { &moved };
            for (k, x) in expected.origin.into_iter().chain(expected.direction).enumerate() {
                assert!(near(f32::from_bits(found[10 + k]), x as f64), "{expected:?} {found:x?}");
                assert_eq!(dual[10 + k], found[10 + k], "{expected:?} {dual:x?}");
            }
            // Flags of both; one that makes all opaque, or not, replaces the instance's.
            let kept = if flags & 3 != 0 { own_flags & 0x3fc } else { own_flags };
            let to = 0x1234_5678u64 << 3 | (kept | flags) << 54;
            assert_eq!(found[2] as u64 | (found[3] as u64) << 32, to);
            assert_eq!(found[6], 0xabcdef);
            let children: Vec<u32> = (0..4).map(|k| found[7] >> (8 * k) & 0xff).collect();
            if culled {
                assert_eq!(found[7], u32::MAX);
            } else if compressed {
                let wide = children.iter().map(|byte| if *byte == 0xff { u32::MAX } else { *byte });
                let list = boxes.iter().enumerate().map(|(n, planes)| (n as u32 * 17, *planes, true));
                compare(&moved, &wide.collect::<Vec<_>>(), &list.collect::<Vec<_>>(), true, no_order);
            } else {
                assert_eq!(found[7], 0x777);
            }
        }
    }
}
