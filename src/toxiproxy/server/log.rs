//! Lines on stderr for whoever looks why something does not work.

use std::fmt;
use std::io::Write;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Off,
    Error,
    Warn,
    #[default]
    Info,
    Debug,
}

impl FromStr for LogLevel {
    type Err = String;

    /// The names that the original knows; its finest are one here.
    fn from_str(name: &str) -> Result<LogLevel, String> {
        match name.to_ascii_lowercase().as_str() {
            "disabled" | "panic" | "fatal" => Ok(LogLevel::Off),
            "error" => Ok(LogLevel::Error),
            "warn" | "warning" => Ok(LogLevel::Warn),
            "info" | "" => Ok(LogLevel::Info),
            "debug" | "trace" => Ok(LogLevel::Debug),
            _ => Err(format!(
                "{name:?} is no log level; known: disabled, error, warn, info, debug, trace"
            )),
        }
    }
}

impl LogLevel {
    pub fn warn(self, line: fmt::Arguments<'_>) {
        self.say(LogLevel::Warn, "warn", line);
    }

    pub fn info(self, line: fmt::Arguments<'_>) {
        self.say(LogLevel::Info, "info", line);
    }

    pub fn debug(self, line: fmt::Arguments<'_>) {
        self.say(LogLevel::Debug, "debug", line);
    }

    fn say(self, level: LogLevel, name: &str, line: fmt::Arguments<'_>) {
        if level <= self {
            // There is nowhere left to complain about a failure to complain.
            let _ = writeln!(std::io::stderr(), "{name}: {}", in_one_line(line));
        }
    }
}

/// A proxy or a toxic may be called anything, and no name of one starts a line or
/// reaches a terminal as anything but letters.
fn in_one_line(line: fmt::Arguments<'_>) -> String {
    let mut shown = String::new();
    for c in line.to_string().chars() {
        match c {
            '"' | '\'' | '\\' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_line_or_steer_a_terminal() {
        let name = "a\ninfo: forged\r\u{1b}[2J\u{9b}31m\u{202e}";
        let shown = in_one_line(format_args!("proxy \"{name}\" ü is there"));
        assert_eq!(
            shown,
            "proxy \"a\\ninfo: forged\\r\\u{1b}[2J\\u{9b}31m\\u{202e}\" ü is there"
        );
    }
}
