//! A program under way, from the host's side: what it is written, what it says, and its end.

use crate::program::order::{Exit, Order};
use egress::awake::timeout;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// Bytes of one line of a program's output.
const LINE_BYTES_MAX: usize = 8 << 20;
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;
/// Bytes of the end of stderr that are kept to say what was wrong.
const DIAGNOSTICS_BYTES_MAX: usize = 2 << 10;
/// Milliseconds beyond its grace that a supervisor is waited for.
const SUPERVISOR_MS_MAX: u64 = 15_000;

/// The program that runs as a supervisor: the host's own, with the arguments for that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervisor {
    /// Its file.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// The reason why a program says nothing more that could be used.
#[derive(Debug)]
pub(crate) enum Silence {
    /// It wrote more than it may.
    TooMuch,
    /// Its output ended. What came after its last line, if anything did.
    Ended(String),
    /// Its output cannot be read.
    Broken(std::io::Error),
}

/// A program under way. Dropped, it is ended in the background, with all that it started: its
/// supervisor sees that nobody is there any more.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// Bytes of stdout that are not taken yet.
    pending: Vec<u8>,
    /// Bytes of `pending` in which no line ends.
    searched: usize,
    diagnostics: Vec<u8>,
    /// Bytes that it may still write.
    left: u64,
    grace: Duration,
}

impl Running {
    /// Starts a program with its order.
    ///
    /// # Errors
    /// Its supervisor could not be started, or did not take the order.
    pub(crate) async fn start(
        supervisor: &Supervisor,
        order: &Order,
        output_bytes_max: u64,
    ) -> std::io::Result<Self> {
        let line = serde_json::to_string(order)?;
        let mut child = Command::new(&supervisor.program)
            .args(&supervisor.arguments)
            // The host's environment may hold keys, which neither of the two has any use for.
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut running = Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
            pending: Vec::new(),
            searched: 0,
            diagnostics: Vec::new(),
            left: output_bytes_max,
            grace: Duration::from_millis(order.grace_ms),
        };
        running.send(&line).await?;
        Ok(running)
    }

    /// Writes a text to the program's stdin.
    ///
    /// # Errors
    /// Its supervisor is gone.
    pub(crate) async fn write(&mut self, text: &str) -> std::io::Result<()> {
        let frame = serde_json::to_string(text)?;
        self.send(&frame).await
    }

    /// Closes the program's stdin.
    ///
    /// # Errors
    /// Its supervisor is gone.
    pub(crate) async fn close_input(&mut self) -> std::io::Result<()> {
        self.send("null").await
    }

    async fn send(&mut self, frame: &str) -> std::io::Result<()> {
        let Some(stdin) = &mut self.stdin else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        stdin.write_all(frame.as_bytes()).await?;
        stdin.write_all(b"\n").await?;
        stdin.flush().await
    }

    /// Returns the next line of its stdout, without the line break. What is no UTF-8 is replaced.
    ///
    /// # Errors
    /// There is none. A call that is dropped before its end loses nothing.
    pub(crate) async fn line(&mut self) -> Result<String, Silence> {
        loop {
            if let Some(line) = self.pending_line() {
                return Ok(line);
            }
            if self.pending.len() > LINE_BYTES_MAX {
                return Err(Silence::TooMuch);
            }
            let mut said = vec![0_u8; READ_BYTES];
            let mut complained = vec![0_u8; READ_BYTES];
            tokio::select! {
                read = portion(&mut self.stdout, &mut said) => {
                    let bytes = read.map_err(Silence::Broken)?;
                    if bytes.is_empty() {
                        let rest = std::mem::take(&mut self.pending);
                        return Err(Silence::Ended(String::from_utf8_lossy(&rest).into_owned()));
                    }
                    self.pending.extend_from_slice(bytes);
                    self.count(bytes.len())?;
                }
                read = portion(&mut self.stderr, &mut complained), if self.stderr.is_some() => {
                    let bytes = read.map_err(Silence::Broken)?;
                    let count = bytes.len();
                    self.diagnostics.extend_from_slice(bytes);
                    let over = self.diagnostics.len().saturating_sub(DIAGNOSTICS_BYTES_MAX);
                    self.diagnostics.drain(..over);
                    if count == 0 {
                        self.stderr = None;
                    }
                    self.count(count)?;
                }
            }
        }
    }

    fn pending_line(&mut self) -> Option<String> {
        let found = self
            .pending
            .iter()
            .skip(self.searched)
            .position(|byte| *byte == b'\n');
        let Some(found) = found else {
            self.searched = self.pending.len();
            return None;
        };
        let end = self.searched + found;
        let mut line: Vec<u8> = self.pending.drain(..=end).collect();
        line.pop();
        self.searched = 0;
        Some(String::from_utf8_lossy(&line).into_owned())
    }

    fn count(&mut self, bytes: usize) -> Result<(), Silence> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Silence::TooMuch),
        }
    }

    /// Ends the program with all that it started, and returns how it ended and the end of its
    /// stderr. It takes the program's grace and a little more at most.
    pub(crate) async fn end(mut self) -> (Exit, String) {
        // Its end tells the supervisor.
        drop(self.stdin.take());
        let patience = self.grace + Duration::from_millis(SUPERVISOR_MS_MAX);
        let exit = match timeout(patience, self.child.wait()).await {
            Ok(Ok(status)) => status.code().map_or(Exit::Failure, Exit::from_code),
            Ok(Err(_)) | Err(_) => Exit::Failure,
        };
        let mut rest = Vec::new();
        if let Some(stderr) = self.stderr.take() {
            let bytes_max = u64::try_from(DIAGNOSTICS_BYTES_MAX).unwrap_or(u64::MAX);
            // Everybody who could write is gone.
            let mut limited = stderr.take(bytes_max);
            let reading = limited.read_to_end(&mut rest);
            let _ = timeout(Duration::from_millis(SUPERVISOR_MS_MAX), reading).await;
        }
        self.diagnostics.extend_from_slice(&rest);
        let reported = String::from_utf8_lossy(&self.diagnostics).into_owned();
        (exit, reported)
    }
}

/// Reads some bytes of a pipe; none at its end. A pipe that is closed has ended.
async fn portion<'a>(
    pipe: &mut Option<impl AsyncRead + Unpin>,
    buffer: &'a mut [u8],
) -> std::io::Result<&'a [u8]> {
    let count = match pipe {
        Some(pipe) => pipe.read(buffer).await?,
        None => 0,
    };
    Ok(buffer.get(..count).unwrap_or_default())
}
