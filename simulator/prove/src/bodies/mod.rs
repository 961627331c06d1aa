//! Do two bodies compute the same? Their operands, state and memory are the same variables.

mod fields;
mod trial;

use crate::proof::ProofError;
use crate::solver::{Answer, Solver};
use fields::Fields;
use isa_export::smt::{Op, Sort, Term, Terms};
use isa_export::smtlib::{self, Field};
use isa_spec::arith::buffer_format;
use isa_spec::pcode::ir::{Role, Semantics};
use std::collections::{BTreeMap, BTreeSet};
use trial::Tried;
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::image::{self, Image};

/// The body of an instruction of an architecture.
#[derive(Debug, Clone)]
pub struct Body {
    sem: &'static Semantics,
    fields: Fields,
    /// Descriptors of tiled images, if the body reads them.
    images: Vec<[u32; 8]>,
}

/// Modes of tiled images, of those that the architecture has: with blocks of 4, 64 and 256 KB.
const MODES: [u32; 6] = [22, 27, 31, 2, 3, 4];

/// Descriptors of tiled images of 32-bit texels.
fn tiled_images(arch: Arch) -> Vec<[u32; 8]> {
    let is_word =
        |number: &u32| buffer_format::by_number(*number).is_some_and(|format| format.name == "32_UINT");
    let Some(format) = (0..64).find(is_word) else { return Vec::new() };
    let image = |sw_mode| Image { sw_mode, ..Image::two_dimensional(format, 128, 128) };
    MODES.into_iter().filter_map(|mode| image::descriptor(&image(mode), arch, 0).ok()).collect()
}

impl Body {
    /// The body of the instruction at an index of the architecture's table.
    pub fn new(arch: Arch, instruction: usize, sem: &'static Semantics) -> Body {
        let fields = sem.uses.fields.iter().map(|name| (*name, fields::of(arch, instruction, name)));
        let images = if sem.uses.fields.contains("DIM") { tiled_images(arch) } else { Vec::new() };
        Body { sem, fields: fields.collect(), images }
    }

