//! The parameters of a kernel as its source has them: names and types, from the metadata or the debug information.

use super::debug_info::{DebugInfo, Type, TypeKind, TypeRef};
use super::metadata::Arg;
use std::fmt;
use wavesim_array::DType;

/// A parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The name.
    pub name: Option<String>,
    /// The type, as C spells it: `float*`.
    pub type_name: Option<String>,
    /// The type of its elements: that of `float`, `float4` and `float*` is f32. `None` for other types, such as
    /// structures.
    pub element: Option<DType>,
    /// Size in the kernarg segment in bytes.
    pub size: u32,
    /// Whether it points to memory that the host can access.
    pub pointer: bool,
    /// Whether it points to LDS, whose size the launch specifies.
    pub local: bool,
}

/// Returns the parameters for explicit arguments of the metadata. Compilers leave names and types out of it: clang those of
/// HIP, and those of OpenCL without `-cl-kernel-arg-info`. Then they are those of the debug information of the function at
/// `entry`.
pub(super) fn of_kernel(args: &[&Arg], debug: &DebugInfo, entry: u64) -> Vec<Parameter> {
    let known = args.iter().all(|arg| arg.name.is_some() && arg.type_name.is_some());
    let mut declared = if known { Vec::new() } else { debug.parameters(entry) };
    if declared.len() != args.len() {
        declared.clear();
    }
    let parameter = |(index, arg): (usize, &&Arg)| {
        let mut found = Parameter::of(arg);
        if let Some(variable) = declared.get(index) {
            found.name.get_or_insert_with(|| variable.name.clone());
            if let Some(of) = variable.kind.and_then(|kind| debug.type_of(kind)) {
                found.complete(&of, |target| debug.type_of(target));
            }
        }
        found
    };
    args.iter().enumerate().map(parameter).collect()
}

impl Parameter {
    fn of(arg: &Arg) -> Parameter {
        // Clang's suffix of pointers that it passes as addresses of global memory.
        let name = arg.name.as_deref().map(|name| name.trim_end_matches(".coerce").to_string());
        Parameter {
            name,
            type_name: arg.type_name.clone(),
            element: arg.type_name.as_deref().and_then(element_type),
            size: arg.size,
            pointer: arg.kind == "global_buffer",
            local: arg.is_local(),
        }
    }

    /// Adds the type of the debug information, if the metadata has none.
    fn complete(&mut self, of: &Type, resolve: impl Fn(TypeRef) -> Option<Type>) {
        if self.type_name.is_some() {
            return;
        }
        self.type_name = Some(of.name.replace(" *", "*").replace(" &", "&"));
        let pointee = match of.kind {
            TypeKind::Pointer { target, .. } => target.and_then(resolve),
            _ => Some(of.clone()),
        };
        self.element = pointee.and_then(|of| match of.kind {
            // A vector.
            TypeKind::Array { element, .. } => element.dtype(),
            _ => of.dtype(),
        });
    }

    /// Returns the type of the number that is passed by value; `None` for pointers, vectors and structures.
    pub fn number(&self) -> Option<DType> {
        self.element.filter(|dtype| !self.pointer && !self.local && dtype.size() == self.size as usize)
    }

    /// Returns a warning about an array with these elements, if they are not those of the parameter. Kernels may
    /// reinterpret memory, and signs make no difference in memory, so that this is no error.
    pub fn mismatch(&self, given: DType) -> Option<String> {
        let expected = self.element.filter(|_| self.pointer)?;
        let similar = expected.size() == given.size() && expected.is_float() == given.is_float();
        (!similar).then(|| {
            format!(
                "{}: elements of {} for `{}`, whose elements are {}",
                self.name.as_deref().unwrap_or("an argument"),
                given.name(),
                self.type_name.as_deref().unwrap_or_default(),
                expected.name()
            )
        })
    }

    /// Returns what the parameter is, for messages: its type, or what is known of it.
    fn shown_type(&self) -> String {
        self.type_name.clone().unwrap_or_else(|| match self {
            Parameter { local: true, .. } => "a pointer to LDS".to_string(),
            Parameter { pointer: true, .. } => "a pointer".to_string(),
            _ => format!("{} bytes by value", self.size),
        })
    }

    /// Returns a possible value of `--arg`, with the name, which `index` replaces if the file has none.
    pub fn suggestion(&self, index: usize) -> String {
        let name = self.name.clone().unwrap_or_else(|| format!("arg{index}"));
        format!("{name}: {}", self.example())
    }

    /// Returns a possible value of `--arg`, without the name.
    fn example(&self) -> String {
        match (self.local, self.pointer, self.element) {
            (true, ..) => "local:256".to_string(),
            (_, true, element) => format!("{}[64]", element.unwrap_or(DType::F32).name()),
            (_, _, Some(element)) if element.size() == self.size as usize => format!("{}=1", element.name()),
            _ => match self.size {
                1 => "u8=1".to_string(),
                2 => "u16=1".to_string(),
                4 => "u32=1".to_string(),
                8 => "u64=1".to_string(),
                size => format!("u8[{size}]"),
            },
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown_type())?;
        self.name.iter().try_for_each(|name| write!(f, " {name}"))
    }
}

/// Returns a list of parameters for a message: names, types, and a line with arguments to copy.
pub(super) fn listing(parameters: &[Parameter]) -> String {
    if parameters.is_empty() {
        return String::new();
    }
    let row = |(index, p): (usize, &Parameter)| {
        let name = p.name.clone().unwrap_or_else(|| format!("arg{index}"));
        (name, p.shown_type(), p.suggestion(index))
    };
    let rows: Vec<_> = parameters.iter().enumerate().map(row).collect();
    let width =
        |text: fn(&(String, String, String)) -> &str| rows.iter().map(|r| text(r).len()).max().unwrap_or(0);
    let (names, types) = (width(|r| &r.0), width(|r| &r.1));
    let mut out = String::from(":\n");
    for (name, type_name, example) in &rows {
        out += &format!("  {name:names$}  {type_name:types$}  such as {example}\n");
    }
    out += "on the command line:";
    rows.iter().for_each(|(_, _, example)| out += &format!(" --arg '{example}'"));
    out
}

/// Returns the type of the elements of a type in C, OpenCL C or HIP.
fn element_type(name: &str) -> Option<DType> {
    let name = name.trim_end_matches(['*', ' ', '&']);
    let name = name.strip_prefix("const ").unwrap_or(name).trim();
    // Vectors of OpenCL: `float4`.
    DType::of_c(name).or_else(|| DType::of_c(name.trim_end_matches(|c: char| c.is_ascii_digit())))
}
