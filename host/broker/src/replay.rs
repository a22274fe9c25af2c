//! Replay: recorded steps are run again, to check that they decide the same.
//!
//! A step reads only its basis and the run's earlier events. So does this.

use crate::boxed::boxed;
use crate::catalogue::Catalogue;
use crate::driver::{NONE_BEFORE, NOTHING};
use crate::engine::{Component, Runtime};
use crate::shared::DriverError;
use crate::shared::runs::{self, load_run};
use crate::view::{LastRead, StepView};
use domain::basis::{Basis, Scene};
use domain::digest::Digest;
use domain::event::{Event, RunStepped};
use domain::grant::GuestLimits;
use domain::id::{RunId, Stream};
use domain::operation::Settlement;
use domain::run::Run;
use runtime::{Outcome, ViewStatic};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use store::{Snapshot, Store};

/// Number of events that are read at a time.
const PAGE: usize = 1_000;

/// The result of running a step again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayVerdict {
    /// The same decision, effects and memo, from the same reads.
    Same,
    /// Any difference.
    Diverged {
        /// The differences, for people.
        what: String,
    },
    /// No comparison: the component is gone or could not be called, or data that the step read were
    /// erased.
    Unavailable {
        /// The missing part.
        what: String,
    },
}

/// Returns a run in the state from which the broker would continue after a restart, with the
/// version of its stream.
///
/// It is the fold of the run's snapshot and of all later events.
///
/// # Errors
/// The store cannot be read, or there is no such run.
#[boxed]
pub async fn fold(store: &Store, id: RunId) -> Result<(Run, u64), ReplayError> {
    Ok(load_run(store, id).await?)
}

/// Returns the snapshot of a run at a version of its stream; none if it cannot be written.
#[must_use]
pub fn snapshot(run: &Run, version: u64) -> Option<Snapshot> {
    runs::snapshot(run, version)
}

/// Runs every recorded step of a run again. Returns a verdict for each, by the number of the step.
#[boxed]
pub async fn replay(
    store: &Store,
    runtime: &Runtime,
    catalogue: &Catalogue,
    id: RunId,
) -> Result<Vec<(u32, ReplayVerdict)>, ReplayError> {
    replay_seeded(store, runtime, catalogue, id, None).await
}

/// Does the same with other randomness than was recorded, if there is a seed for it.
#[boxed]
pub async fn replay_seeded(
    store: &Store,
    runtime: &Runtime,
    catalogue: &Catalogue,
    id: RunId,
    seed: Option<Digest>,
) -> Result<Vec<(u32, ReplayVerdict)>, ReplayError> {
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
            for event in event.apart() {
                if let (Some(run), Event::RunStepped(stepped)) = (&run, &event) {
                    let basis = Basis {
                        seed: seed.unwrap_or(stepped.basis.seed),
                        ..stepped.basis.clone()
                    };
                    let verdict = again(store, runtime, catalogue, run, stepped, &basis).await?;
                    verdicts.push((stepped.step, verdict));
                }
                run = Some(match run {
                    None => Run::fold([&event]).map_err(DriverError::from)?,
                    Some(run) => run.apply(&event).map_err(DriverError::from)?,
                });
            }
        }
        if count < PAGE {
            return Ok(verdicts);
        }
    }
}

