pub mod checker;
pub mod clock;
pub mod model;
