//! Translates a command line and an environment from a container to a process of this machine: with
//! other ports, with addresses in place of names, and with files in the node's own folder.

use super::confined::path_at;
use super::*;
use crate::cluster::COMMAND_IMAGE;

const EVERYWHERE: &str = "0.0.0.0";
const LOOPBACK: &str = "127.0.0.1";
/// The option for the host that a Toxiproxy listens at, which may also be a name.
const HOST: [&str; 2] = ["-host", "--host"];

pub struct NodeSurroundings<'a> {
    pub node: &'a NodeSpec,
    /// The folder in place of the container's root.
    pub root: &'a Path,
    pub known: &'a [Name],
    /// The names of its hosts can lead it elsewhere.
    pub is_led: bool,
    pub ports: &'a Ports,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct LocalCommand {
    pub command: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub folders: Vec<PathBuf>,
}

pub fn said_here(here: &NodeSurroundings<'_>) -> io::Result<LocalCommand> {
    let node = here.node;
    let mut said = LocalCommand::default();
    let is_given = node.image == COMMAND_IMAGE;
    if is_given {
        said.command.clone_from(&node.command);
    }
    let words = node.command.iter().filter(|_| !is_given);
    let mut words = words.peekable();
    let mut before = "";
    while let Some(word) = words.next() {
        let port = words.peek().and_then(|next| next.parse::<u16>().ok());
        let is_before_port = before.ends_with("-port") || before == "-p";
        let lone_port = word.parse().ok().filter(|_| is_before_port);
        if let (true, Some(port)) = (here.knows(word), port) {
            // For example `--replicaof redis 6379`.
            let address = here.address(word, port)?;
            said.command.push(address.ip().to_string());
            said.command.push(address.port().to_string());
            words.next();
        } else if let Some(port) = lone_port {
            let own = here.ports.of(&node.name, port)?;
            said.command.push(own.port().to_string());
        } else if let Some((flag, port)) = port_in(word) {
            let own = here.ports.of(&node.name, port)?;
            said.command.push(format!("{flag}{}", own.port()));
        } else if let Some(flag) = before_host(word, before) {
            said.command.push(format!("{flag}{LOOPBACK}"));
        } else if let Some((flag, path)) = path_in(word) {
            let path = here.root.join(path.trim_start_matches('/'));
            said.command.push(format!("{flag}{}", path.display()));
            said.folders.push(path);
        } else {
            said.command.push(here.with_addresses(word)?);
        }
        before = word;
    }
    for (name, value) in &node.environment {
        // A lock's key may well be called `redis:1`, and has to stay the same for all.
        let value = if node.addressed.contains(name) {
            here.with_addresses(value)?
        } else {
            value.clone()
        };
        said.environment.insert(name.clone(), value);
    }
    Ok(said)
}

/// Splits `--data-dir=/data` into `--data-dir=` and `/data`; also finds `/data` alone.
fn path_in(word: &str) -> Option<(&str, &str)> {
    path_at(word).map(|at| word.split_at(at))
}

/// Splits `--port=3306` into `--port=` and 3306.
fn port_in(word: &str) -> Option<(&str, u16)> {
    let (flag, value) = word.split_at(word.find('=')? + 1);
    let is_port = flag.starts_with('-') && flag.ends_with("port=");
    value
        .parse()
        .ok()
        .filter(|_| is_port)
        .map(|port| (flag, port))
}

/// Returns what comes before a host to listen at, in its word: nothing, or `-host=`.
fn before_host<'a>(word: &'a str, before: &str) -> Option<&'a str> {
    let (flag, host) = word.split_at(word.rfind('=').map_or(0, |at| at + 1));
    let is_named = HOST.contains(&before) || HOST.contains(&flag.trim_end_matches('='));
    (is_named || host == EVERYWHERE).then_some(flag)
}

