//! The programs that are used in place of images: this one, and the lock servers that are
//! installed on this machine.

use super::command::LocalCommand;
use super::*;
use crate::cluster::{COMMAND_IMAGE, OWN_IMAGE, find_program};
use std::ffi::OsString;

const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// The running executable, even if its file is gone or another one by now.
const OURSELVES: &str = "/proc/self/exe";
/// The parts of our own environment that the loader and scripts need; nothing else leaks into a
/// node.
const INHERITED: [&str; 2] = ["PATH", "LD_LIBRARY_PATH"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    Ourselves,
    RedisServer,
    Etcd,
    /// Whatever the node's own command names: a worker of the user's.
    Given,
}

struct ProgramFacts {
    name: &'static str,
    /// The variable that says where it is, if it is not on the PATH.
    setting: &'static str,
    /// The text before the version in the output of `--version`.
    before_version: &'static str,
    least: Version,
    package: &'static str,
}

type Version = (u32, u32);

const REDIS_SERVER: ProgramFacts = ProgramFacts {
    name: "redis-server",
    setting: "FENCEPOST_REDIS_SERVER",
    before_version: "v=",
    least: (7, 0),
    package: "redis-server",
};

const ETCD: ProgramFacts = ProgramFacts {
    name: "etcd",
    setting: "FENCEPOST_ETCD",
    before_version: "etcd Version: ",
    least: (3, 4),
    package: "etcd-server",
};

impl Program {
    /// The servers that topologies need beside this program.
    pub const SERVERS: [Program; 2] = [Program::RedisServer, Program::Etcd];

    /// Returns the program for an image, if there is one: `fencepost/redis:7.0`, `redis:7`.
    pub fn of_image(image: &str) -> Option<Program> {
        let last = image.rsplit('/').next().unwrap_or_default();
        match last.split(':').next() {
            _ if image == OWN_IMAGE => Some(Program::Ourselves),
            _ if image == COMMAND_IMAGE => Some(Program::Given),
            Some("redis") => Some(Program::RedisServer),
            Some("etcd") => Some(Program::Etcd),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        self.about().map_or("fencepost", |about| about.name)
    }

    fn about(self) -> Option<&'static ProgramFacts> {
        match self {
            Program::Ourselves | Program::Given => None,
            Program::RedisServer => Some(&REDIS_SERVER),
            Program::Etcd => Some(&ETCD),
        }
    }

    /// Looks for the program and asks for its version.
    pub async fn find(self) -> ClusterResult<InstalledProgram> {
        let Some(about) = self.about() else {
            return Ok(InstalledProgram {
                program: self,
                path: PathBuf::from(OURSELVES),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            });
        };
        let set = std::env::var_os(about.setting).filter(|set| !set.is_empty());
        let path = match set {
            // A node is started in another folder than this process.
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
        Ok(InstalledProgram {
            program: self,
            path,
            version,
        })
    }
}

impl ProgramFacts {
    fn missing(&self, reason: &str) -> ClusterError {
        let (major, minor) = self.least;
        ClusterError::missing(
            format!("{} {major}.{minor} or newer ({reason})", self.name),
            format!(
                "run: apt-get install {}, or set {} to the path of another, or use --runtime docker",
                self.package, self.setting
            ),
        )
    }

    /// Returns the version as it is written, and as numbers to compare.
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledProgram {
    pub program: Program,
    pub path: PathBuf,
    pub version: String,
}

impl InstalledProgram {
    /// Returns the command. Of our environment, only what the system needs leaks into it.
    pub fn command(&self, said: LocalCommand, root: &Path) -> io::Result<Command> {
        if self.program == Program::Given {
            return given(said);
        }
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

    /// Returns arguments that come last, because later options override earlier ones.
    fn more_arguments(&self) -> &[&str] {
        match self.program {
            // The commands of containers listen everywhere, by an option or by default. A server
            // that goes into the background would outlive us.
            Program::RedisServer => &["--bind", "127.0.0.1", "--daemonize", "no"],
            // Older versions write another kind of log by default.
            Program::Etcd => &["--logger=zap"],
            Program::Ourselves | Program::Given => &[],
        }
    }
}

/// Returns a command of the user's, with the user's own environment but for the settings of
/// tasks, which are the run's.
fn given(said: LocalCommand) -> io::Result<Command> {
    let mut words = said.command.into_iter();
    let program = words
        .next()
        .ok_or_else(|| io::Error::other("its command is empty"))?;
    let mut command = Command::new(program);
    command.args(words);
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"FENCEPOST_") {
            command.env_remove(name);
        }
    }
    command.envs(said.environment);
    Ok(command)
}

/// The programs that were found.
#[derive(Clone, Debug, Default)]
pub struct Programs(pub BTreeMap<Program, InstalledProgram>);

impl Programs {
    pub fn of(&self, node: &NodeSpec) -> ClusterResult<&InstalledProgram> {
        let program = Program::of_image(&node.image);
        let found = program.and_then(|program| self.0.get(&program));
        found.ok_or_else(|| ClusterError::NotHere {
            what: format!("start {} from the image {}", node.name, node.image),
        })
    }
}

/// Returns why a node cannot be a process here.
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
    // Without a port it would listen where the machine's own server may be.
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
