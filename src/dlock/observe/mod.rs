//! Bystanders at the lock servers: what each of them held, for `locks.jsonl`.

mod etcd;
mod etcd_rows;
mod layout;
mod redis;
mod redis_rows;

pub use etcd::observe_etcd;
pub use redis::observe_redis;

/// The name of an owner: as it is where it is text, and else its bytes in hex.
fn readable(owner: &[u8]) -> String {
    match std::str::from_utf8(owner) {
        Ok(text) => text.to_owned(),
        Err(_) => owner.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}
