use serde::{Deserialize, Serialize};
use std::fmt;

/// Each name says what the target sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// SIGSTOP: every thread of the target stands still.
    Pause,
    /// SIGCONT.
    Resume,
    /// The cgroup's freezer: the target and all its children stand still, and
    /// no signal wakes them.
    Freeze,
    Thaw,
    /// SIGKILL.
    Kill,
    /// SIGKILL and a new start with the same files.
    Restart,
    /// SIGKILL and a new start with nothing.
    RestartEmpty,
    /// A Redis replica becomes the primary, and every link to the old one leads
    /// to it.
    Promote,
    /// Groups of nodes that cannot talk to each other.
    Partition,
    /// One node that nobody can talk to.
    Isolate,
    /// Connections are refused, and open ones closed.
    Refuse,
    /// Connections are made, bytes are acknowledged, and none arrives.
    Blackhole,
    /// Bytes of one direction get lost; the other direction works.
    OneWay,
    /// Bytes of one direction are held back, and arrive when it ends.
    Stall,
    /// Connections are reset.
    Reset,
    /// Bytes of one direction arrive later.
    Latency,
    /// Bytes of one direction arrive slowly.
    Bandwidth,
    /// Any other toxic of Toxiproxy's.
    Toxic,
    /// The container is not on the network any more.
    Disconnect,
    /// No packet of other nodes arrives, and none to them leaves.
    Drop,
    /// Some packets get lost.
    Loss,
    /// A clock is off.
    Skew,
    /// A clock runs too fast or too slowly.
    Drift,
}

impl FaultKind {
    pub const ALL: [FaultKind; 23] = [
        FaultKind::Pause,
        FaultKind::Resume,
        FaultKind::Freeze,
        FaultKind::Thaw,
        FaultKind::Kill,
        FaultKind::Restart,
        FaultKind::RestartEmpty,
        FaultKind::Promote,
        FaultKind::Partition,
        FaultKind::Isolate,
        FaultKind::Refuse,
        FaultKind::Blackhole,
        FaultKind::OneWay,
        FaultKind::Stall,
        FaultKind::Reset,
        FaultKind::Latency,
        FaultKind::Bandwidth,
        FaultKind::Toxic,
        FaultKind::Disconnect,
        FaultKind::Drop,
        FaultKind::Loss,
        FaultKind::Skew,
        FaultKind::Drift,
    ];

    /// As scenarios and records write it.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Pause => "pause",
            FaultKind::Resume => "resume",
            FaultKind::Freeze => "freeze",
            FaultKind::Thaw => "thaw",
            FaultKind::Kill => "kill",
            FaultKind::Restart => "restart",
            FaultKind::RestartEmpty => "restart-empty",
            FaultKind::Promote => "promote",
            FaultKind::Partition => "partition",
            FaultKind::Isolate => "isolate",
            FaultKind::Refuse => "refuse",
            FaultKind::Blackhole => "blackhole",
            FaultKind::OneWay => "one-way",
            FaultKind::Stall => "stall",
            FaultKind::Reset => "reset",
            FaultKind::Latency => "latency",
            FaultKind::Bandwidth => "bandwidth",
            FaultKind::Toxic => "toxic",
            FaultKind::Disconnect => "disconnect",
            FaultKind::Drop => "drop",
            FaultKind::Loss => "loss",
            FaultKind::Skew => "skew",
            FaultKind::Drift => "drift",
        }
    }

    /// The event of its node that a proven fault brings about, for triggers:
    /// `a.paused`. A fault of links has no one node; its entry's name tells.
    pub fn node_event(self) -> Option<&'static str> {
        Some(match self {
            FaultKind::Pause => "paused",
            FaultKind::Resume => "resumed",
            FaultKind::Freeze => "frozen",
            FaultKind::Thaw => "thawed",
            FaultKind::Kill => "killed",
            FaultKind::Restart | FaultKind::RestartEmpty => "restarted",
            FaultKind::Promote => "promoted",
            FaultKind::Isolate => "isolated",
            FaultKind::Disconnect => "disconnected",
            FaultKind::Drop | FaultKind::Loss => "losing_packets",
            FaultKind::Skew | FaultKind::Drift => "skewed",
            FaultKind::Partition
            | FaultKind::Refuse
            | FaultKind::Blackhole
            | FaultKind::OneWay
            | FaultKind::Stall
            | FaultKind::Reset
            | FaultKind::Latency
            | FaultKind::Bandwidth
            | FaultKind::Toxic => return None,
        })
    }

    /// The event of its node that its end brings about: a node that was killed
    /// comes back by being started again.
    pub fn end_event(self) -> Option<&'static str> {
        match self {
            FaultKind::Pause => FaultKind::Resume.node_event(),
            FaultKind::Freeze => FaultKind::Thaw.node_event(),
            FaultKind::Kill => FaultKind::Restart.node_event(),
            _ => None,
        }
    }

    /// Whether it lasts until something undoes it.
    pub fn stands(self) -> bool {
        !matches!(
            self,
            FaultKind::Resume
                | FaultKind::Thaw
                | FaultKind::Restart
                | FaultKind::RestartEmpty
                | FaultKind::Promote
        )
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_scenarios_use_one_name() {
        for kind in FaultKind::ALL {
            let recorded = serde_json::to_value(kind).unwrap();
            assert_eq!(recorded, kind.name());
        }
    }
}
