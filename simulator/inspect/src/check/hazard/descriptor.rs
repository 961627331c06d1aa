//! Descriptors of buffers, images and of the tensor data mover with values that the manuals forbid, or that cannot be meant
//! (manuals, *Buffer Resource Descriptor*; CDNA5 manual, *Tensor DMA Descriptor*). The fields are those of the
//! pseudocode's records.

use super::super::kind::Check;
use super::super::report::{Finding, Report, Site};
use isa_spec::arith::format_bytes;
use isa_spec::pattern::matches;
use isa_spec::pcode::ir::Space;
use isa_spec::tables::Role;
use std::sync::LazyLock;
use wavesim_engine::observe::Step;
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::effects::{Effects, File, Texture};
use wavesim_machine::exec::image::{self, LayoutError};
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::record::{self, Layout};
use wavesim_machine::state::wave::M0;
use wavesim_machine::state::{ClusterPlace, Wave};

/// The operands that are descriptors.
const TEXT: &str = include_str!("descriptors.txt");

/// A line of the table: patterns, and the operands with their records.
struct Line {
    patterns: Vec<&'static str>,
    operands: Vec<(&'static str, &'static str)>,
}

static LINES: LazyLock<Vec<Line>> = LazyLock::new(|| {
    let lines = TEXT.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parse = |line: &'static str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let first = words.iter().position(|word| ROLES.iter().any(|(name, _)| name == word));
        let (patterns, operands) = words.split_at(first.unwrap_or(words.len()));
        let operands = operands.chunks_exact(2).map(|pair| (pair[0], pair[1]));
        Line { patterns: patterns.to_vec(), operands: operands.collect() }
    };
    lines.map(parse).collect()
});

const ROLES: &[(&str, Role)] = &[
    ("S0", Role::S0),
    ("S1", Role::S1),
    ("S2", Role::S2),
    ("S3", Role::S3),
    ("SAddr", Role::SAddr),
    ("M0", Role::State),
];

/// The operands of an instruction that are descriptors.
pub(super) type Descriptors = Vec<(Role, &'static Layout)>;

/// Returns the descriptors that an instruction reads.
pub(super) fn operands(program: &Program, at: usize) -> Option<Descriptors> {
    let name = program.insts[at].instruction(program.arch.table()).name;
    let line = LINES.iter().find(|line| line.patterns.iter().any(|pattern| matches(pattern, name)))?;
    let operand = |(role, name): &(&str, &str)| {
        let role = ROLES.iter().find(|known| known.0 == *role)?.1;
        Some((role, record::layout(program.arch, name)?))
    };
    line.operands.iter().map(operand).collect()
}

/// The values of an instruction's descriptors.
struct Fields<'a> {
    values: Vec<(&'static Layout, [u32; 8])>,
    /// Whether the instruction loads from global memory to LDS.
    loads: bool,
    cluster: Option<&'a ClusterPlace>,
    arch: Arch,
}

impl Fields<'_> {
    /// Returns a field's value; 0 if no descriptor has the field.
    fn get(&self, name: &str) -> u64 {
        let field =
            |(record, words): &(&'static Layout, [u32; 8])| Some(record.get(record.field(name)?, words));
        self.values.iter().find_map(field).unwrap_or(0)
    }

    /// Returns whether all bits of the first descriptor are 0.
    fn is_zero(&self) -> bool {
        self.values.first().is_some_and(|(_, words)| words.iter().all(|word| *word == 0))
    }

    fn is(&self, name: &str) -> bool {
        self.get(name) != 0
    }

    /// Returns why a tiled image has no layout.
    fn wrong_layout(&self) -> Option<String> {
        let (_, words) = self.values.first().filter(|_| self.is("sw_mode"))?;
        let (image, _) = image::described(words, self.arch).ok()?;
        match image.layout(self.arch) {
            Err(wrong @ (LayoutError::Mode { .. } | LayoutError::Tail(_) | LayoutError::Samples)) => {
                Some(wrong.to_string())
            }
            _ => None,
        }
    }

    /// The bytes of an element of the tensor.
    fn element(&self) -> u64 {
        1 << self.get("data_size")
    }

    /// Returns what is wrong with the mask of the workgroups that make the same request.
    fn wrong_mask(&self, place: &ClusterPlace) -> Option<String> {
        let (mask, count, index) = (self.get("workgroup_mask"), place.count(), place.index());
        match mask {
            0 => None,
            _ if mask >> count != 0 => Some(format!("the cluster has only {count} workgroups")),
            _ if mask >> index & 1 == 0 => {
                Some(format!("it lacks this workgroup, number {index} of the cluster"))
            }
            _ => None,
        }
    }

    /// Returns what a tile without any element of the tensor means. The sizes of the tensor count from the start of
    /// the tile; tiles at the tensor's edge, which are partly beyond it, are ordinary.
    fn beyond(&self, dimension: u32) -> Option<String> {
        let sizes = ["tile", "tensor"].map(|of| self.get(&format!("{of}_dim{dimension}")));
        let what = if self.loads { "all of it is loaded as zero" } else { "nothing of it is stored" };
        (sizes[0] > 0 && sizes[1] == 0).then(|| format!("the tile begins beyond the tensor, and {what}"))
    }
}

/// A rule for one field.
struct Rule {
    field: &'static str,
    /// Returns what is wrong with the field's value.
    wrong: fn(&Fields<'_>) -> Option<String>,
    /// The value can be intended.
    note: bool,
}

const fn rule(field: &'static str, wrong: fn(&Fields<'_>) -> Option<String>) -> Rule {
    Rule { field, wrong, note: false }
}

const fn note(field: &'static str, wrong: fn(&Fields<'_>) -> Option<String>) -> Rule {
    Rule { field, wrong, note: true }
}

