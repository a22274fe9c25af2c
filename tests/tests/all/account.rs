//! An account of everything that the events report, with the rules that hold whatever happened to
//! the writing hosts.

use anyhow::{Context, Result, ensure};
use domain::event::{Event, InputAccepted, Recorded, RunStepped, Source};
use domain::id::{InputId, OperationId, RunId, SessionId};
use domain::message::text_of;
use domain::operation::{Operation, Performer, Settlement};
use domain::step::{Decision, OperationOutcome};
use domain::tool::EffectClass;
use domain::turn::TurnEnd;
use std::collections::{BTreeMap, BTreeSet};

/// The end of a run, with the code of a failure.
pub(super) type End = (TurnEnd, Option<String>);

/// Work that an agent handed over.
#[derive(Debug)]
pub(super) struct Handed {
    pub(super) text: String,
    pub(super) by: Option<OperationId>,
    pub(super) late_replies: u32,
}

/// The facts that the events report.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) accepted: BTreeMap<InputId, u32>,
    pub(super) openings: BTreeMap<InputId, SessionId>,
    pub(super) claims: BTreeMap<InputId, u32>,
    /// Runs, with the first input that each took in.
    pub(super) started: BTreeMap<RunId, Vec<InputId>>,
    pub(super) ended: BTreeMap<RunId, Vec<End>>,
    pub(super) failed_steps: BTreeSet<RunId>,
    pub(super) dead: BTreeMap<InputId, u32>,
    /// Number of times that an input was put aside that no run had claimed.
    pub(super) aside: BTreeMap<InputId, u32>,
    /// The work that was handed over: its text, the operation that handed it over, and the number
    /// of late replies to it.
    pub(super) handed: BTreeMap<InputId, Handed>,
    /// Late replies, with their hops.
    pub(super) late: BTreeMap<InputId, u32>,
    pub(super) requeued: BTreeMap<InputId, u32>,
    pub(super) answered: BTreeMap<OperationId, u32>,
    /// Slots that were taken, and left, by session.
    pub(super) slots: BTreeMap<SessionId, (u32, u32)>,
    turns: BTreeMap<RunId, u32>,
    /// Runs that left no turn: their inputs are dead letters.
    buried: BTreeSet<RunId>,
    operations: BTreeMap<OperationId, (RunId, Operation)>,
    continued: BTreeMap<(OperationId, u32), u32>,
    settled: BTreeMap<OperationId, Vec<OperationOutcome>>,
    replies: BTreeMap<RunId, String>,
}

/// Positions are dense; versions are contiguous in every stream; no event is there twice.
pub(super) fn check_places(events: &[Recorded]) -> Result<()> {
    let mut versions: BTreeMap<&str, u64> = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for (index, event) in events.iter().enumerate() {
        ensure!(
            event.position == index as u64 + 1,
            "position {} is the {}. event",
            event.position,
            index + 1
        );
        let version = versions.entry(&event.stream).or_default();
        *version += 1;
        ensure!(
            event.version == *version,
            "{}: version {} follows {}",
            event.stream,
            event.version,
            *version - 1
        );
        ensure!(
            ids.insert(event.id.0),
            "event {} is there twice",
            event.position
        );
    }
    Ok(())
}

impl Account {
    pub(super) fn of(events: &[Recorded]) -> Result<Self> {
        let mut account = Self::default();
        for recorded in events {
            account.take(
                recorded
                    .event
                    .as_ref()
                    .context("an event that was erased")?,
                recorded.correlation,
            );
        }
        Ok(account)
    }

    fn step(&mut self, it: &RunStepped) {
        self.claim(&it.claimed);
        self.settle(it.settled.iter().chain(&it.stopped));
        self.operations.extend(
            it.started
                .iter()
                .map(|operation| (operation.id, (it.run, operation.clone()))),
        );
        if let Decision::Reply { parts } = &it.decision {
            // Words that arrived meanwhile make it go on, and say something again.
            let said = self.replies.entry(it.run).or_default();
            *said += &text_of(parts);
            said.push('\n');
        }
    }

