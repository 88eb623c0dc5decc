//! Holds of keys and requests for them, as the workers report them.

mod worker;

use super::*;
use worker::Worker;

/// A time in which a worker held a key, or may have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Hold<'a> {
    pub worker: &'a str,
    pub key: &'a str,
    pub round: u32,
    /// The lock service that granted it, if the scenario says which. Holds of one service
    /// and one key exclude each other.
    pub service: &'a str,
    pub service_plan: ServicePlan,
    pub ttl_ns: Option<u64>,
    /// The time for which a grant, or a renewal, is certainly valid.
    covers_ns: Option<u64>,
    /// The content of the grant; absent if an acquire failed without an answer.
    pub grant: Option<Grant<'a>>,
    /// When its worker began to ask for the key, including earlier attempts that failed.
    pub wanted_ns: u64,
    /// When it began the attempt that was granted: no grant came before.
    pub asked_ns: u64,
    pub from_ns: u64,
    /// Until here the worker certainly believed in its hold: it had not begun to
    /// release and had not learned of a loss.
    pub to_ns: u64,
    /// Until here it may have gone on; later than `to_ns` only if an operation stayed
    /// without an answer.
    pub possibly_to_ns: u64,
    /// False if the history just stops in the middle of the hold.
    pub ended: bool,
    /// When it was over: released (with an answer), lost, left, or ended with its worker.
    /// For a killed worker this is when the signal was sent: its death may be observed
    /// much later.
    pub over_ns: Option<u64>,
    /// Until here its service has certainly promised that nobody else holds it. While the
    /// history is still being read, this is how far renewals reach.
    pub covered_to_ns: Option<u64>,
    pub releasing_ns: Option<u64>,
    pub released: Option<(u64, ReleaseOutcome)>,
    pub lost_ns: Option<u64>,
    /// The worker's last report that it holds the lock: the grant, or a renewal.
    pub confirmed_ns: u64,
    pub renewals: u32,
    /// Until when the worker said that it may believe in it: at the grant, and in its
    /// last report.
    pub granted_until_ns: Option<u64>,
    pub valid_until_ns: Option<u64>,
    /// The first write that was sent after `valid_until_ns`, by a worker that could have
    /// looked at its clock.
    pub wrote_late_ns: Option<u64>,
    /// Whether its worker went on without reporting its end.
    pub is_left: bool,
    /// Whether its worker's rows can be relied on.
    pub is_sound: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Grant<'a> {
    pub token: Option<FencingToken>,
    pub owner: &'a str,
}

/// A worker's request for a key, until the answer or the end of the request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ask<'a> {
    pub worker: &'a str,
    pub key: &'a str,
    pub service: &'a str,
    pub ttl_ns: Option<u64>,
    pub from_ns: u64,
    /// When it was granted, failed or was given up, or the record ends.
    pub to_ns: u64,
    pub end: AskEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskEnd {
    Granted,
    Failed,
    /// Its worker reported something else, or died.
    GivenUp,
    /// The worker still asked when the record ended.
    StillAsking,
}

pub(super) struct Holds<'a> {
    /// Sorted by their beginning.
    pub all: Vec<Hold<'a>>,
    pub asks: Vec<Ask<'a>>,
    /// The first event, from which times are counted for people.
    pub start_ns: u64,
    /// When the record ends: nothing is known of later events.
    pub end_ns: u64,
}

/// Returns by how much the clocks of one machine may differ while a TTL runs, and how
/// exactly servers count: at the end of its TTL a hold is not certain for this long.
pub(super) fn margin_ns(ttl_ns: u64) -> u64 {
    1_000_000 + ttl_ns / 1_000
}

