//! The header: arguments and launch configuration, between two `---` lines.

use super::Options;
use super::constant::{Constants, Cursor, TextError};
use super::image::{self, Resource};
use super::lex::{self, Token};
use isa_spec::diag;
use std::collections::HashMap;
use std::ops::Range;
use wavesim_array::fill::{self, Random};
use wavesim_array::{self as array, Array, ArrayError, DType, Num, file, picture};
use wavesim_isa::arch::Arch;

/// NumPy's limit.
const MAX_DIMENSIONS: usize = 64;

/// The contents of the header.
#[derive(Debug, Clone)]
pub struct Header {
    /// The arguments in source order.
    pub args: Vec<Arg>,
    /// Work-items per workgroup, and the number of dimensions given.
    pub local: ([u32; 3], usize),
    /// Number of workgroups, and the number of dimensions given.
    pub global: ([u32; 3], usize),
    /// Workgroups of a cluster per dimension; all 1 without clusters.
    pub cluster: [u32; 3],
    /// The wave size, if specified.
    pub wave: Option<u32>,
    /// The architecture, if specified.
    pub arch: Option<Arch>,
    /// How kernels receive IDs and arguments.
    pub abi: Abi,
    /// Bytes of LDS per workgroup; the default depends on the instructions.
    pub lds: Option<u32>,
    /// Bytes of scratch per lane; the default depends on the instructions.
    pub scratch: Option<u32>,
    /// The constants of the command line and of `const` lines.
    pub constants: Constants,
}

/// The initial register state of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Abi {
    /// IDs in s0, s1, s2 and v0, v1, v2; the address of the argument table in `s[3:4]`.
    #[default]
    Text,
    /// The convention of compiled kernels (LLVM AMDGPUUsage, *Initial Kernel Execution State*).
    Hsa,
}

/// A kernel argument with its initial contents.
#[derive(Debug, Clone, PartialEq)]
pub struct Arg {
    /// Unique in the header; arguments called `out_…` are printed after the run.
    pub name: String,
    /// Type, shape and initial contents.
    pub array: Array,
    /// An image, whose texels are the array, or a sampler.
    pub resource: Option<Resource>,
    /// Line number, from 1.
    pub line: u32,
}

impl Arg {
    /// Returns whether the argument is printed after the run.
    pub fn is_output(&self) -> bool {
        self.name.starts_with("out_")
    }
}

/// The keys of the header.
pub const KEYS: [&str; 9] = ["local", "global", "cluster", "wave", "arch", "abi", "lds", "scratch", "const"];
/// The functions that initialise arguments.
pub const FUNCTIONS: [&str; 6] = ["repeat", "arange", "rand", "file", "npy", "png"];

/// Parses the header line by line; parsing continues after errors.
pub struct HeaderParser<'a> {
    options: &'a Options,
    random: Random,
    header: Header,
    /// The keys given so far, with their lines.
    seen: HashMap<String, u32>,
    /// Total size of the arguments so far in bytes.
    used: u64,
}

