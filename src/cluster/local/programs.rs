//! The programs that stand in for images: this one, and the lock servers that are
//! installed on this machine.

use super::command::Said;
use super::confined;
use crate::cluster::{ClusterError, NodeSpec, OWN_IMAGE, find_program};
use crate::files::private_folder;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;

const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// The running executable, also when its file is gone or another one by now.
const OURSELVES: &str = "/proc/self/exe";
/// Of our own environment, what the loader and scripts need; nothing else leaks
/// into a node.
const INHERITED: [&str; 2] = ["PATH", "LD_LIBRARY_PATH"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    Ourselves,
    RedisServer,
    Etcd,
}

/// What has to be known of a lock server's program.
struct About {
    name: &'static str,
    /// Says where it is, if not on the PATH.
    setting: &'static str,
    /// Stands before the version in what `--version` prints.
    before_version: &'static str,
    least: Version,
    package: &'static str,
}

type Version = (u32, u32);

const REDIS_SERVER: About = About {
    name: "redis-server",
    setting: "FENCEPOST_REDIS_SERVER",
    before_version: "v=",
    least: (7, 0),
    package: "redis-server",
};

const ETCD: About = About {
    name: "etcd",
    setting: "FENCEPOST_ETCD",
    before_version: "etcd Version: ",
    least: (3, 4),
    package: "etcd-server",
};

impl Program {
    /// The servers that topologies need beside us.
    pub const SERVERS: [Program; 2] = [Program::RedisServer, Program::Etcd];

    /// What an image is here, if anything: `fencepost/redis:7.0`, `redis:7`.
    pub fn of_image(image: &str) -> Option<Program> {
        let last = image.rsplit('/').next().unwrap_or_default();
        match last.split(':').next() {
            _ if image == OWN_IMAGE => Some(Program::Ourselves),
            Some("redis") => Some(Program::RedisServer),
            Some("etcd") => Some(Program::Etcd),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        self.about().map_or("fencepost", |about| about.name)
    }

    fn about(self) -> Option<&'static About> {
        match self {
            Program::Ourselves => None,
            Program::RedisServer => Some(&REDIS_SERVER),
            Program::Etcd => Some(&ETCD),
        }
    }

    /// Looks for it and asks for its version.
    pub async fn find(self) -> Result<Found, ClusterError> {
        let Some(about) = self.about() else {
            return Ok(Found {
                program: self,
                path: PathBuf::from(OURSELVES),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            });
        };
        let set = std::env::var_os(about.setting).filter(|set| !set.is_empty());
        let path = match set {
            // A node is started in another folder than this one.
            Some(set) => std::path::absolute(&set).unwrap_or_else(|_| set.into()),
            None => {
                find_program(about.name).ok_or_else(|| about.missing("it is not on the PATH"))?
            }
        };
        let said = version_text(&path).await;
        let said =
            said.map_err(|reason| about.missing(&format!("{}: {reason}", path.display())))?;
        let unclear = || {
            let shown = said.lines().next().unwrap_or_default();
            about.missing(&format!("{} says {shown:?}", path.display()))
        };
        let (version, number) = about.version_in(&said).ok_or_else(unclear)?;
        if number < about.least {
            return Err(about.missing(&format!("{} is {version}", path.display())));
        }
        Ok(Found {
            program: self,
            path,
            version,
        })
    }
}

impl About {
    fn missing(&self, reason: &str) -> ClusterError {
        let About {
            name,
            setting,
            package,
            least: (major, minor),
            ..
        } = self;
        ClusterError::Missing {
            what: format!("{name} {major}.{minor} or newer ({reason})"),
            remedy: format!(
                "run: apt-get install {package}, or set {setting} to the path of another, or use --runtime docker"
            ),
        }
    }

    /// As it is written, and to compare by.
    fn version_in(&self, text: &str) -> Option<(String, Version)> {
        let (_, after) = text.split_once(self.before_version)?;
        let is_end = |c: char| !(c.is_ascii_digit() || c == '.');
        let written = after.split(is_end).next()?;
        let mut parts = written.split('.').map(str::parse);
        let (major, minor) = (parts.next()?.ok()?, parts.next()?.ok()?);
        Some((written.to_owned(), (major, minor)))
    }
}

async fn version_text(path: &Path) -> Result<String, String> {
    let mut command = Command::new(path);
    command.arg("--version").kill_on_drop(true);
    let output = tokio::time::timeout(ANSWER_DEADLINE, command.output()).await;
    let output = output.map_err(|_| "--version gave no answer".to_owned())?;
    let output = output.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A program of this machine that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub program: Program,
    pub path: PathBuf,
    pub version: String,
}

