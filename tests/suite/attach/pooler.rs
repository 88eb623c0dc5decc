//! A Postgres behind something that ignores the options of a session, as poolers do.

use crate::support::*;
use fencing_lock::servers::connect_postgres;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// Passes one session on, without its options.
async fn pass_on(mut client: TcpStream, server: String) -> io::Result<()> {
    let length = client.read_u32().await? as usize;
    let mut startup = vec![0; length - 4];
    client.read_exact(&mut startup).await?;
    let (version, settings) = startup.split_at(4);
    let texts: Vec<&[u8]> = settings.split(|byte| *byte == 0).collect();
    let mut kept = version.to_vec();
    for pair in texts
        .chunks(2)
        .filter(|pair| pair.len() == 2 && pair[0] != b"options")
    {
        for text in pair.iter().filter(|_| !pair[0].is_empty()) {
            kept.extend_from_slice(text);
            kept.push(0);
        }
    }
    kept.push(0);
    let mut server = TcpStream::connect(server).await?;
    server.write_u32(kept.len() as u32 + 4).await?;
    server.write_all(&kept).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_through_a_pooler_that_ignores_the_schema() {
    let _turn = docker_shared();
    let postgres = own_postgres();
    let server = postgres.address.clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let pooler = listener.local_addr().expect("bound").to_string();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(pass_on(client, server.clone()));
        }
    });
    let at = format!("topology.attach.postgres={pooler}");
    let scenario = "pause-gt-ttl-postgres";
    let store = format!("postgres://{pooler}");
    let run = ["run", scenario, "--runtime", "local", "--yes", "--set", &at];
    for arguments in [&run[..], &["certify", &store]] {
        fencepost(arguments)
            .expect_code(69)
            .expect_said(&["something on the way ignores their options"]);
    }
    let session = connect_postgres(&postgres.address, Duration::from_secs(5), |_| {});
    let left = "SELECT count(*) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace \
        WHERE n.nspname LIKE 'fencepost%' OR relname LIKE 'fencepost%'";
    let left = session.await.unwrap().query_one(left, &[]).await.unwrap();
    assert_eq!(left.get::<_, i64>(0), 0);
}
