use super::arrivals::Arrivals;
use super::debts::Debts;
use super::entry::{self, NotEntered, place_gone};
use super::failure::Failure;
use super::line::{self, Before, Line, Predecessor};
use super::members::Members;
use super::places::{End, Places};
use super::presence::Presence;
use super::seats::Seats;
use super::session::whole_seconds;
use super::watches::{Stage, Watches};
use crate::ReleaseOutcome;
use crate::backend::IfHeld;
use crate::follow_through::FollowThrough;
use crate::{Ask, LastWord, LockProblem, RenewOutcome};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Mutex, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

/// This process's part in lines: the sessions, watches and debts that its attempts share.
pub(super) struct Standing {
    members: Arc<Members>,
    /// Keyed by the requested TTL, in seconds.
    presences: Mutex<BTreeMap<i64, Arc<Presence>>>,
    watches: OnceLock<Watches>,
    arrivals: Arrivals,
    seats: Arc<Seats>,
    places: Places,
    debts: Debts,
}

/// A place in a line.
pub(super) struct Place {
    pub(super) presence: Arc<Presence>,
    line: Line,
    pub(super) seen: line::Place,
}

/// The knowledge about the place that was before ours.
enum Gone {
    AndWasFirst,
    /// A look is needed, at this state or a younger one; if none is known, at the present
    /// one.
    Perhaps {
        look_at: Option<i64>,
    },
}

/// The pause between two looks while no member answers.
const PAUSE: Duration = Duration::from_millis(50);

impl Standing {
    pub(super) fn new(members: Arc<Members>) -> Arc<Standing> {
        let seats = Seats::new(members.env());
        Arc::new(Standing {
            members,
            presences: Mutex::default(),
            watches: OnceLock::new(),
            arrivals: Arrivals::default(),
            seats,
            places: Places::default(),
            debts: Debts::default(),
        })
    }

    pub(super) fn members(&self) -> &Members {
        &self.members
    }

    /// Takes a place. Returns `None` if the lock is held and the caller does not want to
    /// wait.
    pub(super) async fn enter(
        self: &Arc<Self>,
        ask: Ask<'_>,
        if_held: IfHeld,
    ) -> Result<Option<Place>, LockProblem> {
        let mut is_first_try = true;
        loop {
            let presence = self.presence(ask.ttl).await?;
            let _turn = match if_held {
                IfHeld::StandInLine => Some(self.arrivals.turn(ask.key).await),
                IfHeld::ComeBack => None,
            };
            let line = Line::new(ask.key, ask.owner, self.seats.take());
            let entered = self.enter_to_the_end(&presence, &line, if_held).await;
            match entered {
                // The session ended unnoticed: a new one is not affected by that.
                Err(Failure::LeaseGone) if is_first_try => is_first_try = false,
                Err(failure) => return Err(failure.into()),
                Ok(seen) => {
                    return Ok(seen.map(|seen| Place {
                        presence,
                        line,
                        seen,
                    }));
                }
            }
        }
    }

    /// Enters, and follows the request to its end even if the caller is gone; a place
    /// taken then is given back. Requests overtake each other, so nobody can delete a key
    /// whose request may still be under way.
    async fn enter_to_the_end(
        self: &Arc<Self>,
        presence: &Arc<Presence>,
        line: &Line,
        if_held: IfHeld,
    ) -> Result<Option<line::Place>, Failure> {
        let (tell, told) = oneshot::channel();
        let (standing, presence, line) = (self.clone(), presence.clone(), line.clone());
        let entering = FollowThrough::new(self.members.env(), async move {
            let entered = entry::enter(&standing.members, &presence, &line, if_held).await;
            match &entered {
                Ok(Some(place)) => standing.places.taken(&line, place.revision),
                Err(NotEntered { in_doubt: true, .. }) => {
                    let members = standing.members.clone();
                    standing.debts.owe(members, line.clone(), vec![presence]);
                }
                _ => {}
            }
            if let Err(Ok(Some(_place))) = tell.send(entered) {
                let _or_owed = standing.leave(line).await;
            }
        });
        let (told, ()) = tokio::join!(told, entering);
        let entered = told.expect("told before the end");
        entered.map_err(|not_entered| not_entered.failure)
    }

    /// Waits until no place is before this one, and returns the time at
    /// which it learned that.
    pub(super) async fn until_first(
        &self,
        place: &mut Place,
        last: &LastWord,
    ) -> Result<Instant, Failure> {
        let mut looked_at = Instant::now();
        loop {
            let gone = match &place.seen.before {
                Before::Nobody => break,
                Before::Somebody { .. } => Gone::Perhaps {
                    look_at: Some(place.seen.as_of),
                },
                Before::Key(before) => self.until_gone(place, before).await?,
            };
            looked_at = Instant::now();
            match gone {
                Gone::AndWasFirst => break,
                Gone::Perhaps { look_at } => {
                    place.seen = self.look_patiently(place, look_at, last).await?;
                    last.is_busy();
                }
            }
        }
        self.is_first(place);
        Ok(looked_at)
    }

    /// Notes that the owner of this place holds the lock.
    pub(super) fn is_first(&self, place: &Place) {
        self.places.is_first(place.line.owner());
    }

