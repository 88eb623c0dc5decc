//! fencepost proves with real containers whether a distributed lock is safe.
//!
//! The lock is a hint; the resource enforces mutual exclusion, with a fencing
//! token that it refuses to see run backwards. The lock library (`fencing-lock`),
//! the judge (`fencepost-judge`), the proxies (`toxiproxy-server`) and the skewing of
//! clocks (`vdso-clock`) are crates of their own. The rooms here, in reading order:

/// Plain data: what is asked for, what is recorded, what is said about it.
pub mod model;

/// Time that no fault touches, and what is done to the clocks of a process.
pub mod clock;

/// The parts under test: lock services, protected resource, worker.
pub mod resource;
pub mod services;
pub mod worker;

/// A great many of them at once.
pub mod load;

/// What is to happen.
pub mod scenario;
pub mod yaml;

/// Where it happens, and what goes wrong there.
pub mod cluster;
pub mod faults;

/// From start to verdict.
pub mod report;
pub mod run;

/// For people.
pub mod cli;
pub mod progress;
