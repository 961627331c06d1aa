//! Tests of `hiprtc` that need no compiler.

use super::*;

unsafe extern "C" {
    fn hiprtcCreateProgram(
        program: &mut Handle,
        source: *const c_char,
        name: *const c_char,
        count: c_int,
        headers: *const *const c_char,
        names: *const *const c_char,
    ) -> c_int;
    fn hiprtcCompileProgram(program: Handle, count: c_int, options: *const *const c_char) -> c_int;
    fn hiprtcGetProgramLog(program: Handle, log: *mut u8) -> c_int;
    safe fn hiprtcGetProgramLogSize(program: Handle, size: &mut usize) -> c_int;
}

/// `HIPRTC_ERROR_INVALID_OPTION`.
const INVALID_OPTION: c_int = 5;

#[test]
fn options_are_refused_by_name() {
    // SAFETY: the source is a string, and there are no headers.
    let program = created(|out| unsafe { hiprtcCreateProgram(out, c"".as_ptr(), null(), 0, null(), null()) });
    for option in [c"-fpass-plugin=/tmp/x.so", c"@/tmp/options", c"-ftime-trace=/tmp/x", c"-Wp,-MD,/tmp/x"] {
        let options = [c"-O3".as_ptr(), option.as_ptr()];
        // SAFETY: the array has two strings.
        assert_eq!(unsafe { hiprtcCompileProgram(program, 2, options.as_ptr()) }, INVALID_OPTION);
        let mut size = 0;
        assert_eq!(hiprtcGetProgramLogSize(program, &mut size), SUCCESS);
        let mut log = vec![0; size];
        // SAFETY: the log has this size.
        assert_eq!(unsafe { hiprtcGetProgramLog(program, log.as_mut_ptr()) }, SUCCESS);
        let expected = format!("hiprtc: option {} is not supported\n\0", option.to_str().unwrap());
        assert_eq!(String::from_utf8(log).unwrap(), expected);
    }
}
