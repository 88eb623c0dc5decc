//! Lines on stderr for a person who looks for the cause of a problem.

use std::fmt;
use std::io::Write;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "lowercase")]
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

    /// Accepts the names that the original knows; its two finest levels are one here.
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
        self.say(LogLevel::Warn, line);
    }

    pub fn info(self, line: fmt::Arguments<'_>) {
        self.say(LogLevel::Info, line);
    }

    pub fn debug(self, line: fmt::Arguments<'_>) {
        self.say(LogLevel::Debug, line);
    }

    fn say(self, level: LogLevel, line: fmt::Arguments<'_>) {
        if level <= self {
            // A failure to log cannot be logged.
            let _ = writeln!(std::io::stderr(), "{level}: {}", in_one_line(line));
        }
    }
}

/// Escapes a line: a proxy or a toxic may have any name, and no name may start a new line
/// or send control characters to a terminal.
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
        let expected = "proxy \"a\\ninfo: forged\\r\\u{1b}[2J\\u{9b}31m\\u{202e}\" ü is there";
        assert_eq!(shown, expected);
    }
}
