//! A terminal with a program in it, whose keys a test presses and whose screen it reads.

use agent_host_tests::process::{Folder, PATIENCE};
use agent_host_tests::skip::{WITHOUT_SCRIPT, needed, terminals};
use std::process::Stdio;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Columns of the terminal.
const COLUMNS: u16 = 40;

/// A terminal.
pub(super) struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    /// Output on the screen that was not waited for yet.
    unread: Vec<u8>,
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl Terminal {
    /// Starts the program with these arguments and variables; none where there are no terminals,
    /// and that is known.
    pub(super) fn start(
        folder: &Folder,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Option<Self> {
        needed(terminals(), WITHOUT_SCRIPT)?;
        let program = folder.program(arguments);
        let program = program.as_std();
        let words: Vec<String> = std::iter::once(program.get_program())
            .chain(program.get_args())
            .map(|word| quoted(word.to_str().unwrap()))
            .collect();
        let run = format!("stty cols {COLUMNS} rows 24; exec {}", words.join(" "));
        let mut command = Command::new("script");
        command
            .args(["--quiet", "--flush", "--return", "--command", &run])
            .arg("/dev/null")
            .current_dir(folder.path())
            .env_remove("AGENT_HOST_TOKEN")
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh")
            .env("XDG_STATE_HOME", folder.path().join("home"))
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let keys = child.stdin.take().unwrap();
        let screen = child.stdout.take().unwrap();
        Some(Self {
            child,
            keys,
            screen,
            unread: Vec::new(),
        })
    }

    /// Presses keys.
    pub(super) async fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).await.unwrap();
        self.keys.flush().await.unwrap();
    }

    /// Waits for a text on the screen, and returns everything up to its end.
    pub(super) async fn until(&mut self, text: &str) -> String {
        let found = timeout(PATIENCE, self.read_until(text)).await;
        let unread = String::from_utf8_lossy(&self.unread).into_owned();
        match found {
            Ok(Some(end)) => {
                let rest = self.unread.split_off(end);
                let read = std::mem::replace(&mut self.unread, rest);
                String::from_utf8_lossy(&read).into_owned()
            }
            Ok(None) => panic!("the program ended before {text:?}: {unread:?}"),
            Err(_) => panic!("{text:?} did not come: {unread:?}"),
        }
    }

    async fn read_until(&mut self, text: &str) -> Option<usize> {
        let wanted = text.as_bytes();
        loop {
            let found = self
                .unread
                .windows(wanted.len())
                .position(|window| window == wanted);
            if let Some(start) = found {
                return Some(start + wanted.len());
            }
            let mut buffer = [0; 4_096];
            match self.screen.read(&mut buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(read) => self.unread.extend_from_slice(&buffer[..read]),
            }
        }
    }

    /// Waits for the program's end, and returns its exit code.
    pub(super) async fn end(mut self) -> Option<i32> {
        let ended = timeout(PATIENCE, async {
            let mut rest = Vec::new();
            let _ = self.screen.read_to_end(&mut rest).await;
            self.child.wait().await
        });
        ended.await.expect("an end in time").unwrap().code()
    }
}
