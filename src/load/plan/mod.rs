//! Plans for load on locks.

mod contend;
mod keyspace;

pub use contend::{Arrivals, ContendPlan};
pub use keyspace::KeyspacePlan;

#[derive(Clone, Debug, PartialEq)]
pub enum LoadPlan {
    /// Contenders for one key, or for many.
    Contend(ContendPlan),
    /// A great many short-lived locks, and what they leave behind.
    Keyspace(KeyspacePlan),
}
