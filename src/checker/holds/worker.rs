use super::{Ask, AskEnd, Grant, Hold};
use crate::checker::disturbance::{Span, merged, touch};
use crate::checker::episodes::Episodes;
use crate::checker::sound::Sound;
use crate::model::{Event, EventKind, FaultKind, Gate, ReleaseOutcome, Step, WorkerPlan};
use std::collections::HashMap;

/// A process may be put aside for a moment between its look at the clock and what
/// it says next.
const PUT_ASIDE_NS: u64 = 1_000_000_000;

/// So many holds of one worker are followed at a time. Of the oldest beyond that it is
/// not known how they ended.
const MOST_OPEN: usize = 256;

/// How far one worker has come. Holds are named by their index.
pub(super) struct Worker<'a> {
    service: &'a str,
    ttl_ns: Option<u64>,
    /// For how long a grant is certainly good.
    covers_ns: Option<u64>,
    /// Its word for its validity is that of its lock, and its clock was right.
    is_exact: bool,
    /// Its own word for its validity is as wrong as its clock.
    clock_was_off: bool,
    is_sound: bool,
    /// When it was stopped, or its clock was off.
    stops: Vec<Span>,
    last_ns: Option<u64>,
    acquiring: Option<(u32, &'a str, u64)>,
    pub asking: Option<usize>,
    /// Since when it has asked for each key that it was not granted yet.
    wanting: HashMap<&'a str, u64>,
    pub open: Vec<usize>,
    /// Begun by an earlier process of the same name that never ended them.
    pub abandoned: Vec<usize>,
    /// Its latest hold of each key, also one that it has given up already.
    latest: HashMap<&'a str, usize>,
    /// The release that was sent and not answered yet.
    pub releasing: Option<usize>,
    /// It stands at the gate directly before its write.
    is_at_the_write: bool,
}

