//! Bystanders at the lock servers: what each of them held, for `locks.jsonl`.

mod etcd;
mod etcd_rows;
mod redis;
mod redis_rows;

pub use etcd::observe_etcd;
pub use redis::observe_redis;
