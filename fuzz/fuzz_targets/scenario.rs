#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| fencepost_fuzz::scenario(input));
