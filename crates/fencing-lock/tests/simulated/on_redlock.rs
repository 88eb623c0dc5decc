use super::peer::Answer::Reply;
use super::peer::Line::Say;
use super::world::{EPOCH_S, Seeded};
use super::{client, no_name_is_in_both, play};
use fencing_lock::{RedlockBackend, RedlockSettings};
use std::sync::Arc;

async fn majority(world: Arc<Seeded>) {
    let hosts = ["a", "b", "c"];
    for host in hosts {
        world.host(host, [Say(Reply(1, &[9])), Say(Reply(1, &[]))]);
    }
    let servers = hosts.map(|host| format!("{host}:6379"));
    let settings = RedlockSettings::default();
    let backend = RedlockBackend::with_env(&servers, settings, world.env()).unwrap();
    let lease = client(backend, world.seed).try_acquire("k").await.unwrap();
    let lease = lease.expect("granted");
    assert_eq!(lease.fence().0, 9);
    lease.release().await;
}

#[test]
fn a_majority_is_asked_the_same_again_by_the_clock_of_the_world() {
    let plays = play(majority);
    no_name_is_in_both(&plays);
    let proposal = (EPOCH_S * 1_000_000).to_string();
    let proposed = plays[0].iter().filter(|line| line.contains(&proposal));
    assert_eq!(proposed.count(), 3, "{:#?}", plays[0]);
}
