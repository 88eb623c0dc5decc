use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, VariantArray};

/// Whether the resource compares tokens. Off is the unsafe baseline.
#[derive(Display, EnumString, VariantArray)]
#[strum(serialize_all = "snake_case", parse_err_ty = String, parse_err_fn = not_one_of::<Fence>)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fence {
    On,
    Off,
}

/// Returns the error for a word that names none of the variants.
pub fn not_one_of<T: VariantArray + std::fmt::Display>(_: &str) -> String {
    format!("not one of: {}", super::joined(T::VARIANTS, ", "))
}
