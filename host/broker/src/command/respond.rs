//! Answering a client action.

use super::{Broker, Error, Respond};
use crate::driver::{Signal, load_run};
use crate::outfit::complaints;
use crate::refusals::not_suspended;
use domain::refusal::{Kind, Refusal};
use domain::run::settle::question;
use tokio::sync::oneshot;

/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 1 << 20;

impl Broker {
    /// Takes the answer to a client action. When this returns, the answer is durable. Returns its position.
    ///
    /// # Errors
    /// Nothing waits for an answer, something else does, or the answer does not fit the action's schema: then the question stays open.
    pub async fn respond(&self, command: Respond) -> Result<u64, Error> {
        let agent = self.find(&command.user, &command.target).await?;
        let Some((run, session)) = self.core.store.operation_owner(command.call).await? else {
            return Err(self.nothing_pending(&agent, &command).await);
        };
        let (run, _) = load_run(&self.core.store, run).await?;
        if run.started.agent != agent.agent.id {
            return Err(not_suspended().into());
        }
        if command.response.to_string().len() > ANSWER_BYTES_MAX {
            let message = format!("an answer has at most {ANSWER_BYTES_MAX} bytes");
            return Err(Refusal::new(Kind::TooLarge, "ANSWER_TOO_LARGE", message).at("/response").into());
        }
        if let Some(schema) = run.open.get(&command.call).and_then(question).and_then(|action| action.response_schema.as_ref())
            && let Ok(validator) = jsonschema::validator_for(schema)
            && let Some(complaint) = complaints(&validator, &command.response)
        {
            return Err(Refusal::new(Kind::Invalid, "INVALID_RESPONSE", complaint).at("/response").into());
        }
        let (done, answered) = oneshot::channel();
        self.core.signal(session, Signal::Answer { operation: command.call, value: command.response, done }).await;
        crate::command::answered(&self.core, answered).await
    }

    /// Names the question that does wait, if one does.
    async fn nothing_pending(&self, agent: &store::AgentRow, command: &Respond) -> Error {
        let pending = async {
            let (session, _) = agent.agent.slot.clone()?;
            let run = self.core.store.session(session).await.ok()??.open_run?;
            let (run, _) = load_run(&self.core.store, run).await.ok()?;
            run.open.values().find(|open| question(open).is_some()).map(|open| open.operation.id)
        };
        match pending.await {
            Some(pending) => {
                let message = format!("Response tool_call_id {} doesn't match pending {pending}", command.call);
                Refusal::new(Kind::Conflict, "INVALID_TOOL_CALL_ID", message).at("/call_id").into()
            }
            None => not_suspended().into(),
        }
    }
}
