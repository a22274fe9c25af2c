//! A gateway in front of a host: it adds the credential to each request, as a web application does
//! for its pages, and can lose all its connections.

use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The end of a request's head.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// See the module.
pub(super) struct Gateway {
    address: SocketAddr,
    /// Counts the times that all connections were lost.
    cuts: watch::Sender<u64>,
}

impl Gateway {
    /// Begins to pass requests on to a port.
    #[expect(
        clippy::disallowed_methods,
        reason = "the tasks end with the test's runtime"
    )]
    pub(super) async fn start(port: u16, token: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (cuts, cut) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let token = token.clone();
                let mut cut = cut.clone();
                cut.mark_unchanged();
                tokio::spawn(async move {
                    tokio::select! {
                        () = pass_on(client, port, &token) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Self { address, cuts }
    }

    /// The URL of a path.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Loses all connections.
    pub(super) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

/// Passes the first request of a connection on, and all that follows as it is.
async fn pass_on(mut client: TcpStream, port: u16, token: &str) {
    let mut head = Vec::new();
    while !head.windows(HEAD_END.len()).any(|end| end == HEAD_END) {
        match client.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    // A host that is not there loses the connection.
    let Ok(mut host) = TcpStream::connect(("127.0.0.1", port)).await else {
        return;
    };
    let line = head.iter().position(|byte| *byte == b'\n').unwrap_or(0) + 1;
    let (line, rest) = head.split_at(line);
    let credential = format!("authorization: Bearer {token}\r\n");
    let request = [line, credential.as_bytes(), rest].concat();
    if host.write_all(&request).await.is_ok() {
        let _ = copy_bidirectional(&mut client, &mut host).await;
    }
}
