use super::fault_words;
use crate::model::{FaultKind, FaultRow, FencingToken, StepKind};

/// One thing that happened, before it is put into words.
pub(super) enum Scene<'a> {
    Granted {
        who: Who<'a>,
        key: &'a str,
        token: Option<FencingToken>,
    },
    /// Anything else, told by name.
    Told {
        kind: StepKind,
        who: &'a str,
        /// The same in every good run.
        what: String,
        /// With times and owners of this one.
        closely: Option<String>,
    },
    Fault {
        kind: FaultKind,
        target: &'a str,
        /// The target's name in the scenario.
        called: &'a str,
        /// The row that asked for it.
        request: Option<&'a FaultRow>,
        ended: bool,
    },
    /// What became of a worker's lock at its server.
    Served {
        who: &'a str,
        what: String,
    },
    /// One of several lock servers has let a lock go.
    RanOutOn {
        who: Who<'a>,
        key: &'a str,
        node: &'a str,
    },
    /// A release that was meant for another hold.
    Freed {
        by: &'a str,
        who: Who<'a>,
        key: &'a str,
    },
    RanOut {
        who: Who<'a>,
        key: &'a str,
    },
    Accepted {
        who: Who<'a>,
        token: Option<FencingToken>,
        although: Although<'a>,
    },
    Refused {
        who: Who<'a>,
        got: Option<FencingToken>,
        seen: Option<FencingToken>,
    },
    /// The worker's side of an acceptance.
    Acknowledged {
        who: Who<'a>,
        token: Option<FencingToken>,
        position: u64,
    },
    /// The end of a story about a value that nobody's accepted write explains.
    HoldsOther {
        key: &'a str,
    },
    Missing {
        who: Who<'a>,
        token: Option<FencingToken>,
        position: u64,
        /// Whose write stands there now.
        instead: Option<(Who<'a>, Option<FencingToken>)>,
    },
}

/// Why a write should not have been accepted.
pub(super) enum Although<'a> {
    Nothing,
    Below(FencingToken),
    OtherOwner(Who<'a>),
    UsedBefore {
        token_seq: u64,
    },
    InBetween(Who<'a>),
    BasedBefore {
        other: Who<'a>,
        based_on: u64,
        stands_at: u64,
    },
}

/// A writer, as well as the record knows it.
#[derive(Clone, Copy)]
pub(super) struct Who<'a> {
    pub worker: Option<&'a str>,
    pub owner: Option<&'a str>,
}

/// How a scene is told.
pub(super) enum Voice<'t> {
    /// The story's tokens in their order become t1, t2 …
    Symbolic(&'t [FencingToken]),
    Concrete,
}

impl Scene<'_> {
    /// The tokens that the words of this scene name.
    pub fn tokens(&self) -> Vec<FencingToken> {
        match self {
            Scene::Granted { token, .. } | Scene::Acknowledged { token, .. } => {
                token.iter().copied().collect()
            }
            Scene::Fault { .. }
            | Scene::RanOut { .. }
            | Scene::RanOutOn { .. }
            | Scene::Freed { .. }
            | Scene::Told { .. }
            | Scene::Served { .. }
            | Scene::HoldsOther { .. } => Vec::new(),
            Scene::Accepted {
                token, although, ..
            } => {
                let below = match although {
                    Although::Below(highest) => Some(*highest),
                    _ => None,
                };
                token.iter().copied().chain(below).collect()
            }
            Scene::Refused { got, seen, .. } => got.iter().chain(seen).copied().collect(),
            Scene::Missing { token, instead, .. } => {
                let other = instead.and_then(|(_, token)| token);
                token.iter().copied().chain(other).collect()
            }
        }
    }

    pub fn kind(&self) -> StepKind {
        match self {
            Scene::Granted { .. } => StepKind::Grant,
            Scene::Told { kind, .. } => *kind,
            Scene::Fault { .. } => StepKind::Fault,
            Scene::RanOut { .. }
            | Scene::RanOutOn { .. }
            | Scene::Served { .. }
            | Scene::Freed { .. } => StepKind::LetGo,
            Scene::Accepted { .. } | Scene::Refused { .. } => StepKind::Write,
            Scene::Acknowledged { .. } | Scene::HoldsOther { .. } | Scene::Missing { .. } => {
                StepKind::Other
            }
        }
    }

    pub fn tell(&self, voice: &Voice) -> String {
        match self {
            Scene::Granted { who, key, token } => {
                let with = token.map_or(String::new(), |token| {
                    format!(" with {}", voice.token(token))
                });
                format!("{} is granted {key}{with}", voice.name(*who))
            }
            Scene::Told {
                who, what, closely, ..
            } => match (voice, closely) {
                (Voice::Concrete, Some(closely)) => format!("{who} {what}{closely}"),
                _ => format!("{who} {what}"),
            },
            Scene::Fault {
                kind,
                target,
                called,
                request,
                ended,
            } => {
                let target = voice.node(target, called);
                match ended {
                    true => fault_words::ends(*kind, &target),
                    false => fault_words::begins(*kind, &target, *request),
                }
            }
            Scene::Served { who, what } => format!("{who}{what}"),
            Scene::HoldsOther { key } => {
                format!("{key} holds something else than what was accepted last")
            }
            Scene::RanOutOn { who, key, node } => {
                format!("{}'s lock on {key} runs out at {node}", voice.name(*who))
            }
            Scene::Freed { by, who, key } => {
                format!("{by}'s release frees {}'s lock on {key}", voice.name(*who))
            }
            Scene::RanOut { who, key } => format!("{}'s lock on {key} runs out", voice.name(*who)),
            Scene::Accepted {
                who,
                token,
                although,
            } => format!(
                "the resource accepts {}{}",
                voice.write(*who, *token),
                voice.although(*who, *token, although)
            ),
            Scene::Refused { who, got, seen } => format!(
                "the resource refuses {}{}",
                voice.write(*who, *got),
                voice.refusal(*got, *seen)
            ),
            Scene::Acknowledged {
                who,
                token,
                position,
            } => format!(
                "{} is told that its write with {} is accepted{}",
                voice.name(*who),
                token.map_or("its token".to_owned(), |token| voice.token(token)),
                voice.position(*position)
            ),
            Scene::Missing {
                who,
                token,
                position,
                instead,
            } => {
                let write = voice.write(*who, *token);
                let position = voice.position(*position);
                match instead {
                    None => format!("the log does not have {write}{position}"),
                    Some((other, other_token)) => format!(
                        "the log has {}{position} in the place of {write}",
                        voice.write(*other, *other_token)
                    ),
                }
            }
        }
    }
}

