//! Replay: recorded steps are run again, to check that they decide the same.
//!
//! A step reads its basis and the run's earlier events, and nothing else. So does this.

use crate::catalogue::Catalogue;
use crate::driver::{self, DriverError, NONE_BEFORE, NOTHING};
use crate::view::{LastRead, StepView};
use domain::basis::{Basis, Scene};
use domain::digest::Digest;
use domain::event::{Event, RunStepped};
use domain::id::{RunId, Stream};
use domain::operation::Settlement;
use domain::run::Run;
use runtime::{Component, Outcome, Runtime, ViewStatic};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use store::{Snapshot, Store};

/// Number of events that are read at a time.
const PAGE: usize = 1_000;

/// The result of running a step again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The same decision, effects and memo, from the same reads.
    Same,
    /// Anything else.
    Diverged {
        /// The differences, for people.
        what: String,
    },
    /// It could not be run again: its component is gone or could not be called, or what it read was
    /// erased.
    Unavailable {
        /// The missing part.
        what: String,
    },
}

/// Returns a run as the broker goes on with it after a restart, with the version of its stream.
///
/// It is the fold of the run's snapshot and of all events since.
///
/// # Errors
/// The store cannot be read, or there is no such run.
pub async fn fold(store: &Store, id: RunId) -> Result<(Run, u64), ReplayError> {
    Ok(driver::load_run(store, id).await?)
}

/// Returns the snapshot of a run at a version of its stream; none if it cannot be written.
#[must_use]
pub fn snapshot(run: &Run, version: u64) -> Option<Snapshot> {
    driver::snapshot(run, version)
}

/// Runs every recorded step of a run again. Returns a verdict for each, by the number of the step.
///
/// # Errors
/// The store cannot be read.
pub async fn replay(
    store: &Store,
    runtime: &Runtime,
    catalogue: &Catalogue,
    id: RunId,
) -> Result<Vec<(u32, Verdict)>, ReplayError> {
    let mut verdicts = Vec::new();
    let mut run: Option<Run> = None;
    let mut version = 0;
    loop {
        let events = store
            .stream(Stream::Run(id), version, PAGE)
            .await
            .map_err(DriverError::from)?;
        let count = events.len();
        for recorded in events {
            version = recorded.version;
            let Some(event) = recorded.event else {
                verdicts.push((
                    run.as_ref().map_or(0, |run| run.step),
                    unavailable("an event was erased; replay stops there"),
                ));
                return Ok(verdicts);
            };
            if let (Some(run), Event::RunStepped(stepped)) = (&run, &event) {
                let verdict = again(store, runtime, catalogue, run, stepped).await?;
                verdicts.push((stepped.step, verdict));
            }
            run = Some(match run {
                None => Run::fold([&event]).map_err(DriverError::from)?,
                Some(run) => run.apply(&event).map_err(DriverError::from)?,
            });
        }
        if count < PAGE {
            return Ok(verdicts);
        }
    }
}

