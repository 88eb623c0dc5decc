use super::*;

const KIND: ViolationKind = ViolationKind::ValueNotAccepted;
/// The number of values that are collected from a case, those with the first keys.
const MOST_VALUES: usize = 256;

/// Checks that the resource ends with the value that it accepted last, byte for byte. A
/// refusal that was logged, answered and still applied shows nowhere else, and neither
/// does a value that is gone.
pub(super) fn violations(sound: &Sound, cut_keys: &HashSet<&str>) -> Vec<Violation> {
    let record = sound.record;
    // Otherwise nobody has asked for the values: they are collected after the metric.
    let asked = !record.values.is_empty() || record.refusals_counted.is_some();
    let is_cut = record
        .log_rows
        .is_some_and(|rows| rows > sound.log.len() as u64);
    if !asked || is_cut {
        return Vec::new();
    }
    let log = &record.log;
    let mut last = vec![None; log.key_count()];
    for row in sound.log.iter() {
        if row.outcome == RowOutcome::Accepted {
            last[row.key.0 as usize] = Some(row);
        }
    }
    let accepted = last.into_iter().flatten();
    let accepted: BTreeMap<&str, _> = accepted.map(|row| (log.key_of(row), row)).collect();
    // A value is certainly missing only if all values were collected.
    let all_collected = record.gaps.is_empty() && record.refusals_counted.is_some();
    let collected = accepted.iter().take(MOST_VALUES);
    let mut found = Vec::new();
    for (&key, &row) in collected.filter(|(key, _)| !cut_keys.contains(*key)) {
        let accepted = log.value_of(row);
        let held = record.values.get(key);
        let differs = |held: &RowValue| match (&accepted, row.body) {
            (Some(accepted), _) => held != accepted,
            (None, Some(body)) => BodyHash::of(held.as_bytes()) != body,
            (None, None) => false,
        };
        let words = match held {
            Some(held) if differs(held) => {
                format!(
                    "{key} holds {}, which is not what was accepted last",
                    shown(held)
                )
            }
            None if all_collected => {
                format!("{key} holds nothing in the end, although a write was accepted")
            }
            _ => continue,
        };
        let detail = format!("{words}, at position {}", row.seq);
        found.push(Violation::new(KIND, key, row.seq, row.at_ns, detail));
    }
    if sound.log_is_whole {
        let strange = record.values.iter();
        let strange = strange.filter(|(key, _)| !accepted.contains_key(key.as_str()));
        found.extend(strange.map(|(key, held)| {
            let held = shown(held);
            let detail = format!("{key} holds {held}, and nothing was ever accepted there");
            Violation::new(KIND, key, 0, 0, detail)
        }));
    }
    found
}

fn shown(value: &RowValue) -> String {
    format!("{:?}", String::from_utf8_lossy(value.as_bytes()))
}