impl Voice<'_> {
    /// An owner id is random, so only the concrete voice may say it.
    fn name(&self, who: Who) -> String {
        match (who.worker, who.owner, self) {
            (Some(worker), _, _) => worker.to_owned(),
            (None, Some(owner), Voice::Concrete) => format!("owner {owner}"),
            _ => "an unknown writer".to_owned(),
        }
    }

    /// Which node is meant by another name (`leader`) differs from run to run.
    fn node(&self, target: &str, called: &str) -> String {
        match self {
            Voice::Symbolic(_) if called != target => format!("the {called}"),
            _ => target.to_owned(),
        }
    }

    fn token(&self, token: FencingToken) -> String {
        match self {
            Voice::Symbolic(_) => self.bare(token),
            Voice::Concrete => format!("token {token}"),
        }
    }

    fn bare(&self, token: FencingToken) -> String {
        match self {
            Voice::Symbolic(tokens) => {
                format!("t{}", tokens.partition_point(|&other| other < token) + 1)
            }
            Voice::Concrete => token.to_string(),
        }
    }

    fn position(&self, position: u64) -> String {
        match self {
            Voice::Symbolic(_) => String::new(),
            Voice::Concrete => format!(" at position {position}"),
        }
    }

    fn write(&self, who: Who, token: Option<FencingToken>) -> String {
        let name = self.name(who);
        match token {
            Some(token) => format!("{name}'s write with {}", self.token(token)),
            None => format!("{name}'s write"),
        }
    }

    fn refusal(&self, got: Option<FencingToken>, seen: Option<FencingToken>) -> String {
        match (seen, got, self) {
            (Some(seen), Some(got), Voice::Concrete) => {
                format!(": 409 stale fencing token: seen {seen}, got {got}")
            }
            (Some(seen), ..) => format!(": it has seen {}", self.token(seen)),
            (None, ..) => String::new(),
        }
    }

    fn although(&self, who: Who, token: Option<FencingToken>, reason: &Although) -> String {
        let its_token = |token: Option<FencingToken>| match token {
            Some(token) => self.token(token),
            None => "its token".to_owned(),
        };
        match reason {
            Although::Nothing => String::new(),
            Although::Below(highest) => match token {
                Some(token) => {
                    format!(", although {} < {}", self.bare(token), self.bare(*highest))
                }
                None => String::new(),
            },
            Although::OtherOwner(other) => format!(
                ", although {} has written with {}, too",
                self.name(*other),
                its_token(token)
            ),
            Although::UsedBefore { token_seq } => {
                let seq = match self {
                    Voice::Symbolic(_) => String::new(),
                    Voice::Concrete => format!(" with seq {token_seq}"),
                };
                format!(", although {}{seq} has been used before", its_token(token))
            }
            Although::InBetween(other) => format!(
                ", although {} has written since {}'s last write",
                self.name(*other),
                self.name(who)
            ),
            Although::BasedBefore {
                other,
                based_on,
                stands_at,
            } => match self {
                Voice::Symbolic(_) => {
                    format!(", based on the value before {}'s write", self.name(*other))
                }
                Voice::Concrete => format!(
                    ", based on position {based_on}, although {}'s write stands at position {stands_at}",
                    self.name(*other)
                ),
            },
        }
    }
}