    /// Waits until the place before is gone, or may be.
    async fn until_gone(&self, place: &Place, before: &Predecessor) -> Result<Gone, Failure> {
        let gone = async {
            match self.places.end_of(before) {
                Some(end) => self.until_left(end, place.presence.session.ttl()).await,
                None => self.until_deleted(place, before).await,
            }
        };
        tokio::select! {
            // A place goes with its session, whoever was before it.
            biased;
            () = place.presence.session.over() => Err(Failure::LeaseGone),
            gone = gone => Ok(gone),
        }
    }

    /// Waits for the end of one of our own places. Every end is reported here, except
    /// when a stranger deletes the key. Looking once in a TTL is enough for that.
    async fn until_left(&self, mut end: watch::Receiver<End>, ttl: Duration) -> Gone {
        match timeout(ttl, end.changed()).await {
            Ok(Ok(())) => Gone::AndWasFirst,
            Ok(Err(_)) | Err(_) => Gone::Perhaps { look_at: None },
        }
    }

    /// Waits for the end of a place of another process.
    async fn until_deleted(&self, place: &Place, before: &Predecessor) -> Gone {
        let mut watching = self.watches().watch(before.key.clone());
        loop {
            let look_at = match watching.next().await {
                Stage::Asked => continue,
                Stage::Standing { since } => {
                    let is_news = since > place.seen.as_of;
                    let look = || place.line.is_there(&self.members, before, since);
                    if !is_news || look().await.unwrap_or(false) {
                        continue;
                    }
                    Some(since)
                }
                Stage::Gone { at } => Some(at),
                Stage::Broken => None,
            };
            return Gone::Perhaps { look_at };
        }
    }

    /// Looks until a member answers or the session is over: giving up earlier would lose
    /// the place.
    async fn look_patiently(
        &self,
        place: &Place,
        at_least: Option<i64>,
        last: &LastWord,
    ) -> Result<line::Place, Failure> {
        let Place {
            line,
            seen,
            presence,
        } = place;
        loop {
            match line.look(&self.members, seen.revision, at_least).await {
                Ok(found) => return found.ok_or_else(place_gone),
                Err(failure) if !failure.is_of_the_member() => return Err(failure),
                Err(_) if presence.session.is_over() => return Err(Failure::LeaseGone),
                Err(failure) => {
                    last.is_problem(failure.into());
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Releases a lock, if this owner has a place in its line.
    pub(super) async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, Failure> {
        match self.places.line_of(owner) {
            Some(line) => self.leave(line).await,
            None => line::after(&self.members, key).await,
        }
    }

    /// Undoes what this owner began. A request for a place that is under way finds out by
    /// itself that nobody waits for it.
    pub(super) async fn abandon(&self, owner: &str) -> Result<(), Failure> {
        match self.places.line_of(owner) {
            Some(line) => self.leave(line).await.map(|_outcome| ()),
            None => Ok(()),
        }
    }

    /// Leaves a line: now, or later if nobody answers now.
    async fn leave(&self, line: Line) -> Result<ReleaseOutcome, Failure> {
        let left = line.leave(&self.members).await;
        // Not earlier: a caller that drops this future before will try again.
        self.places.left(line.owner(), left.as_ref().ok().copied());
        if left.is_err() {
            let presences = self.presences.lock().await.values().cloned().collect();
            self.debts.owe(self.members.clone(), line, presences);
        }
        left
    }

    pub(super) async fn renew(&self, key: &str, owner: &str) -> Result<RenewOutcome, Failure> {
        let (own, instead) = match self.places.line_of(owner) {
            Some(line) => line.state(&self.members).await?,
            None => (None, line::after(&self.members, key).await?),
        };
        let Some(own) = own else {
            return Ok(lost(instead));
        };
        let presences = self.presences.lock().await;
        let presence = presences
            .values()
            .find(|one| one.session.lease() == own.lease());
        let Some(presence) = presence.cloned() else {
            return Ok(RenewOutcome::Expired);
        };
        drop(presences);
        presence.session.renew().await
    }

    /// Closes every session, and returns the failure of one that may still be there.
    pub(super) async fn close(&self) -> Result<(), Failure> {
        let presences = std::mem::take(&mut *self.presences.lock().await);
        let closing = presences.values().map(|presence| presence.session.close());
        let closed = join_all(closing).await.into_iter();
        let mut failed = closed.filter_map(Result::err);
        failed
            .find(|failure| *failure != Failure::LeaseGone)
            .map_or(Ok(()), Err)
    }

    /// Returns the session for this TTL, and opens a new one if none is alive.
    async fn presence(&self, ttl: Duration) -> Result<Arc<Presence>, Failure> {
        let ttl_s = whole_seconds(ttl);
        let mut presences = self.presences.lock().await;
        if let Some(presence) = presences.get(&ttl_s) {
            if !presence.session.is_over() {
                return Ok(presence.clone());
            }
            let old = presence.clone();
            presences.remove(&ttl_s);
            self.members.env().in_background(async move {
                // Its keys should not block others until its lease expires.
                let _best_effort = old.session.close().await;
            });
        }
        let presence = Arc::new(Presence::open(self.members.clone(), ttl).await?);
        presences.insert(ttl_s, presence.clone());
        Ok(presence)
    }

    fn watches(&self) -> &Watches {
        self.watches
            .get_or_init(|| Watches::start(self.members.clone()))
    }
}

/// Returns what a renewal finds instead of the place.
pub(super) fn lost(instead: ReleaseOutcome) -> RenewOutcome {
    match instead {
        ReleaseOutcome::Superseded => RenewOutcome::Superseded,
        _ => RenewOutcome::Expired,
    }
}
