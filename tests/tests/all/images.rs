//! Properties of image instructions: loads, samples, gathers and queries agree with each other and with the
//! descriptor.

use std::collections::BTreeSet;
use std::fmt::Write;
use wavesim::arch::Arch;
use wavesim::array::Array;
use wavesim::exec::image::{Dimension, Image, Place};
use wavesim_tests::random::Rng;
use wavesim_tests::{Setup, run, words};

/// Architectures with images.
const ARCHS: [Arch; 3] = [Arch::Rdna3, Arch::Rdna35, Arch::Rdna4];

#[test]
fn architectures_with_image_instructions_have_a_layout() {
    for arch in Arch::AMD {
        let has = arch.table().instructions.iter().any(|inst| inst.name == "IMAGE_LOAD");
        assert_eq!(arch.facts().image_row_bytes.is_some(), has, "{arch:?}");
        assert_eq!(ARCHS.contains(&arch), has, "{arch:?}");
    }
}

/// A kernel of 32 work-items with the image in `s[16:23]`, the sampler in `s[24:27]` and `out_y` in `s[10:11]`; v2 is
/// the offset of 16 bytes for each work-item.
fn kernel(header: &str, body: &str) -> String {
    format!(
        "---\n{header}\nlocal = 32\n---\n\
         s_load_b64 s[6:7], s[3:4], 0x0\n\
         s_load_b64 s[8:9], s[3:4], 0x8\n\
         s_load_b64 s[10:11], s[3:4], 0x10\n\
         s_waitcnt lgkmcnt(0)\n\
         s_load_b256 s[16:23], s[6:7], 0x0\n\
         s_load_b128 s[24:27], s[8:9], 0x0\n\
         v_lshlrev_b32 v2, 4, v0\n\
         s_waitcnt lgkmcnt(0)\n\
         {body}\n\
         s_waitcnt vmcnt(0)\n\
         global_store_b128 v2, v[4:7], s[10:11]\n\
         s_endpgm\n"
    )
}

/// The results of the four components of each work-item.
fn results(arch: Arch, header: &str, body: &str) -> Vec<u32> {
    // The counters of samples are others on RDNA 4: wait for everything.
    let body = if arch == Arch::Rdna4 { format!("{body}\ns_wait_samplecnt 0x0") } else { body.to_string() };
    let source = kernel(header, &body);
    let outputs: std::collections::BTreeMap<String, Array> =
        run(&source, &Setup { arch, ..Setup::default() })
            .unwrap_or_else(|e| panic!("{arch:?}: {e}\n{source}"));
    words(&outputs["out_y"])
}

/// Two coordinates in one operand: RDNA 4 has a field for each.
fn pair(arch: Arch) -> &'static str {
    if arch == Arch::Rdna4 { "[v8, v9]" } else { "v[8:9]" }
}

/// The coordinates (x, y) of texel v0 of an image of 8 by 4, as integers in v8 and v9.
const TEXEL: &str = "v_and_b32 v8, 7, v0\nv_lshrrev_b32 v9, 3, v0\n";

/// From integers to the centres of texels, normalised.
const CENTRE: &str = "v_cvt_f32_u32 v8, v8\nv_cvt_f32_u32 v9, v9\nv_add_f32 v8, 0.5, v8\nv_add_f32 v9, 0.5, v9\n\
                      v_mul_f32 v8, 0.125, v8\nv_mul_f32 v9, 0.25, v9\n";

/// Formats, with initial contents that are numbers in each of them.
const FORMATS: [&str; 8] = [
    "rgba8unorm",
    "rgba8snorm",
    "rg16float",
    "r32float",
    "rgba32float",
    "rgba8uint",
    "rgb10a2unorm",
    "rgba8unorm_srgb",
];

fn header(format: &str, sampler: &str) -> String {
    format!("arg_t: image2d<{format}>[8, 4] = rand()\narg_s: sampler({sampler})\nout_y: u32[32, 4]")
}

