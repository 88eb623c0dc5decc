use super::exit::{Exit, Failure};
use super::format::document;
use crate::{report, scenario};
use clap::Args;

#[derive(Args)]
pub struct Schema {
    /// That of a result.json instead, for programs that read results
    #[arg(long)]
    result: bool,
}

impl Schema {
    pub fn execute(self) -> Result<Exit, Failure> {
        document(&match self.result {
            true => report::schema::schema(),
            false => scenario::schema(),
        })?;
        Ok(Exit::AsExpected)
    }
}
