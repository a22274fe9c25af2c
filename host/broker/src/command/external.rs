//! Sessions of external agents, and the answers of the programs behind them.

use super::driver_answer::answered;
use super::once::Once;
use super::quarantine::driven;
use super::{Error, ExternalAgents, NewSession, Request, SessionIds, Target};
use crate::boxed::boxed;
use crate::external::{SESSION_NAME, Signed};
use crate::journal::Context;
use crate::refusals::{
    agent_not_external, answer_too_large, answer_unread, session_taken, signature_invalid,
    signature_stale,
};
use crate::refused_late::refused_late;
use crate::shared::AnswerAt;
use crate::signal::{ExternalAnswer, ExternalSignal, Signal};
use domain::definition::{Definition, DefinitionId};
use domain::digest::Digest;
use domain::egress::Traffic;
use domain::error_code::{ErrorCode, ErrorKind};
use domain::event::{BoundaryDecided, BoundaryDecision, BoundaryVerdict, Event};
use domain::external::{ExternalName, ExternalSettings, SignedDirection, is_fresh};
use domain::id::{AgentId, OperationId, RunId, SessionId, Stream};
use domain::outbound_message::ANSWER;
use domain::refusal::Refusal;
use domain::ruling::Rule;
use domain::secret::Secret;
use domain::user::UserId;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use store::{Commit, Expected, SessionRow};
use tokio::sync::oneshot;

/// A secret that belongs to no program, for answers in sessions that do not exist.
const NOBODYS: &str = "there-is-no-session-of-this-name";

/// A command that attaches a program to a session of its agent. The session is opened if it does
/// not exist.
#[derive(Debug, Clone)]
pub struct AttachExternal {
    /// The definition of the external agent.
    pub definition: DefinitionId,
    /// The name of the session.
    pub name: ExternalName,
    /// The user whom the session is for.
    pub user: UserId,
}

/// A session that a program is attached to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// The session.
    pub session: SessionId,
    /// Its agent.
    pub agent: AgentId,
    /// True if it was opened for this.
    pub created: bool,
}

/// A request with which a program answers a message.
#[derive(Debug, Clone)]
pub struct ExternalPost {
    /// The session, as the path names it.
    pub name: ExternalName,
    /// The message that is answered; none for the longest waiting one.
    pub message: Option<OperationId>,
    /// The second at which the request was signed.
    pub time_s: u64,
    /// The signature, as the header has it.
    pub signature: String,
    /// The body. None if it exceeded the maximum of the host.
    pub body: Option<Vec<u8>>,
}

/// The session of a request, and the program behind its agent.
struct Addressee {
    row: SessionRow,
    definition: Arc<Definition>,
    program: ExternalSettings,
}

/// The reason for refusals that go into the ledger.
struct Because {
    rule: Rule,
    verdict: BoundaryVerdict,
    detail: ErrorCode,
    times: u64,
}