#[test]
fn samples_at_the_centres_of_texels_are_loads() {
    for arch in ARCHS {
        let unorm = if arch == Arch::Rdna4 { "" } else { "unorm" };
        let at = pair(arch);
        for format in FORMATS {
            let load =
                format!("{TEXEL}image_load v[4:7], {at}, s[16:23] dmask:0xf dim:SQ_RSRC_IMG_2D {unorm}");
            let expected = results(arch, &header(format, "nearest"), &load);
            for filter in ["nearest", "linear", "nearest, mirror", "linear, clamp", "linear, border"] {
                let sample = format!(
                    "{TEXEL}{CENTRE}image_sample_lz v[4:7], {at}, s[16:23], s[24:27] dmask:0xf dim:SQ_RSRC_IMG_2D"
                );
                assert_eq!(
                    results(arch, &header(format, filter), &sample),
                    expected,
                    "{arch:?} {format} {filter}"
                );
            }
        }
    }
}

#[test]
fn gathers_are_four_loads() {
    for arch in ARCHS {
        let unorm = if arch == Arch::Rdna4 { "" } else { "unorm" };
        let at = pair(arch);
        for (channel, mask) in [(0, 1), (1, 2), (2, 4), (3, 8)] {
            let gather = format!(
                "{TEXEL}{CENTRE}v_add_f32 v8, 0x3d800000, v8\nv_add_f32 v9, 0x3e000000, v9\n\
                 image_gather4_lz v[4:7], {at}, s[16:23], s[24:27] dmask:{mask} dim:SQ_RSRC_IMG_2D"
            );
            let gathered = results(arch, &header("rgba8unorm", "nearest, clamp"), &gather);
            // Counter-clockwise from the lower left texel; the first row is the upper one.
            for (place, (dx, dy)) in [(0, 1), (1, 1), (1, 0), (0, 0)].into_iter().enumerate() {
                let mut load = TEXEL.to_string();
                let _ = write!(
                    load,
                    "v_add_nc_u32 v8, {dx}, v8\nv_min_u32 v8, 7, v8\nv_add_nc_u32 v9, {dy}, v9\nv_min_u32 v9, 3, v9\n\
                     image_load v[4:7], {at}, s[16:23] dmask:0xf dim:SQ_RSRC_IMG_2D {unorm}"
                );
                let loaded = results(arch, &header("rgba8unorm", "nearest"), &load);
                let wanted: Vec<u32> = (0..32).map(|lane| loaded[4 * lane + channel]).collect();
                let found: Vec<u32> = (0..32).map(|lane| gathered[4 * lane + place]).collect();
                assert_eq!(found, wanted, "{arch:?} channel {channel} texel {place}");
            }
        }
    }
}

/// A ramp of one step a texel: the result is the coordinate, in steps of the 8 fractional bits that filters have.
#[test]
fn linear_samples_of_a_ramp_are_the_coordinate() {
    let ramp: Vec<String> = (0..32).map(|texel| (texel % 8).to_string()).collect();
    let header = format!(
        "arg_t: image2d<r32float>[8, 4] = {}\narg_s: sampler(linear, clamp)\nout_y: u32[32, 4]",
        ramp.join(", ")
    );
    for arch in ARCHS {
        // u from 0.5 texels on, in steps of 57/256 texels: exact in 8 fractional bits.
        let body = format!(
            "v_mul_u32_u24 v8, 57, v0\nv_cvt_f32_u32 v8, v8\nv_mul_f32 v8, 0x3b800000, v8\nv_add_f32 v8, 0.5, v8\n\
             v_mul_f32 v8, 0.125, v8\nv_mov_b32 v9, 0.5\n\
             image_sample_lz v[4:7], {}, s[16:23], s[24:27] dmask:0xf dim:SQ_RSRC_IMG_2D",
            pair(arch)
        );
        let found = results(arch, &header, &body);
        for lane in 0..32 {
            let expected = (lane as f32 * 57.0 / 256.0).min(7.0);
            assert_eq!(f32::from_bits(found[4 * lane]), expected, "{arch:?} lane {lane}");
        }
    }
}

