//! A proxy as it stands in requests and answers.

use super::toxic::Toxic;
use serde::{Deserialize, Deserializer, Serialize};

/// What a proxy is made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewProxy {
    #[serde(default, deserialize_with = "null_is_empty")]
    pub name: String,
    /// Port 0, or nothing at all, lets the system choose.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub listen: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub upstream: String,
    #[serde(default = "yes", deserialize_with = "null_is_true")]
    pub enabled: bool,
}

/// A proxy as the server describes it. Fields that nobody here knows are
/// passed over: the original sends some of its insides along.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Proxy {
    pub name: String,
    /// Where it listens, or would, with the port that the system chose.
    pub listen: String,
    pub upstream: String,
    pub enabled: bool,
    #[serde(default)]
    pub toxics: Vec<Toxic>,
}

/// What is to be different; the rest stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
}

fn null_is_empty<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    Option::deserialize(input).map(Option::unwrap_or_default)
}

fn null_is_true<'de, D: Deserializer<'de>>(input: D) -> Result<bool, D::Error> {
    Option::deserialize(input).map(|value| value.unwrap_or(true))
}

fn yes() -> bool {
    true
}
