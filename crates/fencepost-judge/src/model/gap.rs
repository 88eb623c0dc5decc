use serde::{Deserialize, Serialize};
use std::fmt;

/// A reason why a record is known to be incomplete, noted by the harness itself.
///
/// Records of earlier programs have only the sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Gap {
    /// The fault that it is about, by its id.
    pub fault: Option<u32>,
    pub text: String,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    OfAFault { fault: u32, text: String },
}

impl From<Written> for Gap {
    fn from(written: Written) -> Gap {
        match written {
            Written::Text(text) => Gap { fault: None, text },
            Written::OfAFault { fault, text } => Gap {
                fault: Some(fault),
                text,
            },
        }
    }
}

impl From<Gap> for Written {
    fn from(gap: Gap) -> Written {
        match gap.fault {
            None => Written::Text(gap.text),
            Some(fault) => Written::OfAFault {
                fault,
                text: gap.text,
            },
        }
    }
}

impl From<String> for Gap {
    fn from(text: String) -> Gap {
        Gap { fault: None, text }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_a_sentence_or_a_sentence_about_a_fault() {
        let plain = Gap::from("torn".to_owned());
        let of_a_fault = Gap {
            fault: Some(3),
            text: "not proven".to_owned(),
        };
        for (gap, json) in [
            (plain, r#""torn""#),
            (of_a_fault, r#"{"fault":3,"text":"not proven"}"#),
        ] {
            assert_eq!(serde_json::to_string(&gap).unwrap(), json);
            assert_eq!(serde_json::from_str::<Gap>(json).unwrap(), gap);
        }
    }
}
