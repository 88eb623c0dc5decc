use super::hold_book::HoldBook;
use super::*;

/// Judges the resource's log by itself, in its own order and without clocks, in one pass
/// with one state for each key.
pub(super) fn violations(sound: &Sound, names: &Names) -> Vec<Violation> {
    let log = &sound.record.log;
    let mut keys: Vec<KeyState> = Vec::new();
    keys.resize_with(log.key_count(), KeyState::default);
    let mut report = Report {
        log,
        rows: &sound.log,
        names,
        found: Vec::new(),
    };
    let fence = sound.record.plan.fence;
    for (index, row) in sound.log.iter().enumerate() {
        let state = &mut keys[row.key.0 as usize];
        match row.outcome {
            RowOutcome::Accepted => {
                state.learn(row.seen, index);
                state.accept(index, fence, &mut report);
            }
            RowOutcome::Rejected => {
                state.refuse(index, fence, sound.log_is_whole, &mut report);
                state.learn(row.seen, index);
            }
            RowOutcome::Duplicate => {
                if sound.log_is_whole {
                    state.repeat(index, &mut report);
                }
                state.learn(row.seen, index);
                state.learn(row.token, index);
            }
        }
    }
    report.found
}

/// The state of one key that its later rows are compared with.
#[derive(Default)]
struct KeyState {
    /// The highest token that the resource has shown to know, and the first row that
    /// showed it. A refusal shows it as well as an acceptance does: a resource that lost
    /// its fence in a restart is caught by its own earlier answers.
    known: Option<(FencingToken, usize)>,
    /// The highest pair that was accepted, and its row.
    highest: Option<((FencingToken, u64), usize)>,
    last_accepted: Option<usize>,
    book: HoldBook,
}

impl KeyState {
    fn learn(&mut self, token: Option<FencingToken>, index: usize) {
        let Some(token) = token else { return };
        if self.known.is_none_or(|(highest, _)| token > highest) {
            self.known = Some((token, index));
        }
    }

    fn accept(&mut self, index: usize, fence: Option<Fence>, report: &mut Report) {
        let row = &report.rows[index];
        if let (Some(token), Some((highest, shown_by))) = (row.token, self.known)
            && token < highest
        {
            report.stale_accept(index, highest, shown_by);
        }
        let before = self.book.enter(report.rows, index);
        if let Some(other) = before.other_owner {
            report.token_two_owners(index, other);
        }
        if let Some(last) = self.last_accepted {
            let previous = &report.rows[last];
            if !grew(previous, row) && !report.is_own_again(previous, row, fence) {
                report.token_regression(index, last);
            }
            if let Some(own) = before.own_last
                && by_another_hold(previous, row)
            {
                report.interleaved_writers(index, last, own);
            }
            if let Some(position) = row.based_on
                && previous.seq > position
                && by_another_owner(previous, row)
            {
                report.lost_update(index, last, position);
            }
        }
        if let Some(token) = row.token {
            self.learn(Some(token), index);
            let pair = (token, row.token_seq);
            if self.highest.is_none_or(|(highest, _)| pair > highest) {
                self.highest = Some((pair, index));
            }
        }
        // An anonymous write may be anybody's, so it does not come between two others.
        if row.token.is_some() || row.owner.is_some() {
            self.last_accepted = Some(index);
        }
    }

    /// Checks that a refusal has a reason and names the true one. A row that contradicts
    /// itself is enough; otherwise all earlier rows have to be known.
    fn refuse(&self, index: usize, fence: Option<Fence>, whole: bool, report: &mut Report) {
        let row = &report.rows[index];
        if fence == Some(Fence::Off) {
            report.refused_without_reason(index, "although it compares no tokens");
            return;
        }
        let Some(token) = row.token else { return };
        let highest = self.highest.map(|(pair, _)| pair);
        let has_reason = self.highest.is_some_and(|(highest, first)| {
            let is_strangers = token == highest.0 && row.owner != report.rows[first].owner;
            (token, row.token_seq) <= highest || is_strangers
        });
        let by_itself = row.seen.is_some_and(|seen| seen < token);
        if by_itself || (whole && fence.is_some() && !has_reason) {
            let although = match (row.seen.filter(|_| by_itself), highest) {
                (Some(seen), _) => format!("although it names {seen} as the highest it has seen"),
                (None, None) => "although nothing had been accepted before".to_owned(),
                (None, Some((highest, _))) => {
                    format!("although the highest accepted before is {highest}")
                }
            };
            report.refused_without_reason(index, &although);
            return;
        }
        if let (Some(seen), Some((highest, shown_by))) = (row.seen, self.highest)
            && whole
            && fence.is_some()
            && seen != highest.0
        {
            report.untrue_refusal(index, shown_by, seen, highest.0);
        }
    }

    /// Checks a duplicate: only the latest write of the same owner can be repeated.
    fn repeat(&self, index: usize, report: &mut Report) {
        let row = &report.rows[index];
        let Some(token) = row.token else { return };
        let Some((pair, first)) = self.highest else {
            report.untrue_repetition(index, None, "nothing had been accepted before");
            return;
        };
        let original = &report.rows[first];
        let why = if pair != (token, row.token_seq) {
            "the last accepted write has another token or seq"
        } else if differ(&original.owner, &row.owner) {
            "the first was another owner's"
        } else if differ(&original.body, &row.body) {
            "the first had another body"
        } else {
            return;
        };
        report.untrue_repetition(index, Some(first), why);
    }
}

fn grew(previous: &Row, row: &Row) -> bool {
    match (previous.token, row.token) {
        (Some(before), Some(now)) => (now, row.token_seq) > (before, previous.token_seq),
        _ => true,
    }
}

