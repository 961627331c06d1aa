//! Exceptions.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::{Bound, PyErr, Python, create_exception};
use wavesim_runtime as runtime;

create_exception!(wavesim, Error, PyRuntimeError, "An error of wavesim.");
create_exception!(
    wavesim,
    Fault,
    Error,
    "A kernel faulted. Attributes: kind, message, file, line, pc, instruction, workgroup, wave, lane, address, kernel, launch."
);

/// Returns an error with the given message.
pub fn error(text: impl ToString) -> PyErr {
    Error::new_err(text.to_string())
}

/// Converts an error of the runtime to an exception.
pub fn convert(py: Python<'_>, e: runtime::Error) -> PyErr {
    match e {
        runtime::Error::Fault(report) => {
            let launch = (report.kernel.as_str(), report.launch);
            match &report.fault {
                Some(fault) => raise(py, &report.to_string(), fault, launch),
                None => error(report),
            }
        }
        e => error(e),
    }
}

/// Converts a fault to an exception. `launch` is the kernel's name and the launch's number.
pub fn raise(py: Python<'_>, text: &str, fault: &wavesim::fault::Fault, launch: (&str, u64)) -> PyErr {
    let exception = Fault::new_err(text.to_string());
    let value = exception.value(py);
    match attributes(value.as_any(), fault, launch) {
        Ok(()) => exception,
        Err(other) => other,
    }
}

fn attributes(value: &Bound<'_, PyAny>, fault: &wavesim::fault::Fault, launch: (&str, u64)) -> PyResult<()> {
    value.setattr("kind", fault.kind.name())?;
    value.setattr("message", &fault.message)?;
    value.setattr("line", (fault.line != 0).then_some(fault.line))?;
    value.setattr("file", fault.file.as_deref())?;
    value.setattr("pc", fault.pc)?;
    value.setattr("instruction", &fault.instruction)?;
    let [x, y, z] = fault.workgroup;
    value.setattr("workgroup", (x, y, z))?;
    value.setattr("wave", fault.wave)?;
    value.setattr("lane", fault.lane)?;
    value.setattr("address", fault.address)?;
    value.setattr("kernel", launch.0)?;
    value.setattr("launch", launch.1)
}
