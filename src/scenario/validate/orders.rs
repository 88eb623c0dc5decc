//! Events that the record will have, for the order that a case expects.

use super::{Check, triggers};
use crate::scenario::draft::DraftExpectations;
use crate::scenario::trigger::SCENARIO;
use crate::yaml::Report;

pub fn check(check: &Check<'_>, expected: &DraftExpectations, report: &mut Report) {
    for at in &expected.order {
        let source = &at.value.source;
        let mut entries = check.draft.timeline.iter();
        if source == SCENARIO || entries.any(|entry| entry.is_called(source)) {
            let message = format!(
                "`{}` is not in the record, so no order can be judged by it; name events of workers, of nodes or of the resource",
                at.value
            );
            report.add(at.place, message);
        } else {
            triggers::trigger(check, at, report);
        }
    }
}