    /// Returns whether this is the same pseudocode, with the same facts of instruction and architecture.
    pub fn is(&self, other: &Body) -> bool {
        std::ptr::eq(self.sem, other.sem)
            && self.fields.iter().all(|(name, field)| match (field, other.fields.get(name)) {
                (Field::Fixed(a), Some(Field::Fixed(b))) => a == b,
                _ => true,
            })
    }
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bodies {
    /// All results are equal for all operands and state.
    Equal,
    /// Some differ, as the reference evaluator shows.
    Differ {
        /// Operands, state, and contents of memory for which they do, by the names of exports; all others are 0.
        inputs: BTreeMap<String, u128>,
        /// The result that differs; `control` is what the bodies do besides, such as barriers.
        result: String,
        /// Its values, in hexadecimal, or `unwritten`.
        values: [String; 2],
    },
    /// Not decided, for this reason.
    Unknown(String),
}

/// Asks whether two bodies compute the same, in the modes of compute kernels: for operands of the larger width, and for the
/// values that a field has in both encodings.
///
/// # Errors
/// The solver cannot be used.
pub fn compare_bodies(a: &Body, b: &Body, solver: &Solver) -> Result<Bodies, ProofError> {
    if a.sem.shape != b.sem.shape {
        return Ok(Bodies::Unknown("one runs for each lane, the other for the wave".into()));
    }
    let mut widths: BTreeMap<Role, u32> = smtlib::widths(a.sem);
    for (role, width) in smtlib::widths(b.sem) {
        let known = widths.entry(role).or_insert(0);
        *known = width.max(*known);
    }
    let mut of = [a.fields.clone(), b.fields.clone()];
    for (name, field) in &a.fields {
        if let Some(other) = b.fields.get(name) {
            for (fields, common) in of.iter_mut().zip(fields::common(*field, *other)) {
                fields.insert(name, common);
            }
        }
    }
    let tried =
        [(a, &of[0]), (b, &of[1])].map(|(body, fields)| Tried { sem: body.sem, widths: &widths, fields });
    if let Some(found) = trial::search(tried, &a.images) {
        return Ok(differ(found));
    }
    let mut terms = Terms::default();
    let mut results = Vec::new();
    for Tried { sem, widths, fields } in tried {
        match smtlib::evaluate_instruction(&mut terms, sem, widths, fields) {
            Ok(values) => results.push(values),
            Err(why) => return Ok(Bodies::Unknown(why.to_string())),
        }
    }
    let conditions = possible(&mut terms);
    let names: BTreeSet<&String> = results.iter().flat_map(BTreeMap::keys).collect();
    for name in names {
        let [x, y] = match [&results[0], &results[1]].map(|values| values.get(name).copied()) {
            [Some(x), Some(y)] => [x, y],
            // What only one writes is what it was.
            [Some(x), None] | [None, Some(x)] => [x, terms.var(name, terms.node(x).sort)],
            [None, None] => continue,
        };
        if let Some(name) = conflict(&terms, &[x, y]) {
            return Ok(Bodies::Unknown(format!("{name} has another width")));
        }
        if x == y {
            continue;
        }
        let parts = terms.reachable(&[x, y, conditions[0], conditions[1]]);
        let is_variable = |term: &Term| matches!(terms.node(*term).op, Op::Var(_)) && terms.width(*term) > 0;
        let mut wanted: Vec<Term> = parts.iter().copied().filter(is_variable).collect();
        let bytes: Vec<Byte> = parts.iter().filter_map(|part| Byte::of(&mut terms, *part)).collect();
        wanted.extend(bytes.iter().flat_map(|byte| [byte.at, byte.value]));
        match solver.ask_differ(&mut terms, &conditions, [x, y], &wanted)? {
            Answer::Never => {}
            Answer::Unknown(why) => return Ok(Bodies::Unknown(format!("{name}: {why}"))),
            Answer::Holds(model) => {
                return Ok(match trial::reproduce(tried, &given(&terms, &model, &bytes)) {
                    Some(found) => differ(found),
                    None => Bodies::Unknown(format!(
                        "{name}: the solver's inputs do not tell the bodies apart, because of functions of which it knows \
                         nothing"
                    )),
                });
            }
        }
    }
    Ok(Bodies::Equal)
}

fn differ(found: trial::Difference) -> Bodies {
    let trial::Difference { mut inputs, result, values } = found;
    inputs.retain(|name, value| *value != 0 && !(name == "mode" && *value == smtlib::MODE as u128));
    Bodies::Differ { inputs, result, values }
}

/// Waves have 32 or 64 lanes, of which the body runs for one.
fn possible(terms: &mut Terms) -> Vec<Term> {
    let [lane, size] = ["lane", "wave_size"].map(|name| terms.var(name, Sort::Bits(32)));
    let is = [32, 64].map(|lanes| {
        let lanes = terms.constant(lanes, 32);
        terms.eq(size, lanes)
    });
    vec![terms.or(is[0], is[1]), terms.ult(lane, size)]
}

/// A byte of what a memory contains at the start.
struct Byte {
    memory: String,
    at: Term,
    value: Term,
}

impl Byte {
    /// The byte at the address from which a term reads, perhaps after stores.
    fn of(terms: &mut Terms, term: Term) -> Option<Byte> {
        let node = terms.node(term);
        let (Op::Select, &[mut memory, at]) = (&node.op, &node.args[..]) else { return None };
        loop {
            let node = terms.node(memory);
            match &node.op {
                Op::Var(name) => {
                    let memory_name = name.clone();
                    return Some(Byte { memory: memory_name, at, value: terms.select(memory, at) });
                }
                Op::Store => memory = node.args[0],
                Op::Ite => memory = node.args[1],
                _ => return None,
            }
        }
    }
}

/// What a solver has found, as numbers for a test.
fn given(terms: &Terms, model: &BTreeMap<Term, u128>, bytes: &[Byte]) -> BTreeMap<String, u128> {
    let mut given = BTreeMap::new();
    for (term, value) in model {
        if let Op::Var(name) = &terms.node(*term).op {
            given.insert(name.clone(), *value);
        }
    }
    let of = |term: Term| model.get(&term).copied().or(terms.value(term)).unwrap_or(0);
    for byte in bytes {
        let (name, shift) = trial::place(&byte.memory, of(byte.at) as u64);
        *given.entry(name).or_insert(0) |= of(byte.value) << shift;
    }
    given
}

/// A variable that has two sorts.
fn conflict(terms: &Terms, roots: &[Term]) -> Option<String> {
    let mut sorts: BTreeMap<&str, Sort> = BTreeMap::new();
    for term in terms.reachable(roots) {
        let node = terms.node(term);
        if let Op::Var(name) = &node.op
            && *sorts.entry(name).or_insert(node.sort) != node.sort
        {
            return Some(name.clone());
        }
    }
    None
}
