//! The plan of a campaign, in TOML. `docs/scaling.md` describes it.

pub use crate::shard::Shard;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Maximum number of cases of a plan.
const MAX_CASES: u64 = 1 << 32;

/// A plan as written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plan {
    /// The name in reports.
    pub name: String,
    /// What each process may use.
    pub limits: Limits,
    /// Which outputs are stored.
    pub keep: Keep,
    /// A folder, relative to the plan, for a file of `--coverage` of each case that runs a kernel.
    pub coverage: Option<PathBuf>,
    /// Groups of cases.
    pub cases: Vec<CaseMatrix>,
}

/// What a process may use.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Seconds until it is ended.
    pub seconds: f64,
    /// Megabytes of address space; 0 for no limit.
    pub memory_mb: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { seconds: 60.0, memory_mb: 4096 }
    }
}

/// Which outputs are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Those of all cases.
    All,
    /// Those of cases that have not passed.
    #[default]
    Failures,
}

/// The command of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// `wavesim check`.
    #[default]
    Check,
    /// `wavesim run`.
    Run,
    /// `wavesim launch --check`: compares with the outputs of a launch description.
    Launch,
    /// `wavesim conform`.
    Conform,
}

/// Every combination of the lists is a case. An empty list means the command's default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CaseMatrix {
    /// The command.
    pub mode: Mode,
    /// Files, relative to the plan. `*` in a name stands for any characters.
    pub kernels: Vec<String>,
    /// Architectures or processors.
    pub targets: Vec<String>,
    /// Launches and constants.
    pub inputs: Vec<Input>,
    /// Orders of the waves of a workgroup (`--schedule`).
    pub schedules: Vec<String>,
    /// Orders of workgroups and waves (`--order` of `check`).
    pub orders: Vec<String>,
    /// Seeds of `rand()`.
    pub seeds: Seeds,
    /// Further options of every case.
    pub options: Vec<String>,
}

/// An input of the kernels of a group.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Input {
    /// Constants (`-D`).
    pub define: BTreeMap<String, Value>,
    /// Workgroups.
    pub grid: Vec<u32>,
    /// Work-items in a workgroup.
    pub block: Vec<u32>,
    /// Arguments (`--arg`).
    pub args: Vec<String>,
    /// Further options.
    pub options: Vec<String>,
}

/// The value of a constant.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// An integer.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// An expression, as text.
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Text(value) => f.write_str(value),
        }
    }
}

/// Seeds: a list, or a range `"0..100"`.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Seeds {
    /// These.
    List(Vec<u64>),
    /// `"first..end"`, without the end.
    Range(String),
}

impl Default for Seeds {
    fn default() -> Seeds {
        Seeds::List(Vec::new())
    }
}

/// The reason why a plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Not TOML, or an unknown key; the message has the position.
    #[error("{path}: {message}")]
    Syntax {
        /// The file.
        path: String,
        /// What is wrong, with its position.
        message: String,
    },
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The error.
        source: std::io::Error,
    },
    /// A value that is not possible.
    #[error("{0}")]
    Wrong(String),
}

/// A case: a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The options as text, which is unique in a plan: the key of the result.
    pub name: String,
    /// The file.
    pub kernel: PathBuf,
    /// The target; empty for the default.
    pub target: String,
    /// The arguments of `wavesim`.
    pub arguments: Vec<String>,
    /// The command writes a log in SARIF if it is told to.
    pub has_sarif: bool,
}

/// A plan whose files have been found.
#[derive(Debug)]
pub struct Campaign {
    /// The plan.
    pub plan: Plan,
    /// The text of the plan.
    pub text: String,
    groups: Vec<Resolved>,
    /// The folder for files of `--coverage`.
    pub(crate) coverage: Option<PathBuf>,
}

#[derive(Debug)]
struct Resolved {
    group: CaseMatrix,
    /// The files, each with its name relative to the plan.
    kernels: Vec<(PathBuf, String)>,
    seeds: Range<u64>,
    /// The seeds of a list, which `seeds` numbers.
    list: Vec<u64>,
    /// Number of cases.
    count: u64,
}

impl Campaign {
    /// Reads a plan, and finds its files.
    ///
    /// # Errors
    /// The plan is not valid, or names files that do not exist.
    pub fn open(path: &Path) -> Result<Campaign, PlanError> {
        let io = |source| PlanError::Io { path: path.display().to_string(), source };
        let text = std::fs::read_to_string(path).map_err(io)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Campaign::parse(&path.display().to_string(), text, folder)
    }

