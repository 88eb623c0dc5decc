//! What runs have to say, each a function from an outcome to text or JSON.

pub mod diff;
pub mod differing;
mod grid;
pub mod html;
pub mod index;
pub mod json;
pub mod junit;
pub mod load;
mod lock;
pub mod look;
#[cfg(test)]
mod made_up;
mod mark;
pub mod markup;
pub mod plot;
pub mod recorded;
pub mod schema;
pub mod shown;
pub mod summary;
pub mod tally;
pub mod terminal;
mod units;
