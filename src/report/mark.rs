use super::*;

/// The display of an outcome on a page: with a sign and words, so that nothing depends on
/// colour alone.
pub struct Mark {
    /// The name in result.json, for programs that read the page.
    pub name: &'static str,
    /// The CSS class.
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

    /// Returns the mark of a verdict. Something that is not offered is less bad than something
    /// unknown.
    pub fn of_verdict(verdict: &CaseVerdict) -> Mark {
        Mark::of_part(verdict, verdict.outcome)
    }

    /// Returns the mark of one of its findings.
    pub fn of_part(verdict: &CaseVerdict, outcome: Outcome) -> Mark {
        let is_calm = outcome == Outcome::Inconclusive && lock::is_only_not_offered(verdict);
        match is_calm {
            true => Mark {
                class: "calm",
                words: "not offered".to_owned(),
                ..Mark::of(outcome)
            },
            false => Mark::of(outcome),
        }
    }

    pub fn badge(&self) -> Markup {
        html! { span class=(self.class) { (self.words) } }
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
