//! Measures the length of an answer from Redis while it is being received.

use std::io;

/// This is far more than any request asks for: a thousand keys, a page of INFO.
pub const MAX_ANSWER_BYTES: u64 = 16 << 20;
/// Limits the values of an answer, because each takes more memory than its bytes.
pub const MAX_ANSWER_VALUES: u64 = 1 << 20;

/// No type byte and number of RESP are longer.
const HEAD_BYTES: usize = 32;

/// A parser that follows the frames of RESP and ignores their content.
#[derive(Default)]
pub struct Frames {
    /// The bytes of the answer that is being received.
    bytes: u64,
    values: u64,
    /// Values that are announced and have not come yet.
    due: u64,
    /// The remaining bytes of a text of announced length, including its line end.
    skip: u64,
    /// The beginning of the current line.
    head: Vec<u8>,
}

impl crate::bounded::Frames for Frames {
    fn feed(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let line_ends = bytes.iter().position(|&byte| byte == b'\n');
            let here = match self.skip {
                0 => line_ends.map_or(bytes.len(), |end| end + 1),
                skip => usize::try_from(skip).map_or(bytes.len(), |skip| skip.min(bytes.len())),
            };
            let (now, rest) = bytes.split_at(here);
            self.bytes += here as u64;
            if self.skip > 0 {
                self.skip -= here as u64;
                if self.skip == 0 {
                    self.value_ends();
                }
            } else {
                let room = HEAD_BYTES - self.head.len();
                self.head.extend(now.iter().take(room));
                if line_ends.is_some() {
                    self.line_ends();
                }
            }
            let too_long = self.bytes.saturating_add(self.skip) > MAX_ANSWER_BYTES;
            if too_long || self.values > MAX_ANSWER_VALUES {
                let why = "an answer of the server is too long to be one";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            bytes = rest;
        }
        Ok(())
    }
}

impl Frames {
    fn line_ends(&mut self) {
        let head = std::mem::take(&mut self.head);
        let number = head.get(1..).unwrap_or_default().trim_ascii_end();
        let number = str::from_utf8(number).unwrap_or_default();
        let number = number.parse::<u64>().unwrap_or(0);
        match head.first() {
            Some(b'$' | b'!' | b'=') if !head.starts_with(b"$-") => {
                self.skip = number.saturating_add(2);
            }
            Some(b'*' | b'~' | b'>') => {
                self.announce(number);
                self.value_ends();
            }
            Some(b'%') => {
                self.announce(number.saturating_mul(2));
                self.value_ends();
            }
            // The value that this attribute belongs to is still to come.
            Some(b'|') => self.announce(number.saturating_mul(2)),
            _ => self.value_ends(),
        }
    }

    fn announce(&mut self, values: u64) {
        self.due = self.due.max(1).saturating_add(values);
        self.values = self.values.saturating_add(values);
    }

    fn value_ends(&mut self) {
        self.due = self.due.saturating_sub(1);
        if self.due == 0 {
            (self.bytes, self.values) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounded::Frames as _;

    /// Returns whether the answer is accepted, however the bytes are cut.
    fn is_taken(answer: &[u8]) -> bool {
        let whole = Frames::default().feed(answer).is_ok();
        let mut frames = Frames::default();
        let pieces = answer.chunks(7).all(|piece| frames.feed(piece).is_ok());
        assert_eq!(whole, pieces);
        whole
    }

    #[test]
    fn any_number_of_short_answers_is_taken() {
        let nested = b"*3\r\n$3\r\na\nb\r\n%1\r\n+k\r\n*-1\r\n$-1\r\n";
        let push = b">3\r\n+message\r\n|1\r\n+a\r\n:1\r\n+channel\r\n$2\r\n\r\n\r\n";
        let plain = b"+OK\r\n-ERR no\r\n:1\r\n_\r\n#t\r\n,1.5\r\n*0\r\n$0\r\n\r\n";
        let mut frames = Frames::default();
        let once = [&nested[..], push, plain].concat();
        assert!(is_taken(&once));
        let times = MAX_ANSWER_BYTES as usize / once.len() + 10;
        for _ in 0..times {
            frames.feed(&once).unwrap();
        }
        assert_eq!((frames.due, frames.bytes, frames.skip), (0, 0, 0));
    }

    #[test]
    fn an_answer_without_end_is_not() {
        let word = "x".repeat(1000);
        for answer in [
            "$536870912\r\n".to_owned(),
            "$18446744073709551615\r\n".to_owned(),
            "*1000000000\r\n".to_owned(),
            "%9223372036854775807\r\n".to_owned(),
            "*2\r\n*1000000\r\n".to_owned() + &"*1000000\r\n".repeat(3),
            "*20000\r\n".to_owned() + &format!("$1000\r\n{word}\r\n").repeat(20_000),
            "+".to_owned() + &word.repeat(20_000),
        ] {
            assert!(!is_taken(answer.as_bytes()), "{:?}", &answer[..12]);
        }
    }
}
