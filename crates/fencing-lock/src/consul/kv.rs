use super::agent::{Agent, Answer};
use super::failure::{refusal, words};
use super::names::path_of;
use crate::{FencingToken, LockProblem};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::StatusCode;
use serde_json::{Value, json};
use std::time::Duration;

/// The answer to a request for a lock.
pub(super) enum Locked {
    /// Here is the index of the request in the log of the servers.
    Granted(FencingToken),
    Held,
    /// Nobody holds it, and nobody is granted it yet.
    Delayed,
    /// The session that was to hold it is not there any more.
    SessionGone,
}

/// The key of a lock, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// The session that holds it.
    pub session: Option<String>,
    /// What its last holder or its releaser wrote: the owner.
    pub value: Vec<u8>,
    /// The number of grants since the key was made.
    pub lock_index: u64,
    pub create_index: u64,
    pub modify_index: u64,
}

impl Agent {
    pub(super) async fn lock(
        &self,
        name: &str,
        session: &str,
        owner: &str,
    ) -> Result<Locked, LockProblem> {
        let answer = self.change("lock", name, session, owner).await?;
        if let Some(why) = conflict(&answer)? {
            return match why {
                why if why.contains("already held") => Ok(Locked::Held),
                why if why.contains("lock delay") => Ok(Locked::Delayed),
                why if why.contains("invalid session") => Ok(Locked::SessionGone),
                why => Err(LockProblem::Refused(why)),
            };
        }
        let entry = answer.json()?;
        let entry = Entry::read(&entry["Results"][0]["KV"])?;
        if entry.session.as_deref() != Some(session) {
            let strange = format!("granted to {:?}", entry.session);
            return Err(LockProblem::BadAnswer(strange));
        }
        Ok(Locked::Granted(FencingToken(entry.modify_index)))
    }

    /// Frees a lock if this session holds it, and returns whether it did.
    pub(super) async fn unlock(&self, name: &str, session: &str) -> Result<bool, LockProblem> {
        let answer = self.change("unlock", name, session, "").await?;
        match conflict(&answer)? {
            None => answer.json().map(|_freed| true),
            Some(why) if why.contains("isn't held") => Ok(false),
            Some(why) => Err(LockProblem::Refused(why)),
        }
    }

    async fn change(
        &self,
        verb: &str,
        name: &str,
        session: &str,
        value: &str,
    ) -> Result<Answer, LockProblem> {
        let value = BASE64_STANDARD.encode(value);
        let change = json!({ "Verb": verb, "Key": name, "Value": value, "Session": session });
        self.put("/v1/txn", &json!([{ "KV": change }])).await
    }

    /// Returns the key of a lock as a majority of the servers has it.
    pub(super) async fn confirmed(&self, name: &str) -> Result<Option<Entry>, LockProblem> {
        let path = format!("{}?consistent", path_of(name));
        let answer = self.get(&path, Duration::ZERO).await?;
        Ok(entries(&answer)?.into_iter().next())
    }

    /// Returns a key as soon as it is not as it was at this index any more, after `waits` at
    /// the latest, with the index of what it returns. An index of 0 does not wait.
    pub(super) async fn changed(
        &self,
        name: &str,
        since: u64,
        waits: Duration,
    ) -> Result<(u64, Option<Entry>), LockProblem> {
        let path = format!("{}?{}", path_of(name), waiting(since, waits));
        let answer = self.get(&path, waits).await?;
        Ok((answer.index, entries(&answer)?.into_iter().next()))
    }

    /// Does the same for all keys with this prefix.
    #[cfg(feature = "servers")]
    pub async fn changed_below(
        &self,
        prefix: &str,
        since: u64,
        waits: Duration,
    ) -> Result<(u64, Vec<Entry>), LockProblem> {
        let path = format!("{}?recurse&{}", path_of(prefix), waiting(since, waits));
        let answer = self.get(&path, waits).await?;
        Ok((answer.index, entries(&answer)?))
    }

    /// Writes to a key that no lock uses.
    #[cfg(feature = "servers")]
    pub async fn write(&self, name: &str) -> Result<(), LockProblem> {
        let written = self.put(&path_of(name), &Value::Null).await?;
        written.any_json().map(drop)
    }

    #[cfg(feature = "servers")]
    pub async fn version(&self) -> Result<String, LockProblem> {
        let about = self.get("/v1/agent/self", Duration::ZERO).await?.json()?;
        let version = about["Config"]["Version"].as_str();
        let version = version.ok_or_else(|| LockProblem::BadAnswer("no version".to_owned()))?;
        Ok(version.to_owned())
    }
}

fn waiting(since: u64, waits: Duration) -> String {
    format!("index={since}&wait={}ms", waits.as_millis())
}

/// Returns why a change was not made because of the state of the key, in the server's words.
fn conflict(answer: &Answer) -> Result<Option<String>, LockProblem> {
    if answer.status != StatusCode::CONFLICT {
        return Ok(None);
    }
    let body = answer.any_json()?;
    let why = body["Errors"][0]["What"].as_str();
    Ok(Some(why.map_or_else(|| words(&answer.body), str::to_owned)))
}

fn entries(answer: &Answer) -> Result<Vec<Entry>, LockProblem> {
    match answer.status {
        // This is how a key that is not there is answered, and nothing else that we ask for.
        StatusCode::NOT_FOUND if answer.index > 0 => Ok(Vec::new()),
        StatusCode::OK => {
            let all = answer.json()?;
            let all = all.as_array().ok_or_else(|| strange(&all))?;
            all.iter().map(Entry::read).collect()
        }
        status => Err(refusal(status, &answer.body)),
    }
}

impl Entry {
    fn read(entry: &Value) -> Result<Entry, LockProblem> {
        let index = |name: &str| entry[name].as_u64().ok_or_else(|| strange(entry));
        let session = entry["Session"].as_str().filter(|id| !id.is_empty());
        let value = entry["Value"].as_str().unwrap_or_default();
        Ok(Entry {
            name: entry["Key"].as_str().unwrap_or_default().to_owned(),
            session: session.map(str::to_owned),
            value: BASE64_STANDARD.decode(value).unwrap_or_default(),
            lock_index: index("LockIndex")?,
            create_index: index("CreateIndex")?,
            modify_index: index("ModifyIndex")?,
        })
    }
}

fn strange(answer: &Value) -> LockProblem {
    LockProblem::BadAnswer(words(answer.to_string().as_bytes()))
}
