//! Three etcd members: what a pair costs beyond two commits, and many who want
//! one key, beside the lock that the server itself offers.

use crate::blocks::{print, take_turns};
use crate::hot_key::{self, Contestant};
use crate::peers::{EtcdLockApi, EtcdPuts, Ours};
use crate::targets::{Bound, Targets};
use crate::uncontended::candidate;
use crate::{Arguments, Trouble, servers};
use fencepost::services::Backend;
use servers::Server;
use std::time::Duration;
use tokio::task::block_in_place;

const ROUNDS: usize = 20;
const ROUNDS_OF_HOT_KEY: usize = 3;
/// Commits are slow: of fewer grants, one percent would be nobody.
const TURN: Duration = Duration::from_secs(5);

pub async fn measure(arguments: &Arguments) -> Result<Targets, Trouble> {
    let members = servers::addresses(block_in_place(servers::three_etcd));
    let floor = EtcdPuts {
        members: members.clone(),
    };
    let mut candidates = [
        candidate(&floor).await?,
        candidate(&Ours::new(Backend::Etcd, &members)).await?,
        candidate(&Ours::new(Backend::EtcdLockApi, &members)).await?,
        candidate(&api(&members, true)).await?,
        candidate(&api(&members, false)).await?,
    ];
    take_turns(&mut candidates, arguments.rounds(ROUNDS), arguments.pairs).await?;
    print(
        "Uncontended acquire + release, three etcd members",
        &candidates,
    );
    let mut targets = Targets::default();
    let ours = candidates[1].ratio_to(&candidates[0]);
    let what = "uncontended, etcd: beside two bare puts";
    targets.expect(what.to_owned(), ours, Bound::AtMost(1.0));
    Ok(targets)
}

pub async fn measure_hot_key(arguments: &Arguments) -> Result<Targets, Trouble> {
    let servers = block_in_place(servers::three_etcd);
    let members = servers::addresses(servers);
    let mut targets = Targets::default();
    for &contenders in &arguments.contenders {
        let mut all = [
            Contestant::new(api(&members, true)),
            Contestant::new(Ours::new(Backend::Etcd, &members).in_one_process()),
            Contestant::new(Ours::new(Backend::Etcd, &members)),
        ];
        for round in 0..arguments.rounds(ROUNDS_OF_HOT_KEY) {
            for turn in 0..all.len() {
                let number = (round + turn) % all.len();
                restart(servers);
                all[number].compete(contenders, arguments.hot(TURN)).await?;
            }
        }
        hot_key::print(
            &format!("Hot key, three etcd members, {contenders} contenders, no work"),
            &all,
        );
        let [api, ours, own_sessions] = &all;
        for (ours, how, aim) in [
            (ours, "ours", 1.2),
            (own_sessions, "ours, as processes", 1.5),
        ] {
            targets.expect(
                format!("etcd hot key, {contenders}: hand-offs/s, {how}, beside the Lock API"),
                ours.ratio_to(api),
                Bound::AtLeast(aim),
            );
            targets.expect(
                format!("etcd hot key, {contenders}: % of grants out of order, {how}"),
                ours.out_of_order(),
                Bound::Below(1.0),
            );
        }
    }
    Ok(targets)
}

/// After many waiting calls the server's Lock service can hang for ever (etcd
/// issue 13336): each contest starts on servers that have seen none.
fn restart(servers: &[Server]) {
    block_in_place(|| {
        for server in servers {
            server.stop();
        }
        servers::start_together(servers);
    });
}

fn api(members: &[String], own_lease: bool) -> EtcdLockApi {
    EtcdLockApi {
        members: members.to_owned(),
        own_lease,
    }
}
