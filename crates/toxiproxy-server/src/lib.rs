#![doc = include_str!("../README.md")]

mod api;
mod client;
mod error;
mod proxy;
pub mod server;
mod toxic;

pub use api::ToxiproxyApi;
pub use client::ToxiproxyClient;
pub use error::ToxiproxyError;
pub use proxy::{NewProxy, Proxy, ProxyChange};
pub use toxic::{Stream, Toxic, ToxicChange, ToxicKind, ToxicProblem};
