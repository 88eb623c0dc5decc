use super::expiry::{MILLISECONDS, SECONDS, Unit};
use super::*;
use crate::glob;

pub(super) const ALL: &[Command] = &[
    command("del", -2, Place::Anywhere, del),
    command("unlink", -2, Place::Anywhere, del),
    command("exists", -2, Place::Anywhere, exists),
    command("type", 2, Place::Anywhere, kind),
    command("keys", 2, Place::Anywhere, keys),
    command("dbsize", 1, Place::Anywhere, dbsize),
    command("flushdb", -1, Place::Anywhere, flushdb),
    command("flushall", -1, Place::Anywhere, flushall),
    command("ttl", 2, Place::Anywhere, |call| left(call, 1000)),
    command("pttl", 2, Place::Anywhere, |call| left(call, 1)),
    command("persist", 2, Place::Anywhere, persist),
    command("expire", -3, Place::Anywhere, |call| {
        expire(call, SECONDS, "expire")
    }),
    command("pexpire", -3, Place::Anywhere, |call| {
        expire(call, MILLISECONDS, "pexpire")
    }),
    command("expireat", -3, Place::Anywhere, |call| {
        expire(call, SECONDS.absolute(), "expireat")
    }),
    command("pexpireat", -3, Place::Anywhere, |call| {
        expire(call, MILLISECONDS.absolute(), "pexpireat")
    }),
];

fn del(call: &mut Call<'_>) -> Answer {
    let keys = call.words[1..].iter();
    Ok(Reply::count(keys.filter(|key| call.delete(key)).count()))
}

fn exists(call: &mut Call<'_>) -> Answer {
    let keys = call.words[1..].iter();
    let there = keys.filter(|key| call.value(key).is_some());
    Ok(Reply::count(there.count()))
}

fn kind(call: &mut Call<'_>) -> Answer {
    let kind = call.value(call.key()).map_or("none", |value| value.kind());
    Ok(Reply::simple(kind))
}

fn keys(call: &mut Call<'_>) -> Answer {
    let (db, pattern) = (call.client.db, call.key());
    call.state.expire();
    let all = call.state.database(db).keys();
    let fitting = all.filter(|key| glob::fits(pattern, key));
    Ok(Reply::bulks(fitting.cloned()))
}

fn dbsize(call: &mut Call<'_>) -> Answer {
    let db = call.client.db;
    Ok(Reply::count(call.state.database(db).len()))
}

fn how(call: &Call<'_>) -> Result<(), Reply> {
    match &call.words[1..] {
        [] => Ok(()),
        [how] if is(how, "ASYNC") || is(how, "SYNC") => Ok(()),
        _ => Err(syntax_error()),
    }
}

fn flushdb(call: &mut Call<'_>) -> Answer {
    how(call)?;
    let db = call.client.db;
    *call.state.database(db) = Keyspace::default();
    call.state.send_whole();
    Ok(Reply::ok())
}

fn flushall(call: &mut Call<'_>) -> Answer {
    how(call)?;
    call.state.clear();
    Ok(Reply::ok())
}

fn left(call: &mut Call<'_>, unit_ms: i64) -> Answer {
    let (key, now_ms) = (call.key(), call.state.now_ms());
    let keys = call.keys(key);
    if keys.get(key).is_none() {
        return Ok(Reply::Int(-2));
    }
    let Some(ends_ms) = keys.ends_ms(key) else {
        return Ok(Reply::Int(-1));
    };
    let left_ms = (ends_ms - now_ms).max(0);
    Ok(Reply::Int((left_ms + unit_ms / 2) / unit_ms))
}

fn persist(call: &mut Call<'_>) -> Answer {
    let key = call.key();
    if call.keys(key).ends_ms(key).is_none() {
        return Ok(Reply::Int(0));
    }
    call.keys(key).set_end(key, None);
    call.changed(Class::Generic, "persist", key);
    Ok(Reply::Int(1))
}

#[derive(Default)]
struct Only {
    without_end: bool,
    with_end: bool,
    later: bool,
    earlier: bool,
}

impl Only {
    fn read(words: &[Bytes]) -> Result<Only, Reply> {
        let mut only = Only::default();
        for word in words {
            match () {
                () if is(word, "NX") => only.without_end = true,
                () if is(word, "XX") => only.with_end = true,
                () if is(word, "GT") => only.later = true,
                () if is(word, "LT") => only.earlier = true,
                () => {
                    let word = String::from_utf8_lossy(word);
                    return Err(Reply::error(format!("ERR Unsupported option {word}")));
                }
            }
        }
        if only.without_end && (only.with_end || only.later || only.earlier) {
            let why = "ERR NX and XX, GT or LT options at the same time are not compatible";
            return Err(Reply::error(why));
        }
        if only.later && only.earlier {
            let why = "ERR GT and LT options at the same time are not compatible";
            return Err(Reply::error(why));
        }
        Ok(only)
    }

    fn allows(&self, before: Option<i64>, after: i64) -> bool {
        !(self.without_end && before.is_some()
            || self.with_end && before.is_none()
            || self.later && before.is_none_or(|before| after <= before)
            || self.earlier && before.is_some_and(|before| after >= before))
    }
}

fn expire(call: &mut Call<'_>, unit: Unit, name: &str) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    let only = Only::read(&words[1..])?;
    let now_ms = call.state.now_ms();
    let ends_ms = unit.moment(&words[0], now_ms, name)?;
    if call.value(key).is_none() || !only.allows(call.keys(key).ends_ms(key), ends_ms) {
        return Ok(Reply::Int(0));
    }
    if ends_ms <= now_ms {
        call.delete(key);
    } else {
        call.keys(key).set_end(key, Some(ends_ms));
        call.answers_first();
        call.changed(Class::Generic, "expire", key);
    }
    Ok(Reply::Int(1))
}
