//! Pages for people: one self-contained file each, without a network and
//! without a script that it could not do without.

mod run;
mod table;

pub use run::{CaseEvidence, RunPage, page};

use super::markup::escaped;

/// What every page of ours has in its head, up to the version.
pub const GENERATOR: &str = "<meta name=\"generator\" content=\"fencepost ";

/// A whole document. `head` is what comes into its head beside the title and
/// the style that all pages share.
pub fn document(title: &str, head: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n{GENERATOR}{}\">\n\
         <title>{}</title>\n<style>\n{}</style>\n{head}</head>\n<body>\n{body}</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        escaped(title),
        include_str!("style.css"),
    )
}
