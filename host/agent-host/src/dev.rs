//! `dev`: a host for authors of plugins, on loopback, that takes up changes without a restart.
//!
//! It serves as `serve` does. Beside that it looks for changed files: sources are built, and
//! changed components, grants and agents are served from the next turn on. Never in here: how a
//! turn ends with the code that it began with, which is the broker's.

use crate::cli;
use crate::config::{Config, Loaded};
use crate::failure::{Exit, Failure};
use crate::log::LogRedaction;
use crate::reload::watch::{Settling, SourceScan, Sources};
use crate::reload::{ReloadChannels, ReloadOrder, Reloading, no_sources};
use crate::serve::{ServeOptions, apply, serve};
use crate::terminal::Terminal;
use anyhow::anyhow;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// The time between two polls at the files.
const POLL_EVERY: Duration = Duration::from_millis(250);
/// The time until a configuration that was refused is tried again though no file has changed. What
/// it lacked may be a folder.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(2);
/// Number of builds in a row that may be due to files that the build before has changed.
const BUILDS_IN_A_ROW_MAX: u32 = 3;

/// The part of a host that takes up changes.
pub(crate) struct Dev {
    /// The configuration as its file had it when the host started.
    pub(crate) started_with: Config,
    sources: Option<SourceBuild>,
    terminal: Terminal,
}

/// The build of sources.
struct SourceBuild {
    build: Build,
    sources: Sources,
    /// Paths in their folders that are no sources.
    left_out: Vec<PathBuf>,
    settling: Settling,
    /// True if the last build has failed. Then no new code is loaded.
    has_failed: bool,
}

/// Runs the command.
///
/// # Errors
/// The host would not listen on loopback, or a folder to watch is none. Otherwise as for `serve`.
pub(crate) async fn dev(
    mut loaded: Loaded,
    options: &cli::Dev,
    terminal: Terminal,
    redaction: &LogRedaction,
) -> Result<(), Failure> {
    let started_with = loaded.config.clone();
    apply(&options.serve, &mut loaded);
    refuse_others(loaded.config.server.listen)?;
    let sources = match &options.build {
        Some(command) => {
            let build = Build::new(command);
            let sources = Sources::new(&options.watch)?;
            let left_out = no_sources(&loaded);
            let settling = Settling::new(sources.scan_apart_from(left_out.clone()).await?);
            let has_failed = first_build(&build, terminal).await;
            Some(SourceBuild {
                build,
                sources,
                left_out,
                settling,
                has_failed,
            })
        }
        None => None,
    };
    let dev = Dev {
        started_with,
        sources,
        terminal,
    };
    let serve_options = ServeOptions {
        options: &options.serve,
        // It is read again at once, whether it has changed or not.
        file: SourceScan::default(),
        dev: Some(dev),
    };
    Box::pin(serve(loaded, serve_options, terminal, redaction)).await
}

/// Refuses an address that other machines reach.
fn refuse_others(listen: SocketAddr) -> Result<(), Failure> {
    if listen.ip().is_loopback() {
        return Ok(());
    }
    let error = anyhow!(
        "server.listen: {listen} can be reached from other machines, and `dev` runs code as soon as \
         it is built: it listens on loopback only"
    );
    let port = listen.port();
    Err(Failure::new(Exit::Usage, error).advise(format!(
        "`--listen 127.0.0.1:{port}`, or `serve`, which loads no changed code"
    )))
}

/// Builds before the host starts. Returns whether that failed: then the host starts with what was
/// built before.
async fn first_build(build: &Build, terminal: Terminal) -> bool {
    let built = build.run_first(terminal).await;
    if let Err(failed) = &built {
        failed.tell(terminal, "the host starts with what was built before");
    }
    built.is_err()
}

impl Dev {
    /// Takes up changes for as long as the host serves. Never ends.
    pub(crate) async fn keep_up(mut self, reloading: Reloading, mut channels: ReloadChannels) {
        let mut reloading = reloading.for_author();
        let mut settling = Settling::new(reloading.inspect().await);
        // What has changed since it was read at the start.
        let mut again_at = Some(Instant::now());
        self.announce();
        loop {
            tokio::select! {
                () = tokio::time::sleep(POLL_EVERY) => {}
                asked = channels.next() => {
                    asked.served_by(&mut reloading, self.holds_code()).await;
                    continue;
                }
            }
            self.build(&mut reloading).await;
            let changed = settling.take(reloading.inspect().await);
            let is_due =
                !settling.is_unsettled() && again_at.is_some_and(|at| Instant::now() >= at);
            let reload_order = match (changed.is_empty(), is_due) {
                (false, _) => ReloadOrder::of_changed_file(self.holds_code()),
                (true, true) => ReloadOrder::of_file(self.holds_code()),
                (true, false) => continue,
            };
            let reloaded = Box::pin(reloading.reload(&reload_order)).await;
            let again_after = reloaded
                .err()
                .and_then(|refused| refused.again_after(TRY_AGAIN_AFTER));
            again_at = again_after.map(|after| Instant::now() + after);
            // The configuration may name other files by now.
            settling.follow(reloading.inspect().await);
        }
    }

