//! The ingress: accepting messages for 256 sessions at the same time beside bare commits of the
//! store, the turns that follow in a second, and the lookup of a message's destination.

use crate::acceptance;
use crate::measure::{Pair, in_turns, median, p99, us};
use crate::report::{Bar, Row};
use crate::shim;
use crate::thread::new;
use crate::view::NOON;
use agent_host_tests::{Setup, World};
use anyhow::ensure;
use broker::{Address, Target};
use domain::event::{Event, InputAccepted, InputCancelled, PluginEmitted, Source, Subject};
use domain::id::{InputId, SessionId, Stream};
use domain::message::{Draft, Role};
use domain::user::UserId;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Commit, Expected, Options, Store};
use tokio::task::JoinSet;
use uuid::Uuid;

/// Sessions that are written to at the same time.
const SESSIONS: usize = 256;
/// Messages for each of them in one measurement, which is made on empty queues.
pub(crate) const MESSAGES: usize = 20;
/// The text of every message.
pub(crate) const WORDS: &str = "A sentence of the length that people write when they ask for \
                                something, and then some more of it.";
/// Turns of each session when whole turns are counted.
const TURNS: usize = 4;
/// Number of lookups of the place where a message goes.
const LOOKUPS: usize = 2_000;
/// The most that finding out may take, in microseconds.
const ROUTING_US_MAX: f64 = 1_000.0;

pub(crate) async fn run() -> anyhow::Result<Vec<Row>> {
    let busy = Arc::new(Sessions::busy(SESSIONS).await?);
    let folder = tempfile::tempdir()?;
    let bare = Store::open(&folder.path().join("data"), Options::default())?;
    let accepted = in_turns(
        async || busy.emptied(busy.accept().await).await,
        async || commit(&bare).await,
    )
    .await?;
    bare.close().await;
    let accept = async || busy.emptied(busy.accept().await).await;
    let stored = in_turns(accept, async || busy.emptied(busy.store().await).await).await?;
    let routing = busy.route().await?;
    busy.world.broker.shutdown(Duration::ZERO).await;
    let turns = whole_turns().await?;
    let mut rows = vec![
        Row::new(
            "words accepted, 256 sessions / bare group commit",
            "1/s",
            accepted,
            Bar::AtLeast(0.5),
        ),
        Row::new(
            "the same / their events and what follows from them alone",
            "1/s",
            stored,
            Bar::Reported,
        ),
        Row::new(
            "whole turns of 256 sessions, model at once",
            "1/s",
            Pair {
                ours: turns,
                peer: accepted.ours,
            },
            Bar::Reported,
        ),
        Row::new(
            "where words go, p99",
            "µs",
            Pair {
                ours: routing,
                peer: ROUTING_US_MAX,
            },
            Bar::AtMost(ROUTING_US_MAX),
        ),
    ];
    if shim::AVAILABLE {
        rows.extend(acceptance::rows()?);
    }
    Ok(rows)
}

/// Sessions of one agent.
pub(crate) struct Sessions {
    pub(crate) world: World,
    pub(crate) sessions: Vec<SessionId>,
}

impl Sessions {
    /// Begins sessions that each have a turn waiting for its client. What is accepted then waits,
    /// and nothing else is done meanwhile.
    pub(crate) async fn busy(count: usize) -> anyhow::Result<Self> {
        Self::busy_beside(count, &[]).await
    }

