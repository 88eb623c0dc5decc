use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::fmt;

/// The first 16 hexadecimal digits of the SHA-256 of a body: enough to see that the body
/// sent is the body logged, and short enough for every row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BodyHash(pub u64);

/// The value of each hexadecimal digit, and a larger number elsewhere. A table is used
/// for speed: every row of a log has a hash.
const DIGITS: [u8; 256] = {
    let mut digits = [u8::MAX; 256];
    let mut value = 0;
    while value < 16 {
        digits[b"0123456789abcdef"[value] as usize] = value as u8;
        digits[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    digits
};

impl BodyHash {
    pub fn of(body: &[u8]) -> BodyHash {
        let digest = Sha256::digest(body);
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        BodyHash(u64::from_be_bytes(first))
    }

    pub fn parse(text: &str) -> Option<BodyHash> {
        BodyHash::from_digits(text.as_bytes())
    }

    pub(super) fn from_digits(digits: &[u8]) -> Option<BodyHash> {
        let digits: &[u8; 16] = digits.try_into().ok()?;
        let (mut number, mut all) = (0, 0);
        for digit in digits {
            let value = DIGITS[usize::from(*digit)];
            number = (number << 4) | u64::from(value);
            all |= value;
        }
        (all < 16).then_some(BodyHash(number))
    }
}

impl fmt::Display for BodyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for BodyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for BodyHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BodyHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<BodyHash, D::Error> {
        let text = String::deserialize(deserializer)?;
        BodyHash::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(format!("`{text}` is not 16 hexadecimal digits"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_the_head_of_what_sha256sum_prints() {
        let hash = BodyHash::of(b"hello\n");
        assert_eq!(hash.to_string(), "5891b5b522d5df08");
        assert_eq!(BodyHash::parse("5891b5b522d5df08"), Some(hash));
        for odd in ["", "5891", "5891b5b522d5df0x", "+891b5b522d5df08"] {
            assert_eq!(BodyHash::parse(odd), None, "{odd}");
        }
    }
}
