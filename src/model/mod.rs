//! Plain data, no I/O: what a run records and what a judge says about it.
//!
//! Everything here can be written to a file and read back; nothing here knows
//! a container, a lock server or a clock.

mod case;
mod duration;
mod duration_range;
mod event;
mod expectation;
mod fault;
mod load;
mod lock_event;
mod log_row;
mod number;
mod run_record;
mod settings;
mod span;
mod token;
pub mod trigger;
mod verdict;

pub use case::CaseRecord;
pub use duration::{format_duration, parse_duration};
pub use duration_range::DurationRange;
pub use event::{Event, EventKind, Gate, ReleaseOutcome, Step};
pub use expectation::{Count, CountRange, Expectations, Measure};
pub use fault::{
    ClockName, Fault, FaultKind, FaultRow, FaultStage, LEADER, Link, LinkEffect, LinkFault,
    LinkPattern, LinkScope, Streams, ToxicEffect,
};
pub use load::{
    ArrivalEnd, ArrivalRow, Arrivals, ContendPlan, ContendStep, EtcdGrowth, EtcdSample, Fairness,
    Generator, KeyspacePlan, KeyspaceRecord, KeyspaceSample, Latency, LoadPlan, LoadRecord, Queued,
    RedisKeyspace,
};
pub use lock_event::{LockEvent, LockEventKind};
pub use log_row::{LogRow, RowOutcome, RowValue};
pub use number::{format_count, parse_count};
pub use run_record::{CaseNotes, CaseResult, RunRecord};
pub use settings::{
    Backend, Fence, FenceFloor, LockOptions, LockServers, OnLost, ReleaseStyle, WaitPolicy,
};
pub use span::Span;
pub use token::FencingToken;
pub use trigger::Trigger;
pub use verdict::{
    CaseVerdict, Counts, Finding, Found, Held, Judgement, Outcome, Overlap, StepKind, Story,
    StoryStep, Violation, ViolationKind,
};
