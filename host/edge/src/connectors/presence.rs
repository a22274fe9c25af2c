//! The watch over runs that people in a chat wait for: they see that the agent is typing and, if
//! that is enabled, a reply that grows.
//!
//! All of it may be lost without harm. It subscribes to the live feed, as clients of the API do.

use super::Shared;
use super::served::{ConnectorLink, Served};
use super::typing::{self, RunNotice};
use broker::{Frame, Show};
use domain::id::RunId;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

/// Runs that are remembered as heard of. With more, those that are over are forgotten.
const RUNS_MAX: usize = 4_096;
/// Chunks of a reply that may wait to be read. With more, the reply grows no further.
const CHUNKS_MAX: usize = 256;

/// A run that was heard of.
enum Heard {
    /// People in a chat wait for it, or may: that is being determined.
    Watched(mpsc::Sender<RunNotice>),
    /// Nobody in a chat does.
    Unwatched,
}

/// Watches until the edge stops.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut replaced = shared.core.replacements();
    loop {
        let is_wanted = shared.served.all().iter().any(|it| shows_something(it));
        if is_wanted {
            tokio::select! {
                () = listen(&shared) => {}
                _ = replaced.changed() => {}
            }
        } else if replaced.changed().await.is_err() {
            return;
        }
    }
}

/// Returns whether a connector shows progress of its runs.
fn shows_something(served: &Served) -> bool {
    let ConnectorLink::Component(deps) = &served.link else {
        return false;
    };
    let abilities = &deps.abilities;
    served.spec.enabled
        && ((served.spec.typing && abilities.typing) || (served.spec.stream && abilities.edits))
}

/// Hears the live feed until it ends.
async fn listen(shared: &Arc<Shared>) {
    let joined = shared.core.broker.live().join(|_, _| false);
    let mut frames = joined.frames;
    let mut runs: HashMap<RunId, Heard> = HashMap::new();
    loop {
        match frames.recv().await {
            Ok(shown) => hear(shared, &mut runs, shown.frame),
            // Missed frames make a gap in a reply, which then stops growing.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

fn hear(shared: &Arc<Shared>, runs: &mut HashMap<RunId, Heard>, frame: Frame) {
    let run = frame.run;
    if !runs.contains_key(&run) {
        if runs.len() >= RUNS_MAX {
            runs.retain(|_, heard| match heard {
                Heard::Watched(notices) => !notices.is_closed(),
                Heard::Unwatched => false,
            });
        }
        if runs.len() >= RUNS_MAX {
            return;
        }
        let (notices, waiting) = mpsc::channel(CHUNKS_MAX);
        let watch = typing::watch(shared.clone(), run, waiting);
        shared.core.spawn(watch);
        runs.insert(run, Heard::Watched(notices));
    }
    let Some(Heard::Watched(notices)) = runs.get(&run) else {
        return;
    };
    // A frame that cannot be sent leaves a gap.
    if let Err(mpsc::error::TrySendError::Closed(_)) = notices.try_send(notice(frame)) {
        runs.insert(run, Heard::Unwatched);
    }
}

fn notice(frame: Frame) -> RunNotice {
    let Frame {
        operation,
        attempt,
        seq,
        show,
        ..
    } = frame;
    match show {
        Show::Text(text) => RunNotice::Text {
            operation,
            attempt,
            seq,
            text,
        },
        Show::SoFar(_)
        | Show::Thinking(_)
        | Show::CallStarted { .. }
        | Show::OwnCall { .. }
        | Show::Discarded
        | Show::Note(_)
        | Show::Performing { .. } => RunNotice::Other,
    }
}
