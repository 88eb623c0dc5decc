use crate::model::Outcome;

/// How text for a terminal is to be written.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub color: bool,
    /// Columns that there are.
    pub width: usize,
    /// Also what is left out to be short.
    pub all: bool,
}

/// The colours that say something.
#[derive(Clone, Copy, Debug)]
pub enum Color {
    Good,
    Doubtful,
    Bad,
    /// Worth knowing, and nobody's fault.
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
