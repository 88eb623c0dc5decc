//! The kinds of resource that a scenario can choose, and the addresses by which workers reach them.

use super::{Fence, not_one_of};
use std::fmt::Display;
use strum::{Display, EnumString, VariantArray};

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Display, EnumString, VariantArray,
)]
#[strum(serialize_all = "kebab-case", parse_err_ty = String, parse_err_fn = not_one_of::<ResourceKind>)]
pub enum ResourceKind {
    /// The resource of this program, whose server compares the tokens.
    #[default]
    Http,
    /// A row of a table in a Postgres, whose writers compare the tokens in their statement.
    Postgres,
    /// An object in an S3, whose writers compare the tokens and whose server compares the ETag.
    S3,
}

impl ResourceKind {
    /// Returns the kind that an address is of.
    pub fn of_url(url: &str) -> ResourceKind {
        match url.split_once("://") {
            Some(("postgres" | "postgresql", _)) => ResourceKind::Postgres,
            Some(("s3", _)) => ResourceKind::S3,
            _ => ResourceKind::Http,
        }
    }

    pub fn url(self, server: impl Display) -> String {
        match self {
            ResourceKind::Http => format!("http://{server}"),
            ResourceKind::Postgres => format!("postgres://{server}"),
            ResourceKind::S3 => format!("s3://{server}"),
        }
    }

    /// Returns the setting of the resource's own process, if that decides about the fence.
    pub fn settings(self, fence: Fence) -> Option<(String, String)> {
        let setting = || ("FENCEPOST_FENCE".to_owned(), fence.to_string());
        (self == ResourceKind::Http).then(setting)
    }

    /// Returns the address for those who write. A table or an object compares no tokens by itself: its
    /// writer does. The statement that writes to a table announces each row if somebody follows the log.
    pub fn url_to_write(self, url: &str, fence: Fence, is_followed: bool) -> String {
        match (self, is_followed) {
            (ResourceKind::Http, _) => url.to_owned(),
            (ResourceKind::Postgres, true) => format!("{url}?fence={fence}&announce=on"),
            (ResourceKind::Postgres, false) | (ResourceKind::S3, _) => {
                format!("{url}?fence={fence}")
            }
        }
    }
}
