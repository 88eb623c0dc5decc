//! The cluster as processes of this machine: the lock servers that are installed here and our own
//! roles, each in a private folder, on loopback ports that the system chooses.

mod apart;
mod command;
mod confined;
mod database;
mod facts;
mod folder;
mod listeners;
mod log;
mod ports;
mod process;
pub mod programs;
mod runtime;
mod spawn;
mod sweep;

pub use runtime::LocalRuntime;

use super::attached::Attachments;
use super::topology::Endpoint;
use super::{
    Cluster, ClusterError, ClusterResult, Console, FoundServer, Helper, LastLines, NodeSpec,
    NodeState, ProxyRoute, Shared, Signal, ThreadState, proc_stat,
};
use crate::model::Name;
use async_trait::async_trait;
use bounded_io::files::private_folder;
use command::{NodeSurroundings, said_here};
use folder::RunFolder;
use nix::unistd::Pid;
use parking_lot::Mutex;
use ports::Ports;
use process::{Life, Members, Process};
use programs::{Program, Programs};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};
use tokio::process::Command;
use tokio_util::task::TaskTracker;

const READY_DEADLINE: Duration = Duration::from_secs(30);
const END_DEADLINE: Duration = Duration::from_secs(30);

/// One case's processes. They die with this process however it ends; `remove` is called on every
/// way out, and the sweep finds the rest.
pub struct LocalCluster {
    folder: RunFolder,
    programs: Programs,
    ports: Arc<Ports>,
    nodes: Arc<Nodes>,
    /// Starts that are under way. They go on when their caller gives up, so removal waits for them
    /// first.
    births: TaskTracker,
    attached: Attachments,
}

/// Every node that was created, with its process once it was started.
type Nodes = Mutex<BTreeMap<Name, Option<Arc<Process>>>>;

impl LocalCluster {
    fn new(folder: RunFolder, programs: Programs) -> LocalCluster {
        LocalCluster {
            folder,
            programs,
            ports: Arc::default(),
            nodes: Arc::default(),
            births: TaskTracker::new(),
            attached: Attachments::default(),
        }
    }

    fn process(&self, node: &Name, what: &str) -> ClusterResult<Arc<Process>> {
        match self.nodes.lock().get(node) {
            Some(Some(process)) => Ok(Arc::clone(process)),
            Some(None) => Err(ClusterError::failed(
                format!("{what} {node}"),
                "it was not started",
            )),
            None => Err(ClusterError::Gone {
                what: format!("{what} {node}"),
            }),
        }
    }

    fn port(&self, node: &Name, port: u16) -> ClusterResult<SocketAddr> {
        if let Some(address) = self.attached.address(node) {
            return Ok(address);
        }
        let address = self.ports.of(node, port);
        address.map_err(failed(&format!("find a free port for {node}")))
    }

    async fn launch(&self, node: &NodeSpec, life: Life) -> ClusterResult<Option<Console>> {
        let name = node.name.clone();
        let what = format!("start {name}");
        let folder = self.folder.node(&name).map_err(failed(&what))?;
        let root = folder.root();
        let program = self.programs.of(node)?.clone();
        let known: Vec<Name> = self.nodes.lock().keys().cloned().collect();
        let here = NodeSurroundings {
            node,
            root: &root,
            known: &known,
            is_led: program.program.can_be_led(),
            ports: &self.ports,
        };
        let said = said_here(&here).map_err(failed(&what))?;
        let about = program.program.about();
        let members = about.map_or(Members::Group, |about| about.members);
        let nodes = Arc::clone(&self.nodes);
        // Goes on to its end, even if nobody waits for it any more.
        let born = self.births.spawn(async move {
            program.prepare(&said, &root).await?;
            let command = program.command(said, &root)?;
            let (process, console) = Process::start(command, folder, members, life).await?;
            nodes.lock().insert(name, Some(Arc::new(process)));
            Ok::<_, io::Error>(console)
        });
        let born = born.await.unwrap_or_else(|error| Err(error.into()));
        born.map_err(failed(&what))
    }

    /// Ends a process, stopped or not, and waits for that.
    async fn end(&self, node: &Name, process: &Process) -> ClusterResult {
        let what = format!("end {node}");
        process.signal(Signal::Continue).map_err(failed(&what))?;
        process.signal(Signal::Kill).map_err(failed(&what))?;
        await_end(node, process).await
    }

    async fn end_all(&self) -> ClusterResult {
        self.births.close();
        self.births.wait().await;
        let all: Vec<_> = {
            let nodes = self.nodes.lock();
            let started = nodes.iter();
            started
                .filter_map(|(name, process)| Some((name.clone(), process.clone()?)))
                .collect()
        };
        let ended = all.iter().map(|(name, process)| self.end(name, process));
        futures_util::future::try_join_all(ended).await.map(drop)
    }
}

#[async_trait]
impl Cluster for LocalCluster {
    async fn create_node(&self, node: &NodeSpec) -> ClusterResult {
        let what = format!("make room for {}", node.name);
        self.folder.node(&node.name).map_err(failed(&what))?;
        self.nodes.lock().entry(node.name.clone()).or_default();
        Ok(())
    }

    async fn start(&self, node: &NodeSpec) -> ClusterResult {
        self.launch(node, Life::Alone).await.map(drop)
    }