impl ExternalAgents<'_> {
    /// Attaches a program to a session, which is opened if it does not exist. Repeating it changes
    /// nothing.
    ///
    /// # Errors
    /// The definition does not exist or is not of an external agent; the session belongs to another
    /// agent or user; the user may not open one.
    #[boxed]
    pub async fn attach(&self, command: AttachExternal) -> Result<Attached, Error> {
        let definition = self.agents().definition(&command.definition)?;
        if definition.program().is_none() {
            return Err(agent_not_external(&command.definition).at("/agent").into());
        }
        if let Some(attached) = self.attached(&command).await? {
            return Ok(attached);
        }
        match self
            .sessions()
            .open_now(&opening(&command), None, None)
            .await
        {
            Ok((agent, session)) => Ok(Attached {
                session,
                agent,
                created: true,
            }),
            // Another request may have opened it meanwhile.
            Err(error) => match self.attached(&command).await? {
                Some(attached) => Ok(attached),
                None => Err(error),
            },
        }
    }

    /// Returns the session of a command that is there already.
    async fn attached(&self, command: &AttachExternal) -> Result<Option<Attached>, Error> {
        let id = command.name.session();
        let Some(row) = self.store().session(id).await? else {
            return Ok(None);
        };
        let agent = self.store().agent(row.agent).await?;
        let is_own = row.user_id == command.user
            && agent.is_some_and(|agent| agent.agent.definition == command.definition);
        if !is_own {
            let taken = session_taken(&command.name);
            return Err(taken.at("/session").into());
        }
        let row = self
            .sessions()
            .for_command(&command.user, &Target::Agent(row.agent), id)
            .await?;
        Ok(Some(Attached {
            session: row.id,
            agent: row.agent,
            created: false,
        }))
    }

    /// Accepts a program's answer to a message that was sent to it. When this returns, the answer
    /// is durable. Returns its position, and whether the same answer was given before.
    ///
    /// Refusals about an existing session are recorded in the ledger, up to a maximum. Those of
    /// unsigned requests are collected, and only while a turn is open.
    ///
    /// # Errors
    /// The signature is wrong or stale, the answer is too large or not text, or no message waits
    /// for it.
    #[boxed]
    pub async fn answer(&self, post: ExternalPost) -> Result<(u64, bool), Error> {
        let is_unsigned = |taken: &Result<_, Error>| matches!(taken, Err(Error::Refused(_)));
        refused_late(self.verify_answer(post), is_unsigned).await
    }

    async fn verify_answer(&self, post: ExternalPost) -> Result<(u64, bool), Error> {
        let to = self.program_at(&post.name).await?;
        // An unsigned request gets the same answer whether or not the session exists.
        let signed = match (&post.body, &to) {
            (None, _) => Err(answer_unread()),
            (Some(body), None) => {
                // Costs the same work as a verification, and always fails.
                let nobodys = Secret::parse(NOBODYS);
                let _ = nobodys.map(|it| signed_of(&post, body).is_signed_by(&it, &post.signature));
                Err(signature_invalid())
            }
            (Some(body), Some(to)) => self.signed_body(to, &post, body),
        };
        let (to, body) = match (to, signed) {
            (Some(to), Ok(body)) => (to, body),
            (Some(to), Err(refusal)) => {
                self.note_unsigned(&to, &refusal).await;
                return Err(refusal.into());
            }
            (None, refused) => return Err(refused.err().unwrap_or_else(signature_invalid).into()),
        };
        let text = match text_of(&to, body) {
            Ok(text) => text,
            Err(refusal) => {
                self.note_signed(&to, &refusal).await;
                return Err(refusal.into());
            }
        };
        driven(self.core, to.row.id)?;
        let taken = self.take_post(&to, &post, text).await;
        if let Err(Error::Refused(refusal)) = &taken
            && refusal.kind() == ErrorKind::Conflict
        {
            self.note_signed(&to, refusal).await;
        }
        taken
    }

    /// Returns the session of a request, and the program behind its agent. None if the session does
    /// not exist, or its agent is not external.
    async fn program_at(&self, name: &ExternalName) -> Result<Option<Addressee>, Error> {
        let row = self.store().session(name.session()).await?;
        let Some(row) = row.filter(|row| !row.purged) else {
            return Ok(None);
        };
        let Some(agent) = self.store().agent(row.agent).await? else {
            return Ok(None);
        };
        let Ok(definition) = self.agents().definition(&agent.agent.definition) else {
            return Ok(None);
        };
        let program = definition.program().cloned();
        Ok(program.map(|program| Addressee {
            row,
            definition,
            program,
        }))
    }

    /// Returns the body of a request that the program has signed just now.
    fn signed_body<'a>(
        &self,
        to: &Addressee,
        post: &ExternalPost,
        body: &'a [u8],
    ) -> Result<&'a [u8], Refusal> {
        let secrets = self.core.runtime.secrets();
        let secret = secrets
            .get(&to.program.secret)
            .ok_or_else(signature_invalid)?;
        if !signed_of(post, body).is_signed_by(secret, &post.signature) {
            return Err(signature_invalid());
        }
        let now_s = self.core.clock.for_credentials().0 / 1_000;
        match is_fresh(post.time_s, now_s) {
            true => Ok(body),
            false => Err(signature_stale(post.time_s, now_s)),
        }
    }

    /// Gives an answer to the session's driver, once.
    async fn take_post(
        &self,
        to: &Addressee,
        post: &ExternalPost,
        text: String,
    ) -> Result<(u64, bool), Error> {
        let request = request_of(to, post, &text);
        let act = async {
            let (done, reply) = oneshot::channel();
            let signal = ExternalSignal {
                answer: ExternalAnswer {
                    message: post.message,
                    text,
                },
                request: request.clone(),
                done,
            };
            self.core
                .signal(to.row.id, Signal::External(Box::new(signal)))
                .await;
            answered(self.core, reply).await
        };
        let once: Once<u64, AnswerAt> = self.requests().once(Some(&request), act).await?;
        Ok(match once {
            Once::Now(position) => (position, false),
            Once::Before(answer) => (self.requests().position_of(&answer).await?, true),
        })
    }

    /// Records the refusal of a request that the program signed, with the session's latest run.
    async fn note_signed(&self, to: &Addressee, refusal: &Refusal) {
        log_refused(to, refusal);
        if !self.core.noted_refusals.take(to.row.id, self.core.now()) {
            return;
        }
        if let Some(run) = self.last_run(&to.row).await {
            self.note_refused(to, run, &because(refusal)).await;
        }
    }

    /// Records the refusal of a request that anyone may have sent. Ended runs get no entry:
    /// otherwise everyone who knows the name of a session could add to it for ever.
    async fn note_unsigned(&self, to: &Addressee, refusal: &Refusal) {
        let refusals = &self.core.noted_refusals;
        let now = self.core.now();
        // Anybody may send them: neither the log nor the ledger has each.
        let Some(times) = refusals.collect(to.row.id, refusal.code, now) else {
            return;
        };
        log_refused(to, refusal);
        if let Some(run) = to.row.open_run {
            let because = Because {
                times,
                ..because(refusal)
            };
            self.note_refused(to, run, &because).await;
        }
    }

    /// Records the refusal of an answer in the ledger. If that fails, it is logged.
    async fn note_refused(&self, to: &Addressee, run: RunId, because: &Because) {
        let session = to.row.id;
        let now = self.core.now();
        let decision = BoundaryDecision {
            capability: ANSWER.to_owned(),
            verdict: because.verdict,
            rule: because.rule,
            times: because.times,
            detail: because.detail.to_string(),
        };
        let line = BoundaryDecided {
            run: Some(run),
            operation: None,
            segment: 0,
            definition: to.definition.agent_id.clone(),
            user_id: Some(to.row.user_id.clone()),
            tool: None,
            component: None,
            code: None,
            version: None,
            grant: None,
            decisions: vec![decision],
            left_out: 0,
            folders: Vec::new(),
            egress: Traffic::default(),
            time: now,
        };
        let context = Context::new(format!("external:{}", to.definition.agent_id), now);
        let event = context
            .about(to.row.agent, Some(session), Some(run))
            .event(Event::BoundaryDecided(Box::new(line)));
        let commit = Commit::new().append(Stream::Run(run), Expected::Any, vec![event]);
        if let Err(error) = self.store().commit(commit).await {
            tracing::warn!(session.id = %session, error = &error as &dyn std::error::Error, "a \
                refusal could not be put into the ledger");
        }
    }

    /// Returns the open run of a session, or its last one.
    async fn last_run(&self, row: &SessionRow) -> Option<RunId> {
        if let Some(run) = row.open_run {
            return Some(run);
        }
        let fruitless = self.store().fruitless_runs(row.id, 1).await.ok()?;
        if let Some(run) = fruitless.first() {
            return Some(run.run);
        }
        let turn = self.store().turn(row.head?).await.ok()??;
        Some(turn.run)
    }
}

