//! What a run has to say, each a function from an outcome to text or JSON.

pub mod json;
pub mod terminal;
