//! The report of a turn that has ended: its calls, its tokens and its time, from the events of its
//! run.

use super::{Error, Runs};
use domain::event::{Event, RunEnded};
use domain::id::{OperationId, RunId, Stream, TurnId};
use domain::model::Usage;
use domain::operation::{Operation, Performer, Settlement};
use domain::step::OperationOutcome;
use domain::time::Timestamp;
use domain::turn::TurnEnd;
use std::collections::{BTreeSet, HashMap};
use store::RunRow;

/// Events that are read at a time.
const PAGE: usize = 1_000;
/// Calls of a report, at most; the first ones of the turn.
const CALLS_MAX: usize = 1_000;

/// The report of a turn that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnReport {
    /// The run that made the turn.
    pub run: RunId,
    /// The turn; none if the run left none.
    pub turn: Option<TurnId>,
    /// The calls of tools, in the order in which they were started; 1,000 at most.
    pub calls: Vec<CallReport>,
    /// Tokens that its models used, as their providers reported them.
    pub usage: Usage,
    /// Cost of its models in millionths, for models with prices.
    pub cost_micros: u64,
    /// Calls of models.
    pub model_calls: u64,
    /// The providers' names of the models that were asked.
    pub models: Vec<String>,
    /// Milliseconds from the beginning of the run to its end, waiting included.
    pub duration_ms: u64,
    /// True if its models were asked for streams.
    pub streamed: bool,
    /// The reason why it failed or was aborted; none for any other end.
    pub failure: Option<TurnFailure>,
}

/// The reason why a turn failed or was aborted, or why there was none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnFailure {
    /// A stable code.
    pub code: String,
    /// The reason, as shown to people.
    pub reason: String,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallReport {
    /// The tool.
    pub name: String,
    /// True if it gave a result that is no failure.
    pub is_ok: bool,
    /// Milliseconds from its start to its outcome, waiting included.
    pub duration_ms: u64,
}

/// Puts a report together from the events of a run.
#[derive(Debug, Default)]
struct Tally {
    /// The calls, with the times at which they were started.
    calls: Vec<(CallReport, Timestamp)>,
    /// The place of each call that has no outcome yet.
    open: HashMap<OperationId, usize>,
    usage: Usage,
    cost_micros: u64,
    model_calls: u64,
    models: BTreeSet<String>,
    failure: Option<TurnFailure>,
}

impl Tally {
    fn take(&mut self, event: &Event) {
        if let Some(it) = event.step() {
            it.settled.iter().for_each(|settled| self.settled(settled));
            let time = it.time;
            it.started
                .iter()
                .for_each(|started| self.started(started, time));
            it.stopped.iter().for_each(|settled| self.settled(settled));
        }
        match event {
            Event::OperationContinued(it) => {
                if let Some(call) = &it.call {
                    self.started(&call.started, call.time);
                }
            }
            Event::RunSettled(it) => it.settled.iter().for_each(|settled| self.settled(settled)),
            Event::RunEnded(it) => {
                it.stopped.iter().for_each(|settled| self.settled(settled));
                self.failure = failure(it);
            }
            _ => {}
        }
    }

    fn started(&mut self, operation: &Operation, time: Timestamp) {
        if matches!(operation.performer, Performer::Model { .. }) {
            self.model_calls += 1;
        }
        let name = match (&operation.answers, &operation.performer) {
            (Some(answers), _) => &answers.name,
            (None, Performer::Tool { tool, .. } | Performer::Lasting { tool, .. }) => tool,
            (None, _) => return,
        };
        if self.calls.len() >= CALLS_MAX {
            return;
        }
        // A refused call, and one with a cached result, have their outcome from the start.
        let is_ok = match &operation.performer {
            Performer::Refused { outcome, .. } => is_result(outcome),
            _ => {
                self.open.insert(operation.id, self.calls.len());
                false
            }
        };
        let call = CallReport {
            name: name.clone(),
            is_ok,
            duration_ms: 0,
        };
        self.calls.push((call, time));
    }

    fn settled(&mut self, settlement: &Settlement) {
        for attempt in &settlement.attempts {
            if let Some(usage) = attempt.usage {
                self.usage = self.usage.plus(usage);
            }
            let cost = attempt.cost_micros.unwrap_or(0);
            self.cost_micros = self.cost_micros.saturating_add(cost);
            // The model of a lost attempt is not known: only the requested name is.
            if !attempt.is_lost() {
                self.models.insert(attempt.model.clone());
            }
        }
        let call = self
            .open
            .remove(&settlement.operation)
            .and_then(|place| self.calls.get_mut(place));
        if let Some((call, began)) = call {
            call.is_ok = is_ok(settlement);
            call.duration_ms = settlement.time.since_ms(*began);
        }
    }

