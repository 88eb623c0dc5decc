use super::*;

#[derive(Default)]
pub(super) struct Acknowledged<'a> {
    pub violations: Vec<Violation>,
    pub doubts: Vec<Doubt>,
    /// Keys for which the end of the log is missing rather than lost.
    pub cut_keys: HashSet<&'a str>,
}

/// Looks up every write that a worker was told is accepted. The log has to have it once,
/// at the named position, for that owner, with that body.
///
/// If another row is at that position, the write is certainly lost. If no row is there,
/// it is lost only if the log is otherwise whole; in a record with gaps it may be a row
/// that nobody collected.
pub(super) fn judge<'a>(case: &Case<'_, 'a>) -> Acknowledged<'a> {
    let mut found = Acknowledged::default();
    let (sound, log) = (case.sound, &case.record.log);
    let mut by_position: HashMap<u64, Vec<AckedWrite<'a>>> = HashMap::new();
    let mut elsewhere = Vec::new();
    for told in acknowledged_writes(&sound.history) {
        let row = case.positions.row(told.position);
        let Some(row) = row.filter(|row| told.is_at(row, log)) else {
            elsewhere.push((told, row));
            continue;
        };
        // A database times its rows by a clock of its own.
        if told.event.at_ns < row.at_ns && !case.record.log_has_gaps {
            found.doubts.push(Doubt::new(
                DoubtReason::Contradiction,
                format!(
                    "{} was told at {} ns that its write is accepted at position {}, which the \
                     resource decided on at {} ns",
                    told.event.worker, told.event.at_ns, told.position, row.at_ns
                ),
            ));
        }
        by_position.entry(told.position).or_default().push(told);
    }
    let written = match elsewhere.is_empty() {
        true => Written::default(),
        false => Written::of(sound),
    };
    for (told, row) in elsewhere {
        // If the write is elsewhere in the log, and somebody else was rightly given this
        // position, the position was named twice.
        match by_position.get_mut(&told.position) {
            Some(rightly) if written.has(&told, log) => rightly.push(told),
            _ => found.missing(&told, row, case, &written),
        }
    }
    found.named_twice(by_position, sound);
    found
}

impl<'a> Acknowledged<'a> {
    fn missing(
        &mut self,
        told: &AckedWrite<'a>,
        row: Option<&Row>,
        case: &Case<'_, 'a>,
        written: &Written,
    ) {
        let (record, sound) = (case.record, case.sound);
        // A log that is as long as it was when it was collected has not been cut.
        let may_be_cut = told.position > case.positions.last() && record.log_rows.is_none();
        let is_incomplete = !record.gaps.is_empty() || !sound.log_is_whole;
        if row.is_none()
            && (is_incomplete || (may_be_cut && written.stands_in_the_end(told, sound)))
        {
            self.cut_keys.insert(told.key);
            self.doubts.push(Doubt::new(
                DoubtReason::LogNotWhole,
                format!(
                    "{}; the log has no such row, but the record is incomplete",
                    told.words()
                ),
            ));
            return;
        }
        let stands_there = what_stands_there(row, case);
        let detail = format!("{}, but {stands_there}", told.words());
        self.violations
            .push(told.violation(ViolationKind::AcknowledgedWriteLost, detail));
    }

    /// Finds positions that were named for two writes. The same hold may be given a
    /// position twice, once for each time that it sent its write: the log has a row for
    /// each repetition.
    fn named_twice(&mut self, by_position: HashMap<u64, Vec<AckedWrite<'a>>>, sound: &Sound) {
        let mut repeated: HashMap<(&str, Option<FencingToken>), usize> = HashMap::new();
        let log = &sound.record.log;
        if by_position.values().any(|told| told.len() > 1) {
            for row in sound.log.iter() {
                if row.outcome == RowOutcome::Duplicate
                    && let Some(owner) = log.owner_of(row)
                {
                    *repeated.entry((owner, row.token)).or_default() += 1;
                }
            }
        }
        for told in by_position.into_values().filter(|told| told.len() > 1) {
            let first = &told[0];
            let own = told.iter().filter(|other| other.owner == first.owner);
            let other_body = |other: &AckedWrite| match (first.body, other.body) {
                (Some(one), Some(other)) => one != other,
                _ => false,
            };
            let allowed = match told.iter().any(other_body) {
                true => 1,
                false => 1 + repeated.get(&(first.owner, first.token)).unwrap_or(&0),
            };
            let too_many = own.count() > allowed && sound.log_is_whole;
            let another = told.iter().find(|other| other.owner != first.owner);
            let Some(second) = another.or(too_many.then(|| &told[told.len() - 1])) else {
                continue;
            };
            let detail = format!(
                "{}, and {} (owner {}) was told the same position for its write with {}",
                first.words(),
                second.event.worker,
                second.owner,
                token_words(second.token),
            );
            self.violations
                .push(second.violation(ViolationKind::PositionNamedTwice, detail));
        }
    }
}

