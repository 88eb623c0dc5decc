use super::bucket;
use crate::support::{S3Process, fresh_folder, machine_shared};
use fencepost::resource::s3::{Action, DEFAULT_KEY, S3Row};
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Notify;
use tokio::time::timeout;

const ROUNDS: u32 = 4;
const WRITERS: u32 = 8;
/// It is killed after so many puts were acknowledged in one of its lives.
const PUTS_OF_A_LIFE: u32 = 200;

/// One writer of one object: each of its puts replaces the one before it.
struct Writer {
    path: Path,
    /// The last put that was acknowledged.
    known: Option<(u32, UpdateVersion)>,
    /// The number of the next put.
    next: u32,
}

impl Writer {
    /// Writes until the role is gone.
    async fn write(&mut self, store: &AmazonS3, acknowledged: &AtomicU32, enough: &Notify) {
        loop {
            let mode = match &self.known {
                None => PutMode::Create,
                Some((_, version)) => PutMode::Update(version.clone()),
            };
            let number = self.next;
            self.next += 1;
            let content = number.to_string().into_bytes();
            let put = store.put_opts(&self.path, content.into(), PutOptions::from(mode));
            match put.await {
                Ok(done) => self.known = Some((number, done.into())),
                // Nobody else writes here, so a connection has ended and not a race.
                Err(Error::Generic { .. }) => return,
                Err(error) => panic!("put {number} of {}: {error}", self.path),
            }
            if acknowledged.fetch_add(1, Ordering::SeqCst) + 1 == PUTS_OF_A_LIFE {
                enough.notify_one();
            }
        }
    }

    /// Looks what the next life of the role has.
    async fn look(&mut self, store: &AmazonS3) {
        let found = match store.get(&self.path).await {
            Err(Error::NotFound { .. }) => None,
            found => Some(found.expect("an answer")),
        };
        let known = self.known.as_ref().map(|(number, _)| *number);
        let Some(found) = found else {
            assert_eq!(known, None, "{} is gone", self.path);
            return;
        };
        let version = UpdateVersion {
            e_tag: found.meta.e_tag.clone(),
            version: found.meta.version.clone(),
        };
        let content = found.bytes().await.expect("its content");
        let content = String::from_utf8_lossy(&content).into_owned();
        let content: u32 = content.parse().expect("a number");
        // The put that was under way may have been applied, and nothing else.
        let last = self.next - 1;
        assert!(
            Some(content) == known || content == last,
            "{}: {content} is read; {known:?} was acknowledged, {last} was sent",
            self.path
        );
        self.known = Some((content, version));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_it_is_killed() {
    let _turn = machine_shared();
    let folder = fresh_folder("s3-killed");
    let writer = |number| Writer {
        path: Path::from(format!("writer-{number}")),
        known: None,
        next: 1,
    };
    let mut writers: Vec<Writer> = (0..WRITERS).map(writer).collect();
    for _ in 0..ROUNDS {
        let role = S3Process::start(&folder, 0);
        let endpoint = role.endpoint();
        let store = Arc::new(bucket(&endpoint, DEFAULT_KEY));
        for writer in &mut writers {
            writer.look(&store).await;
        }
        let (acknowledged, enough) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
        let writing = writers.drain(..).map(|mut writer| {
            let (store, acknowledged) = (store.clone(), acknowledged.clone());
            let enough = enough.clone();
            tokio::spawn(async move {
                writer.write(&store, &acknowledged, &enough).await;
                writer
            })
        });
        let writing: Vec<_> = writing.collect();
        let waited = timeout(super::DEADLINE, enough.notified()).await;
        waited.expect("200 puts are acknowledged in time");
        drop(role);
        for writer in writing {
            writers.push(writer.await.expect("a writer ends with the role"));
        }
    }
    let role = S3Process::start(&folder, 0);
    let endpoint = role.endpoint();
    let store = bucket(&endpoint, DEFAULT_KEY);
    for writer in &mut writers {
        writer.look(&store).await;
    }
    // Every version was replaced by one put at most, also over restarts.
    let log = reqwest::get(format!("{endpoint}/-/log")).await.unwrap();
    let log = log.text().await.unwrap();
    let rows = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("a row"));
    let rows: Vec<S3Row> = rows
        .filter(|row: &S3Row| row.action == Action::Put)
        .collect();
    assert!(
        rows.len() as u32 >= ROUNDS * PUTS_OF_A_LIFE,
        "{}",
        rows.len()
    );
    let mut current = std::collections::HashMap::new();
    for row in rows {
        assert_eq!(current.get(&row.key), row.found.as_ref(), "{row:?}");
        current.extend(row.etag.map(|etag| (row.key, etag)));
    }
}
