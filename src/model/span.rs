use super::format_duration;
use std::fmt;
use std::time::Duration;

/// A duration, or bounds within which the seed draws one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub from: Duration,
    /// Equal to `from` if nothing is random.
    pub to: Duration,
}

impl Span {
    pub fn exactly(duration: Duration) -> Span {
        Span {
            from: duration,
            to: duration,
        }
    }

    /// Draws a duration in whole milliseconds, both bounds included.
    pub fn draw(self, random: &mut fastrand::Rng) -> Duration {
        let ms = |duration: Duration| duration.as_millis() as u64;
        match self.from == self.to {
            true => self.from,
            false => Duration::from_millis(random.u64(ms(self.from)..=ms(self.to))),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_duration(self.from))?;
        match self.from == self.to {
            true => Ok(()),
            false => write!(f, "..{}", format_duration(self.to)),
        }
    }
}
