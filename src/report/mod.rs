//! Reports of runs, each a function from an outcome to text or JSON.

pub mod comparison;
pub mod diff;
pub mod differing;
pub mod document;
mod grid;
pub mod html;
pub mod index;
pub mod junit;
pub mod load;
pub mod lock;
pub mod look;
#[cfg(test)]
pub mod made_up;
mod mark;
pub mod markup;
pub mod plot;
pub mod shown;
pub mod summary;
pub mod tally;
pub mod terminal;
mod units;

use crate::model::*;
use document::ResultDocument;
use grid::{Column, Grid, columns, hung, wrapped, wrapped_painted};
use look::{Color, Look};
use mark::Mark;
use markup::{cut, short};
use maud::{Markup, PreEscaped, html};
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use units::{Unit, figure, percent, size, time};
