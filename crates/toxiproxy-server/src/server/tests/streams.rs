//! Tests every toxic on real connections, in both directions, while they are open.

use super::*;
use std::io::ErrorKind;
use tokio::time::Instant;

const STALL: ToxicKind = bandwidth(0);

async fn anew() -> (Kit, Echo, Proxy, TcpStream) {
    let kit = Kit::new().await;
    let (echo, proxy, client) = through_p(&kit).await;
    (kit, echo, proxy, client)
}

#[tokio::test]
async fn latency_delays_either_way() {
    for stream in Stream::ALL {
        let (kit, _echo, _proxy, mut client) = anew().await;
        let kind = latency(150, 0);
        let toxic = kit.add(stream, kind).await;
        let start = Instant::now();
        ping(&mut client).await;
        assert!(start.elapsed() >= Duration::from_millis(150), "{stream}");
        kit.remove(&toxic).await;
        ping(&mut client).await;
    }
}

#[tokio::test]
async fn a_stall_holds_bytes_back_either_way_and_loses_none() {
    for stream in Stream::ALL {
        let (kit, _echo, _proxy, mut client) = anew().await;
        let toxic = kit.add(stream, STALL).await;
        client.write_all(b"one").await.unwrap();
        is_silent(&kit, &client).await;
        client.write_all(b"two").await.unwrap();
        kit.remove(&toxic).await;
        assert_eq!(read_text(&mut client, 6).await, "onetwo", "{stream}");
        kit.add(stream, STALL).await;
        client.write_all(b"three").await.unwrap();
        is_silent(&kit, &client).await;
        kit.change(&toxic, Some(bandwidth(1_000)), None).await;
        assert_eq!(read_text(&mut client, 5).await, "three", "{stream}");
    }
}

#[tokio::test]
async fn bandwidth_takes_its_time() {
    for stream in Stream::ALL {
        let (kit, _echo, _proxy, mut client) = anew().await;
        kit.add(stream, bandwidth(100)).await;
        let start = Instant::now();
        client.write_all(&[b'x'; 50_000]).await.unwrap();
        read_text(&mut client, 50_000).await;
        let took = start.elapsed();
        assert!(took >= Duration::from_millis(490), "{stream}: {took:?}");
    }
}

#[tokio::test]
async fn slow_close_delays_the_end() {
    for stream in Stream::ALL {
        let (kit, _echo, _proxy, mut client) = anew().await;
        kit.add(stream, ToxicKind::SlowClose { delay_ms: 200 })
            .await;
        let start = Instant::now();
        client.shutdown().await.unwrap();
        end_of(&mut client).await;
        assert!(start.elapsed() >= Duration::from_millis(200), "{stream}");
    }
}

#[tokio::test]
async fn timeout_drops_everything_and_closes() {
    for stream in Stream::ALL {
        let (kit, _echo, _proxy, mut client) = anew().await;
        kit.add(stream, ToxicKind::Timeout { timeout_ms: 150 })
            .await;
        client.write_all(b"lost").await.unwrap();
        let start = Instant::now();
        let (rest, _) = end_of(&mut client).await;
        assert_eq!(rest, b"", "{stream}");
        assert!(start.elapsed() >= Duration::from_millis(100), "{stream}");
    }
}

#[tokio::test]
async fn timeout_zero_loses_data_and_closes_when_it_is_removed() {
    for stream in Stream::ALL {
        let (kit, _echo, proxy, mut client) = anew().await;
        let toxic = kit.add(stream, ToxicKind::Timeout { timeout_ms: 0 }).await;
        client.write_all(b"lost").await.unwrap();
        is_silent(&kit, &client).await;
        let mut another = connect(&proxy).await;
        another.write_all(b"lost too").await.unwrap();
        is_silent(&kit, &another).await;
        kit.remove(&toxic).await;
        assert_eq!(end_of(&mut client).await.0, b"", "{stream}");
        assert_eq!(end_of(&mut another).await.0, b"", "{stream}");
        ping(&mut connect(&proxy).await).await;
    }
}

