/// What a container may do beyond the least, which is the default: a user that
/// nobody else is, and nothing to write to that stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Another user than that one.
    pub user: Option<String>,
    /// It may write wherever its user may.
    pub writes_anywhere: bool,
    /// Folders that it may write to, kept as long as the node is.
    pub volumes: Vec<String>,
}
