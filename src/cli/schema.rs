use super::*;
use crate::{report, scenario};

#[derive(Args)]
pub struct Schema {
    /// Print the schema of a result.json instead, for programs that read results
    #[arg(long)]
    result: bool,
}

impl Schema {
    pub fn execute(self) -> Result<Exit, Failure> {
        document(&if self.result {
            report::document::schema()
        } else {
            scenario::schema()
        })?;
        Ok(Exit::AsExpected)
    }
}
