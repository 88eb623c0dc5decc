//! The parts of the schema that do not follow from the fields.

use super::*;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// The outcome of a promise as one word.
pub struct KeptWord;

impl JsonSchema for KeptWord {
    fn schema_name() -> Cow<'static, str> {
        "Kept".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let not_checked = Kept::NotChecked(String::new());
        let plain = [
            Kept::Kept,
            Kept::Broken,
            Kept::Excused,
            Kept::NotTested,
            Kept::NotOffered,
        ];
        let words: Vec<&str> = plain.iter().chain([&not_checked]).map(Kept::word).collect();
        json_schema!({ "enum": words })
    }
}

/// Returns the schema of the counts that every program has written.
pub fn counts(_: &mut SchemaGenerator) -> Schema {
    // Possible overlaps are only in the evidence, and the others were added later.
    let not_always = ["possible_overlaps", "contended", "excused"];
    let mut always: BTreeMap<String, u64> = written(&Counts::default());
    always.retain(|name, _| !not_always.contains(&name.as_str()));
    json_schema!({
        "type": "object",
        "required": always.keys().collect::<Vec<_>>(),
        "additionalProperties": { "type": "integer", "minimum": 0 }
    })
}

/// Returns an open schema, because later programs measure more.
pub fn load(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "steps": { "type": "array", "items": {
                "type": "object",
                "required": ["contenders", "arrivals", "acquisitions", "timeouts", "acquire"]
            } },
            "uncontended": { "type": ["object", "null"] },
            "keyspace": { "type": ["object", "null"] },
            "partial": { "type": ["string", "null"] }
        }
    })
}

/// Returns the schema that readers can rely on. Later versions of this program may add fields,
/// so no part of it is closed.
pub fn schema() -> Value {
    schemars::schema_for!(ResultDocument).to_value()
}
