//! Faults: what kinds there are, how one is asked for, how it is recorded.

mod asked;
mod kind;
mod link;
mod row;

pub use asked::{ClockName, Fault, LEADER};
pub use kind::FaultKind;
pub use link::{Link, LinkEffect, LinkFault, LinkPattern, LinkScope, Streams, ToxicEffect};
pub use row::{FaultRow, FaultStage};
