use super::failure::Failure;
use super::members::Members;
use super::names::{line_prefix, place_key};
use super::presence::Presence;
use super::seats::Seat;
use crate::backend::IfHeld;
use crate::{FencingToken, ReleaseOutcome};
use etcd_client::{
    Compare, CompareOp, GetOptions, GetResponse, KeyValue, PutOptions, SortOrder, SortTarget, Txn,
    TxnOp, TxnOpResponse, TxnResponse,
};
use std::sync::Arc;

/// The place of one attempt in the line for one lock, as requests to etcd.
///
/// A place is a separate key for each attempt, so two attempts of one process exclude
/// each other like those of two processes. It is written once and then deleted: its
/// create revision orders the line and is the fencing token, because the cluster's
/// revisions only grow. Its name may have belonged to another attempt before and may
/// belong to another one later, so its value, the owner, identifies it.
#[derive(Clone)]
pub(super) struct Line {
    prefix: String,
    place: String,
    owner: String,
    seat: Arc<Seat>,
}

/// A place that was taken, in some state of the store.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    /// The create revision of its key.
    pub(super) revision: i64,
    pub(super) before: Before,
    /// The revision of the store's state that this describes.
    pub(super) as_of: i64,
}

/// The attempt just before a place in the line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Before {
    /// The place is the first one, so its owner holds the lock.
    Nobody,
    /// The place was taken at the end of a line of this length; nobody has asked yet
    /// which place is before it.
    Somebody {
        length: usize,
    },
    Key(Predecessor),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Predecessor {
    pub(super) key: Vec<u8>,
    /// The create revision: the same name may be used again, behind us.
    pub(super) revision: i64,
}

impl Place {
    pub(super) fn token(&self) -> Result<FencingToken, Failure> {
        match u64::try_from(self.revision) {
            Ok(revision @ 1..) => Ok(FencingToken(revision)),
            _ => Err(Failure::Garbage(format!("revision {}", self.revision))),
        }
    }
}

/// The answer to a request for a place.
#[derive(Debug, PartialEq)]
pub(super) enum Entered {
    At(Place),
    /// The lock is held, and the caller did not want a place behind the holder.
    Busy,
    /// The mark was moved in the meantime; nothing happened.
    FencedOff,
    /// The place has been there since this revision, from a request whose answer was
    /// lost.
    Already(i64),
}

impl Line {
    pub(super) fn new(key: &str, owner: &str, seat: Seat) -> Line {
        Line {
            prefix: line_prefix(key),
            place: place_key(key, &seat.name()),
            owner: owner.to_owned(),
            seat: Arc::new(seat),
        }
    }

    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns the key of the place.
    pub(super) fn place(&self) -> &[u8] {
        self.place.as_bytes()
    }

    /// Keeps other attempts from using the name of this place, because it is unknown
    /// whether the place is free.
    pub(super) fn retire(&self) {
        self.seat.retire();
    }

    /// Builds the request for a place at the end of the line and for the line's length.
    ///
    /// It does not ask for the place before it: every member carries out the whole
    /// transaction, and ordering a line by age means reading all of it. A waiter asks one
    /// member for it, while it waits anyway.
    pub(super) fn join(&self, presence: &Presence) -> Txn {
        let is_new = Compare::create_revision(self.place.as_str(), CompareOp::Equal, 0);
        self.enter(presence, is_new)
    }

    /// Builds the request for a place in an empty line.
    pub(super) fn take_if_free(&self, presence: &Presence) -> Txn {
        let is_free = Compare::create_revision(self.prefix.as_str(), CompareOp::Equal, 0);
        self.enter(presence, is_free.with_prefix())
    }

    fn enter(&self, presence: &Presence, condition: Compare) -> Txn {
        let attached = PutOptions::new().with_lease(presence.session.lease());
        let put = TxnOp::put(self.place.as_str(), self.owner.as_str(), Some(attached));
        Txn::new()
            .when([condition, presence.not_fenced_off()])
            .and_then([put, read_length(&self.prefix)])
            .or_else([
                self.read_own(),
                read_length(&self.prefix),
                presence.read_mark(),
            ])
    }

    fn read_own(&self) -> TxnOp {
        TxnOp::get(self.place.as_str(), None)
    }

    fn is_own(&self, place: &KeyValue) -> bool {
        place.value() == self.owner.as_bytes()
    }

