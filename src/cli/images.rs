use super::*;
use crate::cluster::docker::{Engine, images};
use crate::cluster::{Image, Topology};

pub async fn execute(home: Home, printed: OutputFormat) -> Result<Exit, Failure> {
    let topologies = home.topologies()?;
    let resources = home.resources()?;
    let proxy = home.toxiproxy()?.image;
    let filters: Vec<Image> = topologies.values().map(Topology::packet_filter).collect();
    let images = topologies.values().flat_map(Topology::images);
    let images = images.chain(&filters).chain([&proxy]);
    let images = images.chain(resources.values().map(|service| &service.image));
    let interrupt = interrupt::listen()?;
    let progress = progress::for_this_output();
    let lock = State::open()?.images_lock();
    let engine = Engine::connect().await?;
    let made = images::ensure(&engine, images, &lock, &progress);
    let ids = interrupt::or(&interrupt, made).await?;
    let lines = ids.iter().map(|(name, id)| format!("{name}  {id}\n"));
    printed.show(&json!({ "images": ids }), lines.collect::<String>())
}
