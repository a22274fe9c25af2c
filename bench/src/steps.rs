//! The steps of recorded turns, taken again: fresh instances of the same guest with the same
//! inputs, which decide the same.

use crate::measure::{median, us};
use crate::parts::{Span, span_at};
use crate::view::Thread;
use agent_host_tests::World;
use agent_host_tests::guests::wasm;
use anyhow::{Context, anyhow, bail, ensure};
use domain::basis::{Basis, Scene};
use domain::digest::Digest;
use domain::event::{Event, Recorded, RunStarted, RunStepped};
use domain::grant::GuestLimits;
use domain::id::{RunId, TurnId};
use domain::message::{Message, MessageId};
use domain::step::Memo;
use runtime::{Component, Outcome, Runtime, View, ViewStatic};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Store;

/// Microseconds that the steps of a span take, the median of all spans: an instance, the step, and
/// the drop of it for each.
///
/// # Errors
/// The store's, or a step did not decide what it had decided.
pub(crate) async fn take_again(
    world: &World,
    program: &str,
    events: &[Recorded],
    spans: &[Span],
) -> anyhow::Result<f64> {
    let component = world.runtime.load(wasm(program)).await?;
    let mut sums = vec![0.0; spans.len()];
    let mut runs: HashMap<RunId, Progress> = HashMap::new();
    for recorded in events {
        let Some(event) = &recorded.event else {
            continue;
        };
        if let Event::RunStarted(started) = event {
            runs.insert(started.run, Progress::new(started));
        }
        if let Some(stepped) = event.step() {
            let run = runs.get_mut(&stepped.run).context("a step without a run")?;
            let view = Arc::new(run.view(world.store(), stepped).await?);
            let taken = take(&world.runtime, &component, view, stepped).await?;
            let sum = span_at(spans, recorded.position).and_then(|span| sums.get_mut(span));
            if let Some(sum) = sum {
                *sum += us(taken);
            }
            run.follow(stepped);
        }
    }
    Ok(median(&mut sums))
}

async fn take(
    runtime: &Runtime,
    component: &Component,
    view: Arc<dyn View>,
    stepped: &RunStepped,
) -> anyhow::Result<Duration> {
    let limits = GuestLimits::default();
    let began = Instant::now();
    let admission = runtime
        .admit(component, &limits)
        .await
        .map_err(|turned_away| anyhow!("{turned_away:?}"))?;
    let again = runtime
        .step(admission, component, view, &stepped.news, &stepped.basis)
        .await;
    let taken = began.elapsed();
    let Outcome::Returned(result) = &again.outcome else {
        bail!("the step ended as {:?}", again.outcome);
    };
    ensure!(
        result.decision == stepped.decision && again.answers == stepped.answers,
        "the step was not the same again"
    );
    Ok(taken)
}

/// The part of a run that its next step sees.
#[derive(Debug)]
struct Progress {
    base: Option<TurnId>,
    base_message: MessageId,
    messages: Vec<Message>,
    memo: Option<Memo>,
}

impl Progress {
    fn new(started: &RunStarted) -> Self {
        Self {
            base: started.base,
            base_message: started.base_message,
            messages: Vec::new(),
            memo: None,
        }
    }

    /// Returns the view that the next step had. Its turn's messages are in memory, as they were
    /// then.
    async fn view(&self, store: &Store, stepped: &RunStepped) -> anyhow::Result<Thread> {
        let messages = self.messages.iter().chain(&stepped.heard).cloned();
        Ok(Thread {
            fixed: documents(store, &stepped.basis, self.memo.clone()).await?,
            store: store.clone(),
            head: self.base,
            head_message: self.base_message,
            messages: messages.collect(),
        })
    }

    fn follow(&mut self, stepped: &RunStepped) {
        let new = stepped.heard.iter().chain(&stepped.said).cloned();
        self.messages.extend(new);
        self.memo.clone_from(&stepped.memo);
    }
}

/// Reads the documents that a step's basis names.
async fn documents(store: &Store, basis: &Basis, memo: Option<Memo>) -> anyhow::Result<ViewStatic> {
    let documents = &basis.documents;
    let scene: Scene = serde_json::from_str(&text(store, documents.scene).await?)?;
    let shared = documents.shared_preferences();
    Ok(ViewStatic {
        agent_id: scene.agent_id,
        path: scene.path,
        user: scene.user.into(),
        session_type: scene.session_type,
        session_config: text_or(store, documents.session_config, "{}").await?,
        history: text_or(store, documents.history, "[]").await?,
        settings: text(store, documents.settings).await?,
        preferences: text(store, documents.preferences).await?,
        shared_preferences: text(store, shared).await?,
        session_state: text(store, basis.session_state).await?,
        head: (basis.head > 0).then_some(basis.head),
        tools: Arc::new(serde_json::from_str(&text(store, documents.tools).await?)?),
        peers: serde_json::from_str(&text(store, documents.peers).await?)?,
        memo,
    })
}

async fn text(store: &Store, digest: Digest) -> anyhow::Result<String> {
    let bytes = store.blob(digest).await?;
    Ok(String::from_utf8(bytes.context("a blob is missing")?)?)
}

async fn text_or(store: &Store, digest: Option<Digest>, without: &str) -> anyhow::Result<String> {
    match digest {
        Some(digest) => text(store, digest).await,
        None => Ok(without.to_owned()),
    }
}