/// The log and the resource, indexed by what workers were told.
#[derive(Default)]
struct Written<'s, 'a> {
    /// Writes that were not refused, by token.
    rows: HashSet<(Owner, Key, Option<FencingToken>)>,
    holds: HashSet<(Owner, Key)>,
    last_accepted: HashMap<Key, &'s Row>,
    values: HashMap<&'a str, BodyHash>,
}

impl<'s, 'a> Written<'s, 'a> {
    fn of(sound: &'s Sound<'a>) -> Written<'s, 'a> {
        let mut written = Written::default();
        for row in sound.log.iter() {
            if row.outcome == RowOutcome::Accepted {
                written.last_accepted.insert(row.key, row);
            }
            if row.outcome != RowOutcome::Rejected
                && let Some(owner) = row.owner
            {
                written.rows.insert((owner, row.key, row.token));
                written.holds.insert((owner, row.key));
            }
        }
        let values = sound.record.values.iter();
        let hashes = values.map(|(key, value)| (key.as_str(), BodyHash::of(value.as_bytes())));
        written.values = hashes.collect();
        written
    }

    /// Returns whether the log has this write at any position.
    fn has(&self, told: &AckedWrite, log: &Log) -> bool {
        let named = log.owner_named(told.owner).zip(log.key_named(told.key));
        named.is_some_and(|(owner, key)| match told.token {
            None => self.holds.contains(&(owner, key)),
            token => [token, None]
                .iter()
                .any(|&token| self.rows.contains(&(owner, key, token))),
        })
    }

    /// Returns whether the resource ended with something newer than the log: then the log
    /// was cut, and nothing was lost.
    fn stands_in_the_end(&self, told: &AckedWrite, sound: &Sound) -> bool {
        let record = sound.record;
        let Some(held) = record.values.get(told.key) else {
            return false;
        };
        if let Some(body) = told.body {
            return self.values.get(told.key) == Some(&body);
        }
        let log = &record.log;
        let key = log.key_named(told.key);
        let last = key.and_then(|key| self.last_accepted.get(&key));
        let last = last.and_then(|row| log.value_of(row));
        last.as_ref() != Some(held)
    }
}

/// An acceptance that a worker was told of.
#[derive(Clone, Copy)]
pub(super) struct AckedWrite<'a> {
    pub event: &'a Event,
    pub key: &'a str,
    pub token: Option<FencingToken>,
    pub owner: &'a str,
    pub position: u64,
    /// The hash of the body that it had sent.
    pub body: Option<BodyHash>,
}

pub(super) fn acknowledged_writes<'a>(history: &[&'a Event]) -> Vec<AckedWrite<'a>> {
    let mut sent: HashMap<&str, BodyHash> = HashMap::new();
    let mut all = Vec::new();
    for event in history.iter().copied() {
        match &event.kind {
            EventKind::Writing { owner, body, .. } => {
                sent.remove(owner.as_str());
                sent.extend(body.map(|body| (owner.as_str(), body)));
            }
            EventKind::WriteAccepted {
                key,
                token,
                owner,
                position,
                ..
            } => all.push(AckedWrite {
                event,
                key,
                token: *token,
                owner,
                position: *position,
                body: sent.get(owner.as_str()).copied(),
            }),
            _ => {}
        }
    }
    all
}

impl AckedWrite<'_> {
    /// Returns whether the row can be this write. A duplicate gets the same answer as the
    /// first write, so either row will do. A field that the row of a foreign resource
    /// lacks cannot contradict it.
    pub fn is_at(&self, row: &Row, log: &Log) -> bool {
        let owner = log.owner_of(row);
        row.outcome != RowOutcome::Rejected
            && log.key_of(row) == self.key
            && owner.is_none_or(|logged| logged == self.owner)
            && (row.token.is_none() || self.token.is_none() || row.token == self.token)
    }

    fn words(&self) -> String {
        format!(
            "{} (owner {}) was told that its write on {} with {} is accepted at position {}",
            self.event.worker,
            self.owner,
            self.key,
            token_words(self.token),
            self.position
        )
    }

    fn violation(&self, kind: ViolationKind, detail: String) -> Violation {
        Violation {
            workers: vec![self.event.worker.clone()],
            ..Violation::new(kind, self.key, self.position, self.event.at_ns, detail)
        }
    }
}

pub(super) fn token_words(token: Option<FencingToken>) -> String {
    match token {
        Some(token) => format!("token {token}"),
        None => "no token".to_owned(),
    }
}

fn what_stands_there(row: Option<&Row>, case: &Case) -> String {
    let Some(row) = row else {
        return "the log has no such row".to_owned();
    };
    let what = match row.outcome {
        RowOutcome::Accepted => "a write",
        RowOutcome::Rejected => "a refused write",
        RowOutcome::Duplicate => "a repeated write",
    };
    format!(
        "the log has {what} of {} on {} with {} there",
        case.names.full(row),
        case.record.log.key_of(row),
        token_words(row.token)
    )
}
