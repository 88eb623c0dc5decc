//! Which event may follow which, and what has to be in it.

mod hold;

use crate::model::{Ability, Event, EventKind, FencingToken, Gate, Step};
use hold::same_token;

/// What a worker was told to do, as far as its lines depend on it.
#[derive(Clone, Debug)]
pub struct Task {
    pub key: String,
    pub ttl_ns: u64,
    pub gates: Vec<Gate>,
    /// None if it plays as many as fit into its time.
    pub rounds: Option<u32>,
}

/// Follows the lines of one worker.
#[derive(Debug)]
pub struct Grammar {
    task: Task,
    state: State,
    lacks: Vec<Ability>,
    played: u32,
    last_ns: u64,
    started: bool,
    /// The gate that it stands at.
    closed: Option<(Gate, u32)>,
    /// When the latest gate was opened.
    opened_ns: u64,
    asked_clock: bool,
}

#[derive(Clone, Debug)]
enum State {
    Begin,
    Between,
    Acquiring { at_ns: u64 },
    Held(Hold),
    Writing(Hold),
    Releasing(Hold),
    Over,
}

#[derive(Clone, Debug)]
struct Hold {
    token: Option<FencingToken>,
    owner: String,
    valid_until_ns: Option<u64>,
    passed: Vec<Gate>,
    holds: usize,
    wrote: bool,
    failed: bool,
    lost: bool,
}

/// A line that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    pub problem: String,
    pub expected: String,
}

type Fits<T = ()> = Result<T, Misfit>;

fn misfit<T>(problem: impl Into<String>, expected: impl Into<String>) -> Fits<T> {
    Err(Misfit {
        problem: problem.into(),
        expected: expected.into(),
    })
}

impl Grammar {
    /// `started_ns` is a moment before the worker was started.
    pub fn new(task: Task, started_ns: u64) -> Grammar {
        Grammar {
            task,
            state: State::Begin,
            lacks: Vec::new(),
            played: 0,
            last_ns: started_ns,
            started: false,
            closed: None,
            opened_ns: started_ns,
            asked_clock: false,
        }
    }

    fn has_played_all(&self) -> bool {
        self.task.rounds == Some(self.played)
    }

    pub fn asked_clock(&mut self) {
        self.asked_clock = true;
    }

    pub fn opened(&mut self, at_ns: u64) {
        self.closed = None;
        self.opened_ns = at_ns;
    }

    /// Takes the next line, which was read at `now_ns`.
    pub fn take(&mut self, event: &Event, now_ns: u64) -> Fits {
        self.check_clock(event.at_ns, now_ns)?;
        let name = event.kind.name();
        if let EventKind::Clock { .. } = event.kind {
            return match self.asked_clock {
                true => Ok(()),
                false => misfit("nobody asked for its clocks", self.expected()),
            };
        }
        let goes_on_alone = matches!(
            event.kind,
            EventKind::Renewed { .. } | EventKind::Lost { .. }
        );
        if let (Some((gate, round)), false) = (self.closed, goes_on_alone) {
            return misfit(
                format!("`{name}` comes while the gate {gate} is closed"),
                format!("nothing until the line {{\"go\":\"{gate}\",\"round\":{round}}} on stdin"),
            );
        }
        if event.at_ns < self.opened_ns && !goes_on_alone {
            return misfit(
                format!("`{name}` happened before the gate was opened"),
                "a worker that waits at its gate until the line on stdin",
            );
        }
        if let Some(round) = round(&event.kind) {
            self.check_round(name, round, &event.kind)?;
        }
        if let Some(key) = key(&event.kind)
            && *key != self.task.key
        {
            let wanted = &self.task.key;
            return misfit(
                format!("the key is `{key}`"),
                format!("\"key\": \"{wanted}\", as FENCEPOST_KEY says"),
            );
        }
        let state = std::mem::replace(&mut self.state, State::Over);
        self.state = self.step(state, event)?;
        Ok(())
    }

