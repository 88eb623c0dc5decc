use super::{At, Node, Place, Report};

/// The fields of one mapping, taken one by one. What nobody asked for is an
/// unknown key, and the names that were asked for are what it is compared with.
pub struct Fields<'a> {
    what: &'a str,
    place: Place,
    entries: &'a [(At<String>, Node)],
    asked: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// `what` names the mapping in complaints: "a worker", "the scenario".
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

    /// Where the name of a field stands, if it is there.
    pub fn place_of(&self, name: &str) -> Option<Place> {
        let entry = self.entries.iter().find(|(key, _)| key.value == name);
        entry.map(|(key, _)| key.place)
    }

    pub fn required(&mut self, name: &'static str, report: &mut Report) -> Option<&'a Node> {
        self.required_at(name, self.place, report)
    }

    /// As [`Fields::required`], where `place` is what has to have it.
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

    /// The optional field `name`, converted by `read`; a missing one is `None`,
    /// and so is one that `read` complained about.
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
