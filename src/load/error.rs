/// The reason why a load could not start or finish.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Nothing was started; the text says what to write instead.
    #[error("{0}")]
    Usage(String),
    #[error("{what} does not answer: {reason}")]
    Unreachable { what: String, reason: String },
    /// It answered, and the answer was no.
    #[error("cannot use {what}: {reason}")]
    Unusable { what: String, reason: String },
    /// The measurements until then are kept.
    #[error("cut short: {0}")]
    CutShort(String),
}

pub type LoadResult<T = ()> = Result<T, LoadError>;

impl LoadError {
    /// Fails with all mistakes, each in a field of a plan, if there are any.
    pub(super) fn refuse(mistakes: Vec<(&'static str, String)>) -> LoadResult {
        if mistakes.is_empty() {
            return Ok(());
        }
        let lines = mistakes
            .iter()
            .map(|(field, words)| format!("{field}: {words}"));
        Err(LoadError::Usage(lines.collect::<Vec<_>>().join("\n")))
    }
}