    /// Returns whether no new code is loaded, because the last build has failed.
    fn holds_code(&self) -> bool {
        let sources = self.sources.as_ref();
        sources.is_some_and(|sources| sources.has_failed)
    }

    /// Tells what is watched.
    fn announce(&self) {
        let folders: Vec<String> = self
            .sources
            .iter()
            .flat_map(|sources| sources.sources.folders())
            .map(|folder| folder.display().to_string())
            .collect();
        let document = json!({ "event": "watching", "sources": folders });
        self.terminal.result(&document, || {
            let what = if folders.is_empty() {
                "the configuration and the components".to_owned()
            } else {
                format!(
                    "the configuration, the components, and sources in {}",
                    folders.join(", ")
                )
            };
            vec![format!("  watching    {what}")]
        });
    }

    /// Builds if sources have changed, and again as long as they change meanwhile.
    async fn build(&mut self, reloading: &mut Reloading) {
        let left_out = reloading.no_sources();
        let Some(sources) = &mut self.sources else {
            return;
        };
        for round in 0.. {
            let scan = sources.sources.scan_apart_from(left_out.clone()).await;
            let now = match scan {
                Ok(now) => now,
                Err(failure) => {
                    reloading.tell_of_sources(&failure);
                    return;
                }
            };
            if sources.left_out != left_out {
                // By another configuration. What is a source by now, or none, has not changed.
                sources.settling.follow(now.clone());
                sources.left_out.clone_from(&left_out);
            }
            let changed = match round {
                0 => sources.settling.take(now),
                _ => sources.settling.retake(now),
            };
            let Some(first) = changed.first() else {
                return;
            };
            if round >= BUILDS_IN_A_ROW_MAX {
                self.terminal.notice(&format!(
                    "warning: `{}` changes with every build; put it into a folder that is not \
                     watched, or name the folders with sources by --watch",
                    first.display()
                ));
                return;
            }
            let built = sources.build.run(self.terminal).await;
            sources.has_failed = built.is_err();
            if let Err(failed) = built {
                failed.tell(self.terminal, "what was served goes on being served");
            }
        }
    }
}

/// The time that a build may take.
const BUILD_MAX: Duration = Duration::from_secs(30 * 60);

/// A build command.
#[derive(Debug)]
struct Build {
    command: String,
}

/// The reason that nothing was built.
#[derive(Debug, thiserror::Error)]
enum BuildFailed {
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
    fn tell(&self, terminal: Terminal, follows: &str) {
        if terminal.is_json() {
            let document = json!({ "event": "build_failed", "error": self.to_string() });
            terminal.line(&document.to_string());
        } else {
            terminal.problem(&format!("error: {self}; {follows}"));
        }
    }
}

impl Build {
    fn new(command: &str) -> Self {
        Self {
            command: command.to_owned(),
        }
    }

    /// Runs the command before the host serves. A signal of the terminal ends both.
    async fn run_first(&self, terminal: Terminal) -> Result<(), BuildFailed> {
        let child = self.command(terminal).spawn();
        ended(child.map_err(BuildFailed::NotStarted)?, terminal).await
    }

    /// Runs the command to its end. When this is dropped, everything that it started is killed.
    async fn run(&self, terminal: Terminal) -> Result<(), BuildFailed> {
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
    use super::{Build, BuildFailed, refuse_others};
    use crate::terminal::Terminal;
    use std::time::Duration;

    #[test]
    fn only_loopback_is_listened_on_and_the_refusal_says_how() {
        for listen in ["127.0.0.1:7777", "[::1]:0", "127.3.2.1:80"] {
            assert!(refuse_others(listen.parse().unwrap()).is_ok(), "{listen}");
        }
        for listen in ["0.0.0.0:7777", "[::]:7777", "192.168.1.2:7777"] {
            let refused = refuse_others(listen.parse().unwrap()).unwrap_err();
            assert!(refused.error.to_string().contains("server.listen"));
            let advice = refused.advice.unwrap();
            assert!(advice.contains("--listen 127.0.0.1:7777"), "{advice}");
        }
    }

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
