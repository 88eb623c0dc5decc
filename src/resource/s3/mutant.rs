//! Deliberate defects of the S3 role. Release builds contain none of this.

use strum::{Display, EnumString, IntoStaticStr, VariantArray};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray)]
pub enum Mutant {
    /// Writes whatever `If-Match` and `If-None-Match` say.
    #[strum(to_string = "s3-ignores-conditions")]
    IgnoreConditions,
    /// Compares when the head of a request has arrived, and writes when its body has.
    #[strum(to_string = "s3-compares-early")]
    CompareEarly,
}

impl Mutant {
    pub const ALL: &[Mutant] = Mutant::VARIANTS;

    pub fn name(self) -> &'static str {
        self.into()
    }
}
