//! Everything that a seed decides about a world before it begins.

use super::defect::Defect;
use super::flaw::Flaw;
use super::trouble::Trouble;
use fastrand::Rng;

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// The kinds of worlds take turns, so that each gets its share of any range of seeds.
const HONEST_SHARE: u64 = 24;
const FLAWED_SHARE: u64 = 8;
const ROUND: u64 = 72;

#[derive(Clone, Debug)]
pub struct Settings {
    pub seed: u64,
    pub workers: usize,
    pub rounds: u32,
    pub keys: usize,
    /// With two, every other worker uses the second one.
    pub services: usize,
    pub ttl_ns: u64,
    /// Waiters are served in the order of their arrival.
    pub queue: bool,
    pub fence: bool,
    /// Whether grants carry tokens at all.
    pub tokens: bool,
    /// One counter for all keys, or one for each.
    pub shared_counter: bool,
    /// Somebody watches the lock servers.
    pub observed: bool,
    /// Workers report until when they hold.
    pub reports_validity: bool,
    /// They count from when they are told, and not from when they asked.
    pub counts_late: bool,
    /// Workers stop by their own clock.
    pub looks: bool,
    pub ignores_lost: bool,
    /// A worker that lost its lock does not try to release it.
    pub skips_release: bool,
    pub renews: bool,
    pub reads: bool,
    pub ours: bool,
    pub hashes: bool,
    pub values: bool,
    pub writes: u64,
    pub nested: bool,
    /// Longest work in one hold.
    pub work_ns: u64,
    /// Longest wait between two rounds.
    pub rest_ns: u64,
    /// Longest ordinary delay of a message.
    pub delay_ns: u64,
    /// Writes sometimes travel for longer than the TTL.
    pub slow_writes: bool,
    /// Workers sometimes stand still without any record of it, as in a garbage collection.
    pub stalls: bool,
    /// Workers sometimes wait at gates.
    pub gates: bool,
    /// Requests or their answers sometimes get lost.
    pub failing: bool,
    /// Answers to writes sometimes get lost, and the same write is sent again.
    pub retries: bool,
    /// How long a worker waits for a lock, where it does not wait for ever.
    pub patience_ns: Option<u64>,
    pub trouble: Trouble,
    /// It comes after so many events.
    pub trouble_after: usize,
    /// Which lock server the trouble affects, if it affects one.
    pub troubled_service: usize,
    pub defect: Option<Defect>,
    /// A defect strikes in one of so many opportunities.
    pub one_in: u32,
    pub flaw: Option<Flaw>,
}

impl Settings {
    pub fn draw(seed: u64) -> Settings {
        let turn = seed % ROUND;
        let number = (seed / ROUND) as usize;
        let mut random = Rng::with_seed(seed);
        let mut settings = Settings::honest(seed, &mut random);
        if turn < HONEST_SHARE {
            settings.trouble = Trouble::ALL[(number + turn as usize) % Trouble::ALL.len()];
        } else if turn < HONEST_SHARE + FLAWED_SHARE {
            let flaw = Flaw::ALL[(turn - HONEST_SHARE) as usize + (number % 2) * 8];
            flaw.shape(&mut settings, &mut random);
            settings.flaw = Some(flaw);
        } else {
            let turn = (turn - HONEST_SHARE - FLAWED_SHARE) as usize;
            let defect = Defect::ALL[(turn + 40 * number) % Defect::ALL.len()];
            settings.plant(defect, &mut random);
        }
        settings.settle(&mut random);
        settings
    }

    fn honest(seed: u64, random: &mut Rng) -> Settings {
        let workers = random.usize(2..=5);
        let queue = random.bool();
        let ttl_ns = MS * random.u64(400..if queue { 8_000 } else { 4_000 });
        let calm = random.bool();
        let tokens = random.u32(..10) > 0;
        let reports_validity = random.bool();
        Settings {
            seed,
            workers,
            rounds: random.u32(1..=10 / workers as u32),
            keys: random.usize(1..=2),
            services: if random.u32(..5) == 0 { 2 } else { 1 },
            ttl_ns,
            queue,
            fence: tokens && random.bool(),
            tokens,
            shared_counter: random.bool(),
            observed: random.u32(..3) > 0,
            reports_validity,
            counts_late: random.u32(..3) == 0,
            looks: reports_validity || random.bool(),
            ignores_lost: random.u32(..6) == 0,
            skips_release: random.u32(..4) == 0,
            renews: random.bool(),
            reads: random.u32(..3) > 0,
            ours: random.u32(..3) > 0,
            hashes: random.bool(),
            values: random.bool(),
            writes: if random.bool() { 1 } else { random.u64(1..=3) },
            nested: random.u32(..8) == 0,
            work_ns: if calm { ttl_ns / 4 } else { ttl_ns * 2 },
            rest_ns: MS * random.u64(1..2_000),
            delay_ns: MS * random.u64(1..60),
            slow_writes: !calm && random.bool(),
            stalls: !calm && random.u32(..3) == 0,
            gates: random.u32(..3) == 0,
            failing: random.u32(..4) == 0,
            retries: random.u32(..3) == 0,
            patience_ns: (random.u32(..5) == 0).then(|| ttl_ns + MS * random.u64(..8_000)),
            trouble: Trouble::None,
            trouble_after: random.usize(2 * workers..40),
            troubled_service: 0,
            defect: None,
            one_in: 1,
            flaw: None,
        }
    }

    fn plant(&mut self, defect: Defect, random: &mut Rng) {
        self.defect = Some(defect);
        self.one_in = [1, 2, 5][random.usize(..3)];
        self.keys = 1;
        self.workers = self.workers.max(3);
        self.rounds = random.u32(2..=10 / self.workers as u32);
        if random.u32(..4) == 0 {
            self.trouble = [Trouble::Pause, Trouble::Kill, Trouble::Cut][random.usize(..3)];
        }
        defect.shape(self, random);
        // A fault of the other lock server is no excuse for this one.
        let alibi = defect.is_of_the_lock() && self.trouble == Trouble::None;
        if alibi && !defect.needs_quiet() && random.u32(..4) == 0 {
            self.services = 2;
            self.workers = 5;
            self.rounds = 2;
            self.troubled_service = 1;
            self.trouble = Trouble::RestartEmpty;
        }
    }

    /// Takes back what does not go together.
    fn settle(&mut self, random: &mut Rng) {
        // A worker that says until when it holds can read its clock.
        self.looks |= self.reports_validity;
        if self.trouble == Trouble::Promote {
            self.services = 1;
        }
        if self.services == 2 && self.trouble.is_of_a_server() && self.defect.is_none() {
            self.troubled_service = random.usize(..2);
        }
        if !self.tokens {
            self.fence = false;
        }
        if self.ours {
            self.counts_late = false;
        } else {
            self.nested = false;
        }
    }
}
