//! For how long a worker plays, and how long it waits.

use super::kit::*;
use crate::support::docker_shared;
use fencepost::model::{EventKind, Fence};
use std::time::Duration;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

#[tokio::test]
async fn rounds_are_played_until_the_time_is_over() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    let told = place
        .worker("a", "--for 500ms --work 1ms")
        .told_to_the_end()
        .await;
    assert!(done(&told) > 1, "{told:?}");
    assert_eq!(
        done(&told),
        count(&told, "released"),
        "the last one is whole"
    );

    let flags = "--for 1m --rounds 2 --work 1ms";
    let told = place.worker("a", flags).told_to_the_end().await;
    assert_eq!(done(&told), 2, "rounds are the most there are");
}

#[tokio::test]
async fn failing_rounds_do_not_become_a_storm() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    let flags = format!("--for 500ms --resource http://{NOBODY}");
    let told = place.worker("a", &flags).told_to_the_end().await;
    let failed = count(&told, "failed");
    assert!((1..=6).contains(&failed), "{failed} in half a second");
    assert_eq!(done(&told), failed);
}

#[tokio::test]
async fn an_answer_may_take_longer_than_many_a_ttl() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    let slow = slow_way_to(&place.resource, Duration::from_secs(6)).await;
    let flags = format!("--ttl 60s --work 1ms --resource {slow}");
    let told = place.worker("a", &flags).told_to_the_end().await;
    assert_eq!(count(&told, "write_accepted"), 1, "{told:?}");
}

/// Holds back what is said on a connection for a while, and then lets it through.
async fn slow_way_to(resource: &str, delay: Duration) -> String {
    let address = resource.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let slow = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.unwrap();
        sleep(delay).await;
        let mut far = TcpStream::connect(address).await.unwrap();
        copy_bidirectional(&mut near, &mut far).await
    });
    slow
}

fn count(told: &[EventKind], name: &str) -> u32 {
    let names = names(told);
    names.iter().filter(|told| **told == name).count() as u32
}

fn done(told: &[EventKind]) -> u32 {
    match told.last() {
        Some(EventKind::Done { rounds }) => *rounds,
        other => panic!("{other:?}"),
    }
}
