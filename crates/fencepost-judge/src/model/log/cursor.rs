//! A position in a line of JSON.

use std::ops::Range;

/// A reader. Every function moves it past what it has read, and returns `None` at
/// anything that it does not expect.
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
    /// The high bits of bytes that strings must not have.
    forbidden: u64,
}

#[derive(Clone, Copy)]
pub(super) enum Letters {
    /// For text that may not be UTF-8.
    Ascii,
    Any,
}

impl<'a> Cursor<'a> {
    #[inline(always)]
    pub fn new(text: &'a [u8], at: usize, letters: Letters) -> Cursor<'a> {
        let forbidden = match letters {
            Letters::Ascii => HIGH_BITS,
            Letters::Any => 0,
        };
        Cursor {
            text,
            at,
            forbidden,
        }
    }

    #[inline(always)]
    pub fn at(&self) -> usize {
        self.at
    }

    #[inline(always)]
    pub fn text(&self, range: Range<usize>) -> &'a [u8] {
        &self.text[range]
    }

    #[inline(always)]
    fn byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Returns the next eight bytes, the first of them lowest. It fails if the end of the
    /// text is nearer than that: then serde reads the last line.
    #[inline(always)]
    fn word(&self) -> Option<u64> {
        let bytes = self.text.get(self.at..)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    }

    /// Returns the next byte that is not a space. JSON counts `\n` as a space; here it
    /// ends the line.
    #[inline(always)]
    fn peek(&mut self) -> Option<u8> {
        while let b' ' | b'\t' | b'\r' = self.byte()? {
            self.at += 1;
        }
        self.byte()
    }

    /// Moves past the token if it is next, with or without space before it.
    #[inline(always)]
    pub fn is_at(&mut self, token: &[u8]) -> bool {
        let is_next = |cursor: &Self| {
            let rest = cursor.text.get(cursor.at..);
            rest.is_some_and(|rest| rest.starts_with(token))
        };
        // Usually there is no space, and then there is no need to look for it.
        let is_at = is_next(self)
            || matches!(self.byte(), Some(b' ' | b'\t' | b'\r')) && {
                self.peek();
                is_next(self)
            };
        if is_at {
            self.at += token.len();
        }
        is_at
    }

    #[inline(always)]
    pub fn take(&mut self, token: &[u8]) -> Option<()> {
        self.is_at(token).then_some(())
    }

    /// Returns whether a field was the last one of its object.
    #[inline(always)]
    pub fn is_last(&mut self) -> Option<bool> {
        if self.is_at(b",") {
            return Some(false);
        }
        self.take(b"}").map(|()| true)
    }

