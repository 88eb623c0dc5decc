//! The rows of one fault, as the one thing that they are about.

use crate::model::{FaultKind, FaultRow, FaultStage};

pub struct FaultSpan<'a> {
    pub kind: FaultKind,
    pub target: &'a str,
    pub called: &'a str,
    pub requested_ns: u64,
    pub observed_ns: Option<u64>,
    /// From here on it was being undone.
    pub ending_ns: Option<u64>,
    pub ended_ns: Option<u64>,
    /// Healing undid it, and not the timeline.
    pub healed: bool,
    /// All of them, in their order.
    pub rows: Vec<&'a FaultRow>,
}

pub fn fault_spans(all: &[FaultRow]) -> Vec<FaultSpan<'_>> {
    let requested = all.iter().filter(|row| row.stage == FaultStage::Requested);
    requested.map(|request| span(request, all)).collect()
}

fn span<'a>(request: &'a FaultRow, all: &'a [FaultRow]) -> FaultSpan<'a> {
    let rows: Vec<&FaultRow> = all.iter().filter(|row| row.id == request.id).collect();
    let at = |rows: &[&FaultRow], stage| {
        let mut rows = rows.iter();
        rows.find(|row| row.stage == stage).map(|row| row.at_ns)
    };
    let healed_ns = at(&rows, FaultStage::Healed);
    // A stop is undone by an action with rows of its own.
    let undoing = undone_by(request.fault).and_then(|kinds| {
        let is_it = |row: &&FaultRow| {
            kinds.contains(&row.fault)
                && row.target == request.target
                && row.stage == FaultStage::Requested
                && row.at_ns >= request.at_ns
        };
        all.iter().find(is_it)
    });
    let undone = undoing.and_then(|undoing| {
        let is_seen = |row: &&FaultRow| row.id == undoing.id && row.stage == FaultStage::Observed;
        all.iter().find(is_seen)
    });
    let ending = at(&rows, FaultStage::Ending).or(healed_ns);
    let ended = at(&rows, FaultStage::Ended).or(healed_ns);
    FaultSpan {
        kind: request.fault,
        target: &request.target,
        called: request.called(),
        requested_ns: request.at_ns,
        observed_ns: at(&rows, FaultStage::Observed),
        ending_ns: ending.or(undoing.map(|row| row.at_ns)),
        ended_ns: ended.or(undone.map(|row| row.at_ns)),
        healed: healed_ns.is_some(),
        rows,
    }
}

fn undone_by(kind: FaultKind) -> Option<&'static [FaultKind]> {
    match kind {
        FaultKind::Pause => Some(&[FaultKind::Resume]),
        FaultKind::Freeze => Some(&[FaultKind::Thaw]),
        FaultKind::Kill => Some(&[FaultKind::Restart, FaultKind::RestartEmpty]),
        _ => None,
    }
}

impl FaultSpan<'_> {
    /// What was seen of it, or why nothing was.
    pub fn proof(&self) -> &str {
        let is_word =
            |row: &&&FaultRow| matches!(row.stage, FaultStage::Observed | FaultStage::Unproven);
        let last = self.rows.iter().rev().find(is_word);
        last.map_or("nobody had looked yet", |row| row.detail.as_str())
    }

    /// When it was over, as far as is known: an act that only happens is over
    /// when it was seen to have happened.
    pub fn last_ns(&self) -> Option<u64> {
        match self.kind.stands() {
            true => self.ended_ns.or(self.ending_ns),
            false => self.observed_ns.or(Some(self.requested_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at_ns: u64, id: u32, fault: FaultKind, stage: FaultStage) -> FaultRow {
        FaultRow {
            at_ns,
            id,
            fault,
            target: "a".to_owned(),
            alias: None,
            stage,
            detail: format!("{stage:?}"),
            longer_than_ms: None,
            for_ms: None,
            clock: None,
            by_ms: None,
            ppm: None,
        }
    }

    #[test]
    fn a_pause_ends_with_the_next_resume_of_its_target() {
        let rows = [
            row(1, 1, FaultKind::Pause, FaultStage::Requested),
            row(2, 1, FaultKind::Pause, FaultStage::Observed),
            row(5, 2, FaultKind::Resume, FaultStage::Requested),
            row(6, 2, FaultKind::Resume, FaultStage::Observed),
            row(8, 3, FaultKind::Pause, FaultStage::Requested),
            row(9, 3, FaultKind::Pause, FaultStage::Unproven),
        ];
        let spans = fault_spans(&rows);
        let times = |span: &FaultSpan| (span.observed_ns, span.ending_ns, span.ended_ns);
        assert_eq!(times(&spans[0]), (Some(2), Some(5), Some(6)));
        assert_eq!(times(&spans[1]), (Some(6), None, None));
        assert_eq!(times(&spans[2]), (None, None, None));
        assert_eq!(spans[2].proof(), "Unproven");
        assert_eq!(spans[1].last_ns(), Some(6));
    }
}
