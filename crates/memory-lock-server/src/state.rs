use super::{Answer, Event, EventKind, Request};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::sync::oneshot;

/// No network holds a request back for longer.
const REMEMBERED: Duration = Duration::from_secs(600);

pub type Clock = Box<dyn Fn() -> Duration + Send + Sync>;
pub type Record = Box<dyn Fn(Event) + Send + Sync>;

/// What one process of a server knows: all of it is gone with the process.
pub struct State {
    clock: Clock,
    locks: BTreeMap<String, Lock>,
    /// One counter for all keys.
    last_token: u64,
    /// The owners that released or gave up, and until when that is remembered.
    given_up: BTreeMap<String, Duration>,
    remembers: bool,
}

#[derive(Default)]
struct Lock {
    hold: Option<Hold>,
    line: VecDeque<Waiter>,
}

struct Hold {
    owner: String,
    token: u64,
    until: Duration,
}

/// One who stands in the line of a lock.
struct Waiter {
    owner: String,
    ttl: Duration,
    /// It counts as alive until then, unless it asks again.
    until: Duration,
    /// Where it hears that the lock is its own; None between two of its requests.
    word: Option<oneshot::Sender<u64>>,
}

pub enum Reply {
    Now(Answer),
    Later(Standing),
}

/// A request of one who stands in the line, and is sent the token of its grant.
pub struct Standing {
    key: String,
    owner: String,
    pub ttl: Duration,
    pub word: oneshot::Receiver<u64>,
}

impl State {
    pub fn new(clock: Clock) -> State {
        State {
            clock,
            locks: BTreeMap::new(),
            last_token: 0,
            given_up: BTreeMap::new(),
            remembers: false,
        }
    }

    pub fn reply(&mut self, request: Request, record: &Record) -> Reply {
        self.expire(record);
        Reply::Now(match request {
            Request::Acquire {
                key,
                owner,
                ttl,
                waits,
            } => return self.acquire(key, owner, ttl, waits, record),
            Request::Renew { key, owner, ttl } => self.renew(&key, &owner, ttl, record),
            Request::Release { key, owner } => self.release(&key, owner, record),
            Request::Time => Answer::Time {
                now: (self.clock)(),
            },
            Request::Remember => {
                self.remembers = true;
                Answer::Yes
            }
            Request::Remembers if self.remembers => Answer::Yes,
            Request::Remembers => Answer::No,
        })
    }

    fn acquire(
        &mut self,
        key: String,
        owner: String,
        ttl: Duration,
        waits: bool,
        record: &Record,
    ) -> Reply {
        if self.given_up.contains_key(&owner) {
            return Reply::Now(Answer::GivenUp);
        }
        let now = (self.clock)();
        let until = now + ttl;
        let lock = self.locks.entry(key.clone()).or_default();
        // Whoever was handed the lock between two of its requests counts from this one.
        match &mut lock.hold {
            Some(hold) if hold.owner == owner => {
                hold.until = until;
                record(Event::of(EventKind::Renewed, &key, hold.parts()));
                let token = hold.token;
                Reply::Now(Answer::Granted { token })
            }
            Some(hold) if !waits => Reply::Now(Answer::Held {
                left: hold.left(now),
            }),
            Some(_) => {
                let (send, word) = oneshot::channel();
                let mut line = lock.line.iter_mut();
                match line.find(|waiter| waiter.owner == owner) {
                    Some(waiter) => (waiter.until, waiter.word) = (until, Some(send)),
                    None => lock.line.push_back(Waiter {
                        owner: owner.clone(),
                        ttl,
                        until,
                        word: Some(send),
                    }),
                }
                Reply::Later(Standing {
                    key,
                    owner,
                    ttl,
                    word,
                })
            }
            // Nobody who stands in the line is alive.
            None => {
                self.last_token += 1;
                let token = self.last_token;
                let hold = Hold {
                    owner,
                    token,
                    until,
                };
                record(Event::of(EventKind::Granted, &key, hold.parts()));
                lock.hold = Some(hold);
                Reply::Now(Answer::Granted { token })
            }
        }
    }

