/// Why a load could not be made, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Nothing was begun: the words say what to write instead.
    #[error("{0}")]
    Usage(String),
    #[error("{what} does not answer: {reason}")]
    Unreachable { what: String, reason: String },
    /// What was measured until then is kept.
    #[error("cut short: {0}")]
    CutShort(String),
}
