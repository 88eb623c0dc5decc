//! Changing a tree: for programs that write scenarios, and not only read them.

use super::{At, Node, Place, Value};

/// The way from the root of a tree to a value in it.
pub type Path = Vec<Turn>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    Key(String),
    Item(usize),
}

impl Node {
    pub fn scalar(text: impl Into<String>) -> Node {
        Node::anywhere(Value::Scalar(text.into()))
    }

    pub fn of_items(items: Vec<Node>) -> Node {
        Node::anywhere(Value::List(items))
    }

    pub fn mapping<K: Into<String>>(entries: impl IntoIterator<Item = (K, Node)>) -> Node {
        let entry = |(key, node): (K, Node)| (At::new(Place::default(), key.into()), node);
        Node::anywhere(Value::Map(entries.into_iter().map(entry).collect()))
    }

    fn anywhere(value: Value) -> Node {
        let place = Place::default();
        Node { place, value }
    }

    pub fn as_scalar(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(text) => Some(text),
            Value::List(_) | Value::Map(_) => None,
        }
    }

    /// Returns the entries of a list; none if it is something else.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            Value::Scalar(_) | Value::Map(_) => &[],
        }
    }

    /// Returns the entries of a mapping; none if it is something else.
    pub fn entries(&self) -> &[(At<String>, Node)] {
        match &self.value {
            Value::Map(entries) => entries,
            Value::Scalar(_) | Value::List(_) => &[],
        }
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        let mut entries = self.entries().iter();
        entries
            .find(|(known, _)| known.value == key)
            .map(|it| &it.1)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        let Value::Map(entries) = &mut self.value else {
            return None;
        };
        let mut entries = entries.iter_mut();
        let found = entries.find(|(known, _)| known.value == key);
        found.map(|(_, node)| node)
    }

    /// Gives a mapping this field, in place of the one that it has.
    pub fn set(&mut self, key: &str, node: Node) {
        if let Some(known) = self.get_mut(key) {
            *known = node;
        } else if let Value::Map(entries) = &mut self.value {
            entries.push((At::new(Place::default(), key.to_owned()), node));
        }
    }

    pub fn remove(&mut self, key: &str) -> Option<Node> {
        let Value::Map(entries) = &mut self.value else {
            return None;
        };
        let at = entries.iter().position(|(known, _)| known.value == key)?;
        Some(entries.remove(at).1)
    }

    /// Returns the ways to everything below, a whole before its parts.
    pub fn paths(&self) -> Vec<Path> {
        let mut all = Vec::new();
        self.add_paths(&mut Vec::new(), &mut all);
        all
    }

    fn add_paths(&self, here: &mut Path, all: &mut Vec<Path>) {
        let keys = self.entries().iter();
        let keys = keys.map(|(key, node)| (Turn::Key(key.value.clone()), node));
        let items = self.items().iter().enumerate();
        let items = items.map(|(index, node)| (Turn::Item(index), node));
        for (turn, node) in keys.chain(items) {
            here.push(turn);
            all.push(here.clone());
            node.add_paths(here, all);
            here.pop();
        }
    }

    pub fn at(&self, path: &[Turn]) -> Option<&Node> {
        path.iter().try_fold(self, |node, turn| match turn {
            Turn::Key(key) => node.get(key),
            Turn::Item(index) => node.items().get(*index),
        })
    }

    pub fn at_mut(&mut self, path: &[Turn]) -> Option<&mut Node> {
        path.iter().try_fold(self, |node, turn| match turn {
            Turn::Key(key) => node.get_mut(key),
            Turn::Item(index) => match &mut node.value {
                Value::List(items) => items.get_mut(*index),
                Value::Scalar(_) | Value::Map(_) => None,
            },
        })
    }

    /// Returns the tree without what is at the end of a path.
    pub fn without(&self, path: &[Turn]) -> Option<Node> {
        let (last, above) = path.split_last()?;
        let mut tree = self.clone();
        let parent = tree.at_mut(above)?;
        match last {
            Turn::Key(key) => drop(parent.remove(key)?),
            Turn::Item(index) => match &mut parent.value {
                Value::List(items) if *index < items.len() => drop(items.remove(*index)),
                Value::List(_) | Value::Scalar(_) | Value::Map(_) => return None,
            },
        }
        Some(tree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;

    #[test]
    fn parts_of_a_tree_are_found_changed_and_taken_away() {
        let text = "a: { b: 1, c: [x, y] }\n";
        let mut tree = parse(std::path::Path::new("x.yml"), text).unwrap();
        assert_eq!(tree.paths().len(), 5);
        let path = [Turn::Key("a".into()), Turn::Key("c".into()), Turn::Item(1)];
        assert_eq!(tree.at(&path).and_then(Node::as_scalar), Some("y"));
        let smaller = tree.without(&path).unwrap();
        assert_eq!(smaller.get("a").unwrap().get("c").unwrap().items().len(), 1);
        tree.get_mut("a").unwrap().set("b", Node::scalar("2"));
        let b = tree.at(&[path[0].clone(), Turn::Key("b".into())]);
        assert_eq!(b.and_then(Node::as_scalar), Some("2"));
        assert!(tree.remove("a").is_some() && tree.entries().is_empty());
    }
}