    fn report(self, row: &RunRow, streams: bool) -> TurnReport {
        TurnReport {
            streamed: streams && self.model_calls > 0,
            run: row.run,
            turn: row.turn,
            calls: self.calls.into_iter().map(|(call, _)| call).collect(),
            usage: self.usage,
            cost_micros: self.cost_micros,
            model_calls: self.model_calls,
            models: self.models.into_iter().collect(),
            duration_ms: row
                .ended_at
                .map_or(0, |ended| ended.since_ms(row.started_at)),
            failure: self.failure,
        }
    }
}

/// Returns the reason why a run failed or was aborted; none for any other end.
fn failure(ended: &RunEnded) -> Option<TurnFailure> {
    match ended.end {
        TurnEnd::Failed | TurnEnd::Aborted => Some(TurnFailure {
            code: ended.code.clone().unwrap_or_default(),
            reason: ended.reason.clone().unwrap_or_default(),
        }),
        TurnEnd::Replied | TurnEnd::Completed => None,
    }
}

/// Returns whether a call gave a result that is no failure.
fn is_ok(settlement: &Settlement) -> bool {
    let has_failed = settlement
        .result
        .as_ref()
        .and_then(|result| result.answers.as_ref())
        .is_some_and(|answers| answers.failed);
    !has_failed && is_result(&settlement.outcome) && settlement.failed_delegation().is_none()
}

/// Returns whether an outcome is a result, and neither a failure nor a refusal.
fn is_result(outcome: &OperationOutcome) -> bool {
    match outcome {
        OperationOutcome::Message { .. }
        | OperationOutcome::Parts { .. }
        | OperationOutcome::Value { .. }
        | OperationOutcome::Elapsed => true,
        OperationOutcome::Failed { .. }
        | OperationOutcome::Denied
        | OperationOutcome::TimedOut
        | OperationOutcome::Cancelled
        | OperationOutcome::Unknown { .. } => false,
    }
}

