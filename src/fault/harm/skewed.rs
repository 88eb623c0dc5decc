use super::super::clockmaker::order;
use super::super::field::{Field, Server};
use super::super::journal::Debt;
use super::super::readback::clock::{Ahead, Dial, realtime_ahead_of_monotonic_ns};
use super::Harm;
use super::process::state;
use super::restarted::{runs_anew, start_again};
use crate::clock::{ClockShift, Deed, Offset, Rate};
use crate::model::{ClockName, Name};
use async_trait::async_trait;
use std::time::Duration;

const MS: i64 = 1_000_000;
/// A drift that shows nothing within this cannot be proven.
const LONGEST_LOOK: Duration = Duration::from_secs(10);
/// What the host's clock may be corrected by in the meantime, by those who do that.
const HOST_MAY_MOVE_NS: i64 = 50 * MS;

/// A clock of a process that is off, or runs at another rate. Proven when the
/// process itself says so, while the clock of the host has not moved.
pub struct Skewed {
    node: Name,
    clock: ClockName,
    shift: Shift,
    before: Option<Before>,
}

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
    pub fn by_offset(node: Name, clock: ClockName, by_ms: i64) -> Skewed {
        Skewed::new(node, clock, Shift::ByMs(by_ms))
    }

    pub fn by_rate(node: Name, clock: ClockName, ppm: i64) -> Skewed {
        Skewed::new(node, clock, Shift::ByPpm(ppm))
    }

    fn new(node: Name, clock: ClockName, shift: Shift) -> Skewed {
        Skewed {
            node,
            clock,
            shift,
            before: None,
        }
    }

    fn before(&self) -> Result<&Before, String> {
        let missing = || "its clock was not looked at before".to_owned();
        self.before.as_ref().ok_or_else(missing)
    }

    /// How long one has to look until a drift shows.
    fn look_for(&self, ppm: i64, resolution_ns: i64) -> Result<Duration, String> {
        let ns = resolution_ns as u64 * 1_000_000 / ppm.unsigned_abs().max(1);
        let needed = Duration::from_nanos(ns);
        match needed <= LONGEST_LOOK {
            true => Ok(needed),
            false => Err(format!(
                "{ppm} ppm show only after {} s, and no longer than {} s is waited",
                needed.as_secs(),
                LONGEST_LOOK.as_secs()
            )),
        }
    }

    async fn put_right(&self, field: &Field) -> Result<(), String> {
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
impl Harm for Skewed {
    async fn look(&mut self, field: &Field) -> Result<(), String> {
        let state = state(field, &self.node).await?;
        match (state.running, state.frozen) {
            (false, _) => return Err("it does not run, so it has no clock".to_owned()),
            (true, true) => return Err("it is frozen, so its clock cannot be read".to_owned()),
            (true, false) => {}
        }
        let threads = field.cluster.threads(&self.node).await;
        let threads = threads.map_err(|error| error.to_string())?;
        if threads.iter().all(|thread| thread.is_stopped()) {
            return Err("it is stopped, so its clock cannot be read; resume it first".to_owned());
        }
        let shifts = order(field.cluster.as_ref(), &self.node, Deed::Show).await?;
        if shifts.of(self.clock) != ClockShift::default() {
            return Err(format!("its {} clock is off already", self.clock));
        }
        let dial = Dial::of(field, &self.node, self.clock).await?;
        match self.shift {
            Shift::ByMs(by_ms) if (by_ms * MS).abs() < dial.resolution_ns() => {
                return Err(format!(
                    "less than {} ms cannot be read back from it",
                    dial.resolution_ns() / MS
                ));
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

    async fn inflict(&mut self, field: &Field) -> Result<(), String> {
        let wanted = self.shift.of(self.clock);
        let shifted = order(field.cluster.as_ref(), &self.node, wanted).await;
        shifted.map(drop)
    }

    async fn bitten(&mut self, field: &Field) -> Result<String, String> {
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
        if tolerated_ns * 2 > wanted_ns.abs() {
            return Err(format!(
                "its {clock} clock could be read only give or take {} ms",
                tolerated_ns / MS
            ));
        }
        if (moved_ns - wanted_ns).abs() > tolerated_ns {
            return Err(format!(
                "its {clock} clock moved by {} ms instead of {} ms",
                moved_ns / MS,
                wanted_ns / MS
            ));
        }
        let host_moved_ns = realtime_ahead_of_monotonic_ns() - before.host_ns;
        if host_moved_ns.abs() > HOST_MAY_MOVE_NS {
            return Err(format!(
                "the clock of this machine moved as well, by {} ms",
                host_moved_ns / MS
            ));
        }
        Ok(format!(
            "its {clock} clock moved by {:+} ms, and this machine's did not",
            moved_ns / MS
        ))
    }

    async fn stands(&mut self, field: &Field) -> Result<(), String> {
        let left = order(field.cluster.as_ref(), &self.node, Deed::Show).await?;
        let left = left.of(self.clock);
        let stands = match self.shift {
            Shift::ByMs(ms) => left.offset_ns == ms * MS,
            Shift::ByPpm(ppm) => left.rate_ppm == ppm,
        };
        match stands {
            true => Ok(()),
            false => Err(format!("somebody else has set its {} clock", self.clock)),
        }
    }

    async fn undo(&mut self, field: &Field) -> Result<(), String> {
        if let Some(before) = &self.before {
            before.dial.put_away().await;
        }
        if !state(field, &self.node).await?.running {
            return Ok(());
        }
        match heals_by_restart(field, &self.node, self.clock) {
            true => {
                let killed = field.cluster.kill(&self.node).await;
                killed.map_err(|error| error.to_string())?;
                start_again(field, &self.node).await
            }
            false => self.put_right(field).await,
        }
    }

    async fn undone(&mut self, field: &Field) -> Result<String, String> {
        let before = self.before()?;
        if heals_by_restart(field, &self.node, self.clock) {
            return runs_anew(field, &self.node, &before.started_at).await;
        }
        if !state(field, &self.node).await?.running {
            return Ok("its process ended".to_owned());
        }
        let left = order(field.cluster.as_ref(), &self.node, Deed::Show).await?;
        let left = left.of(self.clock);
        match left.offset_ns == 0 && left.rate_ppm == 0 {
            true => Ok(format!("its {} clock is put right", self.clock)),
            false => Err(format!("its {} clock is still off", self.clock)),
        }
    }

    fn debts(&self) -> Vec<Debt> {
        vec![Debt::Clock {
            node: self.node.clone(),
        }]
    }
}

/// etcd does not survive its clock being put back: it is started again instead.
pub fn heals_by_restart(field: &Field, node: &Name, clock: ClockName) -> bool {
    let server = field.servers.get(node);
    clock == ClockName::Monotonic && matches!(server, Some(Server::Etcd { .. }))
}

/// Kernel, architecture, permission, and whether the clock can be read back:
/// found out without changing anything.
pub async fn can_be_skewed(field: &Field, node: &Name, clock: ClockName) -> Result<(), String> {
    order(field.cluster.as_ref(), node, Deed::Show).await?;
    let dial = Dial::of(field, node, clock).await?;
    dial.put_away().await;
    Ok(())
}
