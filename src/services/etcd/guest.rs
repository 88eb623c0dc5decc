use crate::services::guest::*;
use etcd_client::{ConnectOptions, GetOptions};
use fencing_lock::servers::{EtcdFailure, EtcdWire, check_etcd_address, etcd_wire};

pub const GUEST: Guest = Guest {
    port: 2379,
    has_login: false,
    has_database: false,
    writes: |prefix| {
        format!(
            "keys whose names have {prefix} in them, and a key below /sessions/ for each worker, which ends with its lease"
        )
    },
    setting: None,
    sees_others: true,
    environment: |_| Vec::new(),
    url: |door| door.server.to_owned(),
    look: |url| {
        Box::pin(async {
            check_etcd_address(url)?;
            Ok(look(url).await?)
        })
    },
    begin: |_, _| Box::pin(async { Ok(()) }),
    remove: |url, prefix| Box::pin(async move { Ok(remove(url, prefix).await?) }),
};

/// The first of all keys.
const FIRST: &[u8] = b"\0";
const KEYS_A_STEP: i64 = 5000;

async fn connect(url: &str) -> Result<EtcdWire, EtcdFailure> {
    etcd_wire(url, ConnectOptions::new()).await
}

async fn look(url: &str) -> Result<Sighting, EtcdFailure> {
    let mut wire = connect(url).await?;
    let status = wire.maintenance.status().await?;
    let (cluster, member) = status
        .header()
        .map_or((0, 0), |header| (header.cluster_id(), header.member_id()));
    let all = GetOptions::new().with_from_key().with_count_only();
    let keys = wire.kv.get(FIRST, Some(all)).await?.count();
    let keys = counted(u64::try_from(keys).unwrap_or(0), "key", "keys");
    Ok(Sighting {
        identity: format!("member {member:x} of the cluster {cluster:x}"),
        version: status.version().to_owned(),
        signs: keys.into_iter().collect(),
    })
}

/// Removes every key whose name has the prefix in it, whatever a library puts before it.
async fn remove(url: &str, prefix: &str) -> Result<(), EtcdFailure> {
    let mut wire = connect(url).await?;
    let mut from = FIRST.to_vec();
    loop {
        let options = GetOptions::new().with_from_key().with_keys_only();
        let options = options.with_limit(KEYS_A_STEP);
        let answer = wire.kv.get(from.clone(), Some(options)).await?;
        for key in answer.kvs().iter().map(|entry| entry.key()) {
            let mut parts = key.windows(prefix.len());
            if parts.any(|part| part == prefix.as_bytes()) {
                wire.kv.delete(key, None).await?;
            }
        }
        match answer.kvs().last() {
            Some(last) if answer.more() => {
                from = last.key().to_vec();
                // The next key in the order of keys.
                from.push(0);
            }
            _ => return Ok(()),
        }
    }
}
