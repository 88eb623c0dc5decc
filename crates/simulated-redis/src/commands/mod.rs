//! The commands, one file for each kind of value.

mod expiry;
mod hashes;
mod keys;
mod lists;
mod messages;
mod numbers;
mod scripts;
mod server;
mod texts;

use crate::client::Client;
use crate::keyspace::{Bytes, Keyspace, Value};
use crate::notify::Class;
use crate::reply::{Protocol, Reply};
use crate::state::State;

/// A command on its way through a server.
pub(crate) struct Call<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) client: &'a mut Client,
    pub(crate) words: &'a [Bytes],
}

/// An answer, or the error that is one.
pub(crate) type Answer = Result<Reply, Reply>;

pub(crate) struct Command {
    name: &'static str,
    /// The number of words; at least so many if it is negative.
    words: i32,
    place: Place,
    run: fn(&mut Call<'_>) -> Answer,
}

/// Where a command may be called from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Also from a script.
    Anywhere,
    NotInScript,
    /// Not from a script, and also from a client of version 2 that listens.
    Listening,
}

const fn command(
    name: &'static str,
    words: i32,
    place: Place,
    run: fn(&mut Call<'_>) -> Answer,
) -> Command {
    Command {
        name,
        words,
        place,
        run,
    }
}

const GROUPS: [&[Command]; 7] = [
    texts::ALL,
    keys::ALL,
    hashes::ALL,
    lists::ALL,
    messages::ALL,
    scripts::ALL,
    server::ALL,
];

/// Finds the command that these words call. One with parts is named as in `script|load`.
fn find(words: &[Bytes]) -> Result<&'static Command, Reply> {
    let named = |name: &[u8]| {
        let mut all = GROUPS.iter().flat_map(|group| group.iter());
        all.find(|command| is(name, command.name))
    };
    let name = &words[0];
    if let Some(command) = named(name) {
        return Ok(command);
    }
    let Some(parted) = PARTED.iter().find(|parted| is(name, parted)) else {
        return Err(unknown(words));
    };
    let part = words.get(1).ok_or_else(|| wrong_count(parted))?;
    named(&[name, &b"|"[..], part].concat()).ok_or_else(|| {
        let (part, command) = (String::from_utf8_lossy(part), parted.to_uppercase());
        let why = format!("ERR unknown subcommand '{part}'. Try {command} HELP.");
        Reply::error(why)
    })
}

/// The commands that have parts.
const PARTED: [&str; 3] = ["client", "config", "script"];

/// The commands that change keys.
const WRITES: &[&str] = &[
    "hset",
    "hsetnx",
    "hdel",
    "hincrby",
    "del",
    "unlink",
    "flushdb",
    "flushall",
    "persist",
    "expire",
    "pexpire",
    "expireat",
    "pexpireat",
    "lpush",
    "rpush",
    "lpop",
    "rpop",
    "lrem",
    "set",
    "setnx",
    "getset",
    "getdel",
    "incr",
    "decr",
    "incrby",
];

fn read_only() -> Reply {
    Reply::error("READONLY You can't write against a read only replica.")
}

impl Command {
    fn writes(&self) -> bool {
        WRITES.contains(&self.name)
    }

    fn takes(&self, words: usize) -> bool {
        let wanted = self.words.unsigned_abs() as usize;
        words == wanted || self.words < 0 && words > wanted
    }
}

/// Carries out a command of a client.
pub(crate) fn run(mut call: Call<'_>) -> Vec<Reply> {
    let command = match find(call.words) {
        Ok(command) => command,
        Err(error) => return vec![error],
    };
    if !command.takes(call.words.len()) {
        return vec![wrong_count(command.name)];
    }
    let listens = call.state.listeners.count(call.client.id) > 0;
    let is_old = call.client.protocol == Protocol::Resp2;
    if listens && is_old && command.place != Place::Listening {
        return vec![Reply::error(format!(
            "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
             are allowed in this context",
            command.name
        ))];
    }
    if call.state.is_replica() && command.writes() {
        return vec![read_only()];
    }
    if let Some(replies) = messages::run(&mut call, command.name) {
        return replies;
    }
    vec![(command.run)(&mut call).unwrap_or_else(|error| error)]
}

/// Carries out a command of a script.
pub(crate) fn run_in_script(mut call: Call<'_>) -> Reply {
    let Ok(command) = find(call.words) else {
        return Reply::error("ERR Unknown Redis command called from script");
    };
    if command.place != Place::Anywhere {
        return Reply::error("ERR This Redis command is not allowed from script");
    }
    if !command.takes(call.words.len()) {
        return Reply::error("ERR Wrong number of args calling Redis command from script");
    }
    if call.state.is_replica() && command.writes() {
        return read_only();
    }
    let reply = (command.run)(&mut call).unwrap_or_else(|error| error);
    // The answer is that of the script.
    call.client.messages_before = None;
    reply
}

fn unknown(words: &[Bytes]) -> Reply {
    const SHOWN_BYTES: usize = 128;
    let shown = |word: &Bytes, most: usize| {
        let word = &word[..word.len().min(most)];
        String::from_utf8_lossy(word).into_owned()
    };
    let mut arguments = String::new();
    for word in &words[1..] {
        if arguments.len() >= SHOWN_BYTES {
            break;
        }
        let most = SHOWN_BYTES - arguments.len();
        arguments += &format!("'{}' ", shown(word, most));
    }
    let name = shown(&words[0], SHOWN_BYTES);
    Reply::error(format!(
        "ERR unknown command '{name}', with args beginning with: {arguments}"
    ))
}

fn wrong_count(name: &str) -> Reply {
    Reply::error(format!(
        "ERR wrong number of arguments for '{name}' command"
    ))
}

fn wrong_type() -> Reply {
    Reply::error("WRONGTYPE Operation against a key holding the wrong kind of value")
}

fn syntax_error() -> Reply {
    Reply::error("ERR syntax error")
}

fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

impl<'a> Call<'a> {
    fn key(&self) -> &'a [u8] {
        &self.words[1]
    }

    fn arguments(&self) -> &'a [Bytes] {
        &self.words[2..]
    }

    /// Returns the keys, after this one has ended if its time is over.
    fn keys(&mut self, key: &[u8]) -> &mut Keyspace {
        let db = self.client.db;
        self.state.keys(db, key)
    }

    fn value(&mut self, key: &[u8]) -> Option<&mut Value> {
        self.keys(key).get_mut(key)
    }

    /// Answers before the change is reported.
    fn answers_first(&mut self) {
        self.client.messages_before = Some(self.client.outbox.len());
    }

    fn changed(&mut self, class: Class, event: &'static str, key: &[u8]) {
        self.state.changed(self.client.db, class, event, key);
    }

    /// Removes a key; returns whether it was there.
    fn delete(&mut self, key: &[u8]) -> bool {
        let was_there = self.keys(key).remove(key).is_some();
        if was_there {
            self.changed(Class::Generic, "del", key);
        }
        was_there
    }

    /// Removes a hash or a list from which the last thing was taken.
    fn delete_if_empty(&mut self, key: &[u8]) {
        if self.value(key).is_some_and(|value| value.is_empty()) {
            self.delete(key);
        }
    }
}
