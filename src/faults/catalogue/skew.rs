use super::super::clockmaker::order;
use super::super::dial::{Ahead, Dial, realtime_ahead_of_monotonic_ns};
use super::restart::{runs_anew, start_again};
use super::*;
use crate::clock::{ClockShift, Deed, Offset, Rate, shift_of};
use crate::model::{ClockName, format_duration, parse_duration};

pub const SKEW: Form = Form {
    keys: || {
        let by = json!({
            "type": "string",
            "pattern": r"^[+-]?\d+(ms|s|m)$",
            "description": "15s, -15s"
        });
        vec![vec![Key::required("by", by), clock_key()]]
    },
    read: read_skew,
    done: |moved, node| {
        let clock = moved.clock.unwrap_or_default();
        let ms = moved.by_ms.unwrap_or_default();
        let by = format_duration(Duration::from_millis(ms.unsigned_abs()));
        let way = if ms < 0 { "back" } else { "on" };
        format!("set the {clock} clock of {node} {way} by {by}")
    },
    ..MOVED
};

pub const DRIFT: Form = Form {
    keys: || {
        let ppm = json!({ "type": "integer", "minimum": -MOST_PPM, "maximum": MOST_PPM });
        vec![vec![Key::required("ppm", ppm), clock_key()]]
    },
    read: read_drift,
    done: |moved, node| {
        let clock = moved.clock.unwrap_or_default();
        let ppm = moved.ppm.unwrap_or_default();
        let speed = if ppm < 0 { "slower" } else { "faster" };
        let ppm = ppm.unsigned_abs();
        format!("let the {clock} clock of {node} run {ppm} ppm {speed}")
    },
    ..MOVED
};

const MOVED: Form = Form {
    proven: "when its clock is read from inside, and the host's has not moved",
    need: Some(Need::OwnClocks),
    injection: |fault| {
        let moved = fault.parameters;
        let drift = Shift::ByPpm(moved.ppm.unwrap_or_default());
        Box::new(Skewed {
            node: fault.node,
            clock: moved.clock.unwrap_or_default(),
            shift: moved.by_ms.map_or(drift, Shift::ByMs),
            before: None,
        })
    },
    ..Form::PLAIN
};

fn clock_key() -> Key {
    Key::optional("clock", json!({ "enum": words(&ClockName::ALL) }))
}

/// The slowest drift that the most exact clock shows within ten seconds; no proof takes longer.
const LEAST_PPM: i64 = 2_000;
const LEAST_SKEW_MS: u64 = 20;
/// No crystal is off by nearly as much as half.
const MOST_PPM: i64 = 500_000;
/// With a larger skew, sums of times would overflow where targets store them.
const MOST_SKEW_MS: u64 = 365 * 24 * 60 * 60 * 1000;

fn read_skew(fields: &mut Fields<'_>, report: &mut Report) -> Option<Effect> {
    let by = fields.required("by", report);
    let clock = read_clock(fields, report);
    let by = signed_duration(by?, report)?;
    let clock = clock?;
    let wrong = match by.value {
        0 => "a clock that is off by nothing is not skewed",
        ms if ms.unsigned_abs() < LEAST_SKEW_MS => "less than 20ms could not be read back",
        ms if ms.unsigned_abs() > MOST_SKEW_MS => "a clock is off by at most a year, 525600m",
        ms if ms < 0 && clock == ClockName::Monotonic => {
            "a monotonic clock does not go back: its timers would stand still for that long, which is what `pause` does"
        }
        ms => return moved(clock, Some(ms), None),
    };
    report.add(by.place, wrong);
    None
}

fn read_drift(fields: &mut Fields<'_>, report: &mut Report) -> Option<Effect> {
    let ppm = fields.required("ppm", report);
    let clock = read_clock(fields, report);
    let ppm = number(ppm?, "ppm", -MOST_PPM..=MOST_PPM, report)?;
    let wrong = match ppm.value {
        0 => "a clock with 0 ppm does not drift",
        ppm if ppm.abs() < LEAST_PPM => {
            "less than 2000 ppm add up to less than 20 ms in 10 s, which could not be read back"
        }
        ppm => return moved(clock?, None, Some(ppm)),
    };
    report.add(ppm.place, wrong);
    None
}

fn moved(clock: ClockName, by_ms: Option<i64>, ppm: Option<i64>) -> Option<Effect> {
    Some(Effect::Node(FaultParameters {
        clock: Some(clock),
        by_ms,
        ppm,
        ..FaultParameters::default()
    }))
}

