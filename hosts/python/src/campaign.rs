//! Campaigns: the cases of a plan, one case as a process, and the database of results.

use crate::error::error;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wavesim_campaign::plan::{Campaign, Keep, Limits, Shard};
use wavesim_campaign::process::{Program, Starter, TEMPLATE, Watchdog};
use wavesim_campaign::runner::{Job, contents};
use wavesim_campaign::store::{Record, Store};

/// A case in Python: name, kernel, target, hash of the kernel, arguments, whether there is a SARIF log.
type PyCase = (String, PathBuf, String, i64, Vec<String>, bool);
/// A result: name, kernel, target, hash of the kernel, status, code, seconds, memory in kilobytes, output, messages,
/// SARIF.
type PyRecord = ((String, String, String, i64), (String, i32, f64, u64), (String, String, String));

fn open(plan: &str, folder: PathBuf, is_json: bool) -> PyResult<Campaign> {
    let parsed = match is_json {
        true => Campaign::of_json(plan, &folder),
        false => Campaign::parse("plan", plan.to_string(), &folder),
    };
    parsed.map_err(error)
}

/// A plan: its name, the limits of a case (seconds, megabytes), whether it keeps output, and its cases.
type Plan = (String, (f64, u64), bool, Vec<PyCase>);

/// Returns the name of a plan, its limits (seconds, megabytes), whether all outputs are kept, and the cases of a shard.
#[pyfunction]
pub fn cases(plan: &str, folder: PathBuf, is_json: bool, shard: &str) -> PyResult<Plan> {
    let shard: Shard = shard.parse().map_err(error)?;
    let campaign = open(plan, folder, is_json)?;
    let contents = contents(&campaign).map_err(error)?;
    let cases = campaign.cases(shard).map(|case| {
        let content = contents.get(&case.kernel).copied().unwrap_or(0);
        (case.name, case.kernel, case.target, content, case.arguments, case.has_sarif)
    });
    let (plan, cases) = (&campaign.plan, cases.collect());
    Ok((plan.name.clone(), (plan.limits.seconds, plan.limits.memory_mb), plan.keep == Keep::All, cases))
}

/// What starts cases, while no case uses it, with the process that it belongs to: processes that Python forks get a copy.
static STARTERS: Mutex<Vec<(u32, Starter)>> = Mutex::new(Vec::new());

fn starters() -> MutexGuard<'static, Vec<(u32, Starter)>> {
    STARTERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a case in a process. `program` is the command; `scratch` a file for its log in SARIF.
#[pyfunction]
pub fn run_case(
    py: Python<'_>,
    program: Vec<String>,
    case: PyCase,
    limits: (f64, u64),
    keep_all: bool,
    scratch: PathBuf,
) -> PyResult<PyRecord> {
    let (name, kernel, target, content, arguments, has_sarif) = case;
    // The words before the subcommand: `-m wavesim`.
    let Some((path, first)) = program.split_first() else { return Err(error("no program")) };
    let template = cfg!(unix).then(|| TEMPLATE.to_string());
    let program = Program { path: path.into(), first: first.to_vec(), template };
    let limits = Limits { seconds: limits.0, memory_mb: limits.1 };
    let case = wavesim_campaign::plan::Case { name, kernel, target, arguments, has_sarif };
    let keep = if keep_all { Keep::All } else { Keep::Failures };
    let watchdog = Watchdog::default();
    let record = py.detach(|| {
        std::thread::scope(|scope| {
            scope.spawn(|| watchdog.watch());
            let job = Job { limits, keep, scratch: &scratch, watchdog: &watchdog };
            let own = std::process::id();
            let position = |list: &[(u32, Starter)]| {
                list.iter().position(|(id, s)| *id == own && *s.program() == program)
            };
            let idle = {
                let mut list = starters();
                position(&list).map(|index| list.swap_remove(index).1)
            };
            let mut starter = idle.unwrap_or_else(|| Starter::new(program));
            let record = job.run(&mut starter, &case, content);
            starters().push((own, starter));
            watchdog.close();
            record
        })
    });
    let r = record.map_err(error)?;
    Ok((
        (r.name, r.kernel, r.target, r.content),
        (r.status.name().to_string(), r.code, r.seconds, r.memory_kb),
        (r.output, r.messages, r.sarif),
    ))
}

/// The database of a campaign.
#[pyclass(unsendable, module = "wavesim")]
pub struct Results(Store);

#[pymethods]
impl Results {
    #[new]
    fn new(path: PathBuf) -> PyResult<Results> {
        Store::open(&path).map(Results).map_err(error)
    }

    /// Notes the name of the campaign.
    fn name(&self, name: &str) -> PyResult<()> {
        self.0.set("name", name).map_err(error)
    }

    /// Returns the names of the cases with a result, with the hashes of their kernels.
    fn done(&self) -> PyResult<std::collections::HashMap<String, i64>> {
        let done = self.0.done().map_err(error)?;
        Ok(done.into_iter().map(|(name, content)| (name.into_string(), content)).collect())
    }

    /// Writes results in one transaction.
    fn write(&mut self, records: Vec<PyRecord>) -> PyResult<()> {
        let record =
            |((name, kernel, target, content), (status, code, seconds, memory_kb), texts): PyRecord| {
                let status = wavesim_campaign::store::Status::from_name(&status);
                let status = status.ok_or_else(|| error("no such status"))?;
                let (output, messages, sarif) = texts;
                Ok(Record {
                    name,
                    kernel,
                    target,
                    content,
                    status,
                    code,
                    seconds,
                    memory_kb,
                    output,
                    messages,
                    sarif,
                })
            };
        let records = records.into_iter().map(record).collect::<PyResult<Vec<Record>>>()?;
        self.0.write(&records).map_err(error)
    }

    /// Returns the results as JSON.
    fn json(&self) -> PyResult<String> {
        wavesim_campaign::report::json(&self.0).map(|value| value.to_string()).map_err(error)
    }
}
