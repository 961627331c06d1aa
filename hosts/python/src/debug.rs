//! Debug sessions: stepping through a text kernel, forward and backward.

use crate::error::{error, raise};
use crate::text::prepare;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::rc::Rc;
use wavesim::debug::command::{Debugger, ctrl_c};
use wavesim::debug::timeline::{Outcome, Timeline};
use wavesim::debug::view;
use wavesim::loader::prepared::Prepared;
use wavesim::sched::dispatch::Dispatch;

/// Number of steps after which handlers of signals run.
const STEPS: u64 = 1 << 16;

/// A debugger together with the kernel that it borrows.
struct Owned {
    debugger: ManuallyDrop<Debugger<'static>>,
    dispatch: *mut Dispatch<'static>,
    prepared: *mut Prepared,
    /// What a handler of signals has raised during a command.
    raised: Rc<RefCell<Option<PyErr>>>,
}

impl Owned {
    fn new(prepared: Prepared, max_instructions: u64) -> PyResult<Owned> {
        let prepared = Box::into_raw(Box::new(prepared));
        // SAFETY: the pointer comes from `Box::into_raw`, and `drop` frees it after everything that borrows
        // from it.
        let borrowed: &'static Prepared = unsafe { &*prepared };
        let dispatch = Box::into_raw(Box::new(borrowed.dispatch(max_instructions)));
        // SAFETY: as above.
        let timeline = Timeline::new(borrowed, unsafe { &*dispatch });
        match timeline {
            Ok(timeline) => {
                let raised = Rc::new(RefCell::new(None));
                let slot = raised.clone();
                let interrupted = move || {
                    if let Err(e) = Python::attach(|py| py.check_signals()) {
                        *slot.borrow_mut() = Some(e);
                    }
                    slot.borrow().is_some() || ctrl_c()
                };
                let mut debugger = Debugger::new(timeline, interrupted);
                debugger.set_files(wavesim_runtime::debug::ProcessFiles);
                let debugger = ManuallyDrop::new(debugger);
                Ok(Owned { debugger, dispatch, prepared, raised })
            }
            Err(e) => {
                // SAFETY: both pointers come from `Box::into_raw`. Without a timeline, nothing borrows from
                // them.
                unsafe {
                    drop(Box::from_raw(dispatch));
                    drop(Box::from_raw(prepared));
                }
                Err(error(e))
            }
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once. The debugger is dropped before the data that it borrows, and both
        // pointers come from `Box::into_raw`.
        unsafe {
            ManuallyDrop::drop(&mut self.debugger);
            drop(Box::from_raw(self.dispatch));
            drop(Box::from_raw(self.prepared));
        }
    }
}

/// A debug session.
#[pyclass(unsendable, module = "wavesim")]
pub struct Session(Owned);

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (text, name, target, wave, seed, inputs, max_instructions))]
    fn new(
        text: &str,
        name: &str,
        target: Option<&str>,
        wave: Option<u32>,
        seed: u64,
        inputs: Vec<(String, Vec<u8>)>,
        max_instructions: u64,
    ) -> PyResult<Session> {
        let prepared = prepare(text, name, target, wave, seed, &inputs, 0)?;
        Owned::new(prepared, max_instructions).map(Session)
    }

    /// Executes up to `count` instructions, of one wave or of all waves in scheduling order. Returns the
    /// number executed.
    #[pyo3(signature = (count=1, wave=None))]
    fn step(&mut self, py: Python<'_>, count: u64, wave: Option<usize>) -> PyResult<u64> {
        let timeline = &mut self.0.debugger.timeline;
        for done in 0..count {
            if done % STEPS == STEPS - 1 {
                py.check_signals()?;
            }
            let next = match wave {
                Some(wave) if wave < timeline.waves() => Some(wave),
                Some(wave) => {
                    return Err(error(format!(
                        "there is no wave {wave}: the workgroup has {}",
                        timeline.waves()
                    )));
                }
                None => timeline.next_wave(),
            };
            let Some(next) = next else { return Ok(done) };
            match timeline.step(next) {
                Outcome::Stepped => {}
                Outcome::Blocked | Outcome::Finished => return Ok(done),
                Outcome::Limit => return Err(error("the run has reached its step limit".to_string())),
                Outcome::Fault(fault) => return Err(raise(py, &fault.to_string(), &fault, ("", 1))),
            }
        }
        Ok(count)
    }

    /// Restores the state before step `time`, which must have been executed already.
    fn go_to(&mut self, time: u64) {
        self.0.debugger.timeline.go_to(time);
    }

    /// Runs a command of the debugger and returns its output.
    fn execute(&mut self, command: &str) -> PyResult<String> {
        let result = self.0.debugger.execute(command).0;
        match self.0.raised.take() {
            Some(raised) => Err(raised),
            None => result.map_err(error),
        }
    }

    /// Number of steps so far.
    #[getter]
    fn time(&self) -> u64 {
        self.0.debugger.timeline.time()
    }

    #[getter]
    fn finished(&self) -> bool {
        self.0.debugger.timeline.finished()
    }

    /// Number of waves in the workgroup.
    #[getter]
    fn waves(&self) -> usize {
        self.0.debugger.timeline.waves()
    }

    #[getter]
    fn workgroup(&self) -> (u32, u32, u32) {
        self.0.debugger.timeline.workgroup().into()
    }

    /// Number of lanes in a wave.
    #[getter]
    fn wave_size(&self) -> u32 {
        self.0.debugger.timeline.prepared.shape.wave_size
    }

    /// The wave that executes the next step.
    #[getter]
    fn next_wave(&self) -> Option<usize> {
        self.0.debugger.timeline.next_wave()
    }

    /// Program counter of each wave.
    #[getter]
    fn pcs(&self) -> Vec<u64> {
        let timeline = &self.0.debugger.timeline;
        (0..timeline.waves()).map(|at| timeline.wave(at).pc).collect()
    }

    /// State of each wave, as text.
    #[getter]
    fn states(&self) -> Vec<String> {
        let timeline = &self.0.debugger.timeline;
        (0..timeline.waves()).map(|at| view::status_text(timeline.status(at))).collect()
    }

    /// EXEC of each wave.
    #[getter]
    fn exec(&self) -> Vec<u64> {
        let timeline = &self.0.debugger.timeline;
        (0..timeline.waves()).map(|at| timeline.wave(at).exec()).collect()
    }

    /// Line and text of the instruction at a program counter.
    fn instruction(&self, pc: u64) -> (Option<u32>, String) {
        let program = &self.0.debugger.timeline.prepared.program;
        match program.inst_at(pc) {
            Some(at) => (Some(program.lines[at]).filter(|line| *line != 0), program.text(at)),
            None => (None, String::new()),
        }
    }

    /// The 32-bit values of a VGPR for all lanes of all waves, wave by wave.
    fn vgpr<'py>(&self, py: Python<'py>, number: u32) -> PyResult<Bound<'py, PyBytes>> {
        let timeline = &self.0.debugger.timeline;
        if number >= 256 {
            return Err(error(format!("there is no v{number}: VGPRs are v0 to v255")));
        }
        let size = self.wave_size();
        let lanes = (0..timeline.waves()).flat_map(|at| (0..size).map(move |lane| (at, lane)));
        let bytes = lanes.flat_map(|(at, lane)| timeline.wave(at).vgpr(lane, number).to_le_bytes());
        Ok(PyBytes::new(py, &bytes.collect::<Vec<u8>>()))
    }

    /// The values of an SGPR for each wave. The number is an operand code: 0 to 105, or 106 and 107 for VCC.
    fn sgpr(&self, code: u32) -> PyResult<Vec<u32>> {
        let timeline = &self.0.debugger.timeline;
        if code >= 128 {
            return Err(error(format!("there is no SGPR with code {code}")));
        }
        Ok((0..timeline.waves()).map(|at| timeline.wave(at).sgpr(code)).collect())
    }

    /// The contents of an argument: type, shape, bytes.
    fn argument<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<(&'static str, Vec<u64>, Bound<'py, PyBytes>)> {
        let prepared = self.0.debugger.timeline.prepared;
        let buffer = prepared.buffer(name).ok_or_else(|| error(format!("there is no argument `{name}`")))?;
        let array = buffer.read(&prepared.memory).map_err(error)?;
        Ok((array.dtype.name(), array.shape, PyBytes::new(py, &array.bytes)))
    }

    /// LDS of the workgroup.
    #[getter]
    fn lds<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.debugger.timeline.group.lds)
    }
}
