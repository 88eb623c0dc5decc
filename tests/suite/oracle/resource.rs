//! The resource: (token, seq) decides and nothing else, if its fence is on.

use super::defect::Defect;
use super::settings::Settings;
use super::truth::Decision;
use super::world::{Action, KEYS, World};
use fencepost::model::{BodyHash, FencingToken, LogRow, RowOutcome, RowValue};

pub struct Resource {
    pub log: Vec<LogRow>,
    pub cells: Vec<Cell>,
    pub refusals: u64,
    position: u64,
}

/// What stands under one key.
#[derive(Clone, Default)]
pub struct Cell {
    pub body: Option<String>,
    pub position: u64,
    pub highest: Option<Highest>,
}

#[derive(Clone)]
pub struct Highest {
    pub pair: (u64, u64),
    owner: String,
    body: String,
    position: u64,
}

#[derive(Clone, Debug)]
pub enum ResourceRequest {
    Read { worker: usize, key: usize },
    Write(Write),
}

#[derive(Clone, Debug)]
pub struct Write {
    pub worker: usize,
    pub key: usize,
    pub owner: String,
    pub token: Option<u64>,
    pub seq: u64,
    pub body: String,
    /// Position and count of what was read before.
    pub based_on: Option<(u64, u64)>,
    /// Its answer gets lost on the way.
    pub mute: bool,
}

#[derive(Clone, Debug)]
pub enum ResourceAnswer {
    Read { position: u64, count: u64 },
    Accepted { position: u64 },
    Rejected { seen: u64 },
}

impl Resource {
    pub fn new(settings: &Settings) -> Resource {
        Resource {
            log: Vec::new(),
            cells: vec![Cell::default(); settings.keys],
            refusals: 0,
            position: 0,
        }
    }
}

/// Another body with the same count.
fn change(body: &str) -> String {
    match body.strip_prefix("{\"by\":\"") {
        Some(rest) => format!("{{\"by\":\"x{rest}"),
        None => format!("{body}!"),
    }
}

/// The count that a value of ours holds.
pub fn count_in(body: &str) -> u64 {
    let digits = body.split_once("\"count\":").map_or("", |(_, rest)| rest);
    let end = digits.find(|c: char| !c.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())].parse().unwrap_or(0)
}

impl World {
    pub fn decide(&mut self, request: ResourceRequest) {
        match request {
            ResourceRequest::Read { worker, key } => self.serve_read(worker, key),
            ResourceRequest::Write(write) => {
                let (worker, mute) = (write.worker, write.mute);
                let answer = self.serve_write(write);
                if !mute {
                    let delay = self.delay();
                    self.after(delay, Action::FromResource(worker, answer));
                }
            }
        }
    }

    fn serve_read(&mut self, worker: usize, key: usize) {
        let cell = &self.resource.cells[key];
        let mut position = cell.position;
        let mut count = cell.body.as_deref().map_or(0, count_in);
        let owner = self.workers[worker].owner().to_owned();
        if self.strikes(Defect::ReadsWrongPosition) {
            // That of a refused write, or one that nothing has.
            let refused = self.resource.log.iter().rev();
            let mut refused = refused.filter(|row| row.outcome == RowOutcome::Rejected);
            let refused = refused.next().map(|row| row.seq);
            position = refused.unwrap_or(self.resource.position + 40);
            let defect = Defect::ReadsWrongPosition;
            self.truth.plant(defect, self.now, &owner, "", position);
        } else if self.strikes(Defect::ReadsWrongValue) {
            count += self.random.u64(1..5);
            let defect = Defect::ReadsWrongValue;
            self.truth.plant(defect, self.now, &owner, "", position);
        }
        let delay = self.delay();
        self.after(
            delay,
            Action::FromResource(worker, ResourceAnswer::Read { position, count }),
        );
    }

    fn serve_write(&mut self, write: Write) -> ResourceAnswer {
        let highest = self.resource.cells[write.key].highest.clone();
        let pair = (write.token.unwrap_or(0), write.seq);
        // Only its owner can go on counting with a token.
        let is_stale = |highest: &Highest| {
            let strangers = pair.0 == highest.pair.0 && write.owner != highest.owner;
            strangers || pair <= highest.pair
        };
        let outcome = match &highest {
            Some(highest) if self.settings.fence && is_stale(highest) => {
                let same = (&highest.owner, &highest.body) == (&write.owner, &write.body);
                if pair == highest.pair && same {
                    RowOutcome::Duplicate
                } else {
                    RowOutcome::Rejected
                }
            }
            _ => RowOutcome::Accepted,
        };
        let ruled = self.bend(outcome, &write, highest.as_ref());
        let before = highest.as_ref().map(|highest| highest.pair.0);
        match ruled {
            RowOutcome::Accepted => self.accept(write, before),
            RowOutcome::Duplicate => {
                let position = highest.map_or(0, |highest| highest.position);
                self.log(&write, RowOutcome::Duplicate, before);
                ResourceAnswer::Accepted { position }
            }
            RowOutcome::Rejected => self.refuse(write, before.unwrap_or(0)),
        }
    }

