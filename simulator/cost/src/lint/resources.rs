//! Occupancy, and scratch.

use super::{Code, Level, Remark};
use crate::data::ArchCost;
use crate::occupancy::{self, Limit, Occupancy, Resources};
use wavesim_machine::exec::effects::Class;

pub(super) fn check(
    code: &Code<'_>,
    cost: &ArchCost,
    resources: &Resources,
    occupancy: &Occupancy,
    scratch_bytes: u32,
    out: &mut Vec<Remark>,
) {
    out.push(occupancy_remark(cost, resources, occupancy));
    let all = code.blocks.iter().flat_map(|(first, last)| *first..=*last);
    let scratch: Vec<usize> = all.filter(|index| code.effects[*index].class == Class::Scratch).collect();
    if let Some(first) = scratch.first() {
        let loads = scratch.iter().filter(|index| code.effects[**index].returns).count();
        let stores = scratch.len() - loads;
        let message = format!(
            "{loads} loads and {stores} stores of scratch ({scratch_bytes} bytes a lane): registers are spilled, or an array is \
             in memory"
        );
        let help = "fewer live values, or constant indices, keep them in registers".to_string();
        out.push(Remark {
            rule: "scratch",
            level: Level::Warning,
            index: Some(*first),
            message,
            help: Some(help),
        });
    }
}

fn occupancy_remark(cost: &ArchCost, resources: &Resources, o: &Occupancy) -> Remark {
    let p = &cost.processor;
    let simds = p.simds.count().max(1);
    let per_simd = f64::from(o.waves) / simds as f64;
    let name = &p.name;
    let message = match o.limit {
        Limit::Nothing => format!(
            "a workgroup of {} waves with {} VGPRs and {} bytes of LDS does not fit into a {name}",
            resources.waves(),
            resources.vgprs,
            resources.lds_bytes
        ),
        limit => format!(
            "occupancy {per_simd:.0} of {} waves a SIMD ({} workgroups a {name}), limited by {}: {} VGPRs ({} allocated), {} \
             bytes of LDS ({} allocated)",
            o.most,
            o.workgroups,
            limit.name(),
            resources.vgprs,
            o.allocated_vgprs,
            resources.lds_bytes,
            o.allocated_lds
        ),
    };
    let help = match o.limit {
        Limit::Vgprs if o.waves_of_simd < o.most => {
            let next = o.waves_of_simd + 1;
            let vgprs = occupancy::vgprs_for(cost, next, resources.wave_size);
            Some(format!("{next} waves need at most {vgprs} VGPRs"))
        }
        Limit::Lds => {
            let next = o.workgroups + 1;
            Some(format!(
                "{next} workgroups need at most {} bytes of LDS each",
                p.lds_bytes.count() / u64::from(next)
            ))
        }
        _ => None,
    };
    let level = if o.limit == Limit::Nothing { Level::Warning } else { Level::Note };
    Remark { rule: "occupancy", level, index: None, message, help }
}
