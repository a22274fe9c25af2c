//! Accepting words: from here on nothing loses them.
//!
//! What they come to is decided by the rules of the queue when they come, and stored with them. Words that steer a chat need no look at what
//! waits; for all others the decision rests on the queue as it was read, which a guard of the commit keeps.

use super::agents::invalid;
use super::once::Once;
use super::sessions::allowed;
use super::{Broker, By, Error, InputReceipt, PostMessage, QueueSaid, Request};
use crate::catalogue::CHAT;
use crate::core::fresh;
use crate::driver::load_run;
use crate::journal::Context;
use crate::refusals::{busy, changing, queue_full, session_closed, too_large};
use domain::event::{Event, InputAccepted, InputsDropped, Source};
use domain::id::{InputId, Stream};
use domain::limits::{INPUT_BYTES_MAX, WAITING_INPUTS_MAX};
use domain::message::{Draft, Part, Role, text_of};
use domain::queue::{Accepted, Arriving, Condition, Directive, Kind, Mode, QueueOverride, QueueSettings};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Clash, Commit, CommitError, Conflict, Expected, Guard, QueueSeen, SessionRow};

/// How often an acceptance is decided again when the queue has changed meanwhile.
const TRIES_MAX: u32 = 64;
/// The word that a directive begins with.
const DIRECTIVE: &str = "/queue";

/// What came of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It was accepted as an input.
    Accepted(InputReceipt),
    /// It was a directive of the queue: nobody is told of it, and the session's settings are these now.
    Configured(QueueSaid),
}

/// What a repeated request is answered with.
#[derive(Serialize, Deserialize)]
struct Remembered {
    input: InputId,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<InputId>,
}

impl Broker {
    /// Accepts a message, or does what it says when it is a directive of the queue such as `/queue collect debounce:2s`.
    ///
    /// # Errors
    /// Those of [`Self::post_message`]; a directive that makes no sense, or beside which the message says something else.
    pub async fn say(&self, command: PostMessage) -> Result<Said, Error> {
        let Some(text) = said_to_the_queue(&command.content) else {
            return self.post_message(command).await.map(Said::Accepted);
        };
        let directive: Directive = text.parse().map_err(|error: domain::queue::DirectiveError| invalid(error.to_string(), "/content"))?;
        let PostMessage { target, session, model, user, queue, priority, idempotency_key, .. } = command;
        if model.is_some() || priority.is_some() || queue != QueueOverride::default() {
            return Err(invalid("a directive of the queue is no turn: send it without `model`, `queue` and `priority`", "/content"));
        }
        let by = By { user: &user, key: idempotency_key.as_deref() };
        self.direct_queue(by, &target, session, directive).await.map(Said::Configured)
    }

    /// Accepts a message. When this returns, it is durable and will be dealt with, whatever happens to this process.
    ///
    /// # Errors
    /// An unknown or ended session, an empty or too large message, too many waiting, a queue that is full and drops nothing, an idempotency
    /// key of another request.
    pub async fn post_message(&self, mut command: PostMessage) -> Result<InputReceipt, Error> {
        let row = self.session_for(&command.user, &command.target, command.session).await?;
        check_content(&command.content)?;
        if let Some(model) = &command.model
            && let Err(unknown) = self.core.gateway.resolve(Some(model))
        {
            return Err(invalid(unknown.to_string(), "/model"));
        }
        let request = request(&command)?;
        let settings = QueueSettings::resolve([command.queue, row.queue, self.core.limits.queue]);
        let at_once = match settings.mode {
            Mode::Steer => Some(Kind::Steer),
            Mode::Interrupt => Some(Kind::Interrupt),
            Mode::Followup | Mode::Collect => None,
        };
        if let Some(kind) = at_once.filter(|_| row.session_type == CHAT) {
            // While it waits for the disk it is there once.
            let content = std::mem::take(&mut command.content);
            let accepting = Accepting { command, row: &row, request: request.as_ref() };
            let accepted = Accepted { kind, drops: None };
            return match accepting.commit(self, content, accepted, None, self.core.now()).await {
                Ok(receipt) => Ok(receipt),
                Err(NotAccepted::Replayed(reply)) => self.replayed(&reply).await,
                Err(not_accepted) => Err(self.told(&accepting.command, not_accepted).await),
            };
        }
        let accepting = Accepting { command, row: &row, request: request.as_ref() };
        match self.once(request.as_ref(), self.queue_up(&accepting, settings)).await? {
            Once::Now(receipt) => Ok(receipt),
            Once::Before(remembered) => self.as_before(remembered).await,
        }
    }

