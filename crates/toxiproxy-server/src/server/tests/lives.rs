//! Tests connections while their proxy changes, and the API while connections are stuck.

use super::*;
use futures_util::future::join_all;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::net::TcpSocket;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_disabled_proxy_refuses_and_an_enabled_one_has_its_port_back() {
    let kit = Kit::new().await;
    let (_echo, proxy, mut client) = through_p(&kit).await;
    for _ in 0..20 {
        let disabled = kit.update(&enabled(false)).await;
        assert!(!disabled.enabled);
        assert_eq!(disabled.listen, proxy.listen);
        end_of(&mut client).await;
        let refused = TcpStream::connect(&proxy.listen).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        assert_eq!(kit.update(&enabled(true)).await, proxy);
        client = connect(&proxy).await;
        ping(&mut client).await;
    }
}

#[tokio::test]
async fn a_new_upstream_closes_what_leads_to_the_old_one() {
    let kit = Kit::new().await;
    let (_old, proxy, mut client) = through_p(&kit).await;
    kit.add(Stream::Upstream, ToxicKind::Noop).await;
    let new = echo("new").await;
    let changed = kit.update(&led_to(&new.address)).await;
    assert_eq!((&changed.listen, changed.enabled), (&proxy.listen, true));
    assert_eq!(changed.toxics.len(), 1, "toxics stay");
    end_of(&mut client).await;
    assert_eq!(read_text(&mut connect(&proxy).await, 3).await, "new");
}

#[tokio::test]
async fn a_new_listen_address_is_bound_and_a_bad_one_disables() {
    let kit = Kit::new().await;
    let (_echo, proxy, _client) = through_p(&kit).await;
    let listen = |listen: &str| ProxyChange {
        listen: Some(listen.into()),
        ..ProxyChange::default()
    };
    let moved = kit.update(&listen("127.0.0.1:0")).await;
    assert_ne!(moved.listen, proxy.listen);
    ping(&mut connect(&moved).await).await;
    TcpStream::connect(&proxy.listen)
        .await
        .expect_err("the old port is closed");
    let (_listens, taken) = listener().await;
    let error = kit.client.update("p", &listen(&taken)).await.unwrap_err();
    assert_eq!(error.status(), Some(500));
    assert!(!kit.client.proxy("p").await.unwrap().enabled);
    // The same address in other words is not a change.
    let port = moved.listen.rsplit_once(':').unwrap().1;
    kit.update(&listen(&moved.listen)).await;
    kit.update(&enabled(true)).await;
    let mut client = connect(&moved).await;
    ping(&mut client).await;
    kit.update(&listen(&format!("localhost:{port}"))).await;
    ping(&mut client).await;
}

#[tokio::test]
async fn an_address_that_cannot_be_resolved_changes_nothing() {
    let kit = Kit::new().await;
    let (echo, proxy, mut client) = through_p(&kit).await;
    kit.add(Stream::Upstream, ToxicKind::Noop).await;
    let shown = kit.client.proxy("p").await.unwrap();
    for listen in ["no.such.host.invalid:1", "x"] {
        let change = ProxyChange {
            listen: Some(listen.into()),
            upstream: Some("127.0.0.1:9".into()),
            enabled: Some(false),
        };
        let refused = kit.client.update("p", &change).await.unwrap_err();
        assert_eq!(refused.status(), Some(500), "{refused}");
        let wanted = NewProxy {
            listen: listen.into(),
            ..new_proxy("p", &echo.address)
        };
        let refused = kit.client.populate(&[wanted]).await.unwrap_err();
        assert_eq!(refused.status(), Some(500), "{refused}");
        assert_eq!(kit.client.proxy("p").await.unwrap(), shown);
        ping(&mut client).await;
        ping(&mut connect(&proxy).await).await;
    }
}

#[tokio::test]
async fn an_upstream_that_refuses_closes_the_client() {
    let kit = Kit::new().await;
    let (nobody, address) = listener().await;
    drop(nobody);
    let proxy = kit.proxy("p", &address).await;
    assert_eq!(end_of(&mut connect(&proxy).await).await.0, b"");
}

#[tokio::test]
async fn an_upstream_that_says_nothing_holds_up_nobody_else() {
    let dial_timeout = Duration::from_secs(2);
    let kit = Kit::with(Settings {
        dial_timeout,
        ..Settings::default()
    });
    let kit = kit.await;
    // A listener whose backlog is full does not answer a SYN.
    let hole = TcpSocket::new_v4().unwrap();
    hole.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let hole = hole.listen(1).unwrap();
    let address = hole.local_addr().unwrap();
    let mut fillers = Vec::new();
    while let Ok(filler) = timeout(A_WHILE * 3, TcpStream::connect(address)).await {
        fillers.push(filler.unwrap());
        assert!(fillers.len() < 100, "a backlog of one is soon full");
    }
    let proxy = kit.proxy("p", &address.to_string()).await;
    let start = Instant::now();
    let clients = (0..20).map(|_| async {
        let mut client = connect(&proxy).await;
        end_of(&mut client).await;
    });
    join_all(clients).await;
    let took = start.elapsed();
    assert!(took >= dial_timeout, "{took:?}: the upstream did answer");
    assert!(took < dial_timeout * 10, "{took:?}: one after another");
    let _waits = connect(&proxy).await;
    let start = Instant::now();
    kit.update(&enabled(false)).await;
    let took = start.elapsed();
    assert!(took < dial_timeout, "nor does a dial hold up the API");
}

