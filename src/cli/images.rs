use super::exit::{Exit, Failure};
use super::home::Home;
use super::{interrupt, output, progress};
use crate::cluster::docker::{Engine, images};
use crate::run::RunError;

pub async fn execute(home: Home) -> Result<Exit, Failure> {
    let topologies = home.topologies()?;
    let interrupt = interrupt::listen()?;
    let progress = progress::for_this_output();
    let engine = Engine::connect().await?;
    let made = images::ensure(&engine, topologies.values(), progress.as_ref());
    let ids = tokio::select! {
        () = interrupt.cancelled() => return Err(RunError::Interrupted.into()),
        ids = made => ids?,
    };
    for (name, id) in ids {
        output::line(format_args!("{name}  {id}"))?;
    }
    Ok(Exit::AsExpected)
}
