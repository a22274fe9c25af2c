//! The clients, in a process of their own on one thread: each has a connection, reads what comes
//! and notes when a frame was complete.

use super::FILES_BESIDE;
use crate::again::Again;
use crate::process::allow_files;
use crate::report;
use anyhow::{Context, ensure};
use std::cell::RefCell;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, stdin};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::{JoinSet, LocalSet};

/// Asks for [`gather`].
pub(crate) const FLAG: &str = "--follow-streams";
/// Clients that connect at the same time.
const AT_ONCE: usize = 100;
/// Time limit until a frame has reached all of them.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that a client can read at a time.
const READ_BYTES: usize = 8 << 10;

/// All clients of one server.
#[derive(Debug)]
pub(super) struct Crowd(Again);

impl Crowd {
    /// Has so many clients follow a stream.
    pub(super) async fn gather(
        address: SocketAddr,
        path: &str,
        token: &str,
        clients: usize,
    ) -> anyhow::Result<Self> {
        let arguments = [
            FLAG.to_owned(),
            address.to_string(),
            path.to_owned(),
            token.to_owned(),
            clients.to_string(),
        ];
        let mut again = Again::start(&arguments)?;
        ensure!(
            again.line().await? == "gathered",
            "the clients did not gather"
        );
        Ok(Self(again))
    }

    /// From here on the next frame is awaited.
    pub(super) async fn await_one(&mut self) -> anyhow::Result<()> {
        self.0.tell("next").await?;
        ensure!(
            self.0.line().await? == "awaited",
            "the clients do not listen"
        );
        Ok(())
    }

    /// Returns the times at which half of the clients, and all but a hundredth, had all of the
    /// frame.
    pub(super) async fn arrived(&mut self) -> anyhow::Result<[u64; 2]> {
        Ok(serde_json::from_str(&self.0.line().await?)?)
    }
}

/// The time, the same in all processes.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the clock of the bench that processes share"
)]
pub(super) fn nanoseconds() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The time at which each client had the frame.
#[derive(Debug, Default)]
struct Receipts {
    at: RefCell<Vec<u64>>,
    more: Notify,
}

impl Receipts {
    fn note(&self) {
        self.at.borrow_mut().push(nanoseconds());
        self.more.notify_one();
    }

    /// Waits until it is there for all clients; the median, and the last but a hundredth.
    async fn of_all(&self, clients: usize) -> [u64; 2] {
        while self.at.borrow().len() < clients {
            self.more.notified().await;
        }
        let mut at = self.at.borrow_mut();
        at.sort_unstable();
        [50, 99].map(|percent| at.get(clients * percent / 100).copied().unwrap_or_default())
    }
}

/// Follows until this process is killed, or its input ends.
///
/// # Errors
/// A client is not let in, or a frame does not come to all of them.
pub(crate) async fn gather(
    address: &str,
    path: &str,
    token: &str,
    clients: &str,
) -> anyhow::Result<()> {
    let address: SocketAddr = address.parse()?;
    let clients: usize = clients.parse()?;
    allow_files((clients + FILES_BESIDE) as u64)?;
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
    let receipts = Rc::new(Receipts::default());
    let following = LocalSet::new();
    following
        .run_until(follow_all(address, &request, clients, &receipts))
        .await
}

async fn follow_all(
    address: SocketAddr,
    request: &str,
    clients: usize,
    receipts: &Rc<Receipts>,
) -> anyhow::Result<()> {
    let mut following = JoinSet::new();
    let mut connected = 0;
    while connected < clients {
        let some = AT_ONCE.min(clients - connected);
        let streams =
            futures::future::try_join_all((0..some).map(|_| connect(address, request))).await?;
        for stream in streams {
            following.spawn_local(follow(stream, Rc::clone(receipts)));
        }
        connected += some;
    }
    report::say("gathered");
    let mut reported = BufReader::new(stdin()).lines();
    while reported.next_line().await?.is_some() {
        receipts.at.borrow_mut().clear();
        report::say("awaited");
        let all = tokio::time::timeout(PATIENCE, receipts.of_all(clients)).await;
        let all = all.with_context(|| {
            format!(
                "a frame came to {} of {clients} clients",
                receipts.at.borrow().len()
            )
        })?;
        report::say(&serde_json::to_string(&all)?);
    }
    Ok(())
}

/// Asks for the stream; it has begun.
async fn connect(address: SocketAddr, request: &str) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::with_capacity(READ_BYTES);
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        ensure!(
            stream.read_buf(&mut head).await? > 0,
            "a client was turned away"
        );
    }
    ensure!(
        head.starts_with(b"HTTP/1.1 200 "),
        "a client was turned away: {}",
        String::from_utf8_lossy(&head)
    );
    Ok(stream)
}

async fn follow(stream: TcpStream, receipts: Rc<Receipts>) -> std::io::Result<()> {
    let mut frames = FrameEnds::default();
    loop {
        stream.readable().await?;
        // On the stack, and only while there is something: ten thousand buffers would be the
        // measure of this process.
        let mut read = [0; READ_BYTES];
        match stream.try_read(&mut read) {
            Ok(0) => return Ok(()),
            Ok(bytes) => (0..frames.in_these(read.get(..bytes).unwrap_or_default()))
                .for_each(|_| receipts.note()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Finds the last bytes of frames that carry data, wherever the network cuts them.
#[derive(Debug, Default)]
struct FrameEnds {
    /// Bytes of the mark that is looked for that were there already.
    matched: usize,
    in_data: bool,
}

impl FrameEnds {
    const DATA: &[u8] = b"\ndata: ";
    const END: &[u8] = b"\n\n";

    fn in_these(&mut self, bytes: &[u8]) -> usize {
        let mut ends = 0;
        for byte in bytes {
            let mark = if self.in_data { Self::END } else { Self::DATA };
            // Neither mark has its beginning in it a second time.
            self.matched = match mark.get(self.matched) == Some(byte) {
                true => self.matched + 1,
                false => usize::from(mark.first() == Some(byte)),
            };
            if self.matched == mark.len() {
                ends += usize::from(self.in_data);
                self.matched = 0;
                self.in_data = !self.in_data;
            }
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::FrameEnds;

    #[test]
    fn a_frame_has_come_with_its_last_byte_wherever_it_is_cut() {
        let sent = b": hello\n\n\r\n45\r\nid: 1\nevent: a\ndata: {\"b\": 1}\n\n\r\n\
                     : heartbeat\n\nid: 2\nevent: a\ndata: {}\n\n";
        for cut in 0..sent.len() {
            let (before, after) = sent.split_at(cut);
            let mut frames = FrameEnds::default();
            assert_eq!(frames.in_these(before) + frames.in_these(after), 2, "{cut}");
        }
        let mut frames = FrameEnds::default();
        assert_eq!(frames.in_these(&sent[..sent.len() - 1]), 1);
    }
}
