use crate::model::{Backend, FenceFloor, KeyTemplate, LockOptions, ReleaseStyle, WaitPolicy};
use crate::scenario::values::{choice, duration};
use crate::yaml::{At, Fields, Node, Place, Report};
use std::time::Duration;

#[derive(Clone)]
pub struct DraftLock {
    pub backend: Option<At<Backend>>,
    pub ttl: Option<At<Duration>>,
    pub wait: Option<At<WaitPolicy>>,
    pub release: Option<At<ReleaseStyle>>,
    pub fence_floor: Option<At<FenceFloor>>,
    pub key: Option<At<KeyTemplate>>,
}

impl DraftLock {
    /// None where there is no backend, and that has been reported.
    pub fn options(&self) -> Option<LockOptions> {
        Some(LockOptions {
            backend: self.backend.as_ref()?.value,
            wait: self
                .wait
                .as_ref()
                .map_or_else(Default::default, |at| at.value),
            release: self
                .release
                .as_ref()
                .map_or_else(Default::default, |at| at.value),
            fence_floor: self
                .fence_floor
                .as_ref()
                .map_or_else(Default::default, |at| at.value),
        })
    }

    /// Where the field of this name stands.
    pub fn place_of(&self, field: &str) -> Option<Place> {
        match field {
            "wait" => self.wait.as_ref().map(|at| at.place),
            "release" => self.release.as_ref().map(|at| at.place),
            "fence_floor" => self.fence_floor.as_ref().map(|at| at.place),
            "key" => self.key.as_ref().map(|at| at.place),
            _ => None,
        }
    }
}

pub fn read(node: &Node, report: &mut Report) -> Option<DraftLock> {
    let mut fields = Fields::of(node, "lock", report)?;
    let backend = fields.required("backend", report);
    let ttl = fields.required("ttl", report);
    let wait = fields.optional("wait");
    let release = fields.optional("release");
    let fence_floor = fields.optional("fence_floor");
    let key = fields.read("key", report, read_key);
    fields.finish(report);
    Some(DraftLock {
        backend: backend.and_then(|node| choice(node, "backend", &Backend::ALL, report)),
        ttl: ttl.and_then(|node| duration(node, report)),
        wait: wait.and_then(|node| choice(node, "way to wait", &WaitPolicy::ALL, report)),
        release: release.and_then(|node| choice(node, "release", &ReleaseStyle::ALL, report)),
        fence_floor: fence_floor
            .and_then(|node| choice(node, "fence floor", &FenceFloor::ALL, report)),
        key,
    })
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
