#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nimbus_fuzz::check("http2", bytes));