    /// Ends a request of one who goes on waiting, and will ask again.
    pub fn waits_on(&mut self, mut standing: Standing) -> Answer {
        if let Ok(token) = standing.word.try_recv() {
            return Answer::Granted { token };
        }
        let now = (self.clock)();
        let mut left = Duration::ZERO;
        if let Some(lock) = self.locks.get_mut(&standing.key) {
            let mut line = lock.line.iter_mut();
            if let Some(waiter) = line.find(|waiter| waiter.owner == standing.owner) {
                waiter.word = None;
                waiter.until = now + waiter.ttl;
            }
            left = lock.hold.as_ref().map_or(left, |hold| hold.left(now));
        }
        Answer::Held { left }
    }

    fn renew(&mut self, key: &str, owner: &str, ttl: Duration, record: &Record) -> Answer {
        let until = (self.clock)() + ttl;
        match self.locks.get_mut(key).and_then(|lock| lock.hold.as_mut()) {
            Some(hold) if hold.owner == owner => {
                hold.until = until;
                record(Event::of(EventKind::Renewed, key, hold.parts()));
                Answer::Renewed
            }
            Some(_) => Answer::Superseded,
            None => Answer::Expired,
        }
    }

    fn release(&mut self, key: &str, owner: String, record: &Record) -> Answer {
        let now = (self.clock)();
        self.given_up.retain(|_, until| *until > now);
        self.given_up.insert(owner.clone(), now + REMEMBERED);
        let Some(lock) = self.locks.get_mut(key) else {
            return Answer::Expired;
        };
        lock.line.retain(|waiter| waiter.owner != owner);
        match lock.hold.take_if(|hold| hold.owner == owner) {
            Some(hold) => {
                record(Event::of(EventKind::Released, key, hold.parts()));
                lock.hand_over(key, now, &mut self.last_token, record);
                Answer::Released
            }
            None if lock.hold.is_some() => Answer::Superseded,
            None => Answer::Expired,
        }
    }

    /// Ends the leases that are over, and hands their locks over. Returns how long it takes until
    /// the next one is.
    pub fn expire(&mut self, record: &Record) -> Option<Duration> {
        let now = (self.clock)();
        for (key, lock) in &mut self.locks {
            if let Some(hold) = lock.hold.take_if(|hold| hold.until <= now) {
                record(Event::of(EventKind::Expired, key, hold.parts()));
                lock.hand_over(key, now, &mut self.last_token, record);
            }
        }
        self.locks
            .retain(|_, lock| lock.hold.is_some() || !lock.line.is_empty());
        let holds = self.locks.values().filter_map(|lock| lock.hold.as_ref());
        let next = holds.map(|hold| hold.until).min();
        next.map(|until| until.saturating_sub(now))
    }
}

impl Lock {
    /// Gives a lock that nobody holds to the first in its line who is alive.
    fn hand_over(&mut self, key: &str, now: Duration, last_token: &mut u64, record: &Record) {
        while let Some(waiter) = self.line.pop_front() {
            let is_gone = waiter.word.as_ref().is_some_and(|word| word.is_closed());
            if is_gone || waiter.until <= now {
                continue;
            }
            *last_token += 1;
            let hold = Hold {
                owner: waiter.owner,
                token: *last_token,
                until: now + waiter.ttl,
            };
            record(Event::of(EventKind::Granted, key, hold.parts()));
            if let Some(word) = waiter.word {
                // It is there, or its lease ends.
                let _heard = word.send(hold.token);
            }
            self.hold = Some(hold);
            return;
        }
    }
}

impl Hold {
    fn parts(&self) -> (&str, u64) {
        (&self.owner, self.token)
    }

    fn left(&self, now: Duration) -> Duration {
        self.until.saturating_sub(now)
    }
}
