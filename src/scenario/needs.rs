use super::Setup;
use crate::model::Fault;
use std::fmt;

/// What a case asks of the machine beside an engine. Where it is missing, the
/// case is inconclusive with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// For clocks that are off.
    OwnClocks,
    /// For packets that get lost.
    PacketFilter,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Need::OwnClocks => {
                "root on the host or SYS_PTRACE in a helper container, on Linux on x86-64 (clocks)"
            }
            Need::PacketFilter => {
                "NET_ADMIN in a helper container and the kernel's iptables (packets)"
            }
        })
    }
}

impl Setup {
    pub fn needs(&self) -> Vec<Need> {
        let faults = self.faults().into_iter();
        let mut needs: Vec<Need> = faults.filter_map(need).collect();
        needs.sort();
        needs.dedup();
        needs
    }
}

fn need(fault: &Fault) -> Option<Need> {
    match fault {
        Fault::Skew { .. } | Fault::Drift { .. } => Some(Need::OwnClocks),
        Fault::Loss { .. } => Some(Need::PacketFilter),
        _ => None,
    }
}
