//! The links between nodes, each through a proxy of its own.
//!
//! Every source has one Toxiproxy to itself, and reaches everything through it. So every pair
//! of source and destination can be cut apart from all others. In containers, the hosts file of
//! the source leads the names of the servers to the Toxiproxy, with the servers' own ports: no
//! program needs a different address, not even etcd's members.

use super::*;
use crate::cluster::topology::{Endpoint, Service};
use crate::cluster::{ProxyRoute, start_services};
use crate::model::{Link, LinkFault, LinkPattern, LinkScope, Streams};
use futures_util::future::try_join_all;
use std::net::SocketAddr;
use toxiproxy_server::{
    NewProxy, ProxyChange, Stream, Toxic, ToxiproxyApi, ToxiproxyClient, ToxiproxyError,
};

pub type Reach = BTreeMap<Name, Vec<Endpoint>>;

const CONTROL_PORT: u16 = 8474;
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);
const ASK_AGAIN: Duration = Duration::from_millis(20);

pub struct Links {
    sources: BTreeMap<Name, Source>,
}

struct Source {
    toxiproxy: Arc<dyn ToxiproxyApi>,
    /// The routes by destination: one for each port of it, the first of which is probed.
    ways: BTreeMap<Name, Vec<Way>>,
    /// The faults that keep a proxy from listening, by destination.
    refusals: Mutex<BTreeMap<Name, BTreeSet<u32>>>,
    /// The server that a link leads to, if it is not the destination in the link's name.
    led_to: Mutex<BTreeMap<Name, Name>>,
}

/// One proxy, and the route through it.
struct Way {
    proxy: String,
    route: ProxyRoute,
}

/// A link that a fault affects, and the streams of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grip {
    pub link: Link,
    pub streams: Vec<Stream>,
}

impl Links {
    /// Starts the proxies; the sources themselves are started after them.
    pub async fn start(
        cluster: &dyn Cluster,
        server: &Service,
        reach: &Reach,
        seed: u64,
    ) -> ClusterResult<Links> {
        let proxies: Vec<_> = reach
            .keys()
            .map(|name| {
                let mut node = server.node(&proxy_of(name));
                // The proxy draws jitter and toxicity from this seed.
                node.command.extend(["-seed".to_owned(), seed.to_string()]);
                node
            })
            .collect();
        start_services(cluster, &proxies).await?;
        let sources = reach.iter().map(async |(source, reached)| {
            let proxies = Source::start(cluster, source, reached).await?;
            Ok::<_, ClusterError>((source.clone(), proxies))
        });
        let sources = try_join_all(sources).await?.into_iter().collect();
        Ok(Links { sources })
    }

    /// Returns the names that lead to this source's own proxies.
    pub fn hosts_of(&self, source: &Name) -> BTreeMap<Name, SocketAddr> {
        let Some(source) = self.sources.get(source) else {
            return BTreeMap::new();
        };
        let ways = source.ways.iter();
        ways.filter_map(|(name, ways)| Some((name.clone(), ways.first()?.route.found_at)))
            .collect()
    }

    pub fn all(&self) -> Vec<Link> {
        let all = self.sources.iter().flat_map(|(from, source)| {
            source
                .ways
                .keys()
                .map(move |to| Link::new(from.clone(), to.clone()))
        });
        all.collect()
    }

    /// Returns the address that the source of a link dials.
    pub fn called(&self, link: &Link) -> Option<&str> {
        let ways = self.sources.get(&link.from)?.ways.get(&link.to)?;
        Some(&ways.first()?.route.called)
    }

    pub fn around(&self, node: &Name) -> Vec<Link> {
        let all = self.all().into_iter();
        all.filter(|link| link.from == *node || self.leads_to(link) == *node)
            .collect()
    }

    pub fn gripped_by(&self, fault: &LinkFault) -> Vec<Grip> {
        let streams = fault.streams();
        let all = self.all().into_iter();
        let gripped = all.filter_map(|link| {
            let streams = streams_of(&link, &self.leads_to(&link), &fault.scope, streams);
            (!streams.is_empty()).then_some(Grip { link, streams })
        });
        gripped.collect()
    }

    pub async fn put_on(&self, link: &Link, toxic: &Toxic) -> Proof {
        let source = self.source(link)?;
        for proxy in source.proxies(link) {
            let added = source.toxiproxy.add_toxic(proxy, toxic).await;
            added.map_err(failed)?;
        }
        Ok(())
    }

