use crate::model::{CaseRecord, LogRow, RowOutcome, Violation, ViolationKind};
use std::collections::BTreeMap;

/// What the resource holds in the end must be what it accepted last: a refusal
/// that was logged, answered and applied all the same shows nowhere else.
pub(super) fn violations(record: &CaseRecord) -> Vec<Violation> {
    if record.values.is_empty() {
        return Vec::new();
    }
    let mut last: BTreeMap<&str, &LogRow> = BTreeMap::new();
    for row in &record.log {
        if row.outcome == RowOutcome::Accepted {
            last.insert(&row.key, row);
        }
    }
    let differs = |(key, row): (&str, &LogRow)| {
        let held = record.values.get(key)?;
        (row.value.as_ref() != Some(held)).then(|| Violation {
            kind: ViolationKind::ValueNotAccepted,
            key: key.to_owned(),
            row: row.seq,
            against: None,
            detail: format!(
                "{key} holds {:?}, which is not what was accepted last, at position {}",
                String::from_utf8_lossy(held.as_bytes()),
                row.seq
            ),
        })
    };
    last.into_iter().filter_map(differs).collect()
}
