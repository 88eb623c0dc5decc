use super::expiry::{MILLISECONDS, SECONDS, Unit, invalid};
use super::numbers::{number, read};
use super::*;

pub(super) const ALL: &[Command] = &[
    command("get", 2, Place::Anywhere, get),
    command("set", -3, Place::Anywhere, set),
    command("setnx", 3, Place::Anywhere, setnx),
    command("getset", 3, Place::Anywhere, getset),
    command("getdel", 2, Place::Anywhere, getdel),
    command("mget", -2, Place::Anywhere, mget),
    command("strlen", 2, Place::Anywhere, strlen),
    command("incr", 2, Place::Anywhere, |call| add(call, 1)),
    command("decr", 2, Place::Anywhere, |call| add(call, -1)),
    command("incrby", 3, Place::Anywhere, |call| {
        let by = number(&call.words[2])?;
        add(call, by)
    }),
];

fn text(call: &mut Call<'_>, key: &[u8]) -> Result<Option<Bytes>, Reply> {
    match call.value(key) {
        None => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong_type()),
    }
}

fn get(call: &mut Call<'_>) -> Answer {
    text(call, call.key()).map(Reply::bulk_or_nil)
}

fn mget(call: &mut Call<'_>) -> Answer {
    let words = call.words[1..].iter();
    let values = words.map(|key| Reply::bulk_or_nil(text(call, key).ok().flatten()));
    Ok(Reply::Array(values.collect()))
}

fn strlen(call: &mut Call<'_>) -> Answer {
    let text = text(call, call.key())?;
    Ok(Reply::count(text.map_or(0, |text| text.len())))
}

#[derive(Default)]
struct Options<'a> {
    only_new: bool,
    only_old: bool,
    keeps_end: bool,
    gets: bool,
    end: Option<(Unit, &'a [u8])>,
}

impl<'a> Options<'a> {
    fn read(words: &'a [Bytes]) -> Result<Options<'a>, Reply> {
        let mut options = Options::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let is = |name| is(word, name);
            let has_end = options.keeps_end || options.end.is_some();
            let unit = match () {
                () if is("NX") && !options.only_old => {
                    options.only_new = true;
                    continue;
                }
                () if is("XX") && !options.only_new => {
                    options.only_old = true;
                    continue;
                }
                () if is("GET") => {
                    options.gets = true;
                    continue;
                }
                () if is("KEEPTTL") && options.end.is_none() => {
                    options.keeps_end = true;
                    continue;
                }
                () if is("EX") && !has_end => SECONDS,
                () if is("PX") && !has_end => MILLISECONDS,
                () if is("EXAT") && !has_end => SECONDS.absolute(),
                () if is("PXAT") && !has_end => MILLISECONDS.absolute(),
                () => return Err(syntax_error()),
            };
            options.end = Some((unit, words.next().ok_or_else(syntax_error)?));
        }
        Ok(options)
    }

    fn end_ms(&self, now_ms: i64) -> Result<Option<i64>, Reply> {
        let Some((unit, word)) = self.end else {
            return Ok(None);
        };
        if number(word)? <= 0 {
            return Err(invalid("set"));
        }
        unit.moment(word, now_ms, "set").map(Some)
    }
}

fn set(call: &mut Call<'_>) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    let options = Options::read(&words[1..])?;
    let ends_ms = options.end_ms(call.state.now_ms())?;
    let before = match options.gets {
        true => Some(Reply::bulk_or_nil(text(call, key)?)),
        false => None,
    };
    let is_there = call.value(key).is_some();
    if options.gets {
        call.answers_first();
    }
    if options.only_new && is_there || options.only_old && !is_there {
        return Ok(before.unwrap_or(Reply::Nil));
    }
    let kept_ms = call.keys(key).ends_ms(key).filter(|_| options.keeps_end);
    call.keys(key).set(key, Value::Text(words[0].clone()));
    call.keys(key).set_end(key, ends_ms.or(kept_ms));
    call.changed(Class::Text, "set", key);
    if ends_ms.is_some() {
        call.changed(Class::Generic, "expire", key);
    }
    Ok(before.unwrap_or_else(Reply::ok))
}

fn setnx(call: &mut Call<'_>) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    if call.value(key).is_some() {
        return Ok(Reply::Int(0));
    }
    call.keys(key).set(key, Value::Text(words[0].clone()));
    call.changed(Class::Text, "set", key);
    Ok(Reply::Int(1))
}

fn getset(call: &mut Call<'_>) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    let before = text(call, key)?;
    call.answers_first();
    call.keys(key).set(key, Value::Text(words[0].clone()));
    call.changed(Class::Text, "set", key);
    Ok(Reply::bulk_or_nil(before))
}

fn getdel(call: &mut Call<'_>) -> Answer {
    let key = call.key();
    let before = text(call, key)?;
    call.answers_first();
    call.delete(key);
    Ok(Reply::bulk_or_nil(before))
}

fn add(call: &mut Call<'_>, by: i64) -> Answer {
    let key = call.key();
    let before = match text(call, key)? {
        None => 0,
        Some(text) => number(&text)?,
    };
    let overflow = || Reply::error("ERR increment or decrement would overflow");
    let after = before.checked_add(by).ok_or_else(overflow)?;
    let text = after.to_string().into_bytes();
    debug_assert_eq!(read(&text), Some(after));
    match call.value(key) {
        Some(value) => *value = Value::Text(text),
        None => call.keys(key).set(key, Value::Text(text)),
    }
    call.changed(Class::Text, "incrby", key);
    Ok(Reply::Int(after))
}
