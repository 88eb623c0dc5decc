//! What the tests share: the program with a deadline, turns on Docker, homes
//! to break, and real servers.

mod cluster;
mod command;
mod docker;
mod home;
mod local;
mod observer;
mod ordinary_user;
mod promises;
mod read;
mod redis_connection;
mod resources;
mod results;
mod said;
mod servers;
mod session;
mod silent;
mod stranger;
mod turn;
mod wire;
mod xml;

pub use cluster::{OwnCluster, cluster_in, own_cluster};
pub use command::{Ended, Running, command, fencepost, images_lock, offline, start};
pub use docker::{Events, docker, docker_ok, owned_by};
pub use home::{Home, copy_folder};
pub use local::{Local, local, local_alone, local_with_databases};
pub use observer::Observer;
pub use ordinary_user::{OrdinaryUser, SOCKET};
pub use promises::{contenders_exclude_each_other, times, tokens_only_grow};
pub use read::{await_row, json, rows, until};
pub use redis_connection::connection_to;
pub use resources::{
    OwnS3, S3Process, a_write, decides_as_the_http_resource, http_resource,
    one_of_many_writers_at_a_time_decides, resource_client,
};
pub use results::{Results, good, real};
pub use said::Said;
pub use servers::{
    Server, consul_address, dynamodb_address, etcd_servers, free_port, mariadb_address, own_consul,
    own_durable_redis, own_dynamodb, own_etcd, own_fast_etcd, own_mariadb, own_moto, own_postgres,
    own_redis, own_small_etcd, own_zookeeper, postgres_address, redis_address, redis_container,
    redlock_servers, start_together, zookeeper_servers,
};
pub use session::{once, tmp};
pub use silent::Silent;
pub use stranger::stranger;
pub use turn::{Turn, docker_alone, docker_shared, machine_shared, skip};
pub use wire::Wire;
pub use xml::{all, junit};

use fencepost::model::Name;
use std::path::PathBuf;

pub const SCENARIO: &str = "pause-gt-ttl";

pub fn named(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// The project's folder.
pub fn project() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A folder under target/ that belongs to one test and starts empty.
pub fn fresh_folder(name: &str) -> PathBuf {
    let folder = tmp().join(name);
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            panic!("{}: {error}", folder.display())
        }
        _ => std::fs::create_dir_all(&folder).expect("a folder under target/"),
    }
    folder
}
