//! The locks that etcd itself offers: a line of keys below a name, each called after its lease.

use crate::Etcd;
use crate::api::*;
use crate::calls::{grant, range, transact};
use crate::grpc::{Answers, Requests};
use crate::peer::Deed;
use crate::state::Answered;
use crate::status::{Status, UNKNOWN};
use crate::store::Key;
use prost::Message;

/// The TTL of the lease that a caller without one gets.
const LEASE_S: i64 = 60;
/// The targets of a compare, and of an order.
const BY_CREATION: i32 = 1;
const CREATED: i32 = 2;
const YOUNGEST_FIRST: i32 = 2;
const OLDEST_FIRST: i32 = 1;

pub async fn serve(
    etcd: &Etcd,
    requests: &mut Requests,
    answers: &mut Answers,
) -> Result<(), Status> {
    let asked: LockRequest = requests.only().await?;
    requests.finish().await;
    let lease = match asked.lease {
        0 => {
            let (ttl, id) = (LEASE_S, 0);
            read::<LeaseGrantResponse>(grant(etcd, LeaseGrantRequest { ttl, id }).await)?.id
        }
        lease => lease,
    };
    let line = [&asked.name, &b"/"[..]].concat();
    let key = [&line[..], format!("{lease:x}").as_bytes()].concat();
    let place = take(etcd, &line, &key, lease).await.map_err(nameless)?;
    let header = match place {
        Place::First(header) => header,
        Place::Behind { revision } => {
            let first = async {
                until_first(etcd, &line, revision).await?;
                let own = RangeRequest {
                    key: key.clone(),
                    ..RangeRequest::default()
                };
                get(etcd, own).await
            };
            let first = tokio::select! {
                biased;
                first = first => first,
                () = answers.given_up() => Err(Status::too_slow()),
            };
            let own = match first {
                Ok(own) => own,
                Err(status) => {
                    let _or_it_ends_with_its_lease = remove(etcd, &key).await;
                    return Err(nameless(status));
                }
            };
            if own.kvs.is_empty() {
                return Err(Status::session_over());
            }
            own.header
        }
    };
    answers.send(&LockResponse { header, key }.encode_to_vec())
}

pub async fn unlock(etcd: &Etcd, asked: UnlockRequest) -> Answered {
    let gone = remove(etcd, &asked.key).await.map_err(nameless)?;
    let header = gone.header;
    Ok(UnlockResponse { header }.encode_to_vec())
}

enum Place {
    First(Option<ResponseHeader>),
    Behind { revision: i64 },
}

/// Takes a place in the line, or finds the one that the lease has.
async fn take(etcd: &Etcd, line: &[u8], key: &[u8], lease: i64) -> Result<Place, Status> {
    let is_new = Compare {
        result: 0,
        target: BY_CREATION,
        key: key.to_vec(),
        operand: Some(Operand::Create(0)),
        range_end: Vec::new(),
    };
    let put = Request::Put(PutRequest {
        key: key.to_vec(),
        lease,
        ..PutRequest::default()
    });
    let own = Request::Range(RangeRequest {
        key: key.to_vec(),
        ..RangeRequest::default()
    });
    let first = Request::Range(RangeRequest {
        key: line.to_vec(),
        range_end: end_of(line),
        limit: 1,
        sort_order: OLDEST_FIRST,
        sort_target: CREATED,
        ..RangeRequest::default()
    });
    let operations = |all: [&Request; 2]| {
        let operation = |request: &Request| RequestOp {
            request: Some(request.clone()),
        };
        all.map(operation).to_vec()
    };
    let txn = TxnRequest {
        compare: vec![is_new],
        success: operations([&put, &first]),
        failure: operations([&own, &first]),
    };
    let answer: TxnResponse = read(transact(etcd, txn).await)?;
    let created_at = |at: usize| match answer.responses.get(at)?.response.as_ref()? {
        Response::Range(found) => Some(found.kvs.first()?.create_revision),
        Response::Put(_) | Response::DeleteRange(_) => None,
    };
    let now = answer.header.as_ref().map_or(0, |header| header.revision);
    let revision = created_at(0).unwrap_or(now);
    Ok(match created_at(1) {
        Some(first) if first != revision => Place::Behind { revision },
        Some(_) | None => Place::First(answer.header),
    })
}

/// Waits until every place before this one is gone, the youngest first.
async fn until_first(etcd: &Etcd, line: &[u8], revision: i64) -> Result<(), Status> {
    loop {
        let before = get(
            etcd,
            RangeRequest {
                key: line.to_vec(),
                range_end: end_of(line),
                limit: 1,
                sort_order: YOUNGEST_FIRST,
                sort_target: CREATED,
                max_create_revision: revision - 1,
                ..RangeRequest::default()
            },
        );
        let before = before.await?;
        let Some(last) = before.kvs.first() else {
            return Ok(());
        };
        let seen_at = before.header.map_or(0, |header| header.revision);
        until_deleted(etcd, &last.key, seen_at).await;
    }
}

async fn until_deleted(etcd: &Etcd, key: &Key, seen_at: i64) {
    loop {
        let rings = etcd.bell.notified();
        let is_gone = etcd.change(|state| {
            let batches = state.store.changes_since(seen_at + 1).iter();
            let mut events = batches.flat_map(|batch| &batch.events);
            let is_own = |kv: &KeyValue| kv.key == *key;
            events.any(|event| event.kind == DELETE && event.kv.as_ref().is_some_and(is_own))
        });
        if is_gone {
            return;
        }
        rings.await;
    }
}

async fn get(etcd: &Etcd, asked: RangeRequest) -> Result<RangeResponse, Status> {
    read(range(etcd, &asked).await)
}

async fn remove(etcd: &Etcd, key: &[u8]) -> Result<DeleteRangeResponse, Status> {
    let gone = DeleteRangeRequest {
        key: key.to_vec(),
        ..DeleteRangeRequest::default()
    };
    if gone.key.is_empty() {
        return Err(Status::empty_key());
    }
    read(etcd.carry_out(Some(Deed::DeleteRange(gone))).await)
}

fn read<M: Message + Default>(answer: Answered) -> Result<M, Status> {
    M::decode(answer?.as_slice()).map_err(Status::garbage)
}

/// Returns the end of the keys with this prefix, which ends with a slash.
fn end_of(line: &[u8]) -> Key {
    let mut end = line.to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

/// What comes from within has lost its code.
fn nameless(status: Status) -> Status {
    Status::new(UNKNOWN, status.message)
}
