use super::holds::Hold;
use crate::model::Overlap;
use std::collections::HashMap;

/// Pairs of workers that held one key at the same time, and pairs that may have.
///
/// A sweep over the holds in the order of their beginnings: only those that are
/// still open are compared, so a long history without overlaps costs nothing extra.
pub(super) fn overlaps(holds: &[Hold]) -> Vec<Overlap> {
    let mut open_by_key: HashMap<&str, Vec<&Hold>> = HashMap::new();
    let mut found = Vec::new();
    for hold in holds {
        let open = open_by_key.entry(hold.key).or_default();
        open.retain(|earlier| possible_end_ns(earlier) > hold.from_ns);
        found.extend(open.iter().filter_map(|earlier| overlap(earlier, hold)));
        open.push(hold);
    }
    found
}

/// One worker never overlaps with itself: its rounds follow each other.
fn overlap(earlier: &Hold, later: &Hold) -> Option<Overlap> {
    if earlier.worker == later.worker {
        return None;
    }
    let from_ns = later.from_ns;
    let both_granted = earlier.grant.is_some() && later.grant.is_some();
    // A hold that was cut off in the moment of its grant has no length, and yet
    // it was held in that moment; so the beginning alone has to lie inside.
    let definite = both_granted && from_ns < earlier.to_ns;
    let to_ns = if definite {
        earlier.to_ns.min(later.to_ns)
    } else {
        possible_end_ns(earlier).min(possible_end_ns(later))
    };
    (definite || from_ns < to_ns).then(|| Overlap {
        key: later.key.to_owned(),
        first: earlier.worker.to_owned(),
        second: later.worker.to_owned(),
        from_ns,
        to_ns,
        definite,
    })
}

fn possible_end_ns(hold: &Hold) -> u64 {
    hold.to_ns.max(hold.possibly_to_ns)
}
