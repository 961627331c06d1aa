//! Properties of image instructions: loads, samples, gathers and queries agree with each other and with the
//! descriptor.

use std::fmt::Write;
use wavesim::arch::Arch;
use wavesim::array::Array;
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
