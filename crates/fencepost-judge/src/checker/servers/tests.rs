use super::*;

fn row(at_ns: u64, kind: LockEventKind) -> LockEvent {
    LockEvent {
        at_ns,
        node: "redis".to_owned(),
        key: "k".to_owned(),
        kind,
        owner: Some("a".to_owned()),
        token: Some(FencingToken(1)),
    }
}

const LOSS: Loss = Loss {
    asked_ns: 10,
    observed_ns: 20,
};

/// Returns the stay of a lock that was granted at this time, before what happened then.
fn granted(at_ns: u64, then: &[LockEvent], losses: &[Loss]) -> (Option<StayEnd>, bool, bool) {
    let grant = row(at_ns, LockEventKind::Granted);
    let rows: Vec<&LockEvent> = [&grant].into_iter().chain(then).collect();
    let all = stays(&rows, losses, &[]);
    let how = all[0].end.map(|(_, how)| how);
    (how, all[0].may_outlive_loss, all[0].recreated_ns.is_some())
}

#[test]
fn a_grant_of_a_server_that_was_just_losing_its_data_may_have_come_afterwards() {
    let renewed = [row(20 + HEARD_WITHIN_NS, LockEventKind::Renewed)];
    let lost = Some(StayEnd::Forgotten);
    assert_eq!(granted(5, &renewed, &[LOSS]), (lost, false, true));
    assert_eq!(granted(15, &renewed, &[LOSS]), (lost, true, false));
}

#[test]
fn a_grant_that_ends_later_came_after_the_loss() {
    for (kind, how) in [
        (LockEventKind::Released, StayEnd::Released),
        (LockEventKind::Expired, StayEnd::Expired),
    ] {
        let ended = [row(30, kind)];
        assert_eq!(granted(15, &ended, &[LOSS]), (Some(how), false, false));
    }
}

#[test]
fn a_grant_from_before_the_next_loss_is_lost_for_certain() {
    let next = Loss {
        asked_ns: 30,
        observed_ns: 40,
    };
    let lost = (Some(StayEnd::Forgotten), false, false);
    assert_eq!(granted(15, &[], &[LOSS, next]), lost);
}
