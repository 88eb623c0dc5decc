use super::*;

/// Explains a violation: grant 1 → stop → expiry → grant 2 → accept 2 → resume → accept
/// 1, as far as the record has it.
pub(super) fn of_violations(case: &Case, violations: &[Violation]) -> Option<Story> {
    let broken = main_violation(violations);
    let index = case.positions.index_of(broken.row)?;
    let row = &case.sound.log[index];
    let kinds: Vec<ViolationKind> = violations.iter().map(|violation| violation.kind).collect();
    let rival = Rival::behind(case, row, broken);
    let mut steps = chain(case, row, &rival);
    if kinds.contains(&ViolationKind::InterleavedWriters) {
        steps.extend(own_earlier_write(case, index));
    }
    let last = although(decision(case, row), case, broken.kind, row, &rival);
    let last = essential(row.at_ns, last);
    Some(Story {
        key: case.key_of(row).to_owned(),
        row: row.seq,
        title: title(&kinds),
        kinds,
        steps: assemble(steps, last),
    })
}

/// Explains a refusal: the same chain, with a good end.
pub(super) fn of_refusal(case: &Case, index: usize, title: &str) -> Story {
    let log = &case.sound.log;
    let row = &log[index];
    let shown_by = log[..index].iter().rev().find(|earlier| {
        earlier.key == row.key
            && earlier.outcome == RowOutcome::Accepted
            && earlier.token == row.seen
    });
    let rival = Rival::known_by(case, case.key_of(row), shown_by, row.seen);
    let last = essential(row.at_ns, decision(case, row));
    Story {
        key: case.key_of(row).to_owned(),
        row: row.seq,
        kinds: Vec::new(),
        title: title.to_owned(),
        steps: assemble(chain(case, row, &rival), last),
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
    fn behind(case: &'e Case<'e, 'a>, row: &Row, broken: &Violation) -> Rival<'e, 'a> {
        let against = broken.against.and_then(|seq| case.positions.row(seq));
        if broken.kind != ViolationKind::StaleAccept {
            let key = case.key_of(row);
            return Rival::known_by(case, key, against, against.and_then(|r| r.token));
        }
        let shown = match against {
            Some(against) if against.outcome == RowOutcome::Rejected => against.seen,
            Some(against) => against.token.max(against.seen),
            None => row.seen,
        };
        Rival::known_by(case, case.key_of(row), against, shown)
    }

    /// Finds the rival. A row can show a token that is not its own: a refusal names the
    /// one that was seen before. Then the rival is the worker that was granted that
    /// token.
    fn known_by(
        case: &'e Case<'e, 'a>,
        key: &str,
        row: Option<&'e Row>,
        token: Option<FencingToken>,
    ) -> Rival<'e, 'a> {
        let own_row = row.filter(|row| row.token == token);
        let hold = match own_row {
            Some(row) => case.hold_of(row),
            None => token.and_then(|token| case.hold_with(key, token)),
        };
        let who = match own_row {
            Some(row) => case.writer(row),
            None => case.who(hold.and_then(|hold| hold.grant).map(|grant| grant.owner)),
        };
        Rival {
            who,
            hold,
            row,
            token,
        }
    }
}

/// Returns the violation that a reader understands first, if one write broke several
/// rules.
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

/// Adds why a write should not have been accepted.
fn although(scene: Scene, case: &Case, kind: ViolationKind, row: &Row, rival: &Rival) -> Scene {
    match kind {
        ViolationKind::StaleAccept => match (row.token, rival.token) {
            (Some(token), Some(highest)) => scene
                .say(", although ")
                .token_as(token, token.to_string())
                .say(" < ")
                .token_as(highest, highest.to_string()),
            _ => scene,
        },
        ViolationKind::TokenTwoOwners => scene
            .say(", although ")
            .who(rival.who)
            .say(" has written with ")
            .token(row.token)
            .say(", too"),
        // A lower token is stale already; the remaining cases are the same pair, or a
        // lower seq.
        ViolationKind::TokenRegression => scene
            .say(", although ")
            .token(row.token)
            .each("", format!(" with seq {}", row.token_seq))
            .say(" has been used before"),
        ViolationKind::InterleavedWriters => scene
            .say(", although ")
            .who(rival.who)
            .say(" has written since ")
            .who(case.writer(row))
            .say("'s last write"),
        ViolationKind::LostUpdate => {
            let (based_on, stands_at) = (row.based_on.unwrap_or(0), rival.row.map_or(0, |r| r.seq));
            let based_on = format!(", based on position {based_on}, although ");
            scene
                .each(", based on the value before ", based_on)
                .who(rival.who)
                .each(
                    "'s write",
                    format!("'s write stands at position {stands_at}"),
                )
        }
        _ => scene,
    }
}

/// Returns all steps before the late write itself.
fn chain<'e, 'a>(case: &'e Case<'e, 'a>, row: &Row, rival: &Rival<'e, 'a>) -> Vec<Step> {
    let late = case.hold_of(row);
    let mut steps: Vec<Step> = Vec::new();
    steps.extend(late.and_then(|hold| granted(case, hold)));
    let rival_hold = rival.hold.filter(|&hold| Some(hold) != late);
    if let Some(late) = late {
        let rival_ns = rival_hold
            .map(|hold| hold.from_ns)
            .or(rival.row.map(|row| row.at_ns));
        let bites = case.bites(late.worker, late.from_ns, row.at_ns);
        steps.extend(bites::steps(bites, late.worker, rival_ns));
        steps.extend(let_go(case, late, rival_hold, row));
    }
    steps.extend(rival_hold.and_then(|hold| granted(case, hold)));
    if let Some(rival_row) = rival.row {
        steps.push(essential(rival_row.at_ns, decision(case, rival_row)));
    }
    steps
}

/// Returns the steps in which the late writer lost its lock.
fn let_go<'a>(
    case: &Case<'_, 'a>,
    late: &Hold<'a>,
    rival: Option<&Hold<'a>>,
    row: &Row,
) -> Vec<Step> {
    let (who, key) = (case.writer(row), late.key);
    let lock = |how: String| {
        let scene = Scene::new(StepKind::LetGo).who(who);
        scene.say(format!("'s lock on {key} runs out{how}"))
    };
    let ran_out_ns = case.ran_out_ns(late, rival);
    let ran_out_ns = ran_out_ns.filter(|&at_ns| at_ns <= row.at_ns);
    let ran_out = ran_out_ns.map(|at_ns| essential(at_ns, lock(String::new())));
    let later_rival = rival.filter(|rival| rival.from_ns > late.from_ns);
    // One server that lets go matters if the rival did not wait for the rest.
    let in_time = |rival: &&Hold| ran_out_ns.is_none_or(|at_ns| at_ns > rival.from_ns);
    let on_one = later_rival.filter(in_time);
    let on_one = on_one.and_then(|rival| case.ran_out_on(late, rival));
    let on_one = on_one.map(|(node, at_ns)| essential(at_ns, lock(format!(" at {node}"))));
    let freed = later_rival.and_then(|rival| case.freed_by(late, rival));
    let freed = freed.map(|(by, at_ns)| {
        let scene = Scene::new(StepKind::LetGo).say(format!("{by}'s release frees "));
        essential(at_ns, scene.who(who).say(format!("'s lock on {key}")))
    });
    on_one.into_iter().chain(ran_out).chain(freed).collect()
}

