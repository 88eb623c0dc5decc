use super::numbers::number;
use super::*;
use std::collections::VecDeque;

pub(super) const ALL: &[Command] = &[
    command("lpush", -3, Place::Anywhere, |call| push(call, End::Left)),
    command("rpush", -3, Place::Anywhere, |call| push(call, End::Right)),
    command("lpop", -2, Place::Anywhere, |call| pop(call, End::Left)),
    command("rpop", -2, Place::Anywhere, |call| pop(call, End::Right)),
    command("llen", 2, Place::Anywhere, llen),
    command("lindex", 3, Place::Anywhere, lindex),
    command("lrange", 4, Place::Anywhere, lrange),
    command("lrem", 4, Place::Anywhere, lrem),
    command("lpos", -3, Place::Anywhere, lpos),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Left,
    Right,
}

type Items = VecDeque<Bytes>;

fn items<'a>(call: &'a mut Call<'_>, key: &[u8]) -> Result<Option<&'a mut Items>, Reply> {
    match call.value(key) {
        None => Ok(None),
        Some(Value::List(items)) => Ok(Some(items)),
        Some(_) => Err(wrong_type()),
    }
}

fn push(call: &mut Call<'_>, end: End) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    if items(call, key)?.is_none() {
        call.keys(key).set(key, Value::List(Items::new()));
    }
    let items = items(call, key)?.expect("made above");
    for word in words {
        match end {
            End::Left => items.push_front(word.clone()),
            End::Right => items.push_back(word.clone()),
        }
    }
    let length = items.len();
    let event = if end == End::Left { "lpush" } else { "rpush" };
    call.answers_first();
    call.changed(Class::List, event, key);
    Ok(Reply::count(length))
}

fn pop(call: &mut Call<'_>, end: End) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    let name = if end == End::Left { "lpop" } else { "rpop" };
    let count = match words {
        [] => None,
        [count] => {
            let wrong = || Reply::error("ERR value is out of range, must be positive");
            let count = number(count)
                .ok()
                .and_then(|count| usize::try_from(count).ok());
            Some(count.ok_or_else(wrong)?)
        }
        _ => return Err(wrong_count(name)),
    };
    let Some(items) = items(call, key)? else {
        return Ok(if count.is_some() {
            Reply::NilArray
        } else {
            Reply::Nil
        });
    };
    let take = || match end {
        End::Left => items.pop_front(),
        End::Right => items.pop_back(),
    };
    let taken: Vec<Bytes> = std::iter::from_fn(take).take(count.unwrap_or(1)).collect();
    if !taken.is_empty() {
        call.answers_first();
        call.changed(Class::List, name, key);
        call.delete_if_empty(key);
    }
    Ok(match count {
        Some(_) => Reply::bulks(taken),
        None => Reply::bulk_or_nil(taken.into_iter().next()),
    })
}

fn llen(call: &mut Call<'_>) -> Answer {
    let key = call.key();
    Ok(Reply::count(
        items(call, key)?.map_or(0, |items| items.len()),
    ))
}

/// Returns the place that an index means, which counts from the end if it is negative.
fn place(index: i64, length: usize) -> i64 {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    if index < 0 {
        index.saturating_add(length)
    } else {
        index
    }
}

fn lindex(call: &mut Call<'_>) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    let Some(items) = items(call, key)? else {
        return Ok(Reply::Nil);
    };
    let place = place(number(&words[0])?, items.len());
    let item = usize::try_from(place)
        .ok()
        .and_then(|place| items.get(place));
    Ok(Reply::bulk_or_nil(item.cloned()))
}

fn lrange(call: &mut Call<'_>) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    let (from, to) = (number(&words[0])?, number(&words[1])?);
    let Some(items) = items(call, key)? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let from = usize::try_from(place(from, items.len())).unwrap_or(0);
    let Ok(to) = usize::try_from(place(to, items.len())) else {
        return Ok(Reply::Array(Vec::new()));
    };
    let count = to.saturating_add(1).saturating_sub(from);
    Ok(Reply::bulks(items.iter().skip(from).take(count).cloned()))
}

fn lrem(call: &mut Call<'_>) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    let count = number(&words[0])?;
    let Some(items) = items(call, key)? else {
        return Ok(Reply::Int(0));
    };
    let most = match count {
        0 => usize::MAX,
        count => usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX),
    };
    let places = (0..items.len()).filter(|place| items[*place] == words[1]);
    let places: Vec<usize> = match count < 0 {
        true => places.rev().take(most).collect(),
        false => places.take(most).collect(),
    };
    let mut place = 0;
    items.retain(|_| {
        place += 1;
        !places.contains(&(place - 1))
    });
    if !places.is_empty() {
        call.changed(Class::List, "lrem", key);
        call.delete_if_empty(key);
    }
    Ok(Reply::count(places.len()))
}

fn lpos(call: &mut Call<'_>) -> Answer {
    let (key, words) = (call.key(), call.arguments());
    let (mut rank, mut count, mut most) = (1, None, 0);
    for option in words[1..].chunks(2) {
        let [name, value] = option else {
            return Err(syntax_error());
        };
        let not_negative = |what: &str| match number(value) {
            Ok(number) if number >= 0 => Ok(number),
            _ => Err(Reply::error(format!("ERR {what} can't be negative"))),
        };
        match () {
            () if is(name, "RANK") => {
                rank = number(value)?;
                if rank == 0 {
                    return Err(Reply::error(
                        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the \
                         second ... or use negative to start from the end of the list",
                    ));
                }
            }
            () if is(name, "COUNT") => count = Some(not_negative("COUNT")?),
            () if is(name, "MAXLEN") => most = not_negative("MAXLEN")?,
            () => return Err(syntax_error()),
        }
    }
    let Some(items) = items(call, key)? else {
        let none = Reply::Array(Vec::new());
        return Ok(if count.is_some() { none } else { Reply::Nil });
    };
    let all = 0..items.len();
    let order: Vec<usize> = if rank < 0 {
        all.rev().collect()
    } else {
        all.collect()
    };
    let unlimited = |number: i64| match usize::try_from(number) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(number) => number,
    };
    let skipped = usize::try_from(rank.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let fitting = order.into_iter().take(unlimited(most));
    let fitting = fitting
        .filter(|place| items[*place] == words[0])
        .skip(skipped);
    let mut fitting = fitting.map(Reply::count);
    Ok(match count {
        Some(count) => Reply::Array(fitting.take(unlimited(count)).collect()),
        None => fitting.next().unwrap_or(Reply::Nil),
    })
}
