//! Changes the clocks of a container's first process: from the host where that is allowed,
//! otherwise in a helper container beside it.

use super::*;
use crate::clock::Deed;
use crate::cluster::docker::beside::{self, RunningContainer};
use crate::cluster::docker::{ContainerOutput, Engine, images};
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
    let image = images::ensure_this_program(&engine, &lock, &progress);
    let image = interrupt::or(&interrupt, image).await?;
    // The helper is removed even after an interrupt: all of this takes only moments.
    let arguments = order.deed.beside();
    let helped = beside::run(&engine, &container, image, arguments).await?;
    if interrupt.is_cancelled() {
        return Err(RunError::Interrupted.into());
    }
    tell(&order, &container, helped)
}

fn tell(
    order: &Order,
    container: &RunningContainer,
    (code, helped): (i64, ContainerOutput),
) -> Result<Exit, Failure> {
    let said = helped.stderr.trim();
    let reason = said.strip_prefix("error: ").unwrap_or(said);
    let name = &container.name;
    match Exit::from_repr(code) {
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