    fn take(&mut self, event: &Event, correlation: Option<InputId>) {
        match event {
            Event::InputAccepted(it) => self.accept(it, correlation),
            Event::RunStarted(it) => {
                self.started
                    .entry(it.run)
                    .or_default()
                    .extend(it.claimed.first());
                self.claim(&it.claimed);
                if let Some(step) = &it.first_step {
                    self.step(step);
                }
            }
            Event::RunStepped(it) => self.step(it),
            Event::RunSettled(it) => self.settle(&it.settled),
            Event::RunEnded(it) => {
                self.ended
                    .entry(it.run)
                    .or_default()
                    .push((it.end, it.code.clone()));
                if it.turn.is_none() {
                    self.buried.insert(it.run);
                }
                self.settle(&it.stopped);
            }
            Event::OperationContinued(it) => {
                *self
                    .continued
                    .entry((it.operation, it.segment))
                    .or_default() += 1
            }
            Event::OperationAnswered(it) => *self.answered.entry(it.operation).or_default() += 1,
            Event::TurnCommitted(it) => *self.turns.entry(it.turn.run).or_default() += 1,
            Event::InputDead(it) => {
                let claims = self.claims.get(&it.input).copied().unwrap_or(0);
                let aside = self.aside.entry(it.input).or_default();
                let deaths = self.dead.entry(it.input).or_default();
                // As often as it was claimed it was put aside with its run before.
                *aside += u32::from(*deaths == claims + *aside);
                *deaths += 1;
            }
            Event::InputRequeued(it) => *self.requeued.entry(it.input).or_default() += 1,
            Event::StepFailed(it) => drop(self.failed_steps.insert(it.run)),
            Event::SlotTaken(it) => self.slots.entry(it.session_id).or_default().0 += 1,
            Event::SlotCompleted(it) => self.slots.entry(it.session_id).or_default().1 += 1,
            Event::SlotTerminated(it) => self.slots.entry(it.session_id).or_default().1 += 1,
            _ => {}
        }
    }

    fn accept(&mut self, it: &InputAccepted, correlation: Option<InputId>) {
        self.claims.entry(it.input).or_default();
        match &it.source {
            Source::Api | Source::Trigger { .. } | Source::Connector { .. } => {
                *self.accepted.entry(it.input).or_default() += 1;
            }
            Source::Opening => drop(self.openings.insert(it.input, it.session)),
            Source::Dispatch { reply_to, .. } => {
                let text = it
                    .message
                    .as_ref()
                    .map(|message| text_of(&message.parts))
                    .unwrap_or_default();
                let by = reply_to.map(|to| to.operation);
                self.handed.insert(
                    it.input,
                    Handed {
                        text,
                        by,
                        late_replies: 0,
                    },
                );
            }
            Source::LateReply { hops, .. } => {
                self.late.insert(it.input, *hops);
                // It belongs to the work that it replies to.
                if let Some(handed) = correlation.and_then(|input| self.handed.get_mut(&input)) {
                    handed.late_replies += 1;
                }
            }
            Source::Reminder { .. } => {}
        }
    }

    fn claim(&mut self, inputs: &[InputId]) {
        for input in inputs {
            *self.claims.entry(*input).or_default() += 1;
        }
    }

