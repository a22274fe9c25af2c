//! Accepting words: from here on nothing loses them.

use super::agents::invalid;
use super::sessions::allowed;
use super::{Broker, By, Error, InputReceipt, PostMessage, Request};
use crate::core::fresh;
use crate::journal::Context;
use crate::refusals::{busy, session_closed, too_large};
use domain::event::{Event, InputAccepted, Source};
use domain::id::{InputId, Stream};
use domain::limits::{INPUT_BYTES_MAX, WAITING_INPUTS_MAX};
use domain::message::{Draft, Part, Role};
use serde::{Deserialize, Serialize};
use store::{Clash, Commit, CommitError, Expected, Guard, Key};

/// What a repeated request is answered with.
#[derive(Serialize, Deserialize)]
struct Remembered {
    input: InputId,
}

impl Broker {
    /// Accepts a message. When this returns, it is durable and will be dealt with, whatever happens to this process.
    ///
    /// # Errors
    /// An unknown or ended session, an empty or too large message, too many waiting, an idempotency key of another request.
    pub async fn post_message(&self, command: PostMessage) -> Result<InputReceipt, Error> {
        let row = self.session_for(&command.user, &command.target, command.session).await?;
        check_content(&command.content)?;
        if let Some(model) = &command.model
            && let Err(unknown) = self.core.gateway.resolve(Some(model))
        {
            return Err(invalid(unknown.to_string(), "/model"));
        }
        let now = self.core.now();
        let (input, session) = (fresh::input(), row.id);
        let key = self.key(&command, input)?;
        let message = Draft { role: Role::User, parts: command.content, origin: "api".into(), untrusted: false, answers: None };
        let user_id = Some(command.user.clone());
        let accepted = InputAccepted {
            input,
            session,
            source: Source::Api,
            user_id,
            message: Some(message),
            model: command.model,
            waits_for: None,
            priority: None,
            time: now,
        };
        let context = Context::new(format!("user:{}", command.user), now).about(row.agent, Some(session), None).following(Some(input));
        let mut commit = Commit::new()
            .guard(Guard::SessionOpen(session))
            .guard(allowed(row.agent, &command.user))
            .guard(Guard::WaitingAtMost { session, max: WAITING_INPUTS_MAX as u64 - 1 })
            .append(Stream::Session(session), Expected::Any, vec![context.event(Event::InputAccepted(accepted))]);
        commit.key = key;
        store::point("broker.accept.before");
        let committed = self.core.commit_work(session, commit).await;
        store::point("broker.accept.after");
        match committed {
            Ok(committed) => Ok(InputReceipt { input, session, position: committed.last_position, replayed: false }),
            Err(CommitError::Replayed { reply }) => self.replayed(&reply).await,
            Err(CommitError::Conflict(conflict)) => Err(match conflict.clash {
                Clash::Guard(Guard::WaitingAtMost { .. }) => {
                    busy(&format!("{WAITING_INPUTS_MAX} messages of this session wait already; try again later")).into()
                }
                Clash::Guard(Guard::SessionOpen(_)) => session_closed().into(),
                // Their role was taken from them in between.
                Clash::Guard(Guard::Role { .. }) => match self.session_for(&command.user, &command.target, command.session).await {
                    Ok(_) => busy("roles are changing at this moment; try again shortly").into(),
                    Err(error) => error,
                },
                _ => Error::unavailable(CommitError::Conflict(conflict)),
            }),
            Err(error) => Err(error.into()),
        }
    }

    fn key(&self, command: &PostMessage, input: InputId) -> Result<Option<Key>, Error> {
        let request = requested(command);
        let by = By { user: &command.user, key: command.idempotency_key.as_deref() };
        Ok(Request::of(by, &request)?.map(|request| request.answered(&Remembered { input })))
    }

    /// What the same request was answered with, if it came before.
    pub(super) async fn posted_before(&self, command: &PostMessage) -> Result<Option<InputReceipt>, Error> {
        let by = By { user: &command.user, key: command.idempotency_key.as_deref() };
        let Some(request) = Request::of(by, &requested(command))? else { return Ok(None) };
        match self.landed(&request, self.core.now()).await? {
            None => Ok(None),
            Some(landed) if !request.is_of(&landed) => Err(crate::refusals::key_reused().into()),
            Some(landed) => self.replayed(&landed.reply).await.map(Some),
        }
    }

    /// Answers a request that was answered before, in the same way.
    async fn replayed(&self, reply: &[u8]) -> Result<InputReceipt, Error> {
        let remembered: Remembered = serde_json::from_slice(reply).map_err(Error::unavailable)?;
        let found = self.core.store.input_position(remembered.input).await?;
        let (session, position) = found.ok_or_else(|| crate::refusals::session_not_found(remembered.input))?;
        Ok(InputReceipt { input: remembered.input, session, position, replayed: true })
    }
}

/// What makes a request the same: where it was addressed to and what it says.
fn requested(command: &PostMessage) -> serde_json::Value {
    let PostMessage { session, routed, content, model, .. } = command;
    match routed {
        None => serde_json::json!({ "session": session, "content": content, "model": model }),
        Some(address) => serde_json::json!({ "to": address, "content": content, "model": model }),
    }
}

fn check_content(content: &[Part]) -> Result<(), Error> {
    let bytes: usize = content
        .iter()
        .map(|part| match part {
            Part::Text { text } => text.len(),
            Part::Blob { .. } | Part::Call { .. } | Part::Opaque { .. } => 0,
        })
        .sum();
    if bytes > INPUT_BYTES_MAX {
        return Err(too_large(bytes, INPUT_BYTES_MAX).into());
    }
    if content.iter().any(|part| !matches!(part, Part::Text { .. })) {
        return Err(invalid("a message is made of text", "/content"));
    }
    if content.iter().all(|part| matches!(part, Part::Text { text } if text.trim().is_empty())) {
        return Err(invalid("the message says nothing: it is empty, or white space and nothing else", "/content"));
    }
    Ok(())
}
