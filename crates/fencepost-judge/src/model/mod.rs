//! Plain data without I/O: the records of a run and the judgements on them.
//!
//! Everything here can be written to a file and read back; nothing here knows a
//! container, a lock server or a clock.

mod body_hash;
mod case;
mod doubt;
mod duration;
mod duration_range;
mod event;
mod expectation;
mod fault;
mod fence;
mod gap;
mod load;
mod lock_event;
mod log;
mod log_row;
mod name;
mod number;
mod plan;
mod promise;
mod run_record;
pub mod trigger;
mod verdict;
mod violation_kind;

pub use body_hash::*;
pub use case::*;
pub use doubt::*;
pub use duration::*;
pub use duration_range::*;
pub use event::*;
pub use expectation::*;
pub use fault::*;
pub use fence::*;
pub use fencing_token::FencingToken;
pub use gap::*;
pub use load::*;
pub use lock_event::*;
pub use log::*;
pub use log_row::*;
pub use name::*;
pub use number::*;
pub use plan::*;
pub use promise::*;
pub use run_record::*;
pub use trigger::Trigger;
pub use verdict::*;
pub use violation_kind::*;
