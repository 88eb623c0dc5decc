//! Elections and the log, as in etcd: terms, trial votes, commits by majority, and a leader that
//! steps down when it hears from no majority.

#[cfg(test)]
mod tests;

use crate::peer::*;
use std::collections::BTreeMap;

/// An election begins after one to two times this without a leader.
pub const ELECTION_TICKS: u32 = 10;
/// The most entries in one message.
const MOST_ENTRIES: usize = 256;

/// What a member has on disk.
#[derive(Default)]
pub struct Disk {
    pub term: u64,
    voted_for: Option<u64>,
    log: Vec<Entry>,
    commit: u64,
    /// The entries before this one were carried out.
    pub applied: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Follower,
    /// It asks who would vote for it.
    Trial,
    Candidate,
    Leader,
}

/// A member of a cluster; it neither knows a clock nor a network.
pub struct Raft {
    pub id: u64,
    pub disk: Disk,
    pub role: Role,
    pub leader: Option<u64>,
    others: BTreeMap<u64, Progress>,
    votes: BTreeMap<u64, bool>,
    /// Ticks since the leader was heard of, or since the leader looked for its followers.
    elapsed: u32,
    election_at: u32,
    random: fastrand::Rng,
    /// What has to be sent, and to whom.
    pub outbox: Vec<(u64, PeerMessage)>,
}

/// How far a follower is, as its leader knows.
#[derive(Default)]
struct Progress {
    next: u64,
    matched: u64,
    /// It was heard of since the leader looked last.
    is_active: bool,
}

impl Raft {
    pub fn new(id: u64, others: impl IntoIterator<Item = u64>) -> Raft {
        let others = others.into_iter().map(|id| (id, Progress::default()));
        Raft {
            id,
            disk: Disk::default(),
            role: Role::Follower,
            leader: None,
            others: others.collect(),
            votes: BTreeMap::new(),
            elapsed: 0,
            election_at: ELECTION_TICKS,
            random: fastrand::Rng::with_seed(0),
            outbox: Vec::new(),
        }
    }

    /// Begins with what is on disk.
    pub fn start(&mut self, seed: u64) {
        self.random = fastrand::Rng::with_seed(seed);
        self.outbox.clear();
        self.follow(self.disk.term, None);
        if self.others.is_empty() {
            // Nobody else could lead.
            self.elapsed = 2 * ELECTION_TICKS;
        }
    }

    pub fn tick(&mut self) {
        self.elapsed += 1;
        if self.role != Role::Leader {
            if self.elapsed >= self.election_at {
                self.campaign(true);
            }
            return;
        }
        if self.elapsed >= ELECTION_TICKS {
            self.elapsed = 0;
            let active = self.others.values().filter(|it| it.is_active).count();
            if active + 1 < self.majority() {
                return self.follow(self.disk.term, None);
            }
            self.others.values_mut().for_each(|it| it.is_active = false);
        }
        self.append_everywhere();
    }

    /// Puts a command into the log, or sends it to the leader, if there is one.
    pub fn propose(&mut self, command: Command) {
        match self.leader {
            Some(leader) if leader == self.id => self.add(command),
            Some(leader) => self.send(leader, self.disk.term, Word::Propose(command)),
            None => {}
        }
    }

    pub fn receive(&mut self, message: PeerMessage) {
        let PeerMessage { from, term, word } = message;
        let Some(word) = word.filter(|_| self.others.contains_key(&from)) else {
            return;
        };
        if term > self.disk.term && !self.learns_of_term(from, term, &word) {
            return;
        }
        if term < self.disk.term {
            // It learns of the term from the answer.
            let word = match word {
                Word::Append(_) => Word::Appended(Appended::default()),
                Word::Elect(Elect { is_trial: true, .. }) => Word::Vote(Vote {
                    is_trial: true,
                    is_yes: false,
                }),
                Word::Propose(command) => return self.propose(command),
                _ => return,
            };
            return self.send(from, self.disk.term, word);
        }
        match word {
            Word::Elect(elect) => self.asked_for_vote(from, term, &elect),
            Word::Vote(vote) => self.counted(from, &vote),
            Word::Append(append) => self.append(from, append),
            Word::Appended(appended) => self.appended(from, &appended),
            Word::Propose(command) => self.propose(command),
            // Leases are nothing that Raft knows of.
            Word::AskLease(_) | Word::LeaseIs(_) => {}
        }
    }