impl Runs<'_> {
    /// Returns the report of a run that has ended.
    pub(super) async fn report(&self, row: &RunRow) -> Result<TurnReport, Error> {
        let mut tally = Tally::default();
        let mut streams = false;
        let mut after = 0;
        loop {
            let events = self
                .store()
                .stream(Stream::Run(row.run), after, PAGE)
                .await?;
            let count = events.len();
            for recorded in events {
                after = recorded.version;
                // Events that were purged in between, or written by a later program, are not
                // counted.
                if let Some(event) = &recorded.event {
                    tally.take(event);
                }
                if let Some(Event::RunStarted(started)) = &recorded.event {
                    streams = self.core.serving.streams(started);
                }
            }
            if count < PAGE {
                return Ok(tally.report(row, streams));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::budget::Amount;
    use domain::delegate::{self, DelegateResult, Task};
    use domain::digest::Digest;
    use domain::id::{AgentId, InputId, SessionId};
    use domain::message::{Answers, Draft, Part, Role};
    use domain::operation::Attempt;
    use domain::step::Failure;
    use domain::tool::EffectClass;
    use uuid::Uuid;

    const NOON: Timestamp = Timestamp(1_700_000_000_000);

    fn id() -> OperationId {
        OperationId(Digest([7; 32]))
    }

    /// A call of a tool that had its outcome from the start.
    fn refused(outcome: OperationOutcome) -> Operation {
        Operation {
            id: id(),
            key: "key".to_owned(),
            step: 1,
            place: 0,
            performer: Performer::Refused {
                outcome,
                untrusted: false,
                of_delegate: false,
                address: None,
            },
            effect: EffectClass::ReadOnly,
            time_limit_ms: None,
            deadline: None,
            answers: Some(Answers {
                message: 2,
                index: 0,
                call_id: "call".to_owned(),
                name: "delegate".to_owned(),
                failed: false,
            }),
            in_thread: true,
            reserved: Amount::default(),
            approval: None,
        }
    }

    #[test]
    fn a_call_with_a_result_from_before_is_a_success_and_a_refused_one_is_none() {
        let parts = vec![Part::text("found before")];
        let failure = Failure::lasting("limit-reached", "no tokens are left");
        for (outcome, is_ok) in [
            (OperationOutcome::Parts { parts }, true),
            (OperationOutcome::Failed { failure }, false),
            (OperationOutcome::Denied, false),
        ] {
            let mut tally = Tally::default();
            tally.started(&refused(outcome.clone()), NOON);
            let [(call, _)] = tally.calls.as_slice() else {
                panic!("{tally:?}")
            };
            assert_eq!(call.is_ok, is_ok, "{outcome:?}");
            assert_eq!(call.name, "delegate");
        }
    }

    /// A call of `delegate` that became a task.
    fn delegated(arguments: &str) -> Operation {
        Operation {
            performer: Performer::Agent {
                agent: AgentId(Uuid::nil()),
                session: SessionId(Uuid::nil()),
                input: InputId(Uuid::nil()),
                delegation: Some(arguments.to_owned()),
                message: None,
                since: NOON,
                queued: false,
            },
            ..refused(OperationOutcome::Denied)
        }
    }

    #[test]
    fn a_delegation_is_a_success_if_its_result_says_so() {
        let arguments =
            r#"{"target":"worker","operation":"read_file","parameters":{"path":"a.txt"}}"#;
        let delegation = delegate::parse(arguments, &delegate::Target::ALL).unwrap();
        let task = Task {
            operation: id(),
            agent: AgentId(Uuid::nil()),
            created: NOON,
            completed: NOON,
        };
        for (result, is_ok) in [
            (DelegateResult::succeeded(&delegation, &task, "read"), true),
            // The words of a reply are no result of the task.
            (
                DelegateResult::succeeded(&delegation, &task, r#"{"success":false}"#),
                true,
            ),
            (
                DelegateResult::failed(&delegation, &task, "gone", true),
                false,
            ),
            (DelegateResult::timed_out(&delegation, &task), false),
            (DelegateResult::cancelled(&delegation, &task), false),
        ] {
            let operation = delegated(arguments);
            let draft = Draft {
                answers: operation.answers.clone(),
                ..Draft::text(Role::Tool, "tool:delegate", result.to_string())
            };
            let mut tally = Tally::default();
            tally.started(&operation, NOON);
            tally.settled(&Settlement {
                result: Some(draft),
                ..Settlement::new(id(), OperationOutcome::Message { id: 3 }, NOON)
            });
            let [(call, _)] = tally.calls.as_slice() else {
                panic!("{tally:?}")
            };
            assert_eq!(call.is_ok, is_ok, "{result}");
        }
    }

    #[test]
    fn models_are_those_that_ended_an_attempt_and_not_the_names_of_lost_ones() {
        let attempt = |provider: &str, model: &str| Attempt {
            provider: provider.to_owned(),
            model: model.to_owned(),
            usage: None,
            cost_micros: None,
            wall_ms: 1,
            error: None,
            reserved: None,
        };
        let mut settlement = Settlement::new(id(), OperationOutcome::Message { id: 3 }, NOON);
        settlement.attempts = vec![
            attempt("", ""),
            attempt("", "default"),
            attempt("local", "m-1"),
        ];
        let mut tally = Tally::default();
        tally.settled(&settlement);
        assert_eq!(tally.models, BTreeSet::from(["m-1".to_owned()]));
    }

    #[test]
    fn a_turn_that_failed_or_was_aborted_has_its_reason_in_the_report_and_no_other_has() {
        for (end, code, has_reason) in [
            (TurnEnd::Replied, None, false),
            (TurnEnd::Completed, None, false),
            (TurnEnd::Failed, Some("agent-failed"), true),
            (TurnEnd::Aborted, Some("aborted"), true),
        ] {
            let reason = code.map(|code| format!("it is {code}"));
            let ended = RunEnded {
                run: RunId(Uuid::nil()),
                session: SessionId(Uuid::nil()),
                end,
                code: code.map(str::to_owned),
                reason: reason.clone(),
                turn: None,
                stopped: Vec::new(),
                said: Vec::new(),
                inputs: Vec::new(),
                compacts: false,
                time: NOON,
            };
            let mut tally = Tally::default();
            tally.take(&Event::RunEnded(ended));
            assert_eq!(tally.failure.is_some(), has_reason, "{end:?}");
            let reported = tally.failure.map(|failure| (failure.code, failure.reason));
            assert_eq!(reported, code.map(str::to_owned).zip(reason), "{end:?}");
        }
    }
}
