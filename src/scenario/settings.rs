use super::draft::{CaseFields, is_of_the_other};
use super::*;
use crate::yaml::{Place, Value, overlay, suggestion};
use std::fmt;
use std::str::FromStr;

/// The overrides of one command, in the place of what file and case say: `lock.ttl=5s`.
#[derive(Clone, Debug, Default)]
pub struct Settings(pub Vec<Setting>);

#[derive(Clone, Debug)]
pub struct Setting {
    text: String,
    path: Vec<String>,
    value: Node,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Setting, String> {
        let (path, value) = text
            .split_once('=')
            .ok_or("write FIELD=VALUE, such as lock.ttl=5s")?;
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        if !CaseFields::NAMES.contains(&path[0].as_str()) {
            let hint = suggestion(&path[0], &CaseFields::NAMES);
            return Err(format!("no case has a field `{}`; {hint}", path[0]));
        }
        if path.iter().any(String::is_empty) {
            return Err("a name between two dots is missing".to_owned());
        }
        let value = yaml::parse(Path::new("the value"), value).map_err(|e| e.to_string())?;
        Ok(Setting {
            text: text.to_owned(),
            path,
            value,
        })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Settings {
    /// Returns them as one tree to lay over a case. The places in it are not lines of the file: see
    /// [`Settings::announce`].
    pub fn tree(&self) -> Node {
        let empty = Node {
            place: Place::default(),
            value: Value::Map(Vec::new()),
        };
        let settings = self.0.iter().zip(1..);
        settings.fold(empty, |tree, (setting, number)| {
            let mut laid_over = setting.tree();
            laid_over.move_outside(number);
            overlay(&tree, &laid_over)
        })
    }

    /// Returns whether one of them has a meaning for the other kind of scenarios only.
    pub fn are_of_the_other_kind(&self, is_load: bool) -> bool {
        let mut settings = self.0.iter();
        settings.any(|setting| is_of_the_other(&setting.path[0], is_load))
    }

    pub fn words(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }

    /// Lets complaints about a setting name it.
    pub(super) fn announce(&self, report: &mut Report) {
        let names = self.0.iter().map(|setting| format!("--set {setting}"));
        report.name_outside(names.collect());
    }
}

impl Setting {
    /// Returns the value below the names that lead to it.
    fn tree(&self) -> Node {
        let place = Place::default();
        self.path
            .iter()
            .rev()
            .fold(self.value.clone(), |inner, name| {
                let value = name.clone();
                Node {
                    place,
                    value: Value::Map(vec![(At { place, value }, inner)]),
                }
            })
    }
}
