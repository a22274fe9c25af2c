//! The build command: one at a time, its output on stderr, its processes ended with the host.

use crate::terminal::Terminal;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};

/// The time that a build may take.
const BUILD_MAX: Duration = Duration::from_secs(30 * 60);

/// A build command.
#[derive(Debug)]
pub(super) struct Build {
    command: String,
}

/// The reason that nothing was built.
#[derive(Debug, thiserror::Error)]
pub(super) enum BuildFailed {
    /// The command was not started.
    #[error("the build could not be started: {0}")]
    NotStarted(std::io::Error),
    /// The command ended without success.
    #[error("the build failed ({0})")]
    Ended(ExitStatus),
    /// The command was stopped at its time limit.
    #[error("the build was stopped after {} minutes", BUILD_MAX.as_secs() / 60)]
    TooLong,
}

impl BuildFailed {
    /// Tells of it, and what follows.
    pub(super) fn tell(&self, terminal: Terminal, follows: &str) {
        if terminal.is_json() {
            let document = json!({ "event": "build_failed", "error": self.to_string() });
            terminal.line(&document.to_string());
        } else {
            terminal.problem(&format!("error: {self}; {follows}"));
        }
    }
}

impl Build {
    pub(super) fn new(command: &str) -> Self {
        Self {
            command: command.to_owned(),
        }
    }

    /// Runs the command before the host serves. A signal of the terminal ends both.
    pub(super) async fn run_first(&self, terminal: Terminal) -> Result<(), BuildFailed> {
        let child = self.command(terminal).spawn();
        ended(child.map_err(BuildFailed::NotStarted)?, terminal).await
    }

    /// Runs the command to its end. When this is dropped, everything that it started is killed.
    pub(super) async fn run(&self, terminal: Terminal) -> Result<(), BuildFailed> {
        let child = self.command(terminal).process_group(0).spawn();
        let child = child.map_err(BuildFailed::NotStarted)?;
        let group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
        let ended = ended(child, terminal).await;
        if !matches!(ended, Err(BuildFailed::TooLong)) {
            group.forget();
        }
        ended
    }

    /// Says that the command is run, and returns it.
    fn command(&self, terminal: Terminal) -> Command {
        let document = json!({ "event": "building", "command": self.command });
        terminal.result(&document, || vec![format!("building: {}", self.command)]);
        let mut command = Command::new("sh");
        command
            .args(["-c", &self.command])
            .stdin(Stdio::null())
            // Only results go to stdout.
            .stdout(std::io::stderr())
            .kill_on_drop(true);
        command
    }
}

/// Waits for the end of a build.
async fn ended(mut child: Child, terminal: Terminal) -> Result<(), BuildFailed> {
    let status = tokio::time::timeout(BUILD_MAX, child.wait())
        .await
        .map_err(|_| BuildFailed::TooLong)?
        .map_err(BuildFailed::NotStarted)?;
    if !status.success() {
        return Err(BuildFailed::Ended(status));
    }
    terminal.result(&json!({ "event": "built" }), || vec!["built".to_owned()]);
    Ok(())
}

/// The processes of a build that is under way. They are killed when it is dropped.
struct Group(Option<Pid>);

impl Group {
    /// Forgets the processes, once the build is over.
    fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Build, BuildFailed};
    use crate::terminal::Terminal;
    use std::time::Duration;

    #[tokio::test]
    async fn a_build_ends_with_its_exit_code_and_is_killed_with_all_it_started() {
        let terminal = Terminal::new(false, true);
        assert!(Build::new("true").run(terminal).await.is_ok());
        let failed = Build::new("exit 3").run(terminal).await.unwrap_err();
        assert!(matches!(&failed, BuildFailed::Ended(status) if status.code() == Some(3)));
        assert!(failed.to_string().contains("exit status: 3"), "{failed}");

        let dir = tempfile::TempDir::new().unwrap();
        let mark = dir.path().join("mark");
        let command = format!("(sleep 0.6; touch '{}') & wait", mark.display());
        let build = Build::new(&command);
        let cut = tokio::time::timeout(Duration::from_millis(200), build.run(terminal)).await;
        assert!(cut.is_err());
        tokio::time::sleep(Duration::from_millis(900)).await;
        assert!(!mark.exists(), "what the build had started is killed too");
    }
}
