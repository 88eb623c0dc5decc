//! Reads one row of the log from its line, without a copy.

use super::cursor::Cursor;
use super::{NO_VALUE, Row};
use crate::model::{BodyHash, FencingToken, RowOutcome};
use std::ops::Range;

pub(super) use super::cursor::Letters;

/// A row whose names are still positions in the text.
pub(super) type Line = Row<Range<usize>, Range<usize>>;

const SEQ: u16 = 1;
const AT_NS: u16 = 1 << 1;
const KEY: u16 = 1 << 2;
const OUTCOME: u16 = 1 << 3;
const TOKEN: u16 = 1 << 4;
const TOKEN_SEQ: u16 = 1 << 5;
const SEEN: u16 = 1 << 6;
const OWNER: u16 = 1 << 7;
const BASED_ON: u16 = 1 << 8;
const BODY: u16 = 1 << 9;
const VALUE: u16 = 1 << 10;
const REQUIRED: u16 = SEQ | AT_NS | KEY | OUTCOME;

/// Reads the line that begins at `start` and returns where the next one begins.
///
/// `None` only means that serde has to look at the line. Serde reads every line that is
/// read here to the same row.
#[inline(always)]
pub(super) fn read(text: &[u8], start: usize, letters: Letters) -> Option<(Line, usize)> {
    let mut cursor = Cursor::new(text, start, letters);
    let mut line = Line {
        value_at: NO_VALUE,
        ..Line::default()
    };
    let found = read_fields(&mut cursor, &mut line)?;
    let is_whole = found & REQUIRED == REQUIRED && cursor.is_at(b"\n");
    is_whole.then_some((line, cursor.at()))
}

/// Reads a whole object and returns which fields it has.
#[inline(always)]
fn read_fields(cursor: &mut Cursor<'_>, line: &mut Line) -> Option<u16> {
    let mut found = 0;
    cursor.take(b"{")?;
    /// Reads the field if it is next, and returns after the last one.
    macro_rules! field {
        ($name:literal, $bit:ident, $place:ident, $read:expr) => {
            if cursor.is_at(concat!("\"", $name, "\":").as_bytes()) {
                line.$place = $read;
                if found & $bit != 0 {
                    return None;
                }
                found |= $bit;
                if cursor.is_last()? {
                    return Some(found);
                }
            }
        };
    }
    // The fields are in the order in which they are written, so one round reads them all.
    // Another order takes more rounds.
    loop {
        let start = cursor.at();
        field!("seq", SEQ, seq, cursor.number()?);
        field!("at_ns", AT_NS, at_ns, cursor.number()?);
        field!("key", KEY, key, cursor.plain_string()?);
        field!("outcome", OUTCOME, outcome, outcome(cursor)?);
        field!("token", TOKEN, token, cursor.unless_null(token)?);
        field!("token_seq", TOKEN_SEQ, token_seq, cursor.number()?);
        field!("seen", SEEN, seen, cursor.unless_null(token)?);
        field!(
            "owner",
            OWNER,
            owner,
            cursor.unless_null(Cursor::plain_string)?
        );
        field!(
            "based_on",
            BASED_ON,
            based_on,
            cursor.unless_null(Cursor::number)?
        );
        field!("body", BODY, body, cursor.unless_null(body_hash)?);
        field!(
            "value",
            VALUE,
            value_at,
            cursor.unless_null(Cursor::value)?.unwrap_or(NO_VALUE)
        );
        if cursor.at() == start {
            cursor.pass_over_field()?;
            if cursor.is_last()? {
                return Some(found);
            }
        }
    }
}

fn outcome(cursor: &mut Cursor<'_>) -> Option<RowOutcome> {
    let outcomes = [
        (&b"\"accepted\""[..], RowOutcome::Accepted),
        (b"\"rejected\"", RowOutcome::Rejected),
        (b"\"duplicate\"", RowOutcome::Duplicate),
    ];
    let found = outcomes.iter().find(|(name, _)| cursor.is_at(name));
    found.map(|(_, outcome)| *outcome)
}

fn token(cursor: &mut Cursor<'_>) -> Option<FencingToken> {
    cursor.number().map(FencingToken)
}

fn body_hash(cursor: &mut Cursor<'_>) -> Option<BodyHash> {
    let digits = cursor.plain_string()?;
    BodyHash::from_digits(cursor.text(digits))
}
