//! Keeping up with the configuration while the host serves: with its file, with requests over HTTP,
//! and with the signal SIGHUP. One change at a time.

use super::watch::Settling;
use super::{Outcome, Refused, ReloadOrder, Reloading};
use api::{Api, ReloadRefused, ReloadReport, ReloadRequest};
use domain::event::ReloadCause;
use std::io;
use std::time::Duration;
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The time between two polls at the file.
const POLL_EVERY: Duration = Duration::from_millis(250);
/// The time between two polls at a file that has just changed. If both find the same, it is read.
const POLL_AGAIN_AFTER: Duration = Duration::from_millis(30);
/// The time until a configuration that was refused is tried again though its file has not changed,
/// for what it lacks may be a folder.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// The ways in which a host is told to read its configuration again, beside its file.
pub(crate) struct ReloadChannels {
    /// SIGHUP.
    hangups: Signal,
    /// Requests over HTTP.
    requests: mpsc::Receiver<ReloadRequest>,
}

impl ReloadChannels {
    /// Takes the signal, and requests to an API from now on.
    pub(crate) fn new(hangups: Signal, api: &Api) -> Self {
        Self {
            hangups,
            requests: api.reload_requests(),
        }
    }

    /// Waits for the next time that somebody asks. Never ends once nobody can ask any more.
    pub(crate) async fn next(&mut self) -> ReloadAsker {
        loop {
            tokio::select! {
                Some(()) = self.hangups.recv() => return ReloadAsker::Signal,
                Some(request) = self.requests.recv() => return ReloadAsker::Request(request),
                else => std::future::pending::<()>().await,
            }
        }
    }
}

/// Somebody who asks that the configuration is read again.
pub(crate) enum ReloadAsker {
    Signal,
    Request(ReloadRequest),
}

impl ReloadAsker {
    /// Has the configuration read again, and answers.
    pub(crate) async fn served_by(self, reloading: &mut Reloading, holds_code: bool) {
        match self {
            Self::Signal => {
                tracing::info!("SIGHUP: the configuration is read again");
                let reload_order = ReloadOrder {
                    because: ReloadCause::Signal,
                    user: None,
                    holds_code,
                    may_be_cut: false,
                };
                // A refusal is told by whoever refuses.
                let _ = Box::pin(reloading.reload(&reload_order)).await;
            }
            Self::Request(ReloadRequest::Compare { reply }) => {
                let pending = Box::pin(reloading.pending()).await;
                // The client may have gone.
                let _ = reply.send(pending);
            }
            Self::Request(ReloadRequest::Apply { user, reply }) => {
                let reload_order = ReloadOrder {
                    because: ReloadCause::Request,
                    user: Some(user),
                    holds_code,
                    may_be_cut: false,
                };
                let reloaded = Box::pin(reloading.reload(&reload_order)).await;
                // The client may have gone.
                let _ = reply.send(reloaded.map(report).map_err(refusal));
            }
        }
    }
}

fn report(outcome: Outcome) -> ReloadReport {
    ReloadReport {
        configuration: outcome.reloaded.configuration,
        replaces: outcome.reloaded.replaces,
        differences: outcome.differences,
        needs_restart: outcome.needs_restart,
        folders_opened: outcome.folders_opened,
        left_behind: outcome.left_behind,
        definitions_left_out: outcome.definitions_left_out,
    }
}

fn refusal(refused: Refused) -> ReloadRefused {
    let reason = refused.reason();
    let error = refused.failure.error;
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    if causes.any(|cause| cause.kind() == io::ErrorKind::StorageFull) {
        return ReloadRefused::Unrecorded(broker::Error::DiskFull);
    }
    match error.downcast() {
        Ok(unrecorded) => ReloadRefused::Unrecorded(unrecorded),
        Err(_) => ReloadRefused::Configuration { reason },
    }
}

/// Takes up changes of the configuration for as long as the host serves, or only those that
/// somebody asks for where the configuration says so. Never ends.
///
/// The code of components stays what it is, as long as their files and pins in the configuration
/// do. A change that takes served agents away, or a file that may have been cut, waits until it has
/// stayed what it is for longer than other changes do.
pub(crate) async fn keep_up(mut reloading: Reloading, mut channels: ReloadChannels) {
    while reloading.is_manual() {
        channels.next().await.served_by(&mut reloading, true).await;
    }
    // What has changed since it was read at the start counts.
    let mut settling = Settling::new(reloading.start.file.clone());
    let mut again_at: Option<Instant> = None;
    loop {
        let pause = if settling.is_unsettled() {
            POLL_AGAIN_AFTER
        } else {
            POLL_EVERY
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            asked = channels.next() => {
                asked.served_by(&mut reloading, true).await;
                continue;
            }
        }
        let has_changed = !settling.take(reloading.poll_file().await).is_empty();
        let is_due = !settling.is_unsettled() && again_at.is_some_and(|at| Instant::now() >= at);
        let reload_order = match (has_changed, is_due) {
            (true, _) => ReloadOrder::of_changed_file(true),
            (false, true) => ReloadOrder::of_file(true),
            (false, false) => continue,
        };
        let reloaded = Box::pin(reloading.reload(&reload_order)).await;
        let again_after = reloaded
            .err()
            .and_then(|refused| refused.again_after(TRY_AGAIN_AFTER));
        again_at = again_after.map(|after| Instant::now() + after);
    }
}
