//! Every fault on real containers: it is seen to bite, and seen to be gone. And
//! the same once more with a nemesis that asks and does nothing: none of that
//! may count.

mod consul;
mod databases;
mod dynamodb;
mod etcd;
mod playground;
mod redis;
mod replica;
