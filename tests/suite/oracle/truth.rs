//! The truth of a world, which no record shows in full.

use super::defect::Defect;

#[derive(Default, Debug)]
pub struct Truth {
    pub grants: Vec<Grant>,
    /// What workers said of their holds, beside when it really ended.
    pub claims: Vec<Claim>,
    pub planted: Vec<Planted>,
    /// From here on somebody waits for ever.
    pub stuck_from_ns: Option<u64>,
    /// Proven faults that take promises away: the service, and from when on.
    pub excuses: Vec<(usize, u64)>,
    /// Writes as they arrived at the resource.
    pub decisions: Vec<Decision>,
    /// The order in which askers arrived in each queue, and were granted it.
    pub arrivals: Vec<Arrival>,
}

/// A grant as the server itself knows it.
#[derive(Clone, Debug)]
pub struct Grant {
    pub service: usize,
    pub key: usize,
    pub owner: String,
    pub token: u64,
    pub from_ns: u64,
    pub to_ns: u64,
    pub end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It lasts to the end of the world.
    None,
    Released,
    Expired,
    /// Another's release deleted it.
    FreedByAnother,
    /// Granted to somebody else while it lasted.
    Overwritten,
    /// The server lost its data.
    Forgotten,
}

/// A worker said `acquired`.
#[derive(Clone, Debug)]
pub struct Claim {
    pub owner: String,
    pub at_ns: u64,
}

/// One moment at which the defect struck.
#[derive(Clone, Debug)]
pub struct Planted {
    pub defect: Defect,
    pub at_ns: u64,
    /// The hold that it is about, by its owner.
    pub owner: String,
    /// The other hold, where there are two.
    pub other: String,
    /// The log position that it is about; 0 where there is none.
    pub row: u64,
}

/// A write that the resource decided on.
#[derive(Clone, Debug)]
pub struct Decision {
    pub key: usize,
    pub body: String,
    pub accepted: bool,
}

#[derive(Clone, Debug)]
pub struct Arrival {
    pub service: usize,
    pub key: usize,
    pub owner: String,
    pub granted_ns: Option<u64>,
    pub withdrawn: bool,
}

impl Truth {
    pub fn plant(&mut self, defect: Defect, at_ns: u64, owner: &str, other: &str, row: u64) {
        self.planted.push(Planted {
            defect,
            at_ns,
            owner: owner.to_owned(),
            other: other.to_owned(),
            row,
        });
    }

    pub fn grant_of(&self, owner: &str) -> Option<&Grant> {
        self.grants.iter().rev().find(|grant| grant.owner == owner)
    }

    pub fn end(&mut self, owner: &str, at_ns: u64, end: End) {
        let running = |grant: &&mut Grant| grant.owner == owner && grant.end == End::None;
        if let Some(grant) = self.grants.iter_mut().rev().find(running) {
            grant.to_ns = at_ns;
            grant.end = end;
        }
    }
}
