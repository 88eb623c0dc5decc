use super::{FaultKind, LinkFault, LinkScope};
use crate::model::Name;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A fault as it is asked for: nothing in it is left to chance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    Pause {
        node: Name,
        /// It proves nothing unless it lasted longer than this.
        longer_than: Option<Duration>,
    },
    Freeze {
        node: Name,
        longer_than: Option<Duration>,
    },
    Kill {
        node: Name,
    },
    Restart {
        node: Name,
    },
    RestartEmpty {
        node: Name,
    },
    /// The replica that becomes the primary.
    Promote {
        node: Name,
    },
    Links(LinkFault),
    Disconnect {
        node: Name,
    },
    /// The share of packets that get lost, 1 to 100.
    Loss {
        node: Name,
        percent: u8,
    },
    Skew {
        node: Name,
        clock: ClockName,
        by_ms: i64,
    },
    Drift {
        node: Name,
        clock: ClockName,
        ppm: i64,
    },
}

/// The word for the etcd member that leads when the fault comes.
pub const LEADER: &str = "leader";

/// A clock of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum ClockName {
    /// What Redis expires keys by.
    #[default]
    Realtime,
    /// What etcd counts leases by, and Rust its instants.
    Monotonic,
}

impl ClockName {
    pub const ALL: [ClockName; 2] = [ClockName::Realtime, ClockName::Monotonic];
}

impl fmt::Display for ClockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClockName::Realtime => "realtime",
            ClockName::Monotonic => "monotonic",
        })
    }
}

impl Fault {
    pub fn kind(&self) -> FaultKind {
        match self {
            Fault::Pause { .. } => FaultKind::Pause,
            Fault::Freeze { .. } => FaultKind::Freeze,
            Fault::Kill { .. } => FaultKind::Kill,
            Fault::Restart { .. } => FaultKind::Restart,
            Fault::RestartEmpty { .. } => FaultKind::RestartEmpty,
            Fault::Promote { .. } => FaultKind::Promote,
            Fault::Links(fault) => fault.kind,
            Fault::Disconnect { .. } => FaultKind::Disconnect,
            Fault::Loss { percent: 100, .. } => FaultKind::Drop,
            Fault::Loss { .. } => FaultKind::Loss,
            Fault::Skew { .. } => FaultKind::Skew,
            Fault::Drift { .. } => FaultKind::Drift,
        }
    }

    /// The node that it befalls; None for links between several.
    pub fn node(&self) -> Option<&Name> {
        match self {
            Fault::Pause { node, .. }
            | Fault::Freeze { node, .. }
            | Fault::Kill { node }
            | Fault::Restart { node }
            | Fault::RestartEmpty { node }
            | Fault::Promote { node }
            | Fault::Disconnect { node }
            | Fault::Loss { node, .. }
            | Fault::Skew { node, .. }
            | Fault::Drift { node, .. } => Some(node),
            Fault::Links(fault) => match &fault.scope {
                LinkScope::Around(node) => Some(node),
                _ => None,
            },
        }
    }

    /// What it befalls, as records and messages say it.
    pub fn target(&self) -> String {
        match self {
            Fault::Links(fault) => fault.scope.to_string(),
            other => other.node().map(Name::to_string).unwrap_or_default(),
        }
    }

    pub fn longer_than(&self) -> Option<Duration> {
        match self {
            Fault::Pause { longer_than, .. } | Fault::Freeze { longer_than, .. } => *longer_than,
            _ => None,
        }
    }

    /// The clock that it moves.
    pub fn clock(&self) -> Option<ClockName> {
        match self {
            Fault::Skew { clock, .. } | Fault::Drift { clock, .. } => Some(*clock),
            _ => None,
        }
    }

    pub fn by_ms(&self) -> Option<i64> {
        match self {
            Fault::Skew { by_ms, .. } => Some(*by_ms),
            _ => None,
        }
    }

    pub fn ppm(&self) -> Option<i64> {
        match self {
            Fault::Drift { ppm, .. } => Some(*ppm),
            _ => None,
        }
    }

    /// The same for another node; a fault of links between several stays as it is.
    pub fn at(&self, other: Name) -> Fault {
        let mut fault = self.clone();
        match &mut fault {
            Fault::Pause { node, .. }
            | Fault::Freeze { node, .. }
            | Fault::Kill { node }
            | Fault::Restart { node }
            | Fault::RestartEmpty { node }
            | Fault::Promote { node }
            | Fault::Disconnect { node }
            | Fault::Loss { node, .. }
            | Fault::Skew { node, .. }
            | Fault::Drift { node, .. } => *node = other,
            Fault::Links(links) => {
                if let LinkScope::Around(node) = &mut links.scope {
                    *node = other;
                }
            }
        }
        fault
    }

    /// What else was asked for, beside kind and target.
    pub fn parameters(&self) -> String {
        match self {
            Fault::Links(fault) => fault.effect.to_string(),
            Fault::Loss { percent, .. } => format!("{percent} % of its packets"),
            Fault::Skew { clock, by_ms, .. } => format!("{clock} by {by_ms:+} ms"),
            Fault::Drift { clock, ppm, .. } => format!("{clock} by {ppm:+} ppm"),
            _ => String::new(),
        }
    }
}
