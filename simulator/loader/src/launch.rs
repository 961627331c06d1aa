//! Launch descriptions (`wavesim-launch-1`): arguments, and expected outputs to compare with.

use super::abi;
use super::code_object::{self, Kernel, LoadError, TargetRequest};
use super::compare::{self, Mismatch, Tolerance};
use super::prepared::Prepared;
use super::request::{ArgumentValue, Request};
use anyhow::{Context as _, Result, anyhow, bail};
use isa_spec::diag::{self, nearest};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wavesim_array::{Array, ArrayError, DType, Num, file, fill, picture};
use wavesim_files::{self as files, Files};
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::image::Sampler;
use wavesim_machine::memory::Memory;
use wavesim_text::image::{self as text_image, InMemory};

/// The contents of a launch description, with the keys of `per_target` merged in.
#[derive(Debug, Deserialize)]
pub struct Launch {
    /// `wavesim-launch-1`.
    pub schema: String,
    /// The kernel's symbol, without `.kd`.
    pub kernel: String,
    /// Number of workgroups per dimension.
    pub grid: [u32; 3],
    /// Work-items per workgroup in each dimension.
    pub block: [u32; 3],
    /// Workgroups of a cluster per dimension; without them, those that the kernel was compiled for.
    #[serde(default)]
    pub cluster: Option<[u32; 3]>,
    /// Dynamic LDS per workgroup in bytes, in addition to the kernel's static LDS.
    #[serde(default)]
    pub dynamic_lds: u32,
    /// In the order of the kernel's parameters.
    pub args: Vec<Arg>,
    /// Outputs to compare after the run.
    #[serde(default)]
    pub expected: Vec<Expected>,
    /// Code object paths relative to the launch file, by target: `gfx1100`, `gfx1100.w64`.
    pub code: BTreeMap<String, String>,
    /// Overrides of other keys, by target.
    #[serde(default)]
    pub per_target: BTreeMap<String, BTreeMap<String, Box<RawValue>>>,
}

/// An argument.
#[derive(Debug, Deserialize)]
#[serde(try_from = "ArgFields")]
pub struct Arg {
    /// The name used in messages and by [`Expected::arg`].
    pub name: String,
    /// The value, tagged by the key `kind`.
    pub kind: ArgumentKind,
}

/// The keys of an argument of any kind. An enum that `kind` selects would get its numbers rounded to f64.
#[derive(Deserialize)]
struct ArgFields {
    name: String,
    kind: KindName,
    dtype: Option<String>,
    shape: Option<Vec<u64>>,
    init: Option<Init>,
    value: Option<Number>,
    bytes: Option<String>,
    size: Option<Size>,
    #[serde(rename = "type")]
    image: Option<String>,
    format: Option<String>,
    levels: Option<u32>,
    sw_mode: Option<u32>,
    samples: Option<u32>,
    properties: Option<Vec<String>>,
}

/// A number of bytes, or the sizes of an image.
#[derive(Deserialize)]
#[serde(untagged)]
enum Size {
    Bytes(u32),
    Texels(Vec<u32>),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindName {
    Buffer,
    Scalar,
    Struct,
    Local,
    Image,
    Sampler,
}

impl TryFrom<ArgFields> for Arg {
    type Error = String;

    fn try_from(f: ArgFields) -> Result<Arg, String> {
        fn required<T>(name: &str, field: Option<T>) -> Result<T, String> {
            field.ok_or_else(|| format!("missing field `{name}`"))
        }
        let kind = match f.kind {
            KindName::Buffer => ArgumentKind::Buffer {
                dtype: required("dtype", f.dtype)?,
                shape: required("shape", f.shape)?,
                init: required("init", f.init)?,
            },
            KindName::Scalar => ArgumentKind::Scalar {
                dtype: required("dtype", f.dtype)?,
                value: required("value", f.value)?,
            },
            KindName::Struct => ArgumentKind::Struct { bytes: required("bytes", f.bytes)? },
            KindName::Local => match required("size", f.size)? {
                Size::Bytes(size) => ArgumentKind::Local { size },
                Size::Texels(_) => return Err("`size` of LDS is a number of bytes".to_string()),
            },
            KindName::Image => {
                let Size::Texels(size) = required("size", f.size)? else {
                    return Err("`size` of an image is a list: width, height …".to_string());
                };
                ArgumentKind::Image {
                    image: required("type", f.image)?,
                    format: required("format", f.format)?,
                    size,
                    memory: InMemory {
                        levels: f.levels.unwrap_or(1),
                        sw_mode: f.sw_mode.unwrap_or(0),
                        samples: f.samples.unwrap_or(1),
                    },
                    init: required("init", f.init)?,
                }
            }
            KindName::Sampler => ArgumentKind::Sampler { properties: f.properties.unwrap_or_default() },
        };
        Ok(Arg { name: f.name, kind })
    }
}

/// A number, exact as written; NaN and infinities are strings.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Box<RawValue>")]
pub struct Number(pub Num);

impl TryFrom<Box<RawValue>> for Number {
    type Error = String;

