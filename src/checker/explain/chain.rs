use super::super::holds::Hold;
use super::bites;
use super::evidence::Evidence;
use super::scene::{Although, Scene, Who};
use super::{Need, Step, assemble, title};
use crate::model::{FencingToken, Row, RowOutcome, Story, Violation, ViolationKind};

/// Grant 1 → stop → expiry → grant 2 → accept 2 → resume → accept 1, as far as
/// the record has it.
pub(super) fn of_violations(evidence: &Evidence, violations: &[Violation]) -> Option<Story> {
    let broken = main_violation(violations);
    let index = evidence.positions.index_of(broken.row)?;
    let row = &evidence.sound.log[index];
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
            who: evidence.writer(row),
            token: row.token,
            although: although(broken.kind, row, &rival),
        },
    };
    Some(Story {
        key: evidence.key_of(row).to_owned(),
        row: row.seq,
        title: title(&kinds),
        kinds,
        steps: assemble(steps, last),
    })
}

/// The same chain, with a good end.
pub(super) fn of_refusal(evidence: &Evidence, index: usize, title: &str) -> Story {
    let log = &evidence.sound.log;
    let row = &log[index];
    let shown_by = log[..index].iter().rev().find(|earlier| {
        earlier.key == row.key
            && earlier.outcome == RowOutcome::Accepted
            && earlier.token == row.seen
    });
    let rival = Rival::known_by(evidence, evidence.key_of(row), shown_by, row.seen);
    let last = Step {
        need: Need::Essential,
        at_ns: row.at_ns,
        scene: decision(evidence, row),
    };
    Story {
        key: evidence.key_of(row).to_owned(),
        row: row.seq,
        kinds: Vec::new(),
        title: title.to_owned(),
        steps: assemble(chain(evidence, row, &rival), last),
    }
}

/// The hold that the late write collides with.
struct Rival<'e, 'a> {
    who: Who<'a>,
    hold: Option<&'e Hold<'a>>,
    row: Option<&'e Row>,
    token: Option<FencingToken>,
}

impl<'e, 'a> Rival<'e, 'a> {
    fn behind(evidence: &'e Evidence<'e, 'a>, row: &Row, broken: &Violation) -> Rival<'e, 'a> {
        let against = broken.against.and_then(|seq| evidence.positions.row(seq));
        if broken.kind != ViolationKind::StaleAccept {
            let key = evidence.key_of(row);
            return Rival::known_by(evidence, key, against, against.and_then(|r| r.token));
        }
        let shown = match against {
            Some(against) if against.outcome == RowOutcome::Rejected => against.seen,
            Some(against) => against.token.max(against.seen),
            None => row.seen,
        };
        Rival::known_by(evidence, evidence.key_of(row), against, shown)
    }

    /// A row can show a token that is not its own: a refusal names the one that
    /// was seen before. Then the rival is whoever was granted that token.
    fn known_by(
        evidence: &'e Evidence<'e, 'a>,
        key: &str,
        row: Option<&'e Row>,
        token: Option<FencingToken>,
    ) -> Rival<'e, 'a> {
        let own_row = row.filter(|row| row.token == token);
        let hold = match own_row {
            Some(row) => evidence.hold_of(row),
            None => token.and_then(|token| evidence.hold_with(key, token)),
        };
        let who = match own_row {
            Some(row) => evidence.writer(row),
            None => evidence.who(hold.and_then(|hold| hold.grant).map(|grant| grant.owner)),
        };
        Rival {
            who,
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

fn although<'a>(kind: ViolationKind, row: &Row, rival: &Rival<'_, 'a>) -> Although<'a> {
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
        _ => Although::Nothing,
    }
}

/// Everything before the late write itself.
fn chain<'e, 'a>(
    evidence: &'e Evidence<'e, 'a>,
    row: &Row,
    rival: &Rival<'e, 'a>,
) -> Vec<Step<'a>> {
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
    evidence: &Evidence<'_, 'a>,
    late: &Hold<'a>,
    rival: Option<&Hold<'a>>,
    row: &Row,
) -> Vec<Step<'a>> {
    let (who, key) = (evidence.writer(row), late.key);
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
fn own_earlier_write<'a>(evidence: &Evidence<'_, 'a>, index: usize) -> Option<Step<'a>> {
    let log = &evidence.sound.log;
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

pub(super) fn granted<'a>(evidence: &Evidence<'_, 'a>, hold: &Hold<'a>) -> Option<Step<'a>> {
    let grant = hold.grant?;
    let scene = Scene::Granted {
        who: evidence.who(Some(grant.owner)),
        key: hold.key,
        token: grant.token,
    };
    Some(essential(hold.from_ns, scene))
}

/// What the resource decided in a row, told without a comment.
pub(super) fn decision<'a>(evidence: &Evidence<'_, 'a>, row: &Row) -> Scene<'a> {
    let who = evidence.writer(row);
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

pub(super) fn essential(at_ns: u64, scene: Scene) -> Step {
    Step {
        need: Need::Essential,
        at_ns,
        scene,
    }
}
