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
    fn hiprtcGetBitcode(program: Handle, bitcode: *mut u8) -> c_int;
    fn hiprtcGetBitcodeSize(program: Handle, size: *mut usize) -> c_int;
    fn hiprtcLinkAddFile(
        link: Handle,
        kind: c_int,
        path: *const c_char,
        count: c_uint,
        options: *const c_int,
        values: *const *mut c_void,
    ) -> c_int;
    fn hiprtcLinkCreate(
        count: c_uint,
        options: *const c_int,
        values: *const *mut c_void,
        link: &mut Handle,
    ) -> c_int;
    safe fn hiprtcLinkDestroy(link: Handle) -> c_int;
    fn hiprtcGetProgramLog(program: Handle, log: *mut u8) -> c_int;
    safe fn hiprtcGetProgramLogSize(program: Handle, size: &mut usize) -> c_int;
}

/// `hiprtcResult`.
const PROGRAM_CREATION_FAILURE: c_int = 2;
const INVALID_INPUT: c_int = 3;
const INVALID_PROGRAM: c_int = 4;
const INVALID_OPTION: c_int = 5;
/// `HIPRTC_JIT_INPUT_CUBIN`, `HIPRTC_JIT_INPUT_LLVM_BITCODE`.
const CUBIN: c_int = 0;
const BITCODE: c_int = 100;

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

#[test]
fn parameters_are_checked_before_the_state() {
    // SAFETY: the source is a string, and there are no headers.
    let program = created(|out| unsafe { hiprtcCreateProgram(out, c"".as_ptr(), null(), 0, null(), null()) });
    let mut size = 0;
    // SAFETY: the size has room for the result, if there is one.
    unsafe {
        assert_eq!(hiprtcGetBitcodeSize(program, null_mut()), INVALID_INPUT);
        assert_eq!(hiprtcGetBitcodeSize(program, &mut size), INVALID_PROGRAM);
        assert_eq!(hiprtcGetBitcode(program, null_mut()), INVALID_INPUT);
    }
    // SAFETY: the paths are strings, and there are no options.
    let add =
        |link, kind| unsafe { hiprtcLinkAddFile(link, kind, c"/nonexistent.bc".as_ptr(), 0, null(), null()) };
    // SAFETY: there are no options.
    let link = created(|out| unsafe { hiprtcLinkCreate(0, null(), null(), out) });
    assert_eq!(add(null_mut(), BITCODE), INVALID_INPUT);
    assert_eq!(add(link, CUBIN), INVALID_INPUT);
    assert_eq!(add(link, BITCODE), PROGRAM_CREATION_FAILURE);
    assert_eq!(hiprtcLinkDestroy(link), SUCCESS);
    assert_eq!(add(link, BITCODE), INVALID_INPUT);
}
