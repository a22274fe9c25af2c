//! The way of a delegation, from the commit of the assistant's decision to that of the worker's
//! first step, beside a whole turn of the same assistant alone.

use crate::measure::{Pair, median, ms};
use crate::report::{Bar, Row};
use crate::size::Size;
use agent_host_tests::{Setup, World};
use anyhow::{Context, ensure};
use domain::event::Recorded;
use domain::id::SessionId;
use serde_json::json;
use std::time::{Duration, Instant};
use store::EventFilter;

/// The agent that delegates.
const AGENT: &str = "assistant";
/// Words that its model delegates, and words that it answers at once.
const DELEGATED: &str = "read /data/a";
const ANSWERED: &str = "hello";
/// Sessions, and turns of both kinds in each.
const SESSIONS: usize = 5;
const TURNS: usize = 20;
/// Events of one turn, at most.
const EVENTS_MAX: usize = 1_000;
/// The share of the delegations of which both commits have to be seen one by one.
const SEEN_SHARE_MIN: f64 = 0.25;
/// The bars: times of a turn, and milliseconds.
const TURNS_MAX: f64 = 3.0;
const BEGINS_MS_MAX: f64 = 1_000.0;

pub(crate) async fn run(size: Size) -> anyhow::Result<Vec<Row>> {
    let world = world().await;
    std::fs::write(world.dir.path().join("files/a"), "hello\n")?;
    let turns = size.scaled(TURNS);
    let mut ours = Vec::new();
    let mut peer = Vec::new();
    for _ in 0..SESSIONS {
        let session = world.open(AGENT).await;
        // Both warm up.
        Taken::saying(&world, session, DELEGATED).await?;
        Taken::saying(&world, session, ANSWERED).await?;
        for _ in 0..turns {
            let taken = Taken::saying(&world, session, DELEGATED).await?;
            ours.extend(taken.handed_over(&world, session).await?.map(ms));
            peer.push(ms(Taken::saying(&world, session, ANSWERED).await?.whole));
        }
    }
    world.broker.shutdown(Duration::ZERO).await;
    ensure!(
        ours.len() as f64 >= SEEN_SHARE_MIN * peer.len() as f64,
        "only {} delegations of {} were seen commit by commit",
        ours.len(),
        peer.len()
    );
    let pair = Pair {
        ours: median(&mut ours),
        peer: median(&mut peer),
    };
    Ok(vec![
        Row::new(
            "delegation to its first step / a whole turn",
            "ms",
            pair,
            Bar::Within(TURNS_MAX),
        ),
        Row::new(
            "the same, at most a second",
            "ms",
            pair,
            Bar::AtMost(BEGINS_MS_MAX),
        ),
    ])
}

async fn world() -> World {
    World::new(Setup {
        components: vec![AGENT, "worker", "files"],
        definitions: vec![
            json!({ "agentId": AGENT, "displayName": "Assistant", "toolAllowlist": ["delegate"] }),
            json!({
                "agentId": "worker", "displayName": "Worker", "component": "worker",
                "toolAllowlist": ["*_file", "*_files"], "agentAllowlist": [],
            }),
        ],
        ..Setup::default()
    })
    .await
}

/// A turn that was watched.
struct Taken {
    /// Position of the last event before it.
    before: u64,
    /// The time until its reply.
    whole: Duration,
    /// The positions that were durable meanwhile, each with the time at which that was seen.
    seen: Vec<(u64, Instant)>,
}

impl Taken {
    /// Says something and waits for the end of the turn, woken by each commit.
    async fn saying(world: &World, session: SessionId, words: &str) -> anyhow::Result<Self> {
        let mut durable = world.store().durable();
        let before = *durable.borrow_and_update();
        let mut seen = Vec::new();
        let began = Instant::now();
        let message = world.message(AGENT, session, words, None);
        world.broker.messages().post(message).await?;
        loop {
            seen.push((*durable.borrow_and_update(), Instant::now()));
            let row = world.store().session(session).await?;
            if row.is_some_and(|row| row.open_run.is_none() && row.waiting == 0) {
                return Ok(Self {
                    before,
                    whole: began.elapsed(),
                    seen,
                });
            }
            durable.changed().await?;
        }
    }

    /// Returns the time from the step that delegates to the first step of another session. None
    /// when the two were not seen apart.
    async fn handed_over(
        &self,
        world: &World,
        session: SessionId,
    ) -> anyhow::Result<Option<Duration>> {
        let filter = EventFilter::default();
        let events = world
            .store()
            .events(self.before, filter, EVENTS_MAX)
            .await?;
        let begun = events
            .iter()
            .find(|event| event.kind == "run.started.v1" && event.subject.session != Some(session))
            .context("no turn of a worker began")?;
        let is_step =
            |event: &&Recorded| event.event.as_ref().is_some_and(|it| it.step().is_some());
        let steps = || events.iter().filter(is_step);
        let decided = steps()
            .filter(|step| step.subject.session == Some(session))
            .rfind(|step| step.position < begun.position)
            .context("nobody decided to delegate")?;
        let stepped = steps()
            .find(|step| step.subject.run == begun.subject.run && step.position >= begun.position)
            .context("the worker made no step")?;
        let from = self.seen_at(decided.position);
        let to = self.seen_at(stepped.position);
        Ok(from
            .zip(to)
            .map(|(from, to)| to.saturating_duration_since(from))
            .filter(|taken| !taken.is_zero()))
    }

    fn seen_at(&self, position: u64) -> Option<Instant> {
        let mut seen = self.seen.iter();
        seen.find(|(durable, _)| *durable >= position)
            .map(|(_, at)| *at)
    }
}