    pub(super) fn read_entered(
        &self,
        presence: &Presence,
        answer: &TxnResponse,
        if_held: IfHeld,
    ) -> Result<Entered, Failure> {
        let operations = operations(answer)?;
        let (own, length, mark) = match operations.as_slice() {
            // The transaction created the place, so its revision is that of the place.
            [TxnOpResponse::Put(_), TxnOpResponse::Get(length)] => {
                let revision = answer.header().map_or(0, |header| header.revision());
                let before = match usize::try_from(length.count()) {
                    Ok(1) => Before::Nobody,
                    Ok(length @ 2..) => Before::Somebody { length },
                    _ => return Err(unusable(answer)),
                };
                return Ok(Entered::At(Place {
                    revision,
                    before,
                    as_of: revision,
                }));
            }
            [
                TxnOpResponse::Get(own),
                TxnOpResponse::Get(length),
                TxnOpResponse::Get(mark),
            ] => (own.kvs().first(), length, mark),
            _ => return Err(unusable(answer)),
        };
        if let Some(own) = own {
            if self.is_own(own) {
                return Ok(Entered::Already(own.create_revision()));
            }
            self.retire();
            return Err(Failure::NotDone("another attempt's place".to_owned()));
        }
        if if_held == IfHeld::ComeBack && length.count() > 0 {
            return Ok(Entered::Busy);
        }
        let mark = mark.kvs().first().ok_or(Failure::LeaseGone)?;
        presence.mark_seen(mark.mod_revision());
        Ok(Entered::FencedOff)
    }

    /// Finds the place just before the one that was taken at `revision`, if the latter is
    /// still there in the state that is read.
    ///
    /// `at_least` is the oldest state that will do; without it, a majority has to confirm
    /// that the state is the present one. With it, a member may answer from its own
    /// memory, which can lag behind. That is safe: every place before ours was created
    /// before ours, so a state that contains our place contains all of them, and an old
    /// state can only show some that have been left since. That costs a wait, never a
    /// second holder.
    pub(super) async fn look(
        &self,
        members: &Members,
        revision: i64,
        at_least: Option<i64>,
    ) -> Result<Option<Place>, Failure> {
        if let Some(at_least) = at_least {
            let found = self.look_once(members, revision, true).await?;
            if found.as_ref().is_some_and(|place| place.as_of >= at_least) {
                return Ok(found);
            }
        }
        self.look_once(members, revision, false).await
    }

    async fn look_once(
        &self,
        members: &Members,
        revision: i64,
        from_memory: bool,
    ) -> Result<Option<Place>, Failure> {
        let mut options = latest(2).with_max_create_revision(revision);
        if from_memory {
            options = options.with_serializable();
        }
        let answer = members.ask(|wire| {
            let (mut kv, prefix) = (wire.kv.clone(), self.prefix.clone());
            let options = options.clone();
            async move { kv.get(prefix, Some(options)).await }
        });
        let line = answer.await?;
        Ok(self.read_place(&line, revision))
    }

    /// Reads the place from the last two keys of a line that ends with ours.
    fn read_place(&self, line: &GetResponse, revision: i64) -> Option<Place> {
        let as_of = line.header().map_or(0, |header| header.revision());
        let (own, before) = match line.kvs() {
            [own] => (own, None),
            [own, before] => (own, Some(before)),
            _ => return None,
        };
        let is_own = own.key() == self.place.as_bytes() && own.create_revision() == revision;
        is_own.then(|| Place {
            revision,
            before: before.map_or(Before::Nobody, |before| {
                Before::Key(Predecessor {
                    key: before.key().to_vec(),
                    revision: before.create_revision(),
                })
            }),
            as_of,
        })
    }

    /// Returns whether the place before ours is still there, in a state that is not older
    /// than `at_least`. This is cheaper than a look at the line.
    pub(super) async fn is_there(
        &self,
        members: &Members,
        before: &Predecessor,
        at_least: i64,
    ) -> Result<bool, Failure> {
        let options = GetOptions::new().with_keys_only().with_serializable();
        let answer = members.ask(|wire| {
            let (mut kv, key) = (wire.kv.clone(), before.key.clone());
            let options = options.clone();
            async move { kv.get(key, Some(options)).await }
        });
        let answer = answer.await?;
        let as_of = answer.header().map_or(0, |header| header.revision());
        let is_same = |key: &KeyValue| key.create_revision() == before.revision;
        Ok(as_of >= at_least && answer.kvs().first().is_some_and(is_same))
    }

