use super::numbers::read;
use super::*;
use crate::glob;
use crate::notify::Notify;
use crate::replication::Role;

/// The version that this server answers like.
const VERSION: &str = "7.0.15";
const NOTIFY: &str = "notify-keyspace-events";

pub(super) const ALL: &[Command] = &[
    command("ping", -1, Place::Listening, ping),
    command("echo", 2, Place::Anywhere, |call| {
        Ok(Reply::Bulk(call.key().to_vec()))
    }),
    command("time", 1, Place::Anywhere, time),
    command("select", 2, Place::Anywhere, select),
    command("hello", -1, Place::NotInScript, hello),
    command("auth", -2, Place::NotInScript, auth),
    command("client|id", 2, Place::NotInScript, |call| {
        Ok(Reply::Int(
            i64::try_from(call.client.id).unwrap_or(i64::MAX),
        ))
    }),
    command("client|getname", 2, Place::NotInScript, |call| {
        let name = Some(call.client.name.clone());
        Ok(Reply::bulk_or_nil(name.filter(|name| !name.is_empty())))
    }),
    command("client|setname", 3, Place::NotInScript, |call| {
        call.client.name = call.words[2].clone();
        Ok(Reply::ok())
    }),
    command("config|get", 3, Place::NotInScript, config_get),
    command("config|set", 4, Place::NotInScript, config_set),
    command("info", -1, Place::Anywhere, info),
    command("role", 1, Place::NotInScript, role),
    command("replicaof", 3, Place::NotInScript, replica_of),
    command("psync", 3, Place::NotInScript, |call| {
        call.answers_first();
        call.state.begin_replica(call.client);
        let id = &call.state.run_id;
        Ok(Reply::Simple(format!("FULLRESYNC {id} 0")))
    }),
];

fn ping(call: &mut Call<'_>) -> Answer {
    let word = match &call.words[1..] {
        [] => None,
        [word] => Some(word.clone()),
        _ => return Err(wrong_count("ping")),
    };
    let listens = call.state.listeners.count(call.client.id) > 0;
    Ok(match word {
        word if listens && call.client.protocol == Protocol::Resp2 => {
            Reply::bulks([b"pong".to_vec(), word.unwrap_or_default()])
        }
        Some(word) => Reply::Bulk(word),
        None => Reply::simple("PONG"),
    })
}

fn time(call: &mut Call<'_>) -> Answer {
    let now_us = call.state.now_us;
    let parts = [now_us / 1_000_000, now_us % 1_000_000];
    Ok(Reply::bulks(
        parts.map(|part| part.to_string().into_bytes()),
    ))
}

fn select(call: &mut Call<'_>) -> Answer {
    let invalid = || Reply::error("ERR value is not an integer or out of range");
    let number = read(call.key()).ok_or_else(invalid)?;
    let out_of_range = || Reply::error("ERR DB index is out of range");
    let db = usize::try_from(number).ok().filter(|db| *db < 16);
    call.client.db = db.ok_or_else(out_of_range)?;
    Ok(Reply::ok())
}

fn hello(call: &mut Call<'_>) -> Answer {
    let mut words = call.words[1..].iter();
    if let Some(version) = words.next() {
        let number = read(version).ok_or_else(|| {
            Reply::error("ERR Protocol version is not an integer or out of range")
        })?;
        let protocol = match number {
            2 => Protocol::Resp2,
            3 => Protocol::Resp3,
            _ => return Err(Reply::error("NOPROTO unsupported protocol version")),
        };
        while let Some(word) = words.next() {
            match (is(word, "SETNAME"), words.next()) {
                (true, Some(name)) => call.client.name = name.clone(),
                _ => {
                    let word = String::from_utf8_lossy(word);
                    let why = format!("ERR Syntax error in HELLO option '{word}'");
                    return Err(Reply::error(why));
                }
            }
        }
        call.client.protocol = protocol;
    }
    let version = if call.client.protocol == Protocol::Resp3 {
        3
    } else {
        2
    };
    let id = i64::try_from(call.client.id).unwrap_or(i64::MAX);
    let pairs = [
        ("server", Reply::text("redis")),
        ("version", Reply::text(VERSION)),
        ("proto", Reply::Int(version)),
        ("id", Reply::Int(id)),
        ("mode", Reply::text("standalone")),
        ("role", Reply::text(role_word(&call.state.role))),
        ("modules", Reply::Array(Vec::new())),
    ];
    let pairs = pairs.map(|(name, value)| (Reply::text(name), value));
    Ok(Reply::Map(pairs.into()))
}