    async fn await_said(&self, node: &Name, text: &str) -> ClusterResult {
        let process = self.process(node, "listen to")?;
        let said = process.log.await_said(text);
        let reason = match tokio::time::timeout(READY_DEADLINE, said).await {
            Ok(true) => match listeners::objection(&process.all(), &self.ports.of_node(node)) {
                Ok(None) => return Ok(()),
                objection => {
                    // Nobody may talk to it, or to another process in its place.
                    self.end(node, &process).await?;
                    let unknown = |error| format!("where it listens cannot be seen: {error}");
                    objection.map_or_else(unknown, Option::unwrap_or_default)
                }
            },
            Ok(false) => "its process ended".to_owned(),
            Err(_) => {
                let seconds = READY_DEADLINE.as_secs();
                format!("no log line with `{text}` within {seconds} s")
            }
        };
        let log = self.logs(node).await.unwrap_or_default();
        Err(ClusterError::NotReady {
            node: node.to_string(),
            reason,
            log: LastLines::of(&log).below(),
        })
    }

    async fn start_attached(&self, node: &NodeSpec) -> ClusterResult<Console> {
        self.create_node(node).await?;
        let console = self.launch(node, Life::InOurHands).await?;
        console.ok_or_else(|| {
            ClusterError::failed(format!("start {}", node.name), "it has no console")
        })
    }

    async fn address(&self, node: &Name, port: u16) -> ClusterResult<SocketAddr> {
        self.port(node, port)
    }

    async fn attach(&self, name: &Name, server: &FoundServer) -> ClusterResult {
        self.attached.add(name, server);
        Ok(())
    }

    async fn signal(&self, node: &Name, signal: Signal) -> ClusterResult {
        let process = self.process(node, "signal")?;
        let signalled = process.signal(signal);
        if signalled.map_err(failed(&format!("signal {node}")))? {
            Ok(())
        } else {
            Err(ClusterError::failed(
                format!("signal {node}"),
                "its process has ended",
            ))
        }
    }

    async fn threads(&self, node: &Name) -> ClusterResult<Vec<ThreadState>> {
        let process = self.process(node, "see the threads of")?;
        let all = process.all().into_iter();
        Ok(all.flat_map(proc_stat::threads).collect())
    }

    async fn await_end(&self, node: &Name) -> ClusterResult {
        await_end(node, &*self.process(node, "wait for the end of")?).await
    }

    async fn state(&self, node: &Name) -> ClusterResult<NodeState> {
        let process = match self.nodes.lock().get(node) {
            Some(process) => process.clone(),
            None => {
                return Err(ClusterError::Gone {
                    what: format!("look at {node}"),
                });
            }
        };
        let Some(process) = process else {
            return Ok(NodeState::default());
        };
        let exit_code = process.exit_code();
        let running = exit_code.is_none();
        // If there are several processes, it is not known which one matters, unless all of them
        // are one server's.
        let is_one = process.members == Members::Children || process.all() == [process.pid];
        let pid = i32::try_from(process.pid).ok().filter(|_| is_one);
        Ok(NodeState {
            running,
            frozen: false,
            started_at: process.born(),
            exit_code,
            local_pid: pid.filter(|_| running),
        })
    }

    async fn discard(&self, node: &Name) -> ClusterResult {
        let process = self.nodes.lock().get(node).cloned().flatten();
        if let Some(process) = process {
            self.end(node, &process).await?;
        }
        self.nodes.lock().remove(node);
        let removed = self.folder.remove_node(node);
        removed.map_err(failed(&format!("remove {node}")))
    }

    async fn way(&self, proxy: &Name, server: &Endpoint) -> ClusterResult<ProxyRoute> {
        let listens = self.port(proxy, server.port)?;
        Ok(ProxyRoute::by_address(
            listens,
            self.port(&server.node, server.port)?,
        ))
    }

    /// Everything on this machine sees its network, so a helper only has to run.
    async fn start_helper(&self, helper: &Helper) -> ClusterResult<Console> {
        if helper.shares != Shared::Network {
            return Err(ClusterError::NotHere {
                what: format!("start a helper beside {}", helper.beside),
            });
        }
        let command = helper.command.clone();
        let node = NodeSpec::new(helper.name.clone(), &helper.image, command);
        self.start_attached(&node).await
    }

    /// A helper beside a process would see no more than this process does. The caller found no
    /// single process to look at.
    async fn run_helper(&self, helper: &Helper) -> ClusterResult<String> {
        Err(ClusterError::failed(
            format!("reach the process of {}", helper.beside),
            "it is not just one: a script in the place of a server has to end with `exec`"
                .to_owned(),
        ))
    }

    async fn logs(&self, node: &Name) -> ClusterResult<String> {
        let read = self.folder.log(node);
        read.map_err(failed(&format!("read the log of {node}")))
    }

    async fn remove(&self) -> ClusterResult {
        self.end_all().await?;
        let path = self.folder.path.display().to_string();
        self.folder
            .remove()
            .map_err(failed(&format!("remove {path}")))
    }

    /// Keeps data and logs; the processes end, because they never outlive us.
    async fn keep(&self) -> ClusterResult<String> {
        self.end_all().await?;
        let path = self.folder.path.display();
        Ok(format!(
            "data and logs in {path} (the processes have ended)"
        ))
    }
}

async fn await_end(node: &Name, process: &Process) -> ClusterResult {
    let ended = tokio::time::timeout(END_DEADLINE, process.await_end()).await;
    ended.map_err(|_| ClusterError::deadline(format!("the end of {node}"), END_DEADLINE))
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> ClusterError + use<> {
    let what = what.to_owned();
    |error| ClusterError::failed(what, error)
}

impl Program {
    /// Returns whether it can be told another address for a server than the others are.
    fn can_be_led(self) -> bool {
        // All members have to agree on the one address of each member.
        self != Program::Etcd
    }
}
