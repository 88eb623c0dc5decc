//! The process of a node, from its start to its end.

use super::folder::NodeFolder;
use super::log::Log;
use super::spawn::spawn;
use super::*;
use crate::cluster::lines::Lines;
use crate::cluster::{ConsoleLine, Stdin};
use nix::sys::signal::{self, killpg};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{mpsc, watch};

/// The end of a process that is not our child cannot be awaited, only polled.
pub const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Whether we hold its stdin and stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Alone,
    InOurHands,
}

/// Which processes are the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members {
    /// Those of its group. A server in another group is somebody else, whoever has started it.
    Group,
    /// Also those in groups of their own: Postgres has one for each connection.
    Children,
}

pub struct Process {
    pub pid: u32,
    pub log: Arc<Log>,
    started: String,
    folder: NodeFolder,
    pub members: Members,
    /// Those outside of the group that were stopped or killed last, with their start times.
    outside: Mutex<Vec<(u32, String)>>,
    /// Its exit code, once it has ended.
    ended: watch::Receiver<Option<i64>>,
}

impl Process {
    /// Starts a command that is complete except for its streams.
    pub async fn start(
        mut command: Command,
        folder: NodeFolder,
        members: Members,
        life: Life,
    ) -> io::Result<(Process, Option<Console>)> {
        command
            .stdin(match life {
                Life::Alone => Stdio::null(),
                Life::InOurHands => Stdio::piped(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = spawn(command).await?;
        let missing = |what: &str| io::Error::other(format!("it has no {what}"));
        let pid = child.id().ok_or_else(|| missing("pid"))?;
        // It is our child and not waited for yet, so it exists in any case.
        let started = proc_stat::start_time(pid).ok_or_else(|| missing("start time"))?;
        folder.note_processes(&[(pid, started.clone())])?;
        let log = Arc::new(Log::open(&folder.log(), 2)?);
        let stdout = child.stdout.take().ok_or_else(|| missing("stdout"))?;
        let stderr = child.stderr.take().ok_or_else(|| missing("stderr"))?;
        let (send, lines) = mpsc::channel(ConsoleLine::MOST_WAITING);
        // Both tasks end with the streams, and so with the process.
        tokio::spawn(read(
            stdout,
            Arc::clone(&log),
            send.clone(),
            ConsoleLine::Out,
        ));
        tokio::spawn(read(stderr, Arc::clone(&log), send, ConsoleLine::Err));
        let console = child.stdin.take().map(|stdin| Console {
            stdin: Stdin(Box::pin(stdin)),
            lines,
        });
        let (tell, ended) = watch::channel(None);
        tokio::spawn(async move {
            let code = child.wait().await.map(code_of);
            // A process whose exit code is unknown has ended as well.
            let _ = tell.send(Some(code.unwrap_or_default()));
        });
        let process = Process {
            pid,
            log,
            started,
            folder,
            members,
            outside: Mutex::default(),
            ended,
        };
        Ok((process, console))
    }

    /// Sends a signal; returns false if the process has ended already.
    pub fn signal(&self, signal: Signal) -> io::Result<bool> {
        let Ok(pid) = i32::try_from(self.pid) else {
            return Ok(false);
        };
        let pid = Pid::from_raw(pid);
        // As long as any process is in the group, its pid is not given to another process.
        let now = proc_stat::start_time(self.pid);
        if now.is_some_and(|started| started != self.started) {
            return Ok(false);
        }
        let number = match signal {
            Signal::Stop => signal::Signal::SIGSTOP,
            Signal::Continue => signal::Signal::SIGCONT,
            Signal::Kill => signal::Signal::SIGKILL,
        };
        if self.members == Members::Children && signal != Signal::Continue {
            // Who is stopped starts nobody, so then all are known.
            let _ = killpg(pid, signal::Signal::SIGSTOP);
            self.stop_outside()?;
        }
        if signal != Signal::Stop {
            for (pid, started) in &*self.outside.lock() {
                if proc_stat::is_still(*pid, started) {
                    send(*pid, number);
                }
            }
        }
        // As with a container, processes that it has started are part of the node: the server may
        // be the child of a script.
        Ok(killpg(pid, number).is_ok())
    }

    /// Stops what is part of the node outside of its group. Each is noted before: who finds
    /// nothing but the folder has to find the stopped processes too.
    fn stop_outside(&self) -> io::Result<()> {
        let mut outside = self.outside.lock();
        outside.retain(|(pid, started)| proc_stat::is_still(*pid, started));
        let group = proc_stat::group(self.pid);
        loop {
            let family = proc_stat::family(self.pid).into_iter();
            let is_new =
                |pid: &u32| !group.contains(pid) && !outside.iter().any(|(known, _)| known == pid);
            let new = family.filter(is_new);
            let new = new.filter_map(|pid| Some((pid, proc_stat::start_time(pid)?)));
            let new: Vec<(u32, String)> = new.collect();
            if new.is_empty() {
                return Ok(());
            }
            outside.extend(new);
            let leader = [(self.pid, self.started.clone())];
            self.folder
                .note_processes(&[&leader[..], &outside[..]].concat())?;
            for (pid, _) in &*outside {
                send(*pid, signal::Signal::SIGSTOP);
            }
        }
    }

    /// Returns all processes of the node; none if it has ended.
    pub fn all(&self) -> Vec<u32> {
        match (self.exit_code(), self.members) {
            (None, Members::Group) => proc_stat::group(self.pid),
            (None, Members::Children) => proc_stat::family(self.pid),
            (Some(_), _) => Vec::new(),
        }
    }

    pub fn exit_code(&self) -> Option<i64> {
        *self.ended.borrow()
    }

    /// Waits for the end of all its processes: a server that a script has started keeps its port
    /// until then.
    pub async fn await_end(&self) {
        // The sender exists until it has sent the code.
        let _ = self.ended.clone().wait_for(Option::is_some).await;
        let outside = self.outside.lock().clone();
        let is_left = || {
            let mut outside = outside.iter();
            !proc_stat::group(self.pid).is_empty()
                || outside.any(|(pid, started)| !proc_stat::has_ended(*pid, started))
        };
        while is_left() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Returns a value that changes with every start.
    pub fn born(&self) -> String {
        format!("{} {}", self.pid, self.started)
    }
}

fn send(pid: u32, signal: signal::Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        // It may have ended by itself.
        let _ = signal::kill(Pid::from_raw(pid), signal);
    }
}

/// Returns the exit code as shells count it.
fn code_of(status: ExitStatus) -> i64 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.unwrap_or_default().into()
}

/// Writes everything to the log, and hands whole lines on as long as somebody reads them.
async fn read(
    mut stream: impl AsyncRead + Unpin,
    log: Arc<Log>,
    send: mpsc::Sender<ConsoleLine>,
    kind: fn(String) -> ConsoleLine,
) {
    let mut chunk = vec![0; 16 * 1024];
    let mut lines = Lines::default();
    while let Ok(read @ 1..) = stream.read(&mut chunk).await {
        log.add(&chunk[..read]);
        if send.is_closed() {
            continue;
        }
        for line in lines.take(&chunk[..read]) {
            // There may be no reader any more, or never have been one.
            let _ = send.send(kind(line)).await;
        }
    }
    log.close_one();
}
