use super::process::{Process, Surroundings};
use crate::cluster::{ClusterError, ClusterResult, Console, ConsoleLine, NodeSpec, Stdin};
use crate::resource::{PlayedClient, ResourceClient};
use crate::worker::{self, WorkerTask};
use clap::{ArgAction, Args, Command, FromArgMatches};
use fencing_lock::Env;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, LazyLock};
use tokio::io::{AsyncBufReadExt, BufReader, duplex};
use tokio::sync::mpsc;

const PIPE_BYTES: usize = 1 << 16;
/// Far more than a worker says before somebody reads it.
const LINES_MAX: usize = 1 << 16;

/// Starts a worker with the environment that a container would have.
pub fn start(node: &NodeSpec, process: &Arc<Process>) -> ClusterResult<Console> {
    let failed = |why: String| ClusterError::failed(format!("start {}", node.name), why);
    let task = task_of(&node.environment).map_err(|error| failed(error.to_string()))?;
    let env = Env::of(Arc::new(Surroundings(process.clone())));
    let resource = task.resource.strip_prefix("http://");
    let resource = resource.and_then(|address| address.trim_end_matches('/').rsplit_once(':'));
    let resource = resource.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = resource.ok_or_else(|| failed("only HTTP is simulated".to_owned()))?;
    let resource = PlayedClient::over(env.clone(), host, port, worker::RESOURCE_TIMEOUT);
    let resource = ResourceClient::Played(resource);
    let (stdin, pipe) = duplex(PIPE_BYTES);
    let (send_order, orders) = mpsc::channel(LINES_MAX);
    tokio::spawn(async move {
        let mut lines = BufReader::new(pipe).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if send_order.send(line).await.is_err() {
                return;
            }
        }
    });
    let (said, lines) = mpsc::channel(LINES_MAX);
    let own = process.clone();
    let output = Output {
        said: said.clone(),
        line: Vec::new(),
    };
    tokio::spawn(process.task(async move {
        let ended = worker::run_in(env, resource, task, orders, output).await;
        if let Err(error) = &ended {
            let _or_nobody_reads = said.try_send(ConsoleLine::Err(error.to_string()));
        }
        own.end(i64::from(ended.is_err()));
    }));
    Ok(Console {
        stdin: Stdin(Box::pin(stdin)),
        lines,
    })
}

/// Reads the environments of workers. Plays of a search have the same ones very often, and making
/// the command takes longer than reading with it.
struct Reader {
    command: Command,
    known: BTreeMap<BTreeMap<String, String>, WorkerTask>,
}

const MOST_KNOWN: usize = 256;

static READER: LazyLock<Mutex<Reader>> = LazyLock::new(|| {
    Mutex::new(Reader {
        command: WorkerTask::augment_args(Command::new("worker")),
        known: BTreeMap::new(),
    })
});

fn task_of(environment: &BTreeMap<String, String>) -> Result<WorkerTask, clap::Error> {
    let Reader { command, known } = &mut *READER.lock();
    if let Some(task) = known.get(environment) {
        return Ok(task.clone());
    }
    let task = read(command, environment)?;
    if known.len() >= MOST_KNOWN {
        known.clear();
    }
    known.insert(environment.clone(), task.clone());
    Ok(task)
}

/// Reads a worker's environment as its process would.
fn read(
    command: &mut Command,
    environment: &BTreeMap<String, String>,
) -> Result<WorkerTask, clap::Error> {
    let mut words = vec!["worker".to_owned()];
    for argument in command.get_arguments() {
        let name = argument.get_env().and_then(|name| name.to_str());
        let value = name.and_then(|name| environment.get(name));
        let (Some(value), Some(long)) = (value, argument.get_long()) else {
            continue;
        };
        match argument.get_action() {
            ArgAction::SetTrue if ["", "0", "false", "no", "off"].contains(&value.as_str()) => {}
            ArgAction::SetTrue => words.push(format!("--{long}")),
            _ => words.push(format!("--{long}={value}")),
        }
    }
    let matches = command.try_get_matches_from_mut(words)?;
    WorkerTask::from_arg_matches(&matches)
}

/// The stdout of a worker.
struct Output {
    said: mpsc::Sender<ConsoleLine>,
    line: Vec<u8>,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let said = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        for line in said.lines() {
            let line = ConsoleLine::Out(line.to_owned());
            let full = |_| io::Error::from(io::ErrorKind::WouldBlock);
            self.said.try_send(line).map_err(full)?;
        }
        Ok(())
    }
}
