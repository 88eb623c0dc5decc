//! The names of events in triggers and expectations.

use std::fmt;

/// The source of `scenario.started`, which comes when everybody is ready. Entries without
/// `when` are triggered by it.
pub const SCENARIO: &str = "scenario";
pub const STARTED: &str = "started";
/// The source that reports writes, whatever its service is called.
pub const RESOURCE: &str = "resource";

/// An event like `a.acquired#2`: the second time that worker a reports `acquired`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Trigger {
    /// A worker, a service, an entry of the timeline, or [`SCENARIO`].
    pub source: String,
    pub event: String,
    /// Counted from one.
    pub occurrence: u32,
}

impl Trigger {
    pub fn at_the_start() -> Trigger {
        Trigger {
            source: SCENARIO.to_owned(),
            event: STARTED.to_owned(),
            occurrence: 1,
        }
    }

    pub fn parse(text: &str) -> Option<Trigger> {
        let (name, occurrence) = match text.split_once('#') {
            Some((name, count)) => (name, count.parse().ok().filter(|n| *n > 0)?),
            None => (text, 1),
        };
        let (source, event) = name.split_once('.')?;
        let filled = !source.is_empty() && !event.is_empty() && !event.contains('.');
        filled.then(|| Trigger {
            source: source.to_owned(),
            event: event.to_owned(),
            occurrence,
        })
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.source, self.event)?;
        match self.occurrence {
            1 => Ok(()),
            n => write!(f, "#{n}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_read_and_print_the_same() {
        for text in [
            "a.acquired",
            "b.write_accepted#2",
            "resource.write_rejected",
        ] {
            assert_eq!(Trigger::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "a", "a.", ".x", "a.b.c", "a.b#0", "a.b#x"] {
            assert_eq!(Trigger::parse(text), None, "{text}");
        }
    }
}