/// Returns the command that opens a session which a program is attached to.
fn opening(command: &AttachExternal) -> NewSession {
    let name = Value::from(command.name.as_str());
    NewSession {
        ids: SessionIds {
            session: Some(command.name.session()),
            ..SessionIds::default()
        },
        config: Some(Map::from_iter([(SESSION_NAME.to_owned(), name)])),
        ..NewSession::of(
            Target::Definition(command.definition.clone()),
            command.user.clone(),
        )
    }
}

/// Returns the request of an answer. The same text for the same message is the same request;
/// without the message, only one with the same signed second.
fn request_of(to: &Addressee, post: &ExternalPost, text: &str) -> Request {
    let time_s = post.message.is_none().then_some(post.time_s);
    let asked = json!({ "message": post.message, "text": text, "time": time_s });
    let digest = Digest::of(asked.to_string().as_bytes());
    Request {
        source: format!("external:{}", to.definition.agent_id),
        key: format!("{}:{digest}", to.row.id),
        digest,
        about: Some(to.row.id),
    }
}

/// Returns the bytes that the signature of a request covers.
fn signed_of<'a>(post: &'a ExternalPost, body: &'a [u8]) -> Signed<'a> {
    Signed {
        direction: SignedDirection::ToHost,
        time_s: post.time_s,
        session: post.name.as_str(),
        message: post.message,
        body,
    }
}

/// Returns the text of an answer that the program has signed.
fn text_of(to: &Addressee, body: &[u8]) -> Result<String, Refusal> {
    let max = to.program.answer_bytes_max;
    if body.len() > usize::try_from(max).unwrap_or(usize::MAX) {
        return Err(answer_too_large(max));
    }
    let text = std::str::from_utf8(body).unwrap_or_default();
    if text.trim().is_empty() {
        let message = "an answer is text in UTF-8, and not empty";
        return Err(Refusal::new(ErrorCode::Invalid, message).at("body"));
    }
    Ok(text.to_owned())
}

fn log_refused(to: &Addressee, refusal: &Refusal) {
    tracing::warn!(
        session.id = %to.row.id,
        definition = %to.definition.agent_id,
        detail = %refusal.code,
        "an answer of an external agent was refused"
    );
}

/// Returns the reason that the ledger records for a refusal.
fn because(refusal: &Refusal) -> Because {
    let (rule, verdict) = match refusal.kind() {
        ErrorKind::TooLarge => (Rule::Limits, BoundaryVerdict::Limited),
        ErrorKind::Conflict => (Rule::Unknown, BoundaryVerdict::Refused),
        _ => (Rule::Permissions, BoundaryVerdict::Refused),
    };
    Because {
        rule,
        verdict,
        detail: refusal.code,
        times: 1,
    }
}