    /// Deletes the place if it is there, and returns otherwise whether somebody holds the
    /// lock.
    pub(super) async fn leave(&self, members: &Members) -> Result<ReleaseOutcome, Failure> {
        let mut earlier = None;
        for _ in 0..members.count() {
            let _turn = members.turn().await;
            let answer = members.ask_once(|wire| {
                let (mut kv, txn) = (wire.kv.clone(), self.leaving());
                async move { kv.txn(txn).await }
            });
            match answer.await {
                Ok(answer) => {
                    members.heard(answer.header());
                    if answer.succeeded() {
                        return Ok(ReleaseOutcome::Released);
                    }
                    // One of our own earlier requests may have deleted it.
                    let unanswered = earlier.filter(Failure::may_have_happened);
                    return unanswered.map_or_else(|| after_all(&answer), Err);
                }
                Err(failure) if !failure.is_of_the_member() => return Err(failure),
                Err(failure) if failure.may_have_happened() => earlier = Some(failure),
                Err(failure) => earlier = earlier.or(Some(failure)),
            }
        }
        Err(earlier.expect("there is at least one member"))
    }

    fn leaving(&self) -> Txn {
        let is_ours = Compare::value(self.place.as_str(), CompareOp::Equal, self.owner.as_str());
        Txn::new()
            .when([is_ours])
            .and_then([TxnOp::delete(self.place.as_str(), None)])
            .or_else([read_length(&self.prefix)])
    }

    /// Returns the key of the place and, in case it is gone, what became of the lock.
    pub(super) async fn state(
        &self,
        members: &Members,
    ) -> Result<(Option<KeyValue>, ReleaseOutcome), Failure> {
        let (own, instead) = state(members, &self.prefix, self.place()).await?;
        Ok((own.filter(|own| self.is_own(own)), instead))
    }
}

/// Returns the key of a place in the line with this prefix and, in case it is gone, what
/// became of the lock. A majority confirms that this is the present state.
pub(super) async fn state(
    members: &Members,
    prefix: &str,
    place: &[u8],
) -> Result<(Option<KeyValue>, ReleaseOutcome), Failure> {
    let answer = members.ask(|wire| {
        let mut kv = wire.kv.clone();
        let reads = Txn::new().and_then([read_length(prefix), TxnOp::get(place, None)]);
        async move { kv.txn(reads).await }
    });
    let answer = answer.await?;
    let own = match operations(&answer)?.as_slice() {
        [_line, TxnOpResponse::Get(own)] => own.kvs().first().cloned(),
        _ => return Err(unusable(&answer)),
    };
    Ok((own, after_all(&answer)?))
}

fn read_length(prefix: &str) -> TxnOp {
    let options = GetOptions::new().with_prefix().with_count_only();
    TxnOp::get(prefix, Some(options))
}

/// Returns what became of a lock in whose line we have no place any more.
pub(super) async fn after(members: &Members, key: &str) -> Result<ReleaseOutcome, Failure> {
    let answer = members.ask(|wire| {
        let (mut kv, prefix) = (wire.kv.clone(), line_prefix(key));
        let options = GetOptions::new().with_prefix().with_count_only();
        async move { kv.get(prefix, Some(options)).await }
    });
    Ok(outcome(&answer.await?))
}

/// Returns the same from the answer to a transaction.
fn after_all(answer: &TxnResponse) -> Result<ReleaseOutcome, Failure> {
    match operations(answer)?.first() {
        Some(TxnOpResponse::Get(length)) => Ok(outcome(length)),
        _ => Err(unusable(answer)),
    }
}

fn outcome(length: &GetResponse) -> ReleaseOutcome {
    match length.count() {
        0 => ReleaseOutcome::Expired,
        _ => ReleaseOutcome::Superseded,
    }
}

/// Reads the operations of an answer. The client library panics at an answer that is empty
/// where none may be, and a server must not be able to cause that.
fn operations(answer: &TxnResponse) -> Result<Vec<TxnOpResponse>, Failure> {
    std::panic::catch_unwind(|| answer.op_responses()).map_err(|_| unusable(answer))
}

/// Selects the youngest places of a line, the last one first.
fn latest(limit: i64) -> GetOptions {
    GetOptions::new()
        .with_prefix()
        .with_sort(SortTarget::Create, SortOrder::Descend)
        .with_limit(limit)
        .with_keys_only()
}

fn unusable(answer: &TxnResponse) -> Failure {
    Failure::Garbage(format!("to a transaction: {answer:?}"))
}
