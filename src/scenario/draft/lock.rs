use super::*;
use crate::model::{FenceFloor, WaitPolicy};
use crate::scenario::form::{choice, duration};
use crate::services::{Backend, KeyTemplate, LockOptions, ReleaseStyle};

fields! {
    /// The lock of a scenario, or of a worker.
    pub struct DraftLock {
        /// the lock service: `redis`, `redlock`, `etcd`, `postgres-lease` and others; docs/locks.md
        /// describes each. The topology has to have its servers
        backend: At<Backend> = choice("backend", Backend::ALL), required;
        /// how long a grant lives; with etcd whole seconds, at least 2; with
        /// ZooKeeper 500ms to 60s
        ttl: At<Duration> = duration(), required;
        /// of `redis`: `spin`, `notify` or `queue`
        wait: At<WaitPolicy> = choice("way to wait", &WaitPolicy::ALL), default(WaitPolicy::default());
        /// of `redis`: `compare-and-delete`, or `unsafe-get-then-del`, which can free
        /// somebody else's lock
        release: At<ReleaseStyle> = choice("release", ReleaseStyle::VARIANTS), default(ReleaseStyle::default());
        /// of `redis`: `server-clock` keeps tokens growing after the counter was lost
        fence_floor: At<FenceFloor> = choice("fence floor", &FenceFloor::ALL), default(FenceFloor::default());
        /// of `consul`: how long the server grants the lock to nobody after it ended the session
        /// of a holder, at most 60s
        lock_delay: At<Duration> = duration(), default(Duration::ZERO);
        /// how the library of a worker image names the key of its lock, with `{key}` for the
        /// worker's key: `"/locks/{key}"`. The bystanders at the lock servers watch these
        /// keys, and the worker gets the name as `FENCEPOST_LOCK_KEY`
        key: At<KeyTemplate> = key(), without("`lock:{key}` (Redis), `/locks/{key}/…` (etcd), `locks/{key}` (Consul)");
    }
}

impl DraftLock {
    pub fn form() -> impl Form<DraftLock> {
        (
            |node: &Node, report: &mut Report| DraftLock::read(node, "lock", report),
            || to("lock"),
        )
    }

    /// Returns None if there is no backend, which has been reported.
    pub fn options(&self) -> Option<LockOptions> {
        Some(LockOptions {
            backend: self.backend.as_ref()?.value,
            wait: self.wait(),
            release: self.release(),
            fence_floor: self.fence_floor(),
            lock_delay: self.lock_delay(),
        })
    }
}

fn key() -> impl Form<At<KeyTemplate>> {
    let schema = || {
        json!({
            "type": "string",
            "maxLength": KeyTemplate::MOST_BYTES,
            "pattern": r"\{key\}"
        })
    };
    (read_key, schema)
}

fn read_key(node: &Node, report: &mut Report) -> Option<At<KeyTemplate>> {
    let At { place, value } = node.text("the name of a lock's key", report)?;
    let template = KeyTemplate::parse(&value);
    if template.is_none() {
        let message = format!(
            "the name of a lock's key has 1 to {} bytes without control characters, and `{{key}}` in it once: \"/locks/{{key}}\"",
            KeyTemplate::MOST_BYTES
        );
        report.add(place, message);
    }
    template.map(|value| At { place, value })
}
