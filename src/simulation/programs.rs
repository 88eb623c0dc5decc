//! The programs that the services of a simulated cluster run.

use super::etcd::SimulatedEtcd;
use super::memory;
use super::pipe::End;
use super::process::{Process, Surroundings};
use crate::cluster::{ClusterError, ClusterResult, NodeSpec};
use crate::model::{Fence, LockEvent, Name};
use crate::resource::PlayedResource;
use crate::services::{KeyTemplate, RedisBystander};
use fencing_lock::Env;
use memory_lock_server::LockServer;
use sha2::{Digest, Sha256};
use simulated_redis::{Data, Redis, Start};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use toxiproxy_server::server::streams::StreamProxies;

/// What a service is, and what it has stored.
#[derive(Clone)]
pub enum Program {
    Redis(SimulatedRedis),
    Etcd(SimulatedEtcd),
    Memory(LockServer),
    Resource(PlayedResource),
    Toxiproxy(Arc<StreamProxies>),
}

#[derive(Clone)]
pub struct SimulatedRedis {
    redis: Redis,
    /// It has every write on disk before it answers.
    is_durable: bool,
    replica_of: Option<(String, u16)>,
}

/// The kinds of programs, by their images and commands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Redis,
    Etcd,
    Memory,
    Resource,
    Toxiproxy,
    Worker,
}

/// A replica that has lost its primary tries again after this time.
const TRY_AGAIN: Duration = Duration::from_secs(1);

impl Kind {
    /// Returns what a node runs; None if that is not simulated.
    pub fn of(node: &NodeSpec) -> Option<Kind> {
        let image = node.image.strip_prefix("fencepost/")?;
        let (image, _version) = image.split_once(':')?;
        match (image, node.command.first().map(String::as_str)) {
            ("redis", _) => Some(Kind::Redis),
            ("etcd", _) => Some(Kind::Etcd),
            ("self", Some("lock-server")) => Some(Kind::Memory),
            ("self", Some("resource")) => Some(Kind::Resource),
            ("self", Some("toxiproxy")) => Some(Kind::Toxiproxy),
            ("self", Some("worker")) => Some(Kind::Worker),
            _ => None,
        }
    }
}

impl Program {
    /// Makes what a node runs, with nothing stored yet.
    pub fn new(node: &NodeSpec, fence: Fence) -> ClusterResult<Program> {
        match Kind::of(node) {
            Some(Kind::Redis) => Ok(Program::Redis(SimulatedRedis::new(node))),
            Some(Kind::Etcd) => Ok(Program::Etcd(SimulatedEtcd::new(node)?)),
            Some(Kind::Memory) => Ok(Program::Memory(LockServer::default())),
            Some(Kind::Resource) => {
                let resource = PlayedResource::new(fence);
                #[cfg(debug_assertions)]
                if let Some(name) = node.environment.get("FENCEPOST_MUTANT") {
                    let what = || format!("make {} misbehave as {name}", node.name);
                    let unknown = |_| ClusterError::NotHere { what: what() };
                    let mutant = name.parse().map_err(unknown)?;
                    resource.misbehave(Some(mutant));
                }
                Ok(Program::Resource(resource))
            }
            Some(Kind::Toxiproxy) => {
                let seed = value_of(node, "-seed").and_then(|text| text.parse().ok());
                let proxies = StreamProxies::new(seed.unwrap_or_default());
                Ok(Program::Toxiproxy(Arc::new(proxies)))
            }
            Some(Kind::Worker) | None => Err(ClusterError::NotHere {
                what: format!("start {}", node.name),
            }),
        }
    }

    /// Starts it in a process.
    pub fn start(&self, node: &NodeSpec, process: &Arc<Process>) {
        match self {
            Program::Redis(redis) => redis.start(node, process),
            Program::Etcd(etcd) => etcd.start(node, process),
            Program::Memory(server) => memory::start(server, node, process),
            Program::Resource(resource) => {
                resource.start_again();
                let resource = resource.clone();
                serve(node, process, move |end| {
                    let resource = resource.clone();
                    async move { drop(resource.serve(end).await) }
                });
            }
            Program::Toxiproxy(proxies) => {
                let led = node.name.as_str().strip_prefix("toxiproxy-");
                if let Some(Ok(led)) = led.map(Name::new) {
                    process.network().lead(&led, proxies, process);
                }
            }
        }
    }

    /// Waits until it would say this.
    pub async fn said(&self, text: &str) {
        match self {
            Program::Redis(redis) => redis.redis.synced().await,
            Program::Etcd(etcd) => etcd.said(text).await,
            Program::Memory(_) | Program::Resource(_) | Program::Toxiproxy(_) => {}
        }
    }

