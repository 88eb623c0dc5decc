use crate::model::{Count, Expectations, Measure, ViolationKind};
use serde_json::{Map, Value, json};

/// What a case may expect.
pub fn expectations() -> Value {
    let to = |definition: &str| json!({ "$ref": format!("#/$defs/{definition}") });
    let kinds = ViolationKind::ALL.map(|kind| (kind.name().to_owned(), to("range")));
    let kinds = Map::from_iter(kinds);
    let mut properties = Map::new();
    let kinds = json!({ "anyOf": [
        to("range"),
        { "type": "object", "minProperties": 1, "additionalProperties": false, "properties": kinds }
    ] });
    for name in [Expectations::VIOLATIONS, Expectations::EXCUSED] {
        properties.insert(name.to_owned(), kinds.clone());
    }
    properties.extend(Count::ALL.map(|count| (count.name().to_owned(), to("range"))));
    let lengths = Measure::ALL.map(|measure| (measure.name().to_owned(), to("length")));
    properties.extend(lengths);
    properties.insert(
        Expectations::ORDER.to_owned(),
        json!({ "type": "array", "minItems": 2, "items": to("trigger") }),
    );
    json!({
        "type": "object",
        "minProperties": 1,
        "additionalProperties": false,
        "properties": properties
    })
}
