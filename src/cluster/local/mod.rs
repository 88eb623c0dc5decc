//! The cluster as processes of this machine: the lock servers that are installed
//! here and our own roles, each in a private folder, on loopback ports that the
//! system chooses.

mod command;
mod confined;
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

use super::topology::Endpoint;
use super::{
    Cluster, ClusterError, Console, Helper, LastLines, NodeSpec, NodeState, Shared, Signal,
    ThreadState, Way, proc_stat,
};
use crate::model::Name;
use async_trait::async_trait;
use command::{Here, said_here};
use folder::RunFolder;
use ports::Ports;
use process::{Life, Process};
use programs::{Program, Programs};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio_util::task::TaskTracker;

const READY_DEADLINE: Duration = Duration::from_secs(30);
const END_DEADLINE: Duration = Duration::from_secs(30);

/// One case's processes. They die with this one however it ends; `remove` is
/// called on every way out, and the sweep finds the rest.
pub struct LocalCluster {
    folder: RunFolder,
    programs: Programs,
    ports: Arc<Ports>,
    nodes: Arc<Nodes>,
    /// Whoever gives up waiting for a start does not stop it, so removal waits
    /// for them first.
    births: TaskTracker,
}

/// Every node that was created, with its process once it was started.
#[derive(Default)]
struct Nodes(Mutex<BTreeMap<Name, Option<Arc<Process>>>>);

impl Nodes {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Name, Option<Arc<Process>>>> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn names(&self) -> Vec<Name> {
        self.all().keys().cloned().collect()
    }
}

impl LocalCluster {
    fn new(folder: RunFolder, programs: Programs) -> LocalCluster {
        LocalCluster {
            folder,
            programs,
            ports: Arc::default(),
            nodes: Arc::default(),
            births: TaskTracker::new(),
        }
    }

    fn process(&self, node: &Name, what: &str) -> Result<Arc<Process>, ClusterError> {
        match self.nodes.all().get(node) {
            Some(Some(process)) => Ok(Arc::clone(process)),
            Some(None) => Err(ClusterError::Failed {
                what: format!("{what} {node}"),
                reason: "it was not started".to_owned(),
            }),
            None => Err(ClusterError::Gone {
                what: format!("{what} {node}"),
            }),
        }
    }

    fn port(&self, node: &Name, port: u16) -> Result<SocketAddr, ClusterError> {
        let address = self.ports.of(node, port);
        address.map_err(failed(&format!("find a free port for {node}")))
    }

    async fn launch(&self, node: &NodeSpec, life: Life) -> Result<Option<Console>, ClusterError> {
        let name = node.name.clone();
        let what = format!("start {name}");
        let folder = self.folder.node(&name).map_err(failed(&what))?;
        let root = folder.root();
        let program = self.programs.of(node)?;
        let known = self.nodes.names();
        let here = Here {
            node: &name,
            root: &root,
            known: &known,
            hosts: &node.hosts,
            is_led: program.program.can_be_led(),
            ports: &self.ports,
        };
        let said = said_here(node, &here).map_err(failed(&what))?;
        let command = program.command(said, &root).map_err(failed(&what))?;
        let nodes = Arc::clone(&self.nodes);
        // To its end, also if nobody waits for it any more.
        let born = self.births.spawn(async move {
            let (process, console) = Process::start(command, &folder, life).await?;
            nodes.all().insert(name, Some(Arc::new(process)));
            Ok::<_, io::Error>(console)
        });
        let born = born.await.unwrap_or_else(|error| Err(error.into()));
        born.map_err(failed(&what))
    }

    /// Ends a process, stopped or not, and waits for that.
    async fn end(&self, node: &Name, process: &Process) -> Result<(), ClusterError> {
        process.signal(Signal::Continue);
        process.signal(Signal::Kill);
        await_end(node, process).await
    }