    /// Decides what words come to upon the queue as it is, and again when it has changed before that was stored.
    async fn queue_up(&self, accepting: &Accepting<'_>, settings: QueueSettings) -> Result<InputReceipt, Error> {
        let session = accepting.row.id;
        // One after the other: of many at once each would have to be decided again for every other one.
        let _in_turn = self.core.in_turn(session).await;
        let text = text_of(&accepting.command.content);
        for _ in 0..TRIES_MAX {
            let now = self.core.now();
            let Some(row) = self.core.store.queue(session, now).await? else { return Err(session_closed().into()) };
            let condition = self.condition(accepting.row, &row.seen, settings.mode).await?;
            let arriving = Arriving { settings, route: None, text: &text };
            let accepted = row.queue.arrive(&arriving, condition).map_err(|full| queue_full(&full))?;
            let content = accepting.command.content.clone();
            match accepting.commit(self, content, accepted, Some(row.seen), now).await {
                Ok(receipt) => return Ok(receipt),
                Err(NotAccepted::Changed) => {}
                Err(not_accepted) => return Err(self.told(&accepting.command, not_accepted).await),
            }
        }
        Err(self.told(&accepting.command, NotAccepted::Changed).await)
    }

    /// What a session's run is doing, as far as the acceptance of words goes by it.
    ///
    /// A structured session whose agent listens while its client is asked is steered like any other. Nothing interrupts a structured
    /// session: its end would be the session's, and there would be nothing left to say it in.
    async fn condition(&self, session: &SessionRow, seen: &QueueSeen, mode: Mode) -> Result<Condition, Error> {
        // Also while none of its runs is stored: one may be at its first step.
        if mode == Mode::Interrupt && session.session_type != CHAT {
            return Ok(Condition::AwaitingClient);
        }
        let Some(run) = seen.run else { return Ok(Condition::Free) };
        let steerable = Condition::Running { steerable: true };
        if !seen.awaits_client || mode != Mode::Steer {
            return Ok(steerable);
        }
        let (run, _) = load_run(&self.core.store, run).await?;
        Ok(if run.wait.is_some_and(|(_, hear)| hear) { steerable } else { Condition::AwaitingClient })
    }

    /// What the same request was answered with, if it came before.
    pub(super) async fn posted_before(&self, command: &PostMessage) -> Result<Option<InputReceipt>, Error> {
        let Some(request) = request(command)? else { return Ok(None) };
        match self.landed(&request, self.core.now()).await? {
            None => Ok(None),
            Some(landed) if !request.is_of(&landed) => Err(crate::refusals::key_reused().into()),
            Some(landed) => self.replayed(&landed.reply).await.map(Some),
        }
    }

    /// Answers a request that was answered before, in the same way.
    async fn replayed(&self, reply: &[u8]) -> Result<InputReceipt, Error> {
        self.as_before(serde_json::from_slice(reply).map_err(Error::unavailable)?).await
    }

    async fn as_before(&self, Remembered { input, dropped }: Remembered) -> Result<InputReceipt, Error> {
        let found = self.core.store.input_position(input).await?;
        let (session, position) = found.ok_or_else(|| crate::refusals::session_not_found(input))?;
        // One that was erased since is told as one that nobody said anything of.
        let accepted = self.core.store.input(input).await?;
        let waits_for = accepted.map_or(Kind::Steer, |(accepted, _)| accepted.waits_for());
        Ok(InputReceipt { input, session, position, waits_for, dropped, replayed: true })
    }

    /// Why a message was not accepted, in words for whoever sent it.
    async fn told(&self, command: &PostMessage, not_accepted: NotAccepted) -> Error {
        let conflict = match not_accepted {
            NotAccepted::Other(CommitError::Conflict(conflict)) => conflict,
            NotAccepted::Other(error) => return error.into(),
            NotAccepted::Replayed(reply) => return CommitError::Replayed { reply }.into(),
            NotAccepted::Changed => return changing("the session's queue").into(),
        };
        match conflict.clash {
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
        }
    }
}

