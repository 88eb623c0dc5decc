//! Runs without containers: the lock servers of this machine, or those of the
//! images, copied out of them.

use super::command::{Running, command, start};
use super::docker::docker;
use super::turn::{Quiet, images, machine_alone, needs_docker, skip};
use fencepost::cluster::local::programs::Program;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// Everything that the program keeps about local runs is in a folder of the
/// test's own.
pub struct Local {
    state: TempDir,
    servers: Servers,
    _turn: Quiet,
}

#[derive(Clone)]
struct Servers {
    redis_server: PathBuf,
    etcd: PathBuf,
}

/// None, and a line that says so, where there are no lock servers; in CI that is
/// a failure.
pub fn local() -> Option<Local> {
    static SERVERS: OnceLock<Option<Servers>> = OnceLock::new();
    let turn = machine_alone();
    let servers = SERVERS.get_or_init(|| {
        let found = Servers::on_path();
        found.or_else(|| needs_docker().then(Servers::from_images))
    });
    let Some(servers) = servers.clone() else {
        skip("neither redis-server and etcd nor Docker are here");
        return None;
    };
    Some(Local {
        state: tempfile::tempdir().expect("a temporary folder"),
        servers,
        _turn: turn,
    })
}

impl Local {
    /// The program, with the lock servers at hand and no Docker in sight.
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

    pub fn start(&self, arguments: &[&str]) -> Running {
        start(self.command(arguments))
    }

    /// The folders of runs that are there.
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

    /// Every process at home in one of them, also when the folder is gone.
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

    /// Whatever is still there of any run, in order.
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

    /// A program in the place of another, as a script.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.state.path().join(name);
        write_script(&path, text);
        path
    }
}

impl Servers {
    fn on_path() -> Option<Servers> {
        // As the program looks for them, with the version that it needs.
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().expect("a runtime");
        let find = |program: Program| Some(runtime.block_on(program.find()).ok()?.path);
        Some(Servers {
            redis_server: find(Program::RedisServer)?,
            etcd: find(Program::Etcd)?,
        })
    }

    fn from_images() -> Servers {
        images();
        Servers {
            redis_server: copied("fencepost/redis:7.0", "redis-server"),
            etcd: copied("fencepost/etcd:3.5", "etcd"),
        }
    }
}

/// A program out of an image, with all the libraries it loads and the loader
/// itself: whatever this machine has does not matter.
fn copied(image: &str, program: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("servers-{program}"));
    fs::create_dir_all(&folder).expect("a folder under target/");
    let pack = format!("tar -ch /usr/bin/{program} $(ldd /usr/bin/{program} | grep -o '/[^ ]*')");
    let packed = docker(&["run", "--rm", "--entrypoint", "sh", image, "-c", &pack]);
    let stderr = String::from_utf8_lossy(&packed.stderr);
    assert!(packed.status.success(), "{pack}: {stderr}");
    let mut unpack = Command::new("tar");
    unpack
        .arg("-x")
        .arg("-C")
        .arg(&folder)
        .stdin(Stdio::piped());
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
    script
}

fn write_script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}")).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a script to run");
}
