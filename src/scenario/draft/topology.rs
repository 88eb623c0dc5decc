use super::*;
use crate::model::{Login, ServerPlace};
use crate::scenario::values::number;
use crate::yaml::Place;

/// The servers of a scenario: a topology by its name, or servers that are there already.
#[derive(Clone, Debug)]
pub enum DraftTopology {
    Named(At<String>),
    Attached(DraftAttach),
}

#[derive(Clone, Debug)]
pub struct DraftAttach {
    pub place: Place,
    pub servers: Vec<(At<String>, DraftServer)>,
    pub allow_faults_on: Vec<At<String>>,
    pub allow_settings_on: Vec<At<String>>,
}

#[derive(Clone, Debug)]
pub struct DraftServer {
    /// The port of a Compose service may be left out.
    pub place: DraftPlace,
    pub login: Option<At<Login>>,
    pub database: Option<At<String>>,
}

#[derive(Clone, Debug)]
pub enum DraftPlace {
    Address(ServerPlace),
    Compose {
        project: String,
        service: String,
        port: Option<u16>,
    },
}

impl DraftTopology {
    pub fn form() -> impl Form<DraftTopology> {
        (read, schema)
    }
}

fn read(node: &Node, report: &mut Report) -> Option<DraftTopology> {
    if !matches!(node.value, Value::Map(_)) {
        let what = "the name of a topology, or `{ attach: … }`";
        return Some(DraftTopology::Named(node.text(what, report)?));
    }
    let mut fields = Fields::of(node, "topology", report)?;
    let attach = fields.required("attach", report);
    let names = |node: &Node, report: &mut Report| {
        let names = node.list("names of attached servers", report)?;
        let name = |node: &Node, report: &mut Report| node.text("a name", report);
        Some(each_once(names, report, name))
    };
    let allow_faults_on = fields.read("allow_faults_on", report, names);
    let allow_settings_on = fields.read("allow_settings_on", report, names);
    fields.finish(report);
    let attach = attach?;
    let servers = read_named(attach, "the servers by name", named_server, report);
    Some(DraftTopology::Attached(DraftAttach {
        place: attach.place,
        servers,
        allow_faults_on: allow_faults_on.unwrap_or_default(),
        allow_settings_on: allow_settings_on.unwrap_or_default(),
    }))
}

fn named_server(
    name: &At<String>,
    node: &Node,
    report: &mut Report,
) -> Option<(At<String>, DraftServer)> {
    let server = match node.value {
        Value::Map(_) => server(name, node, report),
        _ => address(node, report).map(|place| DraftServer {
            place,
            login: None,
            database: None,
        }),
    };
    Some((name.clone(), server?))
}

/// Reads `{ compose: shop/redis, port: 6379, login: "me:${PASSWORD}", database: shop }`.
fn server(name: &At<String>, node: &Node, report: &mut Report) -> Option<DraftServer> {
    let what = format!("the attached server `{}`", name.value);
    let mut fields = Fields::of(node, &what, report)?;
    let address = fields.read("address", report, address);
    let compose = fields.read("compose", report, compose);
    let port = fields.read("port", report, |node, report| {
        let port = number(node, "port", 1..=65535, report)?;
        Some(At::new(port.place, port.value as u16))
    });
    let login = fields.read("login", report, login);
    let database = fields.read("database", report, |node, report| {
        node.text("the name of a database", report)
    });
    let places = ["address", "compose"].map(|field| fields.place_of(field));
    fields.finish(report);
    let place = match (places, address, compose) {
        ([Some(_), Some(second)], ..) => {
            report.add(
                second,
                format!("{what} has `address` or `compose`, and not both"),
            );
            return None;
        }
        ([None, None], ..) => {
            report.add(node.place, format!("{what} needs `address` or `compose`"));
            return None;
        }
        (_, Some(address), _) => {
            if let Some(port) = &port {
                report.add(
                    port.place,
                    "`port` belongs to `compose`; an address has its own",
                );
            }
            address
        }
        (_, None, compose) => {
            let (project, service) = compose?;
            let port = port.map(|port| port.value);
            DraftPlace::Compose {
                project,
                service,
                port,
            }
        }
    };
    Some(DraftServer {
        place,
        login,
        database,
    })
}

fn address(node: &Node, report: &mut Report) -> Option<DraftPlace> {
    let text = node.text(
        "an address, HOST:PORT, or `{ compose: PROJECT/SERVICE }`",
        report,
    )?;
    let place = ServerPlace::parse_address(&text.value);
    if place.is_none() {
        // A password may stand in it.
        let shown = crate::model::without_password(&text.value);
        let message = format!(
            "`{shown}` is not an address; write HOST:PORT, a user and a password as `login: \"USER:${{VARIABLE}}\"`"
        );
        report.add(text.place, message);
    }
    place.map(DraftPlace::Address)
}

fn compose(node: &Node, report: &mut Report) -> Option<(String, String)> {
    let text = node.text("PROJECT/SERVICE", report)?;
    let parts = text.value.split_once('/');
    let is_name = |name: &str| {
        let letters = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !name.is_empty() && name.chars().all(letters)
    };
    match parts.filter(|(project, service)| is_name(project) && is_name(service)) {
        Some((project, service)) => Some((project.to_owned(), service.to_owned())),
        None => {
            let message = format!("`{}` is not PROJECT/SERVICE", text.value);
            report.add(text.place, message);
            None
        }
    }
}

fn login(node: &Node, report: &mut Report) -> Option<At<Login>> {
    let text = node.text("USER:${VARIABLE}", report)?;
    let login = Login::parse(&text.value);
    if login.is_none() {
        let message = "a login is `USER`, `USER:${VARIABLE}` or `:${VARIABLE}`, where the variable has the password; results keep this file, so the password itself must not stand in it";
        report.add(text.place, message);
    }
    login.map(|login| At::new(text.place, login))
}

fn schema() -> serde_json::Value {
    let address = json!({ "type": "string", "pattern": "^.+:[0-9]+$" });
    let names = json!({ "type": "array", "items": to("name") });
    let server = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "address": address,
            "compose": { "type": "string", "pattern": "^[^/]+/[^/]+$" },
            "port": { "type": "integer", "minimum": 1, "maximum": 65535 },
            "login": { "type": "string" },
            "database": { "type": "string" },
        }
    });
    json!({ "oneOf": [
        { "type": "string" },
        {
            "type": "object",
            "additionalProperties": false,
            "required": ["attach"],
            "properties": {
                "attach": {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": { "oneOf": [address, server] }
                },
                "allow_faults_on": names,
                "allow_settings_on": names,
            }
        }
    ] })
}