    /// Reads the text of a plan whose files are relative to `folder`.
    ///
    /// # Errors
    /// As for [`Campaign::open`].
    pub fn parse(name: &str, text: String, folder: &Path) -> Result<Campaign, PlanError> {
        let plan: Plan = toml::from_str(&text).map_err(|e| {
            let line = e.span().map(|span| text[..span.start].matches('\n').count() + 1);
            let place = line.map_or(name.to_string(), |line| format!("{name}:{line}"));
            PlanError::Syntax { path: place, message: e.message().to_string() }
        })?;
        Campaign::new(name, plan, text, folder)
    }

    /// Reads a plan in JSON, with the same keys.
    ///
    /// # Errors
    /// As for [`Campaign::open`].
    pub fn of_json(text: &str, folder: &Path) -> Result<Campaign, PlanError> {
        let name = "plan";
        let plan = serde_json::from_str(text);
        let plan = plan.map_err(|e| PlanError::Syntax { path: name.to_string(), message: e.to_string() })?;
        Campaign::new(name, plan, text.to_string(), folder)
    }

    fn new(name: &str, plan: Plan, text: String, folder: &Path) -> Result<Campaign, PlanError> {
        let wrong = |message: &str| Err(PlanError::Wrong(format!("{name}: {message}")));
        if !(plan.limits.seconds > 0.0 && plan.limits.seconds < 1e9) {
            return wrong("`limits.seconds` must be positive");
        }
        if plan.cases.is_empty() {
            return wrong("there are no `[[cases]]`");
        }
        let mut groups = Vec::new();
        for group in &plan.cases {
            groups.push(resolve(name, group, folder)?);
        }
        let total = groups.iter().try_fold(0u64, |sum, group| sum.checked_add(group.count));
        if total.is_none_or(|total| total > MAX_CASES) {
            return wrong(&format!("more than {MAX_CASES} cases"));
        }
        let coverage = plan.coverage.as_ref().map(|own| folder.join(own));
        Ok(Campaign { plan, text, groups, coverage })
    }

    /// Returns the number of cases.
    pub fn count(&self) -> u64 {
        self.groups.iter().map(|group| group.count).sum()
    }

    /// Returns a case by its number.
    pub fn case(&self, mut number: u64) -> Option<Case> {
        for group in &self.groups {
            if number < group.count {
                let mut case = group.case(number);
                if let Some(folder) = self.coverage.as_ref().filter(|_| group.group.mode != Mode::Conform) {
                    let file =
                        folder.join(format!("{:016x}.json", crate::runner::hash(case.name.as_bytes())));
                    case.arguments.insert(1, format!("--coverage={}", file.display()));
                }
                return Some(case);
            }
            number -= group.count;
        }
        None
    }

    /// Returns the cases of a shard: every `shards`th one.
    pub fn cases(&self, shard: Shard) -> impl Iterator<Item = Case> {
        let numbers = (shard.index - 1..self.count()).step_by(shard.count as usize);
        numbers.filter_map(|number| self.case(number))
    }

    /// Returns the files of all groups.
    pub fn kernels(&self) -> impl Iterator<Item = &Path> {
        self.groups.iter().flat_map(|group| &group.kernels).map(|(path, _)| path.as_path())
    }
}

fn resolve(plan: &str, group: &CaseMatrix, folder: &Path) -> Result<Resolved, PlanError> {
    let mut kernels = Vec::new();
    for pattern in &group.kernels {
        let found = files(folder, pattern)?;
        if found.is_empty() {
            return Err(PlanError::Wrong(format!("{plan}: no file is called `{pattern}`")));
        }
        kernels.extend(found);
    }
    if kernels.is_empty() {
        return Err(PlanError::Wrong(format!("{plan}: a group of cases without `kernels`")));
    }
    let (seeds, list) = match &group.seeds {
        Seeds::List(list) => (0..list.len() as u64, list.clone()),
        Seeds::Range(text) => {
            let range =
                text.split_once("..").and_then(|(a, b)| Some(a.trim().parse().ok()?..b.trim().parse().ok()?));
            let range = range.filter(|range: &Range<u64>| !range.is_empty());
            let wrong =
                || PlanError::Wrong(format!("{plan}: `seeds`: `{text}` is not a range such as 0..100"));
            (range.ok_or_else(wrong)?, Vec::new())
        }
    };
    let of_seeds = seeds.end - seeds.start;
    let lengths = [&group.targets, &group.schedules, &group.orders].map(Vec::len);
    let lengths = lengths.into_iter().chain([kernels.len(), group.inputs.len()]);
    let lengths = lengths.map(|len| len as u64).chain([of_seeds]);
    let mut lengths = lengths;
    let count = lengths.try_fold(1u64, |product, len| product.checked_mul(len.max(1)));
    let count = count.filter(|count| *count <= MAX_CASES);
    let count = count.ok_or_else(|| PlanError::Wrong(format!("{plan}: more than {MAX_CASES} cases")))?;
    Ok(Resolved { group: group.clone(), kernels, seeds, list, count })
}

