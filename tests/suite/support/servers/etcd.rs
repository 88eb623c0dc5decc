use super::port::free_port;
use super::shared::{Shared, share};
use super::{Plan, Server, launch};
use std::sync::atomic::{AtomicU32, Ordering};

pub static MEMBERS: Shared = Shared::new("etcd");

/// Returns a cluster of three etcd members. Take a turn on Docker first; to stop or freeze a
/// member, it has to be `docker_alone`. Without its leader, the cluster needs one to two
/// seconds to elect another.
pub fn etcd_servers() -> &'static [Server] {
    share(&MEMBERS, || {
        let members = ["etcd-1", "etcd-2", "etcd-3"].map(Member::named);
        let all = members.each_ref().map(Member::known_as).join(",");
        members.map(|member| member.plan(&all)).into()
    })
}

/// Starts a new etcd of one member for one test, which is removed when dropped. Take a turn on
/// Docker first.
pub fn own_etcd() -> Server {
    own(&[])
}

/// Does the same as [`own_etcd`], with a database that cannot grow beyond this size.
pub fn own_small_etcd(quota_bytes: u64) -> Server {
    own(&[format!("--quota-backend-bytes={quota_bytes}")])
}

/// Does the same as [`own_etcd`], with a disk that nobody waits for.
pub fn own_fast_etcd() -> Server {
    own(&["--unsafe-no-fsync".to_owned()])
}

fn own(flags: &[String]) -> Server {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let member = Member::named(&format!("own-etcd-{number}"));
    let all = member.known_as();
    let mut plan = member.plan(&all);
    plan.command.extend_from_slice(flags);
    let mut servers = launch([plan]);
    servers.remove(0)
}

struct Member {
    name: String,
    peers: String,
    clients: String,
}

impl Member {
    fn named(name: &str) -> Member {
        Member {
            name: name.to_owned(),
            peers: format!("http://127.0.0.1:{}", free_port()),
            clients: format!("127.0.0.1:{}", free_port()),
        }
    }

    fn known_as(&self) -> String {
        format!("{}={}", self.name, self.peers)
    }

    fn plan(self, all: &str) -> Plan {
        let Member {
            name,
            peers,
            clients,
        } = self;
        let command = [
            "etcd".to_owned(),
            format!("--name={name}"),
            "--data-dir=/data".to_owned(),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--listen-client-urls=http://{clients}"),
            format!("--advertise-client-urls=http://{clients}"),
            format!("--initial-cluster={all}"),
        ];
        Plan {
            container: format!("test-{name}-{}", std::process::id()),
            image: "fencepost/etcd:3.5",
            address: clients,
            command: command.into(),
            ready: "serving client traffic",
        }
    }
}
