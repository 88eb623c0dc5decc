use super::*;

/// One event in words. A story tells it twice: in symbols, which are the same in every
/// good run, and with the real tokens, owners and times.
pub(super) struct Scene {
    pub kind: StepKind,
    /// Each part in symbols and in real words.
    parts: Vec<(Symbol, String)>,
}

enum Symbol {
    Words(String),
    /// A token, shown as t1, t2 … in the order of the story's tokens.
    Token(FencingToken),
}

/// A writer, as well as the record knows it.
#[derive(Clone, Copy)]
pub(super) struct Who<'a> {
    pub worker: Option<&'a str>,
    pub owner: Option<&'a str>,
}

impl Scene {
    pub fn new(kind: StepKind) -> Scene {
        let parts = Vec::new();
        Scene { kind, parts }
    }

    /// Adds words that are the same in symbols and in real words.
    pub fn say(self, words: impl Into<String>) -> Scene {
        let words = words.into();
        self.each(words.clone(), words)
    }

    pub fn each(mut self, symbolic: impl Into<String>, concrete: impl Into<String>) -> Scene {
        let symbol = Symbol::Words(symbolic.into());
        self.parts.push((symbol, concrete.into()));
        self
    }

    /// Adds a token in symbols, and these real words.
    pub fn token_as(mut self, token: FencingToken, concrete: impl Into<String>) -> Scene {
        self.parts.push((Symbol::Token(token), concrete.into()));
        self
    }

    pub fn token(self, token: Option<FencingToken>) -> Scene {
        match token {
            Some(token) => self.token_as(token, format!("token {token}")),
            None => self.say("its token"),
        }
    }

    /// Adds a writer. An owner id is random, so only the real words may name it.
    pub fn who(self, who: Who) -> Scene {
        match (who.worker, who.owner) {
            (Some(worker), _) => self.say(worker),
            (None, Some(owner)) => self.each("an unknown writer", format!("owner {owner}")),
            (None, None) => self.say("an unknown writer"),
        }
    }

    pub fn write(self, who: Who, token: Option<FencingToken>) -> Scene {
        let write = self.who(who).say("'s write");
        match token {
            Some(_) => write.say(" with ").token(token),
            None => write,
        }
    }

    pub fn position(self, position: u64) -> Scene {
        self.each("", format!(" at position {position}"))
    }

    pub fn tokens(&self) -> impl Iterator<Item = FencingToken> {
        self.parts.iter().filter_map(|(symbol, _)| match symbol {
            Symbol::Token(token) => Some(*token),
            Symbol::Words(_) => None,
        })
    }

    /// Returns the symbolic words. `tokens` are those of the whole story, in order.
    pub fn symbolic(&self, tokens: &[FencingToken]) -> String {
        let parts = self.parts.iter().map(|(symbol, _)| match symbol {
            Symbol::Words(words) => words.clone(),
            Symbol::Token(token) => {
                format!("t{}", tokens.partition_point(|other| other < token) + 1)
            }
        });
        parts.collect()
    }

    pub fn concrete(&self) -> String {
        self.parts.iter().map(|(_, words)| words.as_str()).collect()
    }
}
