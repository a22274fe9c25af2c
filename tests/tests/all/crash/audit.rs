//! What must hold of a stopped host's data, whatever happened to the host before.

use super::client::Sent;
use agent_host_tests::process::Folder;
use anyhow::{Context, Result, ensure};
use domain::event::{Event, Recorded, Source};
use domain::id::{InputId, OperationId, RunId};
use domain::operation::{Operation, Performer, Settlement};
use domain::step::{Decision, Outcome};
use domain::tool::EffectClass;
use domain::turn::TurnEnd;
use std::collections::BTreeMap;
use store::{EventFilter, Store};

/// More events than any of these tests makes.
const EVENTS_MAX: usize = 1_000_000;

/// What the events say of everything.
#[derive(Default)]
struct Account {
    accepted: BTreeMap<String, u32>,
    claims: BTreeMap<InputId, u32>,
    started: BTreeMap<RunId, u32>,
    ended: BTreeMap<RunId, u32>,
    turns: usize,
    operations: BTreeMap<OperationId, (RunId, Operation)>,
    settled: BTreeMap<OperationId, Vec<Outcome>>,
    replies: BTreeMap<RunId, String>,
}

/// Checks everything, and returns of how many calls nothing is known.
pub(super) async fn audit(folder: &Folder, ledger: &[Sent]) -> Result<usize> {
    let verified = folder.run(&["verify"]).await;
    ensure!(verified.status.success(), "verify: {}", String::from_utf8_lossy(&verified.stderr));
    let data = folder.data();
    let store = tokio::task::spawn_blocking(move || Store::open(&data, store::Options::default())).await??;
    let events = store.events(0, EventFilter::default(), EVENTS_MAX).await?;
    store.close().await;
    check_places(&events)?;
    let mut account = Account::default();
    for recorded in &events {
        account.take(recorded)?;
    }
    account.check_inputs(ledger)?;
    account.check_runs()?;
    account.check_effects(&folder.effects())?;
    account.check_unknown()
}

/// Positions are dense; versions are contiguous in every stream; no event is there twice.
fn check_places(events: &[Recorded]) -> Result<()> {
    let mut versions: BTreeMap<&str, u64> = BTreeMap::new();
    let mut ids = std::collections::BTreeSet::new();
    for (index, event) in events.iter().enumerate() {
        ensure!(event.position == index as u64 + 1, "position {} is the {}. event", event.position, index + 1);
        let version = versions.entry(&event.stream).or_default();
        *version += 1;
        ensure!(event.version == *version, "{}: version {} follows {}", event.stream, event.version, *version - 1);
        ensure!(ids.insert(event.id.0), "event {} is there twice", event.position);
    }
    Ok(())
}

impl Account {
    fn take(&mut self, recorded: &Recorded) -> Result<()> {
        match recorded.event.as_ref().context("an event that was erased")? {
            Event::InputAccepted(it) => {
                self.claims.entry(it.input).or_default();
                if it.source == Source::Api {
                    *self.accepted.entry(it.input.to_string()).or_default() += 1;
                }
            }
            Event::RunStarted(it) => {
                *self.started.entry(it.run).or_default() += 1;
                self.claim(&it.claimed);
            }
            Event::RunStepped(it) => {
                self.claim(&it.claimed);
                self.settle(it.settled.iter().chain(&it.stopped));
                self.operations.extend(it.started.iter().map(|operation| (operation.id, (it.run, operation.clone()))));
                if let Decision::Reply { parts } = &it.decision {
                    // Words that arrived meanwhile make it go on, and say something again.
                    let said = self.replies.entry(it.run).or_default();
                    *said += &domain::message::text_of(parts);
                    said.push('\n');
                }
            }
            Event::RunSettled(it) => self.settle(&it.settled),
            Event::RunEnded(it) => {
                *self.ended.entry(it.run).or_default() += 1;
                self.settle(&it.stopped);
                ensure!(it.end == TurnEnd::Replied, "a run ended otherwise: {it:?}");
            }
            Event::TurnCommitted(_) => self.turns += 1,
            Event::InputDead(it) => anyhow::bail!("an input was put aside: {it:?}"),
            Event::StepFailed(it) => anyhow::bail!("a step failed: {it:?}"),
            _ => {}
        }
        Ok(())
    }