impl<'a> HeaderParser<'a> {
    /// Creates a parser with the default values and the constants of the command line.
    pub fn new(options: &'a Options) -> HeaderParser<'a> {
        let header = Header {
            args: Vec::new(),
            local: ([1; 3], 1),
            global: ([1; 3], 1),
            cluster: [1; 3],
            wave: None,
            arch: None,
            abi: Abi::Text,
            lds: None,
            scratch: None,
            constants: options.constants.clone(),
        };
        HeaderParser { options, random: Random::new(options.seed), header, seen: HashMap::new(), used: 0 }
    }

    /// Returns the header.
    pub fn finish(self) -> Header {
        self.header
    }

    /// Parses one line, which starts at byte `base` of the file.
    pub fn line(&mut self, text: &str, base: usize, number: u32) -> Result<(), TextError> {
        let tokens = lex::tokens(text, base);
        let end = tokens.last().map_or(base, |t| t.at.end);
        let mut cursor = Cursor::new(&tokens, end);
        if cursor.peek().is_none() {
            return Ok(());
        }
        let (name, at) = cursor.name("the name of an argument or of a launch key")?;
        match cursor.peek() {
            Some(Token::Punct(':')) => {
                cursor.bump();
                self.check_unique(name, at, number)?;
                self.argument(name, number, &mut cursor)
            }
            Some(Token::Punct('=')) => {
                if name != "const" && KEYS.contains(&name) {
                    self.check_unique(name, at.clone(), number)?;
                }
                cursor.bump();
                self.key(name, at, &mut cursor)
            }
            Some(Token::Name(constant)) if name == "const" => {
                cursor.bump();
                cursor.expect('=', "after the constant's name")?;
                let value = cursor.constant(&self.header.constants)?;
                cursor.finish()?;
                self.header.constants.set_default(constant, value);
                Ok(())
            }
            _ => Err(TextError::new(at, format!("`{name}` is neither `name: type` nor `key = value`"))
                .help("an argument is `arg_x: f32[16] = arange(16)`, a launch key `local = 32, 1, 1`")),
        }
    }

    fn check_unique(&mut self, name: &str, range: Range<usize>, line: u32) -> Result<(), TextError> {
        if let Some(first) = self.seen.get(name) {
            return Err(TextError::new(range, format!("`{name}` is already given in line {first}")));
        }
        self.seen.insert(name.to_string(), line);
        Ok(())
    }

    fn key(&mut self, name: &str, range: Range<usize>, cursor: &mut Cursor<'_>) -> Result<(), TextError> {
        match name {
            "local" => self.header.local = self.dimensions(cursor, "a workgroup's size")?,
            "global" => self.header.global = self.dimensions(cursor, "the number of workgroups")?,
            "cluster" => self.header.cluster = self.dimensions(cursor, "the size of a cluster")?.0,
            "wave" => {
                let span = cursor.rest_span();
                self.header.wave = match cursor.integer(&self.header.constants, 1, "a wave's size")? {
                    32 => Some(32),
                    64 => Some(64),
                    n => return Err(TextError::new(span, format!("a wave has 32 or 64 lanes, not {n}"))),
                };
            }
            "lds" => self.header.lds = Some(self.bytes(cursor, "the size of LDS")?),
            "scratch" => self.header.scratch = Some(self.bytes(cursor, "the size of scratch")?),
            "arch" => {
                let span = cursor.rest_span();
                let (mut text, _) = cursor.name("an architecture")?;
                // `rdna3.5`: the lexer ends a name at the dot.
                if matches!(cursor.peek(), Some(Token::Number(Num::Float(v))) if *v == 0.5) {
                    cursor.bump();
                    text = "rdna3.5";
                }
                let arch = Arch::from_name(text).or(Arch::from_mcpu(text));
                self.header.arch = Some(arch.ok_or_else(|| {
                    let known = Arch::AMD.map(Arch::name).join(", ");
                    TextError::new(span, format!("`{text}` is not an architecture"))
                        .help(format!("one of {known}, or a processor such as gfx1100"))
                })?);
            }
            "abi" => {
                let (text, span) = cursor.name("`text` or `hsa`")?;
                self.header.abi = match text {
                    "text" => Abi::Text,
                    "hsa" => Abi::Hsa,
                    other => {
                        return Err(TextError::new(
                            span,
                            format!("the ABIs are `text` and `hsa`, not `{other}`"),
                        ));
                    }
                };
            }
            other => {
                let error = TextError::new(range, format!("`{other}` is not a launch key"));
                return Err(match diag::nearest(other, KEYS) {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None => {
                        error.help(format!("the keys are {}; an argument is `{other}: f32`", KEYS.join(", ")))
                    }
                });
            }
        }
        cursor.finish()
    }

    fn bytes(&self, cursor: &mut Cursor<'_>, what: &str) -> Result<u32, TextError> {
        let span = cursor.rest_span();
        let bytes = cursor.integer(&self.header.constants, 0, what)?;
        u32::try_from(bytes).map_err(|_| TextError::new(span, format!("{what} is at most 4 GiB")))
    }

    /// Parses `x[, y[, z]]`, with or without parentheses.
    fn dimensions(&self, cursor: &mut Cursor<'_>, what: &str) -> Result<([u32; 3], usize), TextError> {
        let span = cursor.rest_span();
        let parenthesised = cursor.peek() == Some(&Token::Punct('(')) && cursor.closes_at_end();
        if parenthesised {
            cursor.bump();
        }
        let mut out = [1; 3];
        let mut count = 0;
        loop {
            let at = cursor.rest_span();
            let value = cursor.integer(&self.header.constants, 1, what)?;
            let value = u32::try_from(value)
                .map_err(|_| TextError::new(at, format!("{what} is at most 4294967295")))?;
            let Some(slot) = out.get_mut(count) else {
                return Err(TextError::new(span, "there are three dimensions: x, y, z"));
            };
            *slot = value;
            count += 1;
            if !cursor.eat(',') {
                break;
            }
        }
        if parenthesised {
            cursor.expect(')', "after the dimensions")?;
        }
        Ok((out, count))
    }

    fn argument(&mut self, name: &str, line: u32, cursor: &mut Cursor<'_>) -> Result<(), TextError> {
        let start = cursor.span().start;
        let (type_name, at) = cursor.name("a type")?;
        if type_name == "sampler" {
            let resource = Some(Resource::Sampler(image::sampler(cursor)?));
            cursor.finish()?;
            let array = Array { dtype: DType::U32, shape: vec![0], bytes: Vec::new() };
            self.header.args.push(Arg { name: name.to_string(), array, resource, line });
            return Ok(());
        }
        if image::is_image(type_name) {
            return self.image(name, type_name, at, line, cursor);
        }
        let dtype = DType::from_name(type_name).ok_or_else(|| {
            let known = DType::ALL.map(DType::name).into_iter().chain(image::types());
            let near = DType::meant(type_name).map(DType::name).or_else(|| diag::nearest(type_name, known));
            let help = near.map_or(format!("the types are {}", DType::names()), |near| {
                format!("did you mean `{near}`?")
            });
            TextError::new(at, format!("unknown type `{type_name}`")).help(help)
        })?;
        let mut shape = Vec::new();
        if cursor.eat('[') {
            loop {
                let span = cursor.rest_span();
                shape.push(cursor.integer(&self.header.constants, 1, "a dimension")?);
                if shape.len() > MAX_DIMENSIONS {
                    return Err(TextError::new(
                        span,
                        format!("a shape has at most {MAX_DIMENSIONS} dimensions"),
                    ));
                }
                if !cursor.eat(',') {
                    break;
                }
            }
            cursor.expect(']', "after the shape")?;
        }
        let type_at = start..cursor.span().start.max(start);
        self.reserve(name, dtype, &shape, type_at)?;
        let array = if cursor.eat('=') {
            self.initial(dtype, &shape, cursor)?
        } else {
            Array::zeros(dtype, &shape).map_err(|e| TextError::new(cursor.rest_span(), e.to_string()))?
        };
        cursor.finish()?;
        self.header.args.push(Arg { name: name.to_string(), array, resource: None, line });
        Ok(())
    }

    /// Parses an image, after the name of its type.
    fn image(
        &mut self,
        name: &str,
        type_name: &str,
        range: Range<usize>,
        line: u32,
        cursor: &mut Cursor<'_>,
    ) -> Result<(), TextError> {
        let image = image::image(type_name, cursor, &self.header.constants)?;
        let span = range.start..cursor.span().start.max(range.start);
        let failed = |message: String| TextError::new(span.clone(), message);
        let (dtype, shape) = image::array_type(&image).map_err(failed)?;
        self.reserve(name, dtype, &shape, span.clone())?;
        let is_picture = cursor.eat('=')
            && {
                matches!((cursor.peek(), cursor.peek_second()), (Some(Token::Name(function)), Some(Token::Punct('('))) if function == "png")
            };
        let array = if is_picture {
            cursor.bump();
            cursor.bump();
            let range = cursor.span();
            let path = self.path(cursor)?;
            cursor.expect(')', "after the file's name")?;
            let failed = |message: String| TextError::new(range.clone(), message);
            let picture = picture::read(&path, &self.options.files).map_err(|e| failed(e.to_string()))?;
            image::from_picture(&image, &picture).map_err(failed)?
        } else if cursor.peek().is_some() {
            self.initial(dtype, &shape, cursor)?
        } else {
            Array::zeros(dtype, &shape).map_err(|e| TextError::new(cursor.rest_span(), e.to_string()))?
        };
        cursor.finish()?;
        let resource = Some(Resource::Image(image));
        self.header.args.push(Arg { name: name.to_string(), array, resource, line });
        Ok(())
    }

    /// Reports an array that does not fit global memory, before it is built.
    fn reserve(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[u64],
        range: Range<usize>,
    ) -> Result<(), TextError> {
        let size =
            array::size_bytes(dtype, shape).map_err(|e| TextError::new(range.clone(), e.to_string()))? as u64;
        let left = self.options.global_bytes.saturating_sub(self.used);
        if size > left {
            let message = format!(
                "{name} needs {size} bytes but {left} of {} bytes of global memory are free",
                self.options.global_bytes
            );
            return Err(TextError::new(range, message).help("--global-memsize MB gives more"));
        }
        self.used += size;
        Ok(())
    }

    fn initial(&mut self, dtype: DType, shape: &[u64], cursor: &mut Cursor<'_>) -> Result<Array, TextError> {
        let at = cursor.rest_span();
        let failed = |e: ArrayError| {
            let error = TextError::new(at.clone(), e.to_string());
            match e {
                ArrayError::Count { what, given, .. } if what == "the list" && given == "1" => {
                    error.help("repeat(value) gives every element the same value")
                }
                _ => error,
            }
        };
        if let (Some(Token::Name(function)), Some(Token::Punct('('))) = (cursor.peek(), cursor.peek_second())
        {
            let span = cursor.span();
            cursor.bump();
            cursor.bump();
            return self.call(function, span, dtype, shape, cursor)?.map_err(failed);
        }
        let mut values = Vec::new();
        loop {
            values.push(cursor.constant(&self.header.constants)?);
            if !cursor.eat(',') {
                break;
            }
        }
        fill::list(dtype, shape, &values).map_err(failed)
    }

    /// Parses the arguments of a built-in function, after the opening parenthesis, and builds the array.
    fn call(
        &mut self,
        function: &str,
        span: Range<usize>,
        dtype: DType,
        shape: &[u64],
        cursor: &mut Cursor<'_>,
    ) -> Result<Result<Array, ArrayError>, TextError> {
        match function {
            "file" | "npy" => {
                let path = self.path(cursor)?;
                if function == "npy" {
                    cursor.expect(')', "after the file's name")?;
                    return Ok(file::npy_as(&path, &self.options.files, dtype, shape));
                }
                cursor.expect(',', "before the file's element type")?;
                let (stored, at) = match cursor.peek() {
                    // The type may also be quoted.
                    Some(Token::Text(text)) => {
                        let at = cursor.span();
                        cursor.bump();
                        (text.as_str(), at)
                    }
                    _ => cursor.name("the file's element type")?,
                };
                let stored = DType::from_name(stored).ok_or_else(|| {
                    TextError::new(at, format!("unknown type `{stored}`")).help(DType::names())
                })?;
                cursor.expect(')', "after the file's element type")?;
                Ok(file::raw(&path, &self.options.files, stored, dtype, shape))
            }
            "repeat" | "arange" | "rand" => {
                let values = self.values(cursor)?;
                Ok(match (function, &values[..]) {
                    ("repeat", &[value]) => fill::repeat(dtype, shape, value),
                    ("rand", []) => fill::rand(dtype, shape, &mut self.random),
                    ("arange", &[end]) => fill::arange(dtype, shape, Num::Int(0), end, Num::Int(1)),
                    ("arange", &[start, end]) => fill::arange(dtype, shape, start, end, Num::Int(1)),
                    ("arange", &[start, end, step]) => fill::arange(dtype, shape, start, end, step),
                    _ => {
                        let takes = match function {
                            "repeat" => "repeat(value)",
                            "rand" => "rand()",
                            _ => "arange(n) or arange(start, end[, step])",
                        };
                        return Err(TextError::new(
                            span,
                            format!("{takes}: {} values are given", values.len()),
                        ));
                    }
                })
            }
            "png" => {
                Err(TextError::new(span, "`png` is the contents of an image: image2d<rgba8unorm>[64, 64]"))
            }
            other => {
                let help = diag::nearest(other, FUNCTIONS)
                    .map_or(format!("there are {}", FUNCTIONS.join(", ")), |near| {
                        format!("did you mean `{near}`?")
                    });
                Err(TextError::new(span, format!("unknown function `{other}`")).help(help))
            }
        }
    }

    /// Parses values up to the closing parenthesis.
    fn values(&self, cursor: &mut Cursor<'_>) -> Result<Vec<Num>, TextError> {
        let mut values = Vec::new();
        if cursor.eat(')') {
            return Ok(values);
        }
        loop {
            values.push(cursor.constant(&self.header.constants)?);
            if !cursor.eat(',') {
                break;
            }
        }
        cursor.expect(')', "after the values")?;
        Ok(values)
    }

    /// Parses a path, which is relative to the input file.
    fn path(&self, cursor: &mut Cursor<'_>) -> Result<std::path::PathBuf, TextError> {
        match cursor.peek() {
            Some(Token::Text(path)) => {
                cursor.bump();
                Ok(self.options.folder.join(path))
            }
            Some(Token::Bad(text)) => Err(TextError::new(cursor.span(), text.clone())),
            _ => Err(TextError::new(cursor.span(), "a file's name in quotes is missing")),
        }
    }
}
