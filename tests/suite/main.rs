//! The one integration executable. Docker's tests run one after another, each
//! against the real program; `support` has what they share.

mod backends;
mod bad_input;
mod clock;
mod cluster;
mod compose;
mod corpus;
mod dashboard;
mod diff;
mod etcd_lock;
mod faults;
mod formats;
mod images;
mod interrupts;
mod killed;
mod library;
mod load_commands;
mod load_contend;
mod load_keys;
mod many_runs;
mod mishaps;
#[cfg(debug_assertions)]
mod mutants;
mod pause_gt_ttl;
mod playground;
mod proxies;
mod recorded;
mod redis_lock;
mod redis_py_worker;
mod redlock_lock;
mod schema;
mod servers;
mod shells;
mod simulation;
mod support;
mod tidy_house;
mod timelines;
mod topologies;
mod toxiproxy;
mod unread_output;
mod without_docker;
mod worker_rounds;
mod yaml_second_opinion;
