//! Runs without containers: with the lock servers of this machine, or with those copied out of
//! the images.

use super::command::{Ended, Running, command, start};
use super::docker::docker;
use super::session;
use super::turn::{Turn, images, machine_alone, machine_shared, needs_docker};
use fencepost::cluster::local::programs::Program;
use std::collections::BTreeMap;
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

/// Each variable that says where a server is, and its path.
type Servers = BTreeMap<&'static str, PathBuf>;

/// A server, and where its image has it with everything else that it needs.
struct Source {
    program: Program,
    setting: &'static str,
    image: &'static str,
    /// The server comes first.
    files: &'static [&'static str],
}

const REDIS_AND_ETCD: &[Source] = &[
    Source {
        program: Program::RedisServer,
        setting: "FENCEPOST_REDIS_SERVER",
        image: "fencepost/redis:7.0",
        files: &["/usr/bin/redis-server"],
    },
    Source {
        program: Program::Etcd,
        setting: "FENCEPOST_ETCD",
        image: "fencepost/etcd:3.5",
        files: &["/usr/bin/etcd"],
    },
];

const DATABASES: &[Source] = &[
    Source {
        program: Program::Postgres,
        setting: "FENCEPOST_POSTGRES",
        image: "fencepost/postgres:15",
        files: &[
            "/usr/lib/postgresql/15/bin/postgres",
            "/usr/lib/postgresql/15/bin/initdb",
            "/usr/lib/postgresql/15/lib",
            "/usr/share/postgresql/15",
        ],
    },
    Source {
        program: Program::MariaDb,
        setting: "FENCEPOST_MARIADBD",
        image: "fencepost/mariadb:10.11",
        files: &[
            "/usr/sbin/mariadbd",
            "/usr/bin/mariadb-install-db",
            "/usr/bin/my_print_defaults",
            "/usr/bin/resolveip",
            "/usr/share/mysql",
        ],
    },
];

/// Prepares local runs while other tests run.
pub fn local() -> Local {
    Local::new(machine_shared())
}

/// Prepares local runs while no other test runs.
pub fn local_alone() -> Local {
    Local::new(machine_alone())
}

/// Prepares local runs of scenarios that lock in a database or guard one.
pub fn local_with_databases() -> Local {
    local().with_databases()
}

impl Local {
    /// Panics if there are no lock servers, and no Docker to copy them from.
    fn new(turn: Turn) -> Local {
        static SERVERS: OnceLock<Servers> = OnceLock::new();
        let servers = SERVERS.get_or_init(|| found(REDIS_AND_ETCD));
        Local {
            state: tempfile::tempdir().expect("a temporary folder"),
            servers: servers.clone(),
            _turn: turn,
        }
    }

    pub fn with_databases(mut self) -> Local {
        static SERVERS: OnceLock<Servers> = OnceLock::new();
        let servers = SERVERS.get_or_init(|| found(DATABASES)).clone();
        self.servers.extend(servers);
        self
    }

    /// Returns the program with the lock servers and without Docker.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = command(arguments);
        command
            .env("XDG_STATE_HOME", self.state.path())
            .envs(&self.servers)
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
        &self.servers["FENCEPOST_REDIS_SERVER"]
    }

    /// Writes a script that replaces a program.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.state.path().join(name);
        write_script(&path, text);
        path
    }
}

/// Returns the servers of this machine, and for those that it does not have, copies.
fn found(sources: &[Source]) -> Servers {
    let found = sources.iter().map(|source| (source.setting, source.path()));
    found.collect()
}

impl Source {
    fn path(&self) -> PathBuf {
        // This searches as the program does, including the version that it needs.
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().expect("a runtime");
        match runtime.block_on(self.program.find()) {
            Ok(installed) => installed.path,
            Err(_) => self.copied(),
        }
    }

    /// Copies everything out of the image, with all the libraries that it loads and the loader
    /// itself, so that it does not depend on this machine.
    fn copied(&self) -> PathBuf {
        needs_docker();
        images();
        let name = format!("copied-{}", self.program.name());
        let folder = session::folder().join(&name);
        session::once(&name, COPY_DEADLINE, || self.copy(&folder));
        folder.join(self.files[0].trim_start_matches('/'))
    }

    fn copy(&self, folder: &Path) {
        fs::create_dir_all(folder).expect("a folder under target/");
        let files = self.files.join(" ");
        // What is no executable has no libraries.
        let pack = format!(
            "tar -ch --ignore-failed-read {files} \
             $(for file in {files}; do ldd $file 2> /dev/null; done | grep -o '/[^ ]*')"
        );
        let packed = docker(&["run", "--rm", "--entrypoint", "sh", self.image, "-c", &pack]);
        let stderr = String::from_utf8_lossy(&packed.stderr);
        assert!(packed.status.success(), "{pack}: {stderr}");
        let mut unpack = Command::new("tar");
        unpack.arg("-x").arg("-C").arg(folder).stdin(Stdio::piped());
        let mut unpack = unpack.spawn().expect("tar is here");
        let mut stdin = unpack.stdin.take().expect("piped");
        stdin.write_all(&packed.stdout).expect("tar reads");
        drop(stdin);
        assert!(unpack.wait().expect("a child").success());
        for file in self.files {
            wrap(folder, &folder.join(file.trim_start_matches('/')));
        }
    }
}

/// Puts a script in the place of an executable, which runs it with its own libraries.
fn wrap(folder: &Path, file: &Path) {
    let is_executable = file.is_file() && fs::read(file).expect("readable").starts_with(b"\x7fELF");
    if !is_executable {
        return;
    }
    let real = file.with_extension("real");
    fs::rename(file, &real).expect("a file of ours");
    let (root, real) = (folder.display(), real.display());
    let text = format!(
        "libraries=$(find {root} -name '*.so*' -exec dirname {{}} + | sort -u | paste -sd:)\n\
         loader=$(find {root} -name 'ld-linux*' | head -1)\n\
         [ -z \"$loader\" ] && exec {real} \"$@\"\n\
         exec $loader --library-path \"$libraries\" {real} \"$@\"\n"
    );
    write_script(file, &text);
}

fn write_script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}")).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a script to run");
}
