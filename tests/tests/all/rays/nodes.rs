//! Nodes of RDNA 4 in memory (GPURT: QuantizedBVH8BoxNode, PrimitiveStructure, HwInstanceTransformNode,
//! HighPrecisionBoxNode), and what a reader finds in them.

pub type Point = [f32; 3];

/// Writes bits, the first one at bit `first` of the words.
pub fn put(words: &mut [u32], first: usize, length: usize, value: u32) {
    for k in 0..length {
        let (word, bit) = ((first + k) / 32, (first + k) % 32);
        words[word] = words[word] & !(1 << bit) | (value >> k & 1) << bit;
    }
}

/// A child of a box node.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    pub lo: Point,
    pub hi: Point,
    /// The type in its pointer.
    pub kind: u32,
    /// Nodes of 128 bytes that it has.
    pub range: u32,
    /// Groups of instances that it is in.
    pub mask: u32,
    /// Flags: only opaque geometry, none, only triangles, none.
    pub only: u32,
}

/// A plane of a compressed box: steps of the size 2^(exponent - 127 - 12) from the origin.
fn plane(origin: f32, exponent: u32, steps: u32) -> f32 {
    (origin as f64 + steps as f64 * 2f64.powi(exponent as i32 - 139)) as f32
}

/// The decoded boxes of children, and the words of origin, exponents and children.
pub struct Quantised {
    pub origin: Point,
    pub exponents: u32,
    pub words: Vec<[u32; 3]>,
    pub boxes: Vec<[Point; 2]>,
}

/// Compresses boxes so that each is in its decoded one.
pub fn quantise(children: &[Child]) -> Quantised {
    let mut origin = [f32::INFINITY; 3];
    let mut exponents = [0u32; 3];
    for axis in 0..3 {
        origin[axis] = children.iter().map(|child| child.lo[axis]).fold(f32::INFINITY, f32::min);
        let most = children.iter().map(|child| child.hi[axis]).fold(f32::NEG_INFINITY, f32::max);
        let size = most as f64 - origin[axis] as f64;
        exponents[axis] = (1..255).find(|e| 2f64.powi(*e - 127) * 0.999 >= size).unwrap_or(254) as u32;
    }
    let mut out = Quantised { origin, exponents: 0, words: Vec::new(), boxes: Vec::new() };
    for (axis, exponent) in exponents.into_iter().enumerate() {
        out.exponents |= exponent << (8 * axis);
    }
    for child in children {
        let (mut words, mut decoded) = ([0u32; 3], [[0.0; 3]; 2]);
        for axis in 0..3 {
            let (o, e) = (origin[axis], exponents[axis]);
            let low = (0..4096).rev().find(|q| plane(o, e, *q) <= child.lo[axis]).unwrap_or(0);
            let high = (0..4096).find(|q| plane(o, e, q + 1) >= child.hi[axis]).unwrap_or(4095);
            put(&mut words, [0, 12, 32][axis], 12, low);
            put(&mut words, [44, 64, 76][axis], 12, high);
            decoded[0][axis] = plane(o, e, low);
            decoded[1][axis] = plane(o, e, high + 1);
        }
        put(&mut words, 24, 4, child.only);
        put(&mut words, 56, 8, child.mask);
        put(&mut words, 88, 4, child.kind);
        put(&mut words, 92, 4, child.range);
        out.words.push(words);
        out.boxes.push(decoded);
    }
    out
}

/// A compressed box node: `inner` and `leaf` are the pointers of the first children of each kind. Returns its decoded boxes.
pub fn box8(node: &mut [u32], inner: u32, leaf: u32, children: &[Child], unsorted: bool) -> Vec<[Point; 2]> {
    let coded = quantise(children);
    (node[0], node[1], node[2]) = (inner, leaf, u32::MAX);
    for axis in 0..3 {
        node[3 + axis] = coded.origin[axis].to_bits();
    }
    node[6] = coded.exponents | (unsorted as u32) << 24 | (children.len() as u32 - 1) << 28;
    node[7] = 0x7f;
    for (n, words) in coded.words.iter().enumerate() {
        node[8 + 3 * n..11 + 3 * n].copy_from_slice(words);
    }
    coded.boxes
}

