//! Records: the descriptors of the pseudocode against the manuals' tables, and bodies that depend on the
//! architecture through a record or a function.

use super::eval::compile_with;
use isa_spec::pcode::ast::Record;
use isa_spec::pcode::ir::Semantics;
use isa_spec::{canonical, data};
use std::path::Path;

/// Name, highest and lowest bit.
type Field = (&'static str, u16, u16);

/// RDNA 3 and 4 manuals, *Buffer Resource Descriptor*; STRIDE_SCALE is RDNA 4's.
const RDNA: &[Field] = &[
    ("base", 47, 0),
    ("stride", 61, 48),
    ("swizzle_enable", 63, 62),
    ("num_records", 95, 64),
    ("dst_sel_x", 98, 96),
    ("dst_sel_y", 101, 99),
    ("dst_sel_z", 104, 102),
    ("dst_sel_w", 107, 105),
    ("format", 113, 108),
    ("stride_scale", 115, 114),
    ("index_stride", 118, 117),
    ("add_tid_enable", 119, 119),
    ("oob_select", 125, 124),
    ("type", 127, 126),
];

/// CDNA 3 manual, *Buffer Resource Descriptor*.
const CDNA: &[Field] = &[
    ("base", 47, 0),
    ("stride", 61, 48),
    ("cache_swizzle", 62, 62),
    ("swizzle_enable", 63, 63),
    ("num_records", 95, 64),
    ("dst_sel_x", 98, 96),
    ("dst_sel_y", 101, 99),
    ("dst_sel_z", 104, 102),
    ("dst_sel_w", 107, 105),
    ("num_format", 110, 108),
    ("data_format", 114, 111),
    ("stride_upper", 114, 111),
    ("user_vm_enable", 115, 115),
    ("user_vm_mode", 116, 116),
    ("index_stride", 118, 117),
    ("add_tid_enable", 119, 119),
    ("nv", 123, 123),
    ("type", 127, 126),
];

/// CDNA 5 manual, table 57.
const CDNA5: &[Field] = &[
    ("base", 56, 0),
    ("num_records", 101, 57),
    ("stride", 121, 108),
    ("stride_scale", 123, 122),
    ("swizzle_enable", 124, 124),
    ("oob_select", 125, 125),
    ("type", 127, 126),
];

/// CDNA 5 manual, table 62.
const TENSOR0: &[Field] = &[
    ("count", 1, 0),
    ("is_restore", 2, 2),
    ("is_store", 3, 3),
    ("nv", 4, 4),
    ("scope", 6, 5),
    ("th", 9, 7),
    ("user_null", 10, 10),
    ("gather_index_size", 30, 30),
    ("gather_mode", 31, 31),
    ("lds_addr", 63, 32),
    ("global_addr", 120, 64),
    ("type", 127, 126),
];

/// CDNA 5 manual, table 63.
const TENSOR1: &[Field] = &[
    ("workgroup_mask", 15, 0),
    ("data_size", 17, 16),
    ("atomic_barrier_enable", 18, 18),
    ("iterate_enable", 19, 19),
    ("pad_enable", 20, 20),
    ("early_timeout", 21, 21),
    ("pad_interval", 24, 22),
    ("pad_amount", 31, 25),
    ("atomic_barrier_address", 47, 32),
    ("tensor_dim0", 79, 48),
    ("tensor_dim1", 111, 80),
    ("tile_dim0", 127, 112),
    ("tile_dim1", 143, 128),
    ("tile_dim2", 159, 144),
    ("tensor_dim0_stride", 207, 160),
    ("tensor_dim1_stride", 255, 208),
];

/// CDNA 5 manual, table 64; bits 127:112 are in LLVM only.
const TENSOR2: &[Field] = &[
    ("tensor_dim2", 31, 0),
    ("tensor_dim3", 63, 32),
    ("lds_addr_increment", 63, 32),
    ("tensor_dim2_stride", 111, 64),
    ("global_addr_increment", 111, 64),
    ("tile_dim3", 127, 112),
    ("iterate_count", 127, 112),
];

/// CDNA 5 manual, table 65.
const TENSOR3: &[Field] = &[("tensor_dim3_stride", 47, 0), ("tensor_dim4", 79, 48), ("tile_dim4", 95, 80)];

// *Multicast Load*
const MULTICAST: &[Field] = &[("workgroup_mask", 15, 0), ("early_timeout", 16, 16)];

/// RDNA 3 manual, table 50; SW_MODE is in AMD's drivers only.
const IMAGE_RDNA3: &[Field] = &[
    ("base", 39, 0),
    ("big_page", 47, 47),
    ("max_mip", 51, 48),
    ("format", 59, 52),
    ("width", 75, 62),
    ("height", 91, 78),
    ("dst_sel_x", 98, 96),
    ("dst_sel_y", 101, 99),
    ("dst_sel_z", 104, 102),
    ("dst_sel_w", 107, 105),
    ("base_level", 111, 108),
    ("last_level", 115, 112),
    ("sw_mode", 120, 116),
    ("bc_swizzle", 123, 121),
    ("type", 127, 124),
    ("depth", 140, 128),
    ("pitch_msb", 141, 141),
    ("base_array", 156, 144),
    ("array_pitch", 163, 160),
    ("min_lod_warn", 179, 168),
    ("corner_samples", 183, 183),
    ("min_lod", 198, 187),
    ("iterate_256", 202, 202),
    ("meta_pipe_aligned", 211, 211),
    ("compression_enable", 213, 213),
    ("alpha_is_on_msb", 214, 214),
    ("color_transform", 215, 215),
    ("meta_data_address", 255, 216),
];

/// RDNA 4 manual, table 60; SW_MODE is in AMD's drivers only.
const IMAGE_RDNA4: &[Field] = &[
    ("base", 39, 0),
    ("max_mip", 48, 44),
    ("format", 56, 49),
    ("base_level", 61, 57),
    ("width", 77, 62),
    ("height", 93, 78),
    ("dst_sel_x", 98, 96),
    ("dst_sel_y", 101, 99),
    ("dst_sel_z", 104, 102),
    ("dst_sel_w", 107, 105),
    ("last_level", 115, 111),
    ("sw_mode", 120, 116),
    ("bc_swizzle", 123, 121),
    ("type", 127, 124),
    ("depth", 141, 128),
    ("pitch_msb", 143, 142),
    ("base_array", 156, 144),
    ("uav3d", 164, 164),
    ("min_lod_warn", 177, 165),
    ("corner_samples", 183, 183),
    ("min_lod", 198, 186),
];

/// RDNA 3 manual, 10.6.
const SAMPLER_RDNA3: &[Field] = &[
    ("clamp_x", 2, 0),
    ("clamp_y", 5, 3),
    ("clamp_z", 8, 6),
    ("max_aniso_ratio", 11, 9),
    ("depth_compare_func", 14, 12),
    ("force_unnormalized", 15, 15),
    ("aniso_threshold", 18, 16),
    ("mc_coord_trunc", 19, 19),
    ("force_degamma", 20, 20),
    ("aniso_bias", 26, 21),
    ("trunc_coord", 27, 27),
    ("disable_cube_wrap", 28, 28),
    ("filter_mode", 30, 29),
    ("skip_degamma", 31, 31),
    ("min_lod", 43, 32),
    ("max_lod", 55, 44),
    ("lod_bias", 77, 64),
    ("lod_bias_sec", 83, 78),
    ("xy_mag_filter", 85, 84),
    ("xy_min_filter", 87, 86),
    ("z_filter", 89, 88),
    ("mip_filter", 91, 90),
    ("blend_prt", 94, 94),
    ("border_color_ptr", 107, 96),
    ("border_color_type", 127, 126),
];

/// RDNA 4 manual, table 61.
const SAMPLER_RDNA4: &[Field] = &[
    ("clamp_x", 2, 0),
    ("clamp_y", 5, 3),
    ("clamp_z", 8, 6),
    ("max_aniso_ratio", 11, 9),
    ("depth_compare_func", 14, 12),
    ("force_unnormalized", 15, 15),
    ("aniso_threshold", 18, 16),
    ("mc_coord_trunc", 19, 19),
    ("force_degamma", 20, 20),
    ("aniso_bias", 26, 21),
    ("trunc_coord", 27, 27),
    ("disable_cube_wrap", 28, 28),
    ("filter_mode", 30, 29),
    ("skip_degamma", 31, 31),
    ("min_lod", 44, 32),
    ("max_lod", 57, 45),
    ("lod_bias", 77, 64),
    ("lod_bias_sec", 83, 78),
    ("xy_mag_filter", 85, 84),
    ("xy_min_filter", 87, 86),
    ("z_filter", 89, 88),
    ("mip_filter", 91, 90),
    ("border_color_ptr", 125, 114),
    ("border_color_type", 127, 126),
];

/// RDNA 3 manual, table 54; the sorting heuristic is in Mesa's `create_bvh_descriptor` only.
const BVH_RDNA3: &[Field] = &[
    ("base", 39, 0),
    ("sorting_heuristic", 54, 53),
    ("box_grow", 62, 55),
    ("box_sort_enable", 63, 63),
    ("size", 105, 64),
    ("pointer_flags", 119, 119),
    ("triangle_return_mode", 120, 120),
    ("type", 127, 124),
];

/// RDNA 4 manual, table 65; the compressed format is in Mesa's `create_bvh_descriptor` only.
const BVH_RDNA4: &[Field] = &[
    ("base", 39, 0),
    ("sort_triangles_first", 52, 52),
    ("sorting_heuristic", 54, 53),
    ("box_grow", 62, 55),
    ("box_sort_enable", 63, 63),
    ("size", 105, 64),
    ("compressed_format", 115, 115),
    ("box_node_64b", 116, 116),
    ("wide_sort_enable", 117, 117),
    ("instance_enable", 118, 118),
    ("pointer_flags", 119, 119),
    ("triangle_return_mode", 120, 120),
    ("type", 127, 124),
];

/// RDNA 4 manual, 12.5.3.
const STACK: &[Field] = &[
    ("valid_entries", 4, 0),
    ("entries_to_tlas", 9, 5),
    ("ring_addr", 14, 10),
    ("stack_base_addr", 28, 15),
    ("has_tlas_in_stack", 29, 29),
    ("has_overflowed", 30, 30),
    ("blas_to_tlas_pop", 31, 31),
];

/// GPURT, PrimitiveStructure: the head of a packet of triangles.
const PACKET: &[Field] = &[
    ("x_bits", 4, 0),
    ("y_bits", 9, 5),
    ("z_bits", 14, 10),
    ("trailing_zeros", 19, 15),
    ("geometry_anchor_bits", 23, 20),
    ("geometry_bits", 27, 24),
    ("pairs", 30, 28),
    ("primitive_anchor_bits", 36, 32),
    ("primitive_bits", 41, 37),
    ("middle", 51, 42),
];

/// GPURT, HwTrianglePairDesc.
const PAIR: &[Field] = &[
    ("stop", 0, 0),
    ("double_sided1", 1, 1),
    ("opaque1", 2, 2),
    ("first1", 6, 3),
    ("second1", 10, 7),
    ("third1", 14, 11),
    ("double_sided0", 15, 15),
    ("opaque0", 16, 16),
    ("first0", 20, 17),
    ("second0", 24, 21),
    ("third0", 28, 25),
];

const TABLES: &[(&str, u16, &[&str], &[Field])] = &[
    ("BufferDescriptor", 128, &["rdna3", "rdna3.5", "rdna4"], RDNA),
    ("BufferDescriptor", 128, &["cdna3", "cdna4"], CDNA),
    ("BufferDescriptor", 128, &["cdna5"], CDNA5),
    ("Multicast", 32, &["cdna5"], MULTICAST),
    ("TensorGroup0", 128, &["cdna5"], TENSOR0),
    ("TensorGroup1", 256, &["cdna5"], TENSOR1),
    ("TensorGroup2", 128, &["cdna5"], TENSOR2),
    ("TensorGroup3", 128, &["cdna5"], TENSOR3),
    ("ImageDescriptor", 256, &["rdna3", "rdna3.5"], IMAGE_RDNA3),
    ("ImageDescriptor", 256, &["rdna4"], IMAGE_RDNA4),
    ("Sampler", 128, &["rdna3", "rdna3.5"], SAMPLER_RDNA3),
    ("Sampler", 128, &["rdna4"], SAMPLER_RDNA4),
    ("BvhDescriptor", 128, &["rdna3", "rdna3.5"], BVH_RDNA3),
    ("BvhDescriptor", 128, &["rdna4"], BVH_RDNA4),
    ("StackAddress", 32, &["rdna4"], STACK),
    ("TrianglePacket", 64, &["rdna4"], PACKET),
    ("TrianglePair", 32, &["rdna4"], PAIR),
];

fn fields(record: &Record) -> Vec<(&str, u16, u16)> {
    let of = |f: &'_ isa_spec::pcode::ast::RecordField| (f.high, f.low);
    let named = record.fields.iter().flat_map(|f| f.names.iter().map(move |n| (n.text.as_str(), of(f))));
    named.map(|(name, (high, low))| (name, high, low)).collect()
}

#[test]
fn descriptors_are_those_of_the_manuals() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let none = root.join("none");
    let loaded = data::load(&[], &none, &none, &root.join("pseudocode"), root);
    let (parsed, errors) = canonical::parse_all(&loaded.sources, &loaded.pcode);
    assert!(errors.is_empty());
    let records = parsed.records();
    assert_eq!(records.len(), TABLES.len());
    for &(name, width, archs, expected) in TABLES {
        let of_archs = |r: &&&Record| r.archs.iter().map(|a| a.text.as_str()).eq(archs.iter().copied());
        let found = records.iter().filter(|r| r.name.text == name).find(of_archs);
        let record = found.unwrap_or_else(|| panic!("{name} for {archs:?}"));
        assert_eq!(record.width, width, "{name}");
        assert_eq!(fields(record), expected, "{name} for {archs:?}");
    }
}

