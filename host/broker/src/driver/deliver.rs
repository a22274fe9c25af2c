//! Messages to the programs behind external agents, and their answers.

use super::phase::Phase;
use super::record::{OVERTAKEN_MAX, is_overtaken};
use super::scope::{Scope, failed, simply};
use super::state::Driver;
use crate::ledger::{Through, entry, ledger_event};
use crate::performance::result::CommitExtras;
use crate::refusals::changing;
use crate::shared::DriverError;
use crate::shared::{AnswerAt, Request};
use crate::signal::{ExternalAnswer, ExternalSignal};
use domain::authority::Denied;
use domain::error_code::INVALID_ARGUMENTS;
use domain::event::{BoundaryDecided, BoundaryVerdict};
use domain::operation::Performer;
use domain::outbound_message::{ANSWER, DELIVER, messages};
use domain::ruling::Rule;
use domain::run::decide::Resolved;
use domain::run::external::{answer, nothing_waits};
use domain::tool::{ClientAction, EffectClass};
use runtime::Decided;

/// Resolves the request of a component that messages be delivered to the program behind its agent.
///
/// An outbound message counts as a call. It may be repeated under its key, and ends when its answer
/// is late.
pub(super) fn resolve_outbound_message(scope: &mut Scope<'_>, action: &ClientAction) -> Resolved {
    let definition = scope.definition;
    let Some(program) = definition.program() else {
        let denied = Denied {
            rule: Rule::NotGranted,
            what: definition.agent_id.0.clone(),
        };
        return scope.deny(None, DELIVER, &denied);
    };
    let messages = match messages(action) {
        Ok(messages) => messages,
        Err(fault) => return failed(INVALID_ARGUMENTS, fault),
    };
    if scope.left.calls == 0 {
        let reported = format!("no calls are left of {} (toolCallsMax)", scope.of);
        return scope.limit_reached(None, DELIVER, "toolCallsMax", reported);
    }
    scope.left.calls -= 1;
    Resolved {
        deadline: Some(scope.now.plus_ms(program.answer_timeout_ms())),
        ..simply(Performer::External { messages }, EffectClass::Idempotent)
    }
}

impl Driver {
    /// Handles an answer of an external agent, and replies with the outcome.
    pub(super) async fn take_external(&mut self, signal: ExternalSignal) {
        let ExternalSignal {
            answer,
            request,
            done,
        } = signal;
        let result = self.answer_from_outside(&answer, &request).await;
        // The caller may have been dropped. The answer is recorded all the same.
        let _ = done.send(result);
    }

    /// Takes an answer of an external agent. Returns the position of its event.
    ///
    /// If another writer appends to the run's stream first, the answer is applied to the run as it
    /// is then.
    async fn answer_from_outside(
        &mut self,
        answer: &ExternalAnswer,
        request: &Request,
    ) -> Result<u64, DriverError> {
        for _ in 0..OVERTAKEN_MAX {
            match self.answer_from_outside_now(answer, request).await {
                Err(failure) if is_overtaken(&failure) => {}
                answered => return answered,
            }
        }
        Err(DriverError::Refused(changing("the session")))
    }

    async fn answer_from_outside_now(
        &mut self,
        given: &ExternalAnswer,
        request: &Request,
    ) -> Result<u64, DriverError> {
        self.stale = true;
        self.refresh().await?;
        let Phase::Running(running) = &self.phase else {
            return Err(DriverError::Refused(nothing_waits(given.message)));
        };
        let run = &running.driving.run;
        let now = self.context.core.now();
        let (event, operation, blobs) = answer(run, given.message, given.text.clone(), now)?;
        let mut decided = Decided::default();
        decided.note(
            ANSWER,
            BoundaryVerdict::Granted,
            Rule::Granted,
            &run.started.definition.0,
        );
        let line = BoundaryDecided {
            operation: Some(operation),
            ..entry(&self.context.core, run, Through::Agent(run.component))
        };
        // The event of the answer is the first of the commit.
        let key = request.answered(&AnswerAt {
            run: run.started.run,
            version: running.version + 1,
        });
        let extras = CommitExtras {
            blobs,
            events: vec![ledger_event(line, decided, now)],
            ..CommitExtras::default()
        };
        let position = self.commit_run_event_once(event, extras, key).await?;
        // The program may answer before it has said that it took the message.
        if let Some(driving) = self.phase.driving_mut() {
            driving.stop_what_is_over(now).await;
        }
        Ok(position)
    }
}
