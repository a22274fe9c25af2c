//! Answering a client action.

use super::driver_answer::answered;
use super::once::Once;
use super::quarantine::driven;
use super::{By, Error, Request, Respond, Runs, Target};
use crate::boxed::boxed;
use crate::refusals::not_suspended;
use crate::schemas::{GivenUp, Schemas};
use crate::shared::runs::load_run;
use crate::signal::{ClientAnswer, Signal};
use domain::agent::Agent;
use domain::error_code::ErrorCode;
use domain::file::File;
use domain::id::SessionId;
use domain::operation::Kept;
use domain::refusal::Refusal;
use domain::role::{AgentRole, Right};
use domain::run::settle::question;
use domain::session::CHAT;
use domain::tool::ClientAction;
use domain::widget::upload::{self, AnswerWithFiles, Brought, Misfit};
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// The largest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

impl Runs<'_> {
    /// Takes the answer to a client action. When this returns, the answer is durable. Returns its
    /// position.
    ///
    /// # Errors
    /// No question waits for an answer, a different one does, or the answer does not fit the
    /// action's schema: then the question stays open.
    #[boxed]
    pub async fn respond(&self, mut command: Respond) -> Result<u64, Error> {
        // JSON Schema takes `1.0` for an integer, so the reader of the answer gets one.
        domain::json::make_integers(&mut command.response);
        let by = By::new(&command.user, command.idempotency_key.as_ref());
        let asked = json!({
            "respond": command.call,
            "target": command.target.named(),
            "session": command.session,
            "response": command.response,
        });
        let request = Request::of(by, &asked)?;
        let act = self.answer(command, request.clone());
        match self.requests().once(request.as_ref(), act).await? {
            Once::Now(position) => Ok(position),
            Once::Before(answer) => self.requests().position_of(&answer).await,
        }
    }

    async fn answer(&self, mut command: Respond, request: Option<Request>) -> Result<u64, Error> {
        let (agent, role) = self
            .agents()
            .find_for(&command.user, &command.target, Right::Interact)
            .await?;
        self.access().has_definition(&agent)?;
        let Some((run, session)) = self.store().operation_owner(command.call).await? else {
            return Err(nothing_pending(&agent.agent, &command, role));
        };
        if self.core.noted_inspections.are_over(session) {
            // Reading it would end the process.
            driven(self.core, session)?;
        }
        let loaded = load_run(self.store(), run).await;
        let (run, _) = loaded.map_err(|failure| {
            let unavailable = driven(self.core, session).err();
            unavailable.unwrap_or_else(|| failure.into())
        })?;
        if run.started.agent != agent.agent.id
            || command.session.is_some_and(|named| named != session)
        {
            return Err(nothing_pending(&agent.agent, &command, role));
        }
        // Another user's question looks absent to users who see only their own sessions.
        self.sessions()
            .for_command(&command.user, &Target::Agent(agent.agent.id), session)
            .await?;
        if command.response.to_string().len() > ANSWER_BYTES_MAX {
            let message = format!("an answer has at most {ANSWER_BYTES_MAX} bytes");
            return Err(Refusal::new(ErrorCode::AnswerTooLarge, message)
                .at("/response")
                .into());
        }
        let asked = run
            .open
            .values()
            .find(|open| open.question() == command.call)
            .and_then(question);
        let files = match asked {
            Some(action) => self.fit(session, action, &mut command.response).await?,
            None => Vec::new(),
        };
        driven(self.core, session)?;
        let (done, reply) = oneshot::channel();
        let answer = ClientAnswer {
            call: command.call,
            by: command.user.clone(),
            with_key: store::api_key_here(),
            value: command.response.clone(),
            files,
        };
        let signal = Signal::Answer {
            answer,
            request,
            done,
        };
        self.core.signal(session, signal).await;
        match answered(self.core, reply).await {
            Ok(position) => Ok(position),
            Err(error) => {
                // A user who lost the right to it gets that error instead.
                self.sessions()
                    .for_command(&command.user, &Target::Agent(agent.agent.id), session)
                    .await?;
                Err(self.too_late(error, &command, session).await)
            }
        }
    }

    /// Checks an answer and its files against the question, and converts it to the form that the
    /// agent reads.
    ///
    /// Returns the files that the session does not have yet.
    async fn fit(
        &self,
        session: SessionId,
        action: &ClientAction,
        response: &mut Value,
    ) -> Result<Vec<Brought>, Error> {
        let mut known: Vec<File> = Vec::new();
        if upload::may_have_files(action) {
            known.extend(
                self.store()
                    .files(session)
                    .await?
                    .into_iter()
                    .map(|row| row.file),
            );
        }
        let accepted =
            upload::accept(action, response, &known).map_err(|Misfit { place, problem }| {
                let complaint = format!("{place}: {problem}");
                Refusal::new(ErrorCode::InvalidResponse, complaint).at(format!("/response{place}"))
            })?;
        if let Some(complaint) = misfit(&self.core.schemas, action, response).await? {
            return Err(Refusal::new(ErrorCode::InvalidResponse, complaint).into());
        }
        let Some(AnswerWithFiles { answer, brought }) = accepted else {
            return Ok(Vec::new());
        };
        *response = answer;
        Ok(brought)
    }

    /// Returns the error of a structured session for an answer that its driver did not take, as
    /// things are now.
    async fn too_late(&self, error: Error, command: &Respond, session: SessionId) -> Error {
        if !matches!(&error, Error::Refused(refusal) if refusal.code == ErrorCode::NotSuspended) {
            return error;
        }
        match (
            self.store().session(session).await,
            self.agents().find(&command.user, &command.target).await,
        ) {
            (Ok(Some(row)), Ok((agent, role))) if row.session_type != CHAT => {
                nothing_pending(&agent.agent, command, role)
            }
            _ => error,
        }
    }
}

/// Returns the reason why a response is no answer to the question; none for a valid one.
async fn misfit(
    schemas: &Schemas,
    action: &ClientAction,
    response: &Value,
) -> Result<Option<String>, Refusal> {
    let complaint = match &action.response_schema {
        Some(schema) => schemas.judge(schema, response.clone()).await,
        None => Ok(None),
    };
    let complaint = match complaint {
        Ok(complaint) => complaint,
        // A retry would be refused again.
        Err(before @ GivenUp::Before(_)) => Some(before.to_string()),
        Err(given_up) => {
            let busy = Refusal::new(ErrorCode::Busy, given_up.to_string());
            return Err(busy);
        }
    };
    Ok(complaint.or_else(|| domain::widget::contradiction(action, response)))
}

/// Returns the refusal of an answer that no question waits for.
///
/// It names the question that does wait, if the user may see it. Its code is always that of an
/// answer, though other commands use the same text under another code.
fn nothing_pending(agent: &Agent, command: &Respond, role: AgentRole) -> Error {
    let mut seen = agent.clone();
    seen.active_session = seen
        .active_session
        .filter(|active| role.sees_all_sessions() || active.started_by == command.user);
    match seen.receive_client_response(command.call, Kept::Value(Value::Null), agent.updated_at) {
        Err(refusal) if refusal.code == ErrorCode::NoActiveSession => Refusal {
            code: ErrorCode::NotSuspended,
            ..refusal
        }
        .into(),
        Err(refusal) => refusal.into(),
        // The question waits, but not in the session that was named.
        Ok(_) => not_suspended().into(),
    }
}