const WIDE: &str = "record Wide : 256'B {\n low [3 : 0];\n across [135 : 120];\n flag [255];\n}\n";

fn value(sem: &Semantics, inputs: &[u128]) -> u128 {
    super::eval::run_sem(sem, inputs)
}

#[test]
fn fields_are_the_bits_of_the_values() {
    let wide = |body: &str| compile_with(WIDE, body);
    let inputs = [0xabu128 << 120 | 0x5, 0x1cd | 1 << 127];
    let of = |field: &str| format!("R = Wide(S0.b128, S1.b128);\nD0.u32 = 32'U(R.{field});");
    assert_eq!(value(&wide(&of("low")), &inputs), 5);
    assert_eq!(value(&wide(&of("across")), &inputs), 0xcdab);
    assert_eq!(value(&wide(&of("flag")), &inputs), 1);
    assert_eq!(value(&wide("D0.u32 = 32'U(Wide(S0.b128, S1.b128).across) + 1U;"), &inputs), 0xcdac);
    // A record as an argument.
    let function = format!("{WIDE}function doubled(r) {{\n  return 32'U(r.low) * 2U;\n}}\n");
    let sem = compile_with(&function, "R = Wide(S0.b128, S1.b128);\nD0.u32 = doubled(R);");
    assert_eq!(value(&sem, &inputs), 10);
    // The bits are those at the time of the assignment.
    let body = "x = S0.b128;\nR = Wide(x, S1.b128);\nx = 128'0;\nD0.u32 = 32'U(R.low);";
    assert_eq!(value(&wide(body), &inputs), 5);
}

/// Architectures share an operation only if they share the definitions that its body uses.
#[test]
fn operations_are_shared_by_equal_descriptors() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let loaded =
        data::load(data::ALL, &root.join("data"), &root.join("data/overlay"), &root.join("pseudocode"), root);
    let (set, _) = canonical::load_set(&loaded.sources, &loaded.pcode, &loaded.tables);
    let operation = |arch: &str, name: &str| {
        let at = loaded.tables.iter().position(|t| t.name == arch).unwrap();
        let inst = loaded.tables[at].instructions.iter().position(|i| i.name == name).unwrap();
        set.by_arch[at][inst].unwrap()
    };
    let store = |arch| operation(arch, "BUFFER_STORE_B32");
    assert_eq!(store("rdna3"), store("rdna4"));
    assert_ne!(store("rdna4"), store("cdna5"));
    assert_ne!(store("rdna4"), operation("cdna3", "BUFFER_STORE_DWORD"));
    assert_eq!(operation("cdna4", "BUFFER_STORE_DWORD"), operation("cdna3", "BUFFER_STORE_DWORD"));
    // Nothing in this body depends on the architecture.
    assert_eq!(operation("cdna5", "DS_ADD_U32"), operation("rdna4", "DS_ADD_U32"));
}
