/// A command, as it is sent.
pub(super) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// Begins a command of this many words.
    pub(super) fn new(words: usize) -> Request {
        // The usual one fits.
        let mut bytes = Vec::with_capacity(384);
        head(&mut bytes, b'*', words);
        Request { bytes }
    }

    pub(super) fn of(words: &[&str]) -> Request {
        let mut request = Request::new(words.len());
        request.words(words);
        request
    }

    pub(super) fn words(&mut self, words: &[impl AsRef<str>]) {
        for word in words {
            self.word(word.as_ref().as_bytes());
        }
    }

    pub(super) fn number(&mut self, number: u64) {
        let mut digits = [0; 20];
        self.word(decimal(number, &mut digits));
    }

    #[cfg(feature = "unsafe-modes")]
    pub(super) fn packed(command: &redis::Cmd) -> Request {
        let bytes = command.get_packed_command();
        Request { bytes }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn word(&mut self, word: &[u8]) {
        head(&mut self.bytes, b'$', word.len());
        self.bytes.extend_from_slice(word);
        self.bytes.extend_from_slice(b"\r\n");
    }
}

/// Writes a line such as `$36`.
fn head(bytes: &mut Vec<u8>, kind: u8, count: usize) {
    let mut digits = [0; 20];
    bytes.push(kind);
    bytes.extend_from_slice(decimal(count as u64, &mut digits));
    bytes.extend_from_slice(b"\r\n");
}

/// Writes a number without the machinery of formats: a request has many.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut from = digits.len();
    loop {
        from -= 1;
        digits[from] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[from..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_what_the_protocol_wants() {
        let mut request = Request::new(4);
        request.words(&["EVALSHA", ""]);
        request.number(0);
        request.number(u64::MAX);
        let mut same = redis::cmd("EVALSHA");
        same.arg("").arg(0).arg(u64::MAX);
        assert_eq!(request.bytes(), same.get_packed_command());
    }
}