#[test]
fn queries_are_the_descriptor() {
    for arch in ARCHS {
        for (image, dim, level, expected) in [
            ("image1d<r8unorm>[37]", "1D", 0, [37, 1, 1, 1]),
            ("image2d<rgba8unorm>[13, 7]", "2D", 0, [13, 7, 1, 1]),
            ("image2d<rgba8unorm, 3>[13, 7]", "2D", 2, [3, 1, 1, 3]),
            ("image2d<rgba8unorm, 3>[13, 7]", "2D", 3, [0, 0, 0, 3]),
            ("image3d<r32float>[5, 6, 7]", "3D", 0, [5, 6, 7, 1]),
            ("image2darray<r32float>[5, 6, 7]", "2D_ARRAY", 0, [5, 6, 7, 1]),
            ("imagecube<r32float>[4, 4]", "CUBE", 0, [4, 4, 6, 1]),
        ] {
            let unorm = if arch == Arch::Rdna4 { "" } else { "unorm" };
            let body = format!(
                "v_mov_b32 v8, {level}\nimage_get_resinfo v[4:7], v8, s[16:23] dmask:0xf dim:SQ_RSRC_IMG_{dim} {unorm}"
            );
            let header = format!("arg_t: {image}\narg_s: sampler()\nout_y: u32[32, 4]");
            assert_eq!(results(arch, &header, &body)[..4], expected, "{arch:?} {image}");
        }
    }
}

/// A store writes what a load reads, for every format that has equal components.
#[test]
fn loads_read_what_stores_write() {
    for arch in ARCHS {
        let unorm = if arch == Arch::Rdna4 { "" } else { "unorm" };
        let at = pair(arch);
        for format in FORMATS {
            let load =
                format!("{TEXEL}image_load v[4:7], {at}, s[16:23] dmask:0xf dim:SQ_RSRC_IMG_2D {unorm}\n");
            let before = results(arch, &header(format, ""), &load);
            let again = format!(
                "{load}s_waitcnt vmcnt(0)\nimage_store v[4:7], {at}, s[16:23] dmask:0xf dim:SQ_RSRC_IMG_2D {unorm}\n\
                 v_mov_b32 v4, 0\nv_mov_b32 v5, 0\nv_mov_b32 v6, 0\nv_mov_b32 v7, 0\ns_waitcnt_vscnt null, 0x0\n{load}"
            );
            assert_eq!(results(arch, &header(format, ""), &again), before, "{arch:?} {format}");
        }
    }
}

/// Operands of addresses from v8 on: RDNA 4 has a field for each.
fn addresses(arch: Arch, count: usize) -> String {
    match (arch, count) {
        (Arch::Rdna4, _) => {
            let names: Vec<String> = (8..8 + count).map(|register| format!("v{register}")).collect();
            format!("[{}]", names.join(", "))
        }
        (_, 1) => "v8".to_string(),
        _ => format!("v[8:{}]", 7 + count),
    }
}

/// Formats with elements of 1 to 16 bytes.
const SIZES: [&str; 5] = ["r8uint", "r16uint", "r32uint", "rg32uint", "rgba32uint"];

/// The modes of an image other than linear, with the image.
fn tiled(arch: Arch, image: &Image) -> impl Iterator<Item = Image> + '_ {
    let modes = (1..32).map(|sw_mode| Image { sw_mode, ..image.clone() });
    modes.filter(move |image| image.layout(arch).is_ok())
}

fn image(
    dimension: Dimension,
    format: &str,
    size: [u32; 3],
    layers: u32,
    levels: u32,
    samples: u32,
) -> Image {
    let format = wavesim::text::image::format(format).unwrap();
    Image { dimension, size, layers, levels, samples, ..Image::two_dimensional(format, 1, 1) }
}

/// The places of all elements, and the size of the image.
fn offsets(image: &Image, arch: Arch) -> (Vec<u64>, u64) {
    let layout = image.layout(arch).unwrap();
    let mut all = Vec::new();
    for level in 0..image.levels {
        let size = image.level_size(level);
        for z in 0..image.layers * size[2] {
            for y in 0..size[1] {
                for x in 0..size[0] {
                    let samples = 0..image.samples;
                    all.extend(samples.map(|sample| layout.offset(Place { level, x, y, z, sample })));
                }
            }
        }
    }
    (all, layout.bytes)
}