    /// Takes over a higher term, unless the message does not need that; returns whether the
    /// message counts.
    fn learns_of_term(&mut self, from: u64, term: u64, word: &Word) -> bool {
        let leader = match word {
            // A leader that was heard of a moment ago is not deposed.
            Word::Elect(_) if self.leader.is_some() && self.elapsed < ELECTION_TICKS => {
                return false;
            }
            Word::Elect(Elect { is_trial: true, .. }) => return true,
            Word::Vote(Vote {
                is_trial: true,
                is_yes: true,
            }) => return true,
            Word::Append(_) => Some(from),
            _ => None,
        };
        self.follow(term, leader);
        true
    }

    fn follow(&mut self, term: u64, leader: Option<u64>) {
        if term > self.disk.term {
            self.disk.term = term;
            self.disk.voted_for = None;
        }
        self.role = Role::Follower;
        self.leader = leader;
        self.votes.clear();
        self.elapsed = 0;
        self.election_at = ELECTION_TICKS + self.random.u32(..ELECTION_TICKS);
    }

    fn campaign(&mut self, is_trial: bool) {
        self.follow(self.disk.term + u64::from(!is_trial), None);
        let mut term = self.disk.term;
        if is_trial {
            self.role = Role::Trial;
            term += 1;
        } else {
            self.role = Role::Candidate;
            self.disk.voted_for = Some(self.id);
        }
        let elect = Elect {
            is_trial,
            last_index: self.last_index(),
            last_term: self.term_at(self.last_index()),
        };
        for to in self.other_ids() {
            self.send(to, term, Word::Elect(elect.clone()));
        }
        let is_yes = true;
        self.counted(self.id, &Vote { is_trial, is_yes });
    }

    fn asked_for_vote(&mut self, from: u64, term: u64, elect: &Elect) {
        let is_free = match self.disk.voted_for {
            Some(voted_for) => voted_for == from,
            None => self.leader.is_none(),
        };
        let may_vote = is_free || elect.is_trial && term > self.disk.term;
        let own = (self.term_at(self.last_index()), self.last_index());
        let is_yes = may_vote && (elect.last_term, elect.last_index) >= own;
        if is_yes && !elect.is_trial {
            self.elapsed = 0;
            self.disk.voted_for = Some(from);
        }
        let is_trial = elect.is_trial;
        let term = if is_yes { term } else { self.disk.term };
        self.send(from, term, Word::Vote(Vote { is_trial, is_yes }));
    }

    fn counted(&mut self, from: u64, vote: &Vote) {
        let asks = if vote.is_trial {
            Role::Trial
        } else {
            Role::Candidate
        };
        if self.role != asks {
            return;
        }
        self.votes.insert(from, vote.is_yes);
        let for_it = self.votes.values().filter(|is_yes| **is_yes).count();
        if for_it >= self.majority() {
            match vote.is_trial {
                true => self.campaign(false),
                false => self.lead(),
            }
        } else if self.votes.len() - for_it >= self.majority() {
            self.follow(self.disk.term, None);
        }
    }

    fn lead(&mut self) {
        self.role = Role::Leader;
        self.leader = Some(self.id);
        self.elapsed = 0;
        let next = self.last_index() + 1;
        for progress in self.others.values_mut() {
            *progress = Progress {
                next,
                ..Progress::default()
            };
        }
        // Only with an entry of its own term it knows what was committed before.
        self.add(Command::default());
    }

    fn add(&mut self, command: Command) {
        self.disk.log.push(Entry {
            term: self.disk.term,
            command: Some(command),
        });
        self.append_everywhere();
        self.commit();
    }

