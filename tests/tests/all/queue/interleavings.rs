//! Any interleaving of messages, modes, priorities, cancellations, dead letters, replies and
//! crashes. The broker does what the simplest correct queue allows. Every accepted message is dealt
//! with once, in its order, or its sender learns the reason why not.

use super::chance::{Chance, DEAF_MS, busy, part_of};
use super::refinement::check;
use super::refinement::{QueueStatus, Sent, SessionOutcome, heard_texts, refine};
use super::said;
use agent_host_tests::patience::until;
use agent_host_tests::world::target;
use agent_host_tests::{Setup, World};
use anyhow::{Context, Result, ensure};
use broker::By;
use broker::{Error, InputReceipt, PostMessage};
use domain::delegate::Priority;
use domain::digest::Salt;
use domain::event::{Event, NewEvent, Recorded};
use domain::id::{InputId, SessionId};
use domain::queue::{Directive, QueueOverride, QueueSettings};
use domain::time::Timestamp;
use domain::user::UserId;
use futures::FutureExt;
use serde_json::json;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::time::Duration;
use store::{Commit, EventFilter, Expected, Store};

/// Things that happen in one world.
const HAPPENINGS: u64 = 160;
/// Worlds. One that goes wrong says its number, and does much the same when it is tried again.
const SEEDS: [u64; 4] = [1, 2, 3, 4];
/// More events than a world has.
const EVENTS_MAX: usize = 1_000_000;

/// A session, with what it says of its queue and who was acknowledged, each with the place of its
/// acceptance.
struct ChatSession {
    session: SessionId,
    queue: QueueOverride,
    acknowledged: Vec<(u64, InputId)>,
}

/// A world in which things happen to two sessions of one agent.
struct Story {
    world: World,
    chance: Chance,
    exchanges: [ChatSession; 2],
    sent: Sent,
    /// The observed states of queues, by session and position.
    seen: Vec<(SessionId, u64, QueueStatus)>,
}

impl Story {
    async fn begin(seed: u64, deaf_ms: u64) -> Self {
        let mut setup = Setup {
            components: vec!["puppet"],
            ..Setup::default()
        };
        let caller = json!({ "agentId": "caller", "displayName": "Caller", "component": "puppet" });
        setup.definitions = vec![busy(deaf_ms), caller];
        let world = World::new(setup).await;
        let one = world.open("busy").await;
        let other = world.open("busy").await;
        let exchanges = [one, other].map(|session| ChatSession {
            session,
            queue: QueueOverride::default(),
            acknowledged: Vec::new(),
        });
        Self {
            world,
            chance: Chance::new(seed),
            exchanges,
            sent: Sent::new(),
            seen: Vec::new(),
        }
    }

