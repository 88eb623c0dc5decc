use super::NodeSpec;

/// Something that a case needs, and that not every runtime has.
#[derive(Clone, Copy, Debug)]
pub enum Need<'a> {
    /// This node, started.
    Node(&'a NodeSpec),
    /// All that this service connects to, reached through proxies.
    Led(&'a NodeSpec),
    /// A node that stands still whatever signals come.
    Freezer,
    /// A node that can be taken off the network.
    Network,
    /// Packets that get lost.
    PacketFilters,
}