/// No two texels share memory, in any layout, and all of them are inside.
#[test]
fn texels_of_tiled_images_have_places_of_their_own() {
    let mut count = 0;
    for arch in ARCHS {
        for (index, format) in SIZES.iter().enumerate() {
            for kind in [
                image(Dimension::D2, format, [70, 40, 1], 1, 1, 1),
                image(Dimension::D2, format, [300, 70, 1], 1, 9, 1),
                image(Dimension::D2Array, format, [33, 35, 1], 5, 3, 1),
                image(Dimension::D3, format, [20, 12, 18], 1, 1, 1),
                image(Dimension::D3, format, [40, 36, 9], 1, 6, 1),
                image(Dimension::D2, format, [50, 30, 1], 1, 1, 2),
                image(Dimension::D2Array, format, [50, 30, 1], 2, 1, 4),
                image(Dimension::D2, format, [50, 30, 1], 1, 1, 8),
            ] {
                for image in tiled(arch, &kind) {
                    let (mut all, bytes) = offsets(&image, arch);
                    all.sort_unstable();
                    let apart = all.windows(2).all(|pair| pair[1] - pair[0] >= 1 << index);
                    assert!(apart, "{arch:?} {image:?}");
                    assert!(
                        all.last().is_some_and(|last| last + (1 << index) <= bytes),
                        "{arch:?} {image:?}"
                    );
                    count += 1;
                }
            }
        }
    }
    assert!(count > 800, "{count}");
}

/// A kernel of 32 work-items, each of which loads texels from places that differ in all coordinates.
fn loads(arch: Arch, image: &Image, image_type: &str, format: &str) -> Vec<u32> {
    let unorm = if arch == Arch::Rdna4 { "" } else { "unorm" };
    let memory =
        format!("{format}, {}, sw_mode = {}, samples = {}", image.levels, image.sw_mode, image.samples);
    let (dimension, mip) = match (image.dimension, image.samples, image.levels) {
        (Dimension::D2, 1, 1) => ("2D", ""),
        (Dimension::D2, 1, _) => ("2D", "_mip"),
        (Dimension::D2, _, _) => ("2D_MSAA", ""),
        (Dimension::D3, _, 1) => ("3D", ""),
        (Dimension::D3, _, _) => ("3D", "_mip"),
        (_, 1, _) => ("2D_ARRAY", ""),
        _ => ("2D_MSAA_ARRAY", ""),
    };
    let mut sizes = vec![image.size[0], image.size[1]];
    match image.dimension {
        Dimension::D3 => sizes.push(image.size[2]),
        Dimension::D2Array => sizes.push(image.layers),
        _ => {}
    }
    let listed: Vec<String> = sizes.iter().map(u32::to_string).collect();
    let header = format!(
        "arg_t: {image_type}<{memory}>[{}] = rand()\narg_s: sampler()\nout_y: u32[32, 4]",
        listed.join(", ")
    );
    // Coordinate k is a multiple of the lane, below the size; then the level or the sample.
    let mut coordinates = sizes.clone();
    if mip == "_mip" {
        coordinates.push(image.levels);
    } else if image.samples > 1 {
        coordinates.push(image.samples);
    }
    let mut body = String::new();
    for (k, most) in coordinates.iter().enumerate() {
        let register = 8 + k;
        let step = [37, 23, 7, 5][k];
        let _ = write!(
            body,
            "v_mul_u32_u24 v{register}, {step}, v0\nv_cvt_f32_u32 v20, v{register}\n\
             v_mul_f32 v20, {}, v20\nv_fract_f32 v20, v20\nv_mul_f32 v20, {}, v20\nv_cvt_u32_f32 v{register}, v20\n",
            format_args!("0x{:08x}", (1.0 / *most as f32).to_bits()),
            format_args!("0x{:08x}", (*most as f32).to_bits()),
        );
    }
    // Each level has half of the size.
    if mip == "_mip" {
        let level = 7 + coordinates.len();
        for register in 8..level {
            let _ = writeln!(body, "v_lshrrev_b32 v{register}, v{level}, v{register}");
        }
    }
    let at = addresses(arch, coordinates.len());
    let _ =
        write!(body, "image_load{mip} v[4:7], {at}, s[16:23] dmask:0xf dim:SQ_RSRC_IMG_{dimension} {unorm}");
    results(arch, &header, &body)
}