impl Found {
    /// Nothing of our environment leaks into it but what the system needs.
    pub fn command(&self, said: Said, root: &Path) -> io::Result<Command> {
        for folder in &said.folders {
            private_folder(folder)?;
        }
        let named = usize::from(self.program.about().is_some());
        let mut command = Command::new(&self.path);
        let inherited = INHERITED.iter();
        let inherited = inherited.filter_map(|name| Some((name, std::env::var_os(name)?)));
        command
            .args(said.command.into_iter().skip(named))
            .args(self.more_arguments())
            .env_clear()
            .envs(inherited.collect::<BTreeMap<_, OsString>>())
            .envs(said.environment)
            .current_dir(root);
        Ok(command)
    }

    /// What comes last wins.
    fn more_arguments(&self) -> &[&str] {
        match self.program {
            // Containers listen everywhere, and say so or leave it out. A server that goes
            // into the background would outlive us.
            Program::RedisServer => &["--bind", "127.0.0.1", "--daemonize", "no"],
            // Older versions write another kind of log by default.
            Program::Etcd => &["--logger=zap"],
            Program::Ourselves => &[],
        }
    }
}

/// Those that were found, for the clusters to come.
#[derive(Clone, Debug, Default)]
pub struct Programs(pub BTreeMap<Program, Found>);

impl Programs {
    pub fn of(&self, node: &NodeSpec) -> Result<&Found, ClusterError> {
        let program = Program::of_image(&node.image);
        let found = program.and_then(|program| self.0.get(&program));
        found.ok_or_else(|| ClusterError::NotHere {
            what: format!("start {} from the image {}", node.name, node.image),
        })
    }
}

/// Why a node cannot be a process here.
pub fn unstartable(node: &NodeSpec) -> Option<String> {
    let image = &node.image;
    let Some(program) = Program::of_image(image) else {
        return Some(format!(
            "its image {image} takes a container; use --runtime docker"
        ));
    };
    if let Some(objection) = confined::objection(program, node) {
        return Some(objection);
    }
    let about = program.about()?;
    let first = node.command.first().map(String::as_str);
    if first != Some(about.name) {
        return Some(format!(
            "only `{}` can be run in place of its image {image}, and its command is another; use --runtime docker",
            about.name
        ));
    }
    // Without one it would listen where the machine's own server may be.
    let says_its_port =
        program != Program::RedisServer || node.command.iter().any(|word| word == "--port");
    (!says_its_port).then(|| "its command says no port; add `--port` and the port".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_programs_where_there_is_one() {
        for (image, program) in [
            (OWN_IMAGE, Some(Program::Ourselves)),
            ("fencepost/redis:7.0", Some(Program::RedisServer)),
            ("redis:7", Some(Program::RedisServer)),
            ("fencepost/etcd:3.5", Some(Program::Etcd)),
            ("fencepost/examples/redis-py-worker:latest", None),
            ("somebody/self:latest", None),
            ("", None),
        ] {
            assert_eq!(Program::of_image(image), program, "{image}");
        }
    }

    #[test]
    fn a_redis_without_a_port_would_listen_at_the_machine_s_own() {
        for (command, fine) in [
            ("redis-server, --port, '6379'", true),
            ("redis-server, --bind, 0.0.0.0", false),
            ("sh, -c, redis-server", false),
        ] {
            let service = "services:\n  redis:\n    image: redis:7\n    command: ";
            let text = format!("{service}[{command}]\n");
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("t.yml");
            std::fs::write(&path, text).unwrap();
            let service = crate::cluster::topology::load_service(&path, "redis").unwrap();
            let reason = unstartable(&service.node(&"redis".into()));
            assert_eq!(reason.is_none(), fine, "{command}: {reason:?}");
        }
    }

    #[test]
    fn versions_are_read_from_what_programs_print() {
        let redis = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64";
        let read = REDIS_SERVER.version_in(redis);
        assert_eq!(read, Some(("7.0.15".to_owned(), (7, 0))));
        let etcd = "etcd Version: 3.5.16\nGit SHA: GitNotFound\n";
        assert_eq!(ETCD.version_in(etcd), Some(("3.5.16".to_owned(), (3, 5))));
        for text in ["", "hello", "v=", "v=x.y", "v=7"] {
            assert_eq!(REDIS_SERVER.version_in(text), None, "{text}");
        }
    }
}
