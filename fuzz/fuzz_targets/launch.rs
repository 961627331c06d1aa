#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wavesim_tests::fuzz::launch(data));
