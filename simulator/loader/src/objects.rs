//! The objects of a program: variables in global memory, in LDS and in the frames of functions. An access that is meant
//! for one of them and reaches another is within the bounds of memory, but wrong.

use super::code_object::{self, Kernel};
use super::debug_info::{DebugInfo, Variable};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its name in the source, or its symbol.
    pub name: String,
    /// Its bytes. In global memory: addresses of the file. In LDS: offsets. In a frame: offsets from its base.
    pub bytes: Range<u64>,
}

/// The variables in the frame of a function, in scratch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Addresses of the function's code, in the file.
    pub code: Range<u64>,
    /// The SGPR that holds the base of the frame; the frame of a kernel is at the start of scratch.
    pub register: u32,
    /// The variables, by offset.
    pub variables: Vec<Object>,
    /// Offsets and names of those that are signed integers of 32 bits.
    pub signed: Vec<(u64, String)>,
}

/// The objects of a program, each list sorted by address and without overlaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Objects {
    /// In global memory.
    pub global: Vec<Object>,
    /// In LDS, of the kernel.
    pub lds: Vec<Object>,
    /// In scratch.
    pub frames: Vec<Frame>,
}

/// What the objects of a kernel are found from.
#[derive(Debug, Clone, Default)]
pub struct ObjectSource {
    /// The symbols of the file.
    pub variables: Arc<[code_object::Variable]>,
    /// The debug information of the file.
    pub debug: Arc<DebugInfo>,
    /// The address of the kernel's code, in the file.
    pub entry: u64,
    /// The static LDS of the kernel.
    pub lds_bytes: u64,
    /// The addresses of the kernel's explicit arguments.
    pub arguments: Vec<Range<u64>>,
    /// The variables in LDS, once they have been asked for.
    lds: OnceLock<Vec<Object>>,
}

impl ObjectSource {
    /// Returns what the variables of a kernel and of its file are found from. `kernarg` is the address of its arguments.
    pub fn of(kernel: &Kernel, kernarg: u64) -> ObjectSource {
        let bytes = |offset: u64, size: u64| kernarg + offset..kernarg + offset + size;
        ObjectSource {
            variables: kernel.variables.clone(),
            debug: kernel.debug.clone(),
            entry: kernel.entry,
            lds_bytes: u64::from(kernel.group_segment()),
            arguments: kernel.explicit_args().map(|a| bytes(a.offset.into(), a.size.into())).collect(),
            lds: OnceLock::new(),
        }
    }

    /// Collects the objects: symbols with a size, and what the debug information knows.
    pub fn read(&self) -> Objects {
        let bytes = |v: &code_object::Variable| v.address..v.address.saturating_add(v.size);
        let global = self.variables.iter().map(|v| Object { name: v.name.clone(), bytes: bytes(v) });
        let mut frames = self.debug.frames();
        frames.retain(|frame| frame.variables.len() > 1);
        frames.iter_mut().for_each(|frame| frame.variables = sorted(std::mem::take(&mut frame.variables)));
        Objects { global: sorted(global.collect()), lds: self.lds().to_vec(), frames }
    }

    /// Returns the variables in LDS, if there are several and the debug information has all of them.
    fn lds(&self) -> &[Object] {
        self.lds.get_or_init(|| {
            let variables = self.debug.lds_variables(self.entry);
            lds_layout(&variables, self.lds_bytes).unwrap_or_default()
        })
    }

    /// Returns the address of the argument from which a parameter of the kernel has its first value.
    pub fn argument(&self, parameter: &Variable) -> Option<Range<u64>> {
        let all = self.debug.parameters(self.entry);
        let at = all.iter().position(|other| other == parameter)?;
        self.arguments.get(at).filter(|_| all.len() == self.arguments.len()).cloned()
    }

    /// Returns the offset of a variable in LDS, if it is known, and no other one has its name.
    pub fn lds_offset(&self, name: &str) -> Option<u64> {
        let mut named = self.lds().iter().filter(|object| object.name == name);
        named.next().filter(|_| named.next().is_none()).map(|object| object.bytes.start)
    }
}

