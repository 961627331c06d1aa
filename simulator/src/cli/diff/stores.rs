//! The stores of two runs to their arguments, and the first one whose value differs.

use std::collections::HashMap;
use wavesim_array::Array;
use wavesim_engine::observe::{Done, Observer, Step};
use wavesim_loader::compare::{Tolerance, compare};
use wavesim_loader::prepared::{Buffer, Prepared};
use wavesim_machine::exec::watch::Place;
use wavesim_machine::memory::Memory;

/// Stores that are kept, at most.
const MOST_STORES: usize = 1 << 22;

/// A store to an element of an argument.
#[derive(Debug, Clone, Copy)]
pub struct Store {
    /// Instructions that the launch has executed, this one included.
    pub time: u64,
    pub pc: u64,
    pub workgroup: [u32; 3],
    pub wave: u32,
    pub lane: u32,
    /// The first eight bytes.
    pub bytes: [u8; 8],
}

/// The bytes that both kernels store to: index of the argument, offset and size.
pub type Element = (usize, u64, u8);

/// Records the stores to the arguments, by elements of their types: compilers join the stores of neighbouring elements.
pub struct Stores<'p> {
    memory: &'p Memory,
    arguments: Vec<(&'p Buffer, usize)>,
    count: usize,
    /// In the order of the run.
    pub stores: StoresOf,
}

impl<'p> Stores<'p> {
    /// Creates the record; `names` are the arguments, by index.
    pub fn new(prepared: &'p Prepared, names: &[String]) -> Stores<'p> {
        let index = |buffer: &Buffer| names.iter().position(|name| *name == buffer.name);
        let known = prepared.buffers.iter().filter_map(|buffer| Some((buffer, index(buffer)?)));
        Stores { memory: &prepared.memory, arguments: known.collect(), count: 0, stores: HashMap::new() }
    }
}

impl Observer for Stores<'_> {
    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let global = done.accesses.iter().filter(|a| a.write && !a.outside && a.place == Place::Global);
        for access in global.flat_map(|access| access.each()) {
            let inside = |(buffer, _): &&(&Buffer, usize)| {
                (buffer.address..buffer.address + buffer.len_bytes).contains(&access.address)
            };
            let Some(&(buffer, index)) = self.arguments.iter().find(inside) else { continue };
            let size = usize::from(access.size_bytes);
            let element = buffer.dtype.size().max(1);
            let part = if size.is_multiple_of(element) { element } else { size };
            for offset in (0..size).step_by(part) {
                if self.count >= MOST_STORES {
                    return;
                }
                let address = access.address + offset as u64;
                let mut bytes = [0; 8];
                if self.memory.read(address, &mut bytes[..part.min(8)]).is_err() {
                    continue;
                }
                let store = Store {
                    time: step.time,
                    pc: step.pc,
                    workgroup: step.wave.workgroup,
                    wave: step.wave.id,
                    lane: access.lane.map_or(0, u32::from),
                    bytes,
                };
                self.count += 1;
                let place = (index, address - buffer.address, part as u8);
                self.stores.entry(place).or_default().push(store);
            }
        }
    }
}

/// The stores to each element, in their order.
pub type StoresOf = HashMap<Element, Vec<Store>>;

/// Two stores to the same element.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    pub element: Element,
    /// The number of the store there in the first run, from 0.
    pub number: usize,
    /// The store is the last one there.
    pub is_last: bool,
    pub stores: [Store; 2],
}

/// Returns the first store of the first run, in its order, to which the second one has one with another value. Where one of
/// them stores more often, the last stores are compared: compilers drop stores that nobody reads.
pub fn first_difference(
    (a, b): (&StoresOf, &StoresOf),
    buffers: &[Buffer],
    tolerance: impl Fn(wavesim_array::DType) -> Tolerance,
) -> Option<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    for (element, own) in a {
        let Some(other) = b.get(element) else { continue };
        let last = own.len() - 1;
        let numbers = if own.len() == other.len() { 0..own.len() } else { last..own.len() };
        pairs.extend(numbers.filter_map(|number| {
            let other = if own.len() == other.len() { other.get(number)? } else { other.last()? };
            let stores = [own[number], *other];
            Some(Pair { element: *element, number, is_last: number == last, stores })
        }));
    }
    pairs.sort_unstable_by_key(|pair| (pair.stores[0].time, pair.element));
    pairs.into_iter().find(|pair| {
        let [own, other] = pair.stores;
        let dtype = buffers[pair.element.0].dtype;
        let size = dtype.size();
        if own.bytes == other.bytes {
            return false;
        }
        if !dtype.is_float() || usize::from(pair.element.2) != size {
            return true;
        }
        let one = |store: Store| Array { dtype, shape: Vec::new(), bytes: store.bytes[..size].to_vec() };
        compare("", &one(other), &one(own), tolerance(dtype)).is_some()
    })
}
