//! The real program as a child process, always with a deadline.

use super::said::Said;
use super::{session, turn};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// No command of a test takes longer, except building images, even while other tests run.
const DEADLINE: Duration = Duration::from_secs(180);
/// The time that a program may take to clean up after it is asked to end.
const MERCY: Duration = Duration::from_secs(20);

/// Returns the program with these arguments, with the project as its home.
pub fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command
        .args(arguments)
        .current_dir(super::project())
        .env("XDG_STATE_HOME", state())
        .env_remove("FENCEPOST_HOME");
    command
}

/// Returns the state folder, which is not the developer's. All tests of one run share it,
/// because some must find what others left behind.
fn state() -> PathBuf {
    let folder = session::folder().join("state");
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    folder
}

/// Returns the program's lock for images, for tests that make images without the program.
pub fn images_lock() -> PathBuf {
    let folder = state().join("fencepost");
    bounded_io::files::private_folder(&folder).expect("a folder of our own");
    folder.join("images.lock")
}

/// Runs the program to its end.
pub fn fencepost(arguments: &[&str]) -> Ended {
    start(command(arguments)).wait()
}

/// Runs the program without a reachable Docker.
pub fn offline(arguments: &[&str]) -> Ended {
    let mut command = command(arguments);
    command.env("DOCKER_HOST", "unix:///nonexistent.sock");
    start(command).wait()
}

/// A program that has ended, and its output.
#[derive(Debug)]
pub struct Ended {
    pub pid: u32,
    /// None if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Ended {
        assert_eq!(self.code, Some(code), "{self}");
        assert!(!self.stderr.contains("panicked"), "{self}");
        self
    }

    /// Expects that it removed everything. The only thing that may be left is a network of any
    /// run on this machine whose endpoints the engine miscounts, because nobody can remove it.
    #[track_caller]
    pub fn expect_cleaned(self) -> Ended {
        // It may be left by somebody else, who is asked for it at the beginning of a run.
        let miscounts = self.stderr.contains("whatever the engine counts");
        let code = if miscounts && self.code == Some(70) {
            70
        } else {
            0
        };
        self.expect_code(code)
    }

    /// Expects each of these texts on stdout or stderr.
    #[track_caller]
    pub fn expect_said(self, texts: &[&str]) -> Ended {
        for text in texts {
            let said = self.stdout.contains(text) || self.stderr.contains(text);
            assert!(said, "nothing says {text:?}\n{self}");
        }
        self
    }

    /// Expects a short error message, because a person reads it before acting.
    #[track_caller]
    pub fn expect_short_error(self, lines: usize) -> Ended {
        let mut all = self.stderr.lines();
        let error: Vec<&str> = all
            .by_ref()
            .skip_while(|line| !line.starts_with("error: "))
            .collect();
        assert!((1..=lines).contains(&error.len()), "{self}");
        self
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Ended { code, .. } = self;
        write!(
            f,
            "ended with {code:?}\nstdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        )
    }
}

/// A running program. If it is dropped before its end (in a failed test), it is asked to clean
/// up, and killed if it does not.
pub struct Running {
    name: String,
    pub pid: u32,
    ended: Receiver<ExitStatus>,
    stdout: Option<JoinHandle<String>>,
    stderr: Arc<Said>,
    stderr_reader: Option<JoinHandle<()>>,
    over: bool,
}

pub fn start(mut command: Command) -> Running {
    let name = format!("{command:?}");
    let mut child: Child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let pid = child.id();
    turn::started(pid);
    let mut stdout = child.stdout.take().expect("piped");
    let stdout = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stdout.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let (stderr, stderr_reader) = Said::hear(child.stderr.take().expect("piped"));
    let (send, ended) = channel();
    // The thread ends with the child.
    std::thread::spawn(move || {
        let _ = send.send(child.wait().expect("a child can be awaited"));
    });
    Running {
        name,
        pid,
        ended,
        stdout: Some(stdout),
        stderr,
        stderr_reader: Some(stderr_reader),
        over: false,
    }
}

impl Running {
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid as i32), signal).expect("it still runs");
    }

    /// Returns once a text appeared on stderr.
    pub fn await_said(&self, wanted: &str) {
        let said = self.stderr.await_text(0, wanted, DEADLINE);
        said.unwrap_or_else(|error| panic!("{} {error}", self.name));
    }

    pub fn wait(self) -> Ended {
        self.wait_within(DEADLINE)
    }

    pub fn wait_within(mut self, limit: Duration) -> Ended {
        let Ok(status) = self.ended.recv_timeout(limit) else {
            panic!("{} is not over after {limit:?}", self.name);
        };
        self.over = true;
        let stdout = self.stdout.take().map(|reader| reader.join());
        let stderr = self.stderr_reader.take().map(|reader| reader.join());
        assert!(matches!(stderr, Some(Ok(()))), "stderr was read");
        Ended {
            pid: self.pid,
            code: status.code(),
            stdout: stdout.expect("asked once").expect("stdout was read"),
            stderr: self.stderr.text(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            if self.over {
                return;
            }
            let _ = kill(Pid::from_raw(self.pid as i32), signal);
            self.over = self.ended.recv_timeout(MERCY).is_ok();
        }
    }
}
