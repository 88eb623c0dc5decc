//! What goes to stdout. Whoever stops reading early (`| head`) has seen enough:
//! that changes no verdict. A full disk does.

use super::exit::Failure;
use std::fmt::Display;
use std::io::{ErrorKind, Write};

pub fn line(text: impl Display) -> Result<(), Failure> {
    print(format_args!("{text}\n"))
}

pub fn print(text: impl Display) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match write!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::harness(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// For stderr: there is nowhere left to complain about a failure to complain.
pub fn complain(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