/// A field that one row lacks is not a difference: only fields that both rows have can differ.
fn by_another_hold(previous: &Row, row: &Row) -> bool {
    differ(&previous.token, &row.token) || differ(&previous.owner, &row.owner)
}

/// Returns whether two rows belong to different owners. If an owner is missing, two
/// tokens still distinguish two holds.
fn by_another_owner(previous: &Row, row: &Row) -> bool {
    if previous.owner.is_some() && row.owner.is_some() {
        previous.owner != row.owner
    } else {
        differ(&previous.token, &row.token)
    }
}

fn differ<T: PartialEq>(before: &Option<T>, now: &Option<T>) -> bool {
    before.is_some() && now.is_some() && before != now
}

/// The violations found so far, in words that name the real tokens and owners.
struct Report<'a, 'n> {
    log: &'a Log,
    rows: &'a [Row],
    names: &'n Names<'a>,
    found: Vec<Violation>,
}

impl Report<'_, '_> {
    /// Returns whether a holder sent its own last write once more to a resource that
    /// compares nothing. That changes nothing.
    fn is_own_again(&self, previous: &Row, row: &Row, fence: Option<Fence>) -> bool {
        let same_body = match (previous.body, row.body) {
            (Some(before), Some(now)) => before == now,
            _ => self.log.value_of(previous) == self.log.value_of(row),
        };
        fence == Some(Fence::Off)
            && row.owner.is_some()
            && (previous.owner, previous.token, previous.token_seq)
                == (row.owner, row.token, row.token_seq)
            && same_body
    }

    fn stale_accept(&mut self, index: usize, highest: FencingToken, shown_by: usize) {
        let shown = if shown_by == index {
            format!("this very row says that token {highest} had been seen")
        } else {
            let row = self.rows[shown_by].seq;
            format!("row {row} shows that the resource had known token {highest}")
        };
        let detail = format!(
            "{} wrote with {}, although {shown}",
            self.writer(index),
            self.token(index)
        );
        let against = (shown_by != index).then_some(shown_by);
        self.add(ViolationKind::StaleAccept, index, against, detail);
    }

    fn token_regression(&mut self, index: usize, last: usize) {
        let detail = format!(
            "{} wrote with {}, seq {}, directly after {} had written with {}, seq {}",
            self.writer(index),
            self.token(index),
            self.rows[index].token_seq,
            self.writer(last),
            self.token(last),
            self.rows[last].token_seq,
        );
        self.add(ViolationKind::TokenRegression, index, Some(last), detail);
    }

    fn token_two_owners(&mut self, index: usize, other: usize) {
        let detail = format!(
            "{} was accepted for {} at row {} and for {} at row {}",
            self.token(index),
            self.writer(other),
            self.rows[other].seq,
            self.writer(index),
            self.rows[index].seq,
        );
        self.add(ViolationKind::TokenTwoOwners, index, Some(other), detail);
    }

    fn interleaved_writers(&mut self, index: usize, between: usize, own: usize) {
        let detail = format!(
            "{} wrote at row {} and again at row {} with {}; in between, at row {}, {} wrote with {}",
            self.writer(index),
            self.rows[own].seq,
            self.rows[index].seq,
            self.token(index),
            self.rows[between].seq,
            self.writer(between),
            self.token(between),
        );
        let kind = ViolationKind::InterleavedWriters;
        self.add(kind, index, Some(between), detail);
    }

    fn lost_update(&mut self, index: usize, last: usize, position: u64) {
        let detail = format!(
            "{} wrote with {} what it had made from position {position}, \
             although the write of {} with {} stood at position {}",
            self.writer(index),
            self.token(index),
            self.writer(last),
            self.token(last),
            self.rows[last].seq,
        );
        self.add(ViolationKind::LostUpdate, index, Some(last), detail);
    }

    fn refused_without_reason(&mut self, index: usize, although: &str) {
        let detail = format!(
            "the resource refused the write of {} with {}, seq {}, {although}",
            self.writer(index),
            self.token(index),
            self.rows[index].token_seq,
        );
        self.add(ViolationKind::RefusedWithoutReason, index, None, detail);
    }

    fn untrue_refusal(
        &mut self,
        index: usize,
        shown_by: usize,
        seen: FencingToken,
        highest: FencingToken,
    ) {
        let detail = format!(
            "the resource refused the write of {} with {} and named {seen} as the highest it has seen; \
             the highest accepted before is {highest}, at row {}",
            self.writer(index),
            self.token(index),
            self.rows[shown_by].seq,
        );
        self.add(ViolationKind::UntrueRefusal, index, Some(shown_by), detail);
    }

    fn untrue_repetition(&mut self, index: usize, first: Option<usize>, why: &str) {
        let detail = format!(
            "the resource answered the write of {} with {} as a repetition, but {why}",
            self.writer(index),
            self.token(index),
        );
        self.add(ViolationKind::UntrueRepetition, index, first, detail);
    }

    fn add(&mut self, kind: ViolationKind, index: usize, against: Option<usize>, detail: String) {
        let row = &self.rows[index];
        let involved = [Some(index), against].into_iter().flatten();
        let workers = involved.filter_map(|index| self.names.writer(&self.rows[index]));
        self.found.push(Violation {
            against: against.map(|index| self.rows[index].seq),
            workers: workers.map(str::to_owned).collect(),
            ..Violation::new(kind, self.log.key_of(row), row.seq, row.at_ns, detail)
        });
    }

    fn writer(&self, index: usize) -> String {
        self.names.full(&self.rows[index])
    }

    fn token(&self, index: usize) -> String {
        token_words(self.rows[index].token)
    }
}