fn auth(call: &mut Call<'_>) -> Answer {
    Err(match call.words.len() {
        2 => Reply::error(
            "ERR AUTH <password> called without any password configured for the default user. Are \
             you sure your configuration is correct?",
        ),
        3 if is(call.key(), "default") => return Ok(Reply::ok()),
        3 => Reply::error("WRONGPASS invalid username-password pair or user is disabled."),
        _ => syntax_error(),
    })
}

fn config_get(call: &mut Call<'_>) -> Answer {
    let pattern = call.words[2].to_ascii_lowercase();
    let shown = Reply::text(&call.state.notify.shown());
    let is_asked = glob::fits(&pattern, NOTIFY.as_bytes());
    let pair = is_asked.then(|| (Reply::text(NOTIFY), shown));
    Ok(Reply::Map(pair.into_iter().collect()))
}

fn config_set(call: &mut Call<'_>) -> Answer {
    let (setting, value) = (&call.words[2], &call.words[3]);
    if !is(setting, NOTIFY) {
        let setting = String::from_utf8_lossy(setting);
        return Err(Reply::error(format!(
            "ERR Unknown option or number of arguments for CONFIG SET - '{setting}'"
        )));
    }
    let wrong = || {
        Reply::error(format!(
            "ERR CONFIG SET failed (possibly related to argument '{NOTIFY}') - Invalid event class \
             character. Use 'Ag$lshzxeKEtmdn'."
        ))
    };
    call.state.notify = Notify::of(&String::from_utf8_lossy(value)).ok_or_else(wrong)?;
    Ok(Reply::ok())
}

fn info(call: &mut Call<'_>) -> Answer {
    let asked = &call.words[1..];
    let wants = |section: &str| asked.is_empty() || asked.iter().any(|word| is(word, section));
    let mut text = String::new();
    if wants("server") {
        let id = &call.state.run_id;
        text += &format!(
            "# Server\r\nredis_version:{VERSION}\r\nredis_mode:standalone\r\nrun_id:{id}\r\n"
        );
    }
    if wants("replication") {
        let (role, replicas) = (role_word(&call.state.role), call.state.replicas.len());
        text += &format!("# Replication\r\nrole:{role}\r\nconnected_slaves:{replicas}\r\n");
    }
    Ok(Reply::text(&text))
}

fn role_word(role: &Role) -> &'static str {
    match role {
        Role::Primary => "master",
        Role::Replica { .. } => "slave",
    }
}

fn role(call: &mut Call<'_>) -> Answer {
    let word = Reply::text(role_word(&call.state.role));
    Ok(Reply::Array(match &call.state.role {
        // Nobody counts the bytes that a replica was sent.
        Role::Primary => vec![word, Reply::Int(0), Reply::Array(Vec::new())],
        Role::Replica {
            host,
            port,
            is_synced,
        } => {
            let state = if *is_synced { "connected" } else { "connect" };
            let port = Reply::Int(i64::from(*port));
            vec![
                word,
                Reply::text(host),
                port,
                Reply::text(state),
                Reply::Int(0),
            ]
        }
    }))
}

/// A replica can be made a primary, and nothing else.
fn replica_of(call: &mut Call<'_>) -> Answer {
    if !is(&call.words[1], "NO") || !is(&call.words[2], "ONE") {
        return Err(Reply::error(
            "ERR a simulated server cannot be made a replica",
        ));
    }
    call.state.role = Role::Primary;
    call.state.role_changed.notify_waiters();
    // A replica waited for its primary to end keys. This one does it by itself.
    call.state.mortal.notify_one();
    Ok(Reply::ok())
}
