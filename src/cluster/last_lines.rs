use std::collections::VecDeque;

/// Enough to see what went wrong, and no more than a person reads.
const KEPT: usize = 8;

/// The last few lines that something printed before it failed.
#[derive(Debug, Default)]
pub struct LastLines {
    lines: VecDeque<String>,
}

impl LastLines {
    pub fn of(text: &str) -> LastLines {
        let mut last = LastLines::default();
        text.lines().for_each(|line| last.push(line));
        last
    }

    pub fn push(&mut self, line: impl Into<String>) {
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(line.into());
    }

    pub fn joined(&self) -> String {
        self.with_each_after("\n")
            .trim_start_matches('\n')
            .to_owned()
    }

    /// Formats the lines for below a message: each on a line of its own, indented.
    pub fn below(&self) -> String {
        self.with_each_after("\n    ")
    }

    fn with_each_after(&self, before: &str) -> String {
        self.lines.iter().flat_map(|line| [before, line]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_stay() {
        let text: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let last = LastLines::of(&text);
        assert_eq!(last.joined(), "13\n14\n15\n16\n17\n18\n19\n20");
        assert_eq!(LastLines::of("a\nb").below(), "\n    a\n    b");
        assert_eq!(LastLines::default().below(), "");
    }
}
