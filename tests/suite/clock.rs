//! Skewed clocks, seen by those who read them: Redis, etcd, and programs of
//! our own. Nothing else on the host may notice.
#![cfg(target_arch = "x86_64")]

mod containers;
mod errors;
mod kit;
mod own_process;
mod servers;
mod subject;
