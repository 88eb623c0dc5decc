//! Plain data, no I/O: what a run records and what a judge says about it.
//!
//! Everything here can be written to a file and read back; nothing here knows
//! a container, a lock server or a clock.

mod address;
mod body_hash;
mod case;
mod doubt;
mod duration;
mod duration_range;
mod event;
mod expectation;
mod fast_map;
mod fault;
mod gap;
mod key_template;
mod load;
mod lock_event;
mod log;
mod log_row;
mod means;
mod name;
mod number;
mod plan;
mod promise;
mod run_record;
mod settings;
mod span;
mod token;
pub mod trigger;
mod verdict;
mod violation_kind;

pub use address::without_password;
pub use body_hash::BodyHash;
pub use case::CaseRecord;
pub use doubt::{Doubt, DoubtReason, FaultDoubt};
pub use duration::{format_duration, parse_duration};
pub use duration_range::DurationRange;
pub use event::{Ability, Event, EventKind, Gate, ReleaseOutcome, Step};
pub use expectation::{Count, CountRange, Expectations, Measure};
pub use fast_map::{FastHasher, FastMap, FastSet};
pub use fault::{
    ClockName, Fault, FaultKind, FaultRow, FaultStage, LEADER, Link, LinkEffect, LinkFault,
    LinkPattern, LinkScope, Streams, ToxicEffect,
};
pub use gap::Gap;
pub use key_template::KeyTemplate;
pub use load::{
    ArrivalEnd, ArrivalRow, Arrivals, ContendPlan, ContendStep, EtcdGrowth, EtcdSample, Fairness,
    Generator, KeyspacePlan, KeyspaceRecord, KeyspaceSample, Latency, LoadPlan, LoadRecord, Queued,
    RedisKeyspace,
};
pub use lock_event::{LockEvent, LockEventKind};
pub use log::{BadRow, Key, Log, LogFile, Owner, Row};
pub use log_row::{LogRow, RowOutcome, RowValue};
pub use name::{Name, NotAName};
pub use number::{format_count, parse_count};
pub use plan::{CasePlan, PlannedFault, WorkerPlan};
pub use promise::{Kept, LockOutcome, Promise};
pub use run_record::{CaseNotes, CaseResult, RunRecord};
pub use settings::{
    Backend, Fence, FenceFloor, LockOptions, LockServers, OnLost, ReleaseStyle, WaitPolicy,
};
pub use span::Span;
pub use token::FencingToken;
pub use trigger::Trigger;
pub use verdict::{
    CaseVerdict, Counts, Excuse, Finding, Found, Held, Judgement, Outcome, Overlap, StepKind,
    Story, StoryStep, Violation,
};
pub use violation_kind::{Party, ViolationKind};
