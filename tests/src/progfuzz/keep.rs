//! Failing programs as files: a launch description with the code object, its inputs, and the outputs of the
//! host. `tests/filetests/programs` contains the ones whose causes are mended.

use super::build::{self, Scratch};
use super::run::{self, kernel_buffers, scalars};
use super::tree::Program;
use super::{Failure, Reference, source};
use serde_json::{Value, json};
use std::path::Path;
use wavesim::array::{Array, DType, npy};
use wavesim::files;

/// Writes `program.cl`, `launch.json` and the files that it refers to. The kernel is the program's last one.
pub fn keep(failure: &Failure, program: Program, folder: &Path) -> Result<(), String> {
    let scratch = Scratch::new().map_err(|e| e.to_string())?;
    let reference = Reference::new(program, &scratch, false).map_err(|e| e.to_string())?;
    let (program, configuration) = (&reference.program, &failure.configuration);
    let object = scratch.path("kept.co");
    build::for_target(&scratch.path("program.cl"), configuration, &object)?;
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        files::write(&path, |out| out.write_all(bytes)).map_err(|e| format!("{}: {e}", path.display()))
    };
    let code = std::fs::read(&object).map_err(|e| e.to_string())?;
    write("program.co", &code)?;
    let differences: String =
        failure.differences.iter().map(|d| format!("// {d}\n").replace("\n  ", "\n//   ")).collect();
    let found = differences.lines().next().unwrap_or_default();
    write("program.cl", format!("// {configuration}\n{found}\n{}", source::source(program)).as_bytes())?;
    let kernel = program.kernels.len() - 1;
    let before = run::buffers(program);
    let expected = reference.for_wave(configuration.wave);
    let array = |bytes: &[u8]| {
        let array = Array { dtype: DType::U32, shape: vec![bytes.len() as u64 / 4], bytes: bytes.to_vec() };
        let mut file = Vec::new();
        npy::write(&mut file, &array).map_err(|e| e.to_string())?;
        Ok::<_, String>(file)
    };
    let mut args = Vec::new();
    let mut outputs = Vec::new();
    for (name, index) in kernel_buffers(kernel) {
        let contents = if name == "prev" { &expected[index] } else { &before[index] };
        let init = match contents.iter().all(|b| *b == 0) {
            true => json!({ "zeros": true }),
            false if name == "prev" && kernel == 0 => json!({ "file": "in.npy" }),
            false => {
                write(&format!("{name}.npy"), &array(contents)?)?;
                json!({ "file": format!("{name}.npy") })
            }
        };
        args.push(json!({
            "name": name, "kind": "buffer", "dtype": "u32", "shape": [contents.len() / 4], "init": init,
        }));
        if matches!(name, "out" | "ga") {
            let file = format!("{name}.expected.npy");
            write(&file, &array(&expected[index])?)?;
            outputs.push(json!({ "arg": name, "file": file, "rtol": 0, "atol": 0 }));
        }
    }
    // As bytes, which have no rounding.
    args.extend(scalars(program).into_iter().map(|(name, scalar, bytes)| {
        let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        json!({ "name": name, "kind": "struct", "size": bytes.len(), "bytes": digits, "layout": scalar.name() })
    }));
    let launch: Value = json!({
        "schema": "wavesim-launch-1",
        "kernel": format!("kernel{kernel}"),
        "grid": [program.groups[0], program.groups[1], 1],
        "block": [program.block[0], program.block[1], 1],
        "dynamic_lds": 0,
        "args": args,
        "expected": outputs,
        "code": { configuration.target: "program.co" },
    });
    write("launch.json", format!("{launch:#}\n").as_bytes())
}
