use crate::LockProblem;
use redis::{ErrorKind, RedisError, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// The answer of a script: a code, whose meaning the script explains, and what belongs to
/// it.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u64,
    values: Vec<Value>,
}

/// The numbers of the requests on one connection.
///
/// Redis answers requests in their order, and answers have no numbers. If a server or
/// something in between answers twice, or in another order, then every later answer
/// belongs to another request, and could be taken for a grant. So each script gets a
/// number as its last argument, and the first number of its answer is `number * 8 + code`.
/// A grant is answered in one number, with the last 32 bits of the request's (see
/// scripts/token.lua). Lua counts in doubles, which are exact up to 2^53.
pub(super) struct Numbers(AtomicU64);

const CODES: u64 = 8;
const GRANTED: u64 = 1;

impl Numbers {
    /// Begins at a random number, so that the answer to another connection is noticed too.
    pub(super) fn of(connection: Uuid) -> Numbers {
        let (_, random) = connection.as_u64_pair();
        Numbers(AtomicU64::new(random & 0xffff_ffff_ffff))
    }

    pub(super) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

impl Reply {
    /// Reads the answer to the request with this number. Anything else means that the
    /// request has no answer, and that the connection brings none any more.
    pub(super) fn read(answer: Value, number: u64) -> Result<Reply, RedisError> {
        let (head, values) = match answer {
            Value::Array(mut values) if !values.is_empty() => (values.remove(0), values),
            head => (head, Vec::new()),
        };
        match head {
            Value::Int(head @ 0..) if head as u64 / CODES == number => Ok(Reply {
                code: head as u64 % CODES,
                values,
            }),
            Value::Int(grant @ ..0) if grant.unsigned_abs() as u32 == number as u32 => Ok(Reply {
                code: GRANTED,
                values: vec![Value::Int((grant.unsigned_abs() >> 32) as i64)],
            }),
            _ => Err((ErrorKind::Io, "an answer to something else").into()),
        }
    }

    /// Returns the numbers that come with the code, if there are so many.
    pub(crate) fn numbers<const N: usize>(&self) -> Result<[i64; N], LockProblem> {
        let numbers = self.values.iter().filter_map(|value| match value {
            Value::Int(number) => Some(*number),
            _ => None,
        });
        let numbers: Vec<i64> = numbers.collect();
        numbers.try_into().map_err(|_| self.is_strange())
    }

    /// Returns the first of the values that come with the code, if it is a text.
    pub(super) fn text(&self) -> Option<&str> {
        match self.values.first() {
            Some(Value::BulkString(bytes)) => str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    pub(crate) fn is_strange(&self) -> LockProblem {
        LockProblem::BadAnswer(format!("{} {:?}", self.code, self.values))
    }

    #[cfg(test)]
    pub(crate) fn of(code: u64, numbers: &[i64]) -> Reply {
        let values = numbers.iter().map(|number| Value::Int(*number)).collect();
        Reply { code, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_to_the_request_is_read() {
        let reply = Reply::read(Value::Int(41), 5).unwrap();
        assert_eq!(reply.code, 1);
        assert!(reply.numbers::<0>().is_ok() && reply.numbers::<1>().is_err());
        let values = vec![Value::Int(42), Value::Int(7), Value::Int(-1)];
        let reply = Reply::read(Value::Array(values), 5).unwrap();
        assert_eq!((reply.code, reply.numbers().unwrap()), (2, [7, -1]));
        let grant = Value::Int(-((7 << 32) + 5));
        let reply = Reply::read(grant, (3 << 32) + 5).unwrap();
        assert_eq!((reply.code, reply.numbers().unwrap()), (1, [7]));
        for (answer, number) in [
            (Value::Int(-((7 << 32) + 5)), 4),
            (Value::Int(i64::MIN), 5),
            (Value::Int(41), 4),
            (Value::Int(41), 6),
            (Value::Int(-41), 5),
            (Value::Okay, 0),
            (Value::Array(vec![]), 0),
        ] {
            assert!(Reply::read(answer, number).is_err());
        }
    }

    #[test]
    fn numbers_stay_exact_in_a_double() {
        let numbers = Numbers::of(Uuid::from_u128(u128::MAX));
        let first = numbers.next();
        assert!((first + (1 << 40)) * CODES + 7 < 1 << 53);
        assert_eq!(numbers.next(), first + 1);
    }
}
