use super::super::holds::Hold;
use super::bites;
use super::evidence::Evidence;
use super::scene::{Although, Scene, Who};
use super::{Need, Step, assemble};
use crate::model::{FencingToken, LogRow, RowOutcome, Story, Violation, ViolationKind};

/// Grant 1 → stop → expiry → grant 2 → accept 2 → resume → accept 1, as far as
/// the record has it.
pub(super) fn of_violations(evidence: &Evidence, violations: &[Violation]) -> Option<Story> {
    let broken = main_violation(violations);
    let index = evidence.positions.index_of(broken.row)?;
    let row = &evidence.record.log[index];
    let kinds: Vec<ViolationKind> = violations.iter().map(|violation| violation.kind).collect();
    let rival = Rival::behind(evidence, row, broken);
    let mut steps = chain(evidence, row, &rival);
    if kinds.contains(&ViolationKind::InterleavedWriters) {
        steps.extend(own_earlier_write(evidence, index));
    }
    let last = Step {
        need: Need::Essential,
        at_ns: row.at_ns,
        scene: Scene::Accepted {
            who: writer(evidence, row),
            token: row.token,
            although: although(broken.kind, row, &rival),
        },
    };
    Some(Story {
        key: row.key.clone(),
        row: row.seq,
        kinds,
        steps: assemble(steps, last),
    })
}

/// The same chain, with a good end.
pub(super) fn of_refusal(evidence: &Evidence, index: usize) -> Story {
    let log = &evidence.record.log;
    let row = &log[index];
    let shown_by = log[..index].iter().rev().find(|earlier| {
        earlier.key == row.key
            && earlier.outcome == RowOutcome::Accepted
            && earlier.token == row.seen
    });
    let rival = Rival::known_by(evidence, &row.key, shown_by, row.seen);
    let last = Step {
        need: Need::Essential,
        at_ns: row.at_ns,
        scene: decision(evidence, row),
    };
    Story {
        key: row.key.clone(),
        row: row.seq,
        kinds: Vec::new(),
        steps: assemble(chain(evidence, row, &rival), last),
    }
}

/// The hold that the late write collides with.
struct Rival<'a> {
    who: Who<'a>,
    hold: Option<&'a Hold<'a>>,
    row: Option<&'a LogRow>,
    token: Option<FencingToken>,
}

impl<'a> Rival<'a> {
    fn behind(evidence: &Evidence<'a>, row: &LogRow, broken: &Violation) -> Rival<'a> {
        let against = broken.against.and_then(|seq| evidence.positions.row(seq));
        if broken.kind != ViolationKind::StaleAccept {
            return Rival::known_by(evidence, &row.key, against, against.and_then(|r| r.token));
        }
        let shown = match against {
            Some(against) if against.outcome == RowOutcome::Rejected => against.seen,
            Some(against) => against.token.max(against.seen),
            None => row.seen,
        };
        Rival::known_by(evidence, &row.key, against, shown)
    }

    /// A row can show a token that is not its own: a refusal names the one that
    /// was seen before. Then the rival is whoever was granted that token.
    fn known_by(
        evidence: &Evidence<'a>,
        key: &str,
        row: Option<&'a LogRow>,
        token: Option<FencingToken>,
    ) -> Rival<'a> {
        let own_row = row.filter(|row| row.token == token);
        let hold = match own_row {
            Some(row) => evidence.hold_of(row),
            None => token.and_then(|token| evidence.hold_with(key, token)),
        };
        let owner = match own_row {
            Some(row) => row.owner.as_deref(),
            None => hold.and_then(|hold| hold.grant).map(|grant| grant.owner),
        };
        Rival {
            who: evidence.who(owner),
            hold,
            row,
            token,
        }
    }
}

/// What a reader understands first, where one write broke several rules.
fn main_violation(violations: &[Violation]) -> &Violation {
    const ORDER: [ViolationKind; 5] = [
        ViolationKind::StaleAccept,
        ViolationKind::TokenTwoOwners,
        ViolationKind::TokenRegression,
        ViolationKind::InterleavedWriters,
        ViolationKind::LostUpdate,
    ];
    ORDER
        .iter()
        .find_map(|&kind| violations.iter().find(|violation| violation.kind == kind))
        .unwrap_or(&violations[0])
}

fn although<'a>(kind: ViolationKind, row: &LogRow, rival: &Rival<'a>) -> Although<'a> {
    match kind {
        ViolationKind::StaleAccept => rival.token.map_or(Although::Nothing, Although::Below),
        ViolationKind::TokenTwoOwners => Although::OtherOwner(rival.who),
        // A lower token is stale already; what is left is the same pair, or a lower seq.
        ViolationKind::TokenRegression => Although::UsedBefore {
            token_seq: row.token_seq,
        },
        ViolationKind::InterleavedWriters => Although::InBetween(rival.who),
        ViolationKind::LostUpdate => Although::BasedBefore {
            other: rival.who,
            based_on: row.based_on.unwrap_or(0),
            stands_at: rival.row.map_or(0, |row| row.seq),
        },
        ViolationKind::AcknowledgedWriteLost | ViolationKind::ValueNotAccepted => Although::Nothing,
    }
}

