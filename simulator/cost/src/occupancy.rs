//! How many waves of a kernel are resident, and what limits them.

use crate::data::ArchCost;
use wavesim_engine::sched::dispatch::Shape;

/// What limits the waves of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Slots of waves.
    Slots,
    /// Vector registers.
    Vgprs,
    /// Scalar registers.
    Sgprs,
    /// LDS.
    Lds,
    /// Slots of workgroups, which hold barriers.
    Workgroups,
    /// The processor cannot hold one workgroup.
    Nothing,
}

impl Limit {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Slots => "wave slots",
            Limit::Vgprs => "VGPRs",
            Limit::Sgprs => "SGPRs",
            Limit::Lds => "LDS",
            Limit::Workgroups => "workgroup slots",
            Limit::Nothing => "a workgroup does not fit",
        }
    }
}

/// The resources of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// VGPRs of a lane, with accumulation VGPRs where one file has both.
    pub vgprs: u32,
    /// SGPRs of a wave.
    pub sgprs: u32,
    /// Bytes of LDS of a workgroup.
    pub lds_bytes: u32,
    /// Work-items of a workgroup.
    pub items: u32,
    /// Lanes of a wave.
    pub wave_size: u32,
}

impl Resources {
    /// Returns the resources of a launch. A kernel that declares all registers, because its file has no numbers, has
    /// those that `used` names.
    pub fn of(shape: &Shape, used: (u32, u32)) -> Resources {
        let all = shape.registers == wavesim_engine::sched::dispatch::Registers::ALL;
        let declared = u32::from(shape.registers.vgprs) + u32::from(shape.registers.accumulation);
        let (vgprs, sgprs) = if all { used } else { (declared, u32::from(shape.registers.sgprs)) };
        Resources {
            vgprs: vgprs.max(1),
            sgprs: sgprs.max(1),
            lds_bytes: shape.lds_bytes,
            items: shape.block.iter().product(),
            wave_size: shape.wave_size,
        }
    }

    /// Returns the number of waves of a workgroup.
    pub fn waves(&self) -> u32 {
        self.items.div_ceil(self.wave_size).max(1)
    }
}

/// The waves that are resident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// Waves of a SIMD that its registers and slots allow.
    pub waves_of_simd: u32,
    /// The most waves of a SIMD.
    pub most: u32,
    /// Workgroups of a processor.
    pub workgroups: u32,
    /// Waves of a processor.
    pub waves: u32,
    /// The resource that allows no more.
    pub limit: Limit,
    /// VGPRs that are allocated to a wave, of the file's size.
    pub allocated_vgprs: u32,
    /// Bytes of LDS that are allocated to a workgroup.
    pub allocated_lds: u32,
}

/// Returns the occupancy of a kernel on a processor of an architecture.
pub fn occupancy(cost: &ArchCost, resources: &Resources) -> Occupancy {
    let p = &cost.processor;
    let count = |quantity: &crate::data::Quantity| quantity.count() as u32;
    let most = count(&p.wave_slots).max(1);
    let granule = |n: u32, granule: u32| n.next_multiple_of(granule.max(1));
    // A wave that is larger than a register of the file needs several, and a smaller one as much.
    let per_lane = (f64::from(resources.wave_size) / p.vgpr_lanes.value()).max(1.0);
    let vgprs = granule((f64::from(resources.vgprs) * per_lane).ceil() as u32, count(&p.vgpr_granule));
    let by_vgprs = count(&p.vgprs) / vgprs.max(1);
    let by_sgprs = match count(&p.sgprs) {
        0 => u32::MAX,
        all => all / granule(resources.sgprs, count(&p.sgpr_granule)).max(1),
    };
    let waves_of_simd = most.min(by_vgprs).min(by_sgprs);
    let mut limit = match waves_of_simd {
        n if n == most => Limit::Slots,
        n if n == by_vgprs => Limit::Vgprs,
        _ => Limit::Sgprs,
    };
    let waves = resources.waves();
    let mut workgroups = waves_of_simd * count(&p.simds) / waves;
    let lds = granule(resources.lds_bytes, count(&p.lds_granule));
    if let Some(by_lds) = count(&p.lds_bytes).checked_div(lds)
        && by_lds < workgroups
    {
        (workgroups, limit) = (by_lds, Limit::Lds);
    }
    if waves > 1 && count(&p.workgroups) < workgroups {
        (workgroups, limit) = (count(&p.workgroups), Limit::Workgroups);
    }
    if workgroups == 0 {
        limit = Limit::Nothing;
    }
    Occupancy {
        waves_of_simd,
        most,
        workgroups,
        waves: workgroups * waves,
        limit,
        allocated_vgprs: vgprs,
        allocated_lds: lds,
    }
}

/// Returns the largest number of VGPRs of a lane with which a SIMD holds `waves` waves.
pub fn vgprs_for(cost: &ArchCost, waves: u32, wave_size: u32) -> u32 {
    let p = &cost.processor;
    let granule = (p.vgpr_granule.count() as u32).max(1);
    let per_lane = (f64::from(wave_size) / p.vgpr_lanes.value()).max(1.0);
    let each = p.vgprs.count() as u32 / waves.max(1) / granule * granule;
    (f64::from(each) / per_lane) as u32
}
