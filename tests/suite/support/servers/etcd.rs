use super::port::free_port;
use super::shared::{Shared, share};
use super::{Plan, Server};

pub static MEMBERS: Shared = Shared::new();

/// A cluster of three etcd members. Take a turn on Docker first; to stop or
/// freeze one, that has to be `docker_alone`. Without its leader, the cluster
/// needs one to two seconds to elect another.
pub fn etcd_servers() -> &'static [Server] {
    share(&MEMBERS, || {
        let names = ["etcd-1", "etcd-2", "etcd-3"];
        let members = names.map(|name| Member {
            name,
            peers: format!("http://127.0.0.1:{}", free_port()),
            clients: format!("127.0.0.1:{}", free_port()),
        });
        let all = members.each_ref().map(Member::known_as).join(",");
        members.map(|member| member.plan(&all)).into()
    })
}

struct Member {
    name: &'static str,
    peers: String,
    clients: String,
}

impl Member {
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
