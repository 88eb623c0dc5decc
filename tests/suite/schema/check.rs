//! As much of JSON Schema as our own schema uses. A keyword it does not know
//! is a failure, not a thing to pass over.

use regex_lite::Regex;
use serde_json::Value;

/// Everything that is wrong with a value; empty where it fits.
pub fn complaints(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Check { root: schema }.value(schema, value, "", &mut found);
    found
}

struct Check<'a> {
    root: &'a Value,
}

impl Check<'_> {
    fn value(&self, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
        for (keyword, rule) in schema.as_object().expect("a schema is an object") {
            if let Some(problem) = self.keyword(schema, keyword, rule, value, at, found) {
                found.push(format!("{at}: {problem}"));
            }
        }
    }

    fn fits(&self, schema: &Value, value: &Value) -> bool {
        let mut found = Vec::new();
        self.value(schema, value, "", &mut found);
        found.is_empty()
    }

    fn keyword(
        &self,
        schema: &Value,
        keyword: &str,
        rule: &Value,
        value: &Value,
        at: &str,
        found: &mut Vec<String>,
    ) -> Option<String> {
        let alternatives = || rule.as_array().expect("a list of schemas").iter();
        let fitting = || alternatives().filter(|one| self.fits(one, value)).count();
        let fine = match keyword {
            "$schema" | "$id" | "title" | "description" | "$defs" | "format" | "default" => true,
            "$ref" => {
                let pointer = rule.as_str().and_then(|path| path.strip_prefix('#'));
                let target = self.root.pointer(pointer.expect("a local reference"));
                self.value(target.expect("it leads somewhere"), value, at, found);
                true
            }
            "type" => match rule {
                Value::Array(types) => types.iter().any(|one| has_type(one, value)),
                one => has_type(one, value),
            },
            "enum" => rule.as_array().expect("a list").contains(value),
            "const" => rule == value,
            "anyOf" => fitting() > 0,
            "oneOf" => fitting() == 1,
            "required" | "properties" | "additionalProperties" | "minProperties" => {
                self.object(schema, keyword, rule, value, at, found)
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.value(rule, item, &format!("{at}/{index}"), found);
                }
                true
            }
            "pattern" => value.as_str().is_none_or(|text| {
                let pattern = Regex::new(rule.as_str().expect("a pattern"));
                pattern.expect("a pattern").is_match(text)
            }),
            "minLength" => length(value).is_none_or(|length| length >= number(rule)),
            "maxLength" => length(value).is_none_or(|length| length <= number(rule)),
            "minItems" => items(value).is_none_or(|length| length >= number(rule)),
            "minimum" => value.as_f64().is_none_or(|n| n >= bound(rule)),
            "maximum" => value.as_f64().is_none_or(|n| n <= bound(rule)),
            "exclusiveMinimum" => value.as_f64().is_none_or(|n| n > bound(rule)),
            other => panic!("this test does not know the keyword {other}"),
        };
        (!fine).then(|| format!("{value} does not fit {keyword} {rule}"))
    }

    fn object(
        &self,
        schema: &Value,
        keyword: &str,
        rule: &Value,
        value: &Value,
        at: &str,
        found: &mut Vec<String>,
    ) -> bool {
        let Some(entries) = value.as_object() else {
            return true;
        };
        match keyword {
            "required" => {
                let mut names = rule.as_array().expect("a list").iter();
                names.all(|name| entries.contains_key(name.as_str().expect("a name")))
            }
            "minProperties" => entries.len() as u64 >= number(rule),
            "properties" => {
                for (name, rule) in rule.as_object().expect("an object") {
                    if let Some(value) = entries.get(name) {
                        self.value(rule, value, &format!("{at}/{name}"), found);
                    }
                }
                true
            }
            _ => {
                let others = entries
                    .iter()
                    .filter(|(name, _)| schema["properties"].get(name).is_none());
                let mut fine = true;
                for (name, value) in others {
                    match rule {
                        Value::Bool(allowed) => fine &= *allowed,
                        rule => self.value(rule, value, &format!("{at}/{name}"), found),
                    }
                }
                fine
            }
        }
    }
}

fn has_type(name: &Value, value: &Value) -> bool {
    match name.as_str().expect("a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("this test does not know the type {other}"),
    }
}

fn length(value: &Value) -> Option<u64> {
    value.as_str().map(|text| text.chars().count() as u64)
}

fn items(value: &Value) -> Option<u64> {
    value.as_array().map(|items| items.len() as u64)
}

fn bound(rule: &Value) -> f64 {
    rule.as_f64().expect("a number")
}

fn number(rule: &Value) -> u64 {
    rule.as_u64().expect("a number")
}
