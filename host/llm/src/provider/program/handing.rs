//! The key of a program's service, on its way to the program.
//!
//! The environment of a process stays where its own tools can read it, and a model would show it.
//! So the key goes by a way on which it is there once: a pipe that is gone when it was read, or the
//! program's stdin.

use crate::key::ApiKey;
use egress::awake::sleep;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::fs::remove_file;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::OpenOptions;

/// The name of the pipe, in the folder of a turn.
const PIPE: &str = "key";
/// Milliseconds between two polls at a pipe that nobody has opened.
const POLL_MS: u64 = 20;

/// The way on which a program gets its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyTransfer {
    /// A pipe, which a command reads that the program is told of.
    Pipe,
    /// A message on its stdin.
    Stdin,
    /// Its environment: it knows nothing better for this variable.
    Environment,
}

impl KeyTransfer {
    /// Returns its word in the ledger.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::Stdin => "stdin",
            Self::Environment => "env",
        }
    }
}

/// Makes the pipe for a key in the folder of a turn.
///
/// # Errors
/// It cannot be made.
pub(super) fn pipe(folder: &Path) -> io::Result<PathBuf> {
    let path = folder.join(PIPE);
    mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)?;
    Ok(path)
}

/// Gives a key to the first that opens a pipe, and takes the pipe away. Waits for as long as nobody
/// does.
pub(super) async fn give(path: &Path, key: &ApiKey) {
    loop {
        match OpenOptions::new().open_sender(path) {
            Ok(mut sender) => {
                let _ = remove_file(path);
                // Whoever closed it again has no key, and says so.
                let _ = sender.write_all(key.exposed().as_bytes()).await;
                return;
            }
            Err(_) => sleep(Duration::from_millis(POLL_MS)).await,
        }
    }
}

/// Returns the command that prints what is in a pipe.
pub(super) fn command(pipe: &Path) -> String {
    format!(
        "cat '{}'",
        pipe.display().to_string().replace('\'', "'\\''")
    )
}

#[cfg(test)]
mod tests {
    use super::{ApiKey, command, give, pipe};
    use std::process::Command;

    #[tokio::test]
    async fn a_key_is_read_once_and_then_its_pipe_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let within = folder.path().join("it's here");
        std::fs::create_dir(&within).unwrap();
        let path = pipe(&within).unwrap();
        let line = command(&path);
        let read = |line: String| {
            let output = Command::new("/bin/sh")
                .arg("-c")
                .arg(line)
                .output()
                .unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let first = line.clone();
        let reading = tokio::task::spawn_blocking(move || read(first));
        give(&path, &ApiKey::new("sk-a-key").unwrap()).await;
        assert_eq!(reading.await.unwrap(), "sk-a-key");
        assert!(!path.exists());
        assert_eq!(read(line), "");
    }
}
