//! The content of a write against what was written before it, and its writer.

use super::*;
use serde::Deserialize;

/// The body that one of our workers writes: a count that it has read and raised by one.
#[derive(Deserialize)]
struct Counted<'a> {
    count: Option<u64>,
    #[serde(borrow)]
    by: std::borrow::Cow<'a, str>,
    token: Option<u64>,
}

pub(super) fn violations(case: &Case, is_complete: bool) -> Vec<Violation> {
    let (sound, names) = (case.sound, case.names);
    let everybody_is_known = is_complete && !sound.record.history.is_empty();
    let sent = Sent::of(sound);
    let mut found = Vec::new();
    let mut add = |kind: ViolationKind, row: &Row, detail: String| {
        let key = sound.record.log.key_of(row);
        found.push(Violation {
            workers: names.writer(row).map(str::to_owned).into_iter().collect(),
            ..Violation::new(kind, key, row.seq, row.at_ns, detail)
        });
    };
    for row in sound.log.iter() {
        if row.outcome != RowOutcome::Accepted {
            continue;
        }
        if everybody_is_known && row.owner.is_some() && names.writer(row).is_none() {
            let detail = format!(
                "the log has a write of {} with token {}, and no worker ever had that owner",
                names.full(row),
                row.token.map_or("-".to_owned(), |token| token.to_string())
            );
            add(ViolationKind::UnknownWriter, row, detail);
        }
        if sound.log_is_whole
            && let Some(words) = not_readable(row, case)
        {
            let detail = format!("{} {words}", names.full(row));
            add(ViolationKind::ReadNotAccepted, row, detail);
        }
        let wrong = sent.other_body(row).filter(|_| everybody_is_known);
        let wrong = wrong.or_else(|| wrong_body(row, case));
        if let Some((kind, words)) = wrong {
            let detail = format!("{} {words}", names.full(row));
            add(kind, row, detail);
        }
    }
    found
}

/// The bodies that each owner reported to send.
struct Sent {
    by_owner: HashMap<Owner, HashSet<BodyHash>>,
}

impl Sent {
    fn of(sound: &Sound) -> Sent {
        let log = &sound.record.log;
        let mut by_owner: HashMap<Owner, HashSet<BodyHash>> = HashMap::new();
        let mut silent: HashSet<Owner> = HashSet::new();
        for event in &sound.history {
            if let EventKind::Writing { owner, body, .. } = &event.kind
                && let Some(owner) = log.owner_named(owner)
            {
                by_owner.entry(owner).or_default().extend(body);
                silent.extend(body.is_none().then_some(owner));
            }
        }
        by_owner.retain(|owner, _| !silent.contains(owner));
        Sent { by_owner }
    }

    fn other_body(&self, row: &Row) -> Option<(ViolationKind, String)> {
        let sent = self.by_owner.get(&row.owner?)?;
        let logged = row.body?;
        (!sent.contains(&logged)).then(|| {
            let words = format!("never sent the body that the log has, with the hash {logged}");
            (ViolationKind::BodyChanged, words)
        })
    }
}

/// Explains why a write was not made from a value that was there.
fn not_readable(row: &Row, case: &Case) -> Option<String> {
    let based_on = row.based_on.filter(|&position| position > 0)?;
    let log = &case.record.log;
    let words = match case.positions.row(based_on) {
        _ if based_on >= row.seq => "which was not there yet".to_owned(),
        None => "which the log does not have".to_owned(),
        Some(read) if read.key != row.key => format!("which is a write on {}", log.key_of(read)),
        Some(read) if read.outcome != RowOutcome::Accepted => "which was not accepted".to_owned(),
        Some(_) => return None,
    };
    Some(format!(
        "wrote what it had made from position {based_on}, {words}"
    ))
}

/// Compares a body with its row. Two increments make two, and every body names its
/// writer, so the record can prove a wrong body of one of our workers.
fn wrong_body(row: &Row, case: &Case) -> Option<(ViolationKind, String)> {
    let record = case.record;
    // The body of an unknown writer cannot be compared with anything.
    let writer = case.names.writer(row)?;
    let value = record.log.value_of(row)?;
    if let Some(body) = row.body
        && BodyHash::of(value.as_bytes()) != body
    {
        let words = format!("sent a body with the hash {body}, and the log holds another one");
        return Some((ViolationKind::BodyChanged, words));
    }
    let is_ours = record.plan.worker(writer).is_some_and(|plan| plan.is_ours);
    if !is_ours || case.sound.odd_workers.contains(writer) {
        return None;
    }
    let body: Counted = serde_json::from_slice(value.as_bytes()).ok()?;
    let token = row.token.map(|token| token.0);
    if body.by != writer || (token.is_some() && body.token != token) {
        let words = format!(
            "is logged with a body that {} wrote with token {}",
            body.by,
            body.token.map_or("-".to_owned(), |token| token.to_string())
        );
        return Some((ViolationKind::BodyChanged, words));
    }
    let read = match row.based_on {
        None | Some(0) => 0,
        Some(position) => {
            let read = case.positions.row(position)?;
            let read = record.log.value_of(read)?;
            let read: Counted = serde_json::from_slice(read.as_bytes()).ok()?;
            read.count?
        }
    };
    let count = body.count?;
    (count != read + 1).then(|| {
        let words = format!("wrote the count {count} after it had read {read}");
        (ViolationKind::ReadNotAccepted, words)
    })
}