impl NodeSurroundings<'_> {
    fn knows(&self, name: &str) -> bool {
        let mut known = self.known.iter();
        known.any(|known| known == name) || self.node.hosts.contains_key(name)
    }

    fn address(&self, name: &str, port: u16) -> io::Result<SocketAddr> {
        match self.node.hosts.get(name).filter(|_| self.is_led) {
            Some(led_to) => Ok(*led_to),
            None => self.ports.of(name, port),
        }
    }

    /// Replaces every `NAME:PORT` of a node with an address of this machine.
    fn with_addresses(&self, text: &str) -> io::Result<String> {
        let mut said = String::new();
        let mut rest = text;
        while let Some(colon) = rest.find(':') {
            let (before, after) = (&rest[..colon], &rest[colon + 1..]);
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
            let begins = before.rfind(|c| !is_name(c)).map_or(0, |at| at + 1);
            let name = &before[begins..];
            let ends = after.find(|c: char| !c.is_ascii_digit());
            let digits = &after[..ends.unwrap_or(after.len())];
            let address = match digits.parse() {
                Ok(port) if name == EVERYWHERE => Some(self.ports.of(&self.node.name, port)?),
                Ok(port) if self.knows(name) => Some(self.address(name, port)?),
                _ => None,
            };
            match address {
                Some(address) => {
                    said.push_str(&before[..begins]);
                    said.push_str(&address.to_string());
                    rest = &after[digits.len()..];
                }
                None => {
                    said.push_str(&rest[..=colon]);
                    rest = after;
                }
            }
        }
        said.push_str(rest);
        Ok(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        ports: Ports,
        hosts: BTreeMap<Name, SocketAddr>,
        is_led: bool,
    }

    impl Fixture {
        fn new(is_led: bool) -> Fixture {
            let led_to = SocketAddr::from(([127, 0, 0, 1], 9));
            Fixture {
                ports: Ports::default(),
                hosts: BTreeMap::from([("redis".into(), led_to), ("e2".into(), led_to)]),
                is_led,
            }
        }

        fn port(&self, node: &str, port: u16) -> u16 {
            self.ports.of(node, port).unwrap().port()
        }

        fn say(&self, command: &str, environment: &[(&str, &str)]) -> LocalCommand {
            let environment = environment.iter();
            let environment =
                environment.map(|(name, value)| (name.to_string(), value.to_string()));
            let command = command.split(' ').map(str::to_owned).collect();
            let node = NodeSpec {
                environment: environment.collect(),
                addressed: ["FENCEPOST_ENDPOINTS", "FENCEPOST_RESOURCE", "EMPTY"]
                    .map(str::to_owned)
                    .into(),
                hosts: self.hosts.clone(),
                ..NodeSpec::new("e1".into(), "", command)
            };
            let here = NodeSurroundings {
                node: &node,
                root: Path::new("/run/e1"),
                known: &["e1", "e2"].map(Name::from),
                is_led: self.is_led,
                ports: &self.ports,
            };
            said_here(&here).unwrap()
        }
    }

    #[test]
    fn a_redis_listens_at_its_own_port_and_follows_over_its_link() {
        let told = Fixture::new(true);
        let said = told.say(
            "redis-server --port 6379 --bind 0.0.0.0 --save  --dir /var/lib/redis --replicaof redis 6379 --delay 0",
            &[],
        );
        let port = told.port("e1", 6379);
        let wanted = format!(
            "redis-server --port {port} --bind 127.0.0.1 --save  --dir /run/e1/var/lib/redis --replicaof 127.0.0.1 9 --delay 0"
        );
        assert_eq!(said.command.join(" "), wanted);
        assert_eq!(said.folders, [Path::new("/run/e1/var/lib/redis")]);
    }

    #[test]
    fn members_that_know_each_other_by_one_address_are_not_led() {
        let told = Fixture::new(false);
        let said = told.say(
            "etcd --name=e1 --data-dir=/data --listen-peer-urls=http://0.0.0.0:2381 --initial-cluster=e1=http://e1:2381,e2=http://e2:2382",
            &[],
        );
        let (own, other) = (told.port("e1", 2381), told.port("e2", 2382));
        let wanted = format!(
            "etcd --name=e1 --data-dir=/run/e1/data --listen-peer-urls=http://127.0.0.1:{own} --initial-cluster=e1=http://127.0.0.1:{own},e2=http://127.0.0.1:{other}"
        );
        assert_eq!(said.command.join(" "), wanted);
    }

    #[test]
    fn a_database_listens_at_its_own_port_and_keeps_its_data_in_its_folder() {
        let told = Fixture::new(true);
        let port = told.port("e1", 5432);
        for (command, wanted) in [
            (
                "postgres -D /data -p 5432 -h 0.0.0.0 -c a=5432",
                format!("postgres -D /run/e1/data -p {port} -h 127.0.0.1 -c a=5432"),
            ),
            (
                "mariadbd --datadir=/data --bind-address=0.0.0.0 --port=5432 --socket=socket",
                format!(
                    "mariadbd --datadir=/run/e1/data --bind-address=127.0.0.1 --port={port} --socket=socket"
                ),
            ),
        ] {
            let said = told.say(command, &[]);
            assert_eq!(said.command.join(" "), wanted);
            assert_eq!(said.folders, [Path::new("/run/e1/data")]);
        }
    }

    #[test]
    fn a_proxy_listens_on_loopback_whatever_its_host_is_called() {
        let told = Fixture::new(true);
        for host in [
            "-host 0.0.0.0",
            "-host=0.0.0.0",
            "--host=::",
            "-host somewhere",
        ] {
            let said = told.say(&format!("toxiproxy {host} -seed 1"), &[]).command;
            let said = said.join(" ").replace('=', " ").replace("--", "-");
            assert_eq!(said, "toxiproxy -host 127.0.0.1 -seed 1", "{host}");
        }
    }

    #[test]
    fn a_worker_is_told_where_its_proxies_are_and_nothing_else_changes() {
        let told = Fixture::new(true);
        let said = told.say(
            "worker",
            &[
                ("FENCEPOST_ENDPOINTS", "redis:6379,e2:2372"),
                ("FENCEPOST_RESOURCE", "http://redis:8080/x"),
                ("FENCEPOST_KEY", "redis:1"),
                ("EMPTY", ""),
            ],
        );
        let value = |name: &str| said.environment[name].as_str();
        assert_eq!(value("FENCEPOST_ENDPOINTS"), "127.0.0.1:9,127.0.0.1:9");
        assert_eq!(value("FENCEPOST_RESOURCE"), "http://127.0.0.1:9/x");
        assert_eq!(value("FENCEPOST_KEY"), "redis:1", "the same for all");
        assert_eq!(value("EMPTY"), "");
        assert_eq!(said.command, ["worker"]);
    }
}
