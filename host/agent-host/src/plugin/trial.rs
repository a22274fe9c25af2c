//! The host of one conversation under test: its start, its turns, and the course that it stored.

use super::call::Kit;
use super::conversation::Conduct;
use crate::failure::Failure;
use anyhow::Context;
use broker::replay::fold;
use broker::{
    AfterRestore, Broker, By, Catalogue, Clock, Entry, Limits, NewSession, Parts, PathSettings,
    PostMessage, Respond, Target,
};
use domain::clock::Reading;
use domain::definition::{Definition, DefinitionId};
use domain::event::{Event, RunEnded, RunStepped, StepFailed};
use domain::grant::{Grant, PatternList};
use domain::id::{RunId, SessionId};
use domain::message::Part;
use domain::operation::{CallUsage, Operation, Performer};
use domain::queue::QueueOverride;
use domain::run::Run;
use domain::sample;
use domain::session::CHAT;
use domain::step::Decision;
use domain::time::Timestamp;
use domain::tool::ToolDefinition;
use domain::turn::TurnEnd;
use domain::user::UserId;
use llm::Gateway;
use runtime::{AgentDescription, Component};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::{EventFilter, Options, Store};

/// Steps of one conversation.
pub(super) const STEPS_MAX: u32 = 12;
/// Events of one conversation.
const EVENTS_MAX: usize = 10_000;
/// The time at which every conversation begins.
pub(super) const BEGIN: Timestamp = Timestamp(1_767_225_600_000);
/// Time without an event after which a conversation is left as it is.
const STALLED: Duration = Duration::from_secs(30);
/// The pause between two reads of a conversation's events.
const READ_AGAIN: Duration = Duration::from_millis(2);
/// The agent under test, as a definition and as a component.
pub(super) const PLUGIN: &str = "plugin";
/// A second agent of the same code, which the first may hand work to.
pub(super) const PEER: &str = "sample-peer";

pub(super) fn entry(name: &str, component: Arc<Component>) -> Entry {
    Entry {
        name: name.to_owned(),
        component,
        grant: Grant {
            models: PatternList::everything(),
            agents: PatternList::everything(),
            ..Grant::default()
        },
        is_pinned: false,
    }
}

/// A host for one conversation.
pub(super) struct TrialHost {
    pub(super) broker: Broker,
    pub(super) catalogue: Catalogue,
    /// Milliseconds since the beginning.
    pub(super) passed_ms: Arc<AtomicU64>,
}

impl TrialHost {
    pub(super) async fn start(
        kit: &Kit,
        tools: &[ToolDefinition],
        conduct: Conduct,
        data: &Path,
    ) -> Result<Self, Failure> {
        let rules = data.with_extension("rules.toml");
        std::fs::write(&rules, conduct.rules(tools)).context("cannot write a rule file")?;
        let models = json!({
            "providers": { "scripted": { "kind": "scripted", "script": rules } },
            "models": { "scripted": { "provider": "scripted", "model": "scripted" } },
            "defaultModel": "scripted",
        });
        let models = serde_json::from_value(models)?;
        let gateway = Gateway::new(models, data, &|_| None)?;
        let stand_in = Component::stand_in(tools.to_vec(), conduct.answer());
        let entries = vec![
            entry(PLUGIN, kit.component.clone()),
            entry("tools", stand_in),
        ];
        let definitions = vec![definition(PLUGIN)?, definition(PEER)?];
        let catalogue = Catalogue::new(definitions, entries)?;
        let folder = data.to_owned();
        let options = Options {
            readers: 1,
            ballast_bytes: 0,
            ..Options::default()
        };
        let opened = tokio::task::spawn_blocking(move || Store::open(&folder, options)).await?;
        let passed_ms = Arc::new(AtomicU64::new(0));
        let passed = passed_ms.clone();
        let clock = Clock::of(move || {
            let passed_ms = passed.load(Ordering::SeqCst);
            Reading {
                wall: BEGIN.plus_ms(passed_ms),
                passed_ms,
            }
        });
        let parts = Parts {
            store: opened?,
            runtime: kit.runtime.clone(),
            gateway: Arc::new(gateway),
            catalogue: catalogue.clone(),
            limits: Limits::default(),
            after_restore: AfterRestore::SettleUnknown,
            paths: PathSettings::default(),
            skipped: Vec::new(),
            clock,
        };
        Ok(Self {
            broker: Broker::start(parts).await?,
            catalogue,
            passed_ms,
        })
    }