#[tokio::test]
async fn reset_peer_resets_old_and_new_connections_on_both_sides() {
    for stream in Stream::ALL {
        let kit = Kit::new().await;
        let (server, address) = listener().await;
        let proxy = kit.proxy("p", &address).await;
        let mut old = connect(&proxy).await;
        let (mut old_behind, _) = server.accept().await.unwrap();
        old.write_all(b"a").await.unwrap();
        read_text(&mut old_behind, 1).await;
        kit.add(stream, ToxicKind::ResetPeer { timeout_ms: 50 })
            .await;
        let reset = Some(ErrorKind::ConnectionReset);
        assert_eq!(end_of(&mut old).await.1, reset, "{stream}");
        assert_eq!(end_of(&mut old_behind).await.1, reset, "{stream}");
        let mut new = connect(&proxy).await;
        assert_eq!(end_of(&mut new).await.1, reset, "{stream}");
    }
}

#[tokio::test]
async fn reset_peer_spares_a_client_that_is_still_connecting() {
    for stream in Stream::ALL {
        let (kit, _echo, proxy, _client) = anew().await;
        kit.add(stream, ToxicKind::ResetPeer { timeout_ms: 0 })
            .await;
        for _ in 0..200 {
            // A connection that is reset before anybody asks for it.
            let mut client = connect(&proxy).await;
            tokio::task::yield_now().await;
            client.write_all(b"a").await.expect("it was connected");
            let reset = Some(ErrorKind::ConnectionReset);
            assert_eq!(end_of(&mut client).await.1, reset, "{stream}");
        }
        let mut silent = connect(&proxy).await;
        let reset = Some(ErrorKind::ConnectionReset);
        assert_eq!(
            end_of(&mut silent).await.1,
            reset,
            "{stream}: without a word"
        );
    }
}

#[tokio::test]
async fn slicer_changes_nothing_but_the_pieces() {
    for stream in Stream::ALL {
        let (kit, _echo, _proxy, mut client) = anew().await;
        let kind = slicer(100, 50, 10);
        kit.add(stream, kind).await;
        let said: String = ('a'..='z').cycle().take(20_000).collect();
        client.write_all(said.as_bytes()).await.unwrap();
        assert_eq!(read_text(&mut client, said.len()).await, said, "{stream}");
    }
}

#[tokio::test]
async fn limit_data_closes_after_so_many_bytes() {
    for stream in Stream::ALL {
        let (kit, _echo, _proxy, mut client) = anew().await;
        kit.add(stream, ToxicKind::LimitData { bytes: 3 }).await;
        client.write_all(b"abcdef").await.unwrap();
        let (rest, _) = end_of(&mut client).await;
        // Upstream, closing may cut off the answer to the bytes that passed.
        assert!(b"abc".starts_with(rest.as_slice()), "{stream}: {rest:?}");
        if stream == Stream::Downstream {
            assert_eq!(rest, b"abc");
        }
    }
}

#[tokio::test]
async fn a_stalled_connection_pushes_back_on_the_sender() {
    let (kit, _echo, _proxy, mut client) = anew().await;
    let toxic = kit.add(Stream::Upstream, STALL).await;
    let block = vec![b'x'; 1 << 20];
    let mut taken = 0;
    while let Ok(written) = timeout(A_WHILE, client.write(&block)).await {
        taken += written.unwrap();
        let least = "the buffers of two sockets and one chain are smaller";
        assert!(taken < 64 << 20, "{least}");
    }
    kit.remove(&toxic).await;
    let mut left = taken;
    let mut buffer = vec![0; 1 << 16];
    while left > 0 {
        let read = timeout(SOON, client.read(&mut buffer)).await;
        let read = read.unwrap().unwrap();
        assert_ne!(read, 0, "{left} of {taken} bytes are missing");
        left -= read;
    }
}

#[tokio::test]
async fn toxicity_spares_some_and_can_be_changed_on_the_living() {
    let (kit, _echo, _proxy, mut client) = anew().await;
    let toxic = Toxic {
        toxicity: 0.0,
        ..Toxic::new(Stream::Upstream, STALL)
    };
    kit.client.add_toxic("p", &toxic).await.unwrap();
    ping(&mut client).await;
    kit.change(&toxic, None, Some(1.0)).await;
    client.write_all(b"held").await.unwrap();
    is_silent(&kit, &client).await;
    kit.change(&toxic, None, Some(0.0)).await;
    assert_eq!(read_text(&mut client, 4).await, "held");
}
