use super::failure::Failure;
use super::line::{self, Before, PAUSE, Place};
use super::names;
use super::servers::Servers;
use super::session::Session;
use crate::follow_through::FollowThrough;
use crate::{Ask, ReleaseOutcome, RenewOutcome};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

/// This process's part in lines: its sessions, and the places that it has.
pub(super) struct Standing {
    pub(super) servers: Arc<Servers>,
    /// Keyed by TTL.
    sessions: tokio::sync::Mutex<BTreeMap<Duration, Arc<Session>>>,
    /// Keyed by owner.
    places: Mutex<HashMap<String, Arc<Place>>>,
}

impl Standing {
    pub(super) fn new(servers: Servers) -> Arc<Standing> {
        Arc::new(Standing {
            servers: Arc::new(servers),
            sessions: tokio::sync::Mutex::default(),
            places: Mutex::default(),
        })
    }

    /// Takes a place, and follows the request to its end even if the caller is gone; a
    /// place taken then is given back.
    pub(super) async fn enter(
        self: &Arc<Self>,
        ask: Ask<'_>,
    ) -> Result<(Arc<Place>, Before), Failure> {
        let session = self.session(ask.ttl).await?;
        let (tell, told) = oneshot::channel();
        let (standing, key, owner) = (self.clone(), ask.key.to_owned(), ask.owner.to_owned());
        let entering = FollowThrough::new(self.servers.env(), async move {
            let taken = Place::take(&standing.servers, &session, &key, &owner).await;
            let taken = taken.map(|(place, before)| {
                let place = Arc::new(place);
                standing.places.lock().insert(owner.clone(), place.clone());
                (place, before)
            });
            if let Err(Failure::Garbage(_) | Failure::Refused(_)) = &taken {
                // Whatever the ensemble has made of it goes with the session.
                session.close();
            }
            if tell.send(taken).is_err() {
                let _or_with_its_session = standing.leave(&owner).await;
            }
        });
        let (told, ()) = tokio::join!(told, entering);
        told.expect("told before the end")
    }

    /// Leaves a line, and returns whether the lock was ours until then; `None` if this
    /// owner has no place.
    pub(super) async fn leave(
        self: &Arc<Self>,
        owner: &str,
    ) -> Result<Option<ReleaseOutcome>, Failure> {
        let place = self.places.lock().get(owner).cloned();
        let Some(place) = place else {
            return Ok(None);
        };
        let (standing, owner) = (self.clone(), owner.to_owned());
        let leaving = FollowThrough::new(self.servers.env(), async move {
            let left = standing.delete(&place).await;
            standing.places.lock().remove(&owner);
            left
        });
        match timeout(self.servers.limit(), leaving).await {
            Ok(left) => left.map(Some),
            Err(_) => Err(self.servers.silent()),
        }
    }

    /// Deletes a place until the ensemble confirms it, or must have ended its session.
    ///
    /// The name of a place is never used again, so another session may delete it as well.
    async fn delete(self: &Arc<Self>, place: &Place) -> Result<ReleaseOutcome, Failure> {
        let give_up_at = Instant::now() + 2 * place.session.ttl();
        let mut in_doubt = false;
        loop {
            let deleted = async {
                let session = self.session_for(place).await?;
                let client = session.client().await?;
                self.servers.requests().inc();
                session.learned(client.delete(&place.path(), None).await)
            };
            match deleted.await {
                Ok(()) => return Ok(ReleaseOutcome::Released),
                // Nobody else deletes it while its session is there.
                Err(Failure::NoNode) if in_doubt && !place.session.is_over() => {
                    return Ok(ReleaseOutcome::Released);
                }
                Err(Failure::NoNode) if in_doubt => return Ok(ReleaseOutcome::Unknown),
                Err(Failure::NoNode) => return self.after(&place.key, place.session.ttl()).await,
                Err(failure) if Instant::now() >= give_up_at => return Err(failure),
                Err(Failure::Unanswered(_)) => in_doubt = true,
                Err(Failure::Unreachable(_) | Failure::SessionOver) => {}
                Err(failure) => {
                    // The ensemble does not let us delete it. It goes with its session.
                    place.session.close();
                    return Err(failure);
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Returns who holds a lock after we do not any more.
    pub(super) async fn after(
        self: &Arc<Self>,
        key: &str,
        ttl: Duration,
    ) -> Result<ReleaseOutcome, Failure> {
        let session = self.session(ttl).await?;
        // The server that is asked may not know yet what others do already.
        session.confirm().await?;
        match line::list(&self.servers, &session, &names::line(key)).await {
            Err(Failure::NoNode) => Ok(ReleaseOutcome::Expired),
            Ok(places) if places.is_empty() => Ok(ReleaseOutcome::Expired),
            Ok(_) => Ok(ReleaseOutcome::Superseded),
            Err(failure) => Err(failure),
        }
    }

    pub(super) async fn renew(self: &Arc<Self>, ask: Ask<'_>) -> Result<RenewOutcome, Failure> {
        let place = self.places.lock().get(ask.owner).cloned();
        if let Some(place) = place {
            if place.session.is_over() {
                return Ok(RenewOutcome::Expired);
            }
            place.session.confirm().await?;
            if place.is_there(&self.servers).await? {
                let until = place.session.deadline();
                return Ok(RenewOutcome::Renewed { until });
            }
        }
        Ok(match self.after(ask.key, ask.ttl).await? {
            ReleaseOutcome::Superseded => RenewOutcome::Superseded,
            _ => RenewOutcome::Expired,
        })
    }

    /// Closes every session, and with it all places.
    pub(super) async fn close(&self) {
        for session in std::mem::take(&mut *self.sessions.lock().await).values() {
            session.close();
        }
    }

    /// Returns the session that made a place, or another one if that is over.
    async fn session_for(&self, place: &Place) -> Result<Arc<Session>, Failure> {
        match place.session.is_over() {
            false => Ok(place.session.clone()),
            true => self.session(place.session.ttl()).await,
        }
    }

    /// Returns the session for this TTL, and opens a new one if none is alive.
    async fn session(&self, ttl: Duration) -> Result<Arc<Session>, Failure> {
        let mut sessions = self.sessions.lock().await;
        if let Some(session) = sessions.get(&ttl).filter(|session| !session.is_over()) {
            return Ok(session.clone());
        }
        // The old one is closed, so that its places do not block others until it expires.
        if let Some(old) = sessions.remove(&ttl) {
            old.close();
        }
        let session = Arc::new(Session::open(self.servers.clone(), ttl).await?);
        sessions.insert(ttl, session.clone());
        Ok(session)
    }
}
