//! What each fault does to its target, how it is seen, and how it is undone:
//! one file a fault.

mod cut;
mod disconnected;
mod expected;
mod frozen;
mod killed;
mod lossy;
mod probes;
mod process;
mod promoted;
mod restarted;
mod skewed;
mod stopped;

use super::field::Field;
use super::journal::Debt;
use crate::model::{Fault, FaultKind};
use async_trait::async_trait;

/// One fault, from before it is there until it is gone again.
#[async_trait]
pub trait Harm: Send {
    /// Looks at the target before anything is done. An error says why the fault
    /// could not be proven, and nothing is done then.
    async fn look(&mut self, _field: &Field) -> Result<(), String> {
        Ok(())
    }

    async fn inflict(&mut self, field: &Field) -> Result<(), String>;

    /// What was seen of it, or why that is not what was asked for.
    async fn bitten(&mut self, field: &Field) -> Result<String, String>;

    /// Whether it still is as it was when it was proven, seen just before it is
    /// undone: somebody else may have undone it in the meantime.
    async fn stands(&mut self, _field: &Field) -> Result<(), String> {
        Ok(())
    }

    /// In any state, and as often as it is asked for.
    async fn undo(&mut self, _field: &Field) -> Result<(), String> {
        Ok(())
    }

    /// What was seen of its end.
    async fn undone(&mut self, _field: &Field) -> Result<String, String> {
        Ok(String::new())
    }

    /// What somebody else has to undo, should we not get to it.
    fn debts(&self) -> Vec<Debt> {
        Vec::new()
    }
}

/// `id` sets the traces of this fault apart from those of others.
pub fn of(fault: &Fault, id: u32) -> Box<dyn Harm> {
    match fault.clone() {
        Fault::Pause { node, .. } => Box::new(stopped::Stopped { node }),
        Fault::Freeze { node, .. } => Box::new(frozen::Frozen { node }),
        Fault::Kill { node } => Box::new(killed::Killed::new(node)),
        Fault::Restart { node } => Box::new(restarted::Restarted::with_data(node)),
        Fault::RestartEmpty { node } => Box::new(restarted::Restarted::empty(node)),
        Fault::Promote { node } => Box::new(promoted::Promoted::new(node)),
        Fault::Links(fault) => Box::new(cut::Cut::new(fault, id)),
        Fault::Disconnect { node } => Box::new(disconnected::Disconnected::new(node)),
        Fault::Loss { node, percent } => Box::new(lossy::Lossy::new(node, percent)),
        Fault::Skew { node, clock, by_ms } => {
            Box::new(skewed::Skewed::by_offset(node, clock, by_ms))
        }
        Fault::Drift { node, clock, ppm } => Box::new(skewed::Skewed::by_rate(node, clock, ppm)),
    }
}

/// Whether a fault can be done and proven here at all; gets ready what its
/// proof needs.
pub async fn prepare(fault: &Fault, field: &Field) -> Result<(), String> {
    let fault = field.with_leader_named(fault).await?;
    match &fault {
        Fault::Links(links) => {
            let gripped = field.links()?.gripped_by(links);
            probes::prepare(field, gripped.into_iter().map(|grip| grip.link)).await
        }
        Fault::Disconnect { node } => {
            probes::prepare(field, field.links()?.around(node).into_iter()).await
        }
        Fault::Loss { node, .. } => {
            probes::prepare(field, field.links()?.around(node).into_iter()).await?;
            field.packet_filters.call(node).await
        }
        Fault::Promote { node } => {
            probes::prepare(field, promoted::switched(field, node)?.into_iter()).await
        }
        Fault::Skew { node, clock, .. } | Fault::Drift { node, clock, .. } => {
            skewed::can_be_skewed(field, node, *clock).await
        }
        Fault::Restart { node } | Fault::RestartEmpty { node } => {
            restarted::give_memory(field, node).await
        }
        _ => Ok(()),
    }
}

/// Whether a fault ends the process of its node, by itself or when it is undone.
pub fn ends_process(fault: &Fault, field: &Field) -> bool {
    match fault {
        Fault::Kill { .. } | Fault::Restart { .. } | Fault::RestartEmpty { .. } => true,
        Fault::Skew { node, clock, .. } | Fault::Drift { node, clock, .. } => {
            skewed::heals_by_restart(field, node, *clock)
        }
        _ => false,
    }
}

/// What lives in a process or in its network, and is gone with it.
pub fn ends_with_process(kind: FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::Pause
            | FaultKind::Freeze
            | FaultKind::Drop
            | FaultKind::Loss
            | FaultKind::Skew
            | FaultKind::Drift
    )
}
