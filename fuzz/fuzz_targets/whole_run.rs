#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wavesim_tests::fuzz::whole_run(data));
