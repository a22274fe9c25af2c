//! A check that what is stored of a session is what the simplest correct queue allows, event by
//! event.
//!
//! The events of the store are read in the order of their commits, beside a [`Reference`] that gets
//! the same: what arrived, with the settings that its sender gave it. When the broker took
//! something up is left to the broker; what it took, in which order and as which messages must be
//! what the reference would have taken at that moment, or at one since the driver last did
//! something: it plans first and commits then, and messages may arrive in between.
//!
//! The fates of all inputs of a session, from what is stored and said: dealt with once and said
//! once, or why not.

use agent_host_tests::queue_model::{Letter, ModelMessage, Next, Reference};
use anyhow::{Context, Result, ensure};
use domain::delegate::Priority;
use domain::event::{
    Event, InputAccepted, InputDead, InputsDropped, Recorded, RunEnded, RunStarted, RunStepped,
    Source,
};
use domain::id::{InputId, RunId, SessionId};
use domain::message::{Message, Role, text_of};
use domain::queue::{Condition, QueueSettings, WaitKind};
use domain::step::{Decision, Wait};
use domain::time::Timestamp;
use domain::turn::TurnEnd;
use std::collections::{BTreeMap, BTreeSet};
use store::{EventFilter, Store};

/// The beginning of a notice about dropped messages.
const NOTICE: &str = "[Queue overflow]";

/// The settings with which messages were sent, by their text.
pub(super) type Sent = BTreeMap<String, (QueueSettings, Priority)>;

/// The state of a queue: the inputs that wait, in order, and the notice of what was dropped that is
/// not reported yet.
pub(super) type QueueStatus = (Vec<InputId>, Option<String>);

/// The result of a session.
pub(super) struct SessionOutcome {
    /// The states of the queue after events, by their positions. Those in the middle of what
    /// belongs together are left out.
    pub(super) moments: Vec<(u64, QueueStatus)>,
    /// The messages of users and of the host in the thread.
    pub(super) thread: Vec<String>,
    /// The inputs that were put aside.
    pub(super) dead: Vec<InputId>,
}

/// The open run.
struct Open {
    run: RunId,
    /// The user that it is for.
    user: String,
    claimed: Vec<InputId>,
    /// The messages that its first step is to hear.
    begins: Vec<String>,
    /// True if it is to report what was dropped.
    tells: bool,
    /// The messages that it heard.
    heard: Vec<String>,
    /// True if it takes in messages at its next boundary.
    hears: bool,
    /// True if it has replied and goes on for messages that had arrived.
    replied: bool,
}

/// A session as far as its events were read.
struct Session<'a> {
    sent: &'a Sent,
    reference: Reference<InputId>,
    /// The states of the reference since the driver last did something, and the latest time that
    /// was known then.
    since: Vec<(Reference<InputId>, Timestamp)>,
    latest: Timestamp,
    run: Option<Open>,
    dropping: Option<InputsDropped>,
    outcome: SessionOutcome,
}

/// Reads all events of one session.
///
/// # Errors
/// The first of them that the reference does not allow; something still waits, or was dropped and
/// is reported nowhere.
pub(super) fn refine(events: &[Recorded], sent: &Sent) -> Result<SessionOutcome> {
    let reference = Reference::default();
    let outcome = SessionOutcome {
        moments: Vec::new(),
        thread: Vec::new(),
        dead: Vec::new(),
    };
    let since = vec![(reference.clone(), Timestamp(0))];
    let mut session = Session {
        sent,
        reference,
        since,
        latest: Timestamp(0),
        run: None,
        dropping: None,
        outcome,
    };
    for recorded in events {
        let event = recorded
            .event
            .as_ref()
            .context("an event that was erased")?;
        session
            .take(event)
            .with_context(|| format!("{} at {}: {event:?}", recorded.kind, recorded.position))?;
        if session.dropping.is_none() {
            session.outcome.moments.push((
                recorded.position,
                (session.reference.waiting(), session.reference.untold()),
            ));
        }
    }
    ensure!(session.run.is_none(), "a run is open");
    let waiting = session.reference.waiting();
    let untold = session.reference.untold();
    ensure!(
        waiting.is_empty() && untold.is_none(),
        "{waiting:?} wait, and nobody was told: {untold:?}"
    );
    Ok(session.outcome)
}

