//! Names of kernels: symbols, and what the source calls them.

/// Returns the name of a kernel in its source language: `add(float*, int)` for `_Z3addPfi`. Names that are not
/// mangled stay as they are.
pub fn demangled(name: &str) -> String {
    let symbol = cpp_demangle::Symbol::new(name).ok();
    symbol.and_then(|symbol| symbol.demangle().ok()).unwrap_or_else(|| name.to_string())
}

/// Selects a kernel by its symbol, or by its name in the source language, with or without parameters.
pub fn select<'a>(names: &'a [String], wanted: &str) -> Option<&'a String> {
    let named = |name: &&String| {
        let full = demangled(name);
        full == wanted || full.split('(').next().unwrap_or_default() == wanted
    };
    let mut similar = names.iter().filter(named);
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
}
