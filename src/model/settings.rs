use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

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

/// Reads one of a few words, as its `Display` writes it.
fn one_of<T: Copy + fmt::Display>(text: &str, all: &[T]) -> Result<T, String> {
    let found = all.iter().find(|one| one.to_string() == text);
    found.copied().ok_or_else(|| {
        let words: Vec<String> = all.iter().map(T::to_string).collect();
        format!("not one of: {}", words.join(", "))
    })
}

impl FromStr for Fence {
    type Err = String;
    fn from_str(text: &str) -> Result<Fence, String> {
        one_of(text, &Fence::ALL)
    }
}

impl FromStr for OnLost {
    type Err = String;
    fn from_str(text: &str) -> Result<OnLost, String> {
        one_of(text, &OnLost::ALL)
    }
}

impl FromStr for Backend {
    type Err = String;
    fn from_str(text: &str) -> Result<Backend, String> {
        one_of(text, &Backend::ALL)
    }
}
