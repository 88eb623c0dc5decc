//! Servers that all tests of a run share, in whatever processes they are: launched by the first
//! test that needs them, found by the others, ended with the run.
//!
//! Orders go through a named pipe. A small process keeps it open for as long as the run's
//! leader lives; when no process has it open any more, the keeper ends, and its container with it.

use super::super::said::Said;
use super::super::session;
use super::{
    Keeper, Plan, READY_DEADLINE, Server, State, consul, dynamodb, etcd, mariadb, postgres, redis,
    zookeeper,
};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, Once, OnceLock};

/// A script that keeps the pipe open until the leader is gone, and becomes Docker's client,
/// which reads it.
const LAUNCH: &str = r#"leader=$1; orders=$2; shift 2
tail --pid="$leader" -s 0.2 -f /dev/null >"$orders" &
exec "$@" <"$orders""#;

pub struct Shared {
    name: &'static str,
    servers: OnceLock<Vec<Server>>,
}

static ALL: [&Shared; 8] = [
    &redis::SINGLE,
    &redis::REDLOCK,
    &etcd::MEMBERS,
    &postgres::SINGLE,
    &mariadb::SINGLE,
    &zookeeper::MEMBERS,
    &consul::SINGLE,
    &dynamodb::SINGLE,
];

/// The facts about a server that other processes need.
#[derive(Serialize, Deserialize)]
struct Record {
    container: String,
    address: String,
    ready: String,
    /// The process id of Docker's client.
    client: u32,
    state: State,
    life: usize,
}

impl Shared {
    pub const fn new(name: &'static str) -> Shared {
        Shared {
            name,
            servers: OnceLock::new(),
        }
    }
}

pub fn share(shared: &'static Shared, plans: fn() -> Vec<Plan>) -> &'static [Server] {
    static ONCE: Once = Once::new();
    ONCE.call_once(end_with_this_process);
    shared.servers.get_or_init(|| {
        let folder = session::folder().join(shared.name);
        let mut clients = Vec::new();
        session::once(shared.name, READY_DEADLINE * 2, || {
            fs::create_dir_all(&folder).expect("a folder under target/");
            let launched = plans().into_iter().map(|plan| launch(&folder, plan));
            clients = launched.collect();
            each(&find(&folder), Server::await_ready).unwrap_or_else(|error| panic!("{error}"));
        });
        let servers = find(&folder);
        for (server, client) in servers.iter().zip(clients) {
            server.keeper().client = Some(client);
        }
        // A process that ended in the middle of a test may have left a server stopped or frozen.
        heal(&servers).unwrap_or_else(|error| panic!("{error}"));
        servers
    })
}

fn launch(folder: &Path, plan: Plan) -> Child {
    let file = |ending: &str| folder.join(format!("{}.{ending}", plan.container));
    let orders = file("orders");
    nix::unistd::mkfifo(&orders, nix::sys::stat::Mode::S_IRWXU).expect("a pipe under target/");
    let said = File::create(file("said")).expect("a file under target/");
    let client = Command::new("sh")
        .args(["-c", LAUNCH, "launch", &session::leader().to_string()])
        .arg(orders)
        .args(plan.client())
        .stdin(Stdio::null())
        .stdout(said.try_clone().expect("a file of ours"))
        .stderr(said)
        // An interrupt at the terminal is meant for the tests, which then end the servers.
        .process_group(0)
        .spawn()
        .expect("sh is here");
    let record = Record {
        container: plan.container.clone(),
        address: plan.address.clone(),
        ready: plan.ready.to_owned(),
        client: client.id(),
        state: State::Up,
        life: 0,
    };
    record.write(&file("json"));
    client
}

/// Returns the servers of a folder, sorted by name.
fn find(folder: &Path) -> Vec<Server> {
    let files = fs::read_dir(folder).expect("a folder of ours");
    let files = files.map(|file| file.expect("readable").path());
    let mut records: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|ending| ending == "json"))
        .collect();
    records.sort();
    records.into_iter().map(found).collect()
}

fn found(path: PathBuf) -> Server {
    let record = Record::read(&path);
    let mut orders = File::options();
    let orders = orders.write(true).open(path.with_extension("orders"));
    Server {
        said: Said::follow(&path.with_extension("said"), record.client),
        address: record.address,
        container: record.container,
        ready: record.ready.leak(),
        keeper: Mutex::new(Keeper {
            state: record.state,
            life: record.life,
            orders: Some(Box::new(orders.expect("the pipe of its keeper"))),
            client: None,
            record: Some(path),
        }),
    }
}

impl Record {
    fn read(path: &Path) -> Record {
        let text = fs::read(path).expect("a record of ours");
        serde_json::from_slice(&text).expect("a record of ours")
    }

    fn write(&self, path: &Path) {
        let text = serde_json::to_vec(self).expect("JSON");
        fs::write(path, text).expect("a file under target/");
    }
}

impl Keeper {
    /// Writes the state for processes that look for the server later.
    pub fn write_down(&self) {
        if let Some(path) = &self.record {
            let record = Record {
                state: self.state,
                life: self.life,
                ..Record::read(path)
            };
            record.write(path);
        }
    }
}

/// Thaws and starts every shared server that a test left frozen or stopped.
pub fn heal_servers() -> Result<(), String> {
    ALL.iter()
        .filter_map(|shared| shared.servers.get())
        .try_for_each(|servers| heal(servers))
}

fn heal(servers: &[Server]) -> Result<(), String> {
    // All of them are started first: the members of etcd become ready only together.
    each(servers, Server::mend)?;
    each(servers, Server::await_ready)
}

fn each(servers: &[Server], heal: fn(&Server) -> Result<(), String>) -> Result<(), String> {
    servers.iter().try_for_each(|server| {
        let name = &server.container;
        heal(server).map_err(|error| format!("{name} {error}"))
    })
}

/// Ends the shared servers with this process. They would end a moment later without this;
/// waiting for it ensures that nothing is left when the tests are over. Under nextest, other
/// processes still need them.
fn end_with_this_process() {
    extern "C" fn end() {
        if session::leader() != std::process::id() {
            return;
        }
        let all = ALL.iter().filter_map(|shared| shared.servers.get());
        let ending: Vec<_> = all
            .flatten()
            .filter_map(|server| {
                if let Some(orders) = &mut server.keeper().orders {
                    let _ = orders.write_all(b"end\n");
                }
                Some((server, server.hang_up()?))
            })
            .collect();
        for (server, client) in ending {
            server.await_end(client);
        }
    }
    // SAFETY: `end` is a plain function without arguments that does not unwind.
    unsafe { libc::atexit(end) };
}
