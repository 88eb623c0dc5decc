use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything about owners whose last request was not answered, or left something at the
/// server: there is something to undo, and this is the connection that it was sent on. An
/// entry goes with the undo, or with an answer to the owner's release.
pub(super) struct Leftovers<C> {
    by_owner: Mutex<BTreeMap<String, Leftover<C>>>,
}

pub(super) struct Leftover<C> {
    pub(super) asked_on: Arc<C>,
    pub(super) request: Request,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// It can grant a lock, or stand in a line.
    Try,
    #[cfg(any(feature = "postgres", feature = "redis"))]
    Release,
}

/// A request of an owner that is under way, or that left something at the server. Unless
/// it is settled, it is a leftover when it is dropped.
pub(super) struct Asked<'a, C> {
    leftovers: &'a Leftovers<C>,
    owner: &'a str,
    /// Absent if nothing of it is left.
    leftover: Option<Leftover<C>>,
}

impl<C> Default for Leftovers<C> {
    fn default() -> Leftovers<C> {
        let by_owner = Mutex::default();
        Leftovers { by_owner }
    }
}

impl<C> Clone for Leftover<C> {
    fn clone(&self) -> Leftover<C> {
        let (asked_on, request) = (self.asked_on.clone(), self.request);
        Leftover { asked_on, request }
    }
}

impl<C> Leftovers<C> {
    pub(super) fn asked<'a>(
        &'a self,
        owner: &'a str,
        asked_on: &Arc<C>,
        request: Request,
    ) -> Asked<'a, C> {
        let asked_on = asked_on.clone();
        Asked {
            leftovers: self,
            owner,
            leftover: Some(Leftover { asked_on, request }),
        }
    }

    pub(super) fn of(&self, owner: &str) -> Option<Leftover<C>> {
        self.by_owner.lock().get(owner).cloned()
    }

    pub(super) fn forget(&self, owner: &str) {
        self.by_owner.lock().remove(owner);
    }
}

impl<C> Asked<'_, C> {
    /// Notes that the same is asked again on another connection.
    #[cfg(feature = "redis")]
    pub(super) fn moves_to(&mut self, open: &Arc<C>) {
        if let Some(leftover) = &mut self.leftover {
            leftover.asked_on = open.clone();
        }
    }

    /// Notes that the answer came, and that nothing has to be undone.
    pub(super) fn settle(mut self) {
        self.leftover = None;
    }
}

impl<C> Drop for Asked<'_, C> {
    fn drop(&mut self) {
        if let Some(leftover) = self.leftover.take() {
            let mut by_owner = self.leftovers.by_owner.lock();
            // What a try may leave still counts when its release is not answered either.
            by_owner.entry(self.owner.to_owned()).or_insert(leftover);
        }
    }
}
