//! Real servers that tests may stop, start, freeze and thaw, and that cannot
//! outlive the test process: a keeper in the container takes orders on its
//! stdin and ends with it, and its stdin ends with this process, however that
//! ends.
//!
//! They use the host's network. Their addresses stay the same over a restart, a
//! stopped one refuses connections as a real one does, and no proxy of the
//! engine stands between.

mod etcd;
mod port;
mod redis;
mod shared;

pub use etcd::{etcd_servers, own_etcd, own_small_etcd};
pub use redis::{own_durable_redis, own_redis, redis_address, redis_container, redlock_servers};
pub use shared::heal_servers;

use super::docker::docker;
use super::said::Said;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const READY_DEADLINE: Duration = Duration::from_secs(30);
const ORDER_DEADLINE: Duration = Duration::from_secs(10);
const END_DEADLINE: Duration = Duration::from_secs(20);

/// The keeper is pid 1: when it ends, so does everything else in the container.
/// A server counts as frozen when every thread of it has been seen stopped.
const KEEPER: &str = r#"exec 2>&1
"$@" & server=$!
states() { cat /proc/$server/task/*/status | grep '^State:'; }
while read -r order; do
    case $order in
        stop) kill -KILL $server; wait $server ;;
        start) "$@" & server=$! ;;
        freeze) kill -STOP $server; while states | grep -qv 'T (stopped)'; do :; done ;;
        thaw) kill -CONT $server ;;
    esac
    echo "keeper: $order done"
done"#;

/// One server process in a container of its own. It ends when it is dropped.
pub struct Server {
    /// `127.0.0.1:PORT`, the same for as long as the container lives.
    pub address: String,
    /// The name of its container.
    pub container: String,
    ready: &'static str,
    said: Arc<Said>,
    keeper: Mutex<Keeper>,
}

struct Keeper {
    state: State,
    /// Where in what it said the server's present life begins.
    life: usize,
    /// None once it was told to end.
    process: Option<(Child, ChildStdin)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Up,
    Stopped,
    Frozen,
}

/// What it takes to launch a server.
struct Plan {
    container: String,
    image: &'static str,
    address: String,
    command: Vec<String>,
    /// Its log says this when it answers.
    ready: &'static str,
}

impl Server {
    /// Kills the process as a power cut would (SIGKILL). It stays down, and
    /// what it has on disk stays there.
    #[track_caller]
    pub fn stop(&self) {
        let mut keeper = self.keeper();
        let was_running = keeper.state != State::Stopped;
        assert!(was_running, "{} is stopped already", self.container);
        self.done(self.order(&mut keeper, "stop", State::Stopped));
    }

    /// Starts a stopped server at the same address, with what it has on disk.
    /// Returns when it answers. An etcd member needs a majority for that:
    /// after a stop of more than one, use [`start_together`].
    #[track_caller]
    pub fn start(&self) {
        start_together([self]);
    }

    /// Stops the server's process with SIGSTOP, and nothing else of it:
    /// connections stand, and nobody answers.
    #[track_caller]
    pub fn freeze(&self) {
        let mut keeper = self.keeper();
        self.expect(&keeper, State::Up);
        self.done(self.order(&mut keeper, "freeze", State::Frozen));
    }

    #[track_caller]
    pub fn thaw(&self) {
        let mut keeper = self.keeper();
        self.expect(&keeper, State::Frozen);
        self.done(self.order(&mut keeper, "thaw", State::Up));
    }

    fn order(&self, keeper: &mut Keeper, order: &str, then: State) -> Result<(), String> {
        let from = self.said.now();
        let (_, stdin) = keeper.process.as_mut().ok_or("has ended")?;
        writeln!(stdin, "{order}").map_err(|error| format!("cannot {order}: {error}"))?;
        let done = format!("keeper: {order} done");
        self.said.await_text(from, &done, ORDER_DEADLINE)?;
        if keeper.state == State::Stopped {
            keeper.life = from;
        }
        keeper.state = then;
        Ok(())
    }

    fn await_ready(&self) -> Result<(), String> {
        let life = self.keeper().life;
        self.said.await_text(life, self.ready, READY_DEADLINE)
    }

    /// Undoes what was done to it, without waiting until it answers.
    fn mend(&self) -> Result<(), String> {
        let mut keeper = self.keeper();
        match keeper.state {
            State::Up => Ok(()),
            State::Frozen => self.order(&mut keeper, "thaw", State::Up),
            State::Stopped => self.order(&mut keeper, "start", State::Up),
        }
    }

    /// Its stdin ends, and so does the container.
    fn hang_up(&self) -> Option<Child> {
        let (child, _stdin) = self.keeper().process.take()?;
        Some(child)
    }

    fn await_end(&self, mut child: Child) {
        if !self.said.await_end(END_DEADLINE) {
            docker(&["rm", "-f", &self.container]);
        }
        let _ = child.wait();
    }

    fn keeper(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[track_caller]
    fn expect(&self, keeper: &Keeper, state: State) {
        assert_eq!(keeper.state, state, "{}", self.container);
    }

    #[track_caller]
    fn done(&self, result: Result<(), String>) {
        result.unwrap_or_else(|error| panic!("{} {error}", self.container));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = self.hang_up() {
            self.await_end(child);
        }
    }
}

/// Starts stopped servers at once; returns when all of them answer.
#[track_caller]
pub fn start_together<'a>(servers: impl IntoIterator<Item = &'a Server>) {
    let servers: Vec<&Server> = servers.into_iter().collect();
    for server in &servers {
        let mut keeper = server.keeper();
        server.expect(&keeper, State::Stopped);
        server.done(server.order(&mut keeper, "start", State::Up));
    }
    for server in servers {
        server.done(server.await_ready());
    }
}

/// Launches servers at once; returns when all of them answer.
fn launch(plans: impl IntoIterator<Item = Plan>) -> Vec<Server> {
    let servers: Vec<Server> = plans.into_iter().map(begin).collect();
    for server in &servers {
        server.done(server.await_ready());
    }
    servers
}

fn begin(plan: Plan) -> Server {
    let mut child = Command::new("docker")
        .args(["run", "--rm", "-i", "--network", "host"])
        .args(["--name", &plan.container])
        .args([plan.image, "sh", "-c", KEEPER, "keeper"])
        .args(plan.command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the docker command line is here");
    let stdin = child.stdin.take().expect("piped");
    let (said, _) = Said::hear(child.stdout.take().expect("piped"));
    Server {
        address: plan.address,
        container: plan.container,
        ready: plan.ready,
        said,
        keeper: Mutex::new(Keeper {
            state: State::Up,
            life: 0,
            process: Some((child, stdin)),
        }),
    }
}
