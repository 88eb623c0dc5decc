#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| fencepost_fuzz::worker_lines(input));
