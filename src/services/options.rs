use super::Backend;
use crate::model::not_one_of;
use fencing_lock::{FenceFloor, WaitPolicy};
use std::time::Duration;
use strum::{Display, EnumString, VariantArray};

/// The reaction of a worker that knows that its lease is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Display, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case", parse_err_ty = String, parse_err_fn = not_one_of::<OnLost>)]
pub enum OnLost {
    /// Write nothing more in this round, as users should.
    #[default]
    Stop,
    /// Go on as if nothing had happened.
    Ignore,
}

/// The lock that workers use: the service, and how they wait for the lock and release it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockOptions {
    pub backend: Backend,
    pub wait: WaitPolicy,
    pub release: ReleaseStyle,
    pub fence_floor: FenceFloor,
    /// How long the server grants the lock to nobody after it ended the session of a holder.
    pub lock_delay: Duration,
}

/// A Consul takes a longer one for this.
const LONGEST_LOCK_DELAY: Duration = Duration::from_secs(60);

impl LockOptions {
    /// Returns the option that does not go with the others, and why.
    pub fn conflict(&self) -> Option<(&'static str, String)> {
        let backend = self.backend;
        let is_wait = self.wait != WaitPolicy::default();
        let is_release = self.release != ReleaseStyle::default();
        let is_floor = self.fence_floor != FenceFloor::default();
        if !backend.service().has_choices {
            if is_wait {
                let reason =
                    format!("`wait` is a choice of the redis backend; {backend} has one way");
                return Some(("wait", reason));
            }
            if is_release {
                let reason = format!("only the redis backend has an unsafe release, not {backend}");
                return Some(("release", reason));
            }
            if is_floor {
                let reason =
                    format!("`fence_floor` is a choice of the redis backend, not of {backend}");
                return Some(("fence_floor", reason));
            }
        }
        if !self.lock_delay.is_zero() && !backend.service().has_lock_delay {
            let reason =
                format!("`lock_delay` is a choice of the consul backend, not of {backend}");
            return Some(("lock_delay", reason));
        }
        if self.lock_delay > LONGEST_LOCK_DELAY {
            let reason = "a Consul delays for 60s at most".to_owned();
            return Some(("lock_delay", reason));
        }
        if is_release && self.wait.is_in_order() {
            let reason = "a release that only deletes hands over to nobody: use `wait: spin`";
            return Some(("release", reason.to_owned()));
        }
        None
    }
}

/// The way in which a holder releases a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Display, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case", parse_err_ty = String, parse_err_fn = not_one_of::<ReleaseStyle>)]
pub enum ReleaseStyle {
    /// In one step at the server: a holder can delete only its own lock.
    #[default]
    CompareAndDelete,
    /// In two steps, between which another worker may have been granted the lock.
    UnsafeGetThenDel,
}
