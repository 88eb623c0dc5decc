//! Toxiproxy: TCP proxies whose connections can be made to misbehave while
//! they are open, steered over HTTP.
//!
//! [`ToxiproxyClient`] drives any server that speaks this API, the original
//! included. [`server`] is one of our own. [`Proxy`] and [`Toxic`] are what
//! both sides say to each other.

mod client;
mod error;
mod proxy;
pub mod server;
mod toxic;

pub use client::ToxiproxyClient;
pub use error::ToxiproxyError;
pub use proxy::{NewProxy, Proxy, ProxyChange};
pub use toxic::{Stream, Toxic, ToxicChange, ToxicKind, ToxicProblem};
