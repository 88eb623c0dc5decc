//! Plain data without I/O: everything that the judge reads and reports, and spans of time.

mod resource_kind;
mod span;

pub use fencepost_judge::model::*;
pub use fencing_lock::{FenceFloor, WaitPolicy, without_password};
pub use resource_kind::ResourceKind;
pub use span::Span;
