use super::entry::IfHeld;
use super::failure::Failure;
use super::members::Members;
use super::names::{line_prefix, place_key};
use super::presence::Presence;
use super::seats::Seat;
use crate::model::{FencingToken, ReleaseOutcome};
use etcd_client::{
    Compare, CompareOp, GetOptions, GetResponse, KeyValue, PutOptions, SortOrder, SortTarget, Txn,
    TxnOp, TxnOpResponse, TxnResponse,
};
use std::sync::Arc;

/// The place of one attempt in the line for one lock, as requests to etcd.
///
/// A place is a key of its own, so two attempts of one process exclude each
/// other like those of two. It is written once and then deleted: its create
/// revision orders the line and is the fencing token, because the cluster's
/// revisions only grow. Its name may have been another attempt's before and be
/// another's later, so it is known by its value, the owner.
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
    /// The revision of the state that this tells of.
    pub(super) as_of: i64,
}

/// Who stands just before a place.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Before {
    /// So the lock is held by who stands here.
    Nobody,
    /// The line was so long when the place was taken at its end; nobody has
    /// looked yet who it is.
    Somebody {
        length: usize,
    },
    Key(Predecessor),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Predecessor {
    pub(super) key: Vec<u8>,
    /// When it was created: the same name may be taken again, behind us.
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
    /// The lock is held, and whoever asked wanted no place behind the holder.
    Busy,
    /// The mark was moved since; nothing happened.
    FencedOff,
    /// It is there already, from a request whose answer was lost, since this
    /// revision.
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

    /// The key of the place.
    pub(super) fn place(&self) -> &[u8] {
        self.place.as_bytes()
    }

    /// It is not known whether the place is free: no other attempt may have it.
    pub(super) fn retire(&self) {
        self.seat.retire();
    }

    /// A place at the end of the line, and how long the line is with it.
    ///
    /// Who stands just before it is not asked here: every member carries out
    /// the whole transaction, and to order a line by age means to read all of
    /// it. Who waits asks one member, while it waits anyway.
    pub(super) fn join(&self, presence: &Presence) -> Txn {
        let is_new = Compare::create_revision(self.place.as_str(), CompareOp::Equal, 0);
        self.enter(presence, is_new)
    }

    /// A place in a line that is empty.
    pub(super) fn take_if_free(&self, presence: &Presence) -> Txn {
        let is_free = Compare::create_revision(self.prefix.as_str(), CompareOp::Equal, 0);
        self.enter(presence, is_free.with_prefix())
    }

    fn enter(&self, presence: &Presence, condition: Compare) -> Txn {
        let attached = PutOptions::new().with_lease(presence.session.lease());
        let put = TxnOp::put(self.place.as_str(), self.owner.as_str(), Some(attached));
        Txn::new()
            .when([condition, presence.not_fenced_off()])
            .and_then([put, self.read_own(), self.read_length()])
            .or_else([self.read_own(), self.read_length(), presence.read_mark()])
    }

    fn read_own(&self) -> TxnOp {
        TxnOp::get(self.place.as_str(), None)
    }

    fn is_own(&self, place: &KeyValue) -> bool {
        place.value() == self.owner.as_bytes()
    }

    fn read_length(&self) -> TxnOp {
        let options = GetOptions::new().with_prefix().with_count_only();
        TxnOp::get(self.prefix.as_str(), Some(options))
    }

    pub(super) fn read_entered(
        &self,
        presence: &Presence,
        answer: &TxnResponse,
        if_held: IfHeld,
    ) -> Result<Entered, Failure> {
        let operations = operations(answer)?;
        let (own, length, mark) = match operations.as_slice() {
            [
                TxnOpResponse::Put(_),
                TxnOpResponse::Get(own),
                TxnOpResponse::Get(length),
            ] => (own, length, None),
            [
                TxnOpResponse::Get(own),
                TxnOpResponse::Get(length),
                TxnOpResponse::Get(mark),
            ] => (own, length, Some(mark)),
            _ => return Err(unusable(answer)),
        };
        let own = own.kvs().first();
        if own.is_some_and(|own| !self.is_own(own)) {
            self.retire();
            return Err(Failure::NotDone("another attempt's place".to_owned()));
        }
        let own = own.map(KeyValue::create_revision);
        let Some(mark) = mark else {
            let revision = own.ok_or_else(|| unusable(answer))?;
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
        };
        if let Some(revision) = own {
            return Ok(Entered::Already(revision));
        }
        if if_held == IfHeld::ComeBack && length.count() > 0 {
            return Ok(Entered::Busy);
        }
        let mark = mark.kvs().first().ok_or(Failure::LeaseGone)?;
        presence.mark_seen(mark.mod_revision());
        Ok(Entered::FencedOff)
    }

    /// Who stands before the place that was taken at this revision, if the
    /// place is still there in the state that is read.
    ///
    /// `at_least` is the oldest state that will do; without one, a majority has
    /// to confirm that it is the present one. Otherwise a member may answer from
    /// its own memory, which can lag behind: everything that stands before us
    /// was created before us, so no state that has our place in it misses any
    /// of them, and an old one can only show some who have left since. That
    /// costs a wait, never a second holder.
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

    /// From the last two of a line that ends with us.
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

    /// Whether one who stood before us still does, in a state that is not older
    /// than this. Cheaper than a look at the line.
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

    /// Deletes the place if it is there, and tells otherwise who holds the lock.
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
                    // It may have been an earlier one of our own requests.
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
            .or_else([self.read_length()])
    }

    /// The place's key, and what became of the lock if it is gone: the state at
    /// this moment, confirmed by a majority.
    pub(super) async fn state(
        &self,
        members: &Members,
    ) -> Result<(Option<KeyValue>, ReleaseOutcome), Failure> {
        let answer = members.ask(|wire| {
            let mut kv = wire.kv.clone();
            let reads = Txn::new().and_then([self.read_length(), self.read_own()]);
            async move { kv.txn(reads).await }
        });
        let answer = answer.await?;
        let own = match operations(&answer)?.as_slice() {
            [_line, TxnOpResponse::Get(own)] => {
                let own = own.kvs().first();
                own.filter(|own| self.is_own(own)).cloned()
            }
            _ => return Err(unusable(&answer)),
        };
        Ok((own, after_all(&answer)?))
    }
}

/// What became of a lock in whose line one has no place any more.
pub(super) async fn after(members: &Members, key: &str) -> Result<ReleaseOutcome, Failure> {
    let answer = members.ask(|wire| {
        let (mut kv, prefix) = (wire.kv.clone(), line_prefix(key));
        let options = GetOptions::new().with_prefix().with_count_only();
        async move { kv.get(prefix, Some(options)).await }
    });
    Ok(outcome(&answer.await?))
}

/// The same as part of a transaction.
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

/// The client library panics at an answer that is empty where none can be, and
/// what a server says must not do that.
fn operations(answer: &TxnResponse) -> Result<Vec<TxnOpResponse>, Failure> {
    std::panic::catch_unwind(|| answer.op_responses()).map_err(|_| unusable(answer))
}

/// The youngest places of a line, the last one first.
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
