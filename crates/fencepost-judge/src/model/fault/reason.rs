use super::{ClockName, Link};
use crate::model::Name;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The reason why a fault is not proven, did not last, or was not seen to be gone.
///
/// Rows record it as data; the words are for people.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Error)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum UnprovenReason {
    // About the state of its node.
    #[error("its process has ended")]
    ProcessEnded,
    #[error("it had ended already")]
    EndedAlready,
    #[error("its process ended by itself, with exit code {exit_code}")]
    EndedByItself { exit_code: i64 },
    #[error("its process still runs")]
    StillRuns,
    #[error("it does not run")]
    NotRunning,
    #[error("it was not started anew")]
    NotStartedAnew,
    #[error("it is stopped already")]
    StoppedAlready,
    #[error("it is frozen already")]
    FrozenAlready,
    #[error("its cgroup is not frozen")]
    NotFrozen,
    #[error("its cgroup is still frozen")]
    StillFrozen,
    #[error("it was seen with {threads}")]
    ThreadsUnlike { threads: String },
    #[error("{node} is not a service, so it cannot be started again")]
    NotAService { node: Name },

    // About its data and its role.
    #[error(
        "it has lost its data: this server keeps nothing on disk; use `restart-empty`, or a topology whose servers do"
    )]
    LostItsData,
    #[error("it still has its data")]
    KeptItsData,
    #[error("it is no Redis and no Postgres")]
    NotPromotable,
    #[error("it is not a replica of any node here")]
    NotAReplica,
    #[error("it is a primary already")]
    PrimaryAlready,
    #[error("it still calls itself a replica")]
    StillReplica,
    #[error("{link} does not lead to it")]
    LeadsElsewhere { link: Link },
    #[error("no leader was found ({})", answers.join("; "))]
    NoLeader { answers: Vec<String> },

    // About its links.
    #[error("the links of this cluster are not there")]
    NoLinks,
    #[error("there is no such link")]
    NoSuchLink,
    #[error("there is no link {link}")]
    UnknownLink { link: Link },
    #[error("nobody is left at both ends of such a link")]
    NobodyLeft,
    #[error("nothing came over {link} before the fault either: {seen}")]
    SilentBefore { link: Link, seen: String },
    #[error(
        "a probe over {link} took {took_ms} ms before the fault, too long to see {more_ms} ms more"
    )]
    SlowBefore {
        link: Link,
        took_ms: u64,
        more_ms: u64,
    },
    #[error("a probe over {link} was not as the fault means: {seen}")]
    ProbeUnlike { link: Link, seen: String },
    #[error("nothing comes over {link} either, which should work: {seen}")]
    ControlSilent { link: Link, seen: String },
    #[error("nothing comes over {link} since: {seen}")]
    SilentSince { link: Link, seen: String },
    #[error("the toxic is still on {link}")]
    ToxicLeft { link: Link },

    // About its packets.
    #[error("packets of it get lost already")]
    LossyAlready,
    #[error("{seen}, and no packet was dropped")]
    NothingDropped { seen: String },
    #[error("the packet filter is still there")]
    FilterLeft,

    // About its clocks.
    #[error("it does not run, so it has no clock")]
    NoClock,
    #[error("it is frozen, so its clock cannot be read")]
    ClockFrozen,
    #[error("it is stopped, so its clock cannot be read; resume it first")]
    ClockStopped,
    #[error("its {clock} clock is off already")]
    ClockOffAlready { clock: ClockName },
    #[error("only the leader's monotonic clock can be read back, by its leases; skew `leader`")]
    ClockOfNoLeader,
    #[error("nothing of it shows its monotonic clock; skew realtime")]
    ClockHidden,
    #[error("less than {least_ms} ms cannot be read back from it")]
    SkewTooSmall { least_ms: i64 },
    #[error("{ppm} ppm show only after {shows_s} s, and no longer than {longest_s} s is waited")]
    DriftTooSlow {
        ppm: i64,
        shows_s: u64,
        longest_s: u64,
    },
    #[error("its clock was not looked at before")]
    ClockNotReadBefore,
    #[error("its {clock} clock could be read only give or take {give_or_take_ms} ms")]
    ClockInexact {
        clock: ClockName,
        give_or_take_ms: i64,
    },
    #[error("its {clock} clock moved by {moved_ms} ms instead of {wanted_ms} ms")]
    ClockMovedOtherwise {
        clock: ClockName,
        moved_ms: i64,
        wanted_ms: i64,
    },
    #[error("the clock of this machine moved as well, by {by_ms} ms")]
    HostClockMoved { by_ms: i64 },
    #[error("its {clock} clock is still off")]
    ClockStillOff { clock: ClockName },

    // Somebody else undid it while it was active.
    #[error("it had not lasted until it was undone: {why}")]
    DidNotLast { why: Box<UnprovenReason> },
    #[error("somebody else has continued it")]
    ContinuedByOthers,
    #[error("somebody else has thawed it")]
    ThawedByOthers,
    #[error("somebody else has started it again")]
    StartedByOthers,
    #[error("somebody else has put it on the network again")]
    ConnectedByOthers,
    #[error("somebody else has healed {link}")]
    HealedByOthers { link: Link },
    #[error("somebody else has cleared the packet filter")]
    ClearedByOthers,
    #[error("somebody else has set its {clock} clock")]
    ClockSetByOthers { clock: ClockName },

    // About the timeline.
    #[error("the case is over")]
    CaseOver,
    #[error("nothing had {how} it")]
    NothingStopped { how: String },
    #[error("heal of {entry}: it has not begun")]
    NotBegun { entry: String },

    // About the tools with which the harness injects, verifies or undoes it.
    #[error("what would have to be undone cannot be written to {path}: {error}")]
    NotJournaled { path: String, error: String },
    #[error("{error}")]
    Cluster { error: String },
    #[error("{error}")]
    Proxy { error: String },
    #[error("{error}")]
    Probe { error: String },
    #[error("{error}")]
    PacketFilter { error: String },
    #[error("{error}")]
    Clock { error: String },
    #[error("{server} gave no usable answer: {error}")]
    Server { server: String, error: String },
    #[error("{error}")]
    Harness { error: String },

    /// A reason that only a later program knows.
    #[error("for a reason that this program does not know")]
    #[serde(other)]
    Unknown,
}

