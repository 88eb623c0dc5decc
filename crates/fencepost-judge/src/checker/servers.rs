//! The locks that the servers themselves held, as bystanders on them saw them.

use super::*;

/// A bystander sees an event within this time after it happened.
pub(super) const HEARD_WITHIN_NS: u64 = 1_000_000_000;

/// The time from a grant on one server to its end there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stay<'a> {
    pub node: &'a str,
    pub owner: Option<&'a str>,
    pub token: Option<FencingToken>,
    pub from_ns: u64,
    pub end: Option<(u64, StayEnd)>,
    /// The time at which a renewal re-created it after its end, if one did.
    pub recreated_ns: Option<u64>,
    /// It began while its server was losing its data, and may have come after that.
    may_outlive_loss: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StayEnd {
    Released,
    /// A lock of the key was released. The bystander did not know whose it was, and may
    /// have missed a grant before.
    SomebodyReleased,
    Expired,
    /// Somebody else was granted the key.
    Replaced,
    /// The server lost its data.
    Forgotten,
}

pub(super) struct Servers<'d, 'a> {
    /// In the order of their beginnings.
    by_key: HashMap<&'a str, Vec<Stay<'a>>>,
    /// The servers of each key's stays.
    nodes_by_key: HashMap<&'a str, BTreeSet<&'a str>>,
    /// The stays of each key and owner, in the order of their beginnings.
    by_owner: HashMap<(&'a str, &'a str), Vec<usize>>,
    /// Whether servers and workers use the same ids for holders.
    knows_owners: bool,
    /// The servers of each service.
    nodes: HashMap<&'a str, BTreeSet<&'a str>>,
    /// The times in which something may have been missed.
    disturbed: &'d [Span],
}

impl<'d, 'a> Servers<'d, 'a> {
    pub fn of(
        sound: &Sound<'a>,
        holds: &[Hold<'a>],
        episodes: &Episodes<'a>,
        disturbed: &'d [Span],
    ) -> Servers<'d, 'a> {
        let mut by_place: HashMap<(&str, &str), Vec<&'a LockEvent>> = HashMap::new();
        for &row in &sound.locks {
            if !sound.odd_nodes.contains(row.node.as_str()) {
                let place = (row.key.as_str(), row.node.as_str());
                by_place.entry(place).or_default().push(row);
            }
        }
        let mut by_key: HashMap<&str, Vec<Stay>> = HashMap::new();
        for ((key, node), rows) in by_place {
            let losses = losses(node, episodes);
            let stays = stays(&rows, &losses, disturbed);
            by_key.entry(key).or_default().extend(stays);
        }
        let mut by_owner: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
        for (key, stays) in &mut by_key {
            stays.sort_by_key(|stay| stay.from_ns);
            for (index, stay) in stays.iter().enumerate() {
                if let Some(owner) = stay.owner {
                    by_owner.entry((key, owner)).or_default().push(index);
                }
            }
        }
        let nodes_by_key = by_key.iter().map(|(key, stays)| {
            let nodes = stays.iter().map(|stay| stay.node);
            (*key, nodes.collect())
        });
        let knows = |hold: &Hold<'a>| {
            owner(hold).is_some_and(|owner| by_owner.contains_key(&(hold.key, owner)))
        };
        let mut servers = Servers {
            knows_owners: holds.iter().any(knows),
            nodes_by_key: nodes_by_key.collect(),
            by_key,
            by_owner,
            nodes: HashMap::new(),
            disturbed,
        };
        servers.assign(sound, holds);
        servers
    }

