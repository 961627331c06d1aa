//! Objects of the program that graphs keep alive.

use super::with;
use crate::ffi::{HostFunction, Memory, Out};
use crate::gpu::lock;
use crate::status::{Outcome, Status, call, report};
use crate::stream::{Handle, new_handle};
use std::collections::HashMap;
use std::ffi::c_int;
use std::ffi::c_uint;
use std::sync::Mutex;
use wavesim_runtime::callback;

/// An object, with the function that destroys it.
struct Object {
    destroy: HostFunction,
    references: u32,
}

static OBJECTS: Mutex<Option<HashMap<Handle, Object>>> = Mutex::new(None);

/// Adds to the references of an object. As in ROCm, an object that has been destroyed is no error.
fn retain(object: Handle, count: u32) -> Outcome {
    let mut objects = lock(&OBJECTS);
    let Some(found) = objects.get_or_insert_default().get_mut(&known(object)?) else {
        report("a user object is retained that has been destroyed: ignored");
        return Ok(());
    };
    found.references = found.references.checked_add(count).ok_or(Status::INVALID_VALUE)?;
    Ok(())
}

/// Removes references of an object, and destroys it with the last one. As in ROCm, a release of more references than there
/// are is no error and has no effect.
fn release(object: Handle, count: u32) -> Outcome {
    let mut objects = lock(&OBJECTS);
    let all = objects.get_or_insert_default();
    let references = all.get(&known(object)?).map_or(0, |found| found.references);
    let Some(left) = references.checked_sub(count) else {
        report(&format!("{count} references of a user object are released that has {references}: ignored"));
        return Ok(());
    };
    let destroyed = match all.get_mut(&object) {
        Some(found) if left != 0 => {
            found.references = left;
            None
        }
        _ => all.remove(&object),
    };
    drop(objects);
    if let Some(Object { destroy: HostFunction { function: Some(function), argument }, .. }) = destroyed {
        // SAFETY: the caller of `hipUserObjectCreate` passes a function that can be called once, with the object.
        callback::run(|| unsafe { function(argument) });
    }
    Ok(())
}

/// Refuses null.
fn known(object: Handle) -> Outcome<Handle> {
    if object == 0 { Err(Status::INVALID_VALUE.into()) } else { Ok(object) }
}

pub(super) fn retain_all(objects: &[(Handle, u32)]) -> Outcome {
    objects.iter().try_for_each(|(object, count)| retain(*object, *count))
}

pub(super) fn release_all(objects: &[(Handle, u32)]) -> Outcome {
    objects.iter().try_for_each(|(object, count)| release(*object, *count))
}

/// `hipUserObjectCreate`.
pub unsafe extern "C" fn hipUserObjectCreate(
    object: Out<Handle>,
    argument: Memory,
    destroy: Option<unsafe extern "C" fn(Memory)>,
    count: c_uint,
    flags: c_uint,
) -> c_int {
    /// `hipUserObjectNoDestructorSync`, the only flag.
    const NO_DESTRUCTOR_SYNC: c_uint = 1;
    call("hipUserObjectCreate", || {
        if object.is_null() || destroy.is_none() || count == 0 || count > i32::MAX as u32 {
            return Err(Status::INVALID_VALUE.into());
        }
        if flags != NO_DESTRUCTOR_SYNC {
            return Err(Status::INVALID_VALUE.into());
        }
        let handle = new_handle();
        let destroy = HostFunction { function: destroy, argument };
        lock(&OBJECTS).get_or_insert_default().insert(handle, Object { destroy, references: count });
        object.put(handle)
    })
}

/// Checks a number of references.
fn checked(count: c_uint) -> Outcome<u32> {
    if (1..=i32::MAX as u32).contains(&count) { Ok(count) } else { Err(Status::INVALID_VALUE.into()) }
}

/// `hipUserObjectRetain`.
pub unsafe extern "C" fn hipUserObjectRetain(object: Handle, count: c_uint) -> c_int {
    call("hipUserObjectRetain", || retain(object, checked(count)?))
}

/// `hipUserObjectRelease`.
pub unsafe extern "C" fn hipUserObjectRelease(object: Handle, count: c_uint) -> c_int {
    call("hipUserObjectRelease", || release(object, checked(count)?))
}

/// `hipGraphRetainUserObject`.
pub unsafe extern "C" fn hipGraphRetainUserObject(
    graph: Handle,
    object: Handle,
    count: c_uint,
    flags: c_uint,
) -> c_int {
    /// `hipGraphUserObjectMove`: the graph takes the caller's references.
    const MOVE: c_uint = 1;
    call("hipGraphRetainUserObject", || {
        let count = checked(count)?;
        let graph = with(|graphs| graphs.graph(graph))?;
        match flags {
            0 => retain(object, count)?,
            MOVE => retain_all(&[(object, 0)])?,
            _ => return Err(Status::INVALID_VALUE.into()),
        }
        lock(&graph).objects.push((object, count));
        Ok(())
    })
}

/// `hipGraphReleaseUserObject`.
pub unsafe extern "C" fn hipGraphReleaseUserObject(graph: Handle, object: Handle, count: c_uint) -> c_int {
    call("hipGraphReleaseUserObject", || {
        let mut left = checked(count)?;
        let graph = with(|graphs| graphs.graph(graph))?;
        let mut graph = lock(&graph);
        let kept: u64 =
            graph.objects.iter().filter(|kept| kept.0 == object).map(|kept| u64::from(kept.1)).sum();
        if kept < left.into() {
            known(object)?;
            report(&format!(
                "{left} references of a user object are released of which the graph has {kept}: ignored"
            ));
            return Ok(());
        }
        for kept in graph.objects.iter_mut().filter(|kept| kept.0 == object) {
            let part = kept.1.min(left);
            kept.1 -= part;
            left -= part;
        }
        graph.objects.retain(|kept| kept.1 != 0);
        drop(graph);
        release(object, count)
    })
}
