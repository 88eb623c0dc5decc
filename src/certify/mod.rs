//! Does a store really fence? Eleven properties, each tried on the store itself.
//!
//! A store fences if it compares and writes in one step, and does not forget. What a store offers
//! differs: an object of S3 is compared by its ETag, a row or our resource by its token. A
//! [`Store`] hides that behind versions.

mod checks;
mod s3;
mod store;
#[cfg(test)]
mod tests;
mod tokens;

pub use s3::{S3Address, S3Store};
pub use store::{ANSWER_DEADLINE, Store, StoreError};
pub use tokens::TokenStore;

use checks::Checks;
use serde::Serialize;
use store::StoreResult;
use strum::{Display, VariantArray};

/// The most requests that one certificate costs, its own cleaning up included. The help and the
/// documents name this number.
pub const MOST_REQUESTS: u32 = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, VariantArray, Serialize)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// Of many who create one object at a time, one succeeds.
    ConcurrentCreates,
    /// Of many who replace one version at a time, one succeeds.
    ConcurrentReplaces,
    /// What is there is not created again.
    CreateOverExisting,
    /// A version that was replaced is not replaced again.
    StaleVersion,
    /// What is not there cannot be replaced.
    ReplaceOfNothing,
    /// The comparison is made when the whole write has arrived.
    SlowBody,
    /// A write whose answer was lost can be sent again, and is recognised.
    LostAnswer,
    /// A version from before a deletion counts no more.
    DeleteAndRecreate,
    /// What was written is listed and read at once, what was deleted is not.
    ListAfterWrite,
    /// The same content written again is a new version.
    EqualContent,
    /// Nothing that was acknowledged is forgotten by a restart.
    Restart,
}

impl Property {
    pub fn promise(self) -> &'static str {
        match self {
            Property::ConcurrentCreates => "of 16 who create one object at a time, one succeeds",
            Property::ConcurrentReplaces => "of 16 who replace one version at a time, one succeeds",
            Property::CreateOverExisting => "what is there is not created again",
            Property::StaleVersion => "a version that was replaced is not replaced again",
            Property::ReplaceOfNothing => "what is not there cannot be replaced",
            Property::SlowBody => "a write is compared when all of it has arrived",
            Property::LostAnswer => "a write that is sent again is not applied again",
            Property::DeleteAndRecreate => "a version from before a deletion counts no more",
            Property::ListAfterWrite => "what was written is listed at once",
            Property::EqualContent => "the same content again is a new version",
            Property::Restart => "a restart forgets nothing that was acknowledged",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "snake_case")]
pub enum Verdict {
    Kept,
    Broken(String),
    /// It is safe only if its users do what is said here.
    Depends(String),
    /// The store has nothing of the kind.
    NotOffered(String),
    /// Its user did not ask for it.
    NotAsked(String),
    NotExamined(String),
}

#[derive(Clone, Debug, Serialize)]
pub struct Examined {
    pub property: Property,
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Tries every property in turn. Once the store is gone, the rest is not examined. An error says
/// why nothing is examined; what was made has to be removed in every case.
pub async fn certify(
    store: &dyn Store,
    restart: Option<&str>,
    mut each: impl FnMut(Property),
) -> StoreResult<Vec<Examined>> {
    store.prepare().await?;
    let checks = Checks { store, restart };
    let mut examined = Vec::new();
    let mut is_gone = false;
    for &property in Property::VARIANTS {
        each(property);
        let verdict = match (is_gone, store.lacks(property)) {
            (true, _) => Verdict::NotExamined("the store is gone".to_owned()),
            (false, Some(reason)) => Verdict::NotOffered(reason.to_owned()),
            (false, None) => match checks.check(property).await {
                Ok(verdict) => verdict,
                Err(StoreError::Interrupted) => return Err(StoreError::Interrupted),
                Err(error) => {
                    is_gone = matches!(error, StoreError::Unanswered(_));
                    Verdict::NotExamined(error.to_string())
                }
            },
        };
        examined.push(Examined { property, verdict });
    }
    Ok(examined)
}
