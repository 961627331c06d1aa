//! Traces the Cornell box with IMAGE_BVH64_INTERSECT_RAY, and writes the picture:
//!
//! ```text
//! cargo run --release -p wavesim --example cornell_box -- cornell.png 128
//! ```
//!
//! The hierarchy has the nodes of RDNA 3: four boxes of 32 bits each (type 5), and triangles (type 0).

use std::fmt::Write;
use wavesim::array::picture;
use wavesim::loader::text_kernel::{self, Options};
use wavesim::sched::dispatch;

type Point = [f32; 3];

/// A triangle with its color, and the light that it emits itself.
#[derive(Clone, Copy)]
struct Triangle {
    corners: [Point; 3],
    normal: Point,
    color: Point,
    light: f32,
}

fn sub(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// The two triangles of a parallelogram, whose normal points to the side of `inside`.
fn quad(list: &mut Vec<Triangle>, [a, b, c]: [Point; 3], inside: Point, color: Point, light: f32) {
    let (u, v) = (sub(b, a), sub(c, a));
    let normal = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
    let length = normal.iter().map(|x| x * x).sum::<f32>().sqrt();
    let towards: f32 = sub(inside, a).iter().zip(normal).map(|(x, n)| x * n).sum();
    let normal = normal.map(|n| n / length * towards.signum());
    let d = [b[0] + v[0], b[1] + v[1], b[2] + v[2]];
    for corners in [[a, b, c], [b, d, c]] {
        list.push(Triangle { corners, normal, color, light });
    }
}

/// A block of a height, turned about its vertical axis.
fn block(list: &mut Vec<Triangle>, center: [f32; 2], half: f32, height: f32, angle: f32) {
    let (sin, cos) = angle.sin_cos();
    let corner = |x: f32, z: f32, y: f32| {
        [center[0] + half * (x * cos - z * sin), y, center[1] + half * (x * sin + z * cos)]
    };
    let white = [0.75, 0.75, 0.75];
    let sides = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)];
    for (k, (x, z)) in sides.into_iter().enumerate() {
        let (x2, z2) = sides[(k + 1) % 4];
        let outside = corner(2.0 * (x + x2), 2.0 * (z + z2), height / 2.0);
        quad(list, [corner(x, z, 0.0), corner(x2, z2, 0.0), corner(x, z, height)], outside, white, 0.0);
    }
    let top = [corner(-1.0, -1.0, height), corner(1.0, -1.0, height), corner(-1.0, 1.0, height)];
    quad(list, top, [center[0], 2.0, center[1]], white, 0.0);
}

fn scene() -> Vec<Triangle> {
    let (white, red, green) = ([0.75, 0.75, 0.75], [0.75, 0.15, 0.15], [0.15, 0.65, 0.15]);
    let middle = [0.5, 0.5, 0.5];
    let mut list = Vec::new();
    quad(&mut list, [[0., 0., 0.], [1., 0., 0.], [0., 0., 1.]], middle, white, 0.0);
    quad(&mut list, [[0., 1., 0.], [1., 1., 0.], [0., 1., 1.]], middle, white, 0.0);
    quad(&mut list, [[0., 0., 1.], [1., 0., 1.], [0., 1., 1.]], middle, white, 0.0);
    quad(&mut list, [[0., 0., 0.], [0., 1., 0.], [0., 0., 1.]], middle, red, 0.0);
    quad(&mut list, [[1., 0., 0.], [1., 1., 0.], [1., 0., 1.]], middle, green, 0.0);
    quad(&mut list, [[0.38, 0.995, 0.38], [0.62, 0.995, 0.38], [0.38, 0.995, 0.62]], middle, [1.0; 3], 1.0);
    block(&mut list, [0.34, 0.64], 0.15, 0.6, 0.3);
    block(&mut list, [0.66, 0.32], 0.15, 0.3, -0.3);
    list
}

fn bounds(triangles: &[Triangle]) -> [Point; 2] {
    let mut out = [[f32::INFINITY; 3], [f32::NEG_INFINITY; 3]];
    for point in triangles.iter().flat_map(|t| t.corners) {
        for axis in 0..3 {
            out[0][axis] = out[0][axis].min(point[axis]);
            out[1][axis] = out[1][axis].max(point[axis]);
        }
    }
    out
}

