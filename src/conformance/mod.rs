//! The worker protocol alone: whether a worker speaks it, and which of its lines is wrong.
//!
//! Each check starts the worker anew with a task of its own, and talks to it as a run would: it
//! opens gates, asks questions, and looks at the resource. `grammar.rs` knows which line may
//! follow which; `checks.rs` knows what each task must come to.

mod checks;
mod conversation;
mod grammar;
mod stage;
mod steps;

pub use checks::{Findings, check_all};
pub use stage::Stage;

use crate::model::Ability;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a worker declares in its `ready`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Declared {
    pub lacks: Vec<Ability>,
    pub only: BTreeMap<String, Vec<String>>,
}

impl Declared {
    pub fn has(&self, ability: Ability) -> bool {
        !self.lacks.contains(&ability)
    }

    /// Returns the first setting of these that the worker cannot do, in words.
    pub fn objection<'a>(
        &self,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Option<String> {
        let mut settings = settings.into_iter();
        settings.find_map(|(name, value)| {
            let only = self.only.get(name)?;
            let can = only.iter().any(|one| one == value);
            (!can).then(|| {
                let only = only.join(" or ");
                format!("this worker has {name}={only} alone, and not {value}")
            })
        })
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checked {
    pub check: &'static str,
    #[serde(flatten)]
    pub outcome: Finding,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Finding {
    Passed,
    Failed(Wrong),
    /// The worker says that it does not do this, which the protocol allows.
    NotOffered {
        reason: String,
    },
    /// It could not be seen: something else than the protocol was in the way.
    NotSeen {
        reason: String,
    },
}

/// A mistake of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// The line of its stdout, counted from 1; None if no line came at all.
    pub line: Option<usize>,
    pub text: String,
    pub problem: String,
    pub expected: String,
    /// The last lines of its stderr.
    pub stderr: String,
}