#[test]
fn loads_of_tiled_images_are_those_of_linear_ones() {
    for arch in ARCHS {
        for format in SIZES {
            for (kind, image_type) in [
                (image(Dimension::D2, format, [300, 200, 1], 1, 1, 1), "image2d"),
                (image(Dimension::D2, format, [140, 260, 1], 1, 9, 1), "image2d"),
                (image(Dimension::D2Array, format, [70, 40, 1], 6, 1, 1), "image2darray"),
                (image(Dimension::D3, format, [40, 36, 40], 1, 1, 1), "image3d"),
                (image(Dimension::D3, format, [40, 36, 9], 1, 5, 1), "image3d"),
            ] {
                let expected = loads(arch, &kind, image_type, format);
                for image in tiled(arch, &kind) {
                    assert_eq!(loads(arch, &image, image_type, format), expected, "{arch:?} {image:?}");
                }
            }
        }
    }
}

/// What builds tiled images ([`Image::layout`]) and what loads from them (`pseudocode/image/tiled.pcode`) are two texts: they
/// agree for surfaces of any size, number of levels and layers, format and mode.
#[test]
fn builder_and_pseudocode_agree_on_random_surfaces() {
    let mut rng = Rng(49);
    let mut modes = BTreeSet::new();
    for round in 0..240 {
        let arch = ARCHS[round % 3];
        let format = rng.pick(&SIZES);
        let mut size = |most| 1 + rng.below(most) as u32;
        let (kind, image_type) = match round / 3 % 3 {
            0 => (image(Dimension::D2, format, [size(400), size(400), 1], 1, 1, 1), "image2d"),
            1 => {
                (image(Dimension::D2Array, format, [size(150), size(150), 1], size(9), 1, 1), "image2darray")
            }
            _ => (image(Dimension::D3, format, [size(70), size(70), size(40)], 1, 1, 1), "image3d"),
        };
        // Levels of arrays are not loaded by this kernel.
        let most = kind.size.iter().max().map_or(1, |most| most.ilog2() + 1);
        let levels =
            if kind.dimension == Dimension::D2Array { 1 } else { 1 + rng.below(u64::from(most)) as u32 };
        let kind = Image { levels, ..kind };
        let tiled: Vec<Image> = tiled(arch, &kind).collect();
        let Some(image) = tiled.get(rng.below(tiled.len() as u64) as usize) else { continue };
        modes.insert((arch.name(), image.sw_mode));
        let [expected, found] = [&kind, image].map(|image| loads(arch, image, image_type, format));
        assert_eq!(found, expected, "{arch:?} {image:?}");
    }
    assert!(modes.len() > 25, "{modes:?}");
}