/// A message on its way in.
struct Accepting<'a> {
    command: PostMessage,
    row: &'a SessionRow,
    request: Option<&'a Request>,
}

/// Why it is not in.
enum NotAccepted {
    /// The same request was answered this before.
    Replayed(Vec<u8>),
    /// The queue is not as it was read any more.
    Changed,
    /// Anything else.
    Other(CommitError),
}

impl Accepting<'_> {
    /// Stores it as what it comes to, where that was decided upon a queue only if the queue is still the same.
    async fn commit(
        &self,
        broker: &Broker,
        content: Vec<Part>,
        accepted: Accepted<InputId>,
        seen: Option<QueueSeen>,
        now: Timestamp,
    ) -> Result<InputReceipt, NotAccepted> {
        let (input, session, command) = (fresh::input(), self.row.id, &self.command);
        let Accepted { kind, drops } = accepted;
        let dropped = drops.as_ref().map(|drops| drops.ids.clone()).unwrap_or_default();
        let message = Draft { role: Role::User, parts: content, origin: "api".into(), untrusted: false, answers: None };
        let event = InputAccepted {
            input,
            session,
            source: Source::Api,
            user_id: Some(command.user.clone()),
            message: Some(message),
            model: command.model.clone(),
            waits_for: (kind != Kind::Steer).then(|| kind.clone()),
            priority: command.priority,
            time: now,
        };
        let about = Context::new(format!("user:{}", command.user), now).about(self.row.agent, Some(session), None);
        let context = about.following(Some(input));
        // What is dropped goes before what took its place.
        let gone =
            drops.map(|drops| Event::InputsDropped(InputsDropped { session, inputs: drops.ids, overflow: drops.overflow, time: now }));
        let events = gone.into_iter().chain([Event::InputAccepted(event)]).map(|event| context.event(event)).collect();
        let mut commit = Commit::new()
            .guard(Guard::SessionOpen(session))
            .guard(allowed(self.row.agent, &command.user))
            .guard(Guard::WaitingAtMost { session, max: (WAITING_INPUTS_MAX - 1 + dropped.len()) as u64 })
            .append(Stream::Session(session), Expected::Any, events);
        commit.guards.extend(seen.map(|seen| Guard::QueueUnchanged { session, seen: Box::new(seen) }));
        commit.key = self.request.map(|request| request.answered(&Remembered { input, dropped: dropped.clone() }));
        store::point("broker.accept.before");
        let committed = broker.core.commit_work(session, commit).await;
        store::point("broker.accept.after");
        match committed {
            Ok(committed) => {
                if matches!(kind, Kind::Queued(_)) && !committed.waits_unheard {
                    // Its debounce may be over before anything else is due.
                    broker.core.timers.notify_one();
                }
                Ok(InputReceipt { input, session, position: committed.last_position, waits_for: kind, dropped, replayed: false })
            }
            Err(CommitError::Replayed { reply }) => Err(NotAccepted::Replayed(reply)),
            Err(CommitError::Conflict(Conflict { clash: Clash::Guard(Guard::QueueUnchanged { .. }), .. })) => Err(NotAccepted::Changed),
            Err(error) => Err(NotAccepted::Other(error)),
        }
    }
}

/// The request as one that may come again; none without a key. What a message does not say is not part of it: requests from before it could
/// be said are the same still.
fn request(command: &PostMessage) -> Result<Option<Request>, Error> {
    let mut asked = match &command.routed {
        None => json!({ "session": command.session, "content": command.content, "model": command.model }),
        Some(address) => json!({ "to": address, "content": command.content, "model": command.model }),
    };
    if let Some(asked) = asked.as_object_mut() {
        if command.queue != QueueOverride::default() {
            asked.insert("queue".to_owned(), json!(command.queue));
        }
        asked.extend(command.priority.map(|priority| ("priority".to_owned(), json!(priority))));
    }
    Request::of(By { user: &command.user, key: command.idempotency_key.as_deref() }, &asked)
}

/// What a directive of the queue says; none when it is a message like any other.
pub(super) fn said_to_the_queue(content: &[Part]) -> Option<String> {
    let text = text_of(content);
    text.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case(DIRECTIVE)).then_some(text)
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