    /// Opens the session, of the first type that the agent leads, and says hello in a chat.
    pub(super) async fn begin(&self, agent: &AgentDescription) -> Result<SessionId, Failure> {
        let session_type = agent.session_types.first().map_or(CHAT, String::as_str);
        let new = NewSession {
            session_type: Some(session_type.to_owned()),
            ..NewSession::of(target(), UserId::local())
        };
        let session = self.broker.sessions().open(new).await?.row.id;
        if session_type == CHAT {
            let message = PostMessage {
                target: target(),
                session,
                content: vec![Part::text("Hello.")],
                model: None,
                queue: QueueOverride::default(),
                priority: None,
                user: UserId::local(),
                idempotency_key: None,
            };
            self.broker.messages().post(message).await?;
        }
        Ok(session)
    }

    /// Answers questions and lets timers elapse, until the turn has ended, waits for the user's
    /// words, or is as `until` says.
    pub(super) async fn drive(
        &self,
        session: SessionId,
        until: impl Fn(&Run) -> bool,
    ) -> Result<Course, Failure> {
        let mut answered = BTreeSet::new();
        let mut newest = (0, Instant::now());
        loop {
            let course = self.course(session).await?;
            if course.ended.is_some() {
                return Ok(course);
            }
            if course.events != newest.0 {
                newest = (course.events, Instant::now());
            } else if newest.1.elapsed() >= STALLED {
                return Ok(course);
            }
            if let Some(run) = course.run {
                let (run, _) = fold(self.broker.store(), run).await?;
                if until(&run) {
                    return Ok(course);
                }
                // The run was read after the events, and may have ended between the two.
                let course = self.course(session).await?;
                if listens(&run) && (course.ended.is_some() || course.waits()) {
                    return Ok(course);
                }
                if run.step >= STEPS_MAX {
                    let user = UserId::local();
                    let by = By::from(&user);
                    self.broker
                        .runs()
                        .cancel(by, &target(), session, None)
                        .await?;
                    return Ok(course);
                }
                self.let_timers_elapse(&run).await;
            }
            for (session, operation) in &course.questions {
                if answered.insert(operation.id) {
                    self.answer(*session, operation).await;
                }
            }
            tokio::time::sleep(READ_AGAIN).await;
        }
    }

    /// Answers a question as its schema asks for. One that is not open any more needs no answer.
    pub(super) async fn answer(&self, session: SessionId, operation: &Operation) {
        let Performer::Client { action } = &operation.performer else {
            return;
        };
        let schema = action.response_schema.as_ref();
        let respond = Respond {
            target: target(),
            call: operation.id,
            session: Some(session),
            response: schema.map_or(json!("yes"), sample::fitting_any),
            user: UserId::local(),
            idempotency_key: None,
        };
        let _ = self.broker.runs().respond(respond).await;
    }

    /// Lets the time pass that the timers of a run need, if nothing else of it is under way.
    pub(super) async fn let_timers_elapse(&self, run: &Run) {
        let due = run
            .open
            .values()
            .map(|open| match &open.operation.performer {
                Performer::Timer { due } => Some(*due),
                _ => None,
            });
        let Some(Some(due)) = due.reduce(|one, other| Some(one?.min(other?))) else {
            return;
        };
        let wait_ms = due.since_ms(self.broker.clock().now());
        if wait_ms > 0 {
            self.passed_ms.fetch_add(wait_ms, Ordering::SeqCst);
            // It also has the watch over timers look again.
            let _ = self.broker.confirm_clock().await;
        }
    }

    /// Reads the course so far.
    pub(super) async fn course(&self, session: SessionId) -> Result<Course, Failure> {
        let store = self.broker.store();
        let events = store.events(0, EventFilter::default(), EVENTS_MAX).await?;
        let mut course = Course {
            events: events.len(),
            ..Course::default()
        };
        for recorded in events {
            let of_session = recorded.subject.session;
            for event in recorded.event.into_iter().flat_map(Event::apart) {
                course.take(event, of_session, of_session == Some(session));
            }
        }
        Ok(course)
    }
}

