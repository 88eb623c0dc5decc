use super::pipe::{End, Remembered, Ways, pipe};
use super::process::Process;
use crate::model::Name;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;
use toxiproxy_server::server::streams::StreamProxies;

/// The longest way of some bytes.
const LONGEST_WAY_MS: u64 = 2;
/// A packet that was lost is sent again after this time, and after twice as much each time it
/// is lost again.
const SENT_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// TCP does not wait for longer than this.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// Serves a client.
pub type Serve = Arc<dyn Fn(End) -> BoxFuture<'static, ()> + Send + Sync>;

/// The nodes, and the ways between them.
pub struct Network {
    hosts: Mutex<Hosts>,
    random: Mutex<fastrand::Rng>,
    /// Rings when packets pass again.
    passes: Notify,
}

#[derive(Default)]
struct Hosts {
    by_name: BTreeMap<Name, Host>,
    last_number: u16,
    /// The connections between nodes, the harness not being one.
    connections: Vec<Connection>,
}

struct Connection {
    nodes: [Name; 2],
    pipe: Remembered,
    /// A node was taken off the network while it was open, so it never leads anywhere again.
    is_cut: bool,
}

struct Host {
    ip: Ipv4Addr,
    is_off: bool,
    /// The share of its packets that get lost, and how many did.
    loss: Option<(u8, u64)>,
    ports: BTreeMap<u16, Listener>,
    /// The proxies that lead it to others.
    proxies: Option<(Arc<StreamProxies>, Arc<Process>)>,
}

impl Hosts {
    fn loses_everything(&self, node: &Name) -> bool {
        let host = self.by_name.get(node);
        host.and_then(|host| host.loss)
            .is_some_and(|(percent, _)| percent == 100)
    }

    /// Holds the connections that no bytes can pass, and lets the others go on.
    fn hold_connections(&mut self) {
        for it in &self.connections {
            let is_silent = it.nodes.iter().any(|node| self.loses_everything(node));
            it.pipe.hold(it.is_cut || is_silent);
        }
    }
}

#[derive(Clone)]
struct Listener {
    process: Arc<Process>,
    serve: Serve,
}

impl Network {
    pub fn new(seed: u64) -> Arc<Network> {
        Arc::new(Network {
            hosts: Mutex::default(),
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
            passes: Notify::new(),
        })
    }

    /// Puts a node on the network, or leaves it there.
    pub fn join(&self, node: &Name) -> Ipv4Addr {
        let mut hosts = self.hosts.lock();
        if let Some(host) = hosts.by_name.get(node) {
            return host.ip;
        }
        hosts.last_number += 1;
        let [high, low] = hosts.last_number.to_be_bytes();
        let ip = Ipv4Addr::new(10, 0, high, low);
        let host = Host {
            ip,
            is_off: false,
            loss: None,
            ports: BTreeMap::new(),
            proxies: None,
        };
        hosts.by_name.insert(node.clone(), host);
        ip
    }

    /// Serves clients at a port of a node, in a process of it.
    pub fn listen(&self, node: &Name, port: u16, process: &Arc<Process>, serve: Serve) {
        self.join(node);
        if let Some(host) = self.hosts.lock().by_name.get_mut(node) {
            let process = process.clone();
            host.ports.insert(port, Listener { process, serve });
        }
    }

    /// Leads everything that a node connects to through these proxies.
    pub fn lead(&self, node: &Name, proxies: &Arc<StreamProxies>, process: &Arc<Process>) {
        self.join(node);
        if let Some(host) = self.hosts.lock().by_name.get_mut(node) {
            host.proxies = Some((proxies.clone(), process.clone()));
        }
    }

    /// Returns the address of a node, if it is on the network.
    pub fn address(&self, node: &Name) -> Option<Ipv4Addr> {
        let hosts = self.hosts.lock();
        let host = hosts.by_name.get(node).filter(|host| !host.is_off);
        host.map(|host| host.ip)
    }

