use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);

/// A wire between a client and a server that can hold back what is sent. Connections that are
/// made while it holds are not held: they are new ones around the same trouble.
pub struct Wire {
    pub address: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    mode: watch::Sender<Mode>,
    /// The connections that were made, that were held and have ended, and that were refused.
    made: watch::Sender<usize>,
    held_ended: watch::Sender<usize>,
    refused: watch::Sender<usize>,
    refuses: AtomicBool,
    /// The pieces of what clients sent that are held back.
    held_pieces: watch::Sender<usize>,
    /// Connections from this number on are held, and below that one.
    held_from: AtomicUsize,
    held_below: AtomicUsize,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Mode {
    #[default]
    Pass,
    /// Nothing comes through, in both directions.
    Hold,
    /// Requests come through, and answers do not.
    HoldAnswers,
    /// The request that was taken in before comes through, and then the connection ends.
    Cut,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    ToServer,
    ToClient,
}

impl Wire {
    pub async fn to(server: String) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared: Arc<Shared> = Arc::default();
        tokio::spawn(accept(listener, server, shared.clone()));
        Wire { address, shared }
    }

    /// Holds back what is sent on the connections that stand now.
    pub fn hold(&self) {
        let made = *self.shared.made.borrow();
        self.shared.held_below.store(made, Ordering::SeqCst);
        self.shared.mode.send_replace(Mode::Hold);
    }

    /// Holds back what is sent on the next connections, for servers that end each of them after
    /// one answer.
    pub fn hold_next(&self, connections: usize) {
        self.shared.hold_next(connections);
        self.shared.mode.send_replace(Mode::Hold);
    }

    /// Holds back the answers on the next connections.
    pub fn hold_next_answers(&self, connections: usize) {
        self.shared.hold_next(connections);
        self.shared.mode.send_replace(Mode::HoldAnswers);
    }

    pub fn let_requests_go(&self) {
        self.shared.mode.send_replace(Mode::HoldAnswers);
    }

    pub fn let_go(&self) {
        self.shared.mode.send_replace(Mode::Pass);
    }

    /// Ends the held connections. Only the first piece of each that was held on its way to the
    /// server still comes through, as if it had been there by then.
    pub fn cut(&self) {
        self.shared.mode.send_replace(Mode::Cut);
    }

    /// Closes each new connection at once, or stops to do so.
    pub fn refuse(&self, refuses: bool) {
        self.shared.refuses.store(refuses, Ordering::SeqCst);
    }

    pub async fn until_a_request_is_held(&self) {
        reaches(&self.shared.held_pieces, 1, "a held request").await;
    }

    pub async fn until_refused(&self) {
        reaches(&self.shared.refused, 1, "a refused connection").await;
    }

    /// Returns when all connections that were held have ended on both sides, so that the server
    /// has carried out what came through.
    pub async fn until_the_held_ended(&self) {
        let from = self.shared.held_from.load(Ordering::SeqCst);
        let held = self.shared.held_below.load(Ordering::SeqCst) - from;
        reaches(&self.shared.held_ended, held, "the end of held connections").await;
    }
}

impl Shared {
    fn hold_next(&self, connections: usize) {
        let made = *self.made.borrow();
        self.held_from.store(made, Ordering::SeqCst);
        self.held_below.store(made + connections, Ordering::SeqCst);
    }

    fn is_one_held(&self, number: usize) -> bool {
        let from = self.held_from.load(Ordering::SeqCst);
        (from..self.held_below.load(Ordering::SeqCst)).contains(&number)
    }
}

async fn reaches(count: &watch::Sender<usize>, least: usize, what: &str) {
    let mut count = count.subscribe();
    let reached = timeout(DEADLINE, count.wait_for(|count| *count >= least)).await;
    reached
        .unwrap_or_else(|_| panic!("{what} did not come"))
        .unwrap();
}

async fn accept(listener: TcpListener, server: String, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        if shared.refuses.load(Ordering::SeqCst) {
            drop(client);
            shared.refused.send_modify(|count| *count += 1);
            continue;
        }
        let server = TcpStream::connect(&server).await.unwrap();
        let number = *shared.made.borrow();
        shared.made.send_replace(number + 1);
        let shared = shared.clone();
        tokio::spawn(async move {
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            tokio::join!(
                pass(from_client, to_server, number, Way::ToServer, &shared),
                pass(from_server, to_client, number, Way::ToClient, &shared),
            );
            if shared.is_one_held(number) {
                shared.held_ended.send_modify(|count| *count += 1);
            }
        });
    }
}

/// Passes pieces on until the sender or a cut ends it. What a sender sent before it closed still
/// comes through.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    number: usize,
    way: Way,
    shared: &Shared,
) {
    let mut mode = shared.mode.subscribe();
    let is_held = |mode: &Mode| {
        let holds = match mode {
            Mode::Pass | Mode::Cut => false,
            Mode::Hold => true,
            Mode::HoldAnswers => way == Way::ToClient,
        };
        holds && shared.is_one_held(number)
    };
    let is_cut = |mode: &Mode| *mode == Mode::Cut && shared.is_one_held(number);
    let mut bytes = [0; 65_536];
    loop {
        let length = tokio::select! {
            biased;
            _ = mode.wait_for(is_cut) => break,
            length = from.read(&mut bytes) => length.unwrap_or(0),
        };
        if length == 0 {
            break;
        }
        if way == Way::ToServer && is_held(&mode.borrow()) {
            shared.held_pieces.send_modify(|count| *count += 1);
        }
        let now = mode.wait_for(|mode| !is_held(mode)).await.map(|now| *now);
        if way == Way::ToClient && now.is_ok_and(|now| is_cut(&now)) {
            break;
        }
        if to.write_all(&bytes[..length]).await.is_err() {
            // The other side is gone, and nobody needs the rest.
            break;
        }
    }
    let _ = to.shutdown().await;
    // A server closes a connection when it has carried out what came.
    while way == Way::ToClient && from.read(&mut bytes).await.is_ok_and(|length| length > 0) {}
}
