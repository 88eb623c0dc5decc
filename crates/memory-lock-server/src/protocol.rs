use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A request, as one line. A key may have blanks in it, so it comes last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Asks for the lock; `waits` stands in its line if somebody else holds it.
    Acquire {
        key: String,
        owner: String,
        ttl: Duration,
        waits: bool,
    },
    Renew {
        key: String,
        owner: String,
        ttl: Duration,
    },
    /// Releases the lock, or leaves the line. A request for the lock by this owner that comes
    /// later than this is refused.
    Release {
        key: String,
        owner: String,
    },
    /// Asks for the server's clock.
    Time,
    /// Gives the server something to remember.
    Remember,
    Remembers,
}

/// An answer, as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Granted {
        token: u64,
    },
    /// Somebody else holds the lock; its lease ends after so long.
    Held {
        left: Duration,
    },
    Renewed,
    Released,
    /// Nobody holds the lock.
    Expired,
    /// Somebody else holds it.
    Superseded,
    /// The owner has released it, or given up, before this request came.
    GivenUp,
    /// The time since 1970.
    Time {
        now: Duration,
    },
    Yes,
    No,
    NotUnderstood,
}

/// This does not follow the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotALine;

const NOT_UNDERSTOOD: &str = "not understood: write `acquire OWNER TTL_MS try|wait KEY`, \
    `renew OWNER TTL_MS KEY` or `release OWNER KEY`";

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Acquire {
                key,
                owner,
                ttl,
                waits,
            } => {
                let how = if *waits { "wait" } else { "try" };
                write!(f, "acquire {owner} {} {how} {key}", ttl.as_millis())
            }
            Request::Renew { key, owner, ttl } => {
                write!(f, "renew {owner} {} {key}", ttl.as_millis())
            }
            Request::Release { key, owner } => write!(f, "release {owner} {key}"),
            Request::Time => f.write_str("time"),
            Request::Remember => f.write_str("remember"),
            Request::Remembers => f.write_str("remembers"),
        }
    }
}

impl FromStr for Request {
    type Err = NotALine;

    fn from_str(line: &str) -> Result<Request, NotALine> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "acquire" => {
                let [owner, ttl, how, key] = words(rest)?;
                Ok(Request::Acquire {
                    key: key.to_owned(),
                    owner: owner.to_owned(),
                    ttl: milliseconds(ttl)?,
                    waits: match how {
                        "try" => false,
                        "wait" => true,
                        _ => return Err(NotALine),
                    },
                })
            }
            "renew" => {
                let [owner, ttl, key] = words(rest)?;
                Ok(Request::Renew {
                    key: key.to_owned(),
                    owner: owner.to_owned(),
                    ttl: milliseconds(ttl)?,
                })
            }
            "release" => {
                let [owner, key] = words(rest)?;
                Ok(Request::Release {
                    key: key.to_owned(),
                    owner: owner.to_owned(),
                })
            }
            "time" => Ok(Request::Time),
            "remember" => Ok(Request::Remember),
            "remembers" => Ok(Request::Remembers),
            _ => Err(NotALine),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Granted { token } => write!(f, "granted {token}"),
            Answer::Held { left } => write!(f, "held {}", left.as_millis()),
            Answer::Renewed => f.write_str("renewed"),
            Answer::Released => f.write_str("released"),
            Answer::Expired => f.write_str("expired"),
            Answer::Superseded => f.write_str("superseded"),
            Answer::GivenUp => f.write_str("given-up"),
            Answer::Time { now } => write!(f, "time {}", now.as_micros()),
            Answer::Yes => f.write_str("yes"),
            Answer::No => f.write_str("no"),
            Answer::NotUnderstood => f.write_str(NOT_UNDERSTOOD),
        }
    }
}

impl FromStr for Answer {
    type Err = NotALine;

    fn from_str(line: &str) -> Result<Answer, NotALine> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "granted" => match rest.parse() {
                Ok(token) if token > 0 => Ok(Answer::Granted { token }),
                _ => Err(NotALine),
            },
            "held" => Ok(Answer::Held {
                left: milliseconds(rest)?,
            }),
            "renewed" => Ok(Answer::Renewed),
            "released" => Ok(Answer::Released),
            "expired" => Ok(Answer::Expired),
            "superseded" => Ok(Answer::Superseded),
            "given-up" => Ok(Answer::GivenUp),
            "time" => {
                let us = rest.parse().map_err(|_| NotALine)?;
                let now = Duration::from_micros(us);
                Ok(Answer::Time { now })
            }
            "yes" => Ok(Answer::Yes),
            "no" => Ok(Answer::No),
            _ if line == NOT_UNDERSTOOD => Ok(Answer::NotUnderstood),
            _ => Err(NotALine),
        }
    }
}

/// Splits a text into so many words, the last of which may have blanks in it.
fn words<const N: usize>(text: &str) -> Result<[&str; N], NotALine> {
    let words: Vec<&str> = text.splitn(N, ' ').collect();
    let words: [&str; N] = words.try_into().map_err(|_| NotALine)?;
    match words.contains(&"") {
        true => Err(NotALine),
        false => Ok(words),
    }
}

fn milliseconds(text: &str) -> Result<Duration, NotALine> {
    text.parse()
        .map(Duration::from_millis)
        .map_err(|_| NotALine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_are_read_as_they_are_written() {
        let (key, owner) = ("account 42".to_owned(), "a-1".to_owned());
        let ttl = Duration::from_millis(1500);
        for request in [
            Request::Acquire {
                key: key.clone(),
                owner: owner.clone(),
                ttl,
                waits: true,
            },
            Request::Acquire {
                key: key.clone(),
                owner: owner.clone(),
                ttl,
                waits: false,
            },
            Request::Renew {
                key: key.clone(),
                owner: owner.clone(),
                ttl,
            },
            Request::Release { key, owner },
            Request::Time,
            Request::Remember,
            Request::Remembers,
        ] {
            assert_eq!(request.to_string().parse(), Ok(request));
        }
        for answer in [
            Answer::Granted { token: 7 },
            Answer::Held { left: ttl },
            Answer::Renewed,
            Answer::Released,
            Answer::Expired,
            Answer::Superseded,
            Answer::GivenUp,
            Answer::Time { now: ttl },
            Answer::Yes,
            Answer::No,
            Answer::NotUnderstood,
        ] {
            assert_eq!(answer.to_string().parse(), Ok(answer));
        }
    }

    #[test]
    fn nonsense_is_not_read() {
        for line in [
            "",
            "GET / HTTP/1.0",
            "acquire a 1 try",
            "acquire a 1 soon k",
            "acquire a x try k",
            "acquire  1 try k",
            "renew a 1",
            "release a",
        ] {
            assert_eq!(line.parse::<Request>(), Err(NotALine), "{line}");
        }
        for line in ["granted 0", "granted", "granted -1", "held", "time x", ""] {
            assert_eq!(line.parse::<Answer>(), Err(NotALine), "{line}");
        }
    }
}
