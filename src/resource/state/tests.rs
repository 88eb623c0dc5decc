use super::*;

fn write(token: Option<u64>, seq: u64, body: &str) -> WriteRequest {
    WriteRequest {
        key: "k".into(),
        token: token.map(FencingToken),
        token_seq: seq,
        owner: None,
        based_on: None,
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

fn outcomes(state: &mut State, writes: &[(u64, u64, &str)]) -> Vec<RowOutcome> {
    let decide = |&(token, seq, body): &(u64, u64, &str)| {
        let decision = state.decide(write(Some(token), seq, body), 0).unwrap();
        decision.row.outcome
    };
    writes.iter().map(decide).collect()
}

#[test]
fn pairs_must_grow_token_first() {
    use RowOutcome::{Accepted, Duplicate, Rejected};
    let writes = [
        (2, 0, "a"),
        (2, 1, "b"),
        (2, 1, "b"),
        (2, 1, "other"),
        (2, 0, "a"),
        (1, 9, "c"),
        (3, 0, "d"),
        (2, 5, "e"),
    ];
    let mut state = State::new(Fence::On);
    assert_eq!(
        outcomes(&mut state, &writes),
        [
            Accepted, Accepted, Duplicate, Rejected, Rejected, Rejected, Accepted, Rejected
        ]
    );
}

#[test]
fn a_token_of_zero_is_a_token() {
    let mut state = State::new(Fence::On);
    let first = state.decide(write(Some(0), 0, "a"), 0).unwrap();
    assert_eq!(first.row.seen, None);
    let second = state.decide(write(Some(0), 1, "b"), 0).unwrap();
    assert_eq!(second.row.seen, Some(FencingToken(0)));
    assert_eq!(second.row.outcome, RowOutcome::Accepted);
}

#[test]
fn a_repeat_is_answered_with_the_first_position_and_not_applied() {
    let mut state = State::new(Fence::On);
    let first = state.decide(write(Some(5), 0, "a"), 0).unwrap();
    let again = state.decide(write(Some(5), 0, "a"), 0).unwrap();
    assert_eq!(first.answer, again.answer);
    assert_eq!((again.row.seq, again.row.value), (2, None));
    assert_eq!(state.get("k").unwrap().position, 1);
}

#[test]
fn the_latest_write_by_another_owner_is_refused() {
    let by = |owner: Option<&str>| WriteRequest {
        owner: owner.map(str::to_owned),
        ..write(Some(5), 0, "a")
    };
    let mut first = State::new(Fence::On);
    let accepted = first.decide(by(Some("x")), 0).unwrap();
    let mut replayed = State::new(Fence::On);
    replayed.replay(accepted.row);
    for state in [&mut first, &mut replayed] {
        let pair = Pair {
            token: FencingToken(5),
            seq: 0,
        };
        for stranger in [Some("y"), None] {
            let refused = state.decide(by(stranger), 0).unwrap();
            assert_eq!(refused.row.outcome, RowOutcome::Rejected);
            let (seen, got) = (pair, pair);
            assert_eq!(refused.answer, Answer::Rejected { seen, got });
        }
        let again = state.decide(by(Some("x")), 0).unwrap();
        assert_eq!(again.row.outcome, RowOutcome::Duplicate);
        assert_eq!(again.answer, accepted.answer);
    }
}

#[test]
fn a_token_belongs_to_the_owner_of_its_highest_write() {
    use RowOutcome::{Accepted, Duplicate, Rejected};
    let steps = [
        (Some("a"), 5, 0, Accepted),
        (Some("b"), 5, 1, Rejected),
        (None, 5, 1, Rejected),
        (Some("a"), 5, 2, Accepted),
        (Some("b"), 5, 2, Rejected),
        (Some("a"), 5, 2, Duplicate),
        (Some("b"), 6, 0, Accepted),
        (Some("a"), 6, 1, Rejected),
    ];
    let mut state = State::new(Fence::On);
    let mut rows = Vec::new();
    for (owner, token, seq, expected) in steps {
        let request = WriteRequest {
            owner: owner.map(str::to_owned),
            ..write(Some(token), seq, "v")
        };
        let row = state.decide(request.clone(), 0).unwrap().row;
        assert_eq!(row.outcome, expected, "{owner:?} with ({token}, {seq})");
        let mut replayed = State::new(Fence::On);
        rows.iter().cloned().for_each(|row| replayed.replay(row));
        let again = replayed.decide(request, 0).unwrap().row;
        assert_eq!(again.outcome, expected, "after a restart");
        rows.push(row);
    }
}

#[test]
fn a_missing_token_is_not_a_row() {
    let mut state = State::new(Fence::On);
    assert_eq!(
        state.decide(write(None, 0, "a"), 0).unwrap_err(),
        Undecided::TokenMissing
    );
    let next = state.decide(write(Some(1), 0, "a"), 0).unwrap();
    assert_eq!(next.row.seq, 1);
}

#[test]
fn the_open_fence_accepts_everything_and_remembers_the_highest() {
    let mut state = State::new(Fence::Off);
    let all = [(7, 0, "a"), (7, 0, "a"), (3, 0, "b")];
    assert_eq!(outcomes(&mut state, &all), [RowOutcome::Accepted; 3]);
    let last = state.decide(write(None, 0, "c"), 0).unwrap();
    assert_eq!(last.row.seen, Some(FencingToken(7)));
    let stored = state.get("k").unwrap();
    assert_eq!(stored.value, RowValue::Text("c".into()));
    assert_eq!(
        (stored.max_fence, stored.position),
        (Some(FencingToken(7)), 4)
    );
}

#[test]
fn what_is_held_is_bounded_and_what_is_refused_for_it_is_no_row() {
    for fence in [Fence::On, Fence::Off] {
        let mut state = State::new(fence);
        state.most_bytes = 100_000;
        let to = |key: u64, token: u64, length: usize| WriteRequest {
            key: key.to_string(),
            body: Bytes::from(vec![b'x'; length]),
            ..write(Some(token), 0, "")
        };
        let mut rows = Vec::new();
        let full = (0..1000).find(|&key| match state.decide(to(key, 2, 1000), 0) {
            Ok(decision) => {
                rows.push(decision.row);
                false
            }
            Err(undecided) => {
                assert_eq!(undecided, Undecided::Full);
                true
            }
        });
        let full = full.expect("there is an end");
        assert!((50..100).contains(&full), "{full}");
        assert!(state.get(&full.to_string()).is_none());
        assert!(state.decide(to(0, 3, 5000), 0).is_err(), "it would grow");
        assert_eq!(state.get("0").unwrap().max_fence, Some(FencingToken(2)));

        // Writes that do not grow are still accepted, in the order of the log.
        let shorter = state.decide(to(0, 3, 400), 0).unwrap().row;
        assert_eq!(shorter.seq, full + 1);
        let stale = state.decide(to(0, 1, 400), 0).unwrap().row;
        assert_eq!(stale.outcome == RowOutcome::Rejected, fence == Fence::On);
        let mut replayed = State::new(fence);
        rows.into_iter()
            .chain([shorter, stale])
            .for_each(|row| replayed.replay(row));
        assert_eq!(replayed.held_bytes, state.held_bytes);
    }
}

#[test]
fn replaying_the_rows_gives_the_same_state() {
    let mut first = State::new(Fence::On);
    let mut second = State::new(Fence::On);
    for (token, body) in [(2, "a"), (1, "late"), (2, "a"), (4, "b")] {
        let decision = first.decide(write(Some(token), 0, body), 0).unwrap();
        second.replay(decision.row);
    }
    assert_eq!(first.get("k"), second.get("k"));
    let next = [(4, 0, "b"), (4, 0, "c"), (5, 0, "d")];
    assert_eq!(outcomes(&mut first, &next), outcomes(&mut second, &next));
    assert_eq!(first.position, second.position);
}

#[test]
fn a_closed_fence_over_an_open_ones_log_holds_the_highest_token() {
    let mut open = State::new(Fence::Off);
    let mut closed = State::new(Fence::On);
    for (token, body) in [(7, "a"), (3, "b")] {
        closed.replay(
            open.decide(write(Some(token), 0, body), 0)
                .expect("the open fence takes all")
                .row,
        );
    }
    assert_eq!(
        outcomes(&mut closed, &[(4, 0, "c"), (8, 0, "d")]),
        [RowOutcome::Rejected, RowOutcome::Accepted]
    );
}
