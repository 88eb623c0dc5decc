/// A counter of the answers to a batch. Every command here is answered with one line, which may
/// arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct Replies {
    /// The beginning of a line whose end has not arrived yet.
    unfinished: Vec<u8>,
    pub(super) ok: u64,
    /// The answers to the marker and to removals.
    numbers: u64,
    /// Keys that existed already, so that nothing was written.
    pub(super) nil: u64,
    /// The first error, in the server's words.
    pub(super) error: Option<String>,
    errors: u64,
}

/// Redis never answers our commands with a longer line.
const LONGEST_LINE: usize = 4096;

impl Replies {
    pub(super) fn seen(&self) -> u64 {
        self.ok + self.numbers + self.nil + self.errors
    }

    /// Reads more bytes. Fails on anything that a Redis would not send.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end + 1);
            bytes = rest;
            if self.unfinished.is_empty() {
                self.line(line)?;
            } else {
                let mut whole = std::mem::take(&mut self.unfinished);
                whole.extend_from_slice(line);
                self.line(&whole)?;
            }
        }
        self.unfinished.extend_from_slice(bytes);
        match self.unfinished.len() > LONGEST_LINE {
            true => Err("an answer without an end".to_owned()),
            false => Ok(()),
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        match line {
            b"$-1\r\n" => self.nil += 1,
            [b'+', .., b'\r', b'\n'] => self.ok += 1,
            [b':', .., b'\r', b'\n'] => self.numbers += 1,
            [b'-', text @ .., b'\r', b'\n'] => {
                self.errors += 1;
                let text = || String::from_utf8_lossy(text).into_owned();
                self.error.get_or_insert_with(text);
            }
            other => {
                let text = String::from_utf8_lossy(other);
                return Err(format!("{:?} is no answer of a Redis", text.trim_end()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_however_they_are_cut() {
        let all = b"+OK\r\n$-1\r\n+OK\r\n-OOM command not allowed\r\n:3\r\n-OOM again\r\n";
        for cut in 0..all.len() {
            let mut replies = Replies::default();
            replies.feed(&all[..cut]).unwrap();
            replies.feed(&all[cut..]).unwrap();
            assert_eq!((replies.ok, replies.nil, replies.errors), (2, 1, 2));
            assert_eq!(replies.seen(), 6);
            assert_eq!(replies.error.as_deref(), Some("OOM command not allowed"));
        }
    }

    #[test]
    fn what_is_no_redis_is_said_so() {
        let refused = Replies::default().feed(b"HTTP/1.1 400 Bad Request\r\n");
        assert!(refused.unwrap_err().contains("HTTP/1.1 400"));
        let endless = Replies::default().feed(&[b'+'; 5000]);
        assert!(endless.is_err());
    }
}
