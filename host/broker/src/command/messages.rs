//! Acceptance of words: from here on nothing loses them.
//!
//! The rules of the queue decide how an input waits when the message is accepted, and the decision
//! is stored with it. Words that steer or interrupt a chat need no inspection of the queue. For all
//! others the decision depends on the queue as it was read, which a guard of the commit protects.

use super::agents::invalid;
use super::arriving;
use super::once::Once;
use super::queue::QueueChange;
use super::route::Route;
use super::{By, Error, InputReceipt, Messages, PostMessage, QueueSaid, Request};
use crate::boxed::boxed;
use crate::core::fresh;
use crate::journal::Context;
use crate::refusals::{
    busy, changing, queue_full, session_closed, session_expired, session_full, session_not_found,
    too_large,
};
use crate::shared::guards::allowed;
use crate::shared::runs::load_run;
use domain::delegate::Priority;
use domain::event::{Event, InputAccepted, InputsDropped};
use domain::id::{InputId, Stream};
use domain::limits::{INPUT_BYTES_MAX, WAITING_INPUTS_MAX};
use domain::message::{Part, text_of};
use domain::message_labels::MessageLabels;
use domain::queue::{
    Admission, Arriving, Condition, Directive, Mode, QueueOverride, QueueSettings, WaitKind,
};
use domain::reply_schema;
use domain::session::CHAT;
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{
    Addressee, AgentGuard, Clash, Commit, CommitError, Conflict, Expected, Guard, QueueGuard,
    QueueSeen, SessionGuard,
};

/// Number of times that an acceptance is decided again when the queue has changed meanwhile.
const TRIES_MAX: u32 = 64;
/// The word that a directive begins with.
const DIRECTIVE: &str = "/queue";

/// The result of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PostOutcome {
    /// It was accepted as an input.
    Accepted(InputReceipt),
    /// It was a directive of the queue, which no agent sees; these are the session's settings now.
    Configured(QueueSaid),
}

/// An accepted message, as it is remembered for the answer to a repeated request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Remembered {
    pub(super) input: InputId,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) dropped: Vec<InputId>,
    /// The choice of its session; none for a message that named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) route: Option<Route>,
}

