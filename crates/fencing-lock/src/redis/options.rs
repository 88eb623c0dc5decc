use strum::{Display, EnumString, IntoStaticStr, VariantNames};

/// The way in which a client waits for a held lock on one Redis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Display, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case", parse_err_ty = String, parse_err_fn = not_one_of::<WaitPolicy>)]
pub enum WaitPolicy {
    /// Sleep for a random time and try again: the unfair baseline.
    #[default]
    Spin,
    /// Sleep until the release is announced, and try again with all the others.
    Notify,
    /// Wait in a line at the server, which hands the lock to exactly one waiter.
    Queue,
}

impl WaitPolicy {
    pub const ALL: [WaitPolicy; 3] = [WaitPolicy::Spin, WaitPolicy::Notify, WaitPolicy::Queue];

    /// Returns whether the server wakes a waiter, who then needs a connection that
    /// listens.
    pub(super) fn listens(self) -> bool {
        match self {
            WaitPolicy::Spin => false,
            WaitPolicy::Notify | WaitPolicy::Queue => true,
        }
    }

    /// Returns whether grants follow arrivals: the server hands the lock to the next in
    /// line.
    pub fn is_in_order(self) -> bool {
        match self {
            WaitPolicy::Spin | WaitPolicy::Notify => false,
            WaitPolicy::Queue => true,
        }
    }
}

/// The lower bound of the next token, besides one more than the last.
#[derive(Display, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case", parse_err_ty = String, parse_err_fn = not_one_of::<FenceFloor>)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FenceFloor {
    /// No bound: a lost counter starts again at 1.
    #[default]
    None,
    /// The server's clock in microseconds: tokens go on growing after the counter was
    /// lost, as long as that clock does not run backwards.
    ServerClock,
}

impl FenceFloor {
    pub const ALL: [FenceFloor; 2] = [FenceFloor::None, FenceFloor::ServerClock];

    /// Returns the name that files and scripts use.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// Returns the error for a word that names none of the variants.
fn not_one_of<T: VariantNames>(_: &str) -> String {
    format!("not one of: {}", T::VARIANTS.join(", "))
}
