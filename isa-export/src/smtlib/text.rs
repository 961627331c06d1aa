//! Functions of terms. Terms that occur once are written where they occur, others in `let`.

use crate::smt::script::{Text, number, quoted, sort, text};
use crate::smt::{FloatOp, Op, Term, Terms};
use isa_spec::pcode::ir::Ty;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::{self, Write};

/// A term that is longer is not written where it occurs.
const MAX_INLINE: usize = 2_000;

/// Writes a function for each value. Float arithmetic is an additional argument of each, and the function `where` says
/// which number it is.
pub(super) fn functions(
    terms: &Terms,
    values: &BTreeMap<String, Term>,
    name: &str,
    declared: &mut BTreeMap<String, String>,
    out: &mut String,
) -> fmt::Result {
    let roots: Vec<Term> = values.values().copied().collect();
    let order = terms.reachable(&roots);
    let mut leaves: HashMap<Term, String> = HashMap::new();
    let mut arguments: BTreeMap<String, String> = BTreeMap::new();
    let mut numbers: Vec<(Term, String)> = Vec::new();
    for term in &order {
        let node = terms.node(*term);
        match &node.op {
            Op::Var(var) => {
                arguments.insert(quoted(var), sort(node.sort));
                leaves.insert(*term, quoted(var));
            }
            Op::Float(op) if !matches!(op, FloatOp::Less(_) | FloatOp::Equal(_) | FloatOp::ToInt { .. }) => {
                let name = format!("f{}", numbers.len());
                leaves.insert(*term, name.clone());
                numbers.push((*term, name));
            }
            Op::Apply(_) => {
                let blank: Vec<&str> = node.args.iter().map(|_| "").collect();
                if let Text::Call { function, signature, .. } = text(terms, *term, &blank)
                    && declared.get(&function) != Some(&signature)
                {
                    writeln!(out, "(declare-fun {function} {signature})")?;
                    declared.insert(function, signature);
                }
            }
            _ => {}
        }
    }
    let mut list: Vec<String> = arguments.iter().map(|(name, sort)| format!("({name} {sort})")).collect();
    list.extend(numbers.iter().map(|(term, name)| format!("({name} {})", sort(terms.node(*term).sort))));
    let list = list.join(" ");
    for (result, value) in values {
        let sort = sort(terms.node(*value).sort);
        let body = with_lets(terms, &[*value], &leaves, &|texts| texts.join(" "));
        writeln!(out, "(define-fun {} ({list}) {sort}\n  {body})", quoted(&format!("{name}.{result}")))?;
    }
    if numbers.is_empty() {
        return Ok(());
    }
    // The operands of each operation, one after the other.
    let operands: Vec<Term> = numbers.iter().flat_map(|(term, _)| terms.node(*term).args.clone()).collect();
    let body = with_lets(terms, &operands, &leaves, &|texts| {
        let mut at = 0;
        let equations: Vec<String> = numbers
            .iter()
            .map(|(term, name)| {
                let count = terms.node(*term).args.len();
                let args: Vec<&str> = texts[at..at + count].iter().map(String::as_str).collect();
                at += count;
                match text(terms, *term, &args) {
                    Text::Number(body, ty) => equation(name, &body, ty),
                    _ => "true".into(),
                }
            })
            .collect();
        if equations.len() == 1 { equations[0].clone() } else { format!("(and {})", equations.join(" ")) }
    });
    writeln!(out, "(define-fun {} ({list}) Bool\n  {body})", quoted(&format!("{name}.where")))
}

/// The bits are those of a number.
fn equation(bits: &str, body: &str, ty: Ty) -> String {
    format!("(= {} {body})", number(bits, ty))
}

/// A term with what it refers to more than once.
struct Written {
    text: String,
    /// How many `let` are around it.
    level: usize,
}

/// The text that a function makes of the texts of terms.
fn with_lets(
    terms: &Terms,
    roots: &[Term],
    leaves: &HashMap<Term, String>,
    join: &dyn Fn(&[String]) -> String,
) -> String {
    let order = reachable(terms, roots, leaves);
    let mut uses: HashMap<Term, u32> = HashMap::new();
    for arg in order.iter().flat_map(|term| &terms.node(*term).args).chain(roots) {
        *uses.entry(*arg).or_insert(0) += 1;
    }
    let mut lets: Vec<Vec<String>> = Vec::new();
    let mut written: HashMap<Term, Written> = HashMap::new();
    let mut names = 0;
    let get = |written: &HashMap<Term, Written>, term: &Term| match leaves.get(term) {
        Some(leaf) => (leaf.clone(), 0),
        None => written.get(term).map_or((String::new(), 0), |one| (one.text.clone(), one.level)),
    };
    for term in order {
        let args: Vec<(String, usize)> = terms.node(term).args.iter().map(|arg| get(&written, arg)).collect();
        let level = args.iter().map(|(_, level)| *level).max().unwrap_or(0);
        let texts: Vec<&str> = args.iter().map(|(text, _)| text.as_str()).collect();
        let (body, small) = match text(terms, term, &texts) {
            Text::Constant(text) | Text::Variable(text) => (text, true),
            Text::Value(body) | Text::Number(body, _) | Text::Call { body, .. } => (body, false),
        };
        let one = if small || uses[&term] == 1 && body.len() <= MAX_INLINE {
            Written { text: body, level }
        } else {
            let name = format!("t{names}");
            names += 1;
            if lets.len() <= level {
                lets.push(Vec::new());
            }
            lets[level].push(format!("({name} {body})"));
            Written { text: name, level: level + 1 }
        };
        written.insert(term, one);
    }
    let texts: Vec<String> = roots.iter().map(|root| get(&written, root).0).collect();
    let mut out = String::new();
    for group in &lets {
        let _ = write!(out, "(let ({})\n  ", group.join(" "));
    }
    out + &join(&texts) + &")".repeat(lets.len())
}

/// The terms that roots are made of, without leaves, each after its arguments.
fn reachable(terms: &Terms, roots: &[Term], leaves: &HashMap<Term, String>) -> Vec<Term> {
    let (mut seen, mut order) = (HashSet::new(), Vec::new());
    let mut stack: Vec<(Term, bool)> = roots.iter().rev().map(|root| (*root, false)).collect();
    while let Some((term, done)) = stack.pop() {
        if done {
            order.push(term);
        } else if !leaves.contains_key(&term) && seen.insert(term) {
            stack.push((term, true));
            stack.extend(terms.node(term).args.iter().rev().map(|arg| (*arg, false)));
        }
    }
    order
}
