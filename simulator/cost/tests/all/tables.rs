//! The tables of costs, and occupancy.

use crate::model::prepare;
use wavesim_cost::class;
use wavesim_cost::data::{self, ArchCost, CostError, DeviceCost};
use wavesim_cost::model::{Effort, History};
use wavesim_cost::occupancy::{Limit, Resources, occupancy};
use wavesim_cost::profile::{self, Costs};
use wavesim_cost::report;
use wavesim_isa::arch::Arch;

const CDNA3: &str = include_str!("../../data/cdna3.toml");
const MI300A: &str = include_str!("../../data/devices/mi300a.toml");

#[test]
fn every_architecture_and_device_has_costs_with_sources() {
    for arch in Arch::AMD {
        let cost = data::arch(arch).expect("costs");
        assert_eq!(cost.arch(), arch);
        for (key, quantity) in data::constants(cost) {
            assert!(
                !quantity.unit.is_empty() && cost.sources.contains_key(quantity.source.get_ref()),
                "{key}"
            );
        }
        let device = data::device_of(arch).expect("a device");
        assert_eq!(device.arch(), arch);
    }
    let model = data::model().expect("a file");
    let listed = |(key, quantity): &(String, &data::Quantity)| {
        assert!(model.sources.contains_key(quantity.source.get_ref()) && !quantity.unit.is_empty(), "{key}");
    };
    data::constants(model).iter().for_each(listed);
    for name in data::device_names() {
        let device = data::device(name).expect("a device");
        assert_eq!(device.calibrated, name == "mi300a", "{name}: no other device has been compared");
        let says = device.calibration.contains("uncalibrated") || device.calibration.contains("calibrated");
        assert!(says, "{name}: {}", device.calibration);
    }
}

#[test]
fn every_instruction_has_a_class() {
    let mut without = Vec::new();
    for arch in Arch::AMD {
        let cost = data::arch(arch).expect("costs");
        for inst in arch.table().instructions {
            let group = class::group_of_name(arch, inst.name).expect("a group");
            if cost.is_default(cost.class_of(group.name(), inst.name)) {
                without.push(format!("{} {}", arch.name(), inst.name));
            }
        }
    }
    assert!(without.is_empty(), "{without:?}");
}

/// Clocks of AMD's matrix calculator.
#[test]
fn matrix_instructions_have_the_clocks_of_the_calculator() {
    let clocks = |arch, name: &str| {
        let cost = data::arch(arch).expect("costs");
        let group = class::group_of_name(arch, name).expect("an instruction");
        let of = class::of_name(cost, name, group, 64);
        of.busy
    };
    for (arch, name, expected) in [
        (Arch::Cdna3, "V_MFMA_F32_32X32X8_F16", 32.0),
        (Arch::Cdna3, "V_MFMA_F32_16X16X16_F16", 16.0),
        (Arch::Cdna3, "V_MFMA_F32_4X4X4_16B_F16", 8.0),
        (Arch::Cdna3, "V_MFMA_F32_32X32X4_2B_F16", 64.0),
        (Arch::Cdna3, "V_MFMA_F32_32X32X2_F32", 64.0),
        (Arch::Cdna3, "V_MFMA_F64_16X16X4_F64", 32.0),
        (Arch::Cdna3, "V_SMFMAC_F32_16X16X32_F16", 16.0),
        (Arch::Cdna4, "V_MFMA_F64_16X16X4_F64", 64.0),
        (Arch::Cdna4, "V_MFMA_F32_32X32X16_F16", 32.0),
        (Arch::Rdna3, "V_WMMA_F32_16X16X16_F16", 32.0),
        (Arch::Rdna3, "V_WMMA_I32_16X16X16_IU4", 16.0),
        (Arch::Rdna4, "V_WMMA_F32_16X16X16_FP8_FP8", 8.0),
    ] {
        assert_eq!(clocks(arch, name), expected, "{name}");
    }
}

/// Measured on gfx1201 and gfx1151.
#[test]
fn occupancy_is_as_measured() {
    for arch in [Arch::Rdna35, Arch::Rdna4] {
        let cost = data::arch(arch).expect("costs");
        for (vgprs, waves) in [(78, 16), (111, 12), (132, 10), (164, 9), (196, 7), (228, 6)] {
            let resources = Resources { vgprs, sgprs: 32, lds_bytes: 0, items: 32, wave_size: 32 };
            assert_eq!(occupancy(cost, &resources).waves_of_simd, waves, "{vgprs} VGPRs");
        }
    }
}