fn read_clock(fields: &mut Fields<'_>, report: &mut Report) -> Option<ClockName> {
    match fields.optional("clock") {
        None => Some(ClockName::default()),
        Some(node) => Some(choice(node, "clock", &ClockName::ALL, report)?.value),
    }
}

/// Reads milliseconds, forwards or back: `15s`, `+15s`, `-15s`.
fn signed_duration(node: &Node, report: &mut Report) -> Option<At<i64>> {
    parsed(node, "a duration", report, |text| {
        let (sign, length) = match text.strip_prefix('-') {
            Some(length) => (-1, length),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let ms = parse_duration(length).and_then(|d| i64::try_from(d.as_millis()).ok());
        ms.map(|ms| sign * ms).ok_or_else(|| {
            format!("`{text}` is not a duration with a sign; write such as 15s or -15s")
        })
    })
}

const MS: i64 = 1_000_000;
/// A drift that shows nothing within this time cannot be proven.
const LONGEST_LOOK: Duration = Duration::from_secs(10);
/// The most that somebody may correct the host's clock by in the meantime.
const HOST_MAY_MOVE_NS: i64 = 50 * MS;

/// A clock of a process that is off, or runs at another rate. Proven when the process itself
/// says so, while the clock of the host has not moved.
struct Skewed {
    node: Name,
    clock: ClockName,
    shift: Shift,
    before: Option<Before>,
}

#[derive(Clone, Copy)]
enum Shift {
    ByMs(i64),
    ByPpm(i64),
}

impl Shift {
    fn of(&self, clock: ClockName) -> Deed {
        match self {
            Shift::ByMs(ms) => Deed::Set(vec![(clock, Offset(ms * MS))]),
            Shift::ByPpm(ppm) => Deed::Drift(vec![(clock, Rate(*ppm))]),
        }
    }
}

struct Before {
    dial: Dial,
    ahead: Ahead,
    host_ns: i64,
    started_at: String,
}

impl Skewed {
    fn before(&self) -> Proof<&Before> {
        let before = self.before.as_ref();
        before.ok_or(UnprovenReason::ClockNotReadBefore)
    }

    /// Returns how long the clock has to be watched until a drift shows.
    fn look_for(&self, ppm: i64, resolution_ns: i64) -> Proof<Duration> {
        let ns = resolution_ns as u64 * 1_000_000 / ppm.unsigned_abs().max(1);
        let needed = Duration::from_nanos(ns);
        let (shows_s, longest_s) = (needed.as_secs(), LONGEST_LOOK.as_secs());
        let too_slow = UnprovenReason::DriftTooSlow {
            ppm,
            shows_s,
            longest_s,
        };
        ensure(needed <= LONGEST_LOOK, too_slow)?;
        Ok(needed)
    }

    async fn shift_now(&self, field: &Field) -> Proof<ClockShift> {
        let shifts = order(field.cluster.as_ref(), &self.node, Deed::Show).await?;
        Ok(shift_of(&shifts, self.clock))
    }

    async fn put_right(&self, field: &Field) -> Proof {
        let cluster = field.cluster.as_ref();
        order(cluster, &self.node, Shift::ByPpm(0).of(self.clock)).await?;
        let left = order(cluster, &self.node, Shift::ByMs(0).of(self.clock)).await?;
        if left.is_untouched() {
            order(cluster, &self.node, Deed::Undo).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Injection for Skewed {
    /// Checks the kernel, the architecture, the permission, and that the clock can be read back,
    /// without changing anything.
    async fn prepare(&mut self, field: &Field) -> Proof {
        order(field.cluster.as_ref(), &self.node, Deed::Show).await?;
        let dial = Dial::of(field, &self.node, self.clock).await?;
        dial.put_away().await;
        Ok(())
    }

    /// Returns true for etcd, which does not survive that its clock is set back: undoing the fault
    /// starts it again instead.
    fn restarts(&self, field: &Field) -> bool {
        let server = field.servers.get(&self.node);
        self.clock == ClockName::Monotonic
            && server.is_some_and(|server| !server.answers.survives_setting_back())
    }

    async fn look_before(&mut self, field: &Field) -> Proof {
        let state = state(field, &self.node).await?;
        ensure(state.running, UnprovenReason::NoClock)?;
        ensure(!state.frozen, UnprovenReason::ClockFrozen)?;
        let threads = field.cluster.threads(&self.node).await?;
        let runs = threads.iter().any(|thread| !thread.is_stopped());
        ensure(runs, UnprovenReason::ClockStopped)?;
        let clock = self.clock;
        let is_right = self.shift_now(field).await? == ClockShift::default();
        ensure(is_right, UnprovenReason::ClockOffAlready { clock })?;
        let dial = Dial::of(field, &self.node, self.clock).await?;
        match self.shift {
            Shift::ByMs(by_ms) if (by_ms * MS).abs() < dial.resolution_ns() => {
                let least_ms = dial.resolution_ns() / MS;
                return Err(UnprovenReason::SkewTooSmall { least_ms });
            }
            Shift::ByMs(_) => {}
            Shift::ByPpm(ppm) => drop(self.look_for(ppm, dial.resolution_ns())?),
        }
        self.before = Some(Before {
            ahead: dial.read(field).await?,
            dial,
            host_ns: realtime_ahead_of_monotonic_ns(),
            started_at: state.started_at,
        });
        Ok(())
    }

    async fn inject(&mut self, field: &Field) -> Proof {
        let wanted = self.shift.of(self.clock);
        let shifted = order(field.cluster.as_ref(), &self.node, wanted).await;
        shifted.map(drop)
    }

    async fn verify(&mut self, field: &Field) -> Proof<String> {
        let before = self.before()?;
        let from = match self.shift {
            Shift::ByMs(_) => before.ahead,
            Shift::ByPpm(ppm) => {
                let from = before.dial.read(field).await?;
                let look_for = self.look_for(ppm, before.dial.resolution_ns())?;
                tokio::time::sleep(look_for).await;
                from
            }
        };
        let now = before.dial.read(field).await?;
        let wanted_ns = match self.shift {
            Shift::ByMs(ms) => ms * MS,
            Shift::ByPpm(ppm) => (now.at_ns - from.at_ns) as i64 / 1_000_000 * ppm,
        };
        let moved_ns = now.ns - from.ns;
        let tolerated_ns = now.give_or_take_ns + from.give_or_take_ns;
        let clock = self.clock;
        let give_or_take_ms = tolerated_ns / MS;
        let inexact = UnprovenReason::ClockInexact {
            clock,
            give_or_take_ms,
        };
        ensure(tolerated_ns * 2 <= wanted_ns.abs(), inexact)?;
        if (moved_ns - wanted_ns).abs() > tolerated_ns {
            return Err(UnprovenReason::ClockMovedOtherwise {
                clock,
                moved_ms: moved_ns / MS,
                wanted_ms: wanted_ns / MS,
            });
        }
        let host_moved_ns = realtime_ahead_of_monotonic_ns() - before.host_ns;
        let by_ms = host_moved_ns / MS;
        let stayed = host_moved_ns.abs() <= HOST_MAY_MOVE_NS;
        ensure(stayed, UnprovenReason::HostClockMoved { by_ms })?;
        Ok(format!(
            "its {clock} clock moved by {:+} ms, and this machine's did not",
            moved_ns / MS
        ))
    }

    async fn verify_active(&mut self, field: &Field) -> Proof {
        let (left, clock) = (self.shift_now(field).await?, self.clock);
        let stands = match self.shift {
            Shift::ByMs(ms) => left.offset_ns == ms * MS,
            Shift::ByPpm(ppm) => left.rate_ppm == ppm,
        };
        ensure(stands, UnprovenReason::ClockSetByOthers { clock })
    }

    async fn undo(&mut self, field: &Field) -> Proof {
        if let Some(before) = &self.before {
            before.dial.put_away().await;
        }
        if !state(field, &self.node).await?.running {
            return Ok(());
        }
        if self.restarts(field) {
            field.cluster.kill(&self.node).await?;
            start_again(field, &self.node).await
        } else {
            self.put_right(field).await
        }
    }

    async fn verify_undone(&mut self, field: &Field) -> Proof<String> {
        let before = self.before()?;
        if self.restarts(field) {
            return runs_anew(field, &self.node, &before.started_at).await;
        }
        if !state(field, &self.node).await?.running {
            return Ok("its process ended".to_owned());
        }
        let (left, clock) = (self.shift_now(field).await?, self.clock);
        let is_right = left == ClockShift::default();
        ensure(is_right, UnprovenReason::ClockStillOff { clock })?;
        Ok(format!("its {clock} clock is put right"))
    }

    fn debts(&self) -> Vec<Debt> {
        let node = self.node.clone();
        vec![Debt::Clock { node }]
    }
}