    fn try_from(raw: Box<RawValue>) -> Result<Number, String> {
        let text = raw.get();
        let special = |text: &str| matches!(text, "nan" | "inf" | "-inf").then(|| text.parse().ok())?;
        let number = match text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
            Some(text) => special(text).map(Num::Float),
            None if text == "-0" => Some(Num::Float(-0.0)),
            None => text
                .parse()
                .map(Num::Int)
                .ok()
                .or_else(|| isa_spec::arith::decimal::Decimal::parse(text).map(Num::from)),
        };
        number.map(Number).ok_or_else(|| format!("{text} is not a number"))
    }
}

/// The value of an argument.
#[derive(Debug)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum ArgumentKind {
    /// An array in global memory; the kernel gets its address.
    Buffer { dtype: String, shape: Vec<u64>, init: Init },
    /// A number passed by value, in the bytes of its type.
    Scalar { dtype: String, value: Number },
    /// A structure passed by value, given as hexadecimal bytes.
    Struct { bytes: String },
    /// An allocation of LDS; the kernel gets its offset.
    Local { size: u32 },
    /// An image in global memory; the kernel gets the address of its descriptor.
    Image { image: String, format: String, size: Vec<u32>, memory: InMemory, init: Init },
    /// A sampler; the kernel gets the address of its descriptor.
    Sampler { properties: Vec<String> },
}

/// The initial contents of a buffer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Init {
    /// The array of this NPY file, whose path is relative to the launch file.
    File(String),
    /// The pixels of this PNG file, for images.
    Png(String),
    /// Zeros; the value of the flag is ignored.
    Zeros(bool),
    /// The same number in every element.
    Fill(Number),
    /// `start + i * step` in element `i`.
    Arange { start: Number, step: Number },
}

/// An expected output.
#[derive(Debug, Deserialize)]
pub struct Expected {
    /// Name of a buffer argument.
    pub arg: String,
    /// NPY file with the expected values, relative to the launch file.
    pub file: String,
    /// [`Tolerance::rtol`].
    pub rtol: f64,
    /// [`Tolerance::atol`].
    pub atol: f64,
}

/// A launch file that has been read, with its kernel ready to run.
pub struct LoadedLaunch {
    /// The contents of the file.
    pub launch: Launch,
    /// The folder that relative paths refer to.
    folder: PathBuf,
    files: Files,
    /// The kernel, with its arguments in memory.
    pub prepared: Prepared,
}

/// Selects one of a launch file's code objects.
#[derive(Debug, Clone, Default)]
pub struct TargetSelection {
    /// A key of `code`.
    pub target: Option<String>,
    /// Any target of this architecture.
    pub arch: Option<Arch>,
    /// The wave size, 32 or 64; 32 by default.
    pub wave: Option<u32>,
}

impl TargetSelection {
    /// Selects the code object with this key.
    pub fn target(name: &str) -> TargetSelection {
        TargetSelection { target: Some(name.to_string()), ..TargetSelection::default() }
    }

    /// Returns the first matching key.
    fn select<'k>(&self, keys: impl Iterator<Item = &'k String> + Clone) -> Result<&'k str> {
        let fits = |key: &str| {
            let (processor, wave) = key.split_once('.').unwrap_or((key, "w32"));
            let arch = Arch::from_mcpu(processor);
            match &self.target {
                Some(target) => key == target,
                // By default, a target that can be simulated.
                None => {
                    arch.is_some()
                        && self.arch.is_none_or(|a| arch == Some(a))
                        && wave == if self.wave == Some(64) { "w64" } else { "w32" }
                }
            }
        };
        keys.clone().find(|key| fits(key)).map(String::as_str).ok_or_else(|| {
            let all: Vec<&str> = keys.map(String::as_str).collect();
            let request = match (&self.target, self.arch) {
                (Some(target), _) => target.as_str(),
                (None, Some(arch)) => arch.name(),
                (None, None) => "any target of this simulator",
            };
            anyhow!("no code for {request}; there is {}", all.join(", "))
        })
    }
}

