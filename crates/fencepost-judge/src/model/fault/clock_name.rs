use serde::{Deserialize, Serialize};

/// A clock of a process.
#[derive(strum::Display)]
#[strum(serialize_all = "kebab-case")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
