use super::failure::Failure;
use super::names::{self, owner_and_number};
use super::servers::Servers;
use super::session::Session;
use crate::LastWord;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, SessionState, Stat};

/// A place in the line for one lock: a node that the ensemble numbered.
pub(super) struct Place {
    pub(super) session: Arc<Session>,
    pub(super) key: String,
    /// The name of the node, below the line.
    name: String,
    number: i32,
    /// The transaction that made it, which is the token.
    pub(super) created: i64,
}

/// Everybody who is before a place.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Before {
    pub(super) length: usize,
    /// The one just before it.
    last: Option<String>,
}

/// The pause before a request is sent again because nobody answered it.
pub(super) const PAUSE: Duration = Duration::from_millis(50);

const OPEN: Acls<'static> = Acls::anyone_all();
const IN_LINE: CreateOptions<'static> = CreateMode::EphemeralSequential.with_acls(OPEN);
/// The ensemble deletes the node of a line that is empty, after a while.
const LINE: CreateOptions<'static> = CreateMode::Container.with_acls(OPEN);

impl Place {
    pub(super) fn path(&self) -> String {
        format!("{}/{}", names::line(&self.key), self.name)
    }

    /// Takes a place in the line; returns also who is before it.
    ///
    /// Runs until it is known whether there is a place: an answer that was lost is made up
    /// for by a look. The future must not be dropped before.
    pub(super) async fn take(
        servers: &Servers,
        session: &Arc<Session>,
        key: &str,
        owner: &str,
    ) -> Result<(Place, Before), Failure> {
        let (line, prefix) = (names::line(key), names::place_prefix(key, owner));
        loop {
            let client = session.client().await?;
            servers.requests().inc_by(2);
            // They are carried out in this order, so the list has the new place. Both are
            // sent here, and their answers come together.
            let created = client.create(&prefix, owner.as_bytes(), &IN_LINE);
            let listed = client.list_children(&line);
            let (created, listed) = (created.await, listed.await);
            let (stat, number) = match session.learned(created) {
                Ok(created) => created,
                Err(Failure::NoNode) => {
                    make_line(servers, session, &client, &line).await?;
                    continue;
                }
                Err(failure) if failure.may_pass() => {
                    drop(client);
                    let found = Place::find(servers, session, key, owner).await?;
                    return found.ok_or(failure);
                }
                Err(failure) => return Err(failure),
            };
            let place = Place {
                session: session.clone(),
                key: key.to_owned(),
                name: format!("{owner}-{number}"),
                number: number.into_i64() as i32,
                created: stat.czxid,
            };
            let Ok(seen) = session.learned(listed) else {
                // The place is there. If it were forgotten, nobody would ever leave it.
                let gone = || Failure::Garbage("somebody deleted our place in the line".to_owned());
                let found = Place::find(servers, session, key, owner).await?;
                return found.ok_or_else(gone);
            };
            let before = place.before(&seen)?;
            return Ok((place, before));
        }
    }

    /// Looks for the place whose creation was not answered, until the session is over.
    async fn find(
        servers: &Servers,
        session: &Arc<Session>,
        key: &str,
        owner: &str,
    ) -> Result<Option<(Place, Before)>, Failure> {
        loop {
            match Place::look(servers, session, key, owner).await {
                Err(failure) if failure.may_pass() => sleep(PAUSE).await,
                Err(Failure::NoNode) => return Ok(None),
                found => return found,
            }
        }
    }

    /// Looks once, after everything that was sent before was carried out or never will be.
    ///
    /// A node of another session is not ours, even under our name: it is deleted with that
    /// session, whoever believes to hold it (CURATOR-604).
    async fn look(
        servers: &Servers,
        session: &Arc<Session>,
        key: &str,
        owner: &str,
    ) -> Result<Option<(Place, Before)>, Failure> {
        session.confirm().await?;
        let line = names::line(key);
        let seen = list(servers, session, &line).await?;
        let own = seen.iter().find_map(|name| {
            let (of, number) = owner_and_number(name)?;
            (of == owner).then_some((name, number))
        });
        let Some((name, number)) = own else {
            return Ok(None);
        };
        let Some(stat) = stat(servers, session, &format!("{line}/{name}")).await? else {
            return Ok(None);
        };
        let place = Place {
            session: session.clone(),
            key: key.to_owned(),
            name: name.clone(),
            number,
            created: stat.czxid,
        };
        let before = place.before(&seen)?;
        Ok(Some((place, before)))
    }

    /// Waits until nobody is before this place, and returns the time from before the look
    /// that showed it.
    pub(super) async fn until_first(
        &self,
        servers: &Servers,
        mut before: Before,
        last: &LastWord,
    ) -> Result<Instant, Failure> {
        loop {
            let waited = match &before.last {
                Some(name) => self.until_gone(servers, name, last).await,
                None => Ok(()),
            };
            let looked_at = Instant::now();
            let seen = match waited {
                Ok(()) => self.line(servers).await,
                Err(failure) => Err(failure),
            };
            match seen {
                Ok(seen) => before = self.before(&seen)?,
                Err(failure) if failure.may_pass() => {
                    last.is_problem(failure.into());
                    sleep(PAUSE).await;
                    continue;
                }
                Err(failure) => return Err(failure),
            }
            if before.last.is_none() {
                return Ok(looked_at);
            }
            last.is_busy();
        }
    }

