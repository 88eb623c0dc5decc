use serde::{Deserialize, Serialize};
use std::fmt;

/// Whether the resource compares tokens. Off is the unsafe baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fence {
    On,
    Off,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fence::On => "on",
            Fence::Off => "off",
        })
    }
}

impl Fence {
    pub const ALL: [Fence; 2] = [Fence::On, Fence::Off];
}

/// What a worker does once it knows that its lease is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnLost {
    /// Write nothing more in this round: what users should do.
    #[default]
    Stop,
    /// Go on as if nothing had happened.
    Ignore,
}

impl OnLost {
    pub const ALL: [OnLost; 2] = [OnLost::Stop, OnLost::Ignore];
}

impl fmt::Display for OnLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OnLost::Stop => "stop",
            OnLost::Ignore => "ignore",
        })
    }
}

/// Which lock service guards the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    /// One Redis.
    Redis,
}

impl Backend {
    pub const ALL: [Backend; 1] = [Backend::Redis];
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Redis => "redis",
        })
    }
}