impl Messages<'_> {
    /// Accepts a message, or executes it if it is a directive of the queue such as `/queue collect
    /// debounce:2s`.
    ///
    /// # Errors
    /// Those of [`Self::post`]; an invalid directive, or one with any other text.
    #[boxed]
    pub async fn say(&self, command: PostMessage) -> Result<PostOutcome, Error> {
        self.say_labelled(command, MessageLabels::default()).await
    }

    /// Accepts a message with labels as [`Self::say`] does.
    ///
    /// # Errors
    /// Those of [`Self::say`]; labels that are too many, too long or not named as they must be.
    #[boxed]
    pub async fn say_labelled(
        &self,
        command: PostMessage,
        labels: MessageLabels,
    ) -> Result<PostOutcome, Error> {
        let directive = directive(
            &command.content,
            command.model.as_deref(),
            command.priority,
            command.queue,
        )?;
        check_labels(&labels, directive)?;
        let Some(directive) = directive else {
            return self
                .post_labelled(command, labels)
                .await
                .map(PostOutcome::Accepted);
        };
        let by = By::new(&command.user, command.idempotency_key.as_ref());
        let change = QueueChange::Direct(directive);
        self.queue()
            .configured(by, &command.target, command.session, change)
            .await
            .map(PostOutcome::Configured)
    }

    /// Accepts a message. When this returns, it is durable and will be processed, whatever happens
    /// to this process.
    ///
    /// # Errors
    /// An unknown or ended session, an empty or too large message, too many waiting, a queue that
    /// is full and drops nothing.
    #[boxed]
    pub async fn post(&self, command: PostMessage) -> Result<InputReceipt, Error> {
        self.post_labelled(command, MessageLabels::default()).await
    }

    async fn post_labelled(
        &self,
        command: PostMessage,
        labels: MessageLabels,
    ) -> Result<InputReceipt, Error> {
        check_content(&command.content)?;
        let asked = asked(
            json!({ "session": command.session }),
            &command.content,
            command.model.as_deref(),
        );
        let asked = with_requests(asked, command.queue, command.priority, &labels);
        let by = By::new(&command.user, command.idempotency_key.as_ref());
        let request = Request::of(by, &asked)?;
        let to = self
            .sessions()
            .addressee(&command.user, &command.target, command.session)
            .await?;
        let at_once = self.at_once(&command, &to).is_some();
        let accepting = Accepting {
            command,
            to: &to,
            input: fresh::input(),
            request: request.as_ref(),
            route: None,
            noted: None,
            arriving: None,
            labels,
            limits: Vec::new(),
        };
        let act = self.accept(accepting);
        // Only the commit itself refuses messages that are accepted at once, so a check before it
        // would be wasted.
        let outcome = if at_once {
            self.requests().unless_done(request.as_ref(), act).await?
        } else {
            self.requests().once(request.as_ref(), act).await?
        };
        match outcome {
            Once::Now(receipt) => Ok(receipt),
            Once::Before(remembered) => self.as_before(&remembered).await,
        }
    }

    /// Accepts a message of a session that takes words, under the key of its request.
    pub(super) async fn accept(&self, mut accepting: Accepting<'_>) -> Result<InputReceipt, Error> {
        let model = accepting.command.model.as_deref();
        self.models()
            .check_for_words(&accepting.command.user, accepting.to.session, model)
            .await?;
        self.check_reply_schema(&accepting.command.content).await?;
        accepting.limits = self.sessions().limits(&accepting).await?;
        let is_unheard = accepting.arriving.is_some_and(|it| it.unheard);
        let at_once = match is_unheard && accepting.to.session_type == CHAT {
            true => Some(WaitKind::OwnTurn),
            false => self.at_once(&accepting.command, accepting.to),
        };
        let Some(kind) = at_once else {
            return self.queue_up(&accepting).await;
        };
        // Moved, so that the content is in memory once while the commit waits for the disk.
        let content = std::mem::take(&mut accepting.command.content);
        let accepted = Admission { kind, drops: None };
        match accepting
            .commit(self, content, accepted, None, self.core.now())
            .await
        {
            Ok(receipt) => Ok(receipt),
            Err(not_accepted) => Err(self.refusal(&accepting.command, not_accepted).await),
        }
    }

    /// Checks the schema that a sender wants the reply to a message to fit.
    pub(super) async fn check_reply_schema(&self, content: &[Part]) -> Result<(), Error> {
        let Some(schema) = content.iter().find_map(reply_schema::of_part) else {
            return Ok(());
        };
        let compiled = self.core.schemas.compile(schema).await;
        compiled.map(drop).map_err(|unfit| {
            let reported = format!("it is not a JSON Schema that can be used: {unfit}");
            invalid(reported, "/reply_schema")
        })
    }

    /// Returns whether a document fits a schema.
    pub async fn fits_schema(&self, schema: &Value, document: Value) -> bool {
        let judged = self.core.schemas.judge(schema, document).await;
        judged.is_ok_and(|fault| fault.is_none())
    }

    /// Returns how a message waits, if it can be accepted without reading the queue.
    fn at_once(&self, command: &PostMessage, to: &Addressee) -> Option<WaitKind> {
        let kind = match self.queue_settings(command.queue, to.queue).mode {
            Mode::Steer => WaitKind::Steer,
            Mode::Interrupt => WaitKind::Interrupt,
            Mode::Followup | Mode::Collect => return None,
        };
        (to.session_type == CHAT).then_some(kind)
    }

    /// Returns the settings of the queue for a message, from the message itself, its session and
    /// the operator's configuration.
    #[must_use]
    pub fn queue_settings(
        &self,
        of_message: QueueOverride,
        of_session: QueueOverride,
    ) -> QueueSettings {
        QueueSettings::resolve([of_message, of_session, self.core.limits().queue])
    }

    /// Decides how a message waits, from the present queue. Decides again if the queue changed
    /// before the commit.
    async fn queue_up(&self, accepting: &Accepting<'_>) -> Result<InputReceipt, Error> {
        let session = accepting.to.session;
        let settings = self.queue_settings(accepting.command.queue, accepting.to.queue);
        // One after the other: with many at once, each would have to be decided again for every
        // other one.
        let _in_turn = self.core.in_turn(session).await;
        let text = text_of(&accepting.command.content);
        let line = arriving::line(accepting.arriving, &text);
        for _ in 0..TRIES_MAX {
            let now = self.core.now();
            let Some(row) = self.store().queue(session, now).await? else {
                return Err(session_closed().into());
            };
            let condition = self
                .condition(accepting.to, &row.seen, settings.mode)
                .await?;
            let arriving = Arriving {
                settings,
                route: None,
                text: &text,
                line: &line,
            };
            let accepted = row
                .queue
                .arrive(&arriving, condition)
                .map_err(|full| queue_full(&full))?;
            let content = accepting.command.content.clone();
            match accepting
                .commit(self, content, accepted, Some(row.seen), now)
                .await
            {
                Ok(receipt) => return Ok(receipt),
                Err(NotAccepted::Changed) => {}
                Err(not_accepted) => {
                    return Err(self.refusal(&accepting.command, not_accepted).await);
                }
            }
        }
        Err(self.refusal(&accepting.command, NotAccepted::Changed).await)
    }

    /// Returns the facts about a session's run that the acceptance of words depends on.
    ///
    /// A structured session whose agent listens while its client is asked can be steered like any
    /// other. Nothing interrupts a structured session: the end of its run would end the session,
    /// and the message would have no place.
    async fn condition(
        &self,
        session: &Addressee,
        seen: &QueueSeen,
        mode: Mode,
    ) -> Result<Condition, Error> {
        // This holds while none of its runs is stored, too: one may be at its first step.
        if mode == Mode::Interrupt && session.session_type != CHAT {
            return Ok(Condition::AwaitingClient);
        }
        let Some(run) = seen.run else {
            return Ok(Condition::Free);
        };
        let steerable = Condition::Running { steerable: true };
        if !seen.awaits_client || mode != Mode::Steer {
            return Ok(steerable);
        }
        if self.core.noted_inspections.are_over(session.session) {
            // Reading it would end the process.
            return Ok(Condition::AwaitingClient);
        }
        let (run, _) = load_run(self.store(), run).await?;
        Ok(if run.wait.is_some_and(|(_, hear)| hear) {
            steerable
        } else {
            Condition::AwaitingClient
        })
    }

    /// Answers a repeated request like the first time.
    pub(super) async fn as_before(&self, remembered: &Remembered) -> Result<InputReceipt, Error> {
        let input = remembered.input;
        let found = self.store().input_position(input).await?;
        let (session, position) = found.ok_or_else(|| session_not_found(input))?;
        // An input that was erased since is shown as one that steers, like one without a stated
        // kind.
        let accepted = self.store().input(input).await?;
        let waits_for = accepted.map_or(WaitKind::Steer, |(accepted, _)| accepted.waits_for());
        Ok(InputReceipt {
            input,
            session,
            position,
            waits_for,
            dropped: remembered.dropped.clone(),
            replayed: true,
        })
    }

    /// Returns the error for the sender of a message that was not accepted.
    async fn refusal(&self, command: &PostMessage, not_accepted: NotAccepted) -> Error {
        let conflict = match not_accepted {
            NotAccepted::Other(CommitError::Conflict(conflict)) => conflict,
            NotAccepted::Other(error) => return error.into(),
            NotAccepted::Changed => return changing("the session's queue").into(),
        };
        match conflict.clash {
            Clash::Guard(Guard::Queue(QueueGuard::WaitingAtMost { .. })) => busy(&format!(
                "{WAITING_INPUTS_MAX} messages of this session wait already; try again later"
            ))
            .into(),
            // The guard is about those before the message.
            Clash::Guard(Guard::Queue(QueueGuard::MessagesAtMost { max, .. })) => {
                session_full(max + 1).into()
            }
            Clash::Guard(Guard::Queue(QueueGuard::ActiveAfter { .. })) => session_expired().into(),
            Clash::Guard(Guard::Session(SessionGuard::Open(_))) => session_closed().into(),
            // The user's role was taken away in between.
            Clash::Guard(Guard::Agent(AgentGuard::Role { .. })) => match self
                .sessions()
                .for_command(&command.user, &command.target, command.session)
                .await
            {
                Ok(_) => busy("roles are changing at this moment; try again shortly").into(),
                Err(error) => error,
            },
            _ => CommitError::Conflict(conflict).into(),
        }
    }
}