fn must_be_zero(value: bool) -> Option<String> {
    value.then(|| "it must be 0".to_string())
}

static TENSOR: &[Rule] = &[
    rule("type", |d| (d.get("type") != 2).then(|| "it must be 2".to_string())),
    rule("is_restore", |d| must_be_zero(d.is("is_restore"))),
    rule("is_store", |d| must_be_zero(d.is("is_store"))),
    rule("nv", |d| must_be_zero(d.is("nv"))),
    rule("user_null", |d| must_be_zero(d.is("user_null"))),
    rule("lds_addr", |d| {
        let element = d.element();
        (!d.get("lds_addr").is_multiple_of(element))
            .then(|| format!("it is no multiple of an element's {element} bytes"))
    }),
    rule("global_addr", |d| {
        let element = d.element();
        (!d.get("global_addr").is_multiple_of(element))
            .then(|| format!("it is no multiple of an element's {element} bytes"))
    }),
    rule("tile_dim0", |d| (!d.is("tile_dim0")).then(|| "the tile is empty".to_string())),
    rule("tile_dim0", |d| {
        let bytes = d.get("tile_dim0") * d.element();
        let pads = d.loads && d.is("pad_enable");
        (pads && !bytes.is_multiple_of(4))
            .then(|| format!("padding needs lines of a multiple of 4 bytes, and these have {bytes}"))
    }),
    note("tensor_dim0", |d| d.beyond(0)),
    note("tensor_dim1", |d| if d.is("gather_mode") { None } else { d.beyond(1) }),
    rule("tensor_dim0_stride", |d| {
        let width = d.get("tile_dim0").min(d.get("tensor_dim0"));
        let stride = d.get("tensor_dim0_stride");
        let repeats = d.loads && stride == 0;
        (d.get("tile_dim1") > 1 && stride < width && !repeats)
            .then(|| format!("the lines of the tile, of {width} elements, overlap in global memory"))
    }),
    rule("pad_interval", |d| {
        let (interval, amount) = (d.get("pad_interval"), d.get("pad_amount"));
        let pads = d.loads && d.is("pad_enable");
        (pads && (interval == 0) != (amount == 0))
            .then(|| format!("pad_amount is {amount}, and either both are 0 or neither is"))
    }),
    note("pad_enable", |d| (!d.loads && d.is("pad_enable")).then(|| "stores ignore padding".to_string())),
    rule("iterate_enable", |d| {
        (d.is("gather_mode") && d.is("iterate_enable")).then(|| "gather_mode does not iterate".to_string())
    }),
    rule("workgroup_mask", |d| match d.cluster {
        _ if !d.loads => None,
        None => d.is("workgroup_mask").then(|| "it must be 0 outside of a cluster".to_string()),
        Some(place) => d.wrong_mask(place),
    }),
];

