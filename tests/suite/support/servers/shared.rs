//! Servers that the whole test process shares: launched when first used, ended
//! with the process.

use super::{Plan, Server, etcd, launch, redis};
use std::sync::{Once, OnceLock};

pub type Shared = OnceLock<Vec<Server>>;

static ALL: [&Shared; 3] = [&redis::SINGLE, &redis::REDLOCK, &etcd::MEMBERS];

pub fn share(servers: &'static Shared, plans: fn() -> Vec<Plan>) -> &'static [Server] {
    static ONCE: Once = Once::new();
    ONCE.call_once(end_with_this_process);
    servers.get_or_init(|| launch(plans()))
}

/// Thaws and starts every shared server that a test left otherwise.
pub fn heal_servers() -> Result<(), String> {
    let each = |heal: fn(&Server) -> Result<(), String>| {
        let mut healed = all().map(|server| {
            let name = &server.container;
            heal(server).map_err(|error| format!("{name} {error}"))
        });
        healed.try_for_each(|healed| healed)
    };
    // All of them first: the members of etcd get ready only together.
    each(Server::mend)?;
    each(Server::await_ready)
}

fn all() -> impl Iterator<Item = &'static Server> {
    ALL.into_iter().filter_map(OnceLock::get).flatten()
}

/// Closing the pipes is enough; waiting as well means that nothing is left at
/// the moment when the tests are over.
fn end_with_this_process() {
    extern "C" fn end() {
        let ending: Vec<_> = all()
            .filter_map(|server| Some((server, server.hang_up()?)))
            .collect();
        for (server, child) in ending {
            server.await_end(child);
        }
    }
    // SAFETY: `end` is a plain function without arguments that does not unwind.
    unsafe { libc::atexit(end) };
}
