use super::super::Mutant;
use super::*;
use WriteAnswer::{Accepted, Rejected};

async fn start(mutant: Mutant, dir: &Path) -> Server {
    let mut config = Config::new(Fence::On, dir);
    config.mutant = Some(mutant);
    Server::configured(config).await
}

#[tokio::test]
async fn one_ignores_tokens() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(Mutant::IgnoreToken, dir.path()).await;
    assert_eq!(server.put(2, 0, "new").await, Accepted { position: 1 });
    assert_eq!(server.put(1, 0, "old").await, Accepted { position: 2 });
    let row = server.client.log().await.unwrap().remove(1);
    assert_eq!(row.seen, Some(FencingToken(2)), "the judge can see it");
    server.stop().await;
}

#[tokio::test]
async fn one_accepts_equal_tokens() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(Mutant::AcceptEqual, dir.path()).await;
    assert_eq!(server.put(2, 0, "a").await, Accepted { position: 1 });
    assert_eq!(server.put(2, 0, "b").await, Accepted { position: 2 });
    assert!(matches!(server.put(1, 0, "c").await, Rejected { .. }));
    server.stop().await;
}

#[tokio::test]
async fn one_forgets_at_restart() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(Mutant::ForgetMaxFence, dir.path()).await;
    server.put(2, 0, "new").await;
    assert!(matches!(server.put(1, 0, "old").await, Rejected { .. }));
    server.stop().await;
    let server = start(Mutant::ForgetMaxFence, dir.path()).await;
    assert_eq!(server.put(1, 0, "old").await, Accepted { position: 3 });
    server.stop().await;
}