fn selects_nothing(select: u64) -> Option<String> {
    matches!(select, 2 | 3).then(|| "it selects neither a component nor a constant".to_string())
}

static IMAGE: &[Rule] = &[
    rule("type", |d| match d.get("type") {
        0 if d.is_zero() => Some("the descriptor is zero, so that loads return 0".to_string()),
        1..=7 => Some("it is reserved".to_string()),
        0 => Some("it is that of a buffer".to_string()),
        14.. if !d.is("sw_mode") => {
            Some("an image with several samples is not linear (sw_mode 0)".to_string())
        }
        _ => None,
    }),
    rule("format", |d| {
        let known = format_bytes(d.get("format") as u32) != 0;
        (!known && !d.is_zero()).then(|| "no texel has this format".to_string())
    }),
    rule("sw_mode", |d| d.wrong_layout()),
    rule("compression_enable", |d| {
        d.is("compression_enable").then(|| "compressed images are not simulated".to_string())
    }),
    rule("last_level", |d| {
        let (base, last) = (d.get("base_level"), d.get("last_level"));
        (last < base).then(|| format!("it is below base_level, which is {base}"))
    }),
    rule("last_level", |d| {
        let (last, most) = (d.get("last_level"), d.get("max_mip"));
        (last > most).then(|| format!("the image has no level above max_mip, which is {most}"))
    }),
    rule("base_array", |d| {
        let layers = matches!(d.get("type"), 11..=13);
        let (base, last) = (d.get("base_array"), d.get("depth"));
        (layers && base > last).then(|| format!("the last layer, depth, is {last}"))
    }),
    rule("dst_sel_x", |d| selects_nothing(d.get("dst_sel_x"))),
    rule("dst_sel_y", |d| selects_nothing(d.get("dst_sel_y"))),
    rule("dst_sel_z", |d| selects_nothing(d.get("dst_sel_z"))),
    rule("dst_sel_w", |d| selects_nothing(d.get("dst_sel_w"))),
];

static SAMPLER: &[Rule] = &[rule("border_color_type", |d| {
    let borders = ["clamp_x", "clamp_y", "clamp_z"].iter().any(|field| matches!(d.get(field), 4..=7));
    let table = d.get("border_color_type") == 3;
    (borders && table).then(|| {
        "borders have a color of the driver's table, whose address is not in the descriptor; here they read as 0".to_string()
    })
})];

static HIERARCHY: &[Rule] = &[rule("type", |d| (d.get("type") != 8).then(|| "it must be 8".to_string()))];

static BUFFER: &[Rule] = &[rule("type", |d| must_be_zero(d.is("type")))];

/// Outside of a cluster, these loads are ordinary ones.
static MULTICAST: &[Rule] = &[rule("workgroup_mask", |d| d.cluster.and_then(|place| d.wrong_mask(place)))];

