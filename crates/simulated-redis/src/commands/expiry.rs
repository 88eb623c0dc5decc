use super::numbers::number;
use crate::reply::Reply;

/// The unit of a time, and whether it counts from now.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    pub(super) ms: i64,
    pub(super) is_from_now: bool,
}

pub(super) const SECONDS: Unit = Unit {
    ms: 1000,
    is_from_now: true,
};
pub(super) const MILLISECONDS: Unit = Unit {
    ms: 1,
    is_from_now: true,
};

impl Unit {
    pub(super) fn absolute(self) -> Unit {
        Unit {
            is_from_now: false,
            ..self
        }
    }

    /// Returns the moment in milliseconds that a word of this unit means.
    pub(super) fn moment(self, word: &[u8], now_ms: i64, command: &str) -> Result<i64, Reply> {
        let number = number(word)?;
        let base = if self.is_from_now { now_ms } else { 0 };
        let moment = number.checked_mul(self.ms);
        let moment = moment.and_then(|length_ms| length_ms.checked_add(base));
        moment.ok_or_else(|| invalid(command))
    }
}

pub(super) fn invalid(command: &str) -> Reply {
    Reply::error(format!("ERR invalid expire time in '{command}' command"))
}
