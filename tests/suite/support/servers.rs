//! Real servers that tests may stop, start, freeze and thaw, and that cannot outlive the tests:
//! a keeper in the container takes orders on its stdin and ends with it. Its stdin ends with
//! this process, however that ends, or with the run if all tests of the run share the server.
//!
//! The servers use the host's network. Their addresses stay the same after a restart, a stopped
//! server refuses connections as a real one does, and no proxy of the engine is in between.

mod consul;
mod dynamodb;
mod etcd;
mod mariadb;
mod port;
mod postgres;
mod redis;
mod shared;
mod zookeeper;

pub use consul::{consul_address, own_consul};
pub use dynamodb::{dynamodb_address, own_dynamodb, own_moto};
pub use etcd::{etcd_servers, own_etcd, own_fast_etcd, own_small_etcd};
pub use mariadb::{mariadb_address, own_mariadb};
pub use port::free_port;
pub use postgres::{own_postgres, postgres_address};
pub use redis::{own_durable_redis, own_redis, redis_address, redis_container, redlock_servers};
pub use shared::heal_servers;
pub use zookeeper::{own_zookeeper, zookeeper_servers};

use super::docker::{docker, docker_ok};
use super::said::Said;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const READY_DEADLINE: Duration = Duration::from_secs(30);
const ORDER_DEADLINE: Duration = Duration::from_secs(10);
const END_DEADLINE: Duration = Duration::from_secs(20);

/// The keeper is pid 1: when it ends, everything else in the container ends too. A server is
/// its process and the processes that it has started; it is stopped first, so that it starts no
/// more of them. It counts as frozen when all of their threads have been seen stopped.
const KEEPER: &str = r#"exec 2>&1
"$@" & server=$!
family() { echo $server; grep -ls "^PPid:.$server\$" /proc/[0-9]*/status | cut -d/ -f3; }
hold() { kill -STOP $server; while grep -qs '^State:.[^TXZ]' /proc/$server/status; do :; done; }
runs() { grep -qs '^State:.[^XZ]' /proc/$1/status; }
states() { for one in $(family); do cat /proc/$one/task/*/status; done | grep '^State:'; }
while read -r order; do
    case $order in
        stop) hold; all=$(family); kill -KILL $all; wait $server
            for one in $all; do while runs $one; do :; done; done ;;
        start) "$@" & server=$! ;;
        freeze) hold; kill -STOP $(family); while states | grep -qv 'T (stopped)'; do :; done ;;
        thaw) kill -CONT $(family) ;;
        end) exit ;;
    esac
    echo "keeper: $order done"
done"#;

/// One server process in its own container. It ends when it is dropped, unless it is shared.
pub struct Server {
    /// `127.0.0.1:PORT`, unchanged for as long as the container lives.
    pub address: String,
    /// The name of its container.
    pub container: String,
    ready: &'static str,
    said: Arc<Said>,
    keeper: Mutex<Keeper>,
}

struct Keeper {
    state: State,
    /// The position in its output where the current life of the server begins.
    life: usize,
    /// None once it was told to end.
    orders: Option<Box<dyn Write + Send>>,
    /// The process that reads the orders, if this process has started it.
    client: Option<Child>,
    /// The file in which other processes find its state, if it is shared.
    record: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum State {
    Up,
    Stopped,
    Frozen,
}

/// Everything that is needed to launch a server.
struct Plan {
    container: String,
    image: &'static str,
    address: String,
    command: Vec<String>,
    /// The text in its log when it is ready.
    ready: &'static str,
}

impl Server {
    /// Kills the process as a power cut would (SIGKILL). It stays down, and its data on disk stays.
    #[track_caller]
    pub fn stop(&self) {
        let mut keeper = self.keeper();
        let was_running = keeper.state != State::Stopped;
        assert!(was_running, "{} is stopped already", self.container);
        self.done(self.order(&mut keeper, "stop", State::Stopped));
    }

    /// Starts a stopped server at the same address, with its data on disk. Returns when it
    /// answers. An etcd member needs a majority for that: after a stop of more than one, use
    /// [`start_together`].
    #[track_caller]
    pub fn start(&self) {
        start_together([self]);
    }

    /// Stops only the server's process, with SIGSTOP: its connections stay open, and nobody
    /// answers.
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

    /// Returns whether every thread of the keeper's child is stopped, according to the kernel
    /// of its container.
    pub fn stands_still(&self) -> bool {
        let look = "cat /proc/$(cut -d' ' -f1 /proc/1/task/1/children)/task/*/stat";
        let stats = docker_ok(&["exec", &self.container, "sh", "-c", look]);
        stats.lines().all(|stat| stat.contains(") T "))
    }

    fn order(&self, keeper: &mut Keeper, order: &str, then: State) -> Result<(), String> {
        let from = self.said.now();
        let orders = keeper.orders.as_mut().ok_or("has ended")?;
        // It is written at once, because a pipe with many writers keeps only single writes whole.
        let line = format!("{order}\n");
        let written = orders.write_all(line.as_bytes());
        written.map_err(|error| format!("cannot {order}: {error}"))?;
        let done = format!("keeper: {order} done");
        self.said.await_text(from, &done, ORDER_DEADLINE)?;
        if keeper.state == State::Stopped {
            keeper.life = from;
        }
        keeper.state = then;
        keeper.write_down();
        Ok(())
    }

    fn await_ready(&self) -> Result<(), String> {
        let life = self.keeper().life;
        self.said.await_text(life, self.ready, READY_DEADLINE)
    }

    /// Thaws or starts the server, without waiting until it answers.
    fn mend(&self) -> Result<(), String> {
        let mut keeper = self.keeper();
        match keeper.state {
            State::Up => Ok(()),
            State::Frozen => self.order(&mut keeper, "thaw", State::Up),
            State::Stopped => self.order(&mut keeper, "start", State::Up),
        }
    }

    /// Closes its stdin, which ends the container.
    fn hang_up(&self) -> Option<Child> {
        let mut keeper = self.keeper();
        keeper.orders.take();
        keeper.client.take()
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

/// Starts stopped servers together; returns when all of them answer.
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

/// Launches servers together; returns when all of them answer.
fn launch(plans: impl IntoIterator<Item = Plan>) -> Vec<Server> {
    let servers: Vec<Server> = plans.into_iter().map(begin).collect();
    for server in &servers {
        server.done(server.await_ready());
    }
    servers
}

impl Plan {
    /// Returns the command that runs the container.
    fn client(&self) -> Vec<&str> {
        let run = ["docker", "run", "--rm", "-i", "--network", "host", "--name"];
        let keeper = [&*self.container, self.image, "sh", "-c", KEEPER, "keeper"];
        let server = self.command.iter().map(String::as_str);
        run.into_iter().chain(keeper).chain(server).collect()
    }
}

fn begin(plan: Plan) -> Server {
    let client = plan.client();
    let mut child = Command::new(client[0])
        .args(&client[1..])
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
            orders: Some(Box::new(stdin)),
            client: Some(child),
            record: None,
        }),
    }
}
