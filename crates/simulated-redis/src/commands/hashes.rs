use super::numbers::{number, read};
use super::*;
use std::collections::BTreeMap;

pub(super) const ALL: &[Command] = &[
    command("hset", -4, Place::Anywhere, hset),
    command("hsetnx", 4, Place::Anywhere, hsetnx),
    command("hget", 3, Place::Anywhere, hget),
    command("hmget", -3, Place::Anywhere, hmget),
    command("hdel", -3, Place::Anywhere, hdel),
    command("hexists", 3, Place::Anywhere, hexists),
    command("hlen", 2, Place::Anywhere, hlen),
    command("hkeys", 2, Place::Anywhere, hkeys),
    command("hvals", 2, Place::Anywhere, hvals),
    command("hgetall", 2, Place::Anywhere, hgetall),
    command("hincrby", 4, Place::Anywhere, hincrby),
];

type Fields = BTreeMap<Bytes, Bytes>;

fn fields<'a>(call: &'a mut Call<'_>, key: &[u8]) -> Result<Option<&'a mut Fields>, Reply> {
    match call.value(key) {
        None => Ok(None),
        Some(Value::Hash(fields)) => Ok(Some(fields)),
        Some(_) => Err(wrong_type()),
    }
}

/// Returns the fields of a hash, which is made if it is not there.
fn made<'a>(call: &'a mut Call<'_>, key: &[u8]) -> Result<&'a mut Fields, Reply> {
    if call.value(key).is_none() {
        call.keys(key).set(key, Value::Hash(Fields::new()));
    }
    Ok(fields(call, key)?.expect("made above"))
}

fn hset(call: &mut Call<'_>) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    if !words.len().is_multiple_of(2) {
        return Err(wrong_count("hset"));
    }
    let fields = made(call, key)?;
    let mut new = 0;
    for pair in words.chunks(2) {
        let before = fields.insert(pair[0].clone(), pair[1].clone());
        new += usize::from(before.is_none());
    }
    call.answers_first();
    call.changed(Class::Hash, "hset", key);
    Ok(Reply::count(new))
}

fn hsetnx(call: &mut Call<'_>) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    let fields = made(call, key)?;
    if fields.contains_key(&words[0]) {
        return Ok(Reply::Int(0));
    }
    fields.insert(words[0].clone(), words[1].clone());
    call.answers_first();
    call.changed(Class::Hash, "hset", key);
    Ok(Reply::Int(1))
}

fn hget(call: &mut Call<'_>) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    let value = fields(call, key)?.and_then(|fields| fields.get(&words[0]).cloned());
    Ok(Reply::bulk_or_nil(value))
}

fn hmget(call: &mut Call<'_>) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    let fields = fields(call, key)?;
    let value = |name| fields.as_ref().and_then(|fields| fields.get(name).cloned());
    let values = words.iter().map(|name| Reply::bulk_or_nil(value(name)));
    Ok(Reply::Array(values.collect()))
}

fn hdel(call: &mut Call<'_>) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    let Some(fields) = fields(call, key)? else {
        return Ok(Reply::Int(0));
    };
    let gone = words.iter().filter(|name| fields.remove(*name).is_some());
    let gone = gone.count();
    if gone > 0 {
        call.changed(Class::Hash, "hdel", key);
        call.delete_if_empty(key);
    }
    Ok(Reply::count(gone))
}

fn hexists(call: &mut Call<'_>) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    let fields = fields(call, key)?;
    let is_there = fields.is_some_and(|fields| fields.contains_key(&words[0]));
    Ok(Reply::flag(is_there))
}

fn all(call: &mut Call<'_>) -> Result<Fields, Reply> {
    let key = call.key();
    Ok(fields(call, key)?.cloned().unwrap_or_default())
}

fn hlen(call: &mut Call<'_>) -> Answer {
    let key = call.key();
    Ok(Reply::count(
        fields(call, key)?.map_or(0, |fields| fields.len()),
    ))
}

fn hkeys(call: &mut Call<'_>) -> Answer {
    Ok(Reply::bulks(all(call)?.into_keys()))
}

fn hvals(call: &mut Call<'_>) -> Answer {
    Ok(Reply::bulks(all(call)?.into_values()))
}

fn hgetall(call: &mut Call<'_>) -> Answer {
    let pairs = all(call)?.into_iter();
    let pairs = pairs.map(|(name, value)| (Reply::Bulk(name), Reply::Bulk(value)));
    Ok(Reply::Map(pairs.collect()))
}

fn hincrby(call: &mut Call<'_>) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    let by = number(&words[1])?;
    let before = fields(call, key)?.and_then(|fields| fields.get(&words[0]).cloned());
    let not_a_number = || Reply::error("ERR hash value is not an integer");
    let before = match before {
        None => 0,
        Some(text) => read(&text).ok_or_else(not_a_number)?,
    };
    let overflow = || Reply::error("ERR increment or decrement would overflow");
    let after = before.checked_add(by).ok_or_else(overflow)?;
    let text = after.to_string().into_bytes();
    made(call, key)?.insert(words[0].clone(), text);
    call.answers_first();
    call.changed(Class::Hash, "hincrby", key);
    Ok(Reply::Int(after))
}
