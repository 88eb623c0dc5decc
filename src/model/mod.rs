//! Plain data without I/O: everything that the judge reads and reports, spans of time, and the
//! servers that a scenario attaches to.

mod attach;
mod resource_kind;
mod span;
mod write_style;

pub use attach::{Attach, AttachedServer, Login, ServerPlace};
pub use fencepost_judge::model::*;
pub use fencing_lock::{FenceFloor, WaitPolicy, without_password};
pub use resource_kind::ResourceKind;
pub use span::Span;
pub use write_style::WriteStyle;

/// An observation, or why it proves nothing.
pub type Proof<T = ()> = Result<T, UnprovenReason>;