impl Objects {
    /// Returns whether an access can be of the wrong object.
    pub fn is_empty(&self) -> bool {
        self.global.is_empty() && self.lds.is_empty() && self.frames.is_empty()
    }
}

/// Sorts objects, without those that have no bytes, and those that share bytes with others: compilers put variables that
/// are not in use at the same time at the same place.
fn sorted(mut objects: Vec<Object>) -> Vec<Object> {
    objects.retain(|object| object.bytes.start < object.bytes.end);
    objects.sort_by_key(|object| (object.bytes.start, object.bytes.end));
    objects.dedup_by(|a, b| a.bytes == b.bytes);
    let overlaps = |a: &Object, b: &Object| a.bytes.start < b.bytes.end && b.bytes.start < a.bytes.end;
    let alone = |at: usize| {
        let others = objects.iter().enumerate().filter(|(other, _)| *other != at);
        !others.map(|(_, other)| other).any(|other| overlaps(&objects[at], other))
    };
    match objects.windows(2).all(|two| two[0].bytes.end <= two[1].bytes.start) {
        true => objects,
        false => (0..objects.len()).filter(|at| alone(*at)).map(|at| objects[at].clone()).collect(),
    }
}

/// Returns where LLVM places the LDS variables of a kernel, given their names and sizes. Its code objects do not say so.
/// It raises the alignment of each according to its size, and then places, again and again, the variable that needs the
/// least padding, of these the one with the largest alignment and size (LLVM 19, `AMDGPULowerModuleLDSPass` and
/// `OptimizedStructLayout`). `None` if the layout does not have the size that the kernel has: another compiler made it, or
/// variables are missing.
fn lds_layout(variables: &[(String, u64)], lds_bytes: u64) -> Option<Vec<Object>> {
    let alignment = |size: u64| size.next_power_of_two().clamp(1, 16);
    let mut rest: Vec<&(String, u64)> = variables.iter().filter(|v| v.1 != 0).collect();
    rest.sort_by_key(|(name, size)| (std::cmp::Reverse((alignment(*size), *size)), name.clone()));
    let (mut end, mut objects) = (0u64, Vec::new());
    while let Some(at) = (0..rest.len()).min_by_key(|&at| end.next_multiple_of(alignment(rest[at].1))) {
        let (name, size) = rest.remove(at);
        let start = end.next_multiple_of(alignment(*size));
        end = start + size;
        objects.push(Object { name: name.clone(), bytes: start..end });
    }
    let fits = end <= lds_bytes && lds_bytes <= end.next_multiple_of(16);
    (fits && objects.len() > 1).then_some(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(list: &[(&str, u64)], bytes: u64) -> Option<Vec<(String, u64)>> {
        let variables: Vec<_> = list.iter().map(|(name, size)| (name.to_string(), *size)).collect();
        let objects = lds_layout(&variables, bytes)?;
        Some(objects.into_iter().map(|o| (o.name, o.bytes.start)).collect())
    }

    #[test]
    fn lds_variables_are_placed_as_llvm_does() {
        let named = |list: &[(&str, u64)]| Some(list.iter().map(|(n, at)| (n.to_string(), *at)).collect());
        assert_eq!(
            layout(&[("c", 2), ("b", 128), ("a", 256)], 386),
            named(&[("a", 0), ("b", 256), ("c", 384)])
        );
        // The gap behind 65 floats takes the small one.
        assert_eq!(
            layout(&[("n", 4), ("tile", 260), ("sum", 68)], 340),
            named(&[("tile", 0), ("n", 260), ("sum", 272)])
        );
        // Another size, or only one variable.
        assert_eq!(layout(&[("a", 256), ("b", 128)], 512), None);
        assert_eq!(layout(&[("a", 256)], 256), None);
    }

    #[test]
    fn objects_that_share_bytes_are_unknown() {
        let object = |name: &str, bytes| Object { name: name.to_string(), bytes };
        let list = vec![object("d", 40..44), object("c", 8..16), object("b", 4..12), object("a", 0..4)];
        assert_eq!(sorted(list), [object("a", 0..4), object("d", 40..44)]);
    }
}
