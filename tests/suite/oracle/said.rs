//! Holds and wishes as the workers said them, read slowly from the record alone.

use super::settings::MS;
use fencepost::model::ReleaseOutcome;
use fencepost::model::{CaseRecord, Event, EventKind, Gate};

pub struct Said<'a> {
    pub holds: Vec<SaidHold<'a>>,
    pub asks: Vec<Ask<'a>>,
    pub ttl_ns: u64,
}

#[derive(Clone)]
pub struct SaidHold<'a> {
    pub worker: &'a str,
    pub service: &'a str,
    pub key: &'a str,
    pub owner: &'a str,
    pub token: Option<u64>,
    pub asked_ns: u64,
    pub acquired_ns: u64,
    /// The service has promised exclusion at least until here.
    pub covered_ns: u64,
    /// The last time that the worker was told that it has it.
    pub confirmed_ns: u64,
    pub valid_until_ns: Option<u64>,
    /// When it was first given up, by `releasing` or by `lost`.
    pub given_up_ns: Option<u64>,
    pub lost_ns: Option<u64>,
    pub releasing_ns: Option<u64>,
    pub released: Option<(u64, ReleaseOutcome)>,
    /// The writes that nothing but its clock could have held back.
    pub free_writes: Vec<(u64, Option<u64>)>,
}

#[derive(Clone)]
pub struct Ask<'a> {
    pub worker: &'a str,
    pub service: &'a str,
    pub key: &'a str,
    pub at_ns: u64,
    pub acquired_ns: Option<u64>,
    /// Something else came of it.
    pub failed: bool,
}

impl<'a> Said<'a> {
    /// The part that is about one service.
    pub fn of(&self, service: &str) -> Said<'a> {
        let holds = self.holds.iter().filter(|hold| hold.service == service);
        let asks = self.asks.iter().filter(|ask| ask.service == service);
        Said {
            holds: holds.cloned().collect(),
            asks: asks.cloned().collect(),
            ttl_ns: self.ttl_ns,
        }
    }

    /// Clocks and pens take their time.
    pub fn margin_ns(&self) -> u64 {
        MS + self.ttl_ns / 1_000
    }
}

impl<'a> SaidHold<'a> {
    pub fn is_with(&self, other: &SaidHold) -> bool {
        (self.service, self.key) == (other.service, other.key)
    }
}

pub fn read(record: &CaseRecord) -> Said<'_> {
    let mut said = Said {
        holds: Vec::new(),
        asks: Vec::new(),
        ttl_ns: 0,
    };
    for (worker, plan) in &record.plan.workers {
        said.ttl_ns = plan.ttl_ns;
        let of_it = record
            .history
            .iter()
            .filter(|event| event.worker == *worker);
        let mut reader = Reader {
            said: &mut said,
            worker,
            service: &plan.service,
            is_ours: plan.is_ours,
            holding: false,
            at_gate: false,
        };
        of_it.for_each(|event| reader.read(event));
    }
    said
}

struct Reader<'r, 'a> {
    said: &'r mut Said<'a>,
    worker: &'a str,
    service: &'a str,
    is_ours: bool,
    holding: bool,
    at_gate: bool,
}

impl<'a> Reader<'_, 'a> {
    /// Only of our own workers is it known how they count.
    fn exactly(&self, valid_until_ns: Option<u64>) -> Option<u64> {
        valid_until_ns.filter(|_| self.is_ours)
    }

    fn read(&mut self, event: &'a Event) {
        let at_ns = event.at_ns;
        if let EventKind::Acquiring { key, .. } = &event.kind {
            self.holding = false;
            self.said.asks.push(Ask {
                worker: self.worker,
                service: self.service,
                key,
                at_ns,
                acquired_ns: None,
                failed: false,
            });
        }
        if let EventKind::Acquired { .. } = &event.kind {
            self.acquired(event);
        }
        if let EventKind::AtGate { gate, .. } = &event.kind {
            self.at_gate = *gate == Gate::BeforeWrite;
        }
        if let EventKind::Failed { .. } = &event.kind
            && !self.holding
            && let Some(ask) = self.said.asks.last_mut()
        {
            ask.failed = true;
        }
        let ttl_ns = self.said.ttl_ns;
        if let Some(hold) = self.said.holds.last_mut().filter(|_| self.holding) {
            hold.go_on(event, ttl_ns, self.is_ours, self.at_gate);
        }
        if let EventKind::Writing { .. } = &event.kind {
            self.at_gate = false;
        }
    }

    fn acquired(&mut self, event: &'a Event) {
        let EventKind::Acquired {
            key,
            token,
            owner,
            valid_until_ns,
            ..
        } = &event.kind
        else {
            return;
        };
        let covered = self.exactly(*valid_until_ns);
        let ask = self.said.asks.last_mut().expect("it asked");
        ask.acquired_ns = Some(event.at_ns);
        let earliest_end = ask.at_ns + self.said.ttl_ns;
        self.holding = true;
        self.at_gate = false;
        self.said.holds.push(SaidHold {
            worker: self.worker,
            service: self.service,
            key,
            owner,
            token: token.map(|token| token.0),
            asked_ns: ask.at_ns,
            acquired_ns: event.at_ns,
            covered_ns: covered.unwrap_or(earliest_end),
            confirmed_ns: event.at_ns,
            valid_until_ns: *valid_until_ns,
            given_up_ns: None,
            lost_ns: None,
            releasing_ns: None,
            released: None,
            free_writes: Vec::new(),
        });
    }
}

impl SaidHold<'_> {
    fn go_on(&mut self, event: &Event, ttl_ns: u64, is_ours: bool, at_gate: bool) {
        let at_ns = event.at_ns;
        match &event.kind {
            EventKind::Renewed { valid_until_ns, .. } => {
                // It was sent after the worker was last told of its hold.
                let earliest_end = self.confirmed_ns + ttl_ns;
                let exactly = valid_until_ns.filter(|_| is_ours);
                self.covered_ns = exactly.unwrap_or(earliest_end);
                self.valid_until_ns = valid_until_ns.or(self.valid_until_ns);
                self.confirmed_ns = at_ns;
            }
            EventKind::Lost { .. } => {
                self.lost_ns.get_or_insert(at_ns);
                self.given_up_ns.get_or_insert(at_ns);
            }
            EventKind::Releasing { .. } => {
                self.releasing_ns.get_or_insert(at_ns);
                self.given_up_ns.get_or_insert(at_ns);
            }
            EventKind::Released { outcome, .. } => self.released = Some((at_ns, *outcome)),
            EventKind::Writing { .. } if !at_gate && self.lost_ns.is_none() => {
                self.free_writes.push((at_ns, self.valid_until_ns));
            }
            _ => {}
        }
        if let Some(given_up_ns) = self.given_up_ns {
            self.covered_ns = self.covered_ns.min(given_up_ns);
        }
    }
}
