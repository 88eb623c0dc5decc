use super::failure::Failure;
use super::line::{Entered, Line, Place};
use super::members::Members;
use super::presence::Presence;

/// What to do about a lock that is held.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IfHeld {
    StandInLine,
    ComeBack,
}

/// A request for a place that ended without one.
#[derive(Debug)]
pub(super) struct NotEntered {
    pub(super) failure: Failure,
    /// A request is not fenced off, so the place may be taken or still be taken.
    pub(super) may_still_happen: bool,
}

/// How often the mark may have been moved by others, who had to fence off
/// requests of their own.
const FENCED_OFF_MAX: usize = 100;

/// Takes a place; `None` if the lock is held and nobody wants to wait.
///
/// A request without an answer is fenced off before the next one is made, so
/// none of them can take effect after this has come back with a place, which
/// may be deleted by then.
pub(super) async fn enter(
    members: &Members,
    presence: &Presence,
    line: &Line,
    if_held: IfHeld,
) -> Result<Option<Place>, NotEntered> {
    let mut unanswered: Option<Failure> = None;
    let mut members_failed = 0;
    let mut fenced_off = 0;
    loop {
        if let Some(failure) = unanswered.take()
            && presence.fence_off().await.is_err()
        {
            return Err(NotEntered {
                failure,
                may_still_happen: true,
            });
        }
        match try_to_enter(members, presence, line, if_held).await {
            Ok(Entered::At(place)) => return Ok(Some(place)),
            Ok(Entered::Busy) => return Ok(None),
            Ok(Entered::Already(revision)) => {
                let found = line.look(members, revision, Some(revision)).await;
                let found = found.and_then(|place| place.ok_or_else(place_gone));
                return found.map(Some).map_err(NotEntered::known);
            }
            Ok(Entered::FencedOff) if fenced_off < FENCED_OFF_MAX => fenced_off += 1,
            Ok(Entered::FencedOff) => {
                let text = "fenced off by others again and again".to_owned();
                return Err(NotEntered::known(Failure::NotDone(text)));
            }
            Err(failure) => {
                presence.heard(&failure);
                members_failed += 1;
                let may_still_happen = failure.may_have_happened();
                if !failure.is_of_the_member() || members_failed == members.count() {
                    return Err(NotEntered {
                        failure,
                        may_still_happen,
                    });
                }
                unanswered = may_still_happen.then_some(failure);
            }
        }
    }
}

async fn try_to_enter(
    members: &Members,
    presence: &Presence,
    line: &Line,
    if_held: IfHeld,
) -> Result<Entered, Failure> {
    let answer = members.ask_once(|wire| {
        let mut kv = wire.kv.clone();
        let request = match if_held {
            IfHeld::StandInLine => line.join(presence),
            IfHeld::ComeBack => line.take_if_free(presence),
        };
        async move { kv.txn(request).await }
    });
    let answer = answer.await?;
    members.heard(answer.header());
    line.read_entered(presence, &answer, if_held)
}

/// Somebody deleted it, or the lease that it was attached to is over.
pub(super) fn place_gone() -> Failure {
    Failure::Refused("the place in the line is gone".to_owned())
}

impl NotEntered {
    fn known(failure: Failure) -> NotEntered {
        NotEntered {
            failure,
            may_still_happen: false,
        }
    }
}
