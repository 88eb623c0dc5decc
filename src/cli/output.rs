//! What goes to stdout. Whoever stops reading early (`| head`) has seen enough:
//! that changes no verdict. A full disk does.
//!
//! Text out of records and files is made harmless where it becomes a report; whatever was
//! missed there does not reach a terminal from here either.

use super::exit::Failure;
use crate::report::shown;
use std::fmt::Display;
use std::io::{ErrorKind, Write};

pub fn line(text: impl Display) -> Result<(), Failure> {
    print(format_args!("{text}\n"))
}

/// Text without colours; one that a file asks for is not given either.
pub fn print(text: impl Display) -> Result<(), Failure> {
    write(&shown::lines(&text.to_string()))
}

/// A screen with the colours that a report gave it.
pub fn screen(text: impl Display) -> Result<(), Failure> {
    write(&shown::painted(&text.to_string()))
}

fn write(text: &str) -> Result<(), Failure> {
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
    let text = text.to_string();
    let _ = writeln!(std::io::stderr(), "{}", shown::lines(&text));
}