    /// Waits until this node is gone. Nobody else wakes us.
    async fn until_gone(
        &self,
        servers: &Servers,
        name: &str,
        last: &LastWord,
    ) -> Result<(), Failure> {
        let client = self.session.client().await?;
        let path = format!("{}/{name}", names::line(&self.key));
        servers.requests().inc();
        let watched = self.session.learned(client.get_and_watch_data(&path).await);
        let mut states = client.state_watcher();
        drop(client);
        let gone = match watched {
            Err(Failure::NoNode) => return Ok(()),
            watched => watched?.2,
        };
        let mut gone = std::pin::pin!(gone.changed());
        loop {
            tokio::select! {
                biased;
                // A place goes with its session, whoever was before it.
                () = self.session.over() => return Err(Failure::SessionOver),
                // The library sets the watch anew after a lost connection.
                _event = &mut gone => return Ok(()),
                state = states.changed() => match state {
                    SessionState::SyncConnected => last.is_busy(),
                    _ => {
                        let lost = Failure::Unreachable("the connection is lost".to_owned());
                        last.is_problem(lost.into());
                    }
                },
            }
        }
    }

    /// Returns whether the node is there and of this session, as of a confirmation that
    /// was sent before.
    pub(super) async fn is_there(&self, servers: &Servers) -> Result<bool, Failure> {
        let stat = stat(servers, &self.session, &self.path()).await?;
        Ok(stat.is_some())
    }

    async fn line(&self, servers: &Servers) -> Result<Vec<String>, Failure> {
        list(servers, &self.session, &names::line(&self.key)).await
    }

    fn before(&self, seen: &[String]) -> Result<Before, Failure> {
        let gone = || Failure::Garbage("somebody deleted our place in the line".to_owned());
        before(&self.name, self.number, seen).ok_or_else(gone)
    }
}

/// Returns everybody before a place; `None` if the place is not there itself.
fn before(own: &str, number: i32, seen: &[String]) -> Option<Before> {
    if !seen.iter().any(|name| name == own) {
        return None;
    }
    // Numbers begin again after 2^31, and those of one line are never that far apart.
    let distance = |other: i32| number.wrapping_sub(other);
    let others = seen.iter().filter_map(|name| {
        let (_, other) = owner_and_number(name)?;
        (distance(other) > 0).then_some((distance(other), name))
    });
    let mut before = Before::default();
    let mut nearest = i32::MAX;
    for (distance, name) in others {
        before.length += 1;
        if distance <= nearest {
            nearest = distance;
            before.last = Some(name.clone());
        }
    }
    Some(before)
}

/// Returns the names of all places in a line.
pub(super) async fn list(
    servers: &Servers,
    session: &Session,
    line: &str,
) -> Result<Vec<String>, Failure> {
    let client = session.client().await?;
    servers.requests().inc();
    session.learned(client.list_children(line).await)
}

/// Returns what is known of a node, if it is there and this session made it.
async fn stat(servers: &Servers, session: &Session, path: &str) -> Result<Option<Stat>, Failure> {
    let client = session.client().await?;
    servers.requests().inc();
    let stat = session.learned(client.check_stat(path).await)?;
    Ok(stat.filter(|stat| stat.ephemeral_owner == session.id()))
}

async fn make_line(
    servers: &Servers,
    session: &Session,
    client: &Client,
    line: &str,
) -> Result<(), Failure> {
    servers.requests().inc();
    match client.create(line, b"", &LINE).await {
        Err(zookeeper_client::Error::NodeExists) => Ok(()),
        made => session.learned(made).map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(letter: char, number: i32) -> String {
        format!("{}-{number:010}", letter.to_string().repeat(36))
    }

    #[test]
    fn a_place_is_behind_those_with_smaller_numbers() {
        let seen = [name('c', 9), name('a', 2), name('b', 5), "lock".to_owned()];
        let at = |letter, number| before(&name(letter, number), number, &seen);
        assert_eq!(at('a', 2), Some(Before::default()));
        let behind = Before {
            length: 2,
            last: Some(name('b', 5)),
        };
        assert_eq!(at('c', 9), Some(behind));
        assert_eq!(at('d', 9), None, "it is not there");
    }

    #[test]
    fn numbers_that_began_again_come_after_the_others() {
        let seen = [name('a', i32::MAX), name('b', i32::MIN)];
        let first = before(&name('a', i32::MAX), i32::MAX, &seen).unwrap();
        assert_eq!(first, Before::default());
        let second = before(&name('b', i32::MIN), i32::MIN, &seen).unwrap();
        assert_eq!(second.last, Some(name('a', i32::MAX)));
    }
}