    /// Assigns servers to services, by the owners that they know.
    fn assign(&mut self, sound: &Sound<'a>, holds: &[Hold<'a>]) {
        let services: BTreeSet<&str> = holds.iter().map(|hold| hold.service).collect();
        let seen = sound.locks.iter().map(|row| row.node.as_str());
        let watched = sound.record.lock_servers.iter().map(String::as_str);
        let all: BTreeSet<&str> = seen.chain(watched).collect();
        if let (1, Some(&only)) = (services.len(), services.first()) {
            self.nodes.insert(only, all);
            return;
        }
        for hold in holds {
            let nodes: Vec<&str> = self.own(hold).iter().map(|stay| stay.node).collect();
            self.nodes.entry(hold.service).or_default().extend(nodes);
        }
    }

    /// Returns whether a node may be one of a service's servers: it may, unless it was
    /// seen to belong to another.
    pub fn may_be_of(&self, service: &str, node: &str) -> bool {
        let is_in = |nodes: &BTreeSet<&str>| nodes.contains(node);
        if self.nodes.values().any(is_in) {
            return self.nodes.get(service).is_some_and(is_in);
        }
        // If nobody watched, servers are recognised by their names.
        let is_etcd = |name: &str| name.starts_with("etcd");
        let is_known = is_etcd(node) || node.starts_with("redis");
        !is_known || is_etcd(node) == is_etcd(service)
    }

    /// Returns whether anybody watched who holds this key.
    pub fn saw(&self, service: &str, key: &str) -> bool {
        let seen = self.nodes_by_key.get(key).zip(self.nodes.get(service));
        seen.is_some_and(|(seen, own)| !seen.is_disjoint(own))
    }

    pub fn saw_anything(&self) -> bool {
        !self.by_key.is_empty()
    }

    /// Returns how many servers have to grant a key for it to be held.
    pub fn needed(&self, hold: &Hold) -> usize {
        if !hold.service_plan.by_majority {
            return 1;
        }
        self.nodes.get(hold.service).map_or(1, BTreeSet::len) / 2 + 1
    }

    /// Returns the stays that carry a hold's own owner, one for each server.
    fn own(&self, hold: &Hold<'a>) -> Vec<&Stay<'a>> {
        let Some(grant) = hold.grant else {
            return Vec::new();
        };
        let own = self.by_owner.get(&(hold.key, grant.owner));
        let all = self.by_key.get(hold.key);
        let own = own.into_iter().flatten();
        let mut by_node: BTreeMap<&str, &Stay> = BTreeMap::new();
        for stay in own.filter_map(|&index| all?.get(index)) {
            // A lock that was tried for more than once counts by the stay with its token, or by
            // its last stay on each server; a lock that a renewal re-created is not a new grant.
            let has_token = |stay: &Stay| grant.token.is_some() && stay.token == grant.token;
            let known = by_node.get(stay.node);
            let is_it = known.is_none_or(|known| match (has_token(known), has_token(stay)) {
                (true, false) => false,
                (false, true) => true,
                (true, true) | (false, false) => known.recreated_ns.is_none(),
            });
            if is_it {
                by_node.insert(stay.node, stay);
            }
        }
        by_node.into_values().collect()
    }

    /// Returns the stays on a hold's key that began while it may have been granted.
    fn in_time(&self, hold: &Hold) -> impl Iterator<Item = &Stay<'a>> {
        let heard_by_ns = hold.from_ns.saturating_add(HEARD_WITHIN_NS);
        let all = self.by_key.get(hold.key).map_or(&[][..], Vec::as_slice);
        let first = all.partition_point(|stay| stay.from_ns < hold.asked_ns);
        let stays = all[first..].iter();
        stays.take_while(move |stay| stay.from_ns <= heard_by_ns)
    }

    /// Returns the stays that may belong to this hold: by its owner, or, if the server
    /// uses different ids for holders, by the time of the grant.
    pub fn stays(&self, hold: &Hold<'a>) -> Vec<&Stay<'a>> {
        let own = self.own(hold);
        if !own.is_empty() || self.knows_owners {
            return own;
        }
        let in_time = self.in_time(hold);
        in_time.filter(|stay| stay.owner.is_some()).collect()
    }

    /// Returns whether the servers still held a key for a hold at some moment, or `None`
    /// if nobody watched.
    pub fn held_at(&self, hold: &Hold<'a>, at_ns: u64) -> Option<bool> {
        if !self.saw(hold.service, hold.key) {
            return None;
        }
        if self.stays(hold).is_empty() {
            return (!self.may_have_missed(hold)).then_some(false);
        }
        let over = self.let_go(hold);
        Some(over.is_none_or(|(over_ns, _)| over_ns > at_ns))
    }

    /// Returns whether the watch was disturbed while this was granted.
    pub fn may_have_missed(&self, hold: &Hold) -> bool {
        let heard_by_ns = hold.from_ns.saturating_add(HEARD_WITHIN_NS);
        touch(self.disturbed, hold.asked_ns, heard_by_ns)
    }

    /// Returns the servers that granted a hold, or may have: the owners of some grants
    /// are not known.
    pub fn granted_by(&self, hold: &Hold<'a>) -> HashSet<&'a str> {
        let anonymous = self.in_time(hold).filter(|stay| stay.owner.is_none());
        let own = self.stays(hold).into_iter();
        own.chain(anonymous).map(|stay| stay.node).collect()
    }

    /// Returns when so many servers had let a hold go that it was over, and how the last
    /// of these did. Members of a cluster report one and the same end, each when it has
    /// learned of it; independent servers decide by a majority.
    pub fn let_go(&self, hold: &Hold<'a>) -> Option<(u64, StayEnd)> {
        let stays = self.stays(hold);
        // If the owners of several stays are not known, any of them may be the one.
        let is_own = !self.own(hold).is_empty();
        let certain = |stay: &&Stay<'a>| stay.end.filter(|_| !stay.may_outlive_loss);
        if !is_own && stays.iter().any(|stay| certain(stay).is_none()) {
            return None;
        }
        let mut ends: Vec<(u64, StayEnd)> = stays.iter().filter_map(certain).collect();
        ends.sort_by_key(|&(at_ns, _)| at_ns);
        let spare = match self.needed(hold) {
            _ if !is_own => ends.len().saturating_sub(1),
            1 => 0,
            needed => stays.len().saturating_sub(needed),
        };
        ends.get(spare).copied()
    }
}

fn owner<'a>(hold: &Hold<'a>) -> Option<&'a str> {
    hold.grant.map(|grant| grant.owner)
}

