//! The clocks of a container's first process: from the host where that is
//! allowed, else in a helper container beside it.

use super::Order;
use crate::cli::exit::{Exit, Failure};
use crate::cli::state::State;
use crate::cli::{interrupt, output, progress};
use crate::clock::Deed;
use crate::cluster::docker::beside::{self, Helped, Running};
use crate::cluster::docker::{Engine, images};
use crate::run::RunError;

pub async fn do_to_container(order: Order) -> Result<Exit, Failure> {
    let engine = Engine::connect().await?;
    let container = beside::find_running(&engine, &order.target.target).await?;
    if let Some(pid) = container.local_pid.filter(|_| !order.target.by_helper()) {
        let done = tokio::task::spawn_blocking(move || order.do_to(pid));
        return done.await.map_err(Failure::harness)?;
    }
    let lock = State::open()?.images_lock();
    let interrupt = interrupt::listen()?;
    let progress = progress::for_this_output();
    let image = tokio::select! {
        () = interrupt.cancelled() => return Err(RunError::Interrupted.into()),
        image = images::ensure_this_program(&engine, &lock, &progress) => image?,
    };
    // Interrupted, the helper is still removed: all of it takes moments.
    let arguments = order.deed.beside();
    let helped = beside::run(&engine, &container, image, arguments).await?;
    match interrupt.is_cancelled() {
        true => Err(RunError::Interrupted.into()),
        false => tell(&order, &container, helped),
    }
}

fn tell(order: &Order, container: &Running, helped: Helped) -> Result<Exit, Failure> {
    let said = helped.stderr.trim();
    let reason = said.strip_prefix("error: ").unwrap_or(said);
    let name = &container.name;
    match Exit::of_code(helped.code) {
        Some(Exit::AsExpected) => {}
        exit => {
            let message = format!("in a helper container beside {name}: {reason}");
            return Err(Failure::new(exit.unwrap_or(Exit::Harness), message));
        }
    }
    for line in helped.stderr.lines() {
        output::complain(line);
    }
    let state = Deed::answer(&helped.stdout)
        .map_err(|error| Failure::harness(format!("the helper beside {name}: {error}")))?;
    order.print(&format!("container {name}, process 1"), state)
}
