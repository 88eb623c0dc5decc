//! The one integration executable. Docker's tests run one after another, each
//! against the real program; `support` has what they share.

mod backends;
mod bad_input;
mod compose;
mod corpus;
mod etcd_lock;
mod images;
mod interrupts;
mod killed;
mod mishaps;
mod pause_gt_ttl;
mod recorded;
mod redis_lock;
mod redlock_lock;
mod schema;
mod servers;
mod simulation;
mod support;
mod tidy_house;
mod topologies;
mod unread_output;
mod without_docker;
mod worker_rounds;
mod yaml_second_opinion;