    /// Connects a process of a node to a server, through the proxies of the node.
    pub async fn dial(self: &Arc<Network>, from: &Name, host: &str, port: u16) -> io::Result<End> {
        let proxies = {
            let hosts = self.hosts.lock();
            let source = hosts.by_name.get(from);
            source.and_then(|source| source.proxies.clone())
        };
        if let Some((proxies, process)) = proxies
            && let Some(proxy) = proxies.at(&format!("0.0.0.0:{port}"))
        {
            sleep(self.way()).await;
            if process.exit_code().is_some() || !proxy.is_enabled() {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let [near, far] = pipe(self.ways(None));
            let (network, from) = (self.clone(), from.clone());
            tokio::spawn(process.task(async move {
                let dial = |upstream: String| async move {
                    let (host, port) = upstream.rsplit_once(':').unwrap_or_default();
                    let port = port.parse().map_err(io::Error::other)?;
                    network.connect(Some(&from), host, port).await
                };
                // Whatever ended it, the client sees the end of the connection.
                let _ended = proxy.carry(far, dial).await;
            }));
            return Ok(near);
        }
        self.connect(Some(from), host, port).await
    }

    /// Connects directly: a node, or the harness, which no fault of a network affects.
    pub async fn connect(
        self: &Arc<Network>,
        from: Option<&Name>,
        host: &str,
        port: u16,
    ) -> io::Result<End> {
        let to = self.find(host).ok_or(io::ErrorKind::NotFound)?;
        sleep(self.way()).await;
        if let Some(from) = from {
            self.until_packets_pass([from, &to]).await;
        }
        let listener = {
            let hosts = self.hosts.lock();
            let is_off = |name: &Name| hosts.by_name.get(name).is_some_and(|host| host.is_off);
            if is_off(&to) || from.is_some_and(is_off) {
                return Err(io::ErrorKind::HostUnreachable.into());
            }
            let host = hosts.by_name.get(&to);
            host.and_then(|host| host.ports.get(&port)).cloned()
        };
        let listener = listener.filter(|it| it.process.exit_code().is_none());
        let Listener { process, serve } = listener.ok_or(io::ErrorKind::ConnectionRefused)?;
        let [near, far] = pipe(self.ways(from.map(|from| [from.clone(), to.clone()])));
        if let Some(from) = from {
            self.remember([from, &to], &near);
        }
        tokio::spawn(process.task(serve(far)));
        Ok(near)
    }

    /// Forgets the nodes, once nobody connects to them any more.
    pub fn forget(&self) {
        // What this frees may look at the network.
        let forgotten = std::mem::take(&mut *self.hosts.lock());
        drop(forgotten);
    }

    /// Takes a node off the network. Its connections lead nowhere from then on, and nobody is
    /// told.
    pub fn disconnect(&self, node: &Name) {
        let mut hosts = self.hosts.lock();
        if let Some(host) = hosts.by_name.get_mut(node) {
            host.is_off = true;
        }
        for it in &mut hosts.connections {
            it.is_cut |= it.nodes.contains(node);
        }
        hosts.hold_connections();
    }

    pub fn reconnect(&self, node: &Name) {
        if let Some(host) = self.hosts.lock().by_name.get_mut(node) {
            host.is_off = false;
        }
    }

    /// Loses this share of the packets of a node; none at 0.
    pub fn lose(&self, node: &Name, percent: u8) {
        let mut hosts = self.hosts.lock();
        if let Some(host) = hosts.by_name.get_mut(node) {
            host.loss = (percent > 0).then_some((percent, 0));
        }
        hosts.hold_connections();
        drop(hosts);
        self.passes.notify_waiters();
    }

    /// Returns how many packets of a node were lost; None if it loses none.
    pub fn lost(&self, node: &Name) -> Option<u64> {
        let hosts = self.hosts.lock();
        let (_, lost) = hosts.by_name.get(node)?.loss?;
        Some(lost)
    }

    fn find(&self, host: &str) -> Option<Name> {
        let hosts = self.hosts.lock();
        let ip: Option<Ipv4Addr> = host.parse().ok();
        let mut all = hosts.by_name.iter();
        let found = all.find(|(name, it)| ip.map_or(name.as_str() == host, |ip| it.ip == ip));
        found.map(|(name, _)| name.clone())
    }

    fn remember(&self, nodes: [&Name; 2], end: &End) {
        let mut hosts = self.hosts.lock();
        hosts.connections.retain(|it| !it.pipe.is_over());
        hosts.connections.push(Connection {
            nodes: nodes.map(Name::clone),
            pipe: Remembered::of(end),
            is_cut: false,
        });
    }

    /// Waits while one of these nodes loses every packet.
    async fn until_packets_pass(&self, nodes: [&Name; 2]) {
        loop {
            let passes = self.passes.notified();
            let is_silent = {
                let mut hosts = self.hosts.lock();
                let silent = nodes.iter().filter(|node| {
                    let host = hosts.by_name.get_mut(**node);
                    let loss = host.and_then(|host| host.loss.as_mut());
                    loss.is_some_and(|(percent, lost)| {
                        *lost += u64::from(*percent == 100);
                        *percent == 100
                    })
                });
                silent.count() > 0
            };
            if !is_silent {
                return;
            }
            passes.await;
        }
    }

    fn way(&self) -> Duration {
        Duration::from_millis(self.random.lock().u64(..=LONGEST_WAY_MS))
    }

    /// Returns the ways between two nodes, or between anything else.
    fn ways(self: &Arc<Network>, between: Option<[Name; 2]>) -> Ways {
        let network = self.clone();
        Arc::new(move || {
            let delay = between.as_ref().map(|nodes| network.sent_again_for(nodes));
            network.way() + delay.unwrap_or_default()
        })
    }

    /// Returns for how long a packet is sent again and again until it is not lost.
    fn sent_again_for(&self, nodes: &[Name; 2]) -> Duration {
        let mut hosts = self.hosts.lock();
        let mut delay = Duration::ZERO;
        for node in nodes {
            let host = hosts.by_name.get_mut(node);
            // Where everything gets lost, connections are held.
            let loss = host.and_then(|host| host.loss.as_mut());
            let Some((percent @ 1..=99, lost)) = loss else {
                continue;
            };
            let mut again = SENT_AGAIN_AFTER;
            while self.random.lock().u8(0..100) < *percent && delay < LONGEST_WAIT {
                *lost += 1;
                delay += again;
                again *= 2;
            }
        }
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::timeout;

    /// Returns a network with the nodes a and b, and a connection from a to an echo at b.
    async fn connected() -> (Arc<Network>, End) {
        let network = Network::new(1);
        let b = Name::from("b");
        network.join(&"a".into());
        let process = Process::new(&b, 1, 1, &network);
        let echo: Serve = Arc::new(|mut end| {
            Box::pin(async move {
                while let Ok(byte) = end.read_u8().await {
                    if end.write_u8(byte).await.is_err() {
                        return;
                    }
                }
            })
        });
        network.listen(&b, 1, &process, echo);
        let end = network.connect(Some(&"a".into()), "b", 1).await.unwrap();
        (network, end)
    }

    async fn passes(end: &mut End) -> bool {
        end.write_u8(1).await.unwrap();
        timeout(Duration::from_secs(60), end.read_u8())
            .await
            .is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_one_fault_does_not_end_another() {
        let (network, mut end) = connected().await;
        assert!(passes(&mut end).await);
        let [a, b] = ["a", "b"].map(Name::from);
        network.lose(&a, 100);
        network.lose(&b, 100);
        network.lose(&a, 0);
        assert!(!passes(&mut end).await);
        network.lose(&b, 0);
        assert!(passes(&mut end).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_of_a_node_that_was_off_the_network_stays_silent() {
        let (network, mut end) = connected().await;
        let [a, b] = ["a", "b"].map(Name::from);
        network.disconnect(&b);
        network.lose(&a, 100);
        network.lose(&a, 0);
        assert!(!passes(&mut end).await);
        network.reconnect(&b);
        assert!(!passes(&mut end).await);
    }
}