/// The reason why a replay could not go on.
#[derive(Debug, thiserror::Error)]
#[error("the run cannot be read")]
pub struct ReplayError(#[source] Box<dyn std::error::Error + Send + Sync>);

impl From<DriverError> for ReplayError {
    fn from(failure: DriverError) -> Self {
        Self(Box::new(failure))
    }
}

fn unavailable(what: impl Into<String>) -> Verdict {
    Verdict::Unavailable { what: what.into() }
}

async fn again(
    store: &Store,
    runtime: &Runtime,
    catalogue: &Catalogue,
    run: &Run,
    stepped: &RunStepped,
) -> Result<Verdict, DriverError> {
    if run.started.compacts.is_some() {
        // Only the run and the news decide there.
        let same = domain::compaction::step(run, &stepped.news).decision == stepped.decision;
        return Ok(if same {
            Verdict::Same
        } else {
            Verdict::Diverged {
                what: "decision".to_owned(),
            }
        });
    }
    let Some(component) = component(runtime, catalogue, stepped.basis.component).await else {
        return Ok(unavailable(format!(
            "the component {} is gone",
            stepped.basis.component.short()
        )));
    };
    let view = match view(store, run, stepped).await? {
        Ok(view) => view,
        Err(missing) => return Ok(unavailable(missing)),
    };
    let limits = catalogue
        .by_digest(stepped.basis.component)
        .map(|entry| entry.grant.limits)
        .unwrap_or_default();
    let Ok(admission) = runtime.admit(&component, &limits).await else {
        return Ok(unavailable(
            "the host has no free place for it, or its component was called too often",
        ));
    };
    let result = runtime
        .step(
            admission,
            &component,
            Arc::new(view),
            &stepped.news,
            &stepped.basis,
        )
        .await;
    let Outcome::Returned(returned) = result.outcome else {
        return Ok(Verdict::Diverged {
            what: format!("it did not return: {:?}", result.outcome),
        });
    };
    let differs = [
        ("decision", returned.decision != stepped.decision),
        ("effects", returned.effects != stepped.effects),
        ("memo", returned.memo != stepped.memo),
        ("what it read", result.answers != stepped.answers),
    ];
    let what: Vec<&str> = differs
        .iter()
        .filter(|(_, differs)| *differs)
        .map(|(what, _)| *what)
        .collect();
    Ok(if what.is_empty() {
        Verdict::Same
    } else {
        Verdict::Diverged {
            what: what.join(", "),
        }
    })
}

async fn component(
    runtime: &Runtime,
    catalogue: &Catalogue,
    digest: Digest,
) -> Option<Arc<Component>> {
    match catalogue.by_digest(digest) {
        Some(entry) => Some(entry.component.clone()),
        None => runtime.kept(digest).await,
    }
}

/// Rebuilds the view of a step from its basis. The inner error is the missing part.
async fn view(
    store: &Store,
    run: &Run,
    stepped: &RunStepped,
) -> Result<Result<StepView, String>, DriverError> {
    let basis: &Basis = &stepped.basis;
    let Some(scene): Option<Scene> = document(store, basis.scene).await? else {
        return Ok(Err("the scene was erased".to_owned()));
    };
    let Some(tools) = document(store, basis.tools).await? else {
        return Ok(Err("the tools were erased".to_owned()));
    };
    let Some(peers) = document(store, basis.peers).await? else {
        return Ok(Err("the peers were erased".to_owned()));
    };
    let texts = [
        (Some(basis.settings), ""),
        (Some(basis.preferences), ""),
        (Some(basis.session_state), ""),
        (basis.session_config, NOTHING),
        (basis.history, NONE_BEFORE),
        (basis.shared_preferences.or(Some(basis.preferences)), ""),
    ];
    let mut read = Vec::new();
    for (digest, without) in texts {
        match digest {
            None => read.push(without.to_owned()),
            Some(digest) => match store.blob(digest).await? {
                Some(bytes) => read.push(String::from_utf8_lossy(&bytes).into_owned()),
                None => return Ok(Err(format!("the blob {} was erased", digest.short()))),
            },
        }
    }
    let [
        settings,
        preferences,
        session_state,
        session_config,
        history,
        shared_preferences,
    ] = <[String; 6]>::try_from(read).unwrap_or_default();
    let fixed = ViewStatic {
        agent_id: scene.agent_id,
        path: scene.path,
        user: scene.user.into(),
        session_type: scene.session_type,
        session_config,
        history,
        settings,
        preferences,
        shared_preferences,
        session_state,
        head: (basis.head > 0).then_some(basis.head),
        tools: Arc::new(tools),
        peers,
        memo: run.memo.clone(),
    };
    let own = run
        .messages
        .iter()
        .cloned()
        .chain(stepped.heard.iter().cloned().map(Arc::new))
        .collect();
    let (base, base_message) = (run.started.base, run.started.base_message);
    let shown = run
        .shown
        .iter()
        .copied()
        .chain(stepped.settled.iter().flat_map(Settlement::blobs))
        .collect();
    let (files, last_read) = ((run.started.session, basis.files), LastRead::default());
    Ok(Ok(StepView {
        fixed,
        store: store.clone(),
        base,
        base_message,
        own,
        shown,
        fresh: Vec::new(),
        files,
        last_read,
    }))
}

async fn document<T: DeserializeOwned>(
    store: &Store,
    digest: Digest,
) -> Result<Option<T>, DriverError> {
    let Some(bytes) = store.blob(digest).await? else {
        return Ok(None);
    };
    let read = serde_json::from_slice(&bytes);
    read.map(Some)
        .map_err(|_| DriverError::Missing(format!("what the blob {} should say", digest.short())))
}
