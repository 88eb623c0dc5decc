use super::{ClockName, FaultKind, LinkFault, LinkScope};
use crate::model::Name;
use std::fmt;
use std::time::Duration;

/// A requested fault, in which nothing is left to chance.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    Node(NodeFault),
    Links(LinkFault),
}

#[derive(Clone, Debug, PartialEq)]
pub struct NodeFault {
    pub kind: FaultKind,
    pub node: Name,
    /// A stop proves nothing unless it lasted longer than this.
    pub longer_than: Option<Duration>,
    pub parameters: FaultParameters,
}

/// The other parameters of a fault of a node: each kind has different ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultParameters {
    /// The share of packets that get lost, 1 to 100.
    pub percent: Option<u8>,
    /// The clock that is moved.
    pub clock: Option<ClockName>,
    /// How far the clock is moved.
    pub by_ms: Option<i64>,
    /// How much faster the clock runs.
    pub ppm: Option<i64>,
}

/// The word for the etcd member that leads when the fault is injected.
pub const LEADER: &str = "leader";

impl Fault {
    pub fn of_node(kind: FaultKind, node: Name) -> Fault {
        Fault::with(kind, node, FaultParameters::default())
    }

    pub fn with(kind: FaultKind, node: Name, parameters: FaultParameters) -> Fault {
        Fault::Node(NodeFault {
            kind,
            node,
            longer_than: None,
            parameters,
        })
    }

    pub fn kind(&self) -> FaultKind {
        match self {
            Fault::Node(fault) => fault.kind,
            Fault::Links(fault) => fault.kind,
        }
    }

    /// Returns the node that it affects, or `None` for links between several.
    pub fn node(&self) -> Option<&Name> {
        match self {
            Fault::Node(fault) => Some(&fault.node),
            Fault::Links(fault) => match &fault.scope {
                LinkScope::Around(node) => Some(node),
                LinkScope::Between(_) | LinkScope::Matching(_) => None,
            },
        }
    }

    /// Returns what it affects, as records and messages write it.
    pub fn target(&self) -> String {
        match self {
            Fault::Node(fault) => fault.node.to_string(),
            Fault::Links(fault) => fault.scope.to_string(),
        }
    }

    pub fn longer_than(&self) -> Option<Duration> {
        match self {
            Fault::Node(fault) => fault.longer_than,
            Fault::Links(_) => None,
        }
    }

    /// Returns the parameters. A fault of links has none, but an effect instead.
    pub fn parameters(&self) -> FaultParameters {
        match self {
            Fault::Node(fault) => fault.parameters,
            Fault::Links(_) => FaultParameters::default(),
        }
    }

    /// Returns the same fault for another node; a fault of links between several stays as
    /// it is.
    pub fn at(&self, other: Name) -> Fault {
        let mut fault = self.clone();
        match &mut fault {
            Fault::Node(NodeFault { node, .. })
            | Fault::Links(LinkFault {
                scope: LinkScope::Around(node),
                ..
            }) => *node = other,
            Fault::Links(_) => {}
        }
        fault
    }

    /// Returns everything requested besides kind and target, in words.
    pub fn details(&self) -> String {
        match self {
            Fault::Node(fault) => fault.parameters.to_string(),
            Fault::Links(fault) => fault.effect.to_string(),
        }
    }
}

impl fmt::Display for FaultParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(percent) = self.percent {
            write!(f, "{percent} % of its packets")?;
        }
        if let Some(clock) = self.clock {
            write!(f, "{clock}")?;
        }
        if let Some(by_ms) = self.by_ms {
            write!(f, " by {by_ms:+} ms")?;
        }
        if let Some(ppm) = self.ppm {
            write!(f, " by {ppm:+} ppm")?;
        }
        Ok(())
    }
}
