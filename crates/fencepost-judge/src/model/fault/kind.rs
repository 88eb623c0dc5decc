//! The kinds of faults, with the general facts about each: one row per fault. The files
//! in `faults/catalogue/`, one per fault, say how a fault is written, injected and
//! verified.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The facts about a kind of fault. In words, `{}` is its target.
#[derive(Clone, Copy, Debug)]
pub struct FaultFacts {
    /// The name in scenarios and records.
    pub name: &'static str,
    pub class: FaultClass,
    pub affects: Affected,
    /// The event of its node that a proven fault causes, for triggers: `a.paused`. A
    /// fault of links has no single node; the name of its entry is used instead.
    pub node_event: Option<&'static str>,
    /// The actions that end it, beside its `for` and healing.
    pub ended_by: &'static [FaultKind],
    /// The words of a story for its beginning.
    pub begins: &'static str,
    /// The words of a story for its end; without them, a story only says that it ends.
    pub ends: Option<&'static str>,
    /// The words of a plan for the end of its `for`.
    pub undone: &'static str,
}

/// The effect on the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultClass {
    /// It is stopped.
    Stop,
    /// It goes on after a stop; nothing else happens to it.
    Continue,
    /// Its process ends.
    Kill,
    /// Its process ends, and another one takes its place.
    Restart,
    /// It becomes the leader.
    Promotion,
    /// Its connections do not work as they should.
    Links,
    /// It is off the network.
    Disconnection,
    /// Some of its packets get lost.
    PacketLoss,
    /// One of its clocks is wrong.
    Clock,
}

/// The kind of target that a fault is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affected {
    Node,
    /// The links between groups of nodes.
    Groups,
    Links,
}

const OF_A_NODE: FaultFacts = FaultFacts {
    name: "",
    class: FaultClass::Stop,
    affects: Affected::Node,
    node_event: None,
    ended_by: &[],
    begins: "",
    ends: None,
    undone: "undone",
};

const OF_LINKS: FaultFacts = FaultFacts {
    class: FaultClass::Links,
    affects: Affected::Links,
    ..OF_A_NODE
};

/// Defines the enum, all its values, and the row of each: its name, the facts it starts
/// from, the words of a story for its beginning, and the other facts.
macro_rules! fault_kinds {
    ($($(#[$doc:meta])* $kind:ident: $name:literal, $like:ident, $begins:literal
        $(, $fact:ident: $value:expr)*;)*) => {
        /// Each name says what the target sees.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum FaultKind {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)*
        }

        impl FaultKind {
            pub const ALL: [FaultKind; [$($name),*].len()] = [$(FaultKind::$kind),*];

            pub const fn facts(self) -> FaultFacts {
                match self {
                    $(FaultKind::$kind => FaultFacts {
                        name: $name,
                        begins: $begins,
                        $($fact: $value,)*
                        ..$like
                    },)*
                }
            }
        }
    };
}

