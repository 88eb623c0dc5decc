//! fencepost proves with real containers whether a distributed lock is safe.
//!
//! The lock is a hint; the resource enforces mutual exclusion, with a fencing
//! token that it refuses to see run backwards. The rooms, in reading order:

/// What is recorded and what is said about it.
pub mod model;

/// Files that somebody else may have made, and files that are ours alone.
pub mod files;

/// Reading from somebody who may never stop sending.
mod bounded;

/// How every listener serves HTTP.
mod serve;

/// Time that no fault touches.
pub mod clock;

/// The parts under test: lock library, protected resource, worker.
pub mod dlock;
pub mod resource;
pub mod worker;

/// A great many of them at once.
pub mod load;

/// What is to happen.
pub mod scenario;
pub mod yaml;

/// Where it happens, and what goes wrong there.
pub mod cluster;
pub mod fault;
pub mod toxiproxy;

/// From start to verdict.
pub mod checker;
pub mod report;
pub mod run;

/// For people.
pub mod cli;
pub mod progress;