    fn check_clock(&mut self, at_ns: u64, now_ns: u64) -> Fits {
        let expected = "`at_ns`: CLOCK_MONOTONIC by the raw system call, in nanoseconds";
        if at_ns > now_ns {
            return misfit(
                format!("`at_ns` {at_ns} is after {now_ns}, when it was read"),
                expected,
            );
        }
        if at_ns < self.last_ns {
            let last = self.last_ns;
            return misfit(
                format!("`at_ns` {at_ns} is before {last}, the line before it or the start"),
                expected,
            );
        }
        self.last_ns = at_ns;
        Ok(())
    }

    fn check_round(&self, name: &str, round: u32, kind: &EventKind) -> Fits {
        let is_start = matches!(
            kind,
            EventKind::AtGate {
                gate: Gate::Start,
                ..
            }
        );
        let begins = matches!(kind, EventKind::Acquiring { .. });
        let wanted = match (is_start, begins) {
            (true, _) => 0,
            (_, true) => self.played + 1,
            _ => self.played,
        };
        // Between the rounds, the line itself is the mistake, and the next step says so.
        let has_place = is_start
            || begins
            || !matches!(self.state, State::Begin | State::Between | State::Over);
        match round == wanted || !has_place {
            true => Ok(()),
            false => misfit(
                format!("`{name}` is of round {round}"),
                format!("\"round\": {wanted}"),
            ),
        }
    }

    /// Says in words what may come now.
    pub fn expected(&self) -> String {
        match &self.state {
            State::Begin => "`ready`, or `refused` with a `reason`".into(),
            State::Between if self.stops_at_start() => "`at_gate` with \"gate\": \"start\" and \"round\": 0, because FENCEPOST_GATES has `start`".into(),
            State::Between if self.played == 0 => "`acquiring`".into(),
            State::Between if self.has_played_all() => "`done`, because FENCEPOST_ROUNDS rounds are over (1 if it is absent)".into(),
            State::Between => "`acquiring` of the next round, or `done`".into(),
            State::Acquiring { .. } => "`acquired`, or `failed` with \"during\": \"acquire\"".into(),
            State::Held(hold) => match self.next_gate(hold) {
                Some(gate) => format!("`at_gate` with \"gate\": \"{gate}\", because FENCEPOST_GATES has it"),
                None if hold.wrote || hold.failed || hold.lost => "`releasing`".into(),
                None => "`writing`, `lost`, or `failed` with \"during\": \"read\"".into(),
            },
            State::Writing(_) => "`write_accepted`, `write_rejected`, or `failed` with \"during\": \"write\"".into(),
            State::Releasing(_) => "`released`, or `failed` with \"during\": \"release\"".into(),
            State::Over => "nothing: the worker has said its last line".into(),
        }
    }

    fn stops_at_start(&self) -> bool {
        !self.started && self.task.gates.contains(&Gate::Start)
    }

    /// The gate that this hold has to stop at before anything else is done.
    fn next_gate(&self, hold: &Hold) -> Option<Gate> {
        let over = hold.wrote || hold.failed || hold.lost;
        let order: &[Gate] = match over {
            false => &[Gate::AfterAcquire, Gate::BeforeWrite],
            true => &[Gate::AfterAcquire, Gate::BeforeRelease],
        };
        let mut order = order.iter().copied();
        order.find(|gate| self.task.gates.contains(gate) && !hold.passed.contains(gate))
    }