    async fn happens(mut self, number: u64) -> Self {
        let at = usize::from(self.chance.below(2) == 1);
        let me = UserId::local();
        let busy = target("busy");
        let session = self.exchanges[at].session;
        match self.chance.below(100) {
            0..=3 => self.world = self.world.restart(|_| {}).await,
            4..=9 if !self.exchanges[at].acknowledged.is_empty() => {
                let (_, input) = self.chance.pick(&self.exchanges[at].acknowledged);
                // It may be dealt with by now.
                let _ = self
                    .world
                    .broker
                    .queue()
                    .cancel(By::from(&me), &busy, session, input, None)
                    .await;
            }
            10..=11 => drop(
                self.world
                    .broker
                    .runs()
                    .cancel(By::from(&me), &busy, session, None)
                    .await
                    .unwrap(),
            ),
            12 => drop(
                self.world
                    .broker
                    .runs()
                    .cancel_with_waiting(By::from(&me), &busy, session, None)
                    .await
                    .unwrap(),
            ),
            13..=16 => self.configures(at).await,
            17..=19 => self.hands_over(session, number).await,
            20..=22 => {
                for letter in self.world.broker.dead_letters().list(2).await.unwrap() {
                    // It may have been requeued before, and be dead again.
                    let _ = self
                        .world
                        .broker
                        .dead_letters()
                        .requeue(By::from(&me), letter.accepted.input, None)
                        .await;
                }
            }
            23..=38 => {
                for _ in 0..self.chance.below(25) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    self.inspections().await;
                }
            }
            39..=43 => {
                let texts = ["a", "b", "c"].map(|letter| format!("<{number}{letter}>"));
                self.posts(at, &texts).await;
            }
            // Whose turn begins with it fails, and all that it took up is put aside.
            44..=46 => {
                self.posts(
                    at,
                    &[json!({ "steps": [{ "trap": format!("<{number}>") }] }).to_string()],
                )
                .await
            }
            _ => self.posts(at, &[format!("<{number}>")]).await,
        }
        self.inspections().await;
        self
    }

    /// Says something of the queue of a session, for all messages that say nothing themselves.
    async fn configures(&mut self, at: usize) {
        let directive = if self.chance.below(4) == 0 {
            "default".to_owned()
        } else {
            part_of(&mut self.chance)
        };
        let text = format!("/queue {directive}");
        let exchange = &mut self.exchanges[at];
        let broker::PostOutcome::Configured(reported) = self
            .world
            .broker
            .messages()
            .say(self.world.message("busy", exchange.session, &text, None))
            .await
            .unwrap()
        else {
            panic!("{text} is no directive")
        };
        let directive: Directive = text.parse().unwrap();
        exchange.queue = directive.applied(exchange.queue);
        assert_eq!(reported.said, exchange.queue);
    }

    /// Has another agent hand over work without waiting for it.
    async fn hands_over(&self, session: SessionId, number: u64) {
        let message = json!({
            "agentId": "busy", "content": format!("<{number}>"), "session": session.to_string(),
            "mode": "async",
        });
        let steps = json!({
            "steps": [
                { "start": [{ "key": "m", "tool": "agents_message", "args": message }] },
                { "reply": "sent" },
            ],
        });
        let caller = self.world.open("caller").await;
        self.world.say("caller", caller, &steps.to_string()).await;
    }

    /// Says something, all of it at the same time.
    async fn posts(&mut self, at: usize, texts: &[String]) {
        let exchange = &mut self.exchanges[at];
        let messages = self.world.broker.messages();
        let mut posts = Vec::new();
        for text in texts {
            let queue = if self.chance.below(3) == 0 {
                QueueOverride::default()
            } else {
                said(&part_of(&mut self.chance))
            };
            let priority = self.chance.pick(&[
                None,
                None,
                Some(Priority::High),
                Some(Priority::Low),
                Some(Priority::Critical),
            ]);
            let settings =
                QueueSettings::resolve([queue, exchange.queue, QueueOverride::default()]);
            self.sent
                .insert(text.clone(), (settings, priority.unwrap_or_default()));
            let message = PostMessage {
                queue,
                priority,
                ..self.world.message("busy", exchange.session, text, None)
            };
            posts.push(messages.post(message));
        }
        for posted in futures::future::join_all(posts).await {
            match posted {
                Ok(InputReceipt {
                    position, input, ..
                }) => exchange.acknowledged.push((position, input)),
                // The queue is full and drops nothing: then nothing of it is stored.
                Err(Error::Refused(refusal)) => assert_eq!(refusal.code, "QUEUE_FULL"),
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    /// Looks at the queues, to see later whether they were ever as the rules of the reference say.
    async fn inspections(&mut self) {
        let store = self.world.store();
        for exchange in &self.exchanges {
            let before = last(store).await;
            let status = status(store, exchange.session).await;
            // What is read in two inspections belongs together only if nothing came in between.
            if before == last(store).await {
                self.seen.push((exchange.session, before, status));
            }
        }
    }

    /// Waits until nothing is left to do, and compares the results.
    async fn ends(self) -> Result<()> {
        let store = self.world.store();
        let mut sent = self.sent;
        // Those too who hand over work.
        until(async || {
            store
                .sessions_with_work(Timestamp(u64::MAX >> 1))
                .await
                .unwrap()
                .is_empty()
        })
        .await;
        let events = async || {
            store
                .events(0, EventFilter::default(), EVENTS_MAX)
                .await
                .unwrap()
        };
        let mut all = Vec::new();
        for exchange in &self.exchanges {
            self.world.idle(exchange.session).await;
            // The next turn reports what was dropped last.
            sent.insert(
                "the end".to_owned(),
                (
                    QueueSettings::resolve([
                        exchange.queue,
                        QueueOverride::default(),
                        QueueOverride::default(),
                    ]),
                    Priority::Normal,
                ),
            );
            self.world.turn("busy", exchange.session, "the end").await;
            let accepted = check(store, exchange.session).await;
            let mut acknowledged = exchange.acknowledged.clone();
            acknowledged.sort_unstable();
            let acknowledged: Vec<InputId> =
                acknowledged.into_iter().map(|(_, input)| input).collect();
            ensure!(
                accepted[..accepted.len() - 1] == acknowledged,
                "each that was acknowledged, in the order of acceptance"
            );
            let own = of_session(&events().await, exchange.session);
            let outcome = refine(&own, &sent)?;
            let thread: Vec<String> =
                heard_texts(&self.world.messages(exchange.session).await).collect();
            ensure!(
                thread == outcome.thread,
                "the thread says {thread:?}, and the reference {:?}",
                outcome.thread
            );
            all.push((exchange.session, outcome));
        }
        for (session, at, status) in &self.seen {
            let (_, outcome) = all
                .iter()
                .find(|(of, _)| of == session)
                .context("a session")?;
            ensure!(
                was_so(outcome, *at, status),
                "after {at} it was not {status:?}"
            );
        }
        ensure!(
            store.verify().await?.fault.is_none(),
            "the store does not verify"
        );
        mirror(&events().await, &all, self.world.dir.path()).await
    }
}

/// A session's queue as it is stored.
async fn status(store: &Store, session: SessionId) -> QueueStatus {
    let queue = store
        .queue(session, Timestamp(u64::MAX >> 1))
        .await
        .unwrap()
        .unwrap()
        .queue;
    (
        queue.waiting.iter().map(|waiting| waiting.id).collect(),
        queue.overflow.notice().map(|notice| notice.to_string()),
    )
}

/// The position of the last event that can be read, which may not be durable yet.
async fn last(store: &Store) -> u64 {
    let durable = *store.durable().borrow();
    store
        .events(durable, EventFilter::default(), EVENTS_MAX)
        .await
        .unwrap()
        .last()
        .map_or(durable, |recorded| recorded.position)
}

/// Returns true if a queue was like this after an event. Of events that belong together all have to
/// be there.
fn was_so(outcome: &SessionOutcome, at: u64, status: &QueueStatus) -> bool {
    let moment = outcome
        .moments
        .iter()
        .rfind(|(position, _)| *position <= at)
        .map(|(_, status)| status);
    moment.map_or(status.0.is_empty() && status.1.is_none(), |moment| {
        moment == status
    })
}

fn of_session(events: &[Recorded], session: SessionId) -> Vec<Recorded> {
    events
        .iter()
        .filter(|recorded| recorded.subject.session == Some(session))
        .cloned()
        .collect()
}

/// Tells another store every event, one after the other: its queues are what the reference's were
/// at each of them, in their order.
async fn mirror(
    events: &[Recorded],
    all: &[(SessionId, SessionOutcome)],
    folder: &Path,
) -> Result<()> {
    let path = folder.join("mirror");
    let store = tokio::task::spawn_blocking(move || Store::open(&path, store::Options::default()))
        .await??;
    for recorded in events {
        let Recorded {
            position,
            id,
            event,
            subject,
            actor,
            causation,
            correlation,
            time,
            ..
        } = recorded.clone();
        let event = event.context("an event that was erased")?;
        let new = NewEvent {
            id,
            event,
            subject,
            actor,
            causation,
            correlation,
            time,
            salt: Salt::default(),
        };
        store
            .commit(Commit::new().append(recorded.stream.parse()?, Expected::Any, vec![new]))
            .await?;
        for (session, outcome) in all {
            if let Some((_, moment)) = outcome.moments.iter().find(|(at, _)| *at == position) {
                let stored = status(&store, *session).await;
                ensure!(
                    stored == *moment,
                    "{} at {position}: {stored:?} wait, and not {moment:?}",
                    recorded.kind
                );
            }
        }
    }
    store.close().await;
    Ok(())
}

async fn interleave(seed: u64) {
    let story = async {
        let mut story = Story::begin(seed, DEAF_MS).await;
        for number in 0..HAPPENINGS {
            story = Box::pin(story.happens(number)).await;
        }
        Box::pin(story.ends())
            .await
            .unwrap_or_else(|wrong| panic!("{wrong:?}"));
    };
    // The panic above says what it was.
    assert!(
        AssertUnwindSafe(story).catch_unwind().await.is_ok(),
        "this was the world of the seed {seed}"
    );
}

/// Any interleaving of messages, modes and crashes is one that the simplest queue allows.
#[tokio::test(flavor = "multi_thread")]
async fn any_interleaving_of_messages_modes_and_crashes_is_allowed_by_the_simplest_queue() {
    futures::future::join_all(SEEDS.map(interleave)).await;
}

/// The places of some events.
fn places(events: &[Recorded], is: impl Fn(&Event) -> bool) -> Vec<usize> {
    events
        .iter()
        .enumerate()
        .filter(|(_, recorded)| recorded.event.as_ref().is_some_and(&is))
        .map(|(place, _)| place)
        .collect()
}

/// A history in which anything was lost, doubled or moved is told apart from a true one.
#[tokio::test(flavor = "multi_thread")]
async fn a_history_with_something_lost_doubled_or_moved_is_told_apart_from_a_true_one() {
    // The first turn goes on until the last message is in the queue.
    let mut story = Story::begin(7, 1_500).await;
    let session = story.exchanges[0].session;
    for (number, queue) in [
        "steer",
        "followup debounce:0 cap:1",
        "followup debounce:0 cap:1",
        "collect debounce:0",
        "collect debounce:0",
    ]
    .iter()
    .enumerate()
    {
        let text = format!("<{number}>");
        story.sent.insert(
            text.clone(),
            (
                QueueSettings::resolve([
                    said(queue),
                    QueueOverride::default(),
                    QueueOverride::default(),
                ]),
                Priority::Normal,
            ),
        );
        let message = PostMessage {
            queue: said(queue),
            ..story.world.message("busy", session, &text, None)
        };
        story.world.broker.messages().post(message).await.unwrap();
    }
    story.world.idle(session).await;
    let events = of_session(
        &story
            .world
            .store()
            .events(0, EventFilter::default(), EVENTS_MAX)
            .await
            .unwrap(),
        session,
    );
    refine(&events, &story.sent).unwrap();
    let dropped = places(&events, |event| matches!(event, Event::InputsDropped(_)))[0];
    let starts = places(&events, |event| matches!(event, Event::RunStarted(_)));
    let accepts = places(&events, |event| matches!(event, Event::InputAccepted(_)));
    let ends = places(&events, |event| matches!(event, Event::RunEnded(_)));
    let changed = |what: &str, change: &dyn Fn(&mut Vec<Recorded>)| {
        let mut events = events.clone();
        change(&mut events);
        assert!(refine(&events, &story.sent).is_err(), "{what} went unseen");
    };
    changed("a drop that nobody recorded", &|events| {
        drop(events.remove(dropped))
    });
    changed("words that nobody accepted", &|events| {
        drop(events.remove(accepts[1]))
    });
    changed("a turn that never was", &|events| {
        drop(events.drain(starts[1]..=ends[1]))
    });
    changed("words that were accepted in another order", &|events| {
        events.swap(accepts[3], accepts[4])
    });
    changed("a run that began before another had ended", &|events| {
        events.swap(ends[0], starts[1])
    });
    let started = |events: &mut Vec<Recorded>,
                   which: usize,
                   change: &dyn Fn(&mut domain::event::RunStarted)| {
        let Some(Event::RunStarted(it)) = &mut events[starts[which]].event else {
            panic!("no start")
        };
        change(it);
    };
    let first = |events: &[Recorded]| {
        let Some(Event::RunStarted(it)) = &events[starts[0]].event else {
            panic!("no start")
        };
        it.claimed.clone()
    };
    let claimed = first(&events);
    changed("a claim of what was claimed before", &|events| {
        started(events, 1, &|it| it.claimed.extend(&claimed))
    });
    changed("a claim that was left out", &|events| {
        started(events, 1, &|it| it.claimed.truncate(it.claimed.len() - 1))
    });
    changed("claims in another order", &|events| {
        started(events, starts.len() - 1, &|it| it.claimed.reverse())
    });
    changed("a notice that was not told", &|events| {
        started(events, 1, &|it| it.overflow = None)
    });
}
