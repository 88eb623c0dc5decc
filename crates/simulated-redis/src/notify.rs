//! Which changes of keys are published, as `notify-keyspace-events` says.

/// The class of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Generic,
    Text,
    List,
    Hash,
    Expired,
}

impl Class {
    const ALL: [Class; 5] = [
        Class::Generic,
        Class::Text,
        Class::List,
        Class::Hash,
        Class::Expired,
    ];

    pub(crate) fn of_letter(letter: char) -> Option<Class> {
        Class::ALL
            .into_iter()
            .find(|class| class.letter() == letter)
    }

    pub(crate) fn letter(self) -> char {
        match self {
            Class::Generic => 'g',
            Class::Text => '$',
            Class::List => 'l',
            Class::Hash => 'h',
            Class::Expired => 'x',
        }
    }
}

/// Every class that `A` stands for. A simulated server has no changes of the others.
const ALL: &str = "g$lshzxetd";
const ORDER: &str = "g$lshzxetd";
const BESIDE: &str = "KEmn";

#[derive(Clone, Debug, Default)]
pub(crate) struct Notify {
    letters: String,
}

impl Notify {
    pub(crate) fn of(text: &str) -> Option<Notify> {
        let is_known = |c: char| c == 'A' || ORDER.contains(c) || BESIDE.contains(c);
        text.chars().all(is_known).then(|| Notify {
            letters: text.replace('A', ALL),
        })
    }

    pub(crate) fn on_key(&self, class: Class) -> bool {
        self.letters.contains('K') && self.letters.contains(class.letter())
    }

    pub(crate) fn on_event(&self, class: Class) -> bool {
        self.letters.contains('E') && self.letters.contains(class.letter())
    }

    /// The setting as the server shows it, in its own order.
    pub(crate) fn shown(&self) -> String {
        let is_set = |c: &char| self.letters.contains(*c);
        let is_all = ALL.chars().all(|c| is_set(&c));
        let classes = match is_all {
            true => "A".to_owned(),
            false => ORDER.chars().filter(is_set).collect(),
        };
        let beside = BESIDE.chars().filter(is_set);
        classes.chars().chain(beside).collect()
    }
}