/// Reads the holds of all workers.
///
/// Waiting is not holding: a hold begins with the answer `acquired`. A release that is
/// answered `expired` or `superseded` ends a hold like any other, whatever the lock
/// server did. So does the death of a worker that was killed on purpose.
pub(super) fn of<'a>(sound: &Sound<'a>, episodes: &Episodes<'a>) -> Holds<'a> {
    let mut workers: HashMap<&str, Worker> = HashMap::new();
    let mut holds = Vec::new();
    let mut asks = Vec::new();
    let end_ns = end_of(sound);
    let planned = &sound.record.plan.workers;
    let mut faults = sound.faults.iter();
    let only_workers_fail = faults.all(|row| planned.contains_key(&row.target));
    for &event in &sound.history {
        let name = event.worker.as_str();
        let worker = workers
            .entry(name)
            .or_insert_with(|| Worker::new(name, sound, episodes, only_workers_fail));
        worker.follow(event, &mut holds, &mut asks);
    }
    let history_end_ns = sound.history.iter().map(|event| event.at_ns).max();
    let history_end_ns = history_end_ns.unwrap_or(0);
    let start_ns = sound.history.iter().map(|event| event.at_ns).min();
    for (name, worker) in workers {
        let killed_ns = episodes.killed_ns(name);
        let kill_sent_ns = episodes.kill_sent_ns(name);
        for &open in worker.open.iter().chain(&worker.abandoned) {
            let hold = &mut holds[open];
            hold.ended = killed_ns.is_some();
            hold.over_ns = kill_sent_ns;
            hold.possibly_to_ns = killed_ns.unwrap_or(history_end_ns);
            // A history that just stops may have lost the release.
            hold.is_left |= killed_ns.is_none() && sound.record.gaps.is_empty();
        }
        if let Some(unanswered) = worker.releasing {
            holds[unanswered].over_ns = kill_sent_ns;
        }
        if let Some(ask) = worker.asking {
            let ask: &mut Ask = &mut asks[ask];
            (ask.to_ns, ask.end) = match kill_sent_ns {
                Some(sent_ns) => (sent_ns.max(ask.from_ns), AskEnd::GivenUp),
                None => (end_ns.max(ask.from_ns), AskEnd::StillAsking),
            };
        }
    }
    for hold in &mut holds {
        hold.covered_to_ns = hold.covered();
    }
    holds.sort_by_key(|hold| hold.from_ns);
    Holds {
        all: holds,
        asks,
        start_ns: start_ns.unwrap_or(0),
        end_ns,
    }
}

fn end_of(sound: &Sound) -> u64 {
    let told = sound.history.iter().map(|event| event.at_ns);
    let seen = sound.locks.iter().map(|row| row.at_ns);
    let done = sound.faults.iter().map(|row| row.at_ns);
    let decided = sound.log.last().map(|row| row.at_ns);
    let all = told.chain(seen).chain(decided);
    // The healing at the end comes after the timeline.
    let last_ns = match sound.record.ended_ns {
        Some(ended_ns) => all.chain([ended_ns]).max(),
        None => all.chain(done).max(),
    };
    last_ns.unwrap_or(0)
}

impl Hold<'_> {
    /// Prolongs the hold by a confirmed renewal, which was sent after the worker's report
    /// before it.
    fn prolong(&mut self, sent_after_ns: u64, valid_until_ns: Option<u64>) {
        let covers_ns = self.covers_ns;
        let sent_ns = covers_ns.map(|covers_ns| sent_after_ns.saturating_add(covers_ns));
        self.covered_to_ns = self.covered_to_ns.max(sent_ns).max(valid_until_ns);
    }

    fn leave(&mut self, at_ns: u64) {
        self.ended = true;
        self.is_left = true;
        self.over_ns = Some(at_ns);
    }

    /// Returns the end of the time that the service has promised: a TTL from the earliest
    /// possible grant, or from the earliest sending of the last confirmed renewal, and no
    /// longer than the worker itself wanted it, or lived if the service frees the holds of the
    /// dead.
    fn covered(&self) -> Option<u64> {
        self.grant?;
        let ttl_ns = self.ttl_ns.unwrap_or(0);
        let covers_ns = self.covers_ns;
        let granted_to_ns = covers_ns.map(|covers_ns| self.asked_ns.saturating_add(covers_ns));
        let to_ns = granted_to_ns.max(self.covered_to_ns)?;
        let to_ns = to_ns.saturating_sub(margin_ns(ttl_ns));
        let is_over = self.released.is_some() || self.is_left;
        let given_up_ns = self.given_up_ns().or(is_over.then_some(self.to_ns));
        let died_ns = self.over_ns.filter(|_| self.service_plan.ends_with_worker);
        let ends = [given_up_ns, died_ns].into_iter().flatten();
        Some(ends.fold(to_ns, u64::min))
    }

    /// Returns when its worker reported that it does not want it, or have it, any more.
    pub fn given_up_ns(&self) -> Option<u64> {
        [self.releasing_ns, self.lost_ns]
            .into_iter()
            .flatten()
            .min()
    }

    pub fn owner(&self) -> Option<&str> {
        self.grant.map(|grant| grant.owner)
    }

    pub fn token(&self) -> Option<FencingToken> {
        self.grant?.token
    }
}