/// Everything before the late write itself.
fn chain<'a>(evidence: &Evidence<'a>, row: &'a LogRow, rival: &Rival<'a>) -> Vec<Step<'a>> {
    let late = evidence.hold_of(row);
    let mut steps: Vec<Step> = Vec::new();
    steps.extend(late.and_then(|hold| granted(evidence, hold)));
    let rival_hold = rival.hold.filter(|&hold| Some(hold) != late);
    if let Some(late) = late {
        let rival_ns = rival_hold
            .map(|hold| hold.from_ns)
            .or(rival.row.map(|row| row.at_ns));
        let bites = evidence.bites(late.worker, late.from_ns, row.at_ns);
        steps.extend(bites::steps(bites, late.worker, rival_ns));
        steps.extend(let_go(evidence, late, rival_hold, row));
    }
    steps.extend(rival_hold.and_then(|hold| granted(evidence, hold)));
    if let Some(rival_row) = rival.row {
        steps.push(essential(rival_row.at_ns, decision(evidence, rival_row)));
    }
    steps
}

/// How the late writer's lock was taken from it.
fn let_go<'a>(
    evidence: &Evidence<'a>,
    late: &Hold<'a>,
    rival: Option<&Hold<'a>>,
    row: &'a LogRow,
) -> Vec<Step<'a>> {
    let (who, key) = (writer(evidence, row), late.key);
    let ran_out_ns = evidence.ran_out_ns(late, rival);
    let ran_out_ns = ran_out_ns.filter(|&at_ns| at_ns <= row.at_ns);
    let ran_out = ran_out_ns.map(|at_ns| essential(at_ns, Scene::RanOut { who, key }));
    let later_rival = rival.filter(|rival| rival.from_ns > late.from_ns);
    // One server that lets go matters where the rival did not wait for the rest.
    let in_time = |rival: &&Hold| ran_out_ns.is_none_or(|at_ns| at_ns > rival.from_ns);
    let on_one = later_rival.filter(in_time);
    let on_one = on_one.and_then(|rival| evidence.ran_out_on(late, rival));
    let on_one = on_one.map(|(node, at_ns)| {
        let scene = Scene::RanOutOn { who, key, node };
        essential(at_ns, scene)
    });
    let freed = later_rival.and_then(|rival| evidence.freed_by(late, rival));
    let freed = freed.map(|(by, at_ns)| essential(at_ns, Scene::Freed { by, who, key }));
    on_one.into_iter().chain(ran_out).chain(freed).collect()
}

/// The write of the same hold that makes a later one an interleaved one.
fn own_earlier_write<'a>(evidence: &Evidence<'a>, index: usize) -> Option<Step<'a>> {
    let log = &evidence.record.log;
    let row = &log[index];
    let own = log[..index].iter().rev().find(|earlier| {
        earlier.outcome == RowOutcome::Accepted
            && earlier.key == row.key
            && earlier.owner == row.owner
            && earlier.token == row.token
    })?;
    Some(Step {
        need: Need::Helpful,
        at_ns: own.at_ns,
        scene: decision(evidence, own),
    })
}

pub(super) fn granted<'a>(evidence: &Evidence<'a>, hold: &Hold<'a>) -> Option<Step<'a>> {
    let grant = hold.grant?;
    let scene = Scene::Granted {
        who: evidence.who(Some(grant.owner)),
        key: hold.key,
        token: grant.token,
    };
    Some(essential(hold.from_ns, scene))
}

/// What the resource decided in a row, told without a comment.
pub(super) fn decision<'a>(evidence: &Evidence<'a>, row: &'a LogRow) -> Scene<'a> {
    let who = writer(evidence, row);
    match row.outcome {
        RowOutcome::Rejected => Scene::Refused {
            who,
            got: row.token,
            seen: row.seen,
        },
        RowOutcome::Accepted | RowOutcome::Duplicate => Scene::Accepted {
            who,
            token: row.token,
            although: Although::Nothing,
        },
    }
}

fn writer<'a>(evidence: &Evidence<'a>, row: &'a LogRow) -> Who<'a> {
    evidence.who(row.owner.as_deref())
}

pub(super) fn essential(at_ns: u64, scene: Scene) -> Step {
    Step {
        need: Need::Essential,
        at_ns,
        scene,
    }
}
