//! The ways in which a worker writes to a table or an object: safe ones, and mistakes to show.

use super::{ResourceKind, not_one_of};
use strum::{Display, EnumString, VariantArray};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Display, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case", parse_err_ty = String, parse_err_fn = not_one_of::<WriteStyle>)]
pub enum WriteStyle {
    /// One statement compares the token and writes; without a fence, it only writes.
    #[default]
    Compare,
    /// The read locks the row (`SELECT … FOR UPDATE`), and the write is in the same transaction.
    LockRow,
    /// The token is compared when the value is read, and the write compares nothing: a mistake.
    CheckThenWrite,
    /// The token is compared and kept in another row before the value is read, in a transaction of
    /// its own, and the write compares nothing: a mistake.
    FenceElsewhere,
    /// A write without an answer is sent again, and recognises itself.
    Retry,
    /// The same, and it takes its own first try for a newer holder: a mistake.
    RetryBlindly,
}

impl WriteStyle {
    /// Returns whether it depends on what the worker read before.
    pub fn begins_with_the_read(self) -> bool {
        match self {
            WriteStyle::LockRow | WriteStyle::CheckThenWrite | WriteStyle::FenceElsewhere => true,
            WriteStyle::Compare | WriteStyle::Retry | WriteStyle::RetryBlindly => false,
        }
    }

    /// Returns whether one can write to this kind of resource so.
    pub fn suits(self, kind: ResourceKind) -> bool {
        match self {
            WriteStyle::Compare => true,
            WriteStyle::CheckThenWrite | WriteStyle::FenceElsewhere => kind != ResourceKind::Http,
            WriteStyle::LockRow | WriteStyle::Retry | WriteStyle::RetryBlindly => {
                kind == ResourceKind::Postgres
            }
        }
    }

    pub fn sends_again(self) -> bool {
        matches!(self, WriteStyle::Retry | WriteStyle::RetryBlindly)
    }
}