    fn settle<'a>(&mut self, settled: impl IntoIterator<Item = &'a Settlement>) {
        for settlement in settled {
            self.settled
                .entry(settlement.operation)
                .or_default()
                .push(settlement.outcome.clone());
            if matches!(settlement.outcome, OperationOutcome::Value { .. }) {
                *self.answered.entry(settlement.operation).or_default() += 1;
            }
        }
    }

    /// Checks that every input was accepted once and dealt with once. One that was put aside is
    /// dealt with once more for every time that it was requeued.
    pub(super) fn check_inputs(&self) -> Result<()> {
        let twice = self.accepted.iter().find(|(_, count)| **count != 1);
        ensure!(
            twice.is_none(),
            "an input was accepted several times: {twice:?}"
        );
        for (input, claims) in &self.claims {
            let expected = 1 + self.requeued.get(input).copied().unwrap_or(0);
            let aside = self.aside.get(input).copied().unwrap_or(0);
            let reported = format!(
                "{claims} runs claimed the input {input}, which had {expected} chances and \
                         was put aside {aside} times before"
            );
            ensure!(claims + aside == expected, reported);
        }
        Ok(())
    }

    /// Checks the replies to work that was handed over. A sender that waits no more, or never did,
    /// has one reply as a message; a sender that waits has none but the outcome. Holds for agents
    /// of which none was stopped.
    pub(super) fn check_replies(&self) -> Result<()> {
        for (input, handed) in &self.handed {
            let by = handed.by.context("work that nobody hears of")?;
            let (_, operation) = self
                .operations
                .get(&by)
                .with_context(|| format!("{input} was handed over by no operation"))?;
            let waited = matches!(operation.performer, Performer::Agent { .. });
            let replies = handed.late_replies;
            ensure!(
                replies == u32::from(!waited),
                "`{}` handed over {input}, and has {replies} late replies to it",
                operation.key
            );
        }
        let replies: u32 = self.handed.values().map(|handed| handed.late_replies).sum();
        ensure!(
            replies as usize == self.late.len(),
            "{} late replies, and {replies} of them to something",
            self.late.len()
        );
        Ok(())
    }

    /// Every run began once and ended once; one that began to speak left one turn; every operation
    /// has one outcome, and every segment that another follows went on once.
    pub(super) fn check_runs(&self) -> Result<()> {
        for (run, first) in &self.started {
            let ends = self.ended.get(run).map_or(0, Vec::len);
            ensure!(
                first.len() == 1 && ends == 1,
                "run {run} began {} times and ended {ends} times",
                first.len()
            );
        }
        ensure!(
            self.started.len() == self.ended.len(),
            "{} runs began and {} ended",
            self.started.len(),
            self.ended.len()
        );
        for run in self.ended.keys() {
            let turns = self.turns.get(run).copied().unwrap_or(0);
            ensure!(
                turns == u32::from(!self.buried.contains(run)),
                "run {run} left {turns} turns"
            );
        }
        for (id, (_, operation)) in &self.operations {
            let outcomes = self.settled.get(id).map_or(0, Vec::len);
            ensure!(outcomes == 1, "{} has {outcomes} outcomes", operation.key);
        }
        let twice = self.continued.iter().find(|(_, count)| **count != 1);
        ensure!(
            twice.is_none(),
            "a segment went on several times: {twice:?}"
        );
        let twice = self.answered.iter().find(|(_, count)| **count != 1);
        ensure!(
            twice.is_none(),
            "a question was answered several times: {twice:?}"
        );
        Ok(())
    }

    /// Checks the effects that really happened. A non-idempotent call began at most once, and once
    /// if it has a result; others began under their own key only.
    pub(super) fn check_effects(&self, log: &[String]) -> Result<()> {
        let mut begun: BTreeMap<&str, u32> = BTreeMap::new();
        for line in log {
            let words: Vec<&str> = line.split(' ').collect();
            ensure!(words.len() == 3, "a torn line: {line}");
            if words[1] == "begin" {
                *begun.entry(words[2]).or_default() += 1;
            }
        }
        let calls = self
            .operations
            .iter()
            .filter(|(_, (_, operation))| matches!(operation.performer, Performer::Tool { .. }));
        let mut keys = Vec::new();
        for (id, (_, operation)) in calls {
            let key = id.idempotency_key(0);
            let count = begun.get(key.as_str()).copied().unwrap_or(0);
            let work_outcome = |is: fn(&OperationOutcome) -> bool| {
                self.settled
                    .get(id)
                    .is_some_and(|outcomes| outcomes.iter().any(is))
            };
            let unknown = work_outcome(is_unknown);
            let cancelled = work_outcome(|outcome| *outcome == OperationOutcome::Cancelled);
            if operation.effect == EffectClass::NonIdempotent {
                ensure!(
                    count <= 1,
                    "`{}` really happened {count} times",
                    operation.key
                );
                ensure!(
                    count == 0 || !cancelled,
                    "`{}` happened and is said not to have",
                    operation.key
                );
            } else {
                ensure!(!unknown, "`{}` could have been made again", operation.key);
            }
            ensure!(
                count >= 1 || unknown || cancelled,
                "`{}` has an outcome and never happened",
                operation.key
            );
            keys.extend([key, id.idempotency_key(1)]);
        }
        let strange = begun
            .keys()
            .find(|key| !keys.iter().any(|known| known == *key));
        ensure!(
            strange.is_none(),
            "a call under a key of no operation: {strange:?}"
        );
        Ok(())
    }

    /// The keys under which tools may have been called.
    pub(super) fn keys(&self) -> BTreeSet<String> {
        self.operations
            .keys()
            .flat_map(|id| [id.idempotency_key(0), id.idempotency_key(1)])
            .collect()
    }

    /// Checks calls of which nothing is known. The agent got each as an outcome and reported it,
    /// unless its turn was ended for it.
    pub(super) fn check_unknown(&self) -> Result<usize> {
        let mut count = 0;
        for (id, outcomes) in &self.settled {
            if outcomes.iter().any(is_unknown) {
                let (run, operation) = self
                    .operations
                    .get(id)
                    .context("an outcome of no operation")?;
                let replied = self
                    .ended
                    .get(run)
                    .is_some_and(|ends| ends.iter().all(|(end, _)| *end == TurnEnd::Replied));
                let reply = self
                    .replies
                    .get(run)
                    .map(String::as_str)
                    .unwrap_or_default();
                let reported = reply.contains(&format!("{} unknown", operation.key));
                ensure!(
                    reported || !replied,
                    "nobody was told that `{}` is unknown: {reply}",
                    operation.key
                );
                count += 1;
            }
        }
        Ok(count)
    }
}

fn is_unknown(outcome: &OperationOutcome) -> bool {
    matches!(outcome, OperationOutcome::Unknown { .. })
}
