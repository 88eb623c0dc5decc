//! All rows of one fault, combined.

use super::*;
use std::collections::{HashMap, HashSet};

pub struct FaultSpan<'a> {
    pub kind: FaultKind,
    pub target: &'a str,
    pub called: &'a str,
    pub requested_ns: u64,
    pub observed_ns: Option<u64>,
    /// When undoing it began.
    pub ending_ns: Option<u64>,
    pub ended_ns: Option<u64>,
    /// Whether it was undone by healing and not by the timeline.
    pub healed: bool,
    /// What was observed of it, or why nothing was.
    pub proof: &'a str,
    /// The rows in their order; only the first if there are many.
    pub rows: Vec<&'a FaultRow>,
}

/// A fault has a row for each of its stages, and hardly ever more.
const MOST_ROWS: usize = 24;

/// Returns each fault once, in the order of the requests.
pub fn fault_spans(all: &[FaultRow]) -> Vec<FaultSpan<'_>> {
    let rows = Rows::of(all);
    let mut known = HashSet::new();
    let requested = all.iter().filter(|row| row.stage == FaultStage::Requested);
    let requested = requested.filter(|request| known.insert(request.id));
    requested.map(|request| rows.span(request)).collect()
}

/// Rows by the keys that they are looked up with.
#[derive(Default)]
struct Rows<'a> {
    by_id: HashMap<u32, Vec<&'a FaultRow>>,
    /// Requests by kind and target, in the order of time.
    requests: HashMap<(FaultKind, &'a str), Vec<&'a FaultRow>>,
}

impl<'a> Rows<'a> {
    fn of(all: &'a [FaultRow]) -> Rows<'a> {
        let mut rows = Rows::default();
        for row in all {
            rows.by_id.entry(row.id).or_default().push(row);
            if row.stage == FaultStage::Requested {
                let what = (row.fault, row.target.as_str());
                rows.requests.entry(what).or_default().push(row);
            }
        }
        for requests in rows.requests.values_mut() {
            requests.sort_by_key(|row| row.at_ns);
        }
        rows
    }

    fn stage(&self, id: u32, stage: FaultStage) -> Option<u64> {
        let mut rows = self.by_id.get(&id)?.iter();
        rows.find(|row| row.stage == stage).map(|row| row.at_ns)
    }

    /// Returns the request that undid this one. For example, a stop is undone by an action with
    /// its own rows.
    fn undoing(&self, request: &FaultRow) -> Option<&'a FaultRow> {
        let undoing = request.fault.facts().ended_by.iter().filter_map(|&kind| {
            let requests = self.requests.get(&(kind, request.target.as_str()))?;
            let later = requests.partition_point(|row| row.at_ns < request.at_ns);
            requests.get(later).copied()
        });
        undoing.min_by_key(|row| row.at_ns)
    }

    fn span(&self, request: &'a FaultRow) -> FaultSpan<'a> {
        let own = self.by_id.get(&request.id).map_or(&[][..], Vec::as_slice);
        let at = |stage| self.stage(request.id, stage);
        let healed_ns = at(FaultStage::Healed);
        let undoing = self.undoing(request);
        let undone_ns = undoing.and_then(|row| self.stage(row.id, FaultStage::Observed));
        let ending = at(FaultStage::Ending).or(healed_ns);
        let ended = at(FaultStage::Ended).or(healed_ns);
        let is_word =
            |row: &&&FaultRow| matches!(row.stage, FaultStage::Observed | FaultStage::Unproven);
        let last_word = own.iter().rev().find(is_word);
        FaultSpan {
            kind: request.fault,
            target: &request.target,
            called: request.called(),
            requested_ns: request.at_ns,
            observed_ns: at(FaultStage::Observed),
            ending_ns: ending.or(undoing.map(|row| row.at_ns)),
            ended_ns: ended.or(undone_ns),
            healed: healed_ns.is_some(),
            proof: last_word.map_or("nobody had looked yet", |row| row.detail.as_str()),
            rows: own.iter().take(MOST_ROWS).copied().collect(),
        }
    }
}

impl FaultSpan<'_> {
    /// Returns when it was over, as far as is known. A fault that happens at a moment is over
    /// when it was observed.
    pub fn last_ns(&self) -> Option<u64> {
        match self.kind.lasts() {
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
            detail: format!("{stage:?}"),
            ..FaultRow::new(at_ns, id, fault, "a", stage)
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
        assert_eq!(spans[2].proof, "Unproven");
        assert_eq!(spans[1].last_ns(), Some(6));
    }

    #[test]
    fn one_fault_many_times_is_one_fault() {
        let requested = row(1, 1, FaultKind::Pause, FaultStage::Requested);
        let rows = vec![requested; 10_000];
        let spans = fault_spans(&rows);
        assert_eq!(spans.len(), 1);
        assert_eq!(spans[0].rows.len(), MOST_ROWS);
    }
}