/// Reports fields of an instruction's descriptors with wrong values.
pub(super) fn check(step: &Step<'_>, effects: &Effects, descriptors: &Descriptors, report: &mut Report) {
    let words = |role: Role, wave: &Wave| {
        let mut words = [0; 8];
        if role == Role::State {
            words[0] = wave.sgprs[M0];
            return words;
        }
        let used = effects.reads.iter().find(|used| used.file == File::Sgpr && used.role == role);
        if let Some(used) = used {
            let registers = used.registers(wave, false);
            // Registers that do not exist read as 0.
            let read = |at: u16| wave.sgprs.get(at as usize).copied().unwrap_or(0);
            words.iter_mut().zip(registers).for_each(|(word, at)| *word = read(at));
        }
        words
    };
    let fields = Fields {
        values: descriptors.iter().map(|(role, record)| (*record, words(*role, step.wave))).collect(),
        loads: !effects.memory.iter().any(|access| access.write && access.space == Space::Global),
        cluster: step.group.cluster(),
        arch: step.program.arch,
    };
    if effects.texture == Some(Texture::Sample)
        && let Some(record) = record::layout(step.program.arch, "Sampler")
    {
        let inst = &step.program.insts[step.index];
        let table = step.program.arch.table();
        let first = inst.field(table, "SAMP").or(inst.field(table, "SSAMP")).unwrap_or(0) as usize;
        let word = |k: usize| step.wave.sgprs.get(first + k).copied().unwrap_or(0);
        let values = vec![(record, std::array::from_fn(|k| if k < 4 { word(k) } else { 0 }))];
        let sampler = Fields { values, loads: true, cluster: None, arch: step.program.arch };
        apply(SAMPLER, "sampler", &sampler, step, report);
    }
    let tensor = descriptors.len() > 1;
    // A count of 0 disables the instruction.
    if tensor && !fields.is("count") {
        return;
    }
    let (rules, name) = match descriptors.first() {
        _ if tensor => (TENSOR, "tensor descriptor"),
        Some((Role::State, _)) => (MULTICAST, "multicast mask in M0"),
        Some((_, record)) if record.name == "ImageDescriptor" => (IMAGE, "image descriptor"),
        Some((_, record)) if record.name == "BvhDescriptor" => (HIERARCHY, "descriptor of a hierarchy"),
        _ => (BUFFER, "buffer descriptor"),
    };
    apply(rules, name, &fields, step, report);
}

/// Reports what breaks rules for the fields of a descriptor.
fn apply(rules: &[Rule], name: &str, fields: &Fields<'_>, step: &Step<'_>, report: &mut Report) {
    for rule in rules {
        let Some(wrong) = (rule.wrong)(fields) else { continue };
        if !report.is_new(Check::Hazard, rule.field, step.pc, None) {
            continue;
        }
        let message = format!("`{}` of the {name} is {}: {wrong}", rule.field, fields.get(rule.field));
        let finding = Finding::new(Check::Hazard, rule.field, message, Site::new(step, None));
        report.add(if rule.note { finding.note() } else { finding });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_one_of_a_record() {
        for (arch, rules, names) in [
            (Arch::Cdna5, TENSOR, &["TensorGroup0", "TensorGroup1", "TensorGroup2"][..]),
            (Arch::Cdna5, BUFFER, &["BufferDescriptor"][..]),
            (Arch::Cdna5, MULTICAST, &["Multicast"][..]),
            (Arch::Rdna3, IMAGE, &["ImageDescriptor"][..]),
            (Arch::Rdna4, HIERARCHY, &["BvhDescriptor"][..]),
            (Arch::Rdna3, SAMPLER, &["Sampler"][..]),
        ] {
            let records: Vec<&Layout> = names.iter().filter_map(|name| record::layout(arch, name)).collect();
            assert_eq!(records.len(), names.len());
            for rule in rules {
                assert!(records.iter().any(|record| record.field(rule.field).is_some()), "{}", rule.field);
            }
        }
    }

    #[test]
    fn every_line_has_operands() {
        assert!(LINES.iter().all(|line| !line.patterns.is_empty() && !line.operands.is_empty()));
    }
}