/// A message on its way in.
pub(super) struct Accepting<'a> {
    pub(super) command: PostMessage,
    pub(super) to: &'a Addressee,
    /// The input that it becomes.
    pub(super) input: InputId,
    pub(super) request: Option<&'a Request>,
    /// The choice of its session; none when the session was named.
    pub(super) route: Option<Route>,
    /// The event by which its session records where the sender comes from, if they switch to it.
    pub(super) noted: Option<Event>,
    /// Its provenance; none for a message of an API caller.
    pub(super) arriving: Option<&'a arriving::Arriving>,
    /// Labels that the sender put on the message.
    pub(super) labels: MessageLabels,
    /// The guards of the session's limits, once they were read.
    pub(super) limits: Vec<Guard>,
}

/// The reason why a message was not accepted.
enum NotAccepted {
    /// The queue has changed since it was read.
    Changed,
    /// Any other error.
    Other(CommitError),
}

impl Accepting<'_> {
    /// Commits the message as the kind that was decided. A decision upon a queue (`seen`) is
    /// committed only if the queue is still the same.
    async fn commit(
        &self,
        messages: &Messages<'_>,
        content: Vec<Part>,
        accepted: Admission<InputId>,
        seen: Option<QueueSeen>,
        now: Timestamp,
    ) -> Result<InputReceipt, NotAccepted> {
        let input = self.input;
        let session = self.to.session;
        let user = &self.command.user;
        let Admission { kind, drops } = accepted;
        let dropped = drops
            .as_ref()
            .map(|drops| drops.ids.clone())
            .unwrap_or_default();
        let context = Context::by(user, now)
            .about(self.to.agent, Some(session), None)
            .following(Some(input));
        // The drops go before the input that took their place.
        let gone = drops.map(|drops| {
            Event::InputsDropped(InputsDropped {
                session,
                inputs: drops.ids,
                overflow: drops.overflow,
                time: now,
            })
        });
        let accepted = self.event(content, &kind, now);
        // The acceptance goes last: the receipt names its position.
        let before = self.noted.clone().into_iter().chain(gone);
        let events = context.events(before.chain([accepted]));
        let mut commit = Commit::new()
            .guard(SessionGuard::Open(session))
            .guard(allowed(self.to.agent, user))
            .guard(QueueGuard::WaitingAtMost {
                session,
                max: (WAITING_INPUTS_MAX - 1 + dropped.len()) as u64,
            })
            .append(Stream::Session(session), Expected::Any, events);
        commit.guards.extend(messages.access().may_store(user));
        commit.guards.extend(self.limits.iter().cloned());
        commit.guards.extend(seen.map(|seen| {
            Guard::Queue(QueueGuard::Unchanged {
                session,
                seen: Box::new(seen),
            })
        }));
        let remembered = || Remembered {
            input,
            dropped: dropped.clone(),
            route: self.route.clone(),
        };
        commit.key = self.request.map(|request| request.answered(&remembered()));
        let position = self.store(messages, commit, &kind).await?;
        Ok(InputReceipt {
            input,
            session,
            position,
            waits_for: kind,
            dropped,
            replayed: false,
        })
    }

    /// Returns the event of the acceptance.
    fn event(&self, content: Vec<Part>, kind: &WaitKind, now: Timestamp) -> Event {
        Event::InputAccepted(InputAccepted {
            user_id: self.command.user.clone(),
            message: Some(arriving::draft(self.arriving, &self.command.user, content)),
            model: self.command.model.clone(),
            waits_for: (*kind != WaitKind::Steer).then(|| kind.clone()),
            priority: self.command.priority,
            labels: self.labels.clone(),
            ..InputAccepted::of(
                self.to.session,
                self.input,
                arriving::source(self.arriving),
                now,
            )
        })
    }

    /// Stores the acceptance, and returns the position of its last event.
    async fn store(
        &self,
        messages: &Messages<'_>,
        commit: Commit,
        kind: &WaitKind,
    ) -> Result<u64, NotAccepted> {
        store::point("broker.accept.before");
        let committed = messages.core.commit_work(self.to.session, commit).await;
        store::point("broker.accept.after");
        match committed {
            Ok(committed) => {
                if matches!(kind, WaitKind::Queued(_)) && !committed.waits_unheard {
                    // Its debounce may be over before any other timer is due.
                    messages.core.timers.notify_one();
                }
                Ok(committed.last_position)
            }
            Err(CommitError::Conflict(Conflict {
                clash: Clash::Guard(Guard::Queue(QueueGuard::Unchanged { .. })),
                ..
            })) => Err(NotAccepted::Changed),
            Err(error) => Err(NotAccepted::Other(error)),
        }
    }
}

