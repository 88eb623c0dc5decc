//! Load on locks: contenders at a fixed rate, and a great many keys.
//!
//! Times count from when an arrival was due, so a growing queue is visible. Every hold is
//! written with its token, so a load is judged like every other run.

mod contend;
mod error;
mod generate;
mod keyspace;
mod memory;
mod plan;

pub use contend::{ContendPart, contend, heard};
pub use error::{LoadError, LoadResult};
pub use generate::{GeneratePlan, Generated, Names, generate, generated_names};
pub use keyspace::keyspace;
pub use plan::{Arrivals, ContendPlan, KeyspacePlan, LoadPlan};

use crate::model::{ArrivalRow, Event};

#[derive(Clone, Debug)]
pub struct Targets {
    /// `host:port` of each lock server.
    pub lock_servers: Vec<String>,
    /// `http://host:port` of the resource.
    pub resource: String,
}

/// A recorder of what happens, row by row. It must not block.
pub trait Recorder: Send + Sync {
    fn event(&self, event: &Event);
    fn arrival(&self, row: &ArrivalRow);
}