    /// Reports what happens to locks here, as an observer would. Returns whether there are any.
    pub fn observe(&self, node: &str, observers: &Observers) -> bool {
        let redis = match self {
            Program::Redis(SimulatedRedis { redis, .. }) => redis,
            Program::Etcd(etcd) => {
                etcd.observe(node, observers);
                return true;
            }
            Program::Memory(server) => {
                memory::observe(server, node, observers.record.clone());
                return true;
            }
            Program::Resource(_) | Program::Toxiproxy(_) => return false,
        };
        let bystander = |keys: &Option<KeyTemplate>| RedisBystander::new(node, keys.as_ref());
        let mut bystanders: Vec<RedisBystander> = observers.keys.iter().map(bystander).collect();
        let record = observers.record.clone();
        redis.watch(move |changes, look| {
            let text = |key: &str| look.text(0, key.as_bytes()).map(<[u8]>::to_vec);
            for bystander in &mut bystanders {
                let own = changes.iter().filter(|change| change.db == 0);
                let own = own.filter_map(|it| Some((str::from_utf8(&it.key).ok()?, &*it.event)));
                let rows = bystander.changed(own, text);
                rows.into_iter().for_each(&*record);
            }
        });
        true
    }
}

/// Receives rows of `locks.jsonl`.
pub type Record = Arc<dyn Fn(LockEvent) + Send + Sync>;

/// Those who observe one server.
#[derive(Clone)]
pub struct Observers {
    /// The keys of each; None for this program's own.
    pub keys: Vec<Option<KeyTemplate>>,
    pub record: Record,
}

impl SimulatedRedis {
    fn new(node: &NodeSpec) -> SimulatedRedis {
        let replica_of = node.command.iter().position(|word| word == "--replicaof");
        let primary = replica_of.and_then(|at| node.command.get(at + 1..at + 3));
        SimulatedRedis {
            redis: Redis::new(|| Duration::ZERO),
            is_durable: value_of(node, "--appendonly").is_some_and(|is| is == "yes"),
            replica_of: primary.and_then(|at| Some((at[0].clone(), at[1].parse().ok()?))),
        }
    }

    fn start(&self, node: &NodeSpec, process: &Arc<Process>) {
        let redis = &self.redis;
        let run_id = Sha256::digest(process.random().to_be_bytes());
        let clock = process.clone();
        redis.start(Start {
            clock: Box::new(move || clock.wall_clock()),
            run_id: format!("{run_id:x}")[..40].to_owned(),
            data: match self.is_durable {
                true => Data::Kept,
                false => Data::Lost,
            },
        });
        let own = redis.clone();
        tokio::spawn(process.task(async move { match own.expire_actively().await {} }));
        if let Some((host, port)) = &self.replica_of {
            redis.replicate(host, *port);
            let env = Env::of(Arc::new(Surroundings(process.clone())));
            tokio::spawn(process.task(follow_primary(redis.clone(), env)));
        }
        let redis = redis.clone();
        serve(node, process, move |end| {
            let served = redis.serve(end);
            async move { drop(served.await) }
        });
    }
}

async fn follow_primary(redis: Redis, env: Env) {
    while let Some((host, port)) = redis.primary() {
        // Whatever ended it, it begins again with everything.
        if let Ok(stream) = env.dial(&host, port).await {
            let _ended = redis.follow(stream).await;
        }
        sleep(TRY_AGAIN).await;
    }
}

/// Serves the clients of a node, each in a task of its process. Whatever ends a task, the client
/// sees the end of the connection.
pub(super) fn serve<F: Future<Output = ()> + Send + 'static>(
    node: &NodeSpec,
    process: &Arc<Process>,
    serve: impl Fn(End) -> F + Send + Sync + 'static,
) {
    let ports = node.ports.iter().map(|port| port.container);
    serve_at(ports, node, process, serve);
}

/// Does the same at these ports.
pub(super) fn serve_at<F: Future<Output = ()> + Send + 'static>(
    ports: impl IntoIterator<Item = u16>,
    node: &NodeSpec,
    process: &Arc<Process>,
    serve: impl Fn(End) -> F + Send + Sync + 'static,
) {
    let serve = Arc::new(move |end| -> futures_util::future::BoxFuture<'static, ()> {
        Box::pin(serve(end))
    });
    for port in ports {
        let network = process.network();
        network.listen(&node.name, port, process, serve.clone());
    }
}

/// Returns the word after this one in a command.
fn value_of<'a>(node: &'a NodeSpec, option: &str) -> Option<&'a String> {
    let at = node.command.iter().position(|word| word == option)?;
    node.command.get(at + 1)
}