    /// The same on a host that has further components.
    pub(crate) async fn busy_beside(
        count: usize,
        components: &[&'static str],
    ) -> anyhow::Result<Self> {
        let world = World::new(Setup {
            components: [&["puppet"], components].concat(),
            definitions: vec![
                json!({ "agentId": "puppet", "displayName": "Puppet", "component": "puppet", "maxConcurrentMessages": 100_000 }),
            ],
            ..Setup::default()
        })
        .await;
        let asks = json!({ "steps": [{ "start": [{ "key": "q", "client": "confirmation" }] }] })
            .to_string();
        let mut sessions = Vec::with_capacity(count);
        for _ in 0..count {
            let session = world.open("puppet").await;
            world.say("puppet", session, &asks).await;
            sessions.push(session);
        }
        for session in &sessions {
            while world
                .store()
                .session(*session)
                .await?
                .is_none_or(|row| row.open_run.is_none() || row.waiting > 0)
            {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        Ok(Self { world, sessions })
    }

    /// Messages that are accepted in a second, when each session's sender waits for each of its
    /// own.
    async fn accept(self: &Arc<Self>) -> anyhow::Result<f64> {
        let began = Instant::now();
        let mut senders = JoinSet::new();
        for session in self.sessions.clone() {
            let sessions = self.clone();
            senders.spawn(async move {
                let world = &sessions.world;
                for _ in 0..MESSAGES {
                    let message = world.message("puppet", session, WORDS, None);
                    world.broker.messages().post(message).await?;
                }
                anyhow::Ok(())
            });
        }
        all_done(senders, began).await
    }

    /// Messages whose events are stored in a second, with all that follows from them. No decision
    /// is made on what becomes of them.
    async fn store(self: &Arc<Self>) -> anyhow::Result<f64> {
        let began = Instant::now();
        let mut senders = JoinSet::new();
        for session in self.sessions.clone() {
            let sessions = self.clone();
            senders.spawn(async move {
                for _ in 0..MESSAGES {
                    let event = new(
                        Event::InputAccepted(input_accepted(session)),
                        Subject {
                            session: Some(session),
                            ..Subject::default()
                        },
                    );
                    sessions
                        .world
                        .store()
                        .commit(Commit::new().append(
                            Stream::Session(session),
                            Expected::Any,
                            vec![event],
                        ))
                        .await?;
                }
                anyhow::Ok(())
            });
        }
        all_done(senders, began).await
    }

    /// Returns the measurement after cancelling all waiting inputs. The next measurement then
    /// starts with empty queues.
    pub(crate) async fn emptied(&self, measured: anyhow::Result<f64>) -> anyhow::Result<f64> {
        for session in &self.sessions {
            let waiting = self
                .world
                .store()
                .waiting_inputs(*session, NOON, 2 * MESSAGES)
                .await?;
            let cancelled = waiting.into_iter().map(|input| {
                let cancelled = InputCancelled {
                    input: input.input,
                    session: *session,
                    cancelled_by: UserId::local(),
                    reason: None,
                    time: NOON,
                };
                new(
                    Event::InputCancelled(cancelled),
                    Subject {
                        session: Some(*session),
                        ..Subject::default()
                    },
                )
            });
            let commit = Commit::new().append(
                Stream::Session(*session),
                Expected::Any,
                cancelled.collect(),
            );
            self.world.store().commit(commit).await?;
        }
        measured
    }

    /// Microseconds that all but one in a hundred lookups take: of the message's session by its
    /// agent, without accepting it.
    async fn route(&self) -> anyhow::Result<f64> {
        let to = Address::Agent(Target::Definition(domain::definition::DefinitionId(
            "puppet".to_owned(),
        )));
        let mut taken = Vec::with_capacity(LOOKUPS);
        for _ in 0..LOOKUPS {
            let began = Instant::now();
            let found = self
                .world
                .broker
                .messages()
                .where_to(&UserId::local(), &to, WORDS)
                .await?;
            taken.push(us(began.elapsed()));
            ensure!(found.is_some(), "the words would go nowhere");
        }
        Ok(p99(&mut taken))
    }
}

/// The message, accepted.
fn input_accepted(session: SessionId) -> InputAccepted {
    InputAccepted {
        user_id: UserId::local(),
        message: Some(Draft::text(Role::User, "api", WORDS)),
        ..InputAccepted::of(session, InputId(Uuid::now_v7()), Source::Api, NOON)
    }
}

/// Commits that are durable in a second, with as many writers, each of which waits for each of its
/// own.
async fn commit(store: &Store) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut writers = JoinSet::new();
    for _ in 0..SESSIONS {
        let store = store.clone();
        writers.spawn(async move {
            let stream = Stream::Session(SessionId(Uuid::new_v4()));
            for n in 0..MESSAGES {
                let emitted = PluginEmitted {
                    name: "plugin.bench.event".to_owned(),
                    data: json!({ "n": n, "words": WORDS }),
                };
                let event = new(Event::PluginEmitted(emitted), Subject::default());
                store
                    .commit(Commit::new().append(stream, Expected::Any, vec![event]))
                    .await?;
            }
            anyhow::Ok(())
        });
    }
    all_done(writers, began).await
}

/// Messages of all senders in a second, when the last one is done.
async fn all_done(mut senders: JoinSet<anyhow::Result<()>>, began: Instant) -> anyhow::Result<f64> {
    while let Some(ended) = senders.join_next().await {
        ended??;
    }
    Ok(per_second(SESSIONS * MESSAGES, began.elapsed()))
}

/// Whole turns that end in a second, from the message to the stored reply. As many sessions run at
/// the same time.
async fn whole_turns() -> anyhow::Result<f64> {
    let world = Arc::new(
        World::new(Setup {
            components: vec!["assistant"],
            definitions: vec![
                json!({ "agentId": "assistant", "displayName": "Assistant", "maxConcurrentMessages": 100_000, "toolAllowlist": [] }),
            ],
            script: "[[rule]]\nreply = { text = \"Hello.\" }\n".to_owned(),
            ..Setup::default()
        })
        .await,
    );
    let mut sessions = Vec::with_capacity(SESSIONS);
    for _ in 0..SESSIONS {
        sessions.push(world.open("assistant").await);
    }
    let mut rounds = Vec::new();
    for _ in 0..TURNS {
        let began = Instant::now();
        let mut turns = JoinSet::new();
        for session in sessions.clone() {
            let world = world.clone();
            turns.spawn(async move {
                let message = world.message("assistant", session, "hello", None);
                world.broker.messages().post(message).await?;
                world.idle(session).await;
                anyhow::Ok(())
            });
        }
        while let Some(ended) = turns.join_next().await {
            ended??;
        }
        rounds.push(per_second(SESSIONS, began.elapsed()));
    }
    world.broker.shutdown(Duration::ZERO).await;
    Ok(median(&mut rounds))
}

fn per_second(things: usize, taken: Duration) -> f64 {
    things as f64 / taken.as_secs_f64()
}
