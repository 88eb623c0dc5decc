use super::rows::Leases;
use super::settings;
use crate::services::observe::*;
use fencing_lock::Env;
use fencing_lock::servers::{DynamoDbApi, DynamoDbRecord, new_dynamodb_table};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::sleep;

/// Watches one DynamoDB by the stream of its table, which has every change with the item before
/// and after it, in the order of the changes.
///
/// A stream cannot be awaited, so it is read again and again. Each change has the time at which the
/// server says that it was made, as far as that is between two readings. A lease that expires changes
/// nothing at the server: its `expired` is the time at which somebody else was granted the lock,
/// or its own holder gave it back too late.
pub async fn observe_dynamodb(watch: Watch<'_>, layout: Layout) -> Result<(), LockProblem> {
    if !layout.is_own() {
        let what = "only this program's own locks can be watched in a DynamoDB";
        return Err(LockProblem::Refused(what.to_owned()));
    }
    let mut settings = settings();
    // A server in Python, on a busy machine.
    settings.response_timeout = 4 * STEP_TIMEOUT;
    settings.connect_timeout = STEP_TIMEOUT;
    let table = settings.table.clone();
    let api = DynamoDbApi::new(watch.address, settings, Env::default())?;
    let mut stream = Stream::begin(api, &table).await?;
    // The caller may have stopped waiting, but the rows are still wanted.
    let _ = watch.ready.send(API_VERSION.to_owned());
    let mut leases = Leases::new(watch.node);
    let mut latest_ns = 0;
    loop {
        let is_last = watch.stop.is_cancelled();
        for (at_ns, key, before, after) in stream.next().await? {
            // Rows are in the order of their times.
            latest_ns = at_ns.max(latest_ns);
            let rows = leases.changed(latest_ns, &key, before, after);
            if send(&watch.events, rows).await.is_break() {
                return Ok(());
            }
        }
        if is_last && stream.is_read {
            return Ok(());
        }
        if stream.is_read {
            tokio::select! {
                () = watch.stop.cancelled() => {}
                () = sleep(LOOK_EVERY) => {}
            }
        }
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The service itself has no version that it tells.
const API_VERSION: &str = "2012-08-10";
const PAGE: usize = 1000;
const MILLISECOND_NS: u64 = 1_000_000;

struct Stream {
    api: DynamoDbApi,
    iterator: Value,
    /// Every change that is not read yet was made after that.
    unread_from_ns: u64,
    /// Everything that was written before the last request was read.
    is_read: bool,
}

/// When, of which key, from what, to what.
type Change = (u64, String, Option<DynamoDbRecord>, Option<DynamoDbRecord>);

impl Stream {
    /// Makes the table with a stream; one that is there gets a stream.
    async fn begin(api: DynamoDbApi, table: &str) -> Result<Stream, LockProblem> {
        let unread_from_ns = raw_monotonic_ns();
        let name = json!({ "TableName": table });
        let with_stream = |mut request: Value| {
            request["StreamSpecification"] =
                json!({ "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" });
            request
        };
        let create = with_stream(new_dynamodb_table(table));
        let mut is_new = match api.ask("CreateTable", &create).await {
            Ok(_) => true,
            // It is there already.
            Err(LockProblem::Refused(_)) => false,
            Err(problem) => return Err(problem),
        };
        let mut described = api.ask("DescribeTable", &name).await?;
        if described["Table"]["StreamSpecification"]["StreamEnabled"] != true {
            api.ask("UpdateTable", &with_stream(name.clone())).await?;
            described = api.ask("DescribeTable", &name).await?;
            is_new = true;
        }
        let stream = &described["Table"]["LatestStreamArn"];
        let shards = json!({ "StreamArn": stream });
        let shards = api.ask_streams("DescribeStream", &shards).await?;
        let shards = &shards["StreamDescription"]["Shards"];
        if shards.as_array().map(Vec::len) != Some(1) {
            let what = "the stream of the table does not have one shard";
            return Err(LockProblem::Refused(what.to_owned()));
        }
        let from = match is_new {
            true => "TRIM_HORIZON",
            false => "LATEST",
        };
        let iterator = json!({
            "StreamArn": stream,
            "ShardId": shards[0]["ShardId"],
            "ShardIteratorType": from,
        });
        let iterator = api.ask_streams("GetShardIterator", &iterator).await?;
        Ok(Stream {
            api,
            iterator: iterator["ShardIterator"].clone(),
            unread_from_ns,
            is_read: false,
        })
    }

    async fn next(&mut self) -> Result<Vec<Change>, LockProblem> {
        let asked_ns = raw_monotonic_ns();
        let request = json!({ "ShardIterator": self.iterator, "Limit": PAGE });
        let page = self.api.ask_streams("GetRecords", &request).await?;
        self.iterator = page["NextShardIterator"].clone();
        let records = page["Records"].as_array().map_or(&[][..], Vec::as_slice);
        self.is_read = records.is_empty();
        let earliest_ns = self.unread_from_ns;
        if records.len() < PAGE {
            self.unread_from_ns = asked_ns;
        }
        let records = records.iter().map(|record| read(record, earliest_ns));
        records.collect()
    }
}

fn read(record: &Value, earliest_ns: u64) -> Result<Change, LockProblem> {
    let change = &record["dynamodb"];
    let at_ns = made_ns(
        &change["ApproximateCreationDateTime"],
        earliest_ns,
        raw_monotonic_ns(),
    );
    let key = change["Keys"]["lock_key"]["S"].as_str();
    let key = key.ok_or_else(|| LockProblem::BadAnswer(format!("no key: {record}")))?;
    // moto reports a new item twice: first with its key alone.
    let image = |name: &str| match &change[name]["record_version"] {
        Value::Null => Ok(None),
        _ => DynamoDbRecord::read(&change[name]),
    };
    Ok((
        at_ns,
        key.to_owned(),
        image("OldImage")?,
        image("NewImage")?,
    ))
}

/// Returns when a change was made, by our raw clock. It was made between these two times, also if
/// the clock of the server was moved.
fn made_ns(unix_s: &Value, earliest_ns: u64, latest_ns: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let ago_s = unix_s
        .as_f64()
        .map(|unix_s| now.unwrap_or_default().as_secs_f64() - unix_s);
    // The server says milliseconds, and a change is not earlier than it was.
    let ago_ns = ago_s.map_or(0, |ago_s| (ago_s.max(0.0) * 1e9) as u64);
    let made_ns = latest_ns.saturating_sub(ago_ns) + MILLISECOND_NS;
    made_ns.clamp(earliest_ns.min(latest_ns), latest_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_was_made_when_the_server_says_so_and_between_two_readings() {
        const SECOND_NS: u64 = 1_000_000_000;
        let latest_ns = 1000 * SECOND_NS;
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let made = |ago_s: f64, earliest_ns| {
            let unix_s = json!(now_s.as_secs_f64() - ago_s);
            latest_ns - made_ns(&unix_s, earliest_ns, latest_ns)
        };
        let ago_s = made(30.0, 0).div_ceil(SECOND_NS);
        assert!((30..40).contains(&ago_s), "{ago_s}");
        assert_eq!(made(30.0, latest_ns - 5), 5, "not before the last reading");
        assert_eq!(made(-60.0, 0), 0, "not later than now");
        assert_eq!(made_ns(&Value::Null, 0, latest_ns), latest_ns);
    }
}
