//! The programs that are used in place of images: this one, and the lock servers that are
//! installed on this machine.

use super::apart;
use super::command::LocalCommand;
use super::database::prefix;
use super::facts::{ETCD, MARIADB, POSTGRES, ProgramFacts, REDIS_SERVER};
use super::*;
use crate::cluster::{COMMAND_IMAGE, OWN_IMAGE};
use std::ffi::OsString;

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
    Postgres,
    MariaDb,
    /// Whatever the node's own command names: a worker of the user's.
    Given,
}

impl Program {
    /// The servers that topologies need beside this program.
    pub const SERVERS: [Program; 4] = [
        Program::RedisServer,
        Program::Etcd,
        Program::Postgres,
        Program::MariaDb,
    ];

    /// Returns the program for an image, if there is one: `fencepost/redis:7.0`, `redis:7`.
    pub fn of_image(image: &str) -> Option<Program> {
        let last = image.rsplit('/').next().unwrap_or_default();
        match last.split(':').next() {
            _ if image == OWN_IMAGE => Some(Program::Ourselves),
            _ if image == COMMAND_IMAGE => Some(Program::Given),
            Some("redis") => Some(Program::RedisServer),
            Some("etcd") => Some(Program::Etcd),
            Some("postgres") => Some(Program::Postgres),
            Some("mariadb") => Some(Program::MariaDb),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        self.about().map_or("fencepost", |about| about.name)
    }

    pub fn about(self) -> Option<&'static ProgramFacts> {
        match self {
            Program::Ourselves | Program::Given => None,
            Program::RedisServer => Some(&REDIS_SERVER),
            Program::Etcd => Some(&ETCD),
            Program::Postgres => Some(&POSTGRES),
            Program::MariaDb => Some(&MARIADB),
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
        let (path, version) = about.find().await?;
        Ok(InstalledProgram {
            program: self,
            path,
            version,
        })
    }
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
        let about = self.program.about();
        let mut command = self.bare(&self.path, root);
        command
            .args(said.command.into_iter().skip(usize::from(about.is_some())))
            .args(self.last_arguments())
            .envs(said.environment);
        Ok(command)
    }

    /// Returns a program that runs as this one does, without arguments.
    pub fn bare(&self, path: &Path, root: &Path) -> Command {
        let mut command = Command::new(path);
        let inherited = INHERITED.iter();
        let inherited = inherited.filter_map(|name| Some((name, std::env::var_os(name)?)));
        command
            .env_clear()
            .envs(inherited.collect::<BTreeMap<_, OsString>>())
            .current_dir(root);
        if let Some(about) = self.program.about() {
            // A MariaDB removes what others have there.
            command.env("TMPDIR", root);
            apart::set(&mut command, about.apart);
        }
        command
    }

    /// Returns arguments that come last, because later options override earlier ones.
    fn last_arguments(&self) -> Vec<String> {
        let words = self.program.about().map_or(&[][..], |it| it.last_arguments);
        let prefix = prefix(&self.path).display().to_string();
        let words = words.iter().map(|word| word.replace("PREFIX", &prefix));
        words.collect()
    }

    /// Makes what has to be on disk before the first start.
    pub async fn prepare(&self, said: &LocalCommand, root: &Path) -> io::Result<()> {
        let database = self.program.about().and_then(|about| about.database);
        match (database, said.folders.first()) {
            (Some(database), Some(data)) => {
                private_folder(data)?;
                database.make(self, data, root).await
            }
            _ => Ok(()),
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
    if let Some(objection) = about.database.and_then(|database| database.objection(node)) {
        return Some(objection);
    }
    // Without a port it would listen where the machine's own server may be.
    let option = about.port_option?;
    let names_it =
        |word: &String| word == option || option.ends_with('=') && word.starts_with(option);
    let says_its_port = node.command.iter().any(names_it);
    (!says_its_port).then(|| format!("its command says no port; add `{option}` and the port"))
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
    fn a_server_without_a_port_would_listen_at_the_machine_s_own() {
        for (image, command, fine) in [
            ("redis:7", "redis-server, --port, '6379'", true),
            ("redis:7", "redis-server, --bind, 0.0.0.0", false),
            ("redis:7", "redis-server, --port-of-another, '6379'", false),
            ("redis:7", "sh, -c, redis-server", false),
            ("postgres:15", "postgres, -D, /data, -p, '5432'", true),
            // Only a word of its own is recognised, and so replaced by a port of this machine.
            ("postgres:15", "postgres, -D, /data, -p5432", false),
            (
                "mariadb:10",
                "mariadbd, --no-defaults, --datadir=/data, --port=3306",
                true,
            ),
            (
                "mariadb:10",
                "mariadbd, --no-defaults, --datadir=/data",
                false,
            ),
        ] {
            let service = format!("services:\n  redis:\n    image: {image}\n    command: ");
            let text = format!("{service}[{command}]\n");
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("t.yml");
            std::fs::write(&path, text).unwrap();
            let service = crate::cluster::topology::load_service(&path, "redis").unwrap();
            let reason = unstartable(&service.node(&"redis".into()));
            assert_eq!(reason.is_none(), fine, "{command}: {reason:?}");
        }
    }
}
