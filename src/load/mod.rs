//! Load on locks: contenders at a fixed rate, and a great many keys.
//!
//! What is measured is counted from when it was due, so a queue that grows is
//! seen; and everything that is held is written with its token, so a load is
//! judged like every other run.

mod contend;
mod error;
mod generate;
mod keyspace;
mod memory;

pub use contend::contend;
pub use error::LoadError;
pub use generate::{GeneratePlan, Generated, Names, generate, generated_names};
pub use keyspace::keyspace;

use crate::model::{ArrivalRow, Event};

/// Where the load goes.
#[derive(Clone, Debug)]
pub struct Targets {
    /// `host:port` of each lock server.
    pub lock_servers: Vec<String>,
    /// `http://host:port` of the resource.
    pub resource: String,
}

/// Takes down what happens, row by row. It must not wait for anything.
pub trait Recorder: Send + Sync {
    fn event(&self, event: &Event);
    fn arrival(&self, row: &ArrivalRow);
}