/// The pointers that the children of a compressed box node have.
pub fn pointers(inner: u32, leaf: u32, children: &[Child]) -> Vec<u32> {
    let (mut inner, mut leaf) = (inner, leaf);
    let pointers = children.iter().map(|child| {
        let next = if child.kind == 5 { &mut inner } else { &mut leaf };
        let pointer = *next | child.kind;
        *next += child.range << 4;
        pointer
    });
    pointers.collect()
}

/// A triangle of a packet, with the numbers of its vertices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Triangle {
    pub corners: [u32; 3],
    pub opaque: bool,
    pub both_sides: bool,
    pub primitive: u32,
    pub geometry: u32,
}

/// Two triangles; the second one may be missing. `stop` says that a range of primitives ends here.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub first: Triangle,
    pub second: Option<Triangle>,
    pub stop: bool,
}

fn bits_of(value: u32) -> usize {
    32 - value.leading_zeros() as usize
}

/// A packet of triangles. Leaves out the bits that the coordinates have in common, and their zeros at the end. Returns
/// whether it fits.
pub fn packet(node: &mut [u32], vertices: &[Point], pairs: &[Pair]) -> bool {
    node.fill(0);
    let all = |axis: usize| vertices.iter().map(move |v| v[axis].to_bits());
    let zeros = (0..3).flat_map(all).fold(0, |a, b| a | b).trailing_zeros().min(20) as usize;
    let common = [0, 1, 2].map(|axis| {
        let first = vertices[0][axis].to_bits();
        let differ = all(axis).fold(0, |a, b| a | (b ^ first));
        (differ.leading_zeros() as usize).min(31 - zeros)
    });
    let own = common.map(|prefix| 32 - prefix - zeros);
    let list: Vec<Triangle> = pairs.iter().flat_map(|p| [p.first, p.second.unwrap_or(p.first)]).collect();
    let numbers = |number: fn(&Triangle) -> u32| {
        let anchor = number(&list[0]);
        let differ = list.iter().fold(0, |a, t| a | (number(t) ^ anchor));
        (bits_of(anchor), bits_of(differ))
    };
    let (mut primitive_anchor, primitive_bits) = numbers(|t| t.primitive);
    let (geometry_anchor, geometry_bits) = numbers(|t| t.geometry);
    primitive_anchor = primitive_anchor.max(primitive_bits);
    let geometry_bits = geometry_bits.next_multiple_of(2);
    let geometry_anchor = geometry_anchor.max(geometry_bits).next_multiple_of(2);
    let others = list.len() - 1;
    let Some(middle) = (1024 - 29 * pairs.len()).checked_sub(others * primitive_bits + primitive_anchor)
    else {
        return false;
    };
    let vertices_end = 52 + common.iter().sum::<usize>() + vertices.len() * own.iter().sum::<usize>();
    if vertices_end + geometry_anchor + others * geometry_bits > middle {
        return false;
    }
    for (axis, bits) in own.iter().enumerate() {
        put(node, 5 * axis, 5, *bits as u32 - 1);
    }
    for (first, length, value) in [
        (15, 5, zeros),
        (20, 4, geometry_anchor / 2),
        (24, 4, geometry_bits / 2),
        (28, 3, pairs.len() - 1),
        (32, 5, primitive_anchor),
        (37, 5, primitive_bits),
        (42, 10, middle),
    ] {
        put(node, first, length, value as u32);
    }
    let mut at = 52;
    for axis in 0..3 {
        let prefix = if common[axis] == 0 { 0 } else { vertices[0][axis].to_bits() >> (32 - common[axis]) };
        put(node, at, common[axis], prefix);
        at += common[axis];
    }
    for vertex in vertices {
        for axis in 0..3 {
            put(node, at, own[axis], vertex[axis].to_bits() >> zeros);
            at += own[axis];
        }
    }
    for (n, t) in list.iter().enumerate() {
        if n == 0 {
            put(node, middle, primitive_anchor, t.primitive);
            put(node, middle - geometry_anchor, geometry_anchor, t.geometry);
        } else {
            put(node, middle + primitive_anchor + (n - 1) * primitive_bits, primitive_bits, t.primitive);
            put(node, middle - geometry_anchor - n * geometry_bits, geometry_bits, t.geometry);
        }
    }
    for (n, pair) in pairs.iter().enumerate() {
        let at = 1024 - 29 * (n + 1);
        put(node, at, 1, pair.stop as u32);
        for (triangle, flags, corners) in [(Some(pair.first), 15, 17), (pair.second, 1, 3)] {
            let t = triangle.unwrap_or_default();
            put(node, at + flags, 2, t.both_sides as u32 | (t.opaque as u32) << 1);
            for (k, corner) in t.corners.into_iter().enumerate() {
                put(node, at + corners + 4 * k, 4, corner);
            }
        }
    }
    true
}

