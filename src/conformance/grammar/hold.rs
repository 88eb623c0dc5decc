//! What a worker may say between its grant and the end of its hold.

use super::*;

impl Grammar {
    pub(super) fn writing(&self, mut hold: Hold, kind: &EventKind, name: &str) -> Fits<State> {
        match kind {
            EventKind::Renewed { .. } | EventKind::Lost { .. } => {
                return Ok(State::Writing(self.aside(hold, kind)?));
            }
            EventKind::WriteAccepted { token, owner, .. } => {
                same_token(&hold, *token)?;
                same_owner(&hold, owner)?;
            }
            EventKind::WriteRejected { owner, .. } => same_owner(&hold, owner)?,
            EventKind::Failed {
                during: Step::Write,
                ..
            } => hold.failed = true,
            _ => return Err(self.out_of_place(name)),
        }
        hold.wrote = true;
        Ok(State::Held(hold))
    }

    pub(super) fn acquired(&self, asked_ns: u64, event: &Event) -> Fits<Hold> {
        let EventKind::Acquired {
            token,
            owner,
            valid_until_ns,
            ..
        } = &event.kind
        else {
            unreachable!("the caller has matched it");
        };
        if owner.is_empty() {
            return misfit(
                "the `owner` is empty",
                "an id of this one hold, drawn anew for each acquire",
            );
        }
        if token.is_none() && !self.lacks.contains(&Ability::Token) {
            return misfit(
                "there is no `token`",
                "a `token`, or \"lacks\": [\"token\"] in `ready`",
            );
        }
        if let Some(until_ns) = *valid_until_ns {
            let (at_ns, ttl_ns) = (event.at_ns, self.task.ttl_ns);
            if until_ns <= asked_ns || until_ns > at_ns + ttl_ns {
                return misfit(
                    format!("`valid_until_ns` {until_ns} is not within the TTL of the grant"),
                    format!(
                        "the clock of `at_ns` before the request was sent, and the TTL: from {asked_ns} to {}",
                        at_ns + ttl_ns
                    ),
                );
            }
        }
        Ok(Hold {
            token: *token,
            owner: owner.clone(),
            valid_until_ns: *valid_until_ns,
            passed: Vec::new(),
            holds: 1,
            wrote: false,
            failed: false,
            lost: false,
        })
    }

    pub(super) fn held(&mut self, mut hold: Hold, kind: &EventKind, name: &str) -> Fits<State> {
        let next = self.next_gate(&hold);
        match kind {
            EventKind::AtGate { gate, round } => {
                let is_next = next == Some(*gate);
                let is_before_leave = *gate == Gate::BeforeLeave && hold.holds > 1;
                let is_asked = self.task.gates.contains(gate) && !hold.passed.contains(gate);
                if !(is_asked && (is_next || is_before_leave)) {
                    return Err(self.out_of_place(name));
                }
                hold.passed.push(*gate);
                self.closed = Some((*gate, *round));
            }
            EventKind::Renewed { .. } | EventKind::Lost { .. } => hold = self.aside(hold, kind)?,
            EventKind::Failed {
                during: Step::Read, ..
            } if !hold.wrote => hold.failed = true,
            EventKind::Reentered { token, holds, .. } if next != Some(Gate::AfterAcquire) => {
                same_token(&hold, *token)?;
                hold.holds += 1;
                counted(*holds, hold.holds)?;
            }
            EventKind::Left { token, holds, .. } if hold.holds > 1 => {
                same_token(&hold, *token)?;
                hold.holds -= 1;
                counted(*holds, hold.holds)?;
            }
            EventKind::Writing { token, owner, .. } if next.is_none() && !hold.wrote => {
                same_token(&hold, *token)?;
                same_owner(&hold, owner)?;
                return Ok(State::Writing(hold));
            }
            EventKind::Releasing { token, .. }
                if next.is_none()
                    && hold.holds == 1
                    && (hold.wrote || hold.failed || hold.lost) =>
            {
                same_token(&hold, *token)?;
                return Ok(State::Releasing(hold));
            }
            _ => return Err(self.out_of_place(name)),
        }
        Ok(State::Held(hold))
    }

    /// What the watchdog of a hold says, at any time.
    pub(super) fn aside(&self, mut hold: Hold, kind: &EventKind) -> Fits<Hold> {
        match kind {
            EventKind::Renewed {
                token,
                valid_until_ns,
                ..
            } => {
                same_token(&hold, *token)?;
                if hold.lost {
                    return misfit(
                        "a lease that is lost is renewed",
                        "no `renewed` after `lost`",
                    );
                }
                if *valid_until_ns < hold.valid_until_ns {
                    return misfit(
                        "a renewal shortens the lease",
                        "a `valid_until_ns` that is not below the one before",
                    );
                }
                hold.valid_until_ns = *valid_until_ns;
            }
            EventKind::Lost { token, .. } => {
                same_token(&hold, *token)?;
                hold.lost = true;
            }
            _ => {}
        }
        Ok(hold)
    }
}

pub(super) fn same_token(hold: &Hold, token: Option<FencingToken>) -> Fits {
    if token == hold.token {
        return Ok(());
    }
    let shown = |token: Option<FencingToken>| {
        token.map_or("no `token`".into(), |token| format!("\"token\": {token}"))
    };
    misfit(
        format!("it has {}", shown(token)),
        format!("{}, as `acquired` has", shown(hold.token)),
    )
}

fn same_owner(hold: &Hold, owner: &str) -> Fits {
    match owner == hold.owner {
        true => Ok(()),
        false => misfit(
            format!("the owner is `{owner}`"),
            format!("\"owner\": \"{}\", as `acquired` has", hold.owner),
        ),
    }
}

fn counted(said: usize, holds: usize) -> Fits {
    match said == holds {
        true => Ok(()),
        false => misfit(
            format!("it counts {said} holds"),
            format!("\"holds\": {holds}"),
        ),
    }
}