impl<'a> Worker<'a> {
    /// `only_workers_fail`: no fault touches anything else.
    pub fn new(
        name: &'a str,
        sound: &Sound<'a>,
        episodes: &Episodes<'a>,
        only_workers_fail: bool,
    ) -> Worker<'a> {
        let plan = sound.record.plan.worker(name);
        let of = |kinds: [FaultKind; 2]| {
            let own = episodes.of_target(name);
            own.filter(move |it| kinds.contains(&it.kind))
        };
        let clock_is_off = || of([FaultKind::Skew, FaultKind::Drift]);
        let stops = of([FaultKind::Pause, FaultKind::Freeze]).chain(clock_is_off());
        Worker {
            service: plan.map_or("", |plan| plan.service.as_str()),
            ttl_ns: plan.map(|plan| plan.ttl_ns),
            covers_ns: plan.and_then(|plan| covers_ns(plan, only_workers_fail)),
            is_exact: plan.is_none_or(|plan| plan.is_ours) && clock_is_off().next().is_none(),
            clock_was_off: clock_is_off().next().is_some(),
            is_sound: !sound.odd_workers.contains(name),
            stops: merged(
                stops
                    .map(|it| (it.requested_ns(), it.over_ns().unwrap_or(u64::MAX)))
                    .filter(|(from_ns, to_ns)| from_ns <= to_ns)
                    .collect(),
            ),
            last_ns: None,
            acquiring: None,
            asking: None,
            wanting: HashMap::new(),
            open: Vec::new(),
            abandoned: Vec::new(),
            latest: HashMap::new(),
            releasing: None,
            is_at_the_write: false,
        }
    }

    pub fn follow(&mut self, event: &'a Event, holds: &mut Vec<Hold<'a>>, asks: &mut Vec<Ask<'a>>) {
        let at_ns = event.at_ns;
        if matches!(event.kind, EventKind::Clock { .. }) {
            return;
        }
        if let Some(round) = round(&event.kind) {
            self.leave_rounds_before(round, at_ns, holds);
        }
        if matches!(event.kind, EventKind::Ready { .. }) {
            self.begin_anew();
        }
        self.end_asking(event, asks);
        // An answer comes after the fact: by the time of `released`, the key may
        // long be somebody else's, so that event does not prolong a hold.
        if !matches!(event.kind, EventKind::Released { .. }) {
            for &open in &self.open {
                holds[open].to_ns = at_ns.max(holds[open].from_ns);
            }
        }
        match &event.kind {
            EventKind::Acquiring { round, key } => {
                self.acquiring = Some((*round, key, at_ns));
                self.wanting.entry(key).or_insert(at_ns);
                self.asking = Some(asks.len());
                asks.push(Ask {
                    worker: &event.worker,
                    key,
                    service: self.service,
                    ttl_ns: self.ttl_ns,
                    from_ns: at_ns,
                    to_ns: at_ns,
                    end: AskEnd::StillAsking,
                });
            }
            EventKind::Acquired {
                round,
                key,
                token,
                owner,
                valid_until_ns,
            } => {
                let asked = self.acquiring.take();
                let asked = asked.filter(|&(_, asked, _)| asked == key);
                // A worker that does not say when it asked did so after its last word.
                let asked_ns = asked.map(|(_, _, at_ns)| at_ns);
                let asked_ns = asked_ns.or(self.last_ns).unwrap_or(at_ns);
                if self.open.len() == MOST_OPEN {
                    self.abandoned.push(self.open.remove(0));
                }
                self.open.push(holds.len());
                self.latest.insert(key, holds.len());
                holds.push(Hold {
                    covered_to_ns: valid_until_ns.filter(|_| self.is_exact),
                    grant: Some(Grant {
                        token: *token,
                        owner,
                    }),
                    wanted_ns: self.wanting.remove(key.as_str()).unwrap_or(at_ns),
                    asked_ns: asked_ns.min(at_ns),
                    granted_until_ns: valid_until_ns.filter(|_| !self.clock_was_off),
                    valid_until_ns: *valid_until_ns,
                    ..self.hold(event, key, *round, at_ns)
                });
            }
            EventKind::Failed {
                during: Step::Acquire,
                ..
            } => {
                if let Some((round, key, sent_ns)) = self.acquiring.take() {
                    holds.push(Hold {
                        possibly_to_ns: at_ns,
                        ended: true,
                        over_ns: Some(at_ns),
                        ..self.hold(event, key, round, sent_ns)
                    });
                }
            }
            EventKind::Renewed {
                key,
                valid_until_ns,
                ..
            } => {
                for &open in &self.open {
                    let hold = &mut holds[open];
                    if hold.key != key {
                        continue;
                    }
                    let before_ns = hold.confirmed_ns;
                    hold.renewals += 1;
                    hold.confirmed_ns = at_ns;
                    hold.prolong(before_ns, valid_until_ns.filter(|_| self.is_exact));
                    hold.valid_until_ns = valid_until_ns.or(hold.valid_until_ns);
                }
            }
            EventKind::AtGate { gate, .. } => {
                self.is_at_the_write = *gate == Gate::BeforeWrite;
            }
            EventKind::Writing { owner, .. } => {
                let at_the_write = std::mem::take(&mut self.is_at_the_write);
                let open = self.open.iter().copied();
                let mut own = open
                    .filter(|&open| holds[open].grant.is_some_and(|grant| grant.owner == owner));
                if let Some(own) = own.next()
                    && let Some(until_ns) = holds[own].valid_until_ns
                    && at_ns > until_ns.saturating_add(PUT_ASIDE_NS)
                    && !at_the_write
                    && !self.was_stopped(holds[own].from_ns, at_ns)
                {
                    holds[own].wrote_late_ns.get_or_insert(at_ns);
                }
            }
            EventKind::Lost { key, .. } => {
                if let Some(hold) = self.end(key, holds) {
                    holds[hold].over_ns = Some(at_ns);
                    holds[hold].lost_ns = Some(at_ns);
                }
            }
            EventKind::Releasing { key, .. } => {
                self.releasing = self.end(key, holds);
                if let Some(&hold) = self.latest.get(key.as_str()) {
                    holds[hold].releasing_ns.get_or_insert(at_ns);
                }
            }
            EventKind::Released { key, outcome, .. } => {
                let sent = self.releasing.take().filter(|&hold| holds[hold].key == key);
                if let Some(hold) = sent.or_else(|| self.end(key, holds)) {
                    holds[hold].over_ns = Some(at_ns);
                    if *outcome == ReleaseOutcome::Unknown {
                        holds[hold].possibly_to_ns = at_ns;
                    }
                }
                if let Some(&hold) = self.latest.get(key.as_str()) {
                    holds[hold].released.get_or_insert((at_ns, *outcome));
                }
            }
            EventKind::Failed {
                during: Step::Release,
                ..
            } => {
                if let Some(hold) = self.releasing.take() {
                    holds[hold].possibly_to_ns = at_ns;
                    holds[hold].over_ns = Some(at_ns);
                }
            }
            EventKind::Done { .. } => {
                for open in self.open.drain(..) {
                    holds[open].leave(at_ns);
                }
            }
            _ => {}
        }
        self.last_ns = Some(at_ns);
    }

    fn hold(&self, event: &'a Event, key: &'a str, round: u32, at_ns: u64) -> Hold<'a> {
        Hold {
            worker: &event.worker,
            key,
            round,
            service: self.service,
            ttl_ns: self.ttl_ns,
            covers_ns: self.covers_ns,
            grant: None,
            wanted_ns: at_ns,
            asked_ns: at_ns,
            from_ns: at_ns,
            to_ns: at_ns,
            possibly_to_ns: at_ns,
            ended: false,
            over_ns: None,
            // Worked out once all is known; until then, how far renewals reach.
            covered_to_ns: None,
            releasing_ns: None,
            released: None,
            lost_ns: None,
            confirmed_ns: at_ns,
            renewals: 0,
            granted_until_ns: None,
            valid_until_ns: None,
            wrote_late_ns: None,
            is_left: false,
            is_sound: self.is_sound,
        }
    }

    fn begin_anew(&mut self) {
        self.abandoned.append(&mut self.open);
        self.acquiring = None;
        self.wanting.clear();
        self.releasing = None;
        self.is_at_the_write = false;
    }

    /// Whatever a worker says next, it does not ask any more.
    fn end_asking(&mut self, event: &Event, asks: &mut [Ask<'a>]) {
        let Some(asking) = self.asking.take() else {
            return;
        };
        let ask = &mut asks[asking];
        ask.to_ns = event.at_ns.max(ask.from_ns);
        ask.end = match &event.kind {
            EventKind::Acquired { key, .. } if key == ask.key => AskEnd::Granted,
            EventKind::Failed {
                during: Step::Acquire,
                ..
            } => AskEnd::Failed,
            _ => AskEnd::GivenUp,
        };
    }

    fn was_stopped(&self, from_ns: u64, to_ns: u64) -> bool {
        touch(&self.stops, from_ns, to_ns)
    }

    /// A worker that has gone on to its next round no longer claims the hold of
    /// the last one, even if it never said so (a failed write may skip the release).
    fn leave_rounds_before(&mut self, round: u32, at_ns: u64, holds: &mut [Hold<'a>]) {
        self.open.retain(|&open| {
            let stays = holds[open].round >= round;
            if !stays {
                holds[open].leave(at_ns);
            }
            stays
        });
    }

    fn end(&mut self, key: &str, holds: &mut [Hold<'a>]) -> Option<usize> {
        let place = self.open.iter().position(|&open| holds[open].key == key)?;
        let hold = self.open.remove(place);
        holds[hold].ended = true;
        Some(hold)
    }
}

/// A grant in a session is good for what is left of that: two thirds of its TTL at
/// least, as long as nothing keeps it from being kept alive.
fn covers_ns(plan: &WorkerPlan, is_calm: bool) -> Option<u64> {
    match plan.in_session {
        true => is_calm.then_some(plan.ttl_ns / 2),
        false => Some(plan.ttl_ns),
    }
}

fn round(kind: &EventKind) -> Option<u32> {
    match kind {
        EventKind::Acquiring { round, .. }
        | EventKind::Acquired { round, .. }
        | EventKind::Reentered { round, .. }
        | EventKind::AtGate { round, .. }
        | EventKind::Writing { round, .. }
        | EventKind::WriteAccepted { round, .. }
        | EventKind::WriteRejected { round, .. }
        | EventKind::Renewed { round, .. }
        | EventKind::Lost { round, .. }
        | EventKind::Left { round, .. }
        | EventKind::Releasing { round, .. }
        | EventKind::Released { round, .. }
        | EventKind::Failed { round, .. } => Some(*round),
        EventKind::Ready { .. } | EventKind::Done { .. } | EventKind::Clock { .. } => None,
    }
}