fault_kinds! {
    /// SIGSTOP: every thread of the target stands still.
    Pause: "pause", OF_A_NODE, "{} is stopped (SIGSTOP)",
        node_event: Some("paused"),
        ended_by: &[FaultKind::Resume],
        undone: "SIGCONT";
    /// SIGCONT.
    Resume: "resume", OF_A_NODE, "{} is continued (SIGCONT)",
        class: FaultClass::Continue,
        node_event: Some("resumed");
    /// The cgroup's freezer: the target and all its children stand still, and
    /// no signal wakes them.
    Freeze: "freeze", OF_A_NODE, "{} is frozen",
        node_event: Some("frozen"),
        ended_by: &[FaultKind::Thaw],
        undone: "thawed";
    Thaw: "thaw", OF_A_NODE, "{} is thawed", class: FaultClass::Continue, node_event: Some("thawed");
    /// SIGKILL.
    Kill: "kill", OF_A_NODE, "{} is killed (SIGKILL)",
        class: FaultClass::Kill,
        node_event: Some("killed"),
        ended_by: &[FaultKind::Restart, FaultKind::RestartEmpty],
        ends: Some("{} is started again"),
        undone: "started again";
    /// SIGKILL and a new start with the same files.
    Restart: "restart", OF_A_NODE, "{} is restarted and comes back with its data",
        class: FaultClass::Restart,
        node_event: Some("restarted");
    /// SIGKILL and a new start with nothing.
    RestartEmpty: "restart-empty", OF_A_NODE, "{} is restarted and comes back empty",
        class: FaultClass::Restart,
        node_event: Some("restarted");
    /// A Redis replica becomes the primary, and every link to the old one leads
    /// to it.
    Promote: "promote", OF_A_NODE, "{} becomes the primary",
        class: FaultClass::Promotion,
        node_event: Some("promoted");
    /// Groups of nodes that cannot talk to each other.
    Partition: "partition", OF_LINKS, "the network is split: {}", affects: Affected::Groups;
    /// One node that nobody can talk to.
    Isolate: "isolate", OF_LINKS, "{} is cut off from everybody",
        affects: Affected::Node,
        node_event: Some("isolated");
    /// Connections are refused, and open ones closed.
    Refuse: "refuse", OF_LINKS, "connections are refused: {}";
    /// Connections are made, bytes are acknowledged, and none arrives.
    Blackhole: "blackhole", OF_LINKS, "everything sent is lost: {}";
    /// Bytes of one direction get lost; the other direction works.
    OneWay: "one-way", OF_LINKS, "what is sent one way is lost: {}";
    /// Bytes of one direction are held back, and arrive when it ends.
    Stall: "stall", OF_LINKS, "what is sent is held back: {}", ends: Some("what was held back arrives: {}");
    /// Connections are reset.
    Reset: "reset", OF_LINKS, "connections are reset: {}";
    /// Bytes of one direction arrive later.
    Latency: "latency", OF_LINKS, "what is sent arrives late: {}";
    /// Bytes of one direction arrive slowly.
    Bandwidth: "bandwidth", OF_LINKS, "what is sent arrives slowly: {}";
    /// Any other toxic of Toxiproxy's.
    Toxic: "toxic", OF_LINKS, "a toxic is put on {}";
    /// The container is not on the network any more.
    Disconnect: "disconnect", OF_A_NODE, "{} is taken off the network",
        class: FaultClass::Disconnection,
        node_event: Some("disconnected"),
        ends: Some("{} is put on the network again"),
        undone: "put on the network again";
    /// No packet of other nodes arrives, and none to them leaves.
    Drop: "drop", OF_A_NODE, "every packet of {} is dropped",
        class: FaultClass::PacketLoss,
        node_event: Some("losing_packets");
    /// Some packets get lost.
    Loss: "loss", OF_A_NODE, "packets of {} get lost",
        class: FaultClass::PacketLoss,
        node_event: Some("losing_packets");
    /// A clock is off.
    Skew: "skew", OF_A_NODE, "{}'s clock is set off",
        class: FaultClass::Clock,
        node_event: Some("skewed"),
        ends: Some("the clock of {} is put right"),
        undone: "put right";
    /// A clock runs too fast or too slowly.
    Drift: "drift", OF_A_NODE, "{}'s clock begins to drift",
        class: FaultClass::Clock,
        node_event: Some("skewed"),
        ends: Some("the clock of {} is put right"),
        undone: "put right";
}

impl FaultKind {
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    pub fn class(self) -> FaultClass {
        self.facts().class
    }

    pub fn node_event(self) -> Option<&'static str> {
        self.facts().node_event
    }

    /// Returns the event of its node that its end causes: a killed node comes back by
    /// being started again.
    pub fn end_event(self) -> Option<&'static str> {
        self.facts().ended_by.first()?.node_event()
    }

    pub fn lasts(self) -> bool {
        !matches!(
            self.class(),
            FaultClass::Continue | FaultClass::Restart | FaultClass::Promotion
        )
    }

    /// Returns the action that lets a stopped target go on.
    pub fn continued_by(self) -> Option<FaultKind> {
        let enders = self.facts().ended_by.iter().copied();
        enders
            .into_iter()
            .find(|by| by.class() == FaultClass::Continue)
    }

    /// Returns the stop that this action ends, and does nothing else.
    pub fn continues(self) -> Option<FaultKind> {
        let mut all = FaultKind::ALL.into_iter();
        all.find(|kind| kind.continued_by() == Some(self))
    }

    pub fn ends_process(self) -> bool {
        matches!(self.class(), FaultClass::Kill | FaultClass::Restart)
    }

    /// Returns whether it lives in a process or in the process's network, and ends with
    /// it.
    pub fn ends_with_process(self) -> bool {
        matches!(
            self.class(),
            FaultClass::Stop | FaultClass::PacketLoss | FaultClass::Clock
        )
    }

    /// Returns a sentence of a story about this target.
    pub fn begins(self, target: &str) -> String {
        self.facts().begins.replacen("{}", target, 1)
    }

    pub fn ends(self, target: &str) -> String {
        match self.facts().ends {
            Some(words) => words.replacen("{}", target, 1),
            None => format!("the {self} ends: {target}"),
        }
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

    #[test]
    fn every_stop_has_an_end_of_its_own_and_every_sentence_a_target() {
        for kind in FaultKind::ALL {
            let is_stop = kind.class() == FaultClass::Stop;
            assert_eq!(kind.continued_by().is_some(), is_stop, "{kind}");
            let lets_go_on = kind.class() == FaultClass::Continue;
            assert_eq!(kind.continues().is_some(), lets_go_on, "{kind}");
            assert!(kind.begins("a-1").contains("a-1"), "{kind}");
            assert!(kind.ends("a-1").contains("a-1"), "{kind}");
        }
    }
}
