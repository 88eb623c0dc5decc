//! Makes a case that shows a break as small as it can be: parts are taken away and values made
//! simpler, as long as the break stays.

use super::*;
use crate::model::parse_duration;

/// Simpler values, the simplest first.
const ROUND: [&str; 6] = ["1s", "2s", "3s", "5s", "10s", "20s"];

/// Returns the smallest case that still shows it. `first` returns the first of some cases that
/// does; it is asked about `most` of them at most.
pub fn shrink(case: &Node, most: usize, mut first: impl FnMut(&[Node]) -> Option<usize>) -> Node {
    let mut smallest = case.clone();
    let (mut at, mut asked) = (0, 0);
    while asked < most {
        let mut all = candidates(&smallest);
        let count = all.len().max(1);
        // What was in vain before a success is tried again only after the rest.
        all.rotate_left(at % count);
        all.truncate(most - asked);
        if let Some(index) = first(&all) {
            asked += index + 1;
            at = (at + index) % count;
            smallest = all.swap_remove(index);
            continue;
        }
        // Only what cannot be taken away is put together.
        asked += all.len();
        let pairs = pairs_of_entries(&smallest);
        let mut all: Vec<Node> = pairs
            .filter_map(|(into, from)| joined(&smallest, into, from))
            .take(most.saturating_sub(asked))
            .collect();
        let Some(index) = first(&all) else {
            break;
        };
        asked += index + 1;
        smallest = all.swap_remove(index);
    }
    smallest
}

/// Returns everything that is one step simpler, large steps first. Each step makes a case smaller
/// by a measure that cannot fall for ever: its parts, then the length of its text.
pub fn candidates(case: &Node) -> Vec<Node> {
    let paths = case.paths();
    let without_workers = workers(case)
        .into_iter()
        .map(|name| without_worker(case, &name));
    let without_part = paths.iter().filter_map(|path| case.without(path));
    let simpler = paths.iter().flat_map(|path| {
        let text = case.at(path).and_then(Node::as_scalar).unwrap_or_default();
        let with = |value: String| {
            let mut tree = case.clone();
            *tree.at_mut(path)? = Node::scalar(value);
            Some(tree)
        };
        simpler(text).into_iter().filter_map(with)
    });
    // A timeline stays a list, as people write it.
    let inner = paths.iter().filter(|path| path.len() > 1);
    let alone = inner.filter_map(|path| match case.at(path)?.items() {
        [one] => {
            let mut tree = case.clone();
            *tree.at_mut(path)? = one.clone();
            Some(tree)
        }
        _ => None,
    });
    let all = without_workers.chain(without_part);
    all.chain(alone).chain(simpler).collect()
}

fn workers(case: &Node) -> Vec<String> {
    let workers = case.get("workers").map_or(&[][..], Node::entries);
    workers.iter().map(|(name, _)| name.value.clone()).collect()
}

fn pairs_of_entries(case: &Node) -> impl Iterator<Item = (usize, usize)> + use<> {
    let count = case.get("timeline").map_or(0, |it| it.items().len());
    let pairs = (0..count).flat_map(move |into| (0..count).map(move |from| (into, from)));
    pairs.filter(|(into, from)| into != from)
}

/// Does the steps of one entry with those of another, when that one begins, in the order of the
/// timeline.
fn joined(case: &Node, into: usize, from: usize) -> Option<Node> {
    let entry = |index: usize| [Turn::Key("timeline".into()), Turn::Item(index)];
    let steps = |index: usize| Some(case.at(&entry(index))?.get("do")?.one_or_more());
    let (first, second) = (into.min(from), into.max(from));
    let all = [steps(first)?, steps(second)?].concat();
    let mut tree = case.clone();
    tree.at_mut(&entry(into))?.set("do", Node::of_items(all));
    tree.without(&entry(from))
}

