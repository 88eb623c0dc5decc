use super::*;
use crate::pubsub::Names;

pub(super) const ALL: &[Command] = &[
    command("subscribe", -2, Place::Listening, never),
    command("unsubscribe", -1, Place::Listening, never),
    command("psubscribe", -2, Place::Listening, never),
    command("punsubscribe", -1, Place::Listening, never),
    command("publish", 3, Place::Anywhere, publish),
];

/// These have more than one answer, and [`run`] carries them out.
fn never(_: &mut Call<'_>) -> Answer {
    Err(Reply::error("ERR not a command with one answer"))
}

fn publish(call: &mut Call<'_>) -> Answer {
    let received = call.state.listeners.publish(call.key(), &call.words[2]);
    Ok(Reply::count(received))
}

/// Carries out a command that has an answer for each of its channels.
pub(super) fn run(call: &mut Call<'_>, name: &'static str) -> Option<Vec<Reply>> {
    let (names, is_new) = match name {
        "subscribe" => (Names::Channels, true),
        "psubscribe" => (Names::Patterns, true),
        "unsubscribe" => (Names::Channels, false),
        "punsubscribe" => (Names::Patterns, false),
        _ => return None,
    };
    let (client, listeners) = (call.client.id, &mut call.state.listeners);
    let mut channels = call.words[1..].to_vec();
    if channels.is_empty() {
        channels = listeners.of(client, names);
    }
    let reply = |channel: Reply, count: usize| {
        Reply::Push(vec![Reply::text(name), channel, Reply::count(count)])
    };
    if channels.is_empty() {
        return Some(vec![reply(Reply::Nil, listeners.count(client))]);
    }
    let replies = channels.into_iter().map(|channel| {
        match is_new {
            true => listeners.add(client, names, &channel),
            false => listeners.remove(client, names, &channel),
        }
        reply(Reply::Bulk(channel), listeners.count(client))
    });
    Some(replies.collect())
}
