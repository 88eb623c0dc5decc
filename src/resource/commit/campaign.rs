//! Many lives of a resource on a disk that fails: whatever ended one of them, all that it
//! acknowledged or showed is there in the next, and damage is refused.

use super::super::recover::SECTOR_BYTES;
use super::super::state::{Answer, State, WriteReply, WriteRequest};
use super::super::storage::model::{Disk, Fault, ModelStorage};
use super::*;
use crate::model::{Fence, FencingToken, LogRow, RowValue};
use bytes::Bytes;
use std::collections::BTreeMap;

/// The kills of a campaign; a fifth as many syncs fail. `just soak-disk` has more.
const KILLS: u64 = 150;
const KILLS_VARIABLE: &str = "FENCEPOST_DISK_KILLS";
/// The lives on one disk, so that its log stays short.
const LIVES: u64 = 25;

#[derive(Debug, Default)]
struct Tally {
    lives: u64,
    rows: u64,
    kills: u64,
    failed_syncs: u64,
    failed_writes: u64,
    power_failures: u64,
    refused_changes: u64,
}

/// A client's knowledge of a row.
type Promise = (Option<FencingToken>, Option<RowValue>);

/// The answer that a command gets, and the promise if it is accepted.
type Expected = (oneshot::Receiver<WriteReply>, Promise);

struct Campaign {
    storage: ModelStorage,
    /// By position.
    promised: BTreeMap<u64, Promise>,
    token: u64,
}

impl Campaign {
    fn new(seed: u64, copies: bool) -> Campaign {
        let mut disk = Disk::new(seed, SECTOR_BYTES);
        disk.copies = copies;
        Campaign {
            storage: ModelStorage::new(disk),
            promised: BTreeMap::new(),
            token: 0,
        }
    }

    fn random(&self, below: u64) -> u64 {
        self.storage.disk.lock().random.u64(..below)
    }

    /// Lives once, from a start to whatever ends it.
    fn live(&mut self, tally: &mut Tally) -> Result<(), String> {
        tally.lives += 1;
        let undo_change = self.prepare();
        let mut state = State::new(Fence::On);
        let mut shown = BTreeMap::new();
        let opened = Log::open_on(Box::new(self.storage.clone()), |row: LogRow| {
            shown.insert(row.seq, promise(&row));
            state.replay(row);
        });
        match opened {
            Ok((log, _)) => {
                self.compare(&shown)?;
                self.promised = shown;
                self.serve(log, state, tally);
            }
            Err(error) => {
                let mut disk = self.storage.disk.lock();
                let is_unsteady = matches!(error, LogError::Unsteady { .. });
                if disk.struck.is_none() && !is_unsteady && undo_change.is_none() {
                    return Err(format!("refused, although nothing is damaged: {error}"));
                }
                if let Some(undo) = undo_change {
                    tally.refused_changes += u64::from(disk.struck.is_none());
                    undo(&mut disk);
                }
            }
        }
        self.end(tally);
        Ok(())
    }

    /// Plans a fault, and perhaps changes a bit; returns how to undo that.
    fn prepare(&mut self) -> Option<impl FnOnce(&mut Disk) + use<>> {
        let mut disk = self.storage.disk.lock();
        disk.restart();
        if disk.random.bool() {
            disk.evict();
        }
        let fault = match disk.random.u8(..8) {
            0..4 => Some(Fault::Kill),
            4 => Some(Fault::FailSync),
            5 => Some(Fault::NoNewBlocks),
            6 => Some(Fault::FailWrite),
            _ => None,
        };
        let steps = disk.random.u64(1..40);
        disk.plan = fault.map(|fault| (steps, fault));
        let changes = disk.random.u8(..8) == 0;
        changes.then(|| disk.flip())
    }

    fn compare(&self, shown: &BTreeMap<u64, Promise>) -> Result<(), String> {
        for (position, promised) in &self.promised {
            if shown.get(position) != Some(promised) {
                let shown = shown.get(position);
                return Err(format!("{position}: {promised:?} became {shown:?}"));
            }
        }
        Ok(())
    }

    fn serve(&mut self, log: Log, state: State, tally: &mut Tally) {
        let metrics = Metrics::new(Fence::On);
        let (durable, _) = watch::channel(log.durable());
        let mut group = GroupCommit::new(log, state, durable, &metrics);
        for _ in 0..self.random(8) {
            let writes = 1 + self.random(4);
            let (mut queued, answers): (Vec<_>, Vec<_>) = (0..writes).map(|_| self.write()).unzip();
            let first = queued.pop().expect("one at least");
            let turned = group.turn(first, || queued.pop());
            for (mut answer, promise) in answers {
                if let Ok(Ok(Answer::Accepted { position, .. })) = answer.try_recv() {
                    self.promised.insert(position, promise);
                    tally.rows += 1;
                }
            }
            if turned.is_err() {
                return;
            }
        }
        if self.random(2) == 0 {
            let _ = group.log.close();
        }
    }

    fn write(&mut self) -> (Command<State>, Expected) {
        self.token += 1;
        let length = self.random(1500) as usize;
        let body = vec![b'a' + (self.token % 26) as u8; length];
        let (reply, answer) = oneshot::channel();
        let token = Some(FencingToken(self.token));
        let promise = (token, Some(RowValue::from_bytes(&body)));
        let request = WriteRequest {
            // One key for each write, so that their order does not matter here.
            key: self.token.to_string(),
            token,
            token_seq: 0,
            owner: None,
            based_on: None,
            body: Bytes::from(body),
        };
        (Command::Write(request, reply), (answer, promise))
    }

    fn end(&mut self, tally: &mut Tally) {
        let mut disk = self.storage.disk.lock();
        match disk.struck {
            Some(Fault::Kill) => tally.kills += 1,
            Some(Fault::FailSync | Fault::NoNewBlocks) => tally.failed_syncs += 1,
            Some(Fault::FailWrite) => tally.failed_writes += 1,
            None => {}
        }
        if disk.random.u8(..3) == 0 {
            disk.lose_power();
            tally.power_failures += 1;
        }
    }
}

fn promise(row: &LogRow) -> Promise {
    (row.token, row.value.clone())
}

/// Lives on one disk after the other, until there have been enough kills and failed syncs.
fn play(kills: u64, copies: bool) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let mut seed = 0;
    while tally.kills < kills || tally.failed_syncs < kills / 5 {
        seed += 1;
        let mut campaign = Campaign::new(seed, copies);
        for life in 0..LIVES {
            let lived = campaign.live(&mut tally);
            lived.map_err(|lost| format!("seed {seed}, life {life}: {lost}"))?;
        }
    }
    Ok(tally)
}

#[test]
fn nothing_acknowledged_or_shown_is_lost_whatever_the_disk_does() {
    let kills = std::env::var(KILLS_VARIABLE).map_or(KILLS, |count| count.parse().unwrap());
    let tally = play(kills, true).unwrap();
    println!("{tally:?}");
    assert!(
        tally.rows > tally.kills && tally.power_failures > 0,
        "{tally:?}"
    );
    assert!(
        tally.refused_changes > 0 && tally.failed_writes > 0,
        "{tally:?}"
    );
}

#[test]
fn a_log_that_goes_on_in_a_file_whose_sync_failed_is_found_out() {
    let lost = play(KILLS, false).unwrap_err();
    assert!(
        lost.contains("became") || lost.contains("refused"),
        "{lost}"
    );
}