/// The reason why a replay failed.
#[derive(Debug, thiserror::Error)]
#[error("the run cannot be read")]
pub struct ReplayError(#[source] Box<dyn std::error::Error + Send + Sync>);

impl From<DriverError> for ReplayError {
    fn from(failure: DriverError) -> Self {
        Self(Box::new(failure))
    }
}

fn unavailable(what: impl Into<String>) -> ReplayVerdict {
    ReplayVerdict::Unavailable { what: what.into() }
}

async fn again(
    store: &Store,
    runtime: &Runtime,
    catalogue: &Catalogue,
    run: &Run,
    stepped: &RunStepped,
    basis: &Basis,
) -> Result<ReplayVerdict, DriverError> {
    if run.started.compacts.is_some() {
        // Only the run and the news decide there.
        let same = domain::run::compact::step(run, &stepped.news).decision == stepped.decision;
        return Ok(if same {
            ReplayVerdict::Same
        } else {
            ReplayVerdict::Diverged {
                what: "decision".to_owned(),
            }
        });
    }
    let digest = stepped.basis.documents.component;
    let Some(code) = code_of(runtime, catalogue, run, digest).await else {
        return Ok(unavailable(format!(
            "the component {} is gone",
            digest.short()
        )));
    };
    let view = match view(store, run, stepped).await {
        Ok(view) => view,
        Err(NoView::Erased(part)) => return Ok(unavailable(part)),
        Err(NoView::Failed(error)) => return Err(error),
    };
    let Ok(admission) = runtime.admit(&code.component, &code.limits).await else {
        return Ok(unavailable(
            "the host has no free place for it, or its component was called too often",
        ));
    };
    let result = runtime
        .step(
            admission,
            &code.component,
            Arc::new(view),
            &stepped.news,
            basis,
        )
        .await;
    let Outcome::Returned(returned) = result.outcome else {
        return Ok(ReplayVerdict::Diverged {
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
        ReplayVerdict::Same
    } else {
        ReplayVerdict::Diverged {
            what: what.join(", "),
        }
    })
}

/// The code of a recorded step, and the limits within which it runs again.
struct StepCode {
    component: Arc<Component>,
    limits: GuestLimits,
}

/// Returns the code with which a run's step was taken; none if it no longer exists.
///
/// It runs under the name and within the limits of the component that is configured for the run's
/// definition, as the step did. Other components may have the same code within limits of their own.
async fn code_of(
    runtime: &Runtime,
    catalogue: &Catalogue,
    run: &Run,
    digest: Digest,
) -> Option<StepCode> {
    let configured = catalogue
        .definition(&run.started.definition)
        .and_then(|definition| catalogue.entry(&definition.component));
    match configured {
        Some(entry) if entry.component.digest() == digest => Some(StepCode {
            component: entry.component.clone(),
            limits: entry.grant.limits,
        }),
        // No other code runs under a pinned name.
        Some(entry) if !entry.is_pinned => {
            let kept = runtime.kept(digest).await?;
            Some(StepCode {
                component: kept.in_place_of(&entry.component),
                limits: entry.grant.limits,
            })
        }
        Some(_) | None => Some(StepCode {
            component: runtime.kept(digest).await?,
            limits: GuestLimits::default(),
        }),
    }
}

/// The reason why the view of a step cannot be rebuilt.
enum NoView {
    /// A part of it was erased.
    Erased(String),
    /// The store cannot be read.
    Failed(DriverError),
}

impl From<DriverError> for NoView {
    fn from(error: DriverError) -> Self {
        Self::Failed(error)
    }
}

/// Rebuilds the view of a step from its basis and from the run before it.
async fn view(store: &Store, run: &Run, stepped: &RunStepped) -> Result<StepView, NoView> {
    let own = run
        .messages
        .iter()
        .cloned()
        .chain(stepped.heard.iter().cloned().map(Arc::new))
        .collect();
    let shown = run
        .shown
        .iter()
        .copied()
        .chain(stepped.settled.iter().flat_map(Settlement::blobs))
        .collect();
    Ok(StepView {
        fixed: view_static(store, run, &stepped.basis).await?,
        store: store.clone(),
        base: run.started.base,
        base_message: run.started.base_message,
        own,
        shown,
        fresh: Vec::new(),
        files: (run.started.session, stepped.basis.files),
        last_read: LastRead::default(),
    })
}

/// Reads the documents that a basis names.
async fn view_static(store: &Store, run: &Run, basis: &Basis) -> Result<ViewStatic, NoView> {
    let Basis { documents, .. } = basis;
    let scene: Scene = document(store, documents.scene, "the scene was erased").await?;
    let tools = document(store, documents.tools, "the tools were erased").await?;
    let peers = document(store, documents.peers, "the peers were erased").await?;
    Ok(ViewStatic {
        agent_id: scene.agent_id,
        path: scene.path,
        user: scene.user.into(),
        session_type: scene.session_type,
        session_config: text_or(store, documents.session_config, NOTHING).await?,
        history: text_or(store, documents.history, NONE_BEFORE).await?,
        settings: text(store, documents.settings).await?,
        preferences: text(store, documents.preferences).await?,
        shared_preferences: text(store, documents.shared_preferences()).await?,
        session_state: text(store, basis.session_state).await?,
        head: (basis.head > 0).then_some(basis.head),
        tools: Arc::new(tools),
        peers,
        memo: run.memo.clone(),
    })
}

async fn document<T: DeserializeOwned>(
    store: &Store,
    digest: Digest,
    erased: &str,
) -> Result<T, NoView> {
    let Some(bytes) = store.blob(digest).await.map_err(DriverError::from)? else {
        return Err(NoView::Erased(erased.to_owned()));
    };
    let read = serde_json::from_slice(&bytes);
    read.map_err(|_| {
        let missing = format!("what the blob {} should say", digest.short());
        NoView::Failed(DriverError::Missing(missing))
    })
}

async fn text(store: &Store, digest: Digest) -> Result<String, NoView> {
    match store.blob(digest).await.map_err(DriverError::from)? {
        Some(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        None => Err(NoView::Erased(format!(
            "the blob {} was erased",
            digest.short()
        ))),
    }
}

async fn text_or(store: &Store, digest: Option<Digest>, without: &str) -> Result<String, NoView> {
    match digest {
        Some(digest) => text(store, digest).await,
        None => Ok(without.to_owned()),
    }
}