    fn append_everywhere(&mut self) {
        for to in self.other_ids() {
            self.send_append(to);
        }
    }

    /// Sends everything that a follower has not been sent yet, and at least a heartbeat.
    fn send_append(&mut self, to: u64) {
        let Some(progress) = self.others.get_mut(&to) else {
            return;
        };
        let after_index = progress.next - 1;
        let log = self.disk.log.iter().skip(after_index as usize);
        let entries: Vec<Entry> = log.take(MOST_ENTRIES).cloned().collect();
        progress.next += entries.len() as u64;
        let append = Append {
            after_index,
            after_term: self.term_at(after_index),
            entries,
            commit: self.disk.commit,
        };
        self.send(to, self.disk.term, Word::Append(append));
    }

    fn append(&mut self, from: u64, append: Append) {
        if self.role != Role::Follower || self.leader != Some(from) {
            self.follow(self.disk.term, Some(from));
        }
        self.elapsed = 0;
        let Append {
            after_index,
            after_term,
            entries,
            commit,
        } = append;
        let goes_on = after_index <= self.last_index() && self.term_at(after_index) == after_term;
        if !goes_on {
            let appended = Appended {
                is_refused: true,
                index: self.last_index().min(after_index.saturating_sub(1)),
            };
            return self.send(from, self.disk.term, Word::Appended(appended));
        }
        let index = after_index + entries.len() as u64;
        for (entry, at) in entries.into_iter().zip(after_index + 1..) {
            if at <= self.last_index() && self.term_at(at) != entry.term {
                self.disk.log.truncate(at as usize - 1);
            }
            if at > self.last_index() {
                self.disk.log.push(entry);
            }
        }
        self.disk.commit = self.disk.commit.max(commit.min(index));
        let is_refused = false;
        let appended = Appended { is_refused, index };
        self.send(from, self.disk.term, Word::Appended(appended));
    }

    fn appended(&mut self, from: u64, appended: &Appended) {
        let last = self.last_index();
        let Some(progress) = self
            .others
            .get_mut(&from)
            .filter(|_| self.role == Role::Leader)
        else {
            return;
        };
        progress.is_active = true;
        if appended.is_refused {
            // It may have lost what it had.
            progress.matched = progress.matched.min(appended.index);
            progress.next = progress.next.min(appended.index + 1);
            return self.send_append(from);
        }
        progress.matched = progress.matched.max(appended.index);
        progress.next = progress.next.max(progress.matched + 1);
        if progress.next <= last {
            self.send_append(from);
        }
        self.commit();
    }

    /// Commits what a majority has, and tells the followers.
    fn commit(&mut self) {
        let own = self.last_index();
        let mut matched: Vec<u64> = self.others.values().map(|it| it.matched).collect();
        matched.push(own);
        matched.sort_unstable_by(|one, other| other.cmp(one));
        let index = matched[self.majority() - 1];
        if index > self.disk.commit && self.term_at(index) == self.disk.term {
            self.disk.commit = index;
            self.append_everywhere();
        }
    }

    /// Takes the next entry that was committed and not carried out yet.
    pub fn next_committed(&mut self) -> Option<Command> {
        if self.disk.applied >= self.disk.commit {
            return None;
        }
        let entry = self.disk.log.get(self.disk.applied as usize)?;
        self.disk.applied += 1;
        Some(entry.command.clone().unwrap_or_default())
    }

    pub fn send(&mut self, to: u64, term: u64, word: Word) {
        let (from, word) = (self.id, Some(word));
        self.outbox.push((to, PeerMessage { from, term, word }));
    }

    pub fn last_index(&self) -> u64 {
        self.disk.log.len() as u64
    }

    fn term_at(&self, index: u64) -> u64 {
        let before = (index as usize).checked_sub(1);
        let entry = before.and_then(|before| self.disk.log.get(before));
        entry.map_or(0, |entry| entry.term)
    }

    fn other_ids(&self) -> Vec<u64> {
        self.others.keys().copied().collect()
    }

    fn majority(&self) -> usize {
        self.others.len().div_ceil(2) + 1
    }
}
