//! The folder of a database before its server is started for the first time. Images bring it along;
//! here the programs of the same package make it.

use super::confined::path_at;
use super::programs::InstalledProgram;
use super::spawn::spawn;
use super::*;
use crate::cluster::find_program;
use nix::sys::signal::{Signal, killpg};
use std::process::Stdio;
use tokio::io::AsyncWriteExt;

const MAKE_DEADLINE: Duration = Duration::from_secs(60);

/// How a data folder is made, as in the images.
pub struct Database {
    steps: &'static [Step],
}

/// In its arguments, DATA is the folder, and PREFIX is where the package is installed.
struct Step {
    /// A program of the same package.
    program: &'static str,
    arguments: &'static [&'static str],
    input: &'static str,
}

pub const POSTGRES: Database = Database {
    steps: &[Step {
        program: "initdb",
        arguments: &[
            "--pgdata=DATA",
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        ],
        input: "",
    }],
};

pub const MARIADB: Database = Database {
    steps: &[
        Step {
            program: "mariadb-install-db",
            arguments: &[
                "--no-defaults",
                "--basedir=PREFIX",
                "--datadir=DATA",
                "--skip-test-db",
                "--innodb-log-file-size=8M",
                "--auth-root-authentication-method=normal",
            ],
            input: "",
        },
        Step {
            program: "mariadbd",
            arguments: &[
                "--no-defaults",
                "--basedir=PREFIX",
                "--datadir=DATA",
                "--bootstrap",
                "--skip-grant-tables=0",
            ],
            input: "CREATE DATABASE fencing_lock;\n\
                    CREATE USER fencing_lock@'%';\n\
                    GRANT ALL PRIVILEGES ON *.* TO fencing_lock@'%' WITH GRANT OPTION;\n",
        },
    ],
};

impl Database {
    /// Returns why the folder of this node cannot be made.
    pub fn objection(&self, node: &NodeSpec) -> Option<String> {
        let paths = node.command.iter().filter(|word| path_at(word).is_some());
        (paths.count() != 1).then(|| {
            "its command has to name one absolute path, which is the folder of its data".to_owned()
        })
    }

    /// Returns what is missing beside the server to make it.
    pub fn lacking(&self, server: &Path) -> Option<String> {
        let mut steps = self.steps.iter();
        let missing = steps.find(|step| beside(server, step.program).is_none())?;
        Some(format!("there is no {} beside it", missing.program))
    }

    /// Makes the folder, unless there is something in it. It is complete or not there.
    pub async fn make(
        &self,
        server: &InstalledProgram,
        data: &Path,
        root: &Path,
    ) -> io::Result<()> {
        if fs::read_dir(data).is_ok_and(|mut entries| entries.next().is_some()) {
            return Ok(());
        }
        let unfinished = data.with_extension("unfinished");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)?;
        }
        private_folder(&unfinished)?;
        for step in self.steps {
            step.take(server, &unfinished, root).await?;
        }
        fs::rename(&unfinished, data)
    }
}

impl Step {
    async fn take(&self, server: &InstalledProgram, data: &Path, root: &Path) -> io::Result<()> {
        let missing = || io::Error::other(format!("there is no {}", self.program));
        let program = beside(&server.path, self.program).ok_or_else(missing)?;
        let (data, prefix) = (data.display().to_string(), prefix(&server.path));
        let prefix = prefix.display().to_string();
        let arguments = self.arguments.iter();
        let arguments = arguments.map(|it| it.replace("DATA", &data).replace("PREFIX", &prefix));
        let mut command = server.bare(&program, root);
        command.args(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = spawn(command).await?;
        let group = child.id().and_then(|pid| i32::try_from(pid).ok());
        let ended = async {
            if let Some(mut stdin) = child.stdin.take() {
                // A program that ends early says why in its own words.
                let _ = stdin.write_all(self.input.as_bytes()).await;
            }
            child.wait_with_output().await
        };
        let Ok(output) = tokio::time::timeout(MAKE_DEADLINE, ended).await else {
            // A script has started others.
            let _ = group.map(|group| killpg(Pid::from_raw(group), Signal::SIGKILL));
            let (program, seconds) = (self.program, MAKE_DEADLINE.as_secs());
            return Err(io::Error::other(format!(
                "{program} did not end within {seconds} s"
            )));
        };
        let output = output?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        let last = LastLines::of(&said).below();
        Err(io::Error::other(format!("{} failed{last}", self.program)))
    }
}

/// Finds a program of the same package.
fn beside(server: &Path, name: &str) -> Option<PathBuf> {
    let real = server.canonicalize().ok()?;
    if real.file_name().is_some_and(|own| own == name) {
        return Some(real);
    }
    let folder = real.parent()?;
    let near = [folder.join(name), folder.join("../bin").join(name)];
    near.into_iter()
        .find(|path| path.is_file())
        .or_else(|| find_program(name))
}

/// Returns the folder in which the package is installed: `/usr` for `/usr/sbin/mariadbd`.
pub fn prefix(server: &Path) -> PathBuf {
    let real = server.canonicalize().unwrap_or_else(|_| server.to_owned());
    let prefix = real.parent().and_then(Path::parent);
    prefix.map_or(real.clone(), Path::to_owned)
}
