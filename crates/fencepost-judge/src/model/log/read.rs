use super::line::{self, Letters, Line};
use super::{Key, Log, Owner, Row, Text};
use crate::model::LogRow;

#[derive(Clone, Debug, Default)]
pub struct LogFile {
    pub log: Log,
    /// Whether the last line has no end, as a killed run leaves it. That line is not in
    /// the log.
    pub torn: bool,
}

/// The first line that is not a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct BadRow {
    /// Counted from 1.
    pub line: usize,
    pub reason: String,
}

impl Log {
    /// Reads lines of JSON, each a [`LogRow`]. The text becomes part of the log: names
    /// and values stay where they are.
    ///
    /// A line in the format that the resource writes is read by hand. Any other line goes
    /// through serde, which alone decides what is a row and what is wrong with it.
    pub fn read_jsonl(mut text: Vec<u8>) -> Result<LogFile, BadRow> {
        let last = text.iter().rposition(|byte| *byte == b'\n');
        let end = last.map_or(0, |last| last + 1);
        let torn = end < text.len();
        text.truncate(end);
        let mut reader = Reader {
            log: Log {
                text: Text::of_file(text),
                ..Log::default()
            },
            batch: Vec::with_capacity(BATCH),
        };
        let lines = expected_lines(reader.log.text.file());
        reserve(&mut reader.log.rows, lines);
        let mut at = 0;
        while at < end {
            at = reader.read_line(at)?;
        }
        reader.push_batch();
        let log = reader.log;
        Ok(LogFile { log, torn })
    }
}

struct Reader {
    log: Log,
    /// Lines that were read and are not rows yet: looking up many names at once is
    /// fastest.
    batch: Vec<Line>,
}

const BATCH: usize = 64;

impl Reader {
    /// Reads the line at `start` and returns where the next one begins.
    fn read_line(&mut self, start: usize) -> Result<usize, BadRow> {
        if self.batch.len() == BATCH {
            self.push_batch();
        }
        match line::read(self.log.text.file(), start, Letters::Ascii) {
            Some((line, end)) => {
                self.batch.push(line);
                Ok(end)
            }
            None => self.read_odd_line(start),
        }
    }

    #[cold]
    fn read_odd_line(&mut self, start: usize) -> Result<usize, BadRow> {
        let text = self.log.text.file();
        let line = text[start..].split(|byte| *byte == b'\n').next();
        let line = line.unwrap_or_default();
        let end = start + line.len() + 1;
        let bad_row = |reason| BadRow {
            // Every line before this one is a row.
            line: self.log.rows.len() + self.batch.len() + 1,
            reason,
        };
        let line = str::from_utf8(line).map_err(|error| {
            let column = error.valid_up_to() + 1;
            bad_row(format!("invalid UTF-8 at line 1 column {column}"))
        })?;
        if !line.is_ascii()
            && let Some((line, end)) = line::read(text, start, Letters::Any)
        {
            self.batch.push(line);
            return Ok(end);
        }
        let row: LogRow = serde_json::from_str(line).map_err(|error| bad_row(error.to_string()))?;
        self.push_batch();
        reserve(&mut self.log.rows, 1);
        self.log.push(row);
        Ok(end)
    }

    fn push_batch(&mut self) {
        let log = &mut self.log;
        reserve(&mut log.rows, self.batch.len());
        let names = self.batch.iter().map(|line| line.key.clone());
        let keys = log.keys.numbers(&log.text, names.collect());
        let names = self.batch.iter().filter_map(|line| line.owner.clone());
        let mut owners = log.owners.numbers(&log.text, names.collect()).into_iter();
        let lines = self.batch.drain(..).zip(keys);
        log.rows.extend(lines.map(|(line, key)| Row {
            seq: line.seq,
            at_ns: line.at_ns,
            key: Key(key),
            outcome: line.outcome,
            token: line.token,
            token_seq: line.token_seq,
            seen: line.seen,
            owner: line.owner.and_then(|_| owners.next()).map(Owner),
            based_on: line.based_on,
            body: line.body,
            value_at: line.value_at,
        }));
    }
}

/// Makes room for `more` rows, and for few others: a list that doubles could take more
/// memory than the file.
fn reserve(rows: &mut Vec<Row>, more: usize) {
    const FEWEST: usize = 1024;
    if rows.capacity() - rows.len() < more {
        rows.reserve_exact(more.max(rows.len() / 16).max(FEWEST));
    }
}

/// Estimates the number of lines by a look at a few places.
fn expected_lines(text: &[u8]) -> usize {
    const PLACES: usize = 64;
    const LOOK: usize = 16 << 10;
    if text.len() <= PLACES * LOOK {
        return count_lines(text);
    }
    let between = text.len() / PLACES;
    let looks = text.chunks(between).take(PLACES);
    let lines: usize = looks.map(|part| count_lines(&part[..LOOK])).sum();
    let per_byte = lines as f64 / (PLACES * LOOK) as f64;
    // Add one percent to the estimate.
    (text.len() as f64 * per_byte * 1.01) as usize
}

fn count_lines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}
