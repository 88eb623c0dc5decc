//! One real Redis for the whole test process, which it cannot outlive: the
//! container ends with its stdin, and its stdin ends with this process,
//! however that ends.

use super::docker::docker_ok;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

const READY_DEADLINE: Duration = Duration::from_secs(30);
const SERVER: &str = r#"redis-server --save "" --protected-mode no --bind 0.0.0.0 &
cat > /dev/null; kill $!; wait"#;

struct Server {
    address: String,
    container: String,
}

static SERVER_HERE: OnceLock<Server> = OnceLock::new();
static CHILD: Mutex<Option<(Child, ChildStdin)>> = Mutex::new(None);

/// `host:port`. Take a turn on Docker first.
pub fn redis_address() -> String {
    server().address.clone()
}

/// The name of its container: the same image as a run's Redis, and not ours.
pub fn redis_container() -> &'static str {
    &server().container
}

fn server() -> &'static Server {
    SERVER_HERE.get_or_init(launch)
}

fn launch() -> Server {
    let container = format!("test-redis-{}", std::process::id());
    let mut child = Command::new("docker")
        .args(["run", "--rm", "-i", "-p", "127.0.0.1::6379"])
        .args(["--name", &container])
        .args(["fencepost/redis:7.0", "sh", "-c", SERVER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the docker command line is here");
    let stdin = child.stdin.take().expect("piped");
    let stdout = BufReader::new(child.stdout.take().expect("piped"));
    *CHILD.lock().unwrap_or_else(PoisonError::into_inner) = Some((child, stdin));
    end_with_this_process();
    let (send, ready) = channel();
    // Reads to the end, so that the server never waits for a full pipe.
    std::thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            if line.contains("Ready to accept connections") {
                let _ = send.send(());
            }
        }
    });
    ready
        .recv_timeout(READY_DEADLINE)
        .expect("the tests' Redis gets ready");
    let address = docker_ok(&["port", &container, "6379/tcp"]);
    let address = address.lines().next().expect("a published port");
    Server {
        address: address.to_owned(),
        container,
    }
}

/// Closing the pipe is enough; waiting as well means that nothing is left at
/// the moment when the tests are over.
fn end_with_this_process() {
    extern "C" fn end() {
        let child = CHILD.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((mut child, stdin)) = child {
            drop(stdin);
            let _ = child.wait();
        }
    }
    // SAFETY: `end` is a plain function without arguments that does not unwind.
    unsafe { libc::atexit(end) };
}
