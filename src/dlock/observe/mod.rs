//! Bystanders at the lock servers: what each of them held, for `locks.jsonl`.

mod redis;
mod redis_rows;

pub use redis::observe_redis;
