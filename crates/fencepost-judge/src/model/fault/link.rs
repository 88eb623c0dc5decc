use super::FaultKind;
use crate::model::{Name, joined};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The connection from one node to another: each link has its own proxy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Link {
    pub from: Name,
    pub to: Name,
}

impl Link {
    pub fn new(from: impl Into<Name>, to: impl Into<Name>) -> Link {
        let (from, to) = (from.into(), to.into());
        Link { from, to }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkFault {
    /// The name of the fault: a partition and an isolation do the same things.
    pub kind: FaultKind,
    pub scope: LinkScope,
    pub effect: LinkEffect,
}

impl LinkFault {
    pub fn streams(&self) -> Streams {
        match &self.effect {
            LinkEffect::Refuse => Streams::Both,
            LinkEffect::Toxic { streams, .. } => *streams,
        }
    }
}

/// Which links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LinkScope {
    /// All between nodes of different groups; nodes in no group keep theirs.
    Between(Vec<Vec<String>>),
    /// All from and to one node.
    Around(Name),
    Matching(Vec<LinkPattern>),
}

/// `a -> redis-1`, `a -> any`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkPattern {
    /// None is any.
    pub from: Option<String>,
    pub to: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LinkEffect {
    /// The proxy does not listen any more, and its connections are closed.
    Refuse,
    Toxic {
        toxic: ToxicEffect,
        streams: Streams,
        /// The share of connections that it affects, above 0 and at most 1.
        toxicity: f64,
    },
}

/// Which bytes a toxic gets hold of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Streams {
    /// Everything on the connections that the pattern's `from` makes to its `to`.
    Both,
    /// What travels from the pattern's `from` to its `to`, whoever of the two
    /// made the connection: etcd's members send each other data in both ways.
    Data,
}

/// The toxics that can be seen to bite, and so can be a fault. Named and
/// measured as in Toxiproxy, with the unit last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ToxicEffect {
    Latency {
        latency_ms: u64,
        jitter_ms: u64,
    },
    /// 0 holds everything back.
    Bandwidth {
        rate_kb_per_s: u64,
    },
    /// Loses everything; closes after that long, 0 is never.
    Timeout {
        timeout_ms: u64,
    },
    ResetPeer {
        timeout_ms: u64,
    },
    Slicer {
        average_size: u64,
        size_variation: u64,
        delay_us: u64,
    },
    LimitData {
        bytes: u64,
    },
}

impl Streams {
    pub const ALL: [Streams; 2] = [Streams::Both, Streams::Data];
}

impl LinkPattern {
    /// The word that matches every node.
    pub const ANY: &str = "any";

    /// Parses `a -> redis-1`. Returns `None` if the text does not have that form.
    pub fn parse(text: &str) -> Option<LinkPattern> {
        let (from, to) = text.split_once("->")?;
        let name = |text: &str| (text != LinkPattern::ANY).then(|| text.to_owned());
        let (from, to) = (from.trim(), to.trim());
        let one_name = |text: &str| !text.is_empty() && !text.contains([' ', '>']);
        (one_name(from) && one_name(to)).then(|| LinkPattern {
            from: name(from),
            to: name(to),
        })
    }

    pub fn matches(&self, link: &Link) -> bool {
        let fits = |wanted: &Option<String>, name: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == name)
        };
        fits(&self.from, &link.from) && fits(&self.to, &link.to)
    }

    /// Returns the same pattern with the two sides swapped.
    pub fn turned(&self) -> LinkPattern {
        LinkPattern {
            from: self.to.clone(),
            to: self.from.clone(),
        }
    }
}

impl fmt::Display for LinkPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            |name: &Option<String>| name.clone().unwrap_or_else(|| LinkPattern::ANY.to_owned());
        write!(f, "{} -> {}", name(&self.from), name(&self.to))
    }
}

impl fmt::Display for LinkScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match self {
            LinkScope::Between(groups) => {
                joined(groups.iter().map(|group| group.join(", ")), " | ")
            }
            LinkScope::Around(node) => node.to_string(),
            LinkScope::Matching(patterns) => joined(patterns, ", "),
        })
    }
}

impl ToxicEffect {
    /// Returns Toxiproxy's name for it.
    pub fn type_name(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for LinkEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkEffect::Refuse => f.write_str("refused"),
            LinkEffect::Toxic {
                toxic, toxicity, ..
            } => {
                write!(f, "{toxic}")?;
                match toxicity {
                    1.0 => Ok(()),
                    share => write!(f, " on {share} of the connections"),
                }
            }
        }
    }
}

impl fmt::Display for ToxicEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.type_name();
        match self {
            ToxicEffect::Latency {
                latency_ms,
                jitter_ms: 0,
            } => write!(f, "{name} {latency_ms} ms"),
            ToxicEffect::Latency {
                latency_ms,
                jitter_ms,
            } => write!(f, "{name} {latency_ms} ms, jitter {jitter_ms} ms"),
            ToxicEffect::Bandwidth { rate_kb_per_s } => write!(f, "{name} {rate_kb_per_s} KB/s"),
            ToxicEffect::Timeout { timeout_ms } | ToxicEffect::ResetPeer { timeout_ms } => {
                write!(f, "{name} {timeout_ms} ms")
            }
            ToxicEffect::Slicer {
                average_size,
                size_variation,
                delay_us,
            } => write!(
                f,
                "{name} {average_size} bytes, variation {size_variation}, delay {delay_us} us"
            ),
            ToxicEffect::LimitData { bytes } => write!(f, "{name} {bytes} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_read_and_print_the_same() {
        for text in ["a -> redis-1", "a -> any", "any -> redis-1", "any -> any"] {
            assert_eq!(LinkPattern::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(LinkPattern::parse("a->b").unwrap().to_string(), "a -> b");
        for text in ["", "a", "a ->", "-> b", "a -> b -> c", "a b -> c", "a <- b"] {
            assert_eq!(LinkPattern::parse(text), None, "{text}");
        }
    }

    #[test]
    fn any_matches_every_name_on_its_side() {
        let link = Link::new("a", "redis");
        for (text, fits) in [
            ("a -> any", true),
            ("any -> redis", true),
            ("redis -> any", false),
        ] {
            let pattern = LinkPattern::parse(text).unwrap();
            assert_eq!(pattern.matches(&link), fits, "{text}");
            let back = pattern.turned();
            assert_eq!(back.turned(), pattern);
        }
    }
}