/// Returns the description of a request with a message, whatever its address.
pub(super) fn asked(mut addressed: Value, content: &[Part], model: Option<&str>) -> Value {
    if let Some(asked) = addressed.as_object_mut() {
        asked.insert("content".to_owned(), json!(content));
        asked.insert("model".to_owned(), json!(model));
    }
    addressed
}

/// Adds the message's own queue settings, priority and labels to the description of a request.
pub(super) fn with_requests(
    mut asked: Value,
    queue: QueueOverride,
    priority: Option<Priority>,
    labels: &MessageLabels,
) -> Value {
    if let Some(asked) = asked.as_object_mut() {
        asked.insert("queue".to_owned(), json!(queue));
        asked.insert("priority".to_owned(), json!(priority));
        asked.insert("labels".to_owned(), json!(labels));
    }
    asked
}

/// Returns the directive of the queue in a message; none for a message to the agent.
///
/// # Errors
/// The directive is invalid, or the message has other content as well.
pub(super) fn directive(
    content: &[Part],
    model: Option<&str>,
    priority: Option<Priority>,
    queue: QueueOverride,
) -> Result<Option<Directive>, Error> {
    let text = text_of(content);
    if !text
        .split_whitespace()
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case(DIRECTIVE))
    {
        return Ok(None);
    }
    let directive: Directive = text
        .parse()
        .map_err(|error: domain::queue::DirectiveError| invalid(error.to_string(), "/content"))?;
    let wants_schema = content.iter().any(|it| reply_schema::of_part(it).is_some());
    if model.is_some() || priority.is_some() || queue != QueueOverride::default() || wants_schema {
        return Err(invalid(
            "a directive of the queue is no turn: send it without `model`, `queue`, `priority` and \
             `reply_schema`",
            "/content",
        ));
    }
    Ok(Some(directive))
}

/// Checks the labels of a message. A directive of the queue has none.
pub(super) fn check_labels(
    labels: &MessageLabels,
    directive: Option<Directive>,
) -> Result<(), Error> {
    labels
        .check()
        .map_err(|reported| invalid(reported, "/labels"))?;
    if directive.is_some() && !labels.is_empty() {
        let reported = "a directive of the queue is no message: send it without `labels`";
        return Err(invalid(reported, "/labels"));
    }
    Ok(())
}

/// Checks the content of words, for any session.
pub(super) fn check_content(content: &[Part]) -> Result<(), Error> {
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
    let is_taken =
        |part: &Part| matches!(part, Part::Text { .. }) || reply_schema::of_part(part).is_some();
    if !content.iter().all(is_taken) {
        return Err(invalid("a message is made of text", "/content"));
    }
    if content
        .iter()
        .all(|part| !matches!(part, Part::Text { text } if !text.trim().is_empty()))
    {
        return Err(invalid(
            "the message says nothing: it is empty, or white space and nothing else",
            "/content",
        ));
    }
    Ok(())
}
