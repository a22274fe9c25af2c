//! This program once more, in another role: a process of its own that says a line at a time and can
//! be killed.

use anyhow::Context;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A process of this program. Killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Again {
    child: Child,
    reported: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Again {
    /// Starts it with some arguments, the first of which is the role.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn start(arguments: &[String]) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let reported = child.stdin.take().context("it has no stdin")?;
        let lines = BufReader::new(child.stdout.take().context("it has no stdout")?).lines();
        Ok(Self {
            child,
            reported,
            lines,
        })
    }

    /// The next line that it says.
    ///
    /// # Errors
    /// It says nothing more.
    pub(crate) async fn line(&mut self) -> anyhow::Result<String> {
        self.lines
            .next_line()
            .await?
            .context("a process of the bench ended too early")
    }

    /// Tells it a line.
    ///
    /// # Errors
    /// It does not listen any more.
    pub(crate) async fn tell(&mut self, line: &str) -> anyhow::Result<()> {
        Ok(self
            .reported
            .write_all(format!("{line}\n").as_bytes())
            .await?)
    }

    /// Its process.
    ///
    /// # Errors
    /// It has ended.
    pub(crate) fn process(&self) -> anyhow::Result<u32> {
        self.child.id().context("a process of the bench has ended")
    }

    /// Kills it at once, as `kill -9` does.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }
}
