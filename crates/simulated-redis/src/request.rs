/// Far more than a lock sends, and little enough to be held.
const BYTES_MAX: usize = 1 << 20;
const LINE_BYTES_MAX: usize = 1 << 16;

/// Takes the first command off the bytes that came in; `None` if it is not complete yet. What
/// cannot be a command is an error, after which a server closes the connection.
pub(crate) fn take(bytes: &mut Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, String> {
    let mut rest = Rest { bytes, at: 0 };
    let Some(words) = rest.words()? else {
        return Ok(None);
    };
    let length = rest.at;
    bytes.drain(..length);
    Ok(Some(words))
}

struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Rest<'_> {
    fn words(&mut self) -> Result<Option<Vec<Vec<u8>>>, String> {
        if self.bytes.first().is_some_and(|first| *first != b'*') {
            return self.line();
        }
        let Some(count) = self.number(b'*', "invalid multibulk length")? else {
            return Ok(None);
        };
        let mut words = Vec::new();
        for _ in 0..count {
            let Some(length) = self.number(b'$', "invalid bulk length")? else {
                return Ok(None);
            };
            let Some(word) = self.bytes[self.at..].get(..length + 2) else {
                return Ok(None);
            };
            words.push(word[..length].to_vec());
            self.at += length + 2;
        }
        Ok(Some(words))
    }

    /// Takes a command that is a line, as a person types it.
    fn line(&mut self) -> Result<Option<Vec<Vec<u8>>>, String> {
        let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') else {
            return match self.bytes.len() > LINE_BYTES_MAX {
                true => Err("ERR Protocol error: too big inline request".to_owned()),
                false => Ok(None),
            };
        };
        self.at = end + 1;
        let words = self.bytes[..end].split(u8::is_ascii_whitespace);
        let words = words.filter(|word| !word.is_empty());
        Ok(Some(words.map(<[u8]>::to_vec).collect()))
    }

    fn number(&mut self, kind: u8, wrong: &str) -> Result<Option<usize>, String> {
        let rest = &self.bytes[self.at..];
        match rest.first() {
            None => return Ok(None),
            Some(first) if *first != kind => {
                let (kind, got) = (kind as char, *first as char);
                return Err(format!(
                    "ERR Protocol error: expected '{kind}', got '{got}'"
                ));
            }
            Some(_) => {}
        }
        let Some(end) = rest.iter().position(|byte| *byte == b'\r') else {
            return Ok(None);
        };
        match rest.get(end + 1) {
            None => return Ok(None),
            Some(b'\n') => {}
            Some(_) => return Err(format!("ERR Protocol error: {wrong}")),
        }
        let number = str::from_utf8(&rest[1..end]).ok();
        let number = number.and_then(|text| text.parse().ok());
        let number = number.filter(|number| *number <= BYTES_MAX);
        self.at += end + 2;
        match number {
            Some(number) => Ok(Some(number)),
            None => Err(format!("ERR Protocol error: {wrong}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::take;

    #[test]
    fn commands_are_taken_one_after_the_other_and_only_when_they_are_complete() {
        let whole = b"*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n*1\r\n$4\r\nPING\r\n";
        for end in 0..whole.len() {
            let mut bytes = whole[..end].to_vec();
            let first = take(&mut bytes).unwrap();
            assert_eq!(first.is_some(), end >= 22, "{end}");
            assert_eq!(take(&mut bytes).unwrap(), None);
        }
        let mut bytes = whole.to_vec();
        let first = take(&mut bytes).unwrap().unwrap();
        assert_eq!(first, [b"GET".to_vec(), b"a\r\n".to_vec()]);
        assert_eq!(take(&mut bytes).unwrap().unwrap(), [b"PING".to_vec()]);
        assert!(bytes.is_empty());
    }

    #[test]
    fn a_line_is_a_command() {
        let mut bytes = b"GET  a \r\n\r\nPING\nEC".to_vec();
        let lines = [&["GET", "a"][..], &[], &["PING"]];
        for words in lines {
            let words: Vec<Vec<u8>> = words.iter().map(|word| (*word).into()).collect();
            assert_eq!(take(&mut bytes).unwrap(), Some(words));
        }
        assert_eq!(take(&mut bytes).unwrap(), None);
        assert!(take(&mut vec![b'x'; 1 << 17]).is_err());
    }

    #[test]
    fn what_cannot_be_a_command_is_refused() {
        for bytes in ["*1\r\n+GET\r\n", "*x\r\n", "*9999999999\r\n"] {
            assert!(take(&mut bytes.into()).is_err(), "{bytes:?}");
        }
    }
}
