use super::cut;
use crate::model::{ClockName, Fault, FaultKind, LinkEffect, LinkFault, LinkScope, Name};
use crate::scenario::values::{choice, duration, number, signed_duration};
use crate::yaml::{At, Fields, Node, Report, Value};
use std::time::Duration;

/// What the best of clocks shows within ten seconds, and no proof takes longer.
const LEAST_PPM: i64 = 2_000;
const LEAST_SKEW_MS: u64 = 20;
/// A clock that is off by half is far more than any crystal.
pub const MOST_PPM: i64 = 500_000;

/// Farther off, sums with it would not fit where targets keep their times.
const MOST_SKEW_MS: u64 = 365 * 24 * 60 * 60 * 1000;

/// A fault of a node that is still to be named.
#[derive(Clone)]
pub enum NodeFault {
    Pause { longer_than: Option<At<Bound>> },
    Freeze { longer_than: Option<At<Bound>> },
    Kill,
    Restart,
    RestartEmpty,
    Promote,
    Isolate { effect: LinkEffect },
    Disconnect,
    Loss { percent: u8 },
    Skew { clock: ClockName, by_ms: i64 },
    Drift { clock: ClockName, ppm: i64 },
}

/// What a pause has to outlast.
#[derive(Clone, Copy)]
pub enum Bound {
    Ttl,
    Fixed(Duration),
}

impl NodeFault {
    pub fn longer_than(&self) -> Option<&At<Bound>> {
        match self {
            NodeFault::Pause { longer_than } | NodeFault::Freeze { longer_than } => {
                longer_than.as_ref()
            }
            _ => None,
        }
    }

    pub fn of(&self, node: Name, ttl: Duration) -> Fault {
        let longer_than = self.longer_than().map(|at| match at.value {
            Bound::Ttl => ttl,
            Bound::Fixed(fixed) => fixed,
        });
        match *self {
            NodeFault::Pause { .. } => Fault::Pause { node, longer_than },
            NodeFault::Freeze { .. } => Fault::Freeze { node, longer_than },
            NodeFault::Kill => Fault::Kill { node },
            NodeFault::Restart => Fault::Restart { node },
            NodeFault::RestartEmpty => Fault::RestartEmpty { node },
            NodeFault::Promote => Fault::Promote { node },
            NodeFault::Isolate { ref effect } => Fault::Links(LinkFault {
                kind: FaultKind::Isolate,
                scope: LinkScope::Around(node),
                effect: effect.clone(),
            }),
            NodeFault::Disconnect => Fault::Disconnect { node },
            NodeFault::Loss { percent } => Fault::Loss { node, percent },
            NodeFault::Skew { clock, by_ms } => Fault::Skew { node, clock, by_ms },
            NodeFault::Drift { clock, ppm } => Fault::Drift { node, clock, ppm },
        }
    }
}

/// None for a fault that is not one of a node, and where something in it could
/// not be read.
pub fn read(kind: FaultKind, fields: &mut Fields, report: &mut Report) -> Option<NodeFault> {
    Some(match kind {
        FaultKind::Pause => NodeFault::Pause {
            longer_than: fields.read("longer_than", report, read_bound),
        },
        FaultKind::Freeze => NodeFault::Freeze {
            longer_than: fields.read("longer_than", report, read_bound),
        },
        FaultKind::Kill => NodeFault::Kill,
        FaultKind::Restart => NodeFault::Restart,
        FaultKind::RestartEmpty => NodeFault::RestartEmpty,
        FaultKind::Promote => NodeFault::Promote,
        FaultKind::Isolate => NodeFault::Isolate {
            effect: cut::read_by(fields, report)?,
        },
        FaultKind::Disconnect => NodeFault::Disconnect,
        FaultKind::Drop => NodeFault::Loss { percent: 100 },
        FaultKind::Loss => read_loss(fields, report)?,
        FaultKind::Skew => read_skew(fields, report)?,
        FaultKind::Drift => read_drift(fields, report)?,
        _ => return None,
    })
}

fn read_bound(node: &Node, report: &mut Report) -> Option<At<Bound>> {
    if matches!(&node.value, Value::Scalar(text) if text == "ttl") {
        return Some(At {
            place: node.place,
            value: Bound::Ttl,
        });
    }
    Some(duration(node, report)?.map(Bound::Fixed))
}

fn read_loss(fields: &mut Fields, report: &mut Report) -> Option<NodeFault> {
    let node = fields.required("percent", report)?;
    if matches!(&node.value, Value::Scalar(text) if text == "100") {
        let message = "losing every packet has a name of its own: use `drop`";
        report.add(node.place, message);
        return None;
    }
    let percent = number(node, "percent", 1..=99, report)?;
    Some(NodeFault::Loss {
        percent: percent.value as u8,
    })
}

fn read_skew(fields: &mut Fields, report: &mut Report) -> Option<NodeFault> {
    let by = fields.required("by", report);
    let clock = read_clock(fields, report);
    let by = signed_duration(by?, report)?;
    let clock = clock?;
    if by.value == 0 {
        report.add(by.place, "a clock that is off by nothing is not skewed");
        return None;
    }
    if by.value.unsigned_abs() < LEAST_SKEW_MS {
        report.add(by.place, "less than 20ms could not be read back");
        return None;
    }
    if by.value.unsigned_abs() > MOST_SKEW_MS {
        report.add(by.place, "a clock is off by at most a year, 525600m");
        return None;
    }
    if by.value < 0 && clock == ClockName::Monotonic {
        report.add(
            by.place,
            "a monotonic clock does not go back: its timers would stand still for that long, which is what `pause` does",
        );
        return None;
    }
    Some(NodeFault::Skew {
        clock,
        by_ms: by.value,
    })
}

fn read_drift(fields: &mut Fields, report: &mut Report) -> Option<NodeFault> {
    let ppm = fields.required("ppm", report);
    let clock = read_clock(fields, report);
    let ppm = number(ppm?, "ppm", -MOST_PPM..=MOST_PPM, report)?;
    if ppm.value == 0 {
        report.add(ppm.place, "a clock with 0 ppm does not drift");
        return None;
    }
    if ppm.value.abs() < LEAST_PPM {
        let message =
            "less than 2000 ppm add up to less than 20 ms in 10 s, which could not be read back";
        report.add(ppm.place, message);
        return None;
    }
    Some(NodeFault::Drift {
        clock: clock?,
        ppm: ppm.value,
    })
}

fn read_clock(fields: &mut Fields, report: &mut Report) -> Option<ClockName> {
    match fields.optional("clock") {
        None => Some(ClockName::default()),
        Some(node) => Some(choice(node, "clock", &ClockName::ALL, report)?.value),
    }
}

/// A node, or `{ one_of: [x, y] }`, of which the seed draws one.
pub fn read_choices(node: &Node, report: &mut Report) -> Option<Vec<At<String>>> {
    let Value::Map(_) = &node.value else {
        return Some(vec![node.text("a node, or { one_of: [x, y] }", report)?]);
    };
    let mut fields = Fields::of(node, "a choice of nodes", report)?;
    let list = fields.required("one_of", report);
    fields.finish(report);
    let list = list?;
    let names = list.list("nodes", report)?;
    if names.len() < 2 {
        report.add(list.place, "`one_of` takes at least two nodes");
    }
    let mut choices: Vec<At<String>> = Vec::new();
    for name in names {
        let Some(name) = name.text("a node", report) else {
            continue;
        };
        if choices.iter().any(|known| known.value == name.value) {
            report.add(name.place, format!("`{}` stands here twice", name.value));
        }
        choices.push(name);
    }
    (!choices.is_empty()).then_some(choices)
}
