//! A made-up log, row by row as the resource would have written it.

use fencepost::model::{BodyHash, FencingToken, LogRow, RowOutcome, RowValue};

pub const KEYS: usize = 1_000;

/// The latest hold of a key and how far its writes have come.
#[derive(Clone, Default)]
struct Hold {
    token: u64,
    owner: String,
    writes: u64,
    writes_left: u64,
    /// Of the key's latest row that was accepted.
    position: u64,
    /// The hold before: the one whose writes come too late.
    owner_before: String,
}

pub fn jsonl(rows: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(42);
    let mut holds = vec![Hold::default(); KEYS];
    let mut text = Vec::new();
    for seq in 1..=rows as u64 {
        let key = random.usize(..KEYS);
        let row = next_row(seq, key, &mut holds[key], &mut random);
        serde_json::to_writer(&mut text, &row).expect("rows are plain data");
        text.push(b'\n');
    }
    text
}

fn next_row(seq: u64, key: usize, hold: &mut Hold, random: &mut fastrand::Rng) -> LogRow {
    let mut row = LogRow {
        seq,
        at_ns: 1_134_449_020_655 + seq * 1_000,
        key: format!("account-{key}"),
        outcome: RowOutcome::Rejected,
        token: None,
        token_seq: 0,
        seen: (hold.token > 0).then_some(FencingToken(hold.token)),
        owner: None,
        based_on: Some(hold.position),
        body: None,
        value: None,
    };
    if hold.token > 1 && random.u32(..50) == 0 {
        let body = body(key, seq, hold.token - 1);
        row.token = Some(FencingToken(hold.token - 1));
        row.token_seq = 9;
        row.owner = Some(hold.owner_before.clone());
        row.body = Some(BodyHash::of(body.as_bytes()));
        return row;
    }
    if hold.writes_left == 0 {
        hold.token += 1;
        hold.owner_before = std::mem::replace(&mut hold.owner, owner(random));
        hold.writes = 0;
        hold.writes_left = random.u64(1..=4);
    }
    let body = body(key, seq, hold.token);
    row.outcome = RowOutcome::Accepted;
    row.token = Some(FencingToken(hold.token));
    row.token_seq = hold.writes;
    row.owner = Some(hold.owner.clone());
    row.body = Some(BodyHash::of(body.as_bytes()));
    row.value = Some(RowValue::Text(body));
    hold.writes += 1;
    hold.writes_left -= 1;
    hold.position = seq;
    row
}

/// As our own worker writes it.
fn body(key: usize, count: u64, token: u64) -> String {
    format!(r#"{{"by":"x-{key}","count":{count},"token":{token}}}"#)
}

/// As a UUID is written.
fn owner(random: &mut fastrand::Rng) -> String {
    let (high, low) = (random.u64(..), random.u64(..));
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff,
    )
}