/// Returns the files that a pattern names, in order, with their names relative to the folder. `*` stands for any
/// characters of one name.
fn files(folder: &Path, pattern: &str) -> Result<Vec<(PathBuf, String)>, PlanError> {
    let mut found = vec![(folder.to_path_buf(), String::new())];
    for part in pattern.split('/') {
        let mut next = Vec::new();
        for (path, name) in found {
            let join = |part: &str| match (name.is_empty(), pattern.starts_with('/')) {
                (true, false) => part.to_string(),
                _ => format!("{name}/{part}"),
            };
            if part.is_empty() {
                // The root of an absolute path, or a doubled slash.
                let path =
                    if name.is_empty() && pattern.starts_with('/') { PathBuf::from("/") } else { path };
                next.push((path, name));
            } else if part.contains('*') {
                let folder = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
                let Ok(entries) = std::fs::read_dir(folder) else { continue };
                let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
                let mut names: Vec<String> = names.filter(|name| matches(part, name)).collect();
                names.sort_unstable();
                next.extend(names.iter().map(|part| (path.join(part), join(part))));
            } else if path.join(part).exists() {
                next.push((path.join(part), join(part)));
            }
        }
        found = next;
    }
    found.retain(|(path, _)| path.is_file());
    Ok(found)
}

/// Returns whether a name matches a pattern with `*`.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        if at + 1 == parts.len() {
            return rest.ends_with(part);
        }
        let Some(found) = rest.find(part) else { return false };
        rest = &rest[found + part.len()..];
    }
    rest.is_empty()
}

impl Resolved {
    fn case(&self, number: u64) -> Case {
        let mut rest = number;
        // The last list varies fastest.
        let mut next = |len: u64| {
            let index = rest % len.max(1);
            rest /= len.max(1);
            index
        };
        let group = &self.group;
        let of_seeds = self.seeds.end - self.seeds.start;
        let seed = self.seeds.start + next(of_seeds);
        // A number in the list, if there is one.
        let seed = if self.list.is_empty() {
            (of_seeds > 0).then_some(seed)
        } else {
            Some(self.list[seed as usize])
        };
        let mut next = |len: usize| next(len as u64) as usize;
        let schedule = group.schedules.get(next(group.schedules.len()));
        let order = group.orders.get(next(group.orders.len()));
        let input = group.inputs.get(next(group.inputs.len()));
        let target = group.targets.get(next(group.targets.len()));
        let (kernel, name) = &self.kernels[next(self.kernels.len())];
        let mut options = Vec::new();
        if let Some(target) = target {
            let is_processor = target.starts_with("gfx");
            let option = match (group.mode, is_processor) {
                (Mode::Launch, true) => "--target",
                (_, true) => "--mcpu",
                (_, false) => "--arch",
            };
            options.push(format!("{option}={target}"));
        }
        if let Some(input) = input {
            let dimensions = |list: &[u32]| list.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            for (name, value) in &input.define {
                options.push(format!("-D{name}={value}"));
            }
            for (option, list) in [("--grid", &input.grid), ("--block", &input.block)] {
                if !list.is_empty() {
                    options.push(format!("{option}={}", dimensions(list)));
                }
            }
            options.extend(input.args.iter().map(|arg| format!("--arg={arg}")));
            options.extend(input.options.iter().cloned());
        }
        options.extend(schedule.map(|schedule| format!("--schedule={schedule}")));
        options.extend(order.map(|order| format!("--order={order}")));
        options.extend(seed.map(|seed| format!("--seed={seed}")));
        options.extend(group.options.iter().cloned());
        let command = match group.mode {
            Mode::Check => "check",
            Mode::Run => "run",
            Mode::Launch => "launch",
            Mode::Conform => "conform",
        };
        let mut arguments = vec![command.to_string(), "--json".to_string()];
        if group.mode == Mode::Launch {
            arguments.push("--check".to_string());
        }
        // The cases of a campaign use all processors; a process that does, too, only takes longer to start.
        let alone = matches!(group.mode, Mode::Run | Mode::Launch | Mode::Conform)
            && !options.iter().any(|option| option.starts_with("--threads") || option.starts_with("--jobs"));
        if alone {
            arguments.push("--threads=1".to_string());
        }
        arguments.extend(options.iter().cloned());
        arguments.push("--".to_string());
        arguments.push(kernel.display().to_string());
        let name =
            [command.to_string(), name.clone()].into_iter().chain(options).collect::<Vec<_>>().join(" ");
        let target = target.cloned().unwrap_or_default();
        Case { name, kernel: kernel.clone(), target, arguments, has_sarif: group.mode == Mode::Check }
    }
}
