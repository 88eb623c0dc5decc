use tokio::net::{TcpListener, TcpStream};

/// Starts a server that says whatever the test wants, and returns its address.
pub async fn stranger<F: Future<Output = ()> + Send + 'static>(
    mut serve: impl FnMut(TcpStream) -> F + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}
