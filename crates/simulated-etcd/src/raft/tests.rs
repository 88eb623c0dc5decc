use super::*;

/// Members whose messages are lost, late and out of order, and that are killed and started again.
struct World {
    members: Vec<Raft>,
    under_way: Vec<(u64, PeerMessage)>,
    /// What each has carried out.
    done: Vec<Vec<u64>>,
    leaders: BTreeMap<u64, u64>,
    random: fastrand::Rng,
    last_command: u64,
}

impl World {
    fn new(size: u64, seed: u64) -> World {
        let ids = 1..=size;
        let member = |id| {
            let mut raft = Raft::new(id, ids.clone().filter(|other| *other != id));
            raft.start(seed * 100 + id);
            raft
        };
        World {
            members: ids.clone().map(member).collect(),
            under_way: Vec::new(),
            done: ids.map(|_| Vec::new()).collect(),
            leaders: BTreeMap::new(),
            random: fastrand::Rng::with_seed(seed),
            last_command: 0,
        }
    }

    fn any(&mut self) -> &mut Raft {
        let at = self.random.usize(..self.members.len());
        &mut self.members[at]
    }

    fn step(&mut self) {
        match self.random.u32(..100) {
            0..30 => self.any().tick(),
            30..80 if !self.under_way.is_empty() => {
                let at = self.random.usize(..self.under_way.len());
                let (to, message) = self.under_way.swap_remove(at);
                if self.random.u8(..20) > 0 {
                    self.members[to as usize - 1].receive(message);
                }
            }
            80..99 => self.propose(),
            99 => {
                let seed = self.random.u64(..);
                self.any().start(seed);
            }
            _ => {}
        }
        self.settle();
    }

    fn propose(&mut self) {
        self.last_command += 1;
        let (id, deed) = (self.last_command, None);
        self.any().propose(Command { id, deed });
    }

    /// Collects what the members send and carry out, and compares what must be the same.
    fn settle(&mut self) {
        for (raft, done) in self.members.iter_mut().zip(&mut self.done) {
            self.under_way.append(&mut raft.outbox);
            while let Some(command) = raft.next_committed() {
                done.push(command.id);
            }
            if raft.role == Role::Leader {
                let leader = self.leaders.entry(raft.disk.term).or_insert(raft.id);
                assert_eq!(*leader, raft.id, "two leaders of one term");
            }
        }
        let longest = self.done.iter().max_by_key(|done| done.len());
        let longest = longest.expect("there are members");
        for done in &self.done {
            assert_eq!(done[..], longest[..done.len()], "two logs");
        }
        if self.under_way.len() > 500 {
            self.under_way.drain(..250);
        }
    }

    /// Lets time pass in which nothing is lost.
    fn calm(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.members.iter_mut().for_each(Raft::tick);
            self.settle();
            while !self.under_way.is_empty() {
                for (to, message) in std::mem::take(&mut self.under_way) {
                    self.members[to as usize - 1].receive(message);
                }
                self.settle();
            }
        }
    }

    fn leader(&self) -> Option<u64> {
        let mut leaders = self.members.iter().filter(|it| it.role == Role::Leader);
        leaders.next().map(|raft| raft.id)
    }
}

#[test]
fn whatever_is_lost_there_is_one_log_and_in_the_end_all_have_it() {
    for seed in 0..100 {
        for size in [1, 2, 3, 5] {
            let mut world = World::new(size, seed);
            for _ in 0..1_000 {
                world.step();
            }
            world.calm(100);
            let last = world.last_command + 1;
            world.propose();
            world.calm(5);
            for done in &world.done {
                assert_eq!(done.last(), Some(&last), "seed {seed}, {size} members");
            }
        }
    }
}

#[test]
fn a_member_that_was_cut_off_deposes_nobody_and_a_leader_without_followers_steps_down() {
    let mut world = World::new(3, 1);
    world.calm(100);
    let leader = world.leader().expect("somebody leads");
    let term = world.members[0].disk.term;
    let apart = world.members.iter().position(|raft| raft.id != leader);
    let apart = apart.expect("somebody follows");
    // Nobody hears it, and it hears nobody.
    for _ in 0..100 {
        world.members[apart].tick();
    }
    world.members[apart].outbox.clear();
    world.calm(50);
    assert_eq!(world.leader(), Some(leader));
    assert_eq!(world.members[apart].disk.term, term);
    for _ in 0..3 * ELECTION_TICKS {
        world.members[leader as usize - 1].tick();
    }
    assert_ne!(world.members[leader as usize - 1].role, Role::Leader);
}

#[test]
fn what_a_leader_could_not_commit_gives_way_to_the_log_of_the_next() {
    let mut world = World::new(3, 2);
    world.calm(100);
    let old = world.leader().expect("somebody leads") as usize - 1;
    let (id, deed) = (1_000, None);
    world.members[old].propose(Command { id, deed });
    world.members[old].outbox.clear();
    // The others do not hear of it any more.
    for _ in 0..100 {
        for raft in &mut world.members {
            if raft.id as usize - 1 != old {
                raft.tick();
            }
        }
        world.settle();
        for (to, message) in std::mem::take(&mut world.under_way) {
            if to as usize - 1 != old {
                world.members[to as usize - 1].receive(message);
            }
        }
    }
    world.calm(50);
    assert_ne!(world.leader(), Some(old as u64 + 1));
    assert!(world.done.iter().all(|done| !done.contains(&1_000)));
    let logs = world.members.iter().map(|raft| &raft.disk.log);
    assert!(logs.clone().all(|log| Some(log) == logs.clone().next()));
}