    fn step(&mut self, state: State, event: &Event) -> Fits<State> {
        let name = event.kind.name();
        // For `expected`, which looks at the state.
        self.state = state.clone();
        Ok(match (state, &event.kind) {
            (State::Begin, EventKind::Ready { lacks, .. }) => {
                self.lacks.clone_from(lacks);
                State::Between
            }
            (State::Begin, EventKind::Refused { .. }) => State::Over,
            (
                State::Between,
                EventKind::AtGate {
                    gate: Gate::Start, ..
                },
            ) if self.stops_at_start() => {
                self.started = true;
                self.closed = Some((Gate::Start, 0));
                State::Between
            }
            (State::Between, EventKind::Acquiring { .. })
                if !self.stops_at_start() && !self.has_played_all() =>
            {
                self.played += 1;
                State::Acquiring { at_ns: event.at_ns }
            }
            (State::Between, EventKind::Done { rounds }) if !self.stops_at_start() => {
                if *rounds != self.played {
                    return misfit(
                        format!("`done` counts {rounds} rounds"),
                        format!("\"rounds\": {}", self.played),
                    );
                }
                State::Over
            }
            (State::Acquiring { at_ns }, EventKind::Acquired { .. }) => {
                State::Held(self.acquired(at_ns, event)?)
            }
            (
                State::Acquiring { .. },
                EventKind::Failed {
                    during: Step::Acquire,
                    ..
                },
            ) => State::Between,
            (State::Held(hold), kind) => return self.held(hold, kind, name),
            (State::Writing(hold), kind) => return self.writing(hold, kind, name),
            (
                State::Releasing(hold),
                EventKind::AtGate {
                    gate: Gate::BetweenGetAndDel,
                    round,
                },
            ) => {
                self.closed = Some((Gate::BetweenGetAndDel, *round));
                State::Releasing(hold)
            }
            (
                State::Releasing(hold),
                kind @ (EventKind::Renewed { .. } | EventKind::Lost { .. }),
            ) => State::Releasing(self.aside(hold, kind)?),
            (State::Releasing(hold), EventKind::Released { token, .. }) => {
                same_token(&hold, *token)?;
                State::Between
            }
            (
                State::Releasing(_),
                EventKind::Failed {
                    during: Step::Release,
                    ..
                },
            ) => State::Between,
            _ => return Err(self.out_of_place(name)),
        })
    }

    fn out_of_place(&self, name: &str) -> Misfit {
        Misfit {
            problem: format!("`{name}` has no place here"),
            expected: self.expected(),
        }
    }
}

fn round(kind: &EventKind) -> Option<u32> {
    use EventKind::*;
    match kind {
        Acquiring { round, .. }
        | Acquired { round, .. }
        | Reentered { round, .. }
        | AtGate { round, .. }
        | Writing { round, .. }
        | WriteAccepted { round, .. }
        | WriteRejected { round, .. }
        | Renewed { round, .. }
        | Lost { round, .. }
        | Left { round, .. }
        | Releasing { round, .. }
        | Released { round, .. }
        | Failed { round, .. } => Some(*round),
        Ready { .. } | Done { .. } | Refused { .. } | Clock { .. } => None,
    }
}

fn key(kind: &EventKind) -> Option<&String> {
    use EventKind::*;
    match kind {
        Acquiring { key, .. }
        | Acquired { key, .. }
        | Reentered { key, .. }
        | Writing { key, .. }
        | WriteAccepted { key, .. }
        | WriteRejected { key, .. }
        | Renewed { key, .. }
        | Lost { key, .. }
        | Left { key, .. }
        | Releasing { key, .. }
        | Released { key, .. } => Some(key),
        Ready { .. }
        | AtGate { .. }
        | Failed { .. }
        | Done { .. }
        | Refused { .. }
        | Clock { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at_ns: u64, text: &str) -> Event {
        let line = format!(r#"{{"at_ns":{at_ns},{text}}}"#);
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn a_worker_that_never_ends_is_blamed_for_its_first_round_too_many() {
        let task = Task {
            key: "k".into(),
            ttl_ns: 1_000_000_000,
            gates: Vec::new(),
            rounds: Some(1),
        };
        let mut grammar = Grammar::new(task, 1);
        let failed = r#""event":"failed","round":1,"during":"acquire","error":"no""#;
        for (at_ns, text) in [
            (2, r#""event":"ready""#),
            (3, r#""event":"acquiring","key":"k","round":1"#),
            (4, failed),
        ] {
            assert_eq!(grammar.take(&line(at_ns, text), at_ns), Ok(()), "{text}");
        }
        let next = line(5, r#""event":"acquiring","key":"k","round":2"#);
        let misfit = grammar.take(&next, 5).unwrap_err();
        assert!(misfit.expected.starts_with("`done`"), "{misfit:?}");
    }
}