impl Session<'_> {
    fn take(&mut self, event: &Event) -> Result<()> {
        ensure!(
            self.dropping.is_none() || matches!(event, Event::InputAccepted(_)),
            "inputs were dropped for nothing"
        );
        match event {
            Event::InputsDropped(it) if it.inputs.is_empty() => self.untold(it)?,
            Event::InputsDropped(it) => self.dropping = Some(it.clone()),
            Event::InputAccepted(it) => self.accepted(it)?,
            Event::InputCancelled(it) => {
                ensure!(self.reference.leave(&it.input), "it does not wait");
                self.changed(it.time);
            }
            Event::InputDead(it) => self.died(it)?,
            Event::InputRequeued(it) => {
                ensure!(self.reference.come_back(&it.input), "it was never there");
                self.outcome.dead.retain(|dead| *dead != it.input);
                self.changed(it.time);
            }
            Event::RunStarted(it) => {
                self.started(it)?;
                if let Some(step) = &it.first_step {
                    self.stepped(step)?;
                }
            }
            Event::RunStepped(it) => self.stepped(it)?,
            Event::RunEnded(it) => self.ended(it)?,
            _ => {}
        }
        Ok(())
    }

    /// Something else than the driver has changed the queue.
    fn changed(&mut self, time: Timestamp) {
        self.latest = self.latest.max(time);
        self.since.push((self.reference.clone(), self.latest));
    }

    /// The driver has done something.
    fn driven(&mut self, time: Timestamp) {
        self.latest = self.latest.max(time);
        self.since = vec![(self.reference.clone(), self.latest)];
    }

    fn accepted(&mut self, it: &InputAccepted) -> Result<()> {
        let text = it
            .message
            .as_ref()
            .map(|message| text_of(&message.parts))
            .context("words")?;
        let sent = self.sent.get(&text);
        ensure!(
            sent.is_some() == it.source.is_words(),
            "nobody said `{text}`"
        );
        let settings = sent.map(|(settings, _)| *settings);
        let priority = sent.map_or(it.source.priority(), |(_, priority)| *priority);
        let condition = if self.run.is_some() {
            Condition::Running { steerable: true }
        } else {
            Condition::Free
        };
        let from = it.user_id.to_string();
        let letter = Letter {
            settings,
            priority,
            from,
            route: None,
            text,
        };
        let dropped = self
            .reference
            .arrive(it.input, letter, condition, it.time)?;
        let reported = self.dropping.take();
        let reported = reported.map(|reported| {
            (
                reported.inputs,
                reported.overflow.notice().map(|notice| notice.to_string()),
            )
        });
        let expected = (!dropped.is_empty()).then(|| (dropped, self.reference.untold()));
        ensure!(
            reported == expected,
            "{reported:?} were dropped for it and not {expected:?}"
        );
        self.changed(it.time);
        Ok(())
    }

    fn died(&mut self, it: &InputDead) -> Result<()> {
        let of_run = self
            .run
            .as_ref()
            .is_some_and(|run| run.claimed.contains(&it.input));
        ensure!(
            of_run || self.reference.leave(&it.input),
            "it does not wait"
        );
        ensure!(
            !self.outcome.dead.contains(&it.input),
            "it was put aside before"
        );
        self.outcome.dead.push(it.input);
        if !of_run {
            self.changed(it.time);
        }
        Ok(())
    }

    /// The turn that was to tell of what was dropped will not come to be.
    fn untold(&mut self, it: &InputsDropped) -> Result<()> {
        let run = self
            .run
            .as_mut()
            .filter(|run| run.tells)
            .context("nothing was to be told")?;
        run.tells = false;
        self.reference.tell_again();
        let expected = self.reference.untold();
        let reported = it.overflow.notice().map(|notice| notice.to_string());
        ensure!(
            reported == expected,
            "{reported:?} is to be told, and not {expected:?}"
        );
        self.changed(it.time);
        Ok(())
    }

    /// Returns the possible answers of the reference to a run of this user's. They are for all its
    /// states since the driver last did something, up to this time.
    fn answers(
        &self,
        condition: Condition,
        of: Option<&str>,
        until: Timestamp,
    ) -> Vec<Next<InputId>> {
        let times = move |(reference, from): &(Reference<InputId>, Timestamp)| {
            [(reference.clone(), *from), (reference.clone(), until)]
        };
        self.since
            .iter()
            .flat_map(times)
            .map(|(mut reference, time)| reference.next(condition, of, time))
            .collect()
    }

    fn claim(&mut self, claimed: &[InputId]) -> Result<()> {
        for input in claimed {
            ensure!(self.reference.leave(input), "{input} does not wait");
        }
        Ok(())
    }

    fn started(&mut self, it: &RunStarted) -> Result<()> {
        ensure!(self.run.is_none(), "a run is open already");
        let reported = it.overflow.as_ref().map(ToString::to_string);
        let next = self.answers(Condition::Free, None, it.time);
        let begins = next.iter().find_map(|next| match next {
            Next::Start(claimed, said) if *claimed == it.claimed && tells(said) == reported => {
                Some(said)
            }
            _ => None,
        });
        let reported_of = format!(
            "a turn begins with {:?} and tells {reported:?}, and the reference says {next:?}",
            it.claimed
        );
        let texts: Vec<String> = begins.context(reported_of)?.iter().map(text).collect();
        self.claim(&it.claimed)?;
        if reported.is_some() {
            ensure!(
                self.reference.tell() == reported,
                "it tells {reported:?}, and others were dropped meanwhile"
            );
        }
        self.run = Some(Open {
            run: it.run,
            user: it.user_id.to_string(),
            claimed: it.claimed.clone(),
            begins: texts,
            tells: reported.is_some(),
            heard: Vec::new(),
            hears: false,
            replied: false,
        });
        self.driven(it.time);
        Ok(())
    }

    fn stepped(&mut self, it: &RunStepped) -> Result<()> {
        let mut run = self
            .run
            .take()
            .filter(|run| run.run == it.run)
            .context("the run is not open")?;
        let of = run.user.clone();
        let heard: Vec<String> = heard_texts(&it.heard).collect();
        if it.step == 0 {
            ensure!(
                it.claimed.is_empty(),
                "a first step claims what its start did not"
            );
            ensure!(
                heard == run.begins,
                "it hears {heard:?} and not {:?}",
                run.begins
            );
        } else if it.claimed.is_empty() {
            ensure!(heard.is_empty(), "it hears {heard:?} of nobody");
        } else {
            ensure!(run.hears, "words join it while it does not listen");
            let expected = Next::Join(
                it.claimed.clone(),
                heard.iter().cloned().map(ModelMessage::Words).collect(),
            );
            let next = self.answers(Condition::Running { steerable: true }, Some(&of), it.time);
            ensure!(
                next.contains(&expected),
                "{:?} join it as {heard:?}, and the reference says {next:?}",
                it.claimed
            );
            self.claim(&it.claimed)?;
        }
        run.heard.extend(heard);
        run.claimed.extend(&it.claimed);
        run.replied = matches!(it.decision, Decision::Reply { .. });
        run.hears = !matches!(it.decision, Decision::Wait(Wait { hear: false, .. }));
        self.run = Some(run);
        self.driven(it.time);
        Ok(())
    }

    fn ended(&mut self, it: &RunEnded) -> Result<()> {
        let run = self
            .run
            .take()
            .filter(|run| run.run == it.run)
            .context("the run is not open")?;
        let because = it
            .reason
            .as_deref()
            .and_then(|reason| reason.strip_prefix("interrupted by input "));
        if let Some(because) = because {
            let newest = Next::Abort(because.parse()?);
            let next = self.answers(Condition::Running { steerable: false }, None, it.time);
            ensure!(next.contains(&newest), "the reference says {next:?}");
        }
        if it.end == TurnEnd::Replied {
            ensure!(run.replied, "it never replied");
            let waiting = self.reference.clone().next(
                Condition::Running { steerable: true },
                Some(&run.user),
                it.time,
            );
            ensure!(
                !matches!(waiting, Next::Join(..)),
                "it ends although words steer it: {waiting:?}"
            );
        }
        let dead = run
            .claimed
            .iter()
            .filter(|input| self.outcome.dead.contains(input))
            .count();
        match it.turn {
            Some(_) => {
                ensure!(
                    dead == 0,
                    "it left a turn, and what it took up was put aside"
                );
                self.outcome.thread.extend(run.heard);
            }
            None => {
                ensure!(
                    dead == run.claimed.len(),
                    "it left no turn, and of {:?} {dead} were put aside",
                    run.claimed
                );
                ensure!(
                    !run.tells,
                    "it left no turn, and nobody is told what it was to tell"
                );
            }
        }
        self.driven(it.time);
        Ok(())
    }
}

