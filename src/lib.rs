pub mod clock;
pub mod model;
pub mod resource;