/// The value of each sample is its index.
#[test]
fn samples_are_loaded_one_or_four_at_a_time() {
    for arch in ARCHS {
        let unorm = if arch == Arch::Rdna4 { "" } else { "unorm" };
        for (samples, layers) in [(2, 1), (4, 1), (8, 1), (4, 3), (8, 2)] {
            let [width, height] = [21, 13];
            let dimension = if layers == 1 { Dimension::D2 } else { Dimension::D2Array };
            let modes = image(dimension, "r32uint", [width, height, 1], layers, 1, samples);
            assert!(tiled(arch, &modes).count() > 1, "{arch:?} {samples}");
            for image in tiled(arch, &modes) {
                let (image_type, dim, size) = match layers {
                    1 => ("image2d", "2D_MSAA", format!("{width}, {height}")),
                    _ => ("image2darray", "2D_MSAA_ARRAY", format!("{width}, {height}, {layers}")),
                };
                let header = format!(
                    "arg_t: {image_type}<r32uint, sw_mode = {}, samples = {samples}>[{size}] = arange({})\n\
                     arg_s: sampler()\nout_y: u32[32, 4]",
                    image.sw_mode,
                    width * height * layers * samples
                );
                // x is lane % 21, y is lane % 13, the layer lane % layers; then the sample.
                let layer = if layers == 1 { "" } else { "v_mov_b32 v10, 1\n" };
                let at = addresses(arch, if layers == 1 { 3 } else { 4 });
                let sample = if layers == 1 { "v10" } else { "v11" };
                let coordinates = format!("v_min_u32 v8, 20, v0\nv_min_u32 v9, 12, v0\n{layer}");
                for first in (0..samples).step_by(4) {
                    let several = format!(
                        "{coordinates}v_mov_b32 {sample}, {first}\n\
                         image_msaa_load v[4:7], {at}, s[16:23] dmask:0x1 dim:SQ_RSRC_IMG_{dim} {unorm}"
                    );
                    let found = results(arch, &header, &several);
                    for lane in 0..32 {
                        let (x, y, z) = (lane.min(20), lane.min(12), u32::from(layers != 1));
                        let index = ((z * height + y) * width + x) * samples + first;
                        // Samples beyond the last one read 0.
                        let expected = [0, 1, 2, 3].map(|k| if first + k < samples { index + k } else { 0 });
                        assert_eq!(
                            found[4 * lane as usize..][..4],
                            expected,
                            "{arch:?} {image:?} lane {lane}"
                        );
                    }
                }
                let last = samples - 1;
                let one = format!(
                    "{coordinates}v_mov_b32 {sample}, {last}\n\
                     image_load v4, {at}, s[16:23] dmask:0x1 dim:SQ_RSRC_IMG_{dim} {unorm}"
                );
                let found = results(arch, &header, &one);
                for lane in 0..32 {
                    let (x, y, z) = (lane.min(20), lane.min(12), u32::from(layers != 1));
                    let expected = ((z * height + y) * width + x) * samples + last;
                    assert_eq!(found[4 * lane as usize], expected, "{arch:?} {image:?} lane {lane}");
                }
            }
        }
    }
}

/// An image of 32 by 16 texels with all levels, the elements of each level from 0 to 1 at random.
const LEVELS: &str = "arg_t: image2d<r32float, 6>[32, 16] = rand()";

/// Moves floats to registers.
fn constants(first: usize, values: &[f32]) -> String {
    let set = |(k, value): (usize, &f32)| format!("v_mov_b32 v{}, 0x{:08x}\n", first + k, value.to_bits());
    values.iter().enumerate().map(set).collect()
}

/// Coordinates of work-items in v12 and v13: 8 by 4 places inside of an image, at steps that filters keep.
const PLACES: &str = "v_and_b32 v12, 7, v0\nv_lshrrev_b32 v13, 3, v0\n\
                      v_mul_u32_u24 v12, 27, v12\nv_mul_u32_u24 v13, 53, v13\n\
                      v_add_nc_u32 v12, 29, v12\nv_add_nc_u32 v13, 41, v13\n\
                      v_cvt_f32_u32 v12, v12\nv_cvt_f32_u32 v13, v13\n\
                      v_mul_f32 v12, 0x3b800000, v12\nv_mul_f32 v13, 0x3b800000, v13\n";

/// The place of a work-item.
fn place(lane: usize) -> [f64; 2] {
    [(27 * (lane % 8) + 29) as f64 / 256.0, (53 * (lane / 8) + 41) as f64 / 256.0]
}

/// The results of samples with explicit derivatives, to the right and then down, in coordinates.
fn with_derivatives(arch: Arch, image: &str, sampler: &str, derivatives: [[f32; 2]; 2]) -> Vec<u32> {
    let where_to = if arch == Arch::Rdna4 { "[v8, v9, v10, v[11:13]]" } else { "v[8:13]" };
    let body = format!(
        "{}{PLACES}image_sample_d v[4:7], {where_to}, s[16:23], s[24:27] dmask:0xf dim:SQ_RSRC_IMG_2D",
        constants(8, derivatives.as_flattened())
    );
    results(arch, &format!("{image}\narg_s: sampler({sampler})\nout_y: u32[32, 4]"), &body)
}