/// The nodes, in dwords, and for each 64 bytes of them a row of the table.
#[derive(Default)]
struct Hierarchy {
    nodes: Vec<u32>,
    table: Vec<[f32; 8]>,
}

impl Hierarchy {
    /// Adds the node of these triangles. Returns its pointer: units of 64 bytes, and the type in three bits.
    fn add(&mut self, triangles: &mut [Triangle]) -> u32 {
        let unit = self.table.len() as u32;
        if let [t] = triangles {
            let mut node: Vec<u32> = t.corners.iter().flatten().map(|x| x.to_bits()).collect();
            node.resize(16, 0);
            node[15] = unit;
            self.nodes.extend(node);
            let ([nx, ny, nz], [r, g, b]) = (t.normal, t.color);
            self.table.push([nx, ny, nz, r, g, b, t.light, 0.0]);
            return unit << 3;
        }
        self.nodes.extend([0; 32]);
        self.table.extend([[0.0; 8]; 2]);
        let at = unit as usize * 16;
        for (k, group) in quarters(triangles).into_iter().enumerate() {
            self.nodes[at + k] = u32::MAX;
            if group.is_empty() {
                continue;
            }
            let coordinates = bounds(group).concat();
            self.nodes[at + k] = self.add(group);
            for (place, x) in coordinates.iter().enumerate() {
                self.nodes[at + 4 + 6 * k + place] = x.to_bits();
            }
        }
        unit << 3 | 5
    }
}

/// Splits triangles into four groups: twice in two, along the longest axis.
fn quarters(triangles: &mut [Triangle]) -> [&mut [Triangle]; 4] {
    fn halves(triangles: &mut [Triangle]) -> (&mut [Triangle], &mut [Triangle]) {
        let [low, high] = bounds(triangles);
        let size = sub(high, low);
        let axis = (0..3).max_by(|a, b| size[*a].total_cmp(&size[*b])).unwrap_or(0);
        let middle = |t: &Triangle| t.corners.iter().map(|c| c[axis]).sum::<f32>();
        triangles.sort_by(|a, b| middle(a).total_cmp(&middle(b)));
        triangles.split_at_mut(triangles.len() / 2)
    }
    let (a, b) = halves(triangles);
    let ((a, c), (b, d)) = (halves(a), halves(b));
    [a, c, b, d]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "cornell.png".to_string());
    let size: u32 = arguments.next().map_or(Ok(128), |size| size.parse())?;
    let size = size.next_multiple_of(8);
    let mut hierarchy = Hierarchy::default();
    hierarchy.add(&mut scene());
    let mut source = String::from("---\n");
    let nodes: Vec<String> = hierarchy.nodes.iter().map(|word| word.to_string()).collect();
    writeln!(source, "arg_nodes: u32[{}] = {}", nodes.len(), nodes.join(", "))?;
    let table: Vec<String> = hierarchy.table.iter().flatten().map(|x| format!("{x:?}")).collect();
    writeln!(source, "arg_table: f32[{}] = {}", table.len(), table.join(", "))?;
    writeln!(source, "const N = {size}\nconst SCALE = {:?}", 1.0 / size as f32)?;
    writeln!(source, "out_picture: image2d<rgba8unorm>[N, N]")?;
    writeln!(source, "local = 8, 4\nglobal = N / 8, N / 4\nlds = 4096\n---")?;
    source += include_str!("cornell_box.rdna");
    let prepared = text_kernel::prepare("cornell_box.rdna", &source, &Options::default(), 0)?;
    let dispatch = prepared.dispatch(1 << 40);
    let stats = dispatch::run(&dispatch, &prepared.memory)?;
    let pictures = prepared.pictures()?;
    let (_, array) = pictures.first().ok_or("the kernel has no picture")?;
    wavesim::files::write(path.as_ref(), |out| picture::write(out, array))?;
    println!("{path}: {size}x{size} pixels, {} instructions", stats.instructions);
    Ok(())
}
