//! Locks in a Postgres database.
//!
//! Every statement is sent unnamed and is a transaction of its own, so that it also works
//! through a pooler that gives each transaction another session.

mod advisory;
mod connection;
mod failure;
mod frames;
mod lease;
mod link;
mod server;
mod settings;
mod values;

pub use advisory::PostgresAdvisoryBackend;
#[cfg(feature = "servers")]
pub use connection::{PostgresConnection, check_schema, connect};
#[cfg(feature = "servers")]
pub use failure::problem_of;
#[cfg(feature = "servers")]
pub use lease::CREATE as CREATE_LEASES;
pub use lease::PostgresLeaseBackend;
pub use settings::PostgresSettings;