impl LoadedLaunch {
    /// Compares the buffers in memory with the expected outputs and returns those that differ.
    pub fn mismatches(&self) -> Result<Vec<Mismatch>> {
        let mut mismatches = Vec::new();
        for e in &self.launch.expected {
            let buffer =
                self.prepared.buffer(&e.arg).ok_or_else(|| anyhow!("expected: no buffer `{}`", e.arg))?;
            let path = self.folder.join(&e.file);
            let expected = file::npy_as(&path, &self.files, buffer.dtype, &buffer.shape)?;
            let actual = buffer.read(&self.prepared.memory)?;
            let tolerance = Tolerance { rtol: e.rtol, atol: e.atol };
            mismatches.extend(compare::compare(&e.arg, &actual, &expected, tolerance));
        }
        Ok(mismatches)
    }
}

/// Maximum size of a description in bytes; data is in separate files.
const MAX_DESCRIPTION: usize = 4 << 20;

/// Reads `launch.json`, loads the target's code object and fills a memory of `global_bytes`, with `guard`
/// bytes between allocations. `files` restricts the files that the description may name.
pub fn load(
    path: &Path,
    wanted: &TargetSelection,
    files: &Files,
    global_bytes: u64,
    guard: u64,
) -> Result<LoadedLaunch> {
    let text = files::read_text(path)?;
    if text.len() > MAX_DESCRIPTION {
        bail!("{}: larger than {} MiB", path.display(), MAX_DESCRIPTION >> 20);
    }
    let (launch, target) = parse(&text, wanted).with_context(|| format!("in {}", path.display()))?;
    if launch.grid.contains(&0) {
        let [x, y, z] = launch.grid;
        bail!("in {}: the grid {x},{y},{z} has no workgroups", path.display());
    }
    let folder = path.parent().unwrap_or(Path::new(".")).to_path_buf();
    let code = &launch.code[&target];
    let object = files.read(&folder.join(code), files::MAX_FILE).with_context(|| format!("code {target}"))?;
    let kernel = kernel(&object, &target, &launch.kernel).with_context(|| code.clone())?;
    let request = request(&launch, &folder, files, global_bytes)?;
    let memory = Memory::with_guard(global_bytes, guard)?;
    let prepared = request.prepare_with(&kernel, memory, launch.cluster, &abi::Services::default())?;
    if let Some(e) = launch.expected.iter().find(|e| prepared.buffer(&e.arg).is_none()) {
        let names = prepared.buffers.iter().map(|b| b.name.as_str());
        let hint = nearest(&e.arg, names).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
        bail!("in {}: expected: no buffer is called `{}`{hint}", path.display(), e.arg);
    }
    Ok(LoadedLaunch { launch, folder, files: files.clone(), prepared })
}

/// Loads the kernel from the file for a key of `code`.
fn kernel(file: &[u8], target: &str, name: &str) -> Result<Kernel, LoadError> {
    // `gfx1100.w64` is a build for gfx1100.
    let processor = target.split('.').next().unwrap_or_default();
    let request = TargetRequest { processor: Some(processor.to_string()), arch: None };
    let kernel = code_object::load(&code_object::open(file, &request)?, name)?;
    match Arch::from_mcpu(processor) {
        Some(arch) if arch != kernel.arch => {
            Err(LoadError::Target { object: kernel.arch.name(), requested: target.to_string() })
        }
        _ => Ok(kernel),
    }
}

/// Parses a description and selects a target. Returns the description for that target, and the target's key
/// in `code`.
pub fn parse(text: &str, wanted: &TargetSelection) -> Result<(Launch, String)> {
    let launch: Launch = serde_json::from_str(text)?;
    check_keys(serde_json::from_str::<BTreeMap<String, IgnoredAny>>(text)?.keys())?;
    if launch.schema != "wavesim-launch-1" {
        bail!("schema `{}` is not `wavesim-launch-1`", launch.schema);
    }
    let processor_of = |key: &String| key.split('.').next().unwrap_or_default().to_string();
    for key in launch.per_target.keys() {
        if !launch.code.keys().any(|code| code == key || processor_of(code) == *key) {
            bail!("per_target {key}: `code` has no entry for it");
        }
    }
    let target = wanted.select(launch.code.keys())?.to_string();
    // `gfx1100.w64` is a build for gfx1100.
    let processor = target.split('.').next().unwrap_or_default();
    let Some(own) = launch.per_target.get(&target).or_else(|| launch.per_target.get(processor)) else {
        return Ok((launch, target));
    };
    check_keys(own.keys()).with_context(|| format!("per_target {target}"))?;
    let mut whole: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
    for (key, value) in own {
        whole.insert(key.clone(), value);
    }
    let launch: Launch = serde_json::from_str(&serde_json::to_string(&whole)?)
        .with_context(|| format!("per_target {target}"))?;
    if !launch.code.contains_key(&target) {
        bail!("per_target {target}: `code` has no entry for {target}");
    }
    Ok((launch, target))
}

