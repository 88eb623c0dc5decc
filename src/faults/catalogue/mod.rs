//! All faults: how a scenario writes each of them, what it needs, what it does to its target,
//! how it is verified, and how it is undone. Each fault has one file. Its row beside
//! [`FaultKind`] holds what others may know of it.

mod cut;
mod disconnect;
mod expected;
mod freeze;
mod kill;
mod link_effect;
mod link_words;
mod loss;
mod pause;
mod probes;
mod process;
mod promote;
mod restart;
mod skew;
mod toxic;

use super::field::Field;
use super::journal::Debt;
use super::{Proof, ensure};
use crate::cluster::Need;
use crate::faults::probe::{Outcome, Question};
use crate::model::{
    Fault, FaultKind, FaultParameters, Link, LinkEffect, Name, NodeFault, Streams, ToxicEffect,
    UnprovenReason,
};
use crate::yaml::values::{choice, number, parsed};
use crate::yaml::{At, Fields, Node, Report};
use async_trait::async_trait;
use expected::Expected;
use probes::Probes;
use process::state;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

pub fn form(kind: FaultKind) -> Form {
    match kind {
        FaultKind::Pause => pause::PAUSE,
        FaultKind::Resume => pause::RESUME,
        FaultKind::Freeze => freeze::FREEZE,
        FaultKind::Thaw => freeze::THAW,
        FaultKind::Kill => kill::KILL,
        FaultKind::Restart => restart::RESTART,
        FaultKind::RestartEmpty => restart::RESTART_EMPTY,
        FaultKind::Promote => promote::PROMOTE,
        FaultKind::Partition | FaultKind::Isolate => link_effect::CUT,
        FaultKind::Refuse => link_effect::REFUSE,
        FaultKind::Blackhole => link_effect::BLACKHOLE,
        FaultKind::OneWay => link_effect::ONE_WAY,
        FaultKind::Stall => link_effect::STALL,
        FaultKind::Reset => link_effect::RESET,
        FaultKind::Latency => link_effect::LATENCY,
        FaultKind::Bandwidth => link_effect::BANDWIDTH,
        FaultKind::Toxic => toxic::TOXIC,
        FaultKind::Disconnect => disconnect::DISCONNECT,
        FaultKind::Drop => loss::DROP,
        FaultKind::Loss => loss::LOSS,
        FaultKind::Skew => skew::SKEW,
        FaultKind::Drift => skew::DRIFT,
    }
}

/// All that is known of a fault beside its row: how it is written, what a plan says of it, and
/// which injection does it. Its target, `for` and `longer_than` follow from its row.
#[derive(Clone, Copy)]
pub struct Form {
    /// The keys beside its own: one list for each shape that a step of it may have.
    pub keys: fn() -> Vec<Vec<Key>>,
    /// Reads the effect; None if something could not be read, which has been reported.
    pub read: fn(&mut Fields<'_>, &mut Report) -> Option<Effect>,
    pub refuses: fn(&Candidate<'_>) -> Option<String>,
    /// Returns what is done to a node, for a plan ...
    pub done: fn(&FaultParameters, &str) -> String,
    /// ... and this is what proves it: "when ...".
    pub proven: &'static str,
    pub need: Option<Need<'static>>,
    injection: fn(NodeFault) -> Box<dyn Injection>,
}

impl Form {
    /// The form of a fault without keys of its own, for any node. The injection of a link fault has
    /// nothing to do to a node, and fails with that reason.
    const PLAIN: Form = Form {
        keys: || vec![Vec::new()],
        read: |_, _| Some(Effect::Node(FaultParameters::default())),
        refuses: |_| None,
        done: |_, _| String::new(),
        proven: "",
        need: None,
        injection: |fault| Box::new(cut::Cut::of_nothing(fault.kind)),
    };
}

pub struct Key {
    pub name: &'static str,
    pub is_required: bool,
    /// The JSON schema of its value, for editors.
    pub schema: Value,
}

impl Key {
    pub fn optional(name: &'static str, schema: Value) -> Key {
        Key {
            name,
            is_required: false,
            schema,
        }
    }

    pub fn required(name: &'static str, schema: Value) -> Key {
        Key {
            is_required: true,
            ..Key::optional(name, schema)
        }
    }
}

fn words(all: &[impl ToString]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

/// A node for which a fault is written.
pub struct Candidate<'a> {
    pub name: &'a str,
    pub role: Role,
    pub has_end: bool,
    /// Replicas with their primaries; None if the topology is not known.
    pub replicas: Option<&'a BTreeMap<String, String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Worker,
    Server,
    /// The server whose log is the evidence.
    Resource,
    Leader,
    /// A node of a topology that cannot be asked here.
    Unasked,
}

/// The effect of a fault on its target.
#[derive(Clone, Debug)]
pub enum Effect {
    Node(FaultParameters),
    Links(LinkEffect),
}

/// One fault, from before it is injected until it is gone again.
#[async_trait]
pub trait Injection: Send {
    /// Looks at the target before the injection. An error says why the fault could not be proven,
    /// and then nothing is injected.
    async fn look_before(&mut self, _field: &Field) -> Proof {
        Ok(())
    }

    /// Checks that it can be injected and proven here at all, and gets ready what its proof needs.
    async fn prepare(&mut self, _field: &Field) -> Proof {
        Ok(())
    }

    /// Returns whether undoing it ends the process of its node.
    fn restarts(&self, _field: &Field) -> bool {
        false
    }

    async fn inject(&mut self, field: &Field) -> Proof;

    /// Returns what was seen of it, or why that is not what was asked for.
    async fn verify(&mut self, field: &Field) -> Proof<String>;

    /// Checks, just before the undo, that it is still as it was when it was proven: somebody else
    /// may have undone it in the meantime.
    async fn verify_active(&mut self, _field: &Field) -> Proof {
        Ok(())
    }

    /// Undoes it. This works in any state, and may be called again.
    async fn undo(&mut self, _field: &Field) -> Proof {
        Ok(())
    }

    /// Returns what was seen of its end.
    async fn verify_undone(&mut self, _field: &Field) -> Proof<String> {
        Ok(String::new())
    }

    /// Returns what another process has to undo if this one dies.
    fn debts(&self) -> Vec<Debt> {
        Vec::new()
    }
}

/// Creates the injection of a fault. `id` keeps the traces of this fault apart from others.
pub fn injection(fault: &Fault, id: u32) -> Box<dyn Injection> {
    match fault.clone() {
        Fault::Node(fault) => (form(fault.kind).injection)(fault),
        Fault::Links(fault) => Box::new(cut::Cut::new(fault, id)),
    }
}

/// Returns what a plan says of a fault. The target is a node, or one of several.
pub fn plan_words(fault: &Fault, target: &str) -> String {
    match fault {
        Fault::Node(fault) => {
            let form = form(fault.kind);
            let done = (form.done)(&fault.parameters, target);
            format!("{done}; proven {}", form.proven)
        }
        Fault::Links(fault) => link_words::words(fault, target),
    }
}
