//! A program under way, from the host's side: what it is written, what it says, and its end.

use egress::awake::timeout;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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

/// Open files of a program and of each process that it starts.
pub(crate) const OPEN_FILES_MAX: u64 = 4_096;

/// The order for one run of a program: the first line of a supervisor's input. Its part about
/// confinement goes on to the process that becomes the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    /// The program's file.
    pub(crate) program: PathBuf,
    /// Its arguments. No shell reads them.
    pub(crate) arguments: Vec<String>,
    /// Its whole environment.
    pub(crate) environment: BTreeMap<String, String>,
    /// Its working folder.
    pub(crate) folder: PathBuf,
    /// Its folder for temporary files, which the supervisor removes at its end.
    pub(crate) temporary: PathBuf,
    /// Processes at the same time.
    pub(crate) processes_max: u32,
    /// Bytes of memory of all of them.
    pub(crate) memory_bytes_max: u64,
    /// Milliseconds between the signal to end and the end.
    pub(crate) grace_ms: u64,
    /// The limits that it starts with.
    pub(crate) confinement: Confinement,
}

/// The limits that a process gives itself for good before it becomes the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Confinement {
    /// The process that must be its parent.
    #[serde(default)]
    pub(crate) supervisor: u32,
    /// Files and folders that may be read and executed.
    pub(crate) read: Vec<PathBuf>,
    /// Files and folders that may also be written.
    pub(crate) write: Vec<PathBuf>,
    /// True if nothing is started where that cannot be enforced.
    pub(crate) is_required: bool,
    /// Seconds of computing of each process.
    pub(crate) cpu_s_max: u64,
    /// Bytes of each file.
    pub(crate) file_bytes_max: u64,
}

/// The end of a supervisor, as its exit code says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The program ended with success.
    Success,
    /// The program ended with anything else.
    Failure,
    /// Its folders cannot be enforced, and have to be.
    NotConfined,
    /// It could not be started.
    NotStarted,
    /// It had too many processes.
    Processes,
    /// It had too much memory.
    Memory,
    /// The host told it to end, or is gone.
    Instructed,
    /// Something that it started could not be ended.
    Left,
}

impl Exit {
    const ALL: [Self; 8] = [
        Self::Success,
        Self::Failure,
        Self::NotConfined,
        Self::NotStarted,
        Self::Processes,
        Self::Memory,
        Self::Instructed,
        Self::Left,
    ];

    /// Returns the exit code that stands for it.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::NotConfined => 201,
            Self::NotStarted => 202,
            Self::Processes => 203,
            Self::Memory => 204,
            Self::Instructed => 205,
            Self::Left => 206,
        }
    }

    /// Returns the end that a code stands for. Any other code is a failure.
    pub(crate) fn from_code(code: i32) -> Self {
        Self::ALL
            .into_iter()
            .find(|exit| i32::from(exit.code()) == code)
            .unwrap_or(Self::Failure)
    }

    /// Returns the end of a supervisor whose program ended with this code; none for a signal.
    pub(crate) fn of_program(code: Option<i32>) -> Self {
        match code.map(Self::from_code) {
            Some(exit @ (Self::Success | Self::NotConfined | Self::NotStarted)) => exit,
            _ => Self::Failure,
        }
    }
}

/// Returns the limit that was met, in words; none if it was no limit.
pub(crate) fn limit_of(exit: Exit) -> Option<&'static str> {
    match exit {
        Exit::Processes => Some("it had more processes than `limits.processesMax`"),
        Exit::Memory => Some("it took more memory than `limits.memoryBytesMax`"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn an_exit_code_means_what_the_supervisor_meant_by_it() {
        for exit in Exit::ALL {
            assert_eq!(Exit::from_code(i32::from(exit.code())), exit);
        }
        assert_eq!(Exit::from_code(77), Exit::Failure);
    }

    #[test]
    fn a_program_cannot_say_that_a_limit_ended_it() {
        for (code, exit) in [
            (Some(0), Exit::Success),
            (Some(1), Exit::Failure),
            (Some(3), Exit::Failure),
            (Some(204), Exit::Failure),
            (Some(205), Exit::Failure),
            (Some(206), Exit::Failure),
            (None, Exit::Failure),
            (Some(202), Exit::NotStarted),
        ] {
            assert_eq!(Exit::of_program(code), exit, "{code:?}");
        }
    }
}
