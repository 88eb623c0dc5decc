use super::failure::Failure;
use super::line::{Entered, Line, Place};
use super::members::Members;
use super::presence::Presence;
use crate::backend::IfHeld;

/// A request for a place that ended without one.
#[derive(Debug)]
pub(super) struct NotEntered {
    pub(super) failure: Failure,
    /// Whether one of the requests was not answered, so that the place may have been
    /// taken or may still be taken.
    pub(super) in_doubt: bool,
}

/// The limit on how often others may move the mark, to fence off requests of their own,
/// while one attempt tries to enter.
const FENCED_OFF_MAX: usize = 100;

/// Takes a place. Returns `None` if the lock is held and the caller does not want to
/// wait.
///
/// A request without an answer is fenced off before the next one is made. So none of them
/// can take effect after this function has returned a place, which may be deleted by
/// then.
pub(super) async fn enter(
    members: &Members,
    presence: &Presence,
    line: &Line,
    if_held: IfHeld,
) -> Result<Option<Place>, NotEntered> {
    let mut in_doubt = false;
    let mut members_failed = 0;
    let mut fenced_off = 0;
    loop {
        let failure = match try_to_enter(members, presence, line, if_held).await {
            Ok(Entered::At(place)) => return Ok(Some(place)),
            Ok(Entered::Busy) => return Ok(None),
            Ok(Entered::Already(revision)) => {
                let found = line.look(members, revision, Some(revision)).await;
                let found = found.and_then(|place| place.ok_or_else(place_gone));
                let in_doubt = true;
                return found
                    .map(Some)
                    .map_err(|failure| NotEntered { failure, in_doubt });
            }
            Ok(Entered::FencedOff) if fenced_off < FENCED_OFF_MAX => {
                fenced_off += 1;
                continue;
            }
            Ok(Entered::FencedOff) => {
                let failure = Failure::NotDone("fenced off again and again".to_owned());
                return Err(NotEntered { failure, in_doubt });
            }
            Err(failure) => failure,
        };
        presence.session.heard(&failure);
        members_failed += 1;
        in_doubt |= failure.may_have_happened();
        let is_last = !failure.is_of_the_member() || members_failed == members.count();
        let fence = failure.may_have_happened() && !is_last;
        if is_last || (fence && presence.fence_off().await.is_err()) {
            return Err(NotEntered { failure, in_doubt });
        }
    }
}

async fn try_to_enter(
    members: &Members,
    presence: &Presence,
    line: &Line,
    if_held: IfHeld,
) -> Result<Entered, Failure> {
    let _turn = members.turn().await;
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

/// The failure of an attempt whose place somebody deleted, or whose lease is over.
pub(super) fn place_gone() -> Failure {
    Failure::Refused("the place in the line is gone".to_owned())
}
