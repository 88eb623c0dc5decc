use super::numbers::number;
use super::*;

pub(super) const ALL: &[Command] = &[
    command("eval", -3, Place::NotInScript, |call| {
        let (keys, arguments) = keys_and_arguments(call)?;
        let hash = call.state.load(call.key())?;
        call.state.eval(call.client, &hash, keys, arguments)
    }),
    command("evalsha", -3, Place::NotInScript, |call| {
        let (keys, arguments) = keys_and_arguments(call)?;
        let hash = String::from_utf8_lossy(call.key()).to_ascii_lowercase();
        call.state.eval(call.client, &hash, keys, arguments)
    }),
    command("script|load", 3, Place::NotInScript, |call| {
        let hash = call.state.load(&call.words[2])?;
        Ok(Reply::Bulk(hash.into_bytes()))
    }),
    command("script|exists", -3, Place::NotInScript, exists),
    command("script|flush", -2, Place::NotInScript, flush),
];

fn keys_and_arguments<'a>(call: &Call<'a>) -> Result<(&'a [Bytes], &'a [Bytes]), Reply> {
    let words = call.arguments();
    let count = number(&words[0])?;
    let count =
        usize::try_from(count).map_err(|_| Reply::error("ERR Number of keys can't be negative"))?;
    let too_many = || Reply::error("ERR Number of keys can't be greater than number of args");
    words[1..].split_at_checked(count).ok_or_else(too_many)
}

fn exists(call: &mut Call<'_>) -> Answer {
    let known = |hash: &Bytes| {
        let hash = String::from_utf8_lossy(hash).to_ascii_lowercase();
        Reply::flag(call.state.scripts.contains_key(&hash))
    };
    Ok(Reply::Array(call.arguments().iter().map(known).collect()))
}

fn flush(call: &mut Call<'_>) -> Answer {
    match call.arguments() {
        [] => {}
        [how] if is(how, "ASYNC") || is(how, "SYNC") => {}
        _ => {
            let why = "ERR SCRIPT FLUSH only support SYNC|ASYNC option";
            return Err(Reply::error(why));
        }
    }
    call.state.scripts.clear();
    Ok(Reply::ok())
}
