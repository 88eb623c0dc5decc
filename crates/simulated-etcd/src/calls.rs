//! The calls of etcd's API.

use crate::Etcd;
use crate::api::*;
use crate::grpc::{Answers, Requests};
use crate::http1::VERSION;
use crate::lock;
use crate::peer::Deed;
use crate::state::Answered;
use crate::status::Status;
use crate::txn;
use crate::watch;
use http::request::Parts;
use prost::Message;
use std::pin::pin;

/// Answers one call, until its client has what it wants or gives up.
pub async fn answer(etcd: &Etcd, head: Parts, mut requests: Requests, mut answers: Answers) {
    let path = head.uri.path();
    let leader = head.headers.get("hasleader");
    let needs_leader = leader.is_some_and(|value| value == "true");
    let leads = etcd.check_leader(needs_leader);
    let ended = match path {
        WATCH | KEEP_ALIVE if leads.is_err() => leads,
        WATCH => watch::serve(etcd, &mut requests, &mut answers, needs_leader).await,
        KEEP_ALIVE => keep_alive(etcd, &mut requests, &mut answers, needs_leader).await,
        LOCK if leads.is_ok() => lock::serve(etcd, &mut requests, &mut answers).await,
        _ => tokio::select! {
            biased;
            answered = unary(etcd, path, &mut requests, leads) => {
                answered.and_then(|answer| answers.send(&answer))
            }
            () = answers.given_up() => return,
        },
    };
    answers.end(ended);
}

const WATCH: &str = "/etcdserverpb.Watch/Watch";
const KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
const LOCK: &str = "/v3lockpb.Lock/Lock";

async fn unary(
    etcd: &Etcd,
    path: &str,
    requests: &mut Requests,
    leads: Result<(), Status>,
) -> Answered {
    let answered = match leads {
        Ok(()) => once(etcd, path, requests).await,
        Err(status) => Err(status),
    };
    requests.finish().await;
    answered
}

async fn once(etcd: &Etcd, path: &str, requests: &mut Requests) -> Answered {
    match path {
        "/etcdserverpb.KV/Range" => range(etcd, &requests.only().await?).await,
        "/etcdserverpb.KV/Put" => {
            let put: PutRequest = requests.only().await?;
            if put.key.is_empty() {
                return Err(Status::empty_key());
            }
            etcd.carry_out(Some(Deed::Put(put))).await
        }
        "/etcdserverpb.KV/DeleteRange" => {
            let gone: DeleteRangeRequest = requests.only().await?;
            if gone.key.is_empty() {
                return Err(Status::empty_key());
            }
            etcd.carry_out(Some(Deed::DeleteRange(gone))).await
        }
        "/etcdserverpb.KV/Txn" => transact(etcd, requests.only().await?).await,
        "/etcdserverpb.Lease/LeaseGrant" => grant(etcd, requests.only().await?).await,
        "/etcdserverpb.Lease/LeaseRevoke" => {
            etcd.carry_out(Some(Deed::Revoke(requests.only().await?)))
                .await
        }
        "/etcdserverpb.Lease/LeaseTimeToLive" => time_to_live(etcd, requests.only().await?).await,
        "/etcdserverpb.Maintenance/Status" => Ok(status(etcd)),
        "/v3lockpb.Lock/Unlock" => lock::unlock(etcd, requests.only().await?).await,
        other => Err(Status::not_simulated(other)),
    }
}

pub async fn range(etcd: &Etcd, asked: &RangeRequest) -> Answered {
    if !asked.serializable {
        etcd.confirm().await?;
    }
    etcd.change(|state| {
        state.header();
        Ok(state.store.range(asked)?.encode_to_vec())
    })
}

pub async fn transact(etcd: &Etcd, asked: TxnRequest) -> Answered {
    txn::check(&asked)?;
    match txn::reads(&asked) {
        None => return etcd.carry_out(Some(Deed::Txn(asked))).await,
        Some(false) => etcd.confirm().await?,
        Some(true) => {}
    }
    etcd.change(|state| {
        state.header();
        Ok(state.store.transact(&asked)?.encode_to_vec())
    })
}

/// Grants a lease, with a name of its own unless one is asked for.
pub async fn grant(etcd: &Etcd, mut asked: LeaseGrantRequest) -> Answered {
    if asked.id == 0 {
        asked.id = etcd.change(|state| state.next_number()) as i64;
    }
    etcd.carry_out(Some(Deed::Grant(asked))).await
}

async fn time_to_live(etcd: &Etcd, asked: LeaseTimeToLiveRequest) -> Answered {
    let left_s = etcd.lease_left(asked.id, false).await?;
    let is_known = etcd.change(|state| state.store.leases.contains_key(&asked.id));
    if left_s.is_some() && !is_known {
        // The leader granted it, and this member has not learned of that yet.
        etcd.confirm().await?;
    }
    etcd.change(|state| {
        let mut answer = LeaseTimeToLiveResponse {
            header: state.header(),
            id: asked.id,
            ttl: -1,
            ..LeaseTimeToLiveResponse::default()
        };
        if let (Some(left_s), Some(lease)) = (left_s, state.store.leases.get(&asked.id)) {
            answer.ttl = left_s;
            answer.granted_ttl = lease.ttl_s;
            if asked.keys {
                answer.keys = lease.keys.iter().cloned().collect();
            }
        }
        Ok(answer.encode_to_vec())
    })
}

fn status(etcd: &Etcd) -> Vec<u8> {
    etcd.change(|state| {
        let header = state.header();
        let raft = &state.raft;
        let answer = StatusResponse {
            header,
            version: VERSION.to_owned(),
            leader: raft.leader.unwrap_or_default(),
            raft_index: raft.last_index(),
            raft_term: raft.disk.term,
            raft_applied_index: raft.disk.applied,
        };
        answer.encode_to_vec()
    })
}

async fn keep_alive(
    etcd: &Etcd,
    requests: &mut Requests,
    answers: &mut Answers,
    needs_leader: bool,
) -> Result<(), Status> {
    let mut leaderless = pin!(etcd.leaderless(needs_leader));
    loop {
        let asked: Option<LeaseKeepAliveRequest> = tokio::select! {
            biased;
            asked = requests.next() => asked?,
            status = &mut leaderless => return Err(status),
        };
        let Some(LeaseKeepAliveRequest { id }) = asked else {
            return Ok(());
        };
        // As of before the lease is prolonged.
        let header = etcd.change(|state| state.header());
        let ttl = etcd.renew(id).await?;
        let answer = LeaseKeepAliveResponse { header, id, ttl };
        answers.send(&answer.encode_to_vec())?;
    }
}
