//! Runs without containers: with the lock servers of this machine, or with those copied out of
//! the images.

use super::command::{Ended, Running, command, start};
use super::docker::docker;
use super::session;
use super::turn::{Turn, images, machine_alone, machine_shared, needs_docker};
use fencepost::cluster::local::programs::Program;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;

const COPY_DEADLINE: Duration = Duration::from_secs(120);

/// Local runs of a test. Everything that the program keeps about them is in a temporary folder.
pub struct Local {
    state: TempDir,
    servers: Servers,
    _turn: Turn,
}

#[derive(Clone)]
struct Servers {
    redis_server: PathBuf,
    etcd: PathBuf,
}

/// Prepares local runs while other tests run.
pub fn local() -> Local {
    Local::new(machine_shared())
}

/// Prepares local runs while no other test runs.
pub fn local_alone() -> Local {
    Local::new(machine_alone())
}

impl Local {
    /// Panics if there are no lock servers, and no Docker to copy them from.
    fn new(turn: Turn) -> Local {
        static SERVERS: OnceLock<Servers> = OnceLock::new();
        let servers =
            SERVERS.get_or_init(|| Servers::on_path().unwrap_or_else(Servers::from_images));
        Local {
            state: tempfile::tempdir().expect("a temporary folder"),
            servers: servers.clone(),
            _turn: turn,
        }
    }

    /// Returns the program with the lock servers and without Docker.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = command(arguments);
        command
            .env("XDG_STATE_HOME", self.state.path())
            .env("FENCEPOST_REDIS_SERVER", &self.servers.redis_server)
            .env("FENCEPOST_ETCD", &self.servers.etcd)
            .env("DOCKER_HOST", "unix:///nonexistent.sock")
            .env_remove("CI");
        command
    }

    /// Runs `run` with these arguments to its end. Nothing of it may be left then.
    pub fn run_within(&self, limit: Duration, arguments: &[&str]) -> Ended {
        let given = [&["run", "--runtime", "local"], arguments].concat();
        let ended = self.start(&given).wait_within(limit);
        assert_eq!(self.left(), [""; 0]);
        ended
    }

    pub fn start(&self, arguments: &[&str]) -> Running {
        start(self.command(arguments))
    }

    /// Returns the existing folders of runs.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.kept_in("fencepost/local")
    }

    fn kept_in(&self, folder: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state.path().join(folder));
        let entries = entries.into_iter().flatten();
        entries
            .map(|entry| entry.expect("readable").path())
            .collect()
    }

    /// Returns every process that runs in one of them, even if the folder is gone.
    pub fn processes(&self) -> Vec<u32> {
        let all = fs::read_dir("/proc").expect("/proc");
        let pids = all.filter_map(|entry| {
            let path = entry.ok()?.path();
            let home = fs::read_link(path.join("cwd")).ok()?;
            let pid = path.file_name()?.to_str()?.parse().ok()?;
            home.starts_with(self.state.path()).then_some(pid)
        });
        pids.collect()
    }

    /// Returns everything that is left of any run, sorted.
    pub fn left(&self) -> Vec<String> {
        let journals = self.kept_in("fencepost/local-faults").into_iter();
        let files = self.folders().into_iter().chain(journals);
        let files = files.map(|path| path.display().to_string());
        let processes = self.processes().into_iter();
        let processes = processes.map(|pid| format!("process {pid}"));
        let mut left: Vec<String> = files.chain(processes).collect();
        left.sort();
        left
    }

    pub fn redis_server(&self) -> &Path {
        &self.servers.redis_server
    }

    /// Writes a script that replaces a program.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.state.path().join(name);
        write_script(&path, text);
        path
    }
}

impl Servers {
    fn on_path() -> Option<Servers> {
        // This searches as the program does, including the version that it needs.
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().expect("a runtime");
        let find = |program: Program| Some(runtime.block_on(program.find()).ok()?.path);
        Some(Servers {
            redis_server: find(Program::RedisServer)?,
            etcd: find(Program::Etcd)?,
        })
    }

    fn from_images() -> Servers {
        needs_docker();
        images();
        Servers {
            redis_server: copied("fencepost/redis:7.0", "redis-server"),
            etcd: copied("fencepost/etcd:3.5", "etcd"),
        }
    }
}

/// Copies a program out of an image, with all the libraries that it loads and the loader
/// itself, so that it does not depend on this machine.
fn copied(image: &str, program: &str) -> PathBuf {
    let name = format!("copied-{program}");
    let folder = session::folder().join(&name);
    session::once(&name, COPY_DEADLINE, || copy(image, program, &folder));
    folder.join(program)
}

fn copy(image: &str, program: &str, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder under target/");
    let pack = format!("tar -ch /usr/bin/{program} $(ldd /usr/bin/{program} | grep -o '/[^ ]*')");
    let packed = docker(&["run", "--rm", "--entrypoint", "sh", image, "-c", &pack]);
    let stderr = String::from_utf8_lossy(&packed.stderr);
    assert!(packed.status.success(), "{pack}: {stderr}");
    let mut unpack = Command::new("tar");
    unpack.arg("-x").arg("-C").arg(folder).stdin(Stdio::piped());
    let mut unpack = unpack.spawn().expect("tar is here");
    let mut stdin = unpack.stdin.take().expect("piped");
    stdin.write_all(&packed.stdout).expect("tar reads");
    drop(stdin);
    assert!(unpack.wait().expect("a child").success());
    let script = folder.join(program);
    let root = folder.display();
    let text = format!(
        "libraries=$(find {root} -name '*.so*' -exec dirname {{}} + | sort -u | paste -sd:)\n\
         loader=$(find {root} -name 'ld-linux*' | head -1)\n\
         [ -z \"$loader\" ] && exec {root}/usr/bin/{program} \"$@\"\n\
         exec $loader --library-path \"$libraries\" {root}/usr/bin/{program} \"$@\"\n"
    );
    write_script(&script, &text);
}

fn write_script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}")).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a script to run");
}
