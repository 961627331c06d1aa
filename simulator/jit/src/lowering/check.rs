//! Checks of whole bodies: whether all of their values and statements are compiled where they are.

use super::statement::recognise_statement;
use super::{Scope, Why, recognise};
use isa_lower::ir::{Stmt, Value};
use isa_lower::visit::{each_in, each_stmt, each_value};

/// Where code is emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Region {
    /// In loops over packets of lanes.
    Lane,
    /// Around a load or store of each lane.
    Access,
    /// In code that runs once per wave.
    Wave,
}

fn admits(region: Region, scope: Scope) -> Result<(), Why> {
    match (scope, region) {
        (Scope::Any, _)
        | (Scope::Lane, Region::Lane | Region::Access)
        | (Scope::Wave, Region::Wave)
        | (Scope::Access, Region::Access) => Ok(()),
        (Scope::Lane, Region::Wave) => Err(Why("lane arithmetic of scalar operands")),
        (Scope::Wave, _) => Err(Why("state of the wave in a lane")),
        (Scope::Access, _) => Err(Why("an access to memory")),
    }
}

/// Checks a value and all values in it.
pub fn check_value(value: &Value, region: Region) -> Result<(), Why> {
    let mut checked = Ok(());
    each_in(value, &mut |v| {
        checked = checked.and_then(|()| recognise(v)).and_then(|(_, scope)| admits(region, scope));
    });
    checked
}

/// Checks all values of some statements, at any depth.
pub fn check_values(list: &[Stmt], region: Region) -> Result<(), Why> {
    let mut checked = Ok(());
    each_value(list, &mut |v| {
        checked = checked.and_then(|()| recognise(v)).and_then(|(_, scope)| admits(region, scope));
    });
    checked
}

/// Checks statements and their values, at any depth.
pub fn check(list: &[Stmt], region: Region) -> Result<(), Why> {
    let mut checked = Ok(());
    each_stmt(list, &mut |s| {
        checked = checked.and_then(|()| recognise_statement(s)).and_then(|(_, scope)| admits(region, scope));
    });
    checked.and_then(|()| check_values(list, region))
}
