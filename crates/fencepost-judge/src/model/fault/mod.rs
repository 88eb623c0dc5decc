//! Faults: their kinds, the facts about each kind, and their records.

mod asked;
mod clock_name;
mod kind;
mod legacy;
mod link;
mod reason;
mod row;

pub use asked::*;
pub use clock_name::*;
pub use kind::*;
pub use link::*;
pub use reason::*;
pub use row::*;
