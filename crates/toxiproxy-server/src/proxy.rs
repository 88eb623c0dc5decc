//! A proxy in requests and answers.

use super::toxic::Toxic;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewProxy {
    #[serde(default)]
    pub name: String,
    /// Port 0, or an empty text, lets the system choose.
    #[serde(default)]
    pub listen: String,
    #[serde(default)]
    pub upstream: String,
    #[serde(default = "yes")]
    pub enabled: bool,
}

/// A proxy as a server describes it, with the fields of the original in its order.
/// Unknown fields are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proxy {
    pub name: String,
    /// Its listen address, enabled or not, with the port that the system chose.
    pub listen: String,
    pub upstream: String,
    pub enabled: bool,
    /// The original exposes its logger, and somebody may look for it.
    #[serde(rename = "Logger", skip_deserializing)]
    pub(super) logger: Nothing,
    #[serde(default)]
    pub toxics: Vec<Toxic>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Nothing {}

/// The fields to change; the others stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
}

fn yes() -> bool {
    true
}
