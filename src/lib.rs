pub mod clock;
pub mod dlock;
pub mod model;
pub mod worker;
