//! Names of kernels: symbols, and what the source calls them.

/// Returns the name of a kernel in its source language: `add(float*, int)` for `_Z3addPfi`. Names that are not
/// mangled stay as they are.
pub fn demangled(name: &str) -> String {
    let symbol = cpp_demangle::Symbol::new(name).ok();
    symbol.and_then(|symbol| symbol.demangle().ok()).unwrap_or_else(|| name.to_string())
}

/// Returns whether a kernel has a name: its symbol, or what the source calls it, with or without parameters, template
/// arguments and namespaces.
pub fn is_named(symbol: &str, wanted: &str) -> bool {
    if symbol == wanted {
        return true;
    }
    let full = demangled(symbol);
    let own = own_name(&full);
    let plain = own.find('<').map_or(own, |at| &own[..at]);
    let inner =
        |name: &str| name == wanted || name.strip_suffix(wanted).is_some_and(|head| head.ends_with("::"));
    full == wanted || inner(own) || inner(plain)
}

/// Returns the name of a function without the type of its result, which templates have, and without its parameters.
fn own_name(full: &str) -> &str {
    let (mut depth, mut start, mut end) = (0i32, 0, full.len());
    for (at, c) in full.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            ' ' if depth == 0 => start = at + 1,
            // `(anonymous namespace)` is a part of the name.
            '(' if depth == 0 && !full[at..].starts_with("(anonymous") => {
                end = at;
                break;
            }
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
    }
    full.get(start..end).unwrap_or(full)
}

/// Selects a kernel by a name ([`is_named`]).
pub fn select<'a>(names: &'a [String], wanted: &str) -> Option<&'a String> {
    let mut similar = names.iter().filter(|name| is_named(name, wanted));
    let exact = names.iter().find(|name| *name == wanted);
    // Overloads need their parameters.
    exact.or_else(|| similar.next().filter(|_| similar.next().is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_selected_by_names_of_the_source() {
        let names = ["_Z3addPfi", "_Z3mulPfi", "_Z3mulPdi", "plain"].map(String::from);
        assert_eq!(demangled("_Z3addPfi"), "add(float*, int)");
        assert_eq!(select(&names, "add"), Some(&names[0]));
        assert_eq!(select(&names, "_Z3mulPdi"), Some(&names[2]));
        assert_eq!(select(&names, "mul"), None, "there are two");
        assert_eq!(select(&names, "mul(float*, int)"), Some(&names[1]));
        assert_eq!(select(&names, "plain"), Some(&names[3]));
        assert_eq!(select(&names, "missing"), None);
    }

    #[test]
    fn names_may_lack_namespaces_and_template_arguments() {
        // ns::add(float*); void ns::scale<float, 4>(float*, float); (anonymous namespace)::local(int*)
        for (symbol, names, others) in [
            ("_ZN2ns3addEPf", &["ns::add", "add", "ns::add(float*)"][..], &["ns", "dd", "s::add"][..]),
            (
                "_ZN2ns5scaleIfLi4EEEvPT_S1_",
                &["scale", "ns::scale", "ns::scale<float, 4>", "scale<float, 4>"],
                &["void", "scale<float>", "cale"],
            ),
            ("_ZN12_GLOBAL__N_15localEPi", &["local", "(anonymous namespace)::local"], &["anonymous"]),
        ] {
            assert!(names.iter().all(|name| is_named(symbol, name)), "{}", demangled(symbol));
            assert!(!others.iter().any(|name| is_named(symbol, name)), "{}", demangled(symbol));
        }
    }
}