    async fn end_all(&self) -> Result<(), ClusterError> {
        self.births.close();
        self.births.wait().await;
        let all: Vec<_> = {
            let nodes = self.nodes.all();
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
    async fn create_node(&self, node: &NodeSpec) -> Result<(), ClusterError> {
        let what = format!("make room for {}", node.name);
        self.folder.node(&node.name).map_err(failed(&what))?;
        self.nodes.all().entry(node.name.clone()).or_default();
        Ok(())
    }

    async fn start(&self, node: &NodeSpec) -> Result<(), ClusterError> {
        self.launch(node, Life::Alone).await.map(drop)
    }

    async fn await_said(&self, node: &Name, text: &str) -> Result<(), ClusterError> {
        let process = self.process(node, "listen to")?;
        let said = process.log.await_said(text);
        let reason = match tokio::time::timeout(READY_DEADLINE, said).await {
            Ok(true) => match listeners::objection(&process.all(), &self.ports.of_node(node)) {
                Ok(None) => return Ok(()),
                objection => {
                    // Nobody may talk to it, or to whoever is in its place.
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

    async fn start_attached(&self, node: &NodeSpec) -> Result<Console, ClusterError> {
        self.create_node(node).await?;
        let console = self.launch(node, Life::InOurHands).await?;
        console.ok_or_else(|| ClusterError::Failed {
            what: format!("start {}", node.name),
            reason: "it has no console".to_owned(),
        })
    }

    async fn address(&self, node: &Name, port: u16) -> Result<SocketAddr, ClusterError> {
        self.port(node, port)
    }

    async fn signal(&self, node: &Name, signal: Signal) -> Result<(), ClusterError> {
        let process = self.process(node, "signal")?;
        match process.signal(signal) {
            true => Ok(()),
            false => Err(ClusterError::Failed {
                what: format!("signal {node}"),
                reason: "its process has ended".to_owned(),
            }),
        }
    }

    async fn threads(&self, node: &Name) -> Result<Vec<ThreadState>, ClusterError> {
        let process = self.process(node, "see the threads of")?;
        let all = process.all().into_iter();
        Ok(all.flat_map(proc_stat::threads).collect())
    }

    async fn await_end(&self, node: &Name) -> Result<(), ClusterError> {
        await_end(node, &*self.process(node, "wait for the end of")?).await
    }

    async fn state(&self, node: &Name) -> Result<NodeState, ClusterError> {
        let process = match self.nodes.all().get(node) {
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
        // Where there are several, it cannot be known which one matters.
        let is_alone = process.all() == [process.pid];
        let pid = i32::try_from(process.pid).ok().filter(|_| is_alone);
        Ok(NodeState {
            running,
            frozen: false,
            started_at: process.born(),
            exit_code,
            local_pid: pid.filter(|_| running),
        })
    }

    async fn discard(&self, node: &Name) -> Result<(), ClusterError> {
        let process = self.nodes.all().get(node).cloned().flatten();
        if let Some(process) = process {
            self.end(node, &process).await?;
        }
        self.nodes.all().remove(node);
        let removed = self.folder.remove_node(node);
        removed.map_err(failed(&format!("remove {node}")))
    }

    async fn way(&self, proxy: &Name, server: &Endpoint) -> Result<Way, ClusterError> {
        let listens = self.port(proxy, server.port)?;
        Ok(Way::by_address(
            listens,
            self.port(&server.node, server.port)?,
        ))
    }

    /// Whatever is on this machine sees its network, so a helper only has to run.
    async fn start_helper(&self, helper: &Helper) -> Result<Console, ClusterError> {
        if helper.shares != Shared::Network {
            return Err(ClusterError::NotHere {
                what: format!("start a helper beside {}", helper.beside),
            });
        }
        let command = helper.command.clone();
        let node = NodeSpec::new(helper.name.clone(), &helper.image, command);
        self.start_attached(&node).await
    }

    /// Nothing can be seen from beside a process that is not seen from here; whoever
    /// asks found no single process to look at.
    async fn run_helper(&self, helper: &Helper) -> Result<String, ClusterError> {
        Err(ClusterError::Failed {
            what: format!("reach the process of {}", helper.beside),
            reason: "it is not just one: a script in the place of a server has to end with `exec`"
                .to_owned(),
        })
    }

    async fn logs(&self, node: &Name) -> Result<String, ClusterError> {
        let read = self.folder.log(node);
        read.map_err(failed(&format!("read the log of {node}")))
    }

    async fn remove(&self) -> Result<(), ClusterError> {
        self.end_all().await?;
        let path = self.folder.path.display().to_string();
        self.folder
            .remove()
            .map_err(failed(&format!("remove {path}")))
    }

    /// What was stored and said stays; processes never outlive us.
    async fn keep(&self) -> Result<String, ClusterError> {
        self.end_all().await?;
        let path = self.folder.path.display();
        Ok(format!(
            "data and logs in {path} (the processes have ended)"
        ))
    }
}

async fn await_end(node: &Name, process: &Process) -> Result<(), ClusterError> {
    let ended = tokio::time::timeout(END_DEADLINE, process.await_end()).await;
    ended.map_err(|_| ClusterError::Deadline {
        what: format!("the end of {node}"),
        after: END_DEADLINE,
    })
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> ClusterError + use<> {
    let what = what.to_owned();
    |error| ClusterError::Failed {
        what,
        reason: error.to_string(),
    }
}

impl Program {
    /// Whether it can be told another address for a server than the others are.
    fn can_be_led(self) -> bool {
        // Members know each other by one address that all of them have to agree on.
        self != Program::Etcd
    }
}
