use super::{At, Node, Place, Report};

/// The fields of one mapping, taken one by one. A key that was not asked for is unknown, and its
/// hint is the nearest of the names that were asked for.
pub struct Fields<'a> {
    what: &'a str,
    place: Place,
    entries: &'a [(At<String>, Node)],
    asked: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// Reads a mapping; `what` names it in complaints: "a worker", "the scenario".
    pub fn of(node: &'a Node, what: &'a str, report: &mut Report) -> Option<Fields<'a>> {
        Some(Fields {
            what,
            place: node.place,
            entries: node.map(what, report)?,
            asked: Vec::new(),
        })
    }

    pub fn optional(&mut self, name: &'static str) -> Option<&'a Node> {
        self.asked.push(name);
        let entry = self.entries.iter().find(|(key, _)| key.value == name);
        entry.map(|(_, node)| node)
    }

    /// Marks fields as known that are read elsewhere.
    pub fn know(&mut self, names: &[&'static str]) {
        self.asked.extend(names);
    }

    pub fn place(&self) -> Place {
        self.place
    }

    pub fn place_of(&self, name: &str) -> Option<Place> {
        let entry = self.entries.iter().find(|(key, _)| key.value == name);
        entry.map(|(key, _)| key.place)
    }

    pub fn required(&mut self, name: &'static str, report: &mut Report) -> Option<&'a Node> {
        self.required_at(name, self.place, report)
    }

    /// Does the same as [`Fields::required`], and complains at `place`, which has to have the
    /// field.
    pub fn required_at(
        &mut self,
        name: &'static str,
        place: Place,
        report: &mut Report,
    ) -> Option<&'a Node> {
        let node = self.optional(name);
        if node.is_none() {
            report.add(place, format!("{} needs `{name}`", self.what));
        }
        node
    }

    /// Returns the optional field `name`, converted by `read`; None if it is missing, or if `read`
    /// complained about it.
    pub fn read<T>(
        &mut self,
        name: &'static str,
        report: &mut Report,
        read: impl FnOnce(&'a Node, &mut Report) -> Option<T>,
    ) -> Option<T> {
        let node = self.optional(name)?;
        read(node, report)
    }

    /// Complains about every key that was never asked for.
    pub fn finish(self, report: &mut Report) {
        for (key, _) in self.entries {
            if !self.asked.contains(&key.value.as_str()) {
                report.unknown(
                    key.place,
                    &format!("key in {}", self.what),
                    &key.value,
                    self.asked.iter().copied(),
                );
            }
        }
    }
}
