use super::*;
use std::collections::BTreeMap;

/// The settings of the worker protocol begin so.
const OF_THE_PROTOCOL: &str = "FENCEPOST_";

/// What every worker is started from and with, as far as it is not this program.
#[derive(Default)]
pub struct DraftOwnWorker {
    pub image: Option<At<String>>,
    pub command: Vec<String>,
    pub env: BTreeMap<String, String>,
}

impl DraftOwnWorker {
    /// Returns whether the workers are this program after all.
    pub fn is_ours(&self) -> bool {
        self.image.is_none() && self.command.is_empty()
    }
}

/// Reads `worker: { image: examples/redis-py-worker, env: { RETRIES: 3 } }`.
pub fn read(node: &Node, report: &mut Report) -> Option<DraftOwnWorker> {
    let mut fields = Fields::of(node, "worker", report)?;
    let image = fields.read("image", report, |node, report| {
        let what = "a folder with a Dockerfile, or the name of an image";
        node.text(what, report)
    });
    let command = fields.read("command", report, command);
    let env = fields.read("env", report, env);
    let is_empty = ["image", "command", "env"]
        .iter()
        .all(|field| fields.place_of(field).is_none());
    fields.finish(report);
    if is_empty {
        let message = "`worker` says nothing; give it `image`, `command` or `env`";
        report.add(node.place, message);
    }
    Some(DraftOwnWorker {
        image,
        command: command.unwrap_or_default(),
        env: env.unwrap_or_default(),
    })
}

fn command(node: &Node, report: &mut Report) -> Option<Vec<String>> {
    let items = node.list("the words of a command", report)?;
    if items.is_empty() {
        report.add(node.place, "a command has at least one word");
    }
    let words = items.iter().filter_map(|item| item.text("a word", report));
    Some(words.map(|word| word.value).collect())
}

fn env(node: &Node, report: &mut Report) -> Option<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for (name, value) in node.map("variables with their values", report)? {
        let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
        if !(name.value.starts_with(begins) && name.value.chars().all(letters)) {
            let message = format!("`{}` is no name of a variable", name.value);
            report.add(name.place, message);
        } else if name.value.starts_with(OF_THE_PROTOCOL) {
            let message = format!(
                "`{}` is a setting of the task; variables of your own begin otherwise",
                name.value
            );
            report.add(name.place, message);
        }
        let value = value.text("a value", report);
        all.extend(value.map(|value| (name.value.clone(), value.value)));
    }
    Some(all)
}

pub fn schema() -> serde_json::Value {
    let variable = "^[A-Za-z_][A-Za-z0-9_]*$";
    let value = json!({ "type": ["string", "number", "boolean"] });
    json!({
        "type": "object",
        "minProperties": 1,
        "additionalProperties": false,
        "properties": {
            "image": { "type": "string" },
            "command": { "type": "array", "minItems": 1, "items": value },
            "env": {
                "type": "object",
                "propertyNames": { "pattern": variable },
                "additionalProperties": value,
            },
        }
    })
}
