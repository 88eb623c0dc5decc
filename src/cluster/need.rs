use super::NodeSpec;

/// A need of a case that not every runtime meets.
#[derive(Clone, Copy, Debug)]
pub enum Need<'a> {
    /// To start this node.
    Node(&'a NodeSpec),
    /// To lead everything that this service connects to through proxies.
    Led(&'a NodeSpec),
    /// To freeze a node so that no signal wakes it.
    Freezer,
    /// To take a node off the network.
    Network,
    /// To lose packets.
    PacketFilters,
    /// To have wrong clocks in one process alone.
    OwnClocks,
    /// To stop and end the container of a server that was there before.
    AttachedContainer,
}

impl Need<'_> {
    /// Returns what a case needs of the machine beside an engine; if it is missing, the case is
    /// inconclusive with the reason.
    pub fn of_the_machine(self) -> Option<&'static str> {
        match self {
            Need::OwnClocks => Some(
                "root on the host or SYS_PTRACE in a helper container, on Linux on x86-64 (clocks)",
            ),
            Need::PacketFilters => {
                Some("NET_ADMIN in a helper container and the kernel's iptables (packets)")
            }
            Need::Node(_)
            | Need::Led(_)
            | Need::Freezer
            | Need::Network
            | Need::AttachedContainer => None,
        }
    }
}
