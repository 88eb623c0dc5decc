pub mod clock;
pub mod cluster;
pub mod fault;
pub mod model;
pub mod progress;
pub mod resource;
pub mod scenario;
pub mod yaml;
