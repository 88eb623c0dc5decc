pub mod clock;
pub mod model;
