//! Reads what a Redis answers to a lock. Nothing of that is long or deep, so an answer
//! that is not complete yet is read again from its beginning.

use redis::{ErrorKind, RedisError, RedisResult, Value, parse_redis_value};
use std::io;

/// This is far more than any answer to a lock needs.
const BYTES_MAX: usize = 64 << 10;
const DEPTH_MAX: u32 = 8;

/// One thing that a server says.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// The answer to the oldest request.
    To(Value),
    /// Published by somebody.
    Message { channel: String, word: String },
}

/// Reads the first answer. Returns it and its length, or `None` if it is not complete.
pub(super) fn read(bytes: &[u8]) -> RedisResult<Option<(Answer, usize)>> {
    let mut rest = Rest { bytes, at: 0 };
    let answer = if bytes.first() == Some(&b'>') {
        rest.push()?
    } else {
        rest.value(0)?.map(Answer::To)
    };
    if answer.is_none() && bytes.len() > BYTES_MAX || rest.at > BYTES_MAX {
        return Err(too_long());
    }
    Ok(answer.map(|answer| (answer, rest.at)))
}

struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    fn value(&mut self, depth: u32) -> RedisResult<Option<Value>> {
        let Some(line) = self.line() else {
            return Ok(None);
        };
        let Some((kind, text)) = line.split_first().filter(|_| depth < DEPTH_MAX) else {
            return Err(strange(line));
        };
        let value = match kind {
            b':' => Value::Int(number(line)?),
            b'+' if text == b"OK" => Value::Okay,
            b'+' => Value::SimpleString(String::from_utf8_lossy(text).into_owned()),
            b'-' => parse_redis_value(&[line, b"\r\n"].concat())?,
            b'_' => Value::Nil,
            b'$' | b'*' if number(line)? < 0 => Value::Nil,
            b'$' => match self.text(count(line)?) {
                Some(text) => Value::BulkString(text.to_owned()),
                None => return Ok(None),
            },
            // The keys and values of a map come one after the other.
            b'*' | b'>' | b'%' => {
                let of_each = if *kind == b'%' { 2 } else { 1 };
                let mut values = Vec::new();
                for _ in 0..count(line)? * of_each {
                    match self.value(depth + 1)? {
                        Some(value) => values.push(value),
                        None => return Ok(None),
                    }
                }
                Value::Array(values)
            }
            _ => return Err(strange(line)),
        };
        Ok(Some(value))
    }

    /// Reads a push: a message, or the answer to a request for messages.
    fn push(&mut self) -> RedisResult<Option<Answer>> {
        let Some(value) = self.value(0)? else {
            return Ok(None);
        };
        if let Value::Array(words) = &value
            && let [
                Value::BulkString(kind),
                Value::BulkString(channel),
                Value::BulkString(word),
            ] = words.as_slice()
            && kind == b"message"
        {
            let [channel, word] =
                [channel, word].map(|text| String::from_utf8_lossy(text).into_owned());
            return Ok(Some(Answer::Message { channel, word }));
        }
        Ok(Some(Answer::To(value)))
    }

    /// Takes a line without its end.
    fn line(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        self.at += end + 2;
        Some(&rest[..end])
    }

    /// Takes a text of this length and its end.
    fn text(&mut self, length: usize) -> Option<&'a [u8]> {
        let text = self.bytes[self.at..].get(..length + 2)?;
        self.at += text.len();
        Some(&text[..length])
    }
}

fn number(line: &[u8]) -> RedisResult<i64> {
    let number = str::from_utf8(&line[1..])
        .ok()
        .and_then(|text| text.parse().ok());
    number.ok_or_else(|| strange(line))
}

/// Reads how much of something is to come.
fn count(line: &[u8]) -> RedisResult<usize> {
    match usize::try_from(number(line)?) {
        Ok(count) if count <= BYTES_MAX => Ok(count),
        _ => Err(too_long()),
    }
}

fn too_long() -> RedisError {
    let why = "an answer of the server is too long to be one";
    io::Error::new(io::ErrorKind::InvalidData, why).into()
}

fn strange(line: &[u8]) -> RedisError {
    let line = String::from_utf8_lossy(&line[..line.len().min(40)]).into_owned();
    (
        ErrorKind::Parse,
        "the server does not talk like a Redis",
        line,
    )
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut bytes: &[u8]) -> Vec<Answer> {
        let mut answers = Vec::new();
        while let Some((answer, length)) = read(bytes).unwrap() {
            answers.push(answer);
            bytes = &bytes[length..];
        }
        assert_eq!(bytes, b"");
        answers
    }

    #[test]
    fn answers_are_read_one_after_the_other_and_only_when_they_are_complete() {
        let text = |text: &str| Value::BulkString(text.into());
        let bytes = b":-12\r\n$4\r\na\r\nb\r\n$-1\r\n*2\r\n:1\r\n*1\r\n+x\r\n+OK\r\n_\r\n\
            %1\r\n+proto\r\n:3\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n\
            >3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\na 7\r\n";
        let simple = |text: &str| Value::SimpleString(text.to_owned());
        let told = Answer::Message {
            channel: "c".to_owned(),
            word: "a 7".to_owned(),
        };
        let mut expected: Vec<Answer> = [
            Value::Int(-12),
            text("a\r\nb"),
            Value::Nil,
            Value::Array(vec![Value::Int(1), Value::Array(vec![simple("x")])]),
            Value::Okay,
            Value::Nil,
            Value::Array(vec![simple("proto"), Value::Int(3)]),
            Value::Array(vec![text("subscribe"), text("c"), Value::Int(1)]),
        ]
        .map(Answer::To)
        .into();
        expected.push(told);
        assert_eq!(all(bytes), expected);
        let mut from = 0;
        for answer in expected {
            let (first, length) = read(&bytes[from..]).unwrap().unwrap();
            assert_eq!(first, answer);
            for end in 0..length {
                assert_eq!(read(&bytes[from..from + end]).unwrap(), None);
            }
            from += length;
        }
    }

    #[test]
    fn an_error_is_an_answer() {
        let (answer, _) = read(b"-NOSCRIPT no such script\r\n").unwrap().unwrap();
        let Answer::To(value) = answer else {
            panic!("{answer:?}");
        };
        let error = value.extract_error().unwrap_err();
        assert!(super::super::lua::is_unknown(&error), "{error}");
    }

    #[test]
    fn what_is_no_answer_or_has_no_end_is_refused() {
        let long = "x".repeat(BYTES_MAX);
        for bytes in [
            "hello, I am no lock server\r\n".to_owned(),
            "\r\n".to_owned(),
            ":seven\r\n".to_owned(),
            "*1000000000\r\n".to_owned(),
            "*1\r\n".repeat(20),
            format!("+{long}"),
            "$536870912\r\n".to_owned(),
            format!("${}\r\n{long}\r\n", long.len()),
        ] {
            assert!(read(bytes.as_bytes()).is_err(), "{:?}", &bytes[..5]);
        }
    }
}