#[test]
fn occupancy_names_the_limit() {
    let cost = data::arch(Arch::Cdna3).expect("costs");
    let of = |vgprs, lds_bytes, items| {
        let o = occupancy(cost, &Resources { vgprs, sgprs: 40, lds_bytes, items, wave_size: 64 });
        (o.workgroups, o.limit)
    };
    assert_eq!(of(64, 0, 256), (8, Limit::Slots));
    assert_eq!(of(128, 0, 256), (4, Limit::Vgprs));
    assert_eq!(of(32, 32 << 10, 256), (2, Limit::Lds));
    assert_eq!(of(32, 65 << 10, 256), (0, Limit::Nothing));
}

#[test]
fn malformed_files_are_errors_with_line_and_key() {
    let arch = |from: &str, to: &str| {
        ArchCost::parse("x.toml", &CDNA3.replacen(from, to, 1)).unwrap_err().to_string()
    };
    let line = |needle: &str| 1 + CDNA3[..CDNA3.find(needle).expect("there")].matches('\n').count();
    let at = line("simds = ");
    assert_eq!(
        arch("simds = { value = 4,", "simds = { value = -4,"),
        format!("x.toml:{at}: processor.simds: -4 is not a finite number from 0 on")
    );
    let message = arch("simds = { value = 4,", "simds = { value = \"four\",");
    assert!(message.starts_with(&format!("x.toml:{at}: simds: invalid type")), "{message}");
    let message = arch("simds = {", "simd = {");
    assert!(message.contains("simd") && message.contains("unknown field"), "{message}");
    let message = arch("source = \"manual\"", "source = \"manul\"");
    assert!(message.contains("there is no source `manul`"), "{message}");
    let message = arch("name = '_F64$'", "name = '_F64($'");
    assert!(message.contains("class.valu.f64.select") || message.contains(".select"), "{message}");
    let message =
        DeviceCost::parse("d.toml", &MI300A.replacen("gfx942", "gfx1100", 1)).unwrap_err().to_string();
    assert!(message.contains("processor: processors of cdna3 are gfx942"), "{message}");
    let message =
        DeviceCost::parse("d.toml", &MI300A.replacen("[launch]", "[launches]", 1)).unwrap_err().to_string();
    assert!(message.starts_with("d.toml:"), "{message}");
}

/// An instruction that no rule selects has the costs of the default class, and the report names it.
#[test]
fn an_instruction_without_a_class_is_named() {
    let rule = "select = { group = \"SALU\" }";
    let cost =
        ArchCost::parse("x.toml", &CDNA3.replacen(rule, "select = { group = \"SALU\", name = '^NONE$' }", 1));
    let mut costs = Costs::of(data::device("mi300a").expect("a device")).expect("costs");
    costs.arch = cost.expect("a table");
    let prepared =
        prepare(Arch::Cdna3, "local = 64, 1, 1\nglobal = 1, 1, 1\n", "  s_mov_b32 s5, 1\n  v_mov_b32 v1, s5");
    let launch = (&mut History::default(), true);
    let run = profile::run(
        &prepared.dispatch(100),
        &prepared.memory,
        &[],
        &costs,
        &Effort::report(&costs.model),
        launch,
    )
    .expect("costs");
    let profile = run.1.expect("no fault");
    assert_eq!(profile.prediction.unclassified, ["S_MOV_B32"]);
    let row = profile.rows.iter().find(|row| row.index == 0).expect("a row");
    assert_eq!(row.class, "unclassified");
    let text = report::text(&profile, &prepared.program, None);
    assert!(text.contains("no class      S_MOV_B32: the default is assumed"), "{text}");
    let json = report::json(&profile, &prepared.program);
    assert_eq!(json["unclassified"][0], "S_MOV_B32");
}

#[test]
fn an_unknown_device_lists_the_known_ones() {
    let e = data::device("mi300").unwrap_err();
    assert!(matches!(e, CostError::UnknownDevice { .. }));
    let text = e.to_string();
    assert!(text.contains("there is no device `mi300` (did you mean `mi300"), "{text}");
    assert!(text.contains("rx7900xtx") && text.contains("mi355x"), "{text}");
    assert_eq!(data::device("gfx942").expect("by its processor").device, "mi300a");
}
