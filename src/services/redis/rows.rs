use crate::services::observe::*;

/// Turns what a Redis reports about its keys into rows of `locks.jsonl`.
///
/// A notification names the key and the command, not the value. The value has to be asked for, and
/// by then it may be another's. So the rows of a key wait from a grant on until the answer comes in
/// the same stream as the notifications. Everything that came before the answer is included in it:
/// the counter belongs to the last of the waiting grants, and so does the owner, unless that hold
/// is over already. Values that cannot be known are left out, never guessed: tokens are not always
/// one apart.
///
/// The commands of this program on its own locks are known, so every `set` is a grant there.
/// Another library may use any command: a key that appears is granted, one that vanishes is
/// released, and a value that is written again is a renewal.
pub(super) struct Observed {
    node: String,
    /// The locks are this program's.
    own: bool,
    keys: HashMap<String, KeyState>,
}

#[derive(Default)]
struct KeyState {
    owner: Option<String>,
    token: Option<FencingToken>,
    /// The rows since a grant that was asked about and not answered yet.
    waiting: Vec<LockEvent>,
    /// `SET … PX` reports `set` and then `expire`; that `expire` is not a renewal.
    just_set: bool,
    /// It was granted, and its end was not seen.
    is_held: bool,
}

#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// These rows are complete.
    Rows(Vec<LockEvent>),
    /// The server has to be asked who holds this key now.
    Ask,
}

impl Observed {
    pub(super) fn new(node: &str, own: bool) -> Observed {
        Observed {
            node: node.to_owned(),
            own,
            keys: HashMap::new(),
        }
    }

    /// Processes one notification: `command` was applied to `key`.
    pub(super) fn notified(&mut self, at_ns: u64, key: &str, command: &str) -> Next {
        let state = self.keys.entry(key.to_owned()).or_default();
        let kind = match command {
            "set" => LockEventKind::Granted,
            "expire" if std::mem::take(&mut state.just_set) => return Next::Rows(Vec::new()),
            "expire" => LockEventKind::Renewed,
            "del" => LockEventKind::Released,
            // Both took the lock away without a release.
            "expired" | "evicted" => LockEventKind::Expired,
            // A library keeps its own fields in a lock that is held.
            "hset" | "hincrby" | "hincrbyfloat" if !self.own && !state.is_held => {
                LockEventKind::Granted
            }
            "rename_to" | "move_to" | "copy_to" | "restore" if !self.own => LockEventKind::Granted,
            "rename_from" | "move_from" if !self.own => LockEventKind::Released,
            _ => return Next::Rows(Vec::new()),
        };
        let granted = kind == LockEventKind::Granted;
        state.just_set = granted;
        state.is_held = granted || (kind == LockEventKind::Renewed && state.is_held);
        let asked = !state.waiting.is_empty();
        state.waiting.push(LockEvent {
            at_ns,
            node: self.node.clone(),
            key: key.to_owned(),
            kind,
            owner: None,
            token: None,
        });
        match (asked, granted) {
            (true, _) => Next::Rows(Vec::new()),
            (false, true) => Next::Ask,
            (false, false) => Next::Rows(state.complete(self.own, None, None)),
        }
    }

    /// Processes the server's answer about `key`, at this point of the stream; `None` for what it
    /// did not say.
    pub(super) fn answered(
        &mut self,
        key: &str,
        owner: Option<String>,
        token: Option<FencingToken>,
    ) -> Vec<LockEvent> {
        let Some(state) = self.keys.get_mut(key) else {
            return Vec::new();
        };
        state.just_set = false;
        state.complete(self.own, owner, token)
    }

    /// Returns the waiting rows with what is known, because no answer will come any more.
    pub(super) fn give_up(&mut self) -> Vec<LockEvent> {
        let states = self.keys.values_mut();
        let mut rows: Vec<_> = states
            .flat_map(|state| state.complete(self.own, None, None))
            .collect();
        rows.sort_by_key(|row| row.at_ns);
        rows
    }
}

