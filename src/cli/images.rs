use super::exit::{Exit, Failure};
use super::format::{Printed, document};
use super::home::Home;
use super::state::State;
use super::{interrupt, output, progress};
use crate::cluster::docker::{Engine, images};
use crate::cluster::{Image, Topology};
use crate::run::RunError;
use serde_json::json;

pub async fn execute(home: Home, printed: Printed) -> Result<Exit, Failure> {
    let topologies = home.topologies()?;
    let proxy = home.toxiproxy()?.image;
    let filters: Vec<Image> = topologies.values().map(Topology::packet_filter).collect();
    let images = topologies.values().flat_map(Topology::images);
    let images = images.chain(&filters).chain([&proxy]);
    let interrupt = interrupt::listen()?;
    let progress = progress::for_this_output();
    let lock = State::open()?.images_lock();
    let engine = Engine::connect().await?;
    let made = images::ensure(&engine, images, &lock, &progress);
    let ids = tokio::select! {
        () = interrupt.cancelled() => return Err(RunError::Interrupted.into()),
        ids = made => ids?,
    };
    if printed.is_json() {
        document(&json!({ "images": ids }))?;
        return Ok(Exit::AsExpected);
    }
    for (name, id) in ids {
        output::line(format_args!("{name}  {id}"))?;
    }
    Ok(Exit::AsExpected)
}