/// Derivatives of a texel or less choose level 0. The coordinates are the last of six words, which RDNA 4 has in three
/// registers and a group of three.
#[test]
fn samples_with_short_derivatives_are_those_of_level_zero() {
    for arch in ARCHS {
        for filter in ["nearest, mip_nearest", "linear, mip_linear"] {
            let short = [[0.5 / 32.0, 0.25 / 16.0], [0.0, 1.0 / 16.0]];
            let found = with_derivatives(arch, LEVELS, filter, short);
            let body = format!(
                "{PLACES}v_mov_b32 v8, v12\nv_mov_b32 v9, v13\n\
                 image_sample_lz v[4:7], {}, s[16:23], s[24:27] dmask:0xf dim:SQ_RSRC_IMG_2D",
                pair(arch)
            );
            let header = format!("{LEVELS}\narg_s: sampler({filter})\nout_y: u32[32, 4]");
            assert_eq!(found, results(arch, &header, &body), "{arch:?} {filter}");
        }
    }
}

/// Where both derivatives are as long, an anisotropic filter is the one without anisotropy; so it is where there are no
/// derivatives, and in images of one or three dimensions.
#[test]
fn anisotropic_filters_of_squares_are_plain_filters() {
    for arch in ARCHS {
        for filter in ["nearest", "linear", "linear, mip_linear, mirror", "nearest, mip_nearest, clamp"] {
            let wide = format!("{filter}, anisotropic_16");
            for length in [0.25f32, 1.0, 2.5, 6.0] {
                let derivatives = [[length / 32.0, 0.0], [0.0, -length / 16.0]];
                let both = [filter, &wide].map(|own| with_derivatives(arch, LEVELS, own, derivatives));
                assert_eq!(both[0], both[1], "{arch:?} {filter} {length}");
            }
            for (image, dim, operation, count) in [
                ("image2d<r32float, 6>[32, 16]", "2D", "image_sample_l", 3),
                ("image2d<r32float, 6>[32, 16]", "2D", "image_sample_lz", 2),
                ("image1d<r32float, 5>[16]", "1D", "image_sample", 1),
                ("image3d<r32float, 3>[4, 4, 4]", "3D", "image_sample", 3),
            ] {
                let body = format!(
                    "{PLACES}v_mov_b32 v8, v12\nv_mov_b32 v9, v13\nv_mul_f32 v10, 4.0, v13\n\
                     {operation} v[4:7], {}, s[16:23], s[24:27] dmask:0xf dim:SQ_RSRC_IMG_{dim}",
                    addresses(arch, count)
                );
                let both = [filter, &wide].map(|own| {
                    let header = format!("arg_t: {image} = rand()\narg_s: sampler({own})\nout_y: u32[32, 4]");
                    results(arch, &header, &body)
                });
                assert_eq!(both[0], both[1], "{arch:?} {filter} {operation} {dim}");
            }
        }
    }
}

/// The mean of samples around a place of a ramp is the ramp's value there, up to the 8 fractional bits of each.
#[test]
fn anisotropic_samples_keep_a_ramp() {
    let ramp: Vec<String> = (0..64 * 16).map(|texel| (texel % 64).to_string()).collect();
    let image = format!("arg_t: image2d<r32float>[64, 16] = {}", ramp.join(", "));
    for arch in ARCHS {
        for texels in 1..=8u8 {
            let long = [f32::from(texels) / 64.0, 1.0 / 128.0];
            for derivatives in [[long, [0.0, 1.0 / 16.0]], [[0.0, 1.0 / 16.0], long]] {
                let found = with_derivatives(arch, &image, "linear, clamp, anisotropic_16", derivatives);
                for lane in 0..32 {
                    let expected = place(lane)[0] * 64.0 - 0.5;
                    let value = f64::from(f32::from_bits(found[4 * lane]));
                    assert!(
                        (value - expected).abs() <= 1.0 / 512.0 + 1e-5,
                        "{arch:?} {texels} lane {lane}: {value}, not {expected}"
                    );
                }
            }
        }
    }
}