impl KeyState {
    fn complete(
        &mut self,
        own: bool,
        owner: Option<String>,
        token: Option<FencingToken>,
    ) -> Vec<LockEvent> {
        let mut rows = std::mem::take(&mut self.waiting);
        let is_grant = |row: &LockEvent| row.kind == LockEventKind::Granted;
        let mut grants_left = rows.iter().filter(|row| is_grant(row)).count();
        for row in &mut rows {
            if is_grant(row) {
                grants_left -= 1;
                let last = grants_left == 0;
                if !own && last && owner.is_some() && self.owner == owner {
                    row.kind = LockEventKind::Renewed;
                }
                self.token = token.filter(|_| last);
                // There is an owner only while the last hold lasts.
                self.owner = owner.clone().filter(|_| last);
            }
            row.owner = self.owner.clone();
            row.token = self.token;
            if matches!(row.kind, LockEventKind::Released | LockEventKind::Expired) {
                self.owner = None;
                self.token = None;
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::joined;

    fn told(rows: Vec<LockEvent>) -> String {
        let words = |row: LockEvent| {
            let token = row.token.map_or("-".to_owned(), |token| token.to_string());
            let owner = row.owner.as_deref().unwrap_or("-");
            format!("{:?} {owner} {token}", row.kind)
        };
        joined(rows.into_iter().map(words), ", ")
    }

    fn rows(next: Next) -> String {
        match next {
            Next::Rows(rows) => told(rows),
            Next::Ask => panic!("nothing to ask"),
        }
    }

    fn owner(name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    #[test]
    fn a_hold_from_its_grant_to_its_end() {
        let mut observed = Observed::new("redis", true);
        assert_eq!(observed.notified(1, "k", "set"), Next::Ask);
        assert_eq!(rows(observed.notified(2, "k", "expire")), "");
        let granted = observed.answered("k", owner("a"), Some(FencingToken(4)));
        assert_eq!(told(granted), "Granted a 4");
        for (at_ns, command, row) in [
            (3, "expire", "Renewed a 4"),
            (4, "expired", "Expired a 4"),
            (5, "del", "Released - -"),
        ] {
            assert_eq!(rows(observed.notified(at_ns, "k", command)), row);
        }
    }

    #[test]
    fn an_answer_that_came_late_is_not_given_to_the_wrong_hold() {
        let mut observed = Observed::new("redis", true);
        assert_eq!(observed.notified(1, "k", "set"), Next::Ask);
        for (at_ns, command) in [(2, "expire"), (3, "del"), (4, "set"), (5, "expire")] {
            assert_eq!(rows(observed.notified(at_ns, "k", command)), "");
        }
        let late = observed.answered("k", owner("b"), Some(FencingToken(8)));
        assert_eq!(told(late), "Granted - -, Released - -, Granted b 8");
    }

    #[test]
    fn keys_do_not_wait_for_each_other() {
        let mut observed = Observed::new("redis", true);
        assert_eq!(observed.notified(1, "k", "set"), Next::Ask);
        assert_eq!(rows(observed.notified(2, "other", "del")), "Released - -");
        assert_eq!(told(observed.give_up()), "Granted - -");
        assert_eq!(told(observed.give_up()), "");
    }

    #[test]
    fn a_foreign_lock_is_granted_when_its_key_appears_and_released_when_it_vanishes() {
        let mut observed = Observed::new("redis", false);
        for (appears, vanishes) in [
            ("set", "del"),
            ("hset", "del"),
            ("hincrby", "rename_from"),
            ("rename_to", "move_from"),
            ("restore", "del"),
        ] {
            assert_eq!(observed.notified(1, "k", appears), Next::Ask, "{appears}");
            assert_eq!(rows(observed.notified(2, "k", "expire")), "");
            let granted = told(observed.answered("k", owner("a"), None));
            assert_eq!(granted, "Granted a -", "{appears}");
            // Fields that a holder keeps in its own lock are not a grant.
            for command in ["hset", "hincrby", "hdel", "incrby", "persist"] {
                assert_eq!(rows(observed.notified(3, "k", command)), "", "{command}");
            }
            assert_eq!(rows(observed.notified(4, "k", "expire")), "Renewed a -");
            let released = rows(observed.notified(5, "k", vanishes));
            assert_eq!(released, "Released a -", "{vanishes}");
        }
    }

    #[test]
    fn a_foreign_holder_that_writes_its_value_again_renews() {
        let mut observed = Observed::new("redis", false);
        for (name, row) in [
            ("a", "Granted a -"),
            ("a", "Renewed a -"),
            ("b", "Granted b -"),
        ] {
            assert_eq!(observed.notified(1, "k", "set"), Next::Ask);
            assert_eq!(told(observed.answered("k", owner(name), None)), row);
        }
    }
}