/// The keys of a description. Other keys are ignored as notes, unless they resemble one of these.
const KEYS: [&str; 10] =
    ["schema", "kernel", "grid", "block", "cluster", "dynamic_lds", "args", "expected", "code", "per_target"];

fn check_keys<'k>(keys: impl Iterator<Item = &'k String>) -> Result<()> {
    for key in keys.filter(|k| !KEYS.contains(&k.as_str())) {
        if let Some(near) = diag::nearest_within(key, KEYS, 1 + key.len() / 5) {
            bail!("unknown key `{key}`; did you mean `{near}`?");
        }
    }
    Ok(())
}

/// Builds the request from a description; file names are relative to `folder`.
pub fn request(launch: &Launch, folder: &Path, files: &Files, global_bytes: u64) -> Result<Request> {
    let mut args = Vec::new();
    for arg in &launch.args {
        let given = argument_value(&arg.kind, folder, files, global_bytes)
            .with_context(|| format!("argument {}", arg.name))?;
        args.push((arg.name.clone(), given));
    }
    Ok(Request {
        grid: launch.grid,
        block: launch.block,
        dynamic_lds: launch.dynamic_lds,
        args,
        outputs: launch.expected.iter().map(|e| e.arg.clone()).collect(),
    })
}

fn argument_value(
    kind: &ArgumentKind,
    folder: &Path,
    files: &Files,
    global_bytes: u64,
) -> Result<ArgumentValue> {
    Ok(match kind {
        ArgumentKind::Buffer { dtype, shape, init } => {
            ArgumentValue::Buffer(initial(folder, files, self::dtype(dtype)?, shape, init, global_bytes)?)
        }
        ArgumentKind::Scalar { dtype, value } => {
            let mut bytes = Vec::new();
            self::dtype(dtype)?.encode(value.0, &mut bytes)?;
            ArgumentValue::Bytes(bytes)
        }
        ArgumentKind::Struct { bytes } => {
            ArgumentValue::Bytes(hex(bytes).ok_or_else(|| anyhow!("`{bytes}` is not hexadecimal"))?)
        }
        ArgumentKind::Local { size } => ArgumentValue::Local(*size),
        ArgumentKind::Image { image, format, size, memory, init } => {
            let format =
                text_image::format(format).map_err(|(message, help)| anyhow!("{message}; {help}"))?;
            let image =
                text_image::build(image, format, *memory, size).map_err(|message| anyhow!(message))?;
            let (dtype, shape) = text_image::array_type(&image).map_err(|message| anyhow!(message))?;
            let texels = match init {
                Init::Png(name) => {
                    let picture = picture::read(&folder.join(name), files)?;
                    text_image::from_picture(&image, &picture).map_err(|message| anyhow!(message))?
                }
                init => initial(folder, files, dtype, &shape, init, global_bytes)?,
            };
            ArgumentValue::Image(image, texels)
        }
        ArgumentKind::Sampler { properties } => {
            let mut sampler = Sampler::default();
            for word in properties {
                text_image::set_property(&mut sampler, word)
                    .map_err(|(message, help)| anyhow!("{message}; {help}"))?;
            }
            ArgumentValue::Sampler(sampler)
        }
    })
}

fn dtype(name: &str) -> Result<DType> {
    DType::from_name(name).ok_or_else(|| anyhow!("unknown dtype `{name}`; the types are {}", DType::names()))
}

fn initial(
    folder: &Path,
    files: &Files,
    dtype: DType,
    shape: &[u64],
    init: &Init,
    global_bytes: u64,
) -> Result<Array> {
    if wavesim_array::size_bytes(dtype, shape)? as u64 > global_bytes {
        return Err(ArrayError::TooLarge.into());
    }
    Ok(match init {
        Init::File(name) => file::npy_as(&folder.join(name), files, dtype, shape)?,
        Init::Png(_) => bail!("a PNG file is the contents of an image"),
        Init::Zeros(_) => Array::zeros(dtype, shape)?,
        Init::Fill(v) => fill::repeat(dtype, shape, fill_value(dtype, v.0))?,
        Init::Arange { start, step } => fill::progression(dtype, shape, start.0, step.0)?,
    })
}

/// The fill value of an integer type may be a number or a bit pattern.
fn fill_value(dtype: DType, n: Num) -> Num {
    match n {
        Num::Int(v) if !dtype.is_float() && v >= 0 => u64::try_from(v).map_or(n, Num::Bits),
        Num::Int(v) if !dtype.is_float() && !dtype.is_signed() => {
            Num::Bits(v as u64 & (u64::MAX >> (64 - 8 * dtype.size())))
        }
        n => n,
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    (0..text.len()).step_by(2).map(|k| u8::from_str_radix(text.get(k..k + 2)?, 16).ok()).collect()
}
