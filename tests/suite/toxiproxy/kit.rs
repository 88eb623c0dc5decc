use crate::support::{Said, command, fresh_folder, skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use toxiproxy_server::ToxiproxyClient;

const DEADLINE: Duration = Duration::from_secs(30);

/// The real program in the role, on a port of its own. It ends with the test.
pub struct Server {
    child: Child,
    pub base: String,
    stderr: Arc<Said>,
}

impl Server {
    pub fn start(flags: &[&str]) -> Server {
        let arguments = ["toxiproxy"].iter().chain(flags);
        Server::run(command(arguments))
    }

    /// Returns once it has said that it listens.
    pub fn run(mut command: Command) -> Server {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        // The threads that hear end with the child's output.
        let (stdout, _) = Said::hear(child.stdout.take().expect("piped"));
        let (stderr, _) = Said::hear(child.stderr.take().expect("piped"));
        let mut server = Server {
            child,
            base: String::new(),
            stderr,
        };
        let said = stdout.await_text(0, "\n", DEADLINE);
        said.unwrap_or_else(|error| panic!("{error}{}", server.told()));
        let line = stdout.text();
        let address = line.trim_end().strip_prefix("toxiproxy listening on ");
        let address = address.unwrap_or_else(|| panic!("another first line: {line}"));
        server.base = format!("http://{address}");
        server
    }

    pub fn client(&self) -> ToxiproxyClient {
        ToxiproxyClient::new(&self.base, DEADLINE).expect("an address")
    }

    pub async fn status_of(&self, path: &str) -> u16 {
        let http = reqwest::Client::builder().no_proxy().build();
        let request = http.expect("a client").get(format!("{}{path}", self.base));
        let answer = request.timeout(DEADLINE).send().await;
        answer.expect("an answer").status().as_u16()
    }

    /// Returns once it has said this on stderr.
    pub fn await_told(&self, text: &str) {
        let told = self.stderr.await_text(0, text, DEADLINE);
        told.unwrap_or_else(|error| panic!("{error}"));
    }

    /// What it said on stderr so far.
    pub fn told(&self) -> String {
        self.stderr.text()
    }

    /// The exit code after SIGTERM.
    pub fn terminate(mut self) -> Option<i32> {
        let pid = i32::try_from(self.child.id()).expect("a pid");
        kill(Pid::from_raw(pid), Signal::SIGTERM).expect("it runs");
        assert!(self.stderr.await_end(DEADLINE), "it does not end");
        self.child.wait().expect("it ended").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A Python that has the package toxiproxy-python. None, and a line that says
/// so, where it cannot be had; with CI set, that is a failure.
pub fn python_with_toxiproxy() -> Option<PathBuf> {
    let folder = fresh_folder("toxiproxy-python");
    let python = folder.join("bin/python");
    let made = run(Command::new("python3").arg("-m").arg("venv").arg(&folder));
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "toxiproxy-python"]);
    match made.and_then(|()| run(&mut pip)) {
        Ok(()) => Some(python),
        Err(error) if std::env::var_os("CI").is_some() => panic!("{error}"),
        Err(error) => {
            skip(&format!("no Python with toxiproxy-python: {error}"));
            None
        }
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {said}")),
    }
}