/// A bilinear sample of a repeated image in double precision, of all levels in one list.
fn bilinear(texels: &[f32], level: usize, at: [f64; 2]) -> f64 {
    let size = |level: usize| [32 >> level, (16 >> level).max(1)];
    let first: usize = (0..level).map(|level| size(level)[0] * size(level)[1]).sum();
    let [width, height] = size(level);
    let [x, y] = [at[0] * width as f64 - 0.5, at[1] * height as f64 - 0.5];
    let texel = |dx: i64, dy: i64| {
        let column = (x.floor() as i64 + dx).rem_euclid(width as i64) as usize;
        let row = (y.floor() as i64 + dy).rem_euclid(height as i64) as usize;
        f64::from(texels[first + row * width + column])
    };
    let [u, v] = [x - x.floor(), y - y.floor()];
    (texel(0, 0) * (1.0 - u) + texel(1, 0) * u) * (1.0 - v) + (texel(0, 1) * (1.0 - u) + texel(1, 1) * u) * v
}

/// The formula of EXT_texture_filter_anisotropic in double precision: N samples along the longer derivative, at the level of
/// its N-th part. Weights of texels and levels have 8 fractional bits, which bounds the difference.
#[test]
fn anisotropic_samples_are_the_mean_of_samples_along_an_axis() {
    let mut rng = Rng(49);
    let count: usize = (0..6).map(|level| (32usize >> level) * (16usize >> level).max(1)).sum();
    let texels: Vec<f32> = (0..count).map(|_| rng.below(1 << 12) as f32 / 4096.0).collect();
    let listed: Vec<String> = texels.iter().map(f32::to_string).collect();
    let image = format!("arg_t: image2d<r32float, 6>[32, 16] = {}", listed.join(", "));
    let mut counts = BTreeSet::new();
    for round in 0..90 {
        let arch = ARCHS[round % 3];
        let most = rng.pick(&[2u32, 4, 8, 16]);
        // Up to 12 texels to the right and 2 down, or the other way round.
        let mut part = |most: u64| (rng.below(512 * most) as f32 - 256.0 * most as f32) / 256.0;
        let (long, short) = ([part(12) / 32.0, part(12) / 16.0], [part(2) / 32.0, part(2) / 16.0]);
        let derivatives = if round % 2 == 0 { [long, short] } else { [short, long] };
        let sampler = format!("linear, mip_linear, anisotropic_{most}");
        let found = with_derivatives(arch, &image, &sampler, derivatives);
        let length = |d: [f32; 2]| f64::from(d[0] * 32.0).hypot(f64::from(d[1] * 16.0));
        let [x, y] = derivatives.map(length);
        let ratio = ((x.max(y) / x.min(y)).min(f64::from(most)) * 256.0).round() / 256.0;
        let samples = ratio.ceil();
        counts.insert(samples as u32);
        let axis = if x >= y { derivatives[0] } else { derivatives[1] }.map(f64::from);
        let lod = (x.max(y) / samples).log2().clamp(0.0, 5.0);
        let (level, part) = (lod.floor() as usize, lod.fract());
        for lane in 0..32 {
            let of = |tap: u32| {
                let along = f64::from(tap) / (samples + 1.0) - 0.5;
                let at = [0, 1].map(|k| place(lane)[k] + along * axis[k]);
                let finer = bilinear(&texels, level, at);
                if part == 0.0 {
                    finer
                } else {
                    finer * (1.0 - part) + bilinear(&texels, level + 1, at) * part
                }
            };
            let expected = (1..=samples as u32).map(of).sum::<f64>() / samples;
            let value = f64::from(f32::from_bits(found[4 * lane]));
            // Half of a step in two coordinates and the level, of texels between 0 and 1.
            assert!(
                (value - expected).abs() <= 3.0 / 512.0 + 1e-5,
                "{arch:?} {derivatives:?} {samples} samples, lane {lane}: {value}, not {expected}"
            );
        }
    }
    assert!(counts.len() > 8, "{counts:?}");
}