    #[inline(always)]
    pub fn unless_null<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.peek()? == b'n' {
            return self.take(b"null").map(|()| None);
        }
        read(self).map(Some)
    }

    /// Reads a whole number that surely fits. The caller refuses a fraction or an
    /// exponent behind it, because neither is a comma or the end.
    #[inline(always)]
    pub fn number(&mut self) -> Option<u64> {
        const SURELY_FIT: usize = 19;
        const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
        if self.byte()? <= b' ' {
            self.peek()?;
        }
        let start = self.at;
        let mut word = self.word()?;
        let starts_with_zero = word as u8 == b'0';
        let mut number = 0_u64;
        let mut digits = leading_digits(word);
        while digits == 8 {
            number = number.wrapping_mul(100_000_000).wrapping_add(decimal(word));
            self.at += 8;
            word = self.word()?;
            digits = leading_digits(word);
        }
        if digits > 0 {
            // Put zeros in front, in place of the bytes behind the digits.
            let last = ((word ^ ZEROS) << (64 - 8 * digits)) ^ ZEROS;
            number = number
                .wrapping_mul(POWERS[digits])
                .wrapping_add(decimal(last));
            self.at += digits;
        }
        let digits = self.at - start;
        let is_plain = !starts_with_zero || digits == 1;
        (is_plain && (1..=SURELY_FIT).contains(&digits)).then_some(number)
    }

    /// Reads a string without an escape, which the text contains unchanged.
    #[inline(always)]
    pub fn plain_string(&mut self) -> Option<Range<usize>> {
        self.take(b"\"")?;
        let start = self.at;
        if self.skip_to_special()? != b'"' {
            return None;
        }
        self.at += 1;
        Some(start..self.at - 1)
    }

    /// Moves to the next quote, backslash, control character or forbidden letter.
    #[inline(always)]
    fn skip_to_special(&mut self) -> Option<u8> {
        loop {
            let word = self.word()?;
            let special = special_bytes(word) | (word & self.forbidden);
            if special != 0 {
                self.at += special.trailing_zeros() as usize / 8;
                return self.byte();
            }
            self.at += size_of::<u64>();
        }
    }

    /// Reads a value, and returns where it begins.
    pub fn value(&mut self) -> Option<usize> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => self.string()?,
            b'[' => self.bytes()?,
            _ => return None,
        }
        Some(start)
    }

    fn string(&mut self) -> Option<()> {
        self.take(b"\"")?;
        loop {
            let special = self.skip_to_special()?;
            self.at += 1;
            match special {
                b'"' => return Some(()),
                // This is by far the most frequent case: JSON within JSON.
                b'\\' if self.byte()? == b'"' => self.at += 1,
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    /// Reads the part of an escape that follows its backslash.
    fn escape(&mut self) -> Option<()> {
        let kind = self.byte()?;
        self.at += 1;
        match kind {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.text.get(self.at..self.at + 4)?;
                self.at += 4;
                // Half a surrogate pair needs its other half: leave that to serde.
                let is_half = digits[0].eq_ignore_ascii_case(&b'd') && digits[1] >= b'8';
                (digits.iter().all(u8::is_ascii_hexdigit) && !is_half).then_some(())
            }
            _ => None,
        }
    }

    fn bytes(&mut self) -> Option<()> {
        self.take(b"[")?;
        if self.peek()? == b']' {
            self.at += 1;
            return Some(());
        }
        loop {
            u8::try_from(self.number()?).ok()?;
            let next = self.peek()?;
            self.at += 1;
            match next {
                b',' => {}
                b']' => return Some(()),
                _ => return None,
            }
        }
    }

    /// Passes over a field that a row does not have, if its value is not an object or a
    /// list. With space before the colon it may be one that a row does have.
    pub fn pass_over_field(&mut self) -> Option<()> {
        self.plain_string()?;
        if self.byte()? != b':' {
            return None;
        }
        self.at += 1;
        match self.peek()? {
            b'"' => self.string(),
            b'n' => self.take(b"null"),
            b't' => self.take(b"true"),
            b'f' => self.take(b"false"),
            _ => self.number().map(|_| ()),
        }
    }
}

const ONES: u64 = u64::MAX / 0xff;
const HIGH_BITS: u64 = ONES << 7;
const ZEROS: u64 = ONES * b'0' as u64;

/// Returns the high bit of every ASCII byte that is a quote, a backslash or a control
/// character; above the first of them, perhaps of others too.
#[inline(always)]
fn special_bytes(word: u64) -> u64 {
    // A byte that is less than n borrows from its high bit when n is subtracted.
    let quote = (word ^ (ONES * b'"' as u64)).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    let control = word.wrapping_sub(ONES * 0x20);
    (quote | backslash | control) & !word & HIGH_BITS
}

#[inline(always)]
fn leading_digits(word: u64) -> usize {
    // A digit becomes 0 to 9, and only that stays below 128 when 118 is added.
    let values = word ^ ZEROS;
    let others = (((values & !HIGH_BITS) + ONES * (128 - 10)) | values) & HIGH_BITS;
    others.trailing_zeros() as usize / 8
}

/// Returns the number that eight digits stand for: neighbours are combined, then pairs,
/// then fours.
#[inline(always)]
fn decimal(digits: u64) -> u64 {
    let ones = digits ^ ZEROS;
    let pairs = (ones * 10 + (ones >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    (fours * 10_000 + (fours >> 32)) & 0xffff_ffff
}
