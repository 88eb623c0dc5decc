pub mod clock;
pub mod cluster;
pub mod model;
pub mod progress;
pub mod resource;
pub mod scenario;
pub mod yaml;
