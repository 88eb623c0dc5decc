//! One declaration for each field of a scenario file: its name, how its value is written, what it
//! means and what holds without it. Reading, hints for unknown keys, the JSON Schema, `--set` and
//! the tables in scenarios/README.md are derived from it.

use super::*;
use crate::model::{FenceFloor, WaitPolicy, WriteStyle, format_duration};
use crate::scenario::draft::{Kind, Model};
use crate::services::{OnLost, ReleaseStyle};
use crate::yaml::Place;
use serde_json::{Map, Value};

/// The way in which a value is written: how it is read from a file, and its schema.
pub trait Form<T> {
    fn read(&self, node: &Node, report: &mut Report) -> Option<T>;
    fn schema(&self) -> Value;
}

impl<T, R, S> Form<T> for (R, S)
where
    R: Fn(&Node, &mut Report) -> Option<T>,
    S: Fn() -> Value,
{
    fn read(&self, node: &Node, report: &mut Report) -> Option<T> {
        self.0(node, report)
    }

    fn schema(&self) -> Value {
        self.1()
    }
}

/// A field as schema and docs show it.
pub struct Field {
    pub name: &'static str,
    pub about: String,
    /// The words for what holds without it.
    pub default: String,
    pub is_required: bool,
    pub schema: Value,
}

impl Field {
    /// Creates a field that may be left out; `about` is its comment.
    pub fn new(name: &'static str, about: &str, schema: Value) -> Field {
        let words: Vec<&str> = about.split_whitespace().collect();
        Field {
            name,
            about: words.join(" "),
            default: "–".to_owned(),
            is_required: false,
            schema,
        }
    }
}

/// Returns the schema of a mapping with these fields and no others.
pub fn object(fields: Vec<Field>) -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties(fields)
    })
}

pub fn properties(fields: Vec<Field>) -> Map<String, Value> {
    let property = |field: Field| {
        let mut schema = field.schema;
        schema["description"] = field.about.into();
        (field.name.to_owned(), schema)
    };
    fields.into_iter().map(property).collect()
}

/// The places of a mapping's fields in the file, as far as they could be read.
#[derive(Clone, Debug)]
pub struct Places {
    pub whole: Place,
    pub fields: Vec<(&'static str, Place)>,
}

impl Places {
    pub fn get(&self, field: &str) -> Option<Place> {
        let known = self.fields.iter().find(|(name, _)| *name == field);
        known.map(|(_, place)| *place)
    }

    /// Returns the place of a field, or of the whole mapping if the field is not written.
    pub fn of_field(&self, field: &str) -> Place {
        self.get(field).unwrap_or(self.whole)
    }
}

/// A value that can be had without its place.
pub trait Placed {
    type Value;
    fn value(&self) -> Self::Value;
}

impl<T: Clone> Placed for At<T> {
    type Value = T;

    fn value(&self) -> T {
        self.value.clone()
    }
}

/// A value that a field may have by default.
pub trait Shown {
    /// Returns the value as a person writes it.
    fn shown(&self) -> String;

    /// Returns the setting of a worker: its name behind `FENCEPOST_`, and its value.
    fn setting(&self, name: &str) -> (String, String) {
        (name.to_uppercase(), self.shown())
    }
}

impl Shown for Duration {
    fn shown(&self) -> String {
        format_duration(*self)
    }

    fn setting(&self, name: &str) -> (String, String) {
        let name = format!("{}_MS", name.to_uppercase());
        (name, self.as_millis().to_string())
    }
}

macro_rules! shown_by_their_words {
    ($($kind:ty),*) => {$(
        impl Shown for $kind {
            fn shown(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

shown_by_their_words!(
    bool,
    u32,
    u64,
    Span,
    OnLost,
    WriteStyle,
    WaitPolicy,
    ReleaseStyle,
    FenceFloor,
    Kind,
    Model
);

/// Declares the fields of one mapping, each `name: type = form, need;`. The comment of a field is
/// its text in the docs. The need is `required`, `default(value)`, which makes a method of the
/// field's name that returns the written value or the default, or `without("what holds then")`.
macro_rules! fields {
    (
        $(#[$attribute:meta])*
        pub struct $Name:ident {
            $(
                $(#[doc = $about:literal])+
                $field:ident: $kind:ty = $form:expr, $need:ident $(($default:expr))?;
            )+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug)]
        #[allow(dead_code)]
        pub struct $Name {
            $(pub $field: Option<$kind>,)+
            pub places: $crate::scenario::fields::Places,
        }

        #[allow(dead_code)]
        impl $Name {
            pub const NAMES: [&'static str; [$(stringify!($field)),+].len()] =
                [$(stringify!($field)),+];

            pub fn table() -> Vec<$crate::scenario::fields::Field> {
                use $crate::scenario::fields::{Field, Form};
                vec![$({
                    let form = $form;
                    let schema = Form::<$kind>::schema(&form);
                    Field {
                        default: fields!(@words $need $(($default))?, $kind),
                        is_required: fields!(@is_required $need),
                        ..Field::new(stringify!($field), concat!($($about),+), schema)
                    }
                }),+]
            }

            /// Reads the whole mapping; other keys are unknown.
            pub fn read(
                node: &$crate::yaml::Node,
                what: &str,
                report: &mut $crate::yaml::Report,
            ) -> Option<$Name> {
                let mut fields = $crate::yaml::Fields::of(node, what, report)?;
                let all = $Name::take(&mut fields, report);
                fields.finish(report);
                Some(all)
            }

            /// Reads its part of a mapping that has other fields as well.
            pub fn take(
                fields: &mut $crate::yaml::Fields<'_>,
                report: &mut $crate::yaml::Report,
            ) -> $Name {
                use $crate::scenario::fields::{Form, Places};
                let mut places = Places { whole: fields.place(), fields: Vec::new() };
                $Name {
                    $($field: {
                        let name = stringify!($field);
                        let node = if fields!(@is_required $need) {
                            fields.required(name, report)
                        } else {
                            fields.optional(name)
                        };
                        let form = $form;
                        node.and_then(|node| {
                            let value = Form::<$kind>::read(&form, node, report)?;
                            places.fields.push((name, node.place));
                            Some(value)
                        })
                    },)+
                    places,
                }
            }

            /// Returns the settings of a worker, for the fields that have defaults.
            pub fn settings(&self) -> Vec<(String, String)> {
                let settings = [$(fields!(@setting self, $field, $need)),+];
                settings.into_iter().flatten().collect()
            }

            $(fields!(@getter $field, $kind, $need $(($default))?);)+
        }
    };
    (@is_required required) => { true };
    (@is_required $need:ident) => { false };
    (@words required, $kind:ty) => { "–".to_owned() };
    (@words without($words:expr), $kind:ty) => { $words.to_owned() };
    (@words default($default:expr), $kind:ty) => {{
        use $crate::scenario::fields::{Placed, Shown};
        let default: <$kind as Placed>::Value = $default;
        default.shown()
    }};
    (@setting $self:ident, $field:ident, default) => {
        Some($crate::scenario::fields::Shown::setting(
            &$self.$field(),
            stringify!($field),
        ))
    };
    (@setting $self:ident, $field:ident, $need:ident) => { None };
    (@getter $field:ident, $kind:ty, default($default:expr)) => {
        pub fn $field(&self) -> <$kind as $crate::scenario::fields::Placed>::Value {
            use $crate::scenario::fields::Placed;
            self.$field.as_ref().map_or_else(|| $default, Placed::value)
        }
    };
    (@getter $field:ident, $kind:ty, $need:ident $(($default:expr))?) => {};
}

pub(super) use fields;