fn text(said: &ModelMessage) -> String {
    let (ModelMessage::Notice(text) | ModelMessage::Words(text)) = said;
    text.clone()
}

/// Returns the notice of dropped messages: a message of its own, or the second part of one that
/// stands for several.
fn tells(said: &[ModelMessage]) -> Option<String> {
    said.iter().find_map(|said| match said {
        ModelMessage::Notice(text) => Some(text.clone()),
        ModelMessage::Words(text) => text
            .split("\n\n")
            .find(|part| part.starts_with(NOTICE))
            .map(str::to_owned),
    })
}

/// Returns the messages of users, and the notices of dropped messages.
pub(super) fn heard_texts(messages: &[Message]) -> impl Iterator<Item = String> {
    let is_reported = |message: &&Message| match message.role {
        Role::User => true,
        Role::Notice => message.text().starts_with(NOTICE),
        Role::Assistant | Role::Tool => false,
    };
    messages.iter().filter(is_reported).map(Message::text)
}

/// The stored facts about one session's inputs.
#[derive(Default)]
struct Story {
    accepted: Vec<InputAccepted>,
    claims: Vec<InputId>,
    gone: BTreeMap<InputId, &'static str>,
    requeued: Vec<InputId>,
    dropped: u64,
}

async fn story(store: &Store, session: SessionId) -> Story {
    let filter = EventFilter {
        session: Some(session),
        ..EventFilter::default()
    };
    let mut story = Story::default();
    for recorded in store.events(0, filter, 1_000_000).await.unwrap() {
        story
            .claims
            .extend(recorded.event.iter().flat_map(Event::claimed));
        match recorded.event {
            Some(Event::InputAccepted(it)) => story.accepted.push(it),
            Some(Event::InputDead(it)) => drop(story.gone.insert(it.input, "dead")),
            Some(Event::InputRequeued(it)) => {
                story.gone.remove(&it.input);
                story.requeued.push(it.input);
            }
            Some(Event::InputCancelled(it)) => drop(story.gone.insert(it.input, "cancelled")),
            Some(Event::InputsDropped(it)) => {
                story.dropped += it.inputs.len() as u64;
                story
                    .gone
                    .extend(it.inputs.into_iter().map(|input| (input, "dropped")));
            }
            _ => {}
        }
    }
    story
}

