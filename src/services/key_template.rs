use std::fmt;

/// The way in which a lock library names the keys of its locks at the server: `/locks/{key}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTemplate {
    pub(super) before: String,
    pub(super) after: String,
}

impl KeyTemplate {
    pub const MOST_BYTES: usize = 200;
    const PLACE: &str = "{key}";

    /// Returns None if the text is too long, cannot be read, or does not have `{key}` exactly once.
    pub fn parse(text: &str) -> Option<KeyTemplate> {
        let (before, after) = text.split_once(KeyTemplate::PLACE)?;
        let is_one = !after.contains(KeyTemplate::PLACE)
            && text.len() <= KeyTemplate::MOST_BYTES
            && !text.chars().any(char::is_control);
        is_one.then(|| KeyTemplate {
            before: before.to_owned(),
            after: after.to_owned(),
        })
    }

    /// Returns the template of every key with this prefix.
    pub fn beginning(before: &str) -> KeyTemplate {
        KeyTemplate {
            before: before.to_owned(),
            after: String::new(),
        }
    }

    /// Returns the key of the lock for this key of a worker.
    pub fn render(&self, key: &str) -> String {
        format!("{}{key}{}", self.before, self.after)
    }

    /// Returns whether one key may fit both.
    pub fn overlaps(&self, other: &KeyTemplate) -> bool {
        let begin_alike =
            self.before.starts_with(&other.before) || other.before.starts_with(&self.before);
        let end_alike = self.after.ends_with(&other.after) || other.after.ends_with(&self.after);
        begin_alike && end_alike
    }
}

impl fmt::Display for KeyTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(KeyTemplate::PLACE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_has_its_place_exactly_once() {
        for good in ["{key}", "/locks/{key}", "lock:{{key}}", "a{key}b"] {
            let template = KeyTemplate::parse(good).unwrap();
            assert_eq!(template.to_string(), good);
            assert_eq!(template.render("k"), good.replace("{key}", "k"));
        }
        let long = format!("{{key}}{}", "x".repeat(KeyTemplate::MOST_BYTES));
        for bad in ["", "lock", "{key}{key}", "a\n{key}", "{KEY}", &long] {
            assert_eq!(KeyTemplate::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn templates_overlap_where_one_key_can_be_of_both() {
        let overlap = |one: &str, other: &str| {
            let parse = |text| KeyTemplate::parse(text).unwrap();
            parse(one).overlaps(&parse(other))
        };
        assert!(overlap("lock:{key}", "lock:my-{key}"));
        assert!(overlap("{key}", "lock:{key}"));
        assert!(overlap("/a/{key}", "/a/{key}/lock"));
        assert!(!overlap("/a/{key}", "/b/{key}"));
        assert!(!overlap("/a/{key}/one", "/a/{key}/other"));
    }
}