/// Returns whether a run waits for what the user says, and for nothing else.
pub(super) fn listens(run: &Run) -> bool {
    run.wait.is_some()
        && run.open.is_empty()
        && run.untold.is_empty()
        && run.untold_stopped.is_empty()
}

pub(super) fn target() -> Target {
    Target::Definition(DefinitionId(PLUGIN.to_owned()))
}

/// Returns the definition of an agent under test, which may do all that can be done.
pub(super) fn definition(id: &str) -> Result<Definition, Failure> {
    let definition = json!({
        "agentId": id, "displayName": id, "component": PLUGIN, "systemPrompt": "Be brief.",
        "description": "Does work that is handed to it.",
        "modelAllowlist": ["*"], "capabilityAllowlist": ["*"],
    });
    Ok(serde_json::from_value(definition)?)
}

/// The stored course of a conversation.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// The number of the host's events.
    pub(super) events: usize,
    pub(super) run: Option<RunId>,
    pub(super) stepped: Vec<RunStepped>,
    /// The newest step that failed.
    pub(super) failed: Option<StepFailed>,
    /// Questions to the user, of any agent of the host.
    pub(super) questions: Vec<(SessionId, Operation)>,
    pub(super) ended: Option<RunEnded>,
}

impl Course {
    /// Takes an event of a session, which may be the conversation's own.
    fn take(&mut self, event: Event, of_session: Option<SessionId>, is_own: bool) {
        match event {
            Event::RunStarted(started) if is_own && self.run.is_none() => {
                self.run = Some(started.run);
            }
            Event::RunStepped(stepped) => {
                let asks = |operation: &&Operation| {
                    matches!(operation.performer, Performer::Client { .. })
                };
                let asked = stepped.started.iter().filter(asks).cloned();
                let asked = of_session
                    .into_iter()
                    .flat_map(|of| asked.clone().map(move |it| (of, it)));
                self.questions.extend(asked);
                if self.run == Some(stepped.run) {
                    self.stepped.push(*stepped);
                }
            }
            Event::StepFailed(failed) if self.run == Some(failed.run) => {
                self.failed = Some(failed);
            }
            Event::RunEnded(ended) if self.run == Some(ended.run) => {
                self.ended = Some(ended);
            }
            _ => {}
        }
    }

    /// Returns the failed step at which the conversation ended.
    pub(super) fn not_taken(&self) -> Option<&StepFailed> {
        let steps = self.stepped.len();
        let is_last =
            |failed: &&StepFailed| usize::try_from(failed.step).is_ok_and(|it| it >= steps);
        self.failed.as_ref().filter(is_last)
    }

    /// Returns its end in words.
    pub(super) fn end(&self) -> &'static str {
        if self.not_taken().is_some() {
            return "a step that is not taken";
        }
        match self.ended.as_ref().map(|ended| ended.end) {
            Some(TurnEnd::Replied) => "a reply",
            Some(TurnEnd::Completed) => "the end of its session",
            Some(TurnEnd::Failed | TurnEnd::Aborted) => "a failed turn",
            None if self.is_long() => "still going on",
            None => "waiting for the user",
        }
    }

    /// Returns whether its last step decided to wait.
    pub(super) fn waits(&self) -> bool {
        let last = self.stepped.last().map(|stepped| &stepped.decision);
        matches!(last, Some(Decision::Wait(_)))
    }

    pub(super) fn is_long(&self) -> bool {
        self.stepped.len() >= STEPS_MAX as usize
    }

    /// Returns the time that its steps took, and the most memory that one had.
    pub(super) fn usage(&self) -> CallUsage {
        let failed = self.failed.iter().map(|failed| &failed.usage);
        let all = self
            .stepped
            .iter()
            .map(|stepped| &stepped.usage)
            .chain(failed);
        all.fold(CallUsage::default(), |sum, usage| CallUsage {
            wall_us: sum.wall_us + usage.wall_us,
            memory_bytes_peak: sum.memory_bytes_peak.max(usage.memory_bytes_peak),
            ..sum
        })
    }
}
