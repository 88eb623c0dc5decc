use crate::reply::Reply;

/// Reads a number as a Redis does: without a plus, without zeros in front, without blanks.
pub(super) fn read(text: &[u8]) -> Option<i64> {
    let number: i64 = str::from_utf8(text).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == text).then_some(number)
}

pub(super) fn number(text: &[u8]) -> Result<i64, Reply> {
    read(text).ok_or_else(|| Reply::error("ERR value is not an integer or out of range"))
}
