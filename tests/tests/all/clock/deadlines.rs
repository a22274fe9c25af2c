//! Every deadline that a host keeps, by a clock that a test sets.

use agent_host_tests::{Setup, World};
use broker::Clock;
use domain::clock::Reading;
use domain::id::SessionId;
use domain::time::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use store::SessionStatus;

const NOON_MS: u64 = 1_700_000_000_000;
/// Length of every deadline in these tests, in milliseconds.
const LIMIT_MS: u64 = 600_000;
const EIGHT_DAYS_MS: u64 = 8 * 24 * 60 * 60 * 1_000;

/// The hands of a clock: time passes by itself, and more of it when a test says so.
#[derive(Clone)]
struct Hands(Arc<Shown>);

struct Shown {
    begun: Instant,
    passed_ms: AtomicU64,
    jumped_ms: AtomicU64,
}

impl Hands {
    fn new() -> Self {
        Self(Arc::new(Shown { begun: Instant::now(), passed_ms: AtomicU64::new(0), jumped_ms: AtomicU64::new(0) }))
    }

    fn clock(&self) -> Clock {
        let Self(shown) = self.clone();
        Clock::of(move || {
            let passed = u64::try_from(shown.begun.elapsed().as_millis()).unwrap() + shown.passed_ms.load(Ordering::SeqCst);
            Reading { wall: Timestamp(NOON_MS + passed + shown.jumped_ms.load(Ordering::SeqCst)), passed_ms: passed }
        })
    }

    /// Time passes.
    fn pass(&self, ms: u64) {
        self.0.passed_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// The wall clock jumps ahead.
    fn jump(&self, ms: u64) {
        self.0.jumped_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

async fn world(hands: &Hands) -> World {
    let mut setup = Setup { clock: hands.clock(), ..Setup::default() };
    setup.limits.approval_ms = LIMIT_MS;
    setup.definitions[0]["confirm"] = json!(["put"]);
    setup.definitions.push(json!({
        "agentId": "leads", "displayName": "Leads", "component": "puppet", "sessions": { "lesson": { "timeLimitS": LIMIT_MS / 1_000 } },
        "settings": { "script": { "steps": [{ "start": [{ "key": "q", "client": "confirmation" }] }] } },
    }));
    World::new(setup).await
}

async fn begin(world: &World, step: Value) -> SessionId {
    let session = world.open("puppet").await;
    world.say("puppet", session, &json!({ "steps": [step] }).to_string()).await;
    session
}

/// Everything that waits in these tests.
struct Waiting {
    timer: SessionId,
    dispatch: SessionId,
    approval: SessionId,
    reminder: SessionId,
    lesson: SessionId,
}

impl Waiting {
    async fn begin(world: &World) -> Self {
        let work = json!({ "steps": [{ "start": [{ "key": "t", "timer": 10 * LIMIT_MS }] }] }).to_string();
        let waiting = Self {
            timer: begin(world, json!({ "start": [{ "key": "t", "timer": LIMIT_MS }] })).await,
            dispatch: begin(world, json!({ "start": [{ "key": "d", "agent": "other", "text": work, "timeout": LIMIT_MS }] })).await,
            approval: begin(world, json!({ "start": [{ "key": "a", "tool": "put", "args": {} }] })).await,
            reminder: begin(world, json!({ "effects": [{ "schedule": LIMIT_MS }], "start": [{ "key": "z", "timer": 1 }] })).await,
            lesson: world.open_as("leads", Some("lesson")).await,
        };
        for session in [waiting.timer, waiting.dispatch] {
            world.until(session, |row| row.open_run.is_some()).await;
        }
        world.question("puppet", waiting.approval).await;
        world.question("leads", waiting.lesson).await;
        world.until(waiting.reminder, |row| row.revision == 1 && row.open_run.is_none()).await;
        waiting
    }

    /// Returns the number of turns that the reminder's session started after its first.
    async fn reminded(&self, world: &World) -> usize {
        world.starts().await.iter().filter(|started| started.session == self.reminder).count() - 1
    }

    async fn are_all_there(&self, world: &World) {
        for session in [self.timer, self.dispatch, self.approval, self.lesson] {
            let row = world.store().session(session).await.unwrap().unwrap();
            assert!(row.open_run.is_some() && row.status == SessionStatus::Open, "{row:?}");
        }
        assert_eq!(self.reminded(world).await, 0);
    }

    async fn are_all_over(&self, world: &World) {
        for (session, told) in [(self.timer, "t elapsed"), (self.dispatch, "d timed-out"), (self.approval, "a failed approval-expired")] {
            world.idle(session).await;
            let reply = world.last_reply(session).await;
            assert!(reply.starts_with(told), "{reply}");
        }
        let row = world.until(self.lesson, |row| row.ended_at.is_some()).await;
        assert_eq!(row.ended_reason.as_deref(), Some("expired"));
        world.until(self.reminder, |row| row.revision > 1).await;
        assert_eq!(self.reminded(world).await, 1);
    }
}

/// Waits until a new timer of one millisecond has elapsed, so that due timers have been checked.
async fn looked(world: &World) {
    assert_eq!(world.play(json!([{ "start": [{ "key": "t", "timer": 1 }] }])).await, ["t elapsed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_deadline_is_over_after_a_jump_ahead_and_each_is_when_its_time_has_passed() {
    let hands = Hands::new();
    let world = world(&hands).await;
    let waiting = Waiting::begin(&world).await;
    hands.jump(EIGHT_DAYS_MS);
    looked(&world).await;
    waiting.are_all_there(&world).await;
    hands.pass(LIMIT_MS - 60_000);
    looked(&world).await;
    waiting.are_all_there(&world).await;
    hands.pass(60_000);
    looked(&world).await;
    waiting.are_all_over(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_deadline_is_over_once_an_operator_has_confirmed_the_clock() {
    let hands = Hands::new();
    let world = world(&hands).await;
    let waiting = Waiting::begin(&world).await;
    hands.jump(EIGHT_DAYS_MS);
    looked(&world).await;
    waiting.are_all_there(&world).await;
    assert_eq!(world.broker.confirm_clock().jump, None);
    waiting.are_all_over(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_deadline_is_over_after_an_hour_in_which_the_wall_clock_kept_its_lead() {
    let hands = Hands::new();
    let world = world(&hands).await;
    let session = begin(&world, json!({ "start": [{ "key": "t", "timer": 2 * 24 * LIMIT_MS }] })).await;
    world.until(session, |row| row.open_run.is_some()).await;
    hands.jump(EIGHT_DAYS_MS);
    looked(&world).await;
    hands.pass(domain::clock::DOUBT_MS - 1_000);
    looked(&world).await;
    assert!(world.store().session(session).await.unwrap().unwrap().open_run.is_some());
    hands.pass(1_000);
    looked(&world).await;
    world.idle(session).await;
}
