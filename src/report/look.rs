use super::*;

/// The style of text for a terminal.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub color: bool,
    /// The columns of the terminal.
    pub width: usize,
    /// Whether to show also what is usually left out.
    pub all: bool,
}

/// The meaning of a colour.
#[derive(Clone, Copy, Debug)]
pub enum Color {
    Good,
    Doubtful,
    Bad,
    /// Worth knowing, but not a problem.
    Calm,
}

impl Look {
    pub fn paint(&self, words: &str, color: Color) -> String {
        let code = match color {
            Color::Good => "32",
            Color::Doubtful => "33",
            Color::Bad => "31",
            Color::Calm => "36",
        };
        match self.color {
            true => format!("\u{1b}[{code}m{words}\u{1b}[0m"),
            false => words.to_owned(),
        }
    }

    pub fn outcome(&self, outcome: Outcome) -> String {
        let color = match outcome {
            Outcome::AsExpected => Color::Good,
            Outcome::Inconclusive => Color::Doubtful,
            Outcome::NotAsExpected => Color::Bad,
        };
        self.paint(&outcome.to_string(), color)
    }
}
