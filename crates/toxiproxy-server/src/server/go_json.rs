//! JSON as the original reads it, by Go's encoding/json: the case of a key does not matter, and null
//! counts as left out.

use serde::de::{DeserializeOwned, Error};
use serde_json::{Map, Value};

/// Reads an object. serde would accept an array for one as well, and nobody means that.
pub fn read<T: DeserializeOwned>(value: Value) -> Result<T, serde_json::Error> {
    match folded(value) {
        Value::Null => serde_json::from_value(Map::new().into()),
        object @ Value::Object(_) => serde_json::from_value(object),
        other => Err(Error::custom(format_args!("{other} is no object"))),
    }
}

/// Gives every key its name, which is in lower case.
fn folded(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let given = fields.into_iter().filter(|(_, value)| !value.is_null());
            let named = given.map(|(key, value)| (key.to_lowercase(), folded(value)));
            Value::Object(named.collect())
        }
        Value::Array(values) => values.into_iter().map(folded).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NewProxy;
    use serde_json::json;

    #[test]
    fn keys_may_have_any_case_and_null_is_left_out() {
        let sent = json!({"Name": "p", "UPSTREAM": "a:1", "listen": null, "enabled": null});
        let read: NewProxy = super::read(sent).expect("a proxy");
        assert_eq!((read.name.as_str(), read.upstream.as_str()), ("p", "a:1"));
        assert_eq!((read.listen.as_str(), read.enabled), ("", true));
        let nothing: NewProxy = super::read(Value::Null).expect("an empty proxy");
        assert_eq!(nothing.name, "");
        super::read::<NewProxy>(json!(["p", "", "a:1"])).expect_err("an array is no object");
    }

    #[test]
    fn keys_within_other_values_are_folded_as_well_and_values_are_not() {
        let sent = json!({"Attributes": {"Latency": 7}, "Toxics": [{"Type": "LATENCY"}]});
        let named = json!({"attributes": {"latency": 7}, "toxics": [{"type": "LATENCY"}]});
        assert_eq!(folded(sent), named);
    }
}
