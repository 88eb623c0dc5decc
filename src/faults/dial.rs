//! How far the clock of a node is ahead of this machine's, as the node itself reports.

use super::{Field, Proof};
use crate::clock::{raw_monotonic_ns, wall_clock_ns};
use crate::model::{ClockName, Name, UnprovenReason};
use crate::services::{Reached, unix_s};

/// The source that a clock is read from.
pub enum Dial {
    /// The server's own answer to the question for its time.
    Server(Reached),
    /// The `Date` of an answer, which has whole seconds.
    Http(Reached),
    /// The time that is left of a lease, in whole seconds, by the leader's clock.
    Lease {
        leader: Reached,
        lease: i64,
        /// The time that was left of it, and when.
        left_s: i64,
        at_ns: u64,
    },
    /// The worker's own report.
    Worker { worker: Name, clock: ClockName },
}

/// How far a clock is ahead, and how exact that is.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    pub ns: i64,
    pub give_or_take_ns: i64,
    /// The time of the reading, by a clock that nobody skews.
    pub at_ns: u64,
}

/// A reader that is interrupted between two clocks reads nonsense. Of this many readings at
/// least one is hardly disturbed.
const READINGS: usize = 5;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;

impl Dial {
    pub async fn of(field: &Field, node: &Name, clock: ClockName) -> Proof<Dial> {
        match (field.server(node).await?, clock) {
            (None, clock) => Ok(Dial::Worker {
                worker: node.to_owned(),
                clock,
            }),
            (Some(server), ClockName::Realtime) => {
                let tells_it = server.answers.time(&server).await?.is_some();
                Ok(if tells_it {
                    Dial::Server(server)
                } else {
                    Dial::Http(server)
                })
            }
            (Some(server), ClockName::Monotonic) if server.answers.has_lease_clock() => {
                if server.answers.leads(&server).await? != Some(true) {
                    return Err(UnprovenReason::ClockOfNoLeader);
                }
                let lease = server.answers.grant_lease(&server).await?;
                Ok(Dial::Lease {
                    left_s: server.answers.lease_left_s(&server, lease).await?,
                    at_ns: raw_monotonic_ns(),
                    leader: server,
                    lease,
                })
            }
            (Some(_), ClockName::Monotonic) => Err(UnprovenReason::ClockHidden),
        }
    }

    /// Returns the smallest difference that can be distinguished from none.
    pub fn resolution_ns(&self) -> i64 {
        match self {
            Dial::Server(_) | Dial::Worker { .. } => 20 * MS,
            Dial::Http(_) | Dial::Lease { .. } => 5 * SECOND,
        }
    }

    pub async fn read(&self, field: &Field) -> Proof<Ahead> {
        match self {
            Dial::Server(server) => {
                let ask = || async {
                    let told = server.answers.time(server).await?;
                    told.ok_or(UnprovenReason::ClockHidden)
                };
                most_exact(ask).await
            }
            Dial::Http(server) => {
                let before = wall_clock_ns();
                let theirs = unix_s(server).await? * SECOND + SECOND / 2;
                let read = compared(theirs, before, wall_clock_ns());
                Ok(Ahead {
                    // Some servers update their date only once a second.
                    give_or_take_ns: read.give_or_take_ns + SECOND,
                    ..read
                })
            }
            Dial::Lease {
                leader,
                lease,
                left_s,
                at_ns,
            } => {
                let now_left_s = leader.answers.lease_left_s(leader, *lease).await?;
                let now_ns = raw_monotonic_ns();
                Ok(Ahead {
                    ns: (left_s - now_left_s) * SECOND - (now_ns - at_ns) as i64,
                    give_or_take_ns: SECOND,
                    at_ns: now_ns,
                })
            }
            Dial::Worker { worker, clock } => {
                let mut best = report_of(field, worker, *clock).await?;
                for _ in 1..READINGS {
                    let read = report_of(field, worker, *clock).await?;
                    // The worker reads its clocks first and its report is stamped later: any delay
                    // between makes the clock seem behind, never ahead.
                    if read.ns > best.ns {
                        best = read;
                    }
                }
                Ok(best)
            }
        }
    }

    /// Removes what the reading left at the server.
    pub async fn put_away(&self) {
        if let Dial::Lease { leader, lease, .. } = self {
            // Otherwise the lease expires by itself.
            let _ = leader.answers.revoke_lease(leader, *lease).await;
        }
    }
}

/// Asks several times for a time of theirs between two of ours.
async fn most_exact<F: Future<Output = Proof<(i64, i64, i64)>>>(
    ask: impl Fn() -> F,
) -> Proof<Ahead> {
    let mut best: Option<Ahead> = None;
    for _ in 0..READINGS {
        let (before, theirs, after) = ask().await?;
        let read = compared(theirs, before, after);
        if best.is_none_or(|best| read.give_or_take_ns < best.give_or_take_ns) {
            best = Some(read);
        }
    }
    Ok(best.expect("it was read at least once"))
}

async fn report_of(field: &Field, worker: &Name, clock: ClockName) -> Proof<Ahead> {
    let reading = field.worker_clocks.read(worker).await?;
    let raw_ns = reading.raw_ns as i64;
    Ok(Ahead {
        ns: match clock {
            ClockName::Monotonic => reading.monotonic_ns - raw_ns,
            ClockName::Realtime => {
                reading.realtime_ns - (raw_ns + realtime_ahead_of_monotonic_ns())
            }
        },
        give_or_take_ns: 4 * MS,
        at_ns: reading.raw_ns,
    })
}

/// Compares this machine's own clocks: the difference must be the same before and after every
/// skew.
pub fn realtime_ahead_of_monotonic_ns() -> i64 {
    let read = |_| {
        let before = raw_monotonic_ns();
        let realtime = wall_clock_ns();
        let took_ns = raw_monotonic_ns() - before;
        (took_ns, realtime - (before + took_ns / 2) as i64)
    };
    let best = (0..READINGS).map(read).min();
    best.expect("it was read at least once").1
}

fn compared(theirs: i64, before: i64, after: i64) -> Ahead {
    Ahead {
        ns: theirs - (before + after) / 2,
        give_or_take_ns: (after - before) / 2 + MS,
        at_ns: raw_monotonic_ns(),
    }
}