    /// Removes a toxic; it is fine if the toxic is gone already.
    pub async fn take_off(&self, link: &Link, toxic: &str) -> Proof {
        let source = self.source(link)?;
        for proxy in source.proxies(link) {
            match source.toxiproxy.remove_toxic(proxy, toxic).await {
                Err(error) if error.status() != Some(404) => return Err(failed(error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns whether a toxic of the fault with this name is there, on any port.
    pub async fn has_toxic(&self, link: &Link, name: &str) -> Proof<bool> {
        let source = self.source(link)?;
        let of_fault = format!("{name}-");
        for proxy in source.proxies(link) {
            let proxy = source.toxiproxy.proxy(proxy).await.map_err(failed)?;
            let toxics = proxy.toxics;
            if toxics.iter().any(|toxic| toxic.name.starts_with(&of_fault)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether nobody listens at the beginning of a link, on any port.
    pub async fn refuses(&self, link: &Link) -> Proof<bool> {
        let source = self.source(link)?;
        for proxy in source.proxies(link) {
            let proxy = source.toxiproxy.proxy(proxy).await.map_err(failed)?;
            if proxy.enabled {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub async fn refuse(&self, link: &Link, fault: u32) -> Proof {
        self.source(link)?
            .refusals
            .lock()
            .entry(link.to.clone())
            .or_default()
            .insert(fault);
        self.listen_where_nothing_refuses(link).await
    }

    pub async fn accept(&self, link: &Link, fault: u32) -> Proof {
        if let Some(refusals) = self.source(link)?.refusals.lock().get_mut(&link.to) {
            refusals.remove(&fault);
        }
        self.listen_where_nothing_refuses(link).await
    }

    async fn listen_where_nothing_refuses(&self, link: &Link) -> Proof {
        let source = self.source(link)?;
        let refused = |refusals: &BTreeSet<u32>| !refusals.is_empty();
        let refused = source.refusals.lock().get(&link.to).is_some_and(refused);
        let change = ProxyChange {
            enabled: Some(!refused),
            ..ProxyChange::default()
        };
        for proxy in source.proxies(link) {
            let changed = source.toxiproxy.update(proxy, &change).await;
            changed.map_err(failed)?;
        }
        Ok(())
    }

    /// Leads the link to another server from now on; this closes open connections.
    pub async fn lead_to(&self, cluster: &dyn Cluster, link: &Link, server: &Endpoint) -> Proof {
        let way = cluster.way(&proxy_of(&link.from), server).await?;
        let change = ProxyChange {
            upstream: Some(way.upstream),
            ..ProxyChange::default()
        };
        let source = self.source(link)?;
        let changed = source.toxiproxy.update(&link.to, &change).await;
        changed.map_err(failed)?;
        let mut led_to = source.led_to.lock();
        led_to.insert(link.to.clone(), server.node.clone());
        Ok(())
    }

    pub fn leads_to(&self, link: &Link) -> Name {
        let source = self.sources.get(&link.from);
        let led_to = source.and_then(|source| source.led_to.lock().get(&link.to).cloned());
        led_to.unwrap_or_else(|| link.to.clone())
    }

    fn source(&self, link: &Link) -> Proof<&Source> {
        let source = self.sources.get(&link.from);
        source.ok_or_else(|| UnprovenReason::UnknownLink { link: link.clone() })
    }
}

impl Source {
    async fn start(
        cluster: &dyn Cluster,
        source: &Name,
        reached: &[Endpoint],
    ) -> ClusterResult<Source> {
        let node = proxy_of(source);
        let failed = |error: ToxiproxyError| ClusterError::Failed {
            what: format!("set up the links of {source}"),
            reason: error.to_string(),
        };
        let toxiproxy = match cluster.played() {
            Some(played) => played.toxiproxy(&node)?,
            None => Arc::new(control(cluster, &node).await?.map_err(failed)?),
        };
        await_answer(toxiproxy.as_ref()).await.map_err(failed)?;
        let routes = reached.iter().map(async |server| {
            let route = cluster.way(&node, server).await?;
            Ok::<_, ClusterError>((server.clone(), route))
        });
        let routes = try_join_all(routes).await?;
        let proxies = proxies(&routes);
        toxiproxy.populate(&proxies).await.map_err(failed)?;
        let mut ways: BTreeMap<Name, Vec<Way>> = BTreeMap::new();
        for ((server, route), proxy) in routes.into_iter().zip(proxies) {
            let (proxy, of_node) = (proxy.name, ways.entry(server.node).or_default());
            of_node.push(Way { proxy, route });
        }
        Ok(Source {
            toxiproxy,
            ways,
            refusals: Mutex::default(),
            led_to: Mutex::default(),
        })
    }

    /// Returns the proxies that a link is made of.
    fn proxies(&self, link: &Link) -> impl Iterator<Item = &str> {
        let ways = self.ways.get(&link.to).into_iter().flatten();
        ways.map(|way| way.proxy.as_str())
    }
}

/// Returns the node name of a source's Toxiproxy.
pub fn proxy_of(source: &Name) -> Name {
    source.behind("toxiproxy")
}

/// Returns the proxies of one source, each named after its destination; all but the first of one
/// destination also after their port.
pub fn proxies(routes: &[(Endpoint, ProxyRoute)]) -> Vec<NewProxy> {
    let mut named = BTreeSet::new();
    let proxies = routes
        .iter()
        .map(|(Endpoint { node, port }, route)| NewProxy {
            name: match named.insert(node) {
                true => node.to_string(),
                false => format!("{node}-{port}"),
            },
            listen: route.listen.clone(),
            upstream: route.upstream.clone(),
            enabled: true,
        });
    proxies.collect()
}

/// Returns whether a fault affects a link of this source, before any link is led elsewhere.
pub fn gripped_from(source: &Name, reach: &Reach, fault: &LinkFault) -> bool {
    let reached = reach.get(source).into_iter().flatten();
    let mut links = reached.map(|server| Link::new(source.clone(), server.node.clone()));
    links.any(|link| !streams_of(&link, &link.to, &fault.scope, fault.streams()).is_empty())
}

/// Waits for the first answer: the original Toxiproxy says that it listens just before it does.
async fn await_answer(toxiproxy: &dyn ToxiproxyApi) -> Result<(), ToxiproxyError> {
    let give_up_at = Instant::now() + ANSWER_DEADLINE;
    loop {
        match toxiproxy.version().await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() >= give_up_at => return Err(error),
            Err(_) => tokio::time::sleep(ASK_AGAIN).await,
        }
    }
}

/// Connects to the Toxiproxy that controls the proxies of a node.
pub async fn control(
    cluster: &dyn Cluster,
    node: &Name,
) -> ClusterResult<Result<ToxiproxyClient, ToxiproxyError>> {
    let address = cluster.address(node, CONTROL_PORT).await?;
    Ok(ToxiproxyClient::new(
        &format!("http://{address}"),
        ANSWER_DEADLINE,
    ))
}

pub fn failed(error: ToxiproxyError) -> UnprovenReason {
    let error = error.to_string();
    UnprovenReason::Proxy { error }
}

/// Returns the streams of a link that a fault of this scope affects. A pattern matches the name
/// of the link; the other scopes match the server that the link leads to.
fn streams_of(link: &Link, leads_to: &Name, scope: &LinkScope, streams: Streams) -> Vec<Stream> {
    let all = |held: bool| match held {
        true => Stream::ALL.to_vec(),
        false => Vec::new(),
    };
    match scope {
        LinkScope::Between(groups) => {
            let group = |name: &Name| {
                let mut groups = groups.iter();
                groups.position(|group| group.iter().any(|member| member == name))
            };
            let (from, to) = (group(&link.from), group(leads_to));
            all(from.is_some() && to.is_some() && from != to)
        }
        LinkScope::Around(node) => all(link.from == *node || leads_to == node),
        LinkScope::Matching(patterns) => {
            let hit = |turn: fn(&LinkPattern) -> LinkPattern| {
                patterns.iter().any(|pattern| turn(pattern).matches(link))
            };
            let (there, back) = (hit(Clone::clone), hit(LinkPattern::turned));
            match streams {
                Streams::Both => all(there),
                Streams::Data => {
                    let there = there.then_some(Stream::Upstream);
                    there
                        .into_iter()
                        .chain(back.then_some(Stream::Downstream))
                        .collect()
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
