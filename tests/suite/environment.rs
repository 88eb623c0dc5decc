//! Whatever stands in the environment, the program ends with a code of its own.

use crate::support::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

const VARIABLES: [&str; 10] = [
    "TOKIO_WORKER_THREADS",
    "RUST_LOG",
    "RUST_BACKTRACE",
    "NO_COLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "TERM",
    "CI",
    "LOG_LEVEL",
    "TOXIPROXY_AUTH_TOKEN",
];

#[test]
fn no_value_of_a_variable_makes_the_program_panic() {
    let long = "9".repeat(10_000);
    let values: [&[u8]; 7] = [
        b"",
        b"0",
        b"x",
        b"-1",
        b"100000",
        b"\xff\x1b[31m",
        long.as_bytes(),
    ];
    for variable in VARIABLES {
        for value in values {
            // One that starts a runtime, and one that looks at the terminal.
            for arguments in [&["toxiproxy", "-version"][..], &["list"]] {
                let mut command = command(arguments.iter().copied());
                command.env(variable, OsStr::from_bytes(value));
                let ended = start(command).wait();
                let is_read = variable == "LOG_LEVEL" && arguments[0] == "toxiproxy";
                let is_wrong = is_read && !value.is_empty();
                ended.expect_code(if is_wrong { 64 } else { 0 });
            }
        }
    }
}