impl UnprovenReason {
    /// Returns whether the fault did nothing: there was nobody that it could be done to, or it had
    /// been done already.
    pub fn is_of_nothing(&self) -> bool {
        use UnprovenReason::*;
        matches!(
            self,
            ProcessEnded
                | EndedAlready
                | NotRunning
                | StoppedAlready
                | FrozenAlready
                | NobodyLeft
                | LossyAlready
                | NoClock
                | ClockOffAlready { .. }
                | NothingStopped { .. }
                | PrimaryAlready
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_is_recorded_by_its_code_and_what_it_is_about() {
        let why = Box::new(UnprovenReason::ClockSetByOthers {
            clock: ClockName::Realtime,
        });
        let reason = UnprovenReason::DidNotLast { why };
        let json =
            r#"{"code":"did_not_last","why":{"code":"clock_set_by_others","clock":"realtime"}}"#;
        assert_eq!(serde_json::to_string(&reason).unwrap(), json);
        assert_eq!(
            serde_json::from_str::<UnprovenReason>(json).unwrap(),
            reason
        );
        assert_eq!(
            reason.to_string(),
            "it had not lasted until it was undone: somebody else has set its realtime clock"
        );
    }

    #[test]
    fn reason_of_a_later_program_is_read_as_unknown() {
        let json = r#"{"code":"eaten_by_a_goat","goat":"g1"}"#;
        assert_eq!(
            serde_json::from_str::<UnprovenReason>(json).unwrap(),
            UnprovenReason::Unknown
        );
    }
}