/// Returns the write of the same hold that makes a later one an interleaved one.
fn own_earlier_write(case: &Case, index: usize) -> Option<Step> {
    let log = &case.sound.log;
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
        scene: decision(case, own),
    })
}

pub(super) fn granted<'a>(case: &Case<'_, 'a>, hold: &Hold<'a>) -> Option<Step> {
    let grant = hold.grant?;
    let scene = Scene::new(StepKind::Grant).who(case.who(Some(grant.owner)));
    let scene = scene.say(format!(" is granted {}", hold.key));
    let scene = match grant.token {
        Some(_) => scene.say(" with ").token(grant.token),
        None => scene,
    };
    Some(essential(hold.from_ns, scene))
}

/// Describes the resource's decision in a row, without a comment.
pub(super) fn decision(case: &Case, row: &Row) -> Scene {
    let verb = match row.outcome {
        RowOutcome::Rejected => "refuses",
        RowOutcome::Accepted | RowOutcome::Duplicate => "accepts",
    };
    let scene = Scene::new(StepKind::Write).say(format!("the resource {verb} "));
    let scene = scene.write(case.writer(row), row.token);
    match (
        row.seen.filter(|_| row.outcome == RowOutcome::Rejected),
        row.token,
    ) {
        (Some(seen), Some(got)) => {
            let answer = format!(": stale fencing token: seen {seen}, got {got}");
            scene.each(": it has seen ", answer).token_as(seen, "")
        }
        (Some(seen), None) => scene.say(": it has seen ").token(Some(seen)),
        (None, _) => scene,
    }
}

pub(super) fn told(who: &str, what: String, at_ns: u64) -> Step {
    told_closely(who, what, "", at_ns)
}

/// Does the same, with the words that differ from run to run at its end.
pub(super) fn told_closely(
    who: &str,
    what: String,
    closely: impl Into<String>,
    at_ns: u64,
) -> Step {
    let scene = Scene::new(StepKind::Other).say(format!("{who} {what}"));
    essential(at_ns, scene.each("", closely))
}

pub(super) fn essential(at_ns: u64, scene: Scene) -> Step {
    Step {
        need: Need::Essential,
        at_ns,
        scene,
    }
}