/// Somewhere in between, a server lost its data.
#[derive(Clone, Copy)]
struct Loss {
    asked_ns: u64,
    observed_ns: u64,
}

impl Loss {
    fn ends(self, stays: &mut [Stay]) {
        let last = stays.last_mut();
        if let Some(last) = last.filter(|last| last.end.is_none() || last.may_outlive_loss) {
            last.end = Some((self.observed_ns, StayEnd::Forgotten));
            last.may_outlive_loss = last.from_ns >= self.asked_ns;
        }
    }
}

/// Returns when a server was observed to have lost its data. An event seen before that
/// may have happened before; a promoted replica keeps the data that it received.
fn losses(node: &str, episodes: &Episodes) -> Vec<Loss> {
    let losses = episodes.of_target(node);
    let losses = losses.filter(|it| it.kind == FaultKind::RestartEmpty);
    let losses = losses.filter_map(|it| {
        let observed_ns = it.observed_ns()?;
        let asked = it.stage(FaultStage::Requested);
        Some(Loss {
            asked_ns: asked.map_or(observed_ns, |row| row.at_ns),
            observed_ns,
        })
    });
    losses.collect()
}

/// Makes stays from the rows of one key on one server, in the server's order.
fn stays<'a>(rows: &[&'a LockEvent], losses: &[Loss], disturbed: &[Span]) -> Vec<Stay<'a>> {
    let mut all: Vec<Stay> = Vec::new();
    // The last stay of each owner.
    let mut last_of: HashMap<&str, usize> = HashMap::new();
    let mut losses = losses.iter().copied().peekable();
    for row in rows {
        while let Some(loss) = losses.next_if(|loss| loss.observed_ns <= row.at_ns) {
            loss.ends(&mut all);
        }
        let owner = row.owner.as_deref();
        match row.kind {
            LockEventKind::Granted => {
                bring_back(&mut all, &last_of, row, 0);
                let is_new = all.last().is_none_or(|last| {
                    last.end.is_some() || last.owner != owner || owner.is_none()
                });
                if is_new {
                    end(&mut all, row.at_ns, StayEnd::Replaced);
                    last_of.extend(owner.map(|owner| (owner, all.len())));
                    all.push(Stay {
                        node: &row.node,
                        owner,
                        token: row.token,
                        from_ns: row.at_ns,
                        end: None,
                        recreated_ns: None,
                        may_outlive_loss: false,
                    });
                }
            }
            // An event seen soon after a loss may have happened before it.
            LockEventKind::Renewed => bring_back(&mut all, &last_of, row, HEARD_WITHIN_NS),
            LockEventKind::Released | LockEventKind::Expired => {
                let is_anothers = all.last().is_some_and(|last| {
                    owner.is_some() && last.owner.is_some() && last.owner != owner
                });
                let may_be_anothers = all.last().is_some_and(|last| {
                    owner.is_none()
                        && last.owner.is_some()
                        && touch(disturbed, last.from_ns, row.at_ns)
                });
                let how = match row.kind {
                    // The grant in between was missed.
                    _ if is_anothers => StayEnd::Replaced,
                    LockEventKind::Released if may_be_anothers => StayEnd::SomebodyReleased,
                    LockEventKind::Released => StayEnd::Released,
                    _ => StayEnd::Expired,
                };
                end(&mut all, row.at_ns, how);
            }
            LockEventKind::Queued | LockEventKind::Left => {}
        }
    }
    for loss in losses {
        loss.ends(&mut all);
    }
    all
}

/// Notes an owner that is there again after its lock was gone. A released lock may have
/// been a failed try at several servers.
fn bring_back(stays: &mut [Stay], last_of: &HashMap<&str, usize>, row: &LockEvent, later_ns: u64) {
    let at_ns = row.at_ns;
    let is_gone = |(end_ns, end): (u64, StayEnd)| match end {
        StayEnd::Released | StayEnd::SomebodyReleased => false,
        StayEnd::Forgotten => at_ns >= end_ns.saturating_add(later_ns),
        StayEnd::Expired | StayEnd::Replaced => true,
    };
    let own = row.owner.as_deref().and_then(|owner| last_of.get(owner));
    let own = own.map(|&own| &mut stays[own]);
    let own = own.filter(|stay| !stay.may_outlive_loss);
    if let Some(own) = own.filter(|stay| stay.end.is_some_and(is_gone)) {
        own.recreated_ns.get_or_insert(at_ns);
    }
}

fn end(stays: &mut [Stay], at_ns: u64, how: StayEnd) {
    let Some(last) = stays.last_mut() else {
        return;
    };
    if last.may_outlive_loss && how != StayEnd::Replaced {
        // It was still there to be ended.
        last.may_outlive_loss = false;
        last.end = None;
    }
    last.end.get_or_insert((at_ns, how));
}

#[cfg(test)]
mod tests;