/// Takes a worker away, and the entries, steps and starts that name it.
fn without_worker(case: &Node, name: &str) -> Node {
    let mut tree = case.clone();
    if let Some(workers) = tree.get_mut("workers") {
        workers.remove(name);
    }
    let names_it = |node: &Node| {
        let words = node.as_scalar().unwrap_or_default();
        let mut words = words.split([' ', '.']);
        words.any(|word| word == name)
    };
    // From the back, so that the ways to what comes before stay true.
    for path in tree.paths().into_iter().rev() {
        let is_whole = match path.as_slice() {
            [Turn::Key(top), Turn::Item(_)] => top == "timeline",
            [Turn::Key(top), _, Turn::Key(field)] => top == "workers" && field == "start",
            [Turn::Key(top), _, Turn::Key(field), Turn::Item(_)] => {
                top == "timeline" && field == "do"
            }
            _ => false,
        };
        let Some(node) = tree.at(&path).filter(|_| is_whole) else {
            continue;
        };
        let own = node.entries().iter().any(|(_, inner)| names_it(inner));
        if (names_it(node) || own)
            && let Some(less) = tree.without(&path)
        {
            tree = less;
        }
    }
    tree
}

/// Returns simpler texts in the place of this one: rounder, shorter, the first of several.
fn simpler(text: &str) -> Vec<String> {
    if let Some((event, _)) = text.split_once('#') {
        return vec![event.to_owned()];
    }
    if let Some(long) = parse_duration(text) {
        let is_simpler = |round: &&&str| {
            let than = parse_duration(round).unwrap_or_default();
            (round.len(), than) < (text.len(), long)
        };
        return ROUND
            .iter()
            .filter(is_simpler)
            .map(|it| (*it).to_owned())
            .collect();
    }
    match text.parse::<u32>() {
        Ok(number) if number > 2 => vec!["2".to_owned(), (number - 1).to_string()],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(text: &str) -> Node {
        parse(Path::new("x.yml"), text).unwrap()
    }

    #[test]
    fn what_does_not_matter_goes_and_what_matters_stays() {
        let large = case(
            "workers: { a: { key: k, work: 1234ms, rounds: 4 }, b: { key: k, start: c.done }, c: { key: k } }
timeline:
  - { when: a.acquired#3, after: 17ms, do: [{ pause: a, for: 2345ms }, { kill: c }] }
  - { when: c.done, do: { wait: b.done } }
",
        );
        let shows = |case: &Node| {
            let text = crate::yaml::write(case);
            text.contains("pause: a") && text.contains("b:") && text.contains("when: a.acquired")
        };
        let small = shrink(&large, 1000, |all| all.iter().position(shows));
        let expected = "workers:\n  b: {}\ntimeline:\n  - { when: a.acquired, do: { pause: a } }\n";
        assert_eq!(crate::yaml::write(&small), expected);
    }

    #[test]
    fn steps_that_need_no_entry_of_their_own_go_to_another() {
        let apart = case(
            "timeline:
  - { when: a.done, do: { restart: x } }
  - { when: b.done, do: [{ restart: y }, { wait: 1s }] }
",
        );
        let shows = |case: &Node| {
            let text = crate::yaml::write(case);
            text.contains("restart: x") && text.contains("restart: y") && text.contains("b.done")
        };
        let small = shrink(&apart, 1000, |all| all.iter().position(shows));
        let small = crate::yaml::write(&small);
        let expected = "timeline:\n  - { when: b.done, do: [{ restart: x }, { restart: y }] }\n";
        assert_eq!(small, expected);
    }

    #[test]
    fn it_asks_no_more_often_than_it_may() {
        let mut asked = 0;
        let never = |all: &[Node]| {
            asked += all.len();
            None
        };
        let large = case("a: { b: 1, c: 2s, d: [1, 2, 3] }");
        assert_eq!(shrink(&large, 3, never), large);
        assert_eq!(asked, 3);
    }

    #[test]
    fn a_worker_goes_with_everything_that_names_it() {
        let two = case(
            "workers: { a: { key: k, start: b.done }, b: { key: k } }
timeline: [{ when: a.done, do: [{ pause: b }, { wait: 1s }] }, { when: b.done, do: { kill: a } }]",
        );
        let one = crate::yaml::write(&without_worker(&two, "b"));
        let expected =
            "workers:\n  a: { key: k }\ntimeline:\n  - { when: a.done, do: [{ wait: 1s }] }\n";
        assert_eq!(one, expected);
    }
}
