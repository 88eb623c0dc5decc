//! Pages for people: each is one self-contained file that needs no network and works without
//! scripts.

mod run;
mod table;

pub use run::{CaseEvidence, RunPage, page};

use super::*;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The text in the head of each of our pages, up to the version.
pub const GENERATOR: &str = "<meta name=\"generator\" content=\"fencepost ";

/// Returns a whole document. `head` is added to its head, beside the title and the style that
/// all pages share.
pub fn document(title: &str, head: &Markup, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE) html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "fencepost " (env!("CARGO_PKG_VERSION")) };
                title { (title) }
                style { (PreEscaped(include_str!("style.css"))) }
                (head)
            }
            body { (body) }
        }
    };
    seen(page).into_string()
}

/// Removes invisible characters, wherever in a record they came from.
pub fn seen(part: Markup) -> Markup {
    PreEscaped(shown::lines(&part.0).into_owned())
}