    fn claim(&mut self, inputs: &[InputId]) {
        for input in inputs {
            *self.claims.entry(*input).or_default() += 1;
        }
    }

    fn settle<'a>(&mut self, settled: impl IntoIterator<Item = &'a Settlement>) {
        for settlement in settled {
            self.settled.entry(settlement.operation).or_default().push(settlement.outcome.clone());
        }
    }

    /// What was acknowledged is there, once, and one run dealt with it; nothing else is there.
    fn check_inputs(&self, ledger: &[Sent]) -> Result<()> {
        for sent in ledger {
            let input = sent.input.as_ref().with_context(|| format!("{} was never acknowledged", sent.key))?;
            ensure!(self.accepted.get(input) == Some(&1), "{} is there {:?} times", sent.key, self.accepted.get(input));
        }
        ensure!(self.accepted.len() == ledger.len(), "{} messages were accepted, {} were sent", self.accepted.len(), ledger.len());
        for (input, claims) in &self.claims {
            ensure!(*claims == 1, "{claims} runs claimed the input {input}");
        }
        Ok(())
    }

    /// Every run began once, ended once, and left one turn; every operation has one outcome.
    fn check_runs(&self) -> Result<()> {
        ensure!(self.started == self.ended && self.started.values().all(|count| *count == 1), "{:?}, {:?}", self.started, self.ended);
        ensure!(self.turns == self.ended.len(), "{} turns of {} runs", self.turns, self.ended.len());
        for (id, (_, operation)) in &self.operations {
            let outcomes = self.settled.get(id).map_or(0, Vec::len);
            ensure!(outcomes == 1, "{} has {outcomes} outcomes", operation.key);
        }
        Ok(())
    }

    /// What really happened: a non-idempotent call at most once, and once if it has a result; others under their own key only.
    fn check_effects(&self, log: &[String]) -> Result<()> {
        let mut begun: BTreeMap<&str, u32> = BTreeMap::new();
        for line in log {
            let words: Vec<&str> = line.split(' ').collect();
            ensure!(words.len() == 3, "a torn line: {line}");
            if words[1] == "begin" {
                *begun.entry(words[2]).or_default() += 1;
            }
        }
        let calls = self.operations.iter().filter(|(_, (_, operation))| matches!(operation.performer, Performer::Tool { .. }));
        let mut keys = Vec::new();
        for (id, (_, operation)) in calls {
            let key = id.idempotency_key(0);
            let count = begun.get(key.as_str()).copied().unwrap_or(0);
            let unknown = self.settled.get(id).is_some_and(|outcomes| outcomes.contains(&Outcome::Unknown));
            if operation.effect == EffectClass::NonIdempotent {
                ensure!(count <= 1, "`{}` really happened {count} times", operation.key);
            } else {
                ensure!(!unknown, "`{}` could have been made again", operation.key);
            }
            ensure!(count >= 1 || unknown, "`{}` has an outcome and never happened", operation.key);
            keys.extend([key, id.idempotency_key(1)]);
        }
        let strange = begun.keys().find(|key| !keys.iter().any(|known| known == *key));
        ensure!(strange.is_none(), "a call under a key of no operation: {strange:?}");
        Ok(())
    }

    /// The agent was told of every call of which nothing is known, and said so.
    fn check_unknown(&self) -> Result<usize> {
        let mut count = 0;
        for (id, outcomes) in &self.settled {
            if outcomes.contains(&Outcome::Unknown) {
                let (run, operation) = self.operations.get(id).context("an outcome of no operation")?;
                let reply = self.replies.get(run).map(String::as_str).unwrap_or_default();
                ensure!(
                    reply.contains(&format!("{} unknown", operation.key)),
                    "nobody was told that `{}` is unknown: {reply}",
                    operation.key
                );
                count += 1;
            }
        }
        Ok(count)
    }
}