/// The number that a notice or a collected message says were dropped before it.
fn number_dropped(text: &str) -> u64 {
    let number = text
        .split("[Queue overflow] Dropped ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    number.map_or(0, |number| number.parse().unwrap())
}

/// Checks that what is stored of a session is what was to become of its inputs. Returns those of
/// its users that were accepted.
pub(super) async fn check(store: &Store, session: SessionId) -> Vec<InputId> {
    let story = story(store, session).await;
    let claims: BTreeSet<InputId> = story.claims.iter().copied().collect();
    for input in &claims {
        let times = |inputs: &[InputId]| inputs.iter().filter(|it| *it == input).count();
        assert!(
            times(&story.claims) <= 1 + times(&story.requeued),
            "{input} was claimed twice"
        );
    }
    let row = store.session(session).await.unwrap().unwrap();
    let messages = store.messages(row.head, 1, row.head_message).await.unwrap();
    let heard: Vec<String> = messages
        .iter()
        .filter(|message| matches!(message.role, Role::User | Role::Notice))
        .map(|message| message.text())
        .collect();
    for accepted in &story.accepted {
        let text = accepted.message.as_ref().unwrap().parts[0].clone();
        let domain::message::Part::Text { text } = text else {
            panic!("{accepted:?}")
        };
        // A line that stays of what was dropped begins with a dash.
        let times: usize = heard
            .iter()
            .flat_map(|heard| heard.lines())
            .filter(|line| *line == text)
            .count();
        let gone = story.gone.get(&accepted.input).copied();
        let claimed = claims.contains(&accepted.input);
        match gone {
            None => assert_eq!((claimed, times), (true, 1), "{text} was accepted"),
            Some("dead") => assert!(times == 0, "{text} was put aside and heard"),
            // One that was requeued was claimed before it was put aside.
            Some(why) => assert_eq!(
                (claimed && !story.requeued.contains(&accepted.input), times),
                (false, 0),
                "{text} was {why}"
            ),
        }
    }
    let reported: u64 = heard.iter().map(|heard| number_dropped(heard)).sum();
    assert_eq!(
        reported, story.dropped,
        "what was dropped and what was told of it"
    );
    // Among equals each waits for those before it.
    let mut orders: BTreeMap<(&str, Priority), Vec<InputId>> = BTreeMap::new();
    let is_once = |input: &InputId| claims.contains(input) && !story.requeued.contains(input);
    for accepted in story
        .accepted
        .iter()
        .filter(|accepted| is_once(&accepted.input))
    {
        let kind = match accepted.waits_for() {
            WaitKind::OwnTurn => "own turn",
            WaitKind::Steer => "steer",
            WaitKind::Interrupt => "interrupt",
            WaitKind::Queued(_) => "queued",
        };
        orders
            .entry((kind, accepted.priority()))
            .or_default()
            .push(accepted.input);
    }
    for (of, expected) in orders {
        let claimed: Vec<InputId> = story
            .claims
            .iter()
            .copied()
            .filter(|claim| expected.contains(claim))
            .collect();
        assert_eq!(claimed, expected, "{of:?} out of order");
    }
    story
        .accepted
        .into_iter()
        .filter(|accepted| accepted.source == Source::Api)
        .map(|accepted| accepted.input)
        .collect()
}
