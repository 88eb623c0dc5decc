//! Plain data without I/O: everything that the judge reads and reports, and spans of time.

mod span;

pub use fencepost_judge::model::*;
pub use fencing_lock::{FenceFloor, WaitPolicy, without_password};
pub use span::Span;
