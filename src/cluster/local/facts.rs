//! What is known of the lock servers that run without containers: how each is found, and what it
//! needs to be started here.

use super::apart::{self, Apart};
use super::database::{self, Database};
use super::process::Members;
use super::*;
use crate::cluster::find_program;

const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

pub struct ProgramFacts {
    pub name: &'static str,
    /// The variable that says where it is, if it is not on the PATH.
    setting: &'static str,
    /// Where its package puts it, if that is not on everybody's PATH.
    folders: &'static [&'static str],
    /// The text before the version in the output of `--version`.
    before_version: &'static str,
    least: Version,
    package: &'static str,
    /// How its command begins to name its port, if it would listen at a port of its own without.
    pub port_option: Option<&'static str>,
    pub apart: Apart,
    /// What its data folder has to hold before its first start.
    pub database: Option<&'static Database>,
    pub members: Members,
    /// Arguments that come last, because later options override earlier ones. PREFIX is where the
    /// package is installed.
    pub last_arguments: &'static [&'static str],
}

type Version = (u32, u32);

pub const REDIS_SERVER: ProgramFacts = ProgramFacts {
    name: "redis-server",
    setting: "FENCEPOST_REDIS_SERVER",
    folders: &[],
    before_version: "v=",
    least: (7, 0),
    package: "redis-server",
    port_option: Some("--port"),
    apart: Apart::Nothing,
    database: None,
    members: Members::Group,
    // The commands of containers listen everywhere, by an option or by default. A server that goes
    // into the background would outlive us.
    last_arguments: &["--bind", "127.0.0.1", "--daemonize", "no"],
};

pub const ETCD: ProgramFacts = ProgramFacts {
    name: "etcd",
    setting: "FENCEPOST_ETCD",
    folders: &[],
    before_version: "etcd Version: ",
    least: (3, 4),
    package: "etcd-server",
    port_option: None,
    apart: Apart::Nothing,
    database: None,
    members: Members::Group,
    // Older versions write another kind of log by default.
    last_arguments: &["--logger=zap"],
};

pub const POSTGRES: ProgramFacts = ProgramFacts {
    name: "postgres",
    setting: "FENCEPOST_POSTGRES",
    folders: &[
        "/usr/lib/postgresql/18/bin",
        "/usr/lib/postgresql/17/bin",
        "/usr/lib/postgresql/16/bin",
        "/usr/lib/postgresql/15/bin",
    ],
    before_version: "(PostgreSQL) ",
    least: (15, 0),
    package: "postgresql",
    port_option: Some("-p"),
    apart: Apart::UserAndMemory,
    database: Some(&database::POSTGRES),
    members: Members::Children,
    // What is left in /dev/shm would outlive the run's folder.
    last_arguments: &[
        "-h",
        "127.0.0.1",
        "-c",
        "unix_socket_directories=",
        "-c",
        "dynamic_shared_memory_type=mmap",
    ],
};

pub const MARIADB: ProgramFacts = ProgramFacts {
    name: "mariadbd",
    setting: "FENCEPOST_MARIADBD",
    folders: &["/usr/sbin"],
    before_version: "Ver ",
    least: (10, 11),
    package: "mariadb-server",
    port_option: Some("--port="),
    apart: Apart::User,
    database: Some(&database::MARIADB),
    members: Members::Group,
    // Its working folder is that of its data.
    last_arguments: &[
        "--bind-address=127.0.0.1",
        "--socket=socket",
        "--basedir=PREFIX",
    ],
};

impl ProgramFacts {
    /// Looks for the program, asks for its version, and sees that it can run here.
    pub async fn find(&self) -> ClusterResult<(PathBuf, String)> {
        let set = std::env::var_os(self.setting).filter(|set| !set.is_empty());
        let path = match set {
            // A node is started in another folder than this process.
            Some(set) => std::path::absolute(&set).unwrap_or_else(|_| set.into()),
            None => self
                .installed()
                .ok_or_else(|| self.missing("it is not on the PATH"))?,
        };
        let here = |reason: String| self.missing(&format!("{}: {reason}", path.display()));
        let said = self.version_text(&path).await.map_err(here)?;
        let unclear = || {
            let shown = said.lines().next().unwrap_or_default();
            self.missing(&format!("{} says {shown:?}", path.display()))
        };
        let (version, number) = self.version_in(&said).ok_or_else(unclear)?;
        if number < self.least {
            return Err(self.missing(&format!("{} is {version}", path.display())));
        }
        if let Some(lacking) = self.database.and_then(|database| database.lacking(&path)) {
            return Err(here(lacking));
        }
        Ok((path, version))
    }

    fn installed(&self) -> Option<PathBuf> {
        let folders = self.folders.iter();
        let mut places = folders.map(|folder| Path::new(folder).join(self.name));
        find_program(self.name).or_else(|| places.find(|path| path.is_file()))
    }

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

    /// Runs it as its nodes will run.
    async fn version_text(&self, path: &Path) -> Result<String, String> {
        let mut command = Command::new(path);
        command.arg("--version").kill_on_drop(true);
        apart::set(&mut command, self.apart);
        let output = tokio::time::timeout(ANSWER_DEADLINE, command.output()).await;
        let output = output.map_err(|_| "--version gave no answer".to_owned())?;
        let output = output.map_err(|error| self.apart.explained(&error))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

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
