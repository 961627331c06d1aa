//! Arrays in files.

use std::io::Write;
use wavesim_array::fill::Random;
use wavesim_array::{DType, file, fill, npy};
use wavesim_files::Files;

#[test]
fn npy_files_round_trip() {
    let dir = std::env::temp_dir().join(format!("wavesim-npy-{}", std::process::id()));
    for dtype in DType::ALL {
        for shape in [&[][..], &[5], &[2, 3, 4]] {
            let array = fill::rand(dtype, shape, &mut Random::new(1)).unwrap();
            wavesim_files::write_all(&dir, "npy", [("x", |out: &mut dyn Write| npy::write(out, &array))])
                .unwrap();
            assert_eq!(
                file::npy(&dir.join("x.npy"), &Files::any(), Some(dtype)).unwrap(),
                array,
                "{}",
                array.type_name()
            );
        }
    }
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1, "nothing partial stays");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn hostile_headers_are_rejected() {
    let path = std::env::temp_dir().join(format!("wavesim-hostile-{}.npy", std::process::id()));
    let long = [&b"\x93NUMPY\x02\x00"[..], &u32::MAX.to_le_bytes()].concat();
    let deep = [&b"\x93NUMPY\x01\x00"[..], &40000u16.to_le_bytes(), &[b'('; 40000]].concat();
    for bytes in [&long[..], &deep, b"\x93NUMPY", b"secret contents of another file", b""] {
        std::fs::write(&path, bytes).unwrap();
        let error = file::npy(&path, &Files::any(), None).unwrap_err().to_string();
        assert!(error.ends_with("not a .npy file"), "{error}");
    }
    std::fs::remove_file(&path).unwrap();
}
