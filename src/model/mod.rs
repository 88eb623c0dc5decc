//! Plain data, no I/O: what a run records and what a judge says about it.
//!
//! Everything here can be written to a file and read back; nothing here knows
//! a container, a lock server or a clock.

mod case;
mod duration;
mod event;
mod expectation;
mod fault;
mod lock_event;
mod log_row;
mod run_record;
mod settings;
mod token;
mod verdict;

pub use case::CaseRecord;
pub use duration::{format_duration, parse_duration};
pub use event::{Event, EventKind, Gate, ReleaseOutcome, Step};
pub use expectation::{CountRange, Expectations};
pub use fault::{FaultKind, FaultRow, FaultStage};
pub use lock_event::{LockEvent, LockEventKind};
pub use log_row::{LogRow, RowOutcome, RowValue};
pub use run_record::{CaseNotes, CaseResult, RunRecord};
pub use settings::{
    Backend, Fence, FenceFloor, LockOptions, LockServers, OnLost, ReleaseStyle, WaitPolicy,
};
pub use token::FencingToken;
pub use verdict::{
    CaseVerdict, Counts, Finding, Judgement, Outcome, Overlap, Story, StoryStep, Violation,
    ViolationKind,
};
