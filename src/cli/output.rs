//! Output on stdout. A reader that stops early (`| head`) has seen enough, which changes no
//! verdict. A full disk does.
//!
//! Reports already make text from records and files harmless. This module does it again, so
//! that text which they missed does not reach a terminal.

use super::*;
use std::fmt::Display;
use std::io::{ErrorKind, Write};

pub fn line(text: impl Display) -> Result<(), Failure> {
    print(format_args!("{text}\n"))
}

/// Prints text without colours, even if it contains colour codes from a file.
pub fn print(text: impl Display) -> Result<(), Failure> {
    write(&shown::lines(&text.to_string()))
}

/// Prints a screen with the colours that a report gave it.
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

/// Writes to stderr. A failure to write is ignored, because there is nowhere left to report it.
pub fn complain(text: impl Display) {
    let text = text.to_string();
    let _ = writeln!(std::io::stderr(), "{}", shown::lines(&text));
}
