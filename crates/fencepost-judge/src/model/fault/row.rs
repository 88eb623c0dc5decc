use super::{ClockName, Fault, FaultKind, LinkEffect, LinkScope, UnprovenReason, legacy};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// One row of `faults.jsonl`. A fault counts only when a row of it says
/// `observed`; asked for is not bitten.
///
/// Everything that is decided by is a field of its own; `detail` is for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(remote = "Self")]
pub struct FaultRow {
    pub at_ns: u64,
    /// Rows with one id belong to one action.
    pub id: u32,
    pub fault: FaultKind,
    /// As people read it: a node, `a, b | c`, `a -> redis`.
    pub target: String,
    /// The links of the target, where it is links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<LinkScope>,
    /// What the scenario calls the target, where that is not its name: `leader`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    pub stage: FaultStage,
    /// What was seen, or why nothing was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Why it is not proven, or not seen to be gone: what `detail` says, as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<ReasonSchema>"))]
    pub reason: Option<UnprovenReason>,
    /// On the request of a pause: it proves nothing unless it lasted longer than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer_than_ms: Option<u64>,
    /// On a request: how long it is to last, as written or as drawn by the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
    /// On the request of a skew or drift: the clock that is moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockName>,
    /// On the request of a skew: how far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_ms: Option<i64>,
    /// On the request of a drift: how much faster it runs, in parts per million.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ppm: Option<i64>,
    /// On the request of a loss: the share of packets that get lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// On the request of a fault of links: what is wrong with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<LinkEffect>,
}

/// What readers can rely on of a reason: the rest of it is for the page.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
struct ReasonSchema {
    #[expect(dead_code, reason = "only its schema is used")]
    code: String,
}

impl FaultRow {
    /// Makes a row with only the fields that every row has.
    pub fn new(at_ns: u64, id: u32, fault: FaultKind, target: &str, stage: FaultStage) -> FaultRow {
        FaultRow {
            at_ns,
            id,
            fault,
            target: target.to_owned(),
            scope: None,
            alias: None,
            stage,
            detail: String::new(),
            reason: None,
            longer_than_ms: None,
            for_ms: None,
            clock: None,
            by_ms: None,
            ppm: None,
            percent: None,
            effect: None,
        }
    }

    /// Makes the row that requests a fault, with all its parameters.
    pub fn request(at_ns: u64, id: u32, fault: &Fault, lasting: Option<Duration>) -> FaultRow {
        let ms = |duration: Duration| duration.as_millis() as u64;
        let (kind, target) = (fault.kind(), fault.target());
        let parameters = fault.parameters();
        let links = match fault {
            Fault::Links(links) => Some(links),
            Fault::Node(_) => None,
        };
        FaultRow {
            scope: links.map(|links| links.scope.clone()),
            detail: fault.details(),
            for_ms: lasting.map(ms),
            longer_than_ms: fault.longer_than().map(ms),
            clock: parameters.clock,
            by_ms: parameters.by_ms,
            ppm: parameters.ppm,
            percent: parameters.percent,
            effect: links.map(|links| links.effect.clone()),
            ..FaultRow::new(at_ns, id, kind, &target, FaultStage::Requested)
        }
    }

    /// Makes a later row of the same fault, which does not repeat the parameters.
    pub fn later(&self, at_ns: u64, stage: FaultStage) -> FaultRow {
        FaultRow {
            scope: self.scope.clone(),
            alias: self.alias.clone(),
            ..FaultRow::new(at_ns, self.id, self.fault, &self.target, stage)
        }
    }

    /// Returns the target's name in the scenario, which is the same in every run.
    pub fn called(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.target)
    }
}

impl Serialize for FaultRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        FaultRow::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for FaultRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FaultRow, D::Error> {
        let mut row = FaultRow::deserialize(deserializer)?;
        legacy::complete(&mut row);
        Ok(row)
    }
}

/// A toxicity is never NaN, so a row equals itself.
impl Eq for FaultRow {}

impl Hash for FaultRow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.at_ns, self.id, self.stage).hash(state);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FaultStage {
    Requested,
    /// The target was seen in the state that the fault means.
    Observed,
    /// It was not, within the deadline.
    Unproven,
    /// It is being undone from here on, and what it held back may go on before
    /// anybody has seen that. (A pause or freeze is undone by an action of its
    /// own, which is requested.)
    Ending,
    /// The timeline undid it, and the target was seen without it again.
    Ended,
    /// Healing at the end undid it, because the timeline had not.
    Healed,
}

impl FaultStage {
    /// Returns the name that records use.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FaultParameters, LinkFault, LinkPattern, Streams, ToxicEffect};

    #[test]
    fn request_holds_everything_as_data_and_reads_back_the_same() {
        let fault = |scope| LinkFault {
            kind: FaultKind::Latency,
            scope,
            effect: LinkEffect::Toxic {
                toxic: ToxicEffect::LimitData { bytes: 300 },
                streams: Streams::Data,
                toxicity: 0.5,
            },
        };
        let any = LinkPattern::parse("a -> any").unwrap();
        for scope in [
            LinkScope::Between(vec![vec!["a".to_owned()], vec!["b".to_owned()]]),
            LinkScope::Around("a".into()),
            LinkScope::Matching(vec![any]),
        ] {
            let fault = fault(scope);
            let row = FaultRow::request(1, 2, &Fault::Links(fault.clone()), None);
            let line = serde_json::to_string(&row).unwrap();
            let read: FaultRow = serde_json::from_str(&line).unwrap();
            assert_eq!(read, row);
            assert_eq!(read.scope, Some(fault.scope));
            assert_eq!(read.effect, Some(fault.effect));
        }
        let parameters = FaultParameters {
            percent: Some(30),
            ..FaultParameters::default()
        };
        let loss = Fault::with(FaultKind::Loss, "a".into(), parameters);
        assert_eq!(FaultRow::request(1, 2, &loss, None).percent, Some(30));
    }
}