    /// What a broken resource makes of a decision.
    fn bend(
        &mut self,
        outcome: RowOutcome,
        write: &Write,
        highest: Option<&Highest>,
    ) -> RowOutcome {
        let owner = &write.owner;
        let row = self.resource.position + 1;
        let (defect, bent) = match (outcome, highest) {
            (RowOutcome::Rejected, Some(highest)) => {
                let lower = write.token < Some(highest.pair.0);
                if lower && self.strikes(Defect::AcceptsStale) {
                    (Defect::AcceptsStale, RowOutcome::Accepted)
                } else if highest.owner != *owner && self.strikes(Defect::RepeatsForStranger) {
                    (Defect::RepeatsForStranger, RowOutcome::Duplicate)
                } else {
                    return outcome;
                }
            }
            (RowOutcome::Duplicate, _) if self.strikes(Defect::AcceptsEqual) => {
                (Defect::AcceptsEqual, RowOutcome::Accepted)
            }
            (RowOutcome::Accepted, Some(_)) if self.strikes(Defect::RefusesHighest) => {
                (Defect::RefusesHighest, RowOutcome::Rejected)
            }
            _ => return outcome,
        };
        self.truth.plant(defect, self.now, owner, "", row);
        bent
    }

    fn accept(&mut self, mut write: Write, before: Option<u64>) -> ResourceAnswer {
        let (row, owner) = (self.resource.position + 1, write.owner.clone());
        if self.strikes(Defect::LosesAcknowledged) {
            let defect = Defect::LosesAcknowledged;
            self.truth.plant(defect, self.now, &owner, "", row);
            return ResourceAnswer::Accepted { position: row };
        }
        if self.strikes(Defect::ChangesBody) {
            let defect = Defect::ChangesBody;
            self.truth.plant(defect, self.now, &owner, "", row);
            // Only what it keeps is changed: it knows a repetition when it sees one.
            let changed = change(&write.body);
            let sent = std::mem::replace(&mut write.body, changed);
            self.log(&write, RowOutcome::Accepted, before);
            let key = write.key;
            self.apply(write, row);
            if let Some(highest) = &mut self.resource.cells[key].highest
                && highest.position == row
            {
                highest.body = sent;
            }
            return ResourceAnswer::Accepted { position: row };
        }
        self.log(&write, RowOutcome::Accepted, before);
        self.apply(write, row);
        let mut position = row;
        if row > 1 && self.strikes(Defect::NamesPositionTwice) {
            position = 1 + self.random.u64(..row - 1);
            let defect = Defect::NamesPositionTwice;
            self.truth.plant(defect, self.now, &owner, "", row);
        }
        if self.strikes(Defect::InventsWrite) {
            self.invent(row);
        }
        ResourceAnswer::Accepted { position }
    }

    fn apply(&mut self, write: Write, position: u64) {
        let cell = &mut self.resource.cells[write.key];
        let pair = (write.token.unwrap_or(0), write.seq);
        if write.token.is_some() && cell.highest.as_ref().is_none_or(|high| high.pair < pair) {
            cell.highest = Some(Highest {
                pair,
                owner: write.owner,
                body: write.body.clone(),
                position,
            });
        }
        cell.body = Some(write.body);
        cell.position = position;
    }

    fn invent(&mut self, after: u64) {
        let last = &self.resource.log[after as usize - 1];
        let key = KEYS.iter().position(|key| *key == last.key).unwrap_or(0);
        let write = Write {
            worker: 0,
            key,
            owner: format!("nobody-{after}"),
            token: last.token.map(|token| token.0),
            seq: last.token_seq + 1,
            body: "{\"by\":\"nobody\",\"count\":1,\"token\":0}".to_owned(),
            based_on: None,
            mute: true,
        };
        let before = last.token.map(|token| token.0);
        let before = before.max(last.seen.map(|token| token.0));
        let row = self.resource.position + 1;
        let defect = Defect::InventsWrite;
        self.truth.plant(defect, self.now, &write.owner, "", row);
        self.log(&write, RowOutcome::Accepted, before);
        self.apply(write, row);
    }

    fn refuse(&mut self, write: Write, highest: u64) -> ResourceAnswer {
        self.resource.refusals += 1;
        let row = self.resource.position + 1;
        // Either way one that would be a reason to refuse.
        let room = highest.saturating_sub(write.token.unwrap_or(0));
        let lie = if room < 2 || self.random.bool() {
            highest + self.random.u64(1..20)
        } else {
            highest - self.random.u64(1..room)
        };
        let (mut logged, mut answered) = (highest, highest);
        if self.strikes(Defect::StatesWrongMaximum) {
            (logged, answered) = (lie, lie);
            let defect = Defect::StatesWrongMaximum;
            self.truth.plant(defect, self.now, &write.owner, "", row);
        } else if self.strikes(Defect::AnswersWrongMaximum) {
            answered = lie;
            let defect = Defect::AnswersWrongMaximum;
            self.truth.plant(defect, self.now, &write.owner, "", row);
        }
        if self.strikes(Defect::AppliesRefused) {
            let defect = Defect::AppliesRefused;
            self.truth.plant(defect, self.now, &write.owner, "", row);
            self.resource.cells[write.key].body = Some(write.body.clone());
        }
        self.log(&write, RowOutcome::Rejected, Some(logged));
        ResourceAnswer::Rejected { seen: answered }
    }

    fn log(&mut self, write: &Write, outcome: RowOutcome, seen: Option<u64>) {
        let Settings { hashes, values, .. } = self.settings;
        let accepted = outcome == RowOutcome::Accepted;
        self.resource.position += 1;
        let seq = self.resource.position;
        self.truth.decisions.push(Decision {
            key: write.key,
            body: write.body.clone(),
            accepted,
        });
        self.resource.log.push(LogRow {
            seq,
            at_ns: self.now,
            key: KEYS[write.key].to_owned(),
            outcome,
            token: write.token.map(FencingToken),
            token_seq: write.seq,
            seen: seen.map(FencingToken),
            owner: Some(write.owner.clone()),
            based_on: write.based_on.map(|(position, _)| position),
            body: hashes.then(|| BodyHash::of(write.body.as_bytes())),
            value: (values && accepted).then(|| RowValue::Text(write.body.clone())),
        });
    }
}
