use super::{Node, Value};

/// Lays `over` over `base`: mappings are merged key by key, anything else is replaced. Every value
/// keeps the place that it was written at.
pub fn overlay(base: &Node, over: &Node) -> Node {
    let (Value::Map(below), Value::Map(above)) = (&base.value, &over.value) else {
        return over.clone();
    };
    let mut merged = below.clone();
    for (key, value) in above {
        let known = merged
            .iter_mut()
            .find(|(known, _)| known.value == key.value);
        match known {
            Some((_, below)) => *below = overlay(below, value),
            None => merged.push((key.clone(), value.clone())),
        }
    }
    Node {
        place: base.place,
        value: Value::Map(merged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;
    use std::path::Path;

    fn yaml(text: &str) -> Node {
        parse(Path::new("x.yml"), text).unwrap()
    }

    /// Returns a node without places, for comparison.
    fn shape(node: &Node) -> String {
        match &node.value {
            Value::Scalar(text) => text.clone(),
            Value::List(items) => format!("{:?}", items.iter().map(shape).collect::<Vec<_>>()),
            Value::Map(entries) => {
                let entries = entries.iter();
                let words = entries.map(|(key, node)| format!("{}={}", key.value, shape(node)));
                format!("{{{}}}", words.collect::<Vec<_>>().join(" "))
            }
        }
    }

    #[test]
    fn mappings_merge_and_everything_else_is_replaced() {
        let base = yaml("lock: { backend: redis, ttl: 2s }\nlist: [1, 2]\nrest: x\n");
        let over = yaml("lock: { ttl: 9s }\nlist: [3]\nnew: { a: 1 }\n");
        assert_eq!(
            shape(&overlay(&base, &over)),
            "{lock={backend=redis ttl=9s} list=[\"3\"] rest=x new={a=1}}"
        );
    }

    #[test]
    fn what_is_laid_over_keeps_its_place() {
        let base = yaml("lock: { ttl: 2s }\n");
        let over = yaml("\n\nlock: { ttl: 9s }\n");
        let merged = overlay(&base, &over);
        let Value::Map(fields) = &merged.value else {
            panic!("a mapping");
        };
        let Value::Map(lock) = &fields[0].1.value else {
            panic!("a mapping");
        };
        assert_eq!(lock[0].1.place.line, 3);
    }
}
