use super::markup::element;
use crate::model::Outcome;

/// How an outcome stands on a page: with a sign and words, so that no colour says
/// anything alone.
pub struct Mark {
    /// For whoever reads the page by program: as in result.json.
    pub name: &'static str,
    /// As the style calls it.
    pub class: &'static str,
    pub sign: char,
    pub words: String,
}

impl Mark {
    pub fn of(outcome: Outcome) -> Mark {
        let (name, class, sign) = match outcome {
            Outcome::AsExpected => ("as_expected", "as-expected", '✓'),
            Outcome::NotAsExpected => ("not_as_expected", "not-as-expected", '✗'),
            Outcome::Inconclusive => ("inconclusive", "inconclusive", '?'),
        };
        Mark {
            name,
            class,
            sign,
            words: outcome.to_string(),
        }
    }

    pub fn badge(&self) -> String {
        element("span", &[("class", &self.class)], &self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_that_of_the_result() {
        let all = [
            Outcome::AsExpected,
            Outcome::NotAsExpected,
            Outcome::Inconclusive,
        ];
        for outcome in all {
            let mark = Mark::of(outcome);
            assert_eq!(serde_json::json!(outcome), mark.name);
            assert_eq!(mark.name.replace('_', "-"), mark.class);
        }
    }
}