/// An instance: where its hierarchy begins (bytes) with flags, its number and mask, and the boxes of its children.
pub fn instance(
    node: &mut [u32],
    rows: &[[f32; 4]; 3],
    base: u64,
    user: u32,
    mask: u32,
    children: &[Child],
) -> Vec<[Point; 2]> {
    for (n, x) in rows.iter().flatten().enumerate() {
        node[n] = x.to_bits();
    }
    (node[12], node[13]) = (base as u32, (base >> 32) as u32);
    node[15] = user | mask << 24;
    let coded = quantise(children);
    for axis in 0..3 {
        node[16 + axis] = coded.origin[axis].to_bits();
    }
    node[19] = coded.exponents | (children.len() as u32 - 1) << 28;
    for (n, words) in coded.words.iter().enumerate() {
        node[20 + 3 * n..23 + 3 * n].copy_from_slice(words);
    }
    coded.boxes
}

/// A node of four boxes of 32 bits.
pub fn box4(node: &mut [u32], children: &[(u32, [Point; 2])], only: u32) {
    for k in 0..4 {
        let (pointer, planes) = children.get(k).copied().unwrap_or((u32::MAX, [[f32::NAN; 3]; 2]));
        node[k] = pointer;
        for (n, x) in planes.iter().flatten().enumerate() {
            node[4 + 6 * k + n] = x.to_bits();
        }
    }
    node[28] = only;
}

/// A node of four boxes of high precision, with its children from `base` (units of 64 bytes) on. Returns the decoded boxes:
/// planes of 17 bits below the exponent that those of an axis share.
pub fn box64(node: &mut [u32], base: u32, kinds: &[u32], boxes: &[[Point; 2]]) -> Vec<[Point; 2]> {
    node.fill(0);
    put(node, 0, 29, base);
    for k in 0..4 {
        put(node, 29 + 3 * k, 3, kinds.get(k).copied().unwrap_or(2));
    }
    let mut decoded = boxes.to_vec();
    for axis in 0..3 {
        let planes = boxes.iter().flatten().map(|corner| corner[axis].to_bits() >> 23 & 0xff);
        let exponent = planes.max().unwrap_or(0);
        put(node, 56 + 8 * axis, 8, exponent);
        for (k, planes) in boxes.iter().enumerate() {
            for (far, corner) in planes.iter().enumerate() {
                let x = corner[axis];
                let unit = 2f64.powi(exponent as i32 - 127 - 16);
                let mantissa = (x.abs() as f64 / unit).floor();
                let negative = x.is_sign_negative();
                let place = 80 + 108 * k + 54 * far + 18 * axis;
                put(node, place, 18, mantissa as u32 | (negative as u32) << 17);
                // Outwards by less than a unit.
                let outwards = negative != (far == 1);
                let size = (mantissa + if outwards { 1.0 } else { 0.0 }) * unit;
                decoded[k][far][axis] = if negative { -size as f32 } else { size as f32 };
            }
        }
    }
    decoded
}
