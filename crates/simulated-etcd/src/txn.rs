//! Transactions: conditions, and what is done if all of them hold.

use crate::api::*;
use crate::status::Status;
use crate::store::{Store, inner_header, span};
use std::ops::RangeBounds;

/// Refuses what a member refuses before it comes into the log.
pub fn check(asked: &TxnRequest) -> Result<(), Status> {
    if asked.compare.iter().any(|compare| compare.key.is_empty()) {
        return Err(Status::empty_key());
    }
    let requests = asked.success.iter().chain(&asked.failure);
    for request in requests.filter_map(|operation| operation.request.as_ref()) {
        let key = match request {
            Request::Put(put) if put.ignore_value || put.ignore_lease => {
                return Err(Status::not_simulated(KEEPS));
            }
            Request::Range(range) => &range.key,
            Request::Put(put) => &put.key,
            Request::DeleteRange(gone) => &gone.key,
            Request::Txn(_) => return Err(Status::not_simulated("a transaction in another")),
        };
        if key.is_empty() {
            return Err(Status::empty_key());
        }
    }
    check_keys(&asked.success)?;
    check_keys(&asked.failure)
}

/// Refuses to change a key twice.
fn check_keys(operations: &[RequestOp]) -> Result<(), Status> {
    let mut written: Vec<&Vec<u8>> = Vec::new();
    let mut gone = Vec::new();
    for request in operations.iter().filter_map(|it| it.request.as_ref()) {
        match request {
            Request::Put(put) if written.contains(&&put.key) => {
                return Err(Status::duplicate_key());
            }
            Request::Put(put) => written.push(&put.key),
            // An etcd does not see here that this is everything from the key on.
            Request::DeleteRange(range) if range.range_end == [0] => {}
            Request::DeleteRange(range) => gone.push(span(&range.key, &range.range_end)),
            Request::Range(_) | Request::Txn(_) => {}
        }
    }
    let is_gone = |key: &&Vec<u8>| gone.iter().any(|gone| gone.contains(*key));
    match written.iter().any(is_gone) {
        true => Err(Status::duplicate_key()),
        false => Ok(()),
    }
}

pub const KEEPS: &str = "a put that keeps the value or the lease";

/// Returns whether it only reads, and if so, whether what a member remembers is enough.
pub fn reads(asked: &TxnRequest) -> Option<bool> {
    let mut operations = asked.success.iter().chain(&asked.failure);
    operations.try_fold(true, |from_memory, operation| match &operation.request {
        Some(Request::Range(range)) => Some(from_memory && range.serializable),
        _ => None,
    })
}

impl Store {
    pub fn transact(&mut self, asked: &TxnRequest) -> Result<TxnResponse, Status> {
        let succeeded = asked.compare.iter().all(|compare| self.holds(compare));
        let requests = if succeeded {
            &asked.success
        } else {
            &asked.failure
        };
        let requests: Vec<&Request> = requests
            .iter()
            .filter_map(|op| op.request.as_ref())
            .collect();
        // All leases first, as an etcd does.
        for request in &requests {
            if let Request::Put(put) = request {
                self.check_put(put)?;
            }
        }
        let is_ahead = |request: &&Request| match request {
            Request::Range(range) => range.revision > self.revision,
            Request::Put(_) | Request::DeleteRange(_) | Request::Txn(_) => false,
        };
        if requests.iter().any(is_ahead) {
            return Err(Status::future_revision());
        }
        let responses = self.in_batch(|store, events| {
            let operate = |request: &Request| {
                let now = store.revision + i64::from(!events.is_empty());
                let response = match request {
                    Request::Range(range) => {
                        let header = inner_header(now);
                        Response::Range(RangeResponse {
                            header,
                            ..store.read(range, now)
                        })
                    }
                    Request::Put(put) => Response::Put(store.write(put, events)),
                    Request::DeleteRange(gone) => Response::DeleteRange(store.remove(gone, events)),
                    // It was refused before it came into the log.
                    Request::Txn(_) => return ResponseOp::default(),
                };
                let response = Some(response);
                ResponseOp { response }
            };
            requests.into_iter().map(operate).collect()
        });
        let header = self.header();
        Ok(TxnResponse {
            header,
            succeeded,
            responses,
        })
    }

    fn holds(&self, compare: &Compare) -> bool {
        let kvs = self.at(&compare.key, &compare.range_end, self.revision);
        let mut kvs = kvs.peekable();
        if kvs.peek().is_none() {
            // Nothing has no value, not even an empty one.
            const VALUE: i32 = 3;
            return compare.target != VALUE && is_so(compare, &KeyValue::default());
        }
        kvs.all(|kv| is_so(compare, kv))
    }
}

fn is_so(compare: &Compare, kv: &KeyValue) -> bool {
    let number = |operand: Option<i64>| operand.unwrap_or_default();
    let operand = compare.operand.as_ref();
    let as_number = || match operand {
        Some(
            Operand::Version(it) | Operand::Create(it) | Operand::Mod(it) | Operand::Lease(it),
        ) => Some(*it),
        Some(Operand::Value(_)) | None => None,
    };
    let order = match compare.target {
        0 => kv.version.cmp(&number(as_number())),
        1 => kv.create_revision.cmp(&number(as_number())),
        2 => kv.mod_revision.cmp(&number(as_number())),
        3 => match operand {
            Some(Operand::Value(value)) => kv.value.cmp(value),
            _ => kv.value.as_slice().cmp(&[]),
        },
        _ => kv.lease.cmp(&number(as_number())),
    };
    match compare.result {
        0 => order.is_eq(),
        1 => order.is_gt(),
        2 => order.is_lt(),
        _ => order.is_ne(),
    }
}
