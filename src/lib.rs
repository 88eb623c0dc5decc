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

/// What is to happen, written by a person or carried by the program.
pub mod builtin;
pub mod scenario;
pub mod yaml;

/// Where it happens, and what goes wrong there.
pub mod cluster;
pub mod faults;
pub mod simulation;

/// Whether a worker of somebody else speaks the worker protocol.
pub mod conformance;

/// From start to verdict.
pub mod report;
pub mod run;

/// A search for what nobody thought of.
pub mod explore;

/// For people.
pub mod certify;
pub mod cli;
pub mod progress;

/// For the tests of other programs.
pub use fencepost_harness::{Case, Harness, HarnessError, Report, Runtime, Verdict};