#[tokio::test]
async fn toxics_come_and_go_at_once_under_load() {
    let kit = Kit::new().await;
    let echo = echo("").await;
    let proxy = kit.proxy("p", &echo.address).await;
    // Nobody reads the answers, so every connection is stuck in the end.
    let stuck = (0..50).map(|_| async {
        let mut client = connect(&proxy).await;
        let (block, moment) = ([b'x'; 1 << 16], Duration::from_millis(20));
        while timeout(moment, client.write(&block)).await.is_ok() {}
        client
    });
    let _stuck = timeout(SOON * 6, join_all(stuck)).await.unwrap();
    let mut worst = Duration::ZERO;
    for kind in [
        bandwidth(0),
        bandwidth(1),
        latency(60_000, 10),
        ToxicKind::SlowClose { delay_ms: 60_000 },
    ] {
        for stream in Stream::ALL {
            let start = Instant::now();
            let toxic = kit.add(stream, kind).await;
            kit.remove(&toxic).await;
            worst = worst.max(start.elapsed());
        }
    }
    assert!(worst < Duration::from_secs(5), "{worst:?}");
    let start = Instant::now();
    kit.client.delete("p").await.unwrap();
    let took = start.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn toxics_that_come_and_go_lose_nothing_and_change_no_order() {
    /// Returns 1,000 numbers from `from` on, as bytes.
    fn block(from: u32) -> Vec<u8> {
        (from..from + 1_000).flat_map(u32::to_le_bytes).collect()
    }
    const LAST: u32 = 4_000_000_000;

    let kit = Kit::new().await;
    let (_echo, _proxy, client) = through_p(&kit).await;
    let (mut read, mut write) = client.into_split();
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    // Limits the blocks under way: more would test how much sockets can hold.
    let window = Arc::new(Semaphore::new(50));
    let freed = window.clone();
    let writer = tokio::spawn(async move {
        let mut from = 0;
        while !stopped.is_cancelled() {
            window.acquire().await.expect("never closed").forget();
            write.write_all(&block(from)).await.expect("written");
            from += 1_000;
        }
        write.write_all(&block(LAST)).await.expect("written");
        write
    });
    let reader = tokio::spawn(async move {
        let (mut bytes, mut from) = (block(0), 0);
        loop {
            read.read_exact(&mut bytes).await.expect("it goes on");
            if bytes == block(LAST) {
                return from;
            }
            assert!(bytes == block(from), "block {from} is not what was sent");
            freed.add_permits(1);
            from += 1_000;
        }
    });
    for change in 0..100 {
        let kind = match change % 5 {
            0 => bandwidth(0),
            1 => latency(3, 2),
            2 => slicer(700, 300, 5),
            3 => bandwidth(5_000),
            _ => ToxicKind::Noop,
        };
        let stream = Stream::ALL[change % 2];
        let first = kit.add(stream, kind).await;
        let second = Toxic {
            name: "second".into(),
            ..Toxic::new(stream, ToxicKind::SlowClose { delay_ms: 1 })
        };
        kit.client.add_toxic("p", &second).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
        kit.remove(&first).await;
        kit.client.remove_toxic("p", "second").await.unwrap();
    }
    stop.cancel();
    let numbers = timeout(SOON, reader).await.expect("the last comes");
    let numbers = numbers.expect("everything came in order");
    assert!(numbers > 10_000, "{numbers} numbers are no load");
    writer.await.expect("everything was written");
}

#[tokio::test]
async fn the_end_of_either_side_closes_the_other() {
    let kit = Kit::new().await;
    let (server, address) = listener().await;
    let proxy = kit.proxy("p", &address).await;
    let mut client = connect(&proxy).await;
    let (mut behind, _) = server.accept().await.unwrap();
    behind.write_all(b"last words").await.unwrap();
    behind.shutdown().await.unwrap();
    assert_eq!(end_of(&mut client).await.0, b"last words");
    let rest = end_of(&mut behind).await.0;
    assert_eq!(rest, b"", "the way there is closed as well");
    let mut client = connect(&proxy).await;
    let (mut behind, _) = server.accept().await.unwrap();
    client.write_all(b"last words").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(end_of(&mut behind).await.0, b"last words");
    assert_eq!(end_of(&mut client).await.0, b"", "and so is the way back");
}

#[tokio::test]
async fn shutdown_closes_everything_soon() {
    let kit = Kit::new().await;
    let (_echo, proxy, mut client) = through_p(&kit).await;
    kit.add(Stream::Upstream, bandwidth(0)).await;
    client.write_all(b"held").await.unwrap();
    let start = Instant::now();
    kit.stop().await;
    let took = start.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    end_of(&mut client).await;
    TcpStream::connect(&proxy.listen)
        .await
        .expect_err("it is closed");
}
