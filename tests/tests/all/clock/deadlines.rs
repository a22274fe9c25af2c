//! Deadlines of what waits, of keys, and until an agent sleeps, by a clock that a test sets. The
//! real program keeps idempotency keys in [`super::jumps`].

use agent_host_tests::patience::until;
use agent_host_tests::{Setup, World};
use broker::{Clock, PathFilter, PostMessage};
use domain::clock::Reading;
use domain::event::Event;
use domain::id::SessionId;
use domain::key::{Ended, Issuer, NewKey};
use domain::queue::Directive;
use domain::residency::{IDLE_SIGNAL_MS, Residency};
use domain::time::Timestamp;
use domain::user::{Scope, UserId};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use store::{EventFilter, KeyRow, SessionStatus};

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
        Self(Arc::new(Shown {
            begun: Instant::now(),
            passed_ms: AtomicU64::new(0),
            jumped_ms: AtomicU64::new(0),
        }))
    }

    fn clock(&self) -> Clock {
        let Self(shown) = self.clone();
        Clock::of(move || {
            let passed = u64::try_from(shown.begun.elapsed().as_millis()).unwrap()
                + shown.passed_ms.load(Ordering::SeqCst);
            Reading {
                wall: Timestamp(NOON_MS + passed + shown.jumped_ms.load(Ordering::SeqCst)),
                passed_ms: passed,
            }
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

    /// The wall clock is put right.
    fn put_right(&self) {
        self.0.jumped_ms.store(0, Ordering::SeqCst);
    }
}

async fn world(hands: &Hands) -> World {
    let mut setup = Setup {
        clock: hands.clock(),
        ..Setup::default()
    };
    setup.limits.approval_ms = LIMIT_MS;
    setup.definitions[0]["confirm"] = json!(["put"]);
    setup.definitions.push(json!({
        "agentId": "leads", "displayName": "Leads", "component": "puppet",
        "sessions": { "lesson": { "timeLimitS": LIMIT_MS / 1_000 } },
        "settings": {
            "script": { "steps": [{ "start": [{ "key": "q", "client": "confirmation" }] }] },
        },
    }));
    let asks = json!([{
        "until": "all",
        "start": [{ "key": "q", "client": "confirmation" }, { "key": "a", "tool": "asks" }],
    }]);
    setup.definitions.push(json!({
        "agentId": "asks", "displayName": "Asks", "component": "puppet",
        "sessions": { "lesson": { "itemTimeLimitS": LIMIT_MS / 1_000 } },
        "settings": { "script": { "steps": asks } },
    }));
    World::new(setup).await
}

async fn begin(world: &World, step: Value) -> SessionId {
    let session = world.open("puppet").await;
    world.play_in(session, &json!([step])).await;
    session
}

/// Waits until a tool of a session's is to go on later.
async fn continued(world: &World, session: SessionId) {
    let filter = EventFilter {
        session: Some(session),
        ..EventFilter::default()
    };
    until(async || {
        let events = world.store().events(0, filter, 1_000).await.unwrap();
        events
            .iter()
            .any(|recorded| matches!(recorded.event, Some(Event::OperationContinued(_))))
    })
    .await;
}

/// A session with words that wait for their debounce. Its first turn is over.
async fn debounced(world: &World) -> SessionId {
    let session = begin(
        world,
        json!({ "start": [{ "key": "q", "client": "confirmation" }] }),
    )
    .await;
    let (call, _) = world.question("puppet", session).await;
    let Ok(Directive::Set(queue)) = format!("/queue followup debounce:{LIMIT_MS}ms").parse() else {
        panic!("no directive")
    };
    let message = PostMessage {
        queue,
        ..world.message("puppet", session, "in a while", None)
    };
    world.broker.messages().post(message).await.unwrap();
    world.confirm("puppet", call).await;
    session
}

/// Everything that waits in these tests.
struct PendingSessions {
    timer: SessionId,
    dispatch: SessionId,
    approval: SessionId,
    /// A tool that goes on later.
    later: SessionId,
    /// Questions of an agent and of a tool, each with its time.
    questions: SessionId,
    lesson: SessionId,
    reminder: SessionId,
    /// Work that nobody waits for, whose end is told.
    detached: SessionId,
    debounce: SessionId,
}

impl PendingSessions {
    async fn begin(world: &World) -> Self {
        let work =
            json!({ "steps": [{ "start": [{ "key": "t", "timer": 10 * LIMIT_MS }] }] }).to_string();
        let waiting = Self {
            timer: begin(
                world,
                json!({ "start": [{ "key": "t", "timer": LIMIT_MS }] }),
            )
            .await,
            dispatch: begin(
                world,
                json!({
                    "start": [{ "key": "d", "agent": "other", "text": work, "timeout": LIMIT_MS }],
                }),
            )
            .await,
            approval: begin(
                world,
                json!({ "start": [{ "key": "a", "tool": "put", "args": {} }] }),
            )
            .await,
            later: begin(
                world,
                json!({
                    "start": [{ "key": "l", "tool": "patient", "args": { "later": LIMIT_MS } }],
                }),
            )
            .await,
            questions: world.open_as("asks", Some("lesson")).await,
            lesson: world.open_as("leads", Some("lesson")).await,
            reminder: begin(
                world,
                json!({
                    "effects": [{ "schedule": LIMIT_MS }], "start": [{ "key": "z", "timer": 1 }],
                }),
            )
            .await,
            detached: begin(
                world,
                json!({
                    "start": [{
                        "key": "d", "agent": "other", "text": work, "timeout": LIMIT_MS,
                        "detached": true,
                    }],
                }),
            )
            .await,
            debounce: debounced(world).await,
        };
        for session in [waiting.timer, waiting.dispatch] {
            world.until(session, |row| row.open_run.is_some()).await;
        }
        world.question("puppet", waiting.approval).await;
        world.question("leads", waiting.lesson).await;
        for session in [waiting.later, waiting.questions] {
            continued(world, session).await;
        }
        for session in waiting.with_another_turn() {
            world
                .until(session, |row| row.revision == 1 && row.open_run.is_none())
                .await;
        }
        waiting
    }

    /// The sessions in which another turn begins when their time is over.
    fn with_another_turn(&self) -> [SessionId; 3] {
        [self.reminder, self.detached, self.debounce]
    }

    async fn are_all_there(&self, world: &World) {
        for session in [
            self.timer,
            self.dispatch,
            self.approval,
            self.later,
            self.questions,
            self.lesson,
        ] {
            let row = world.row(session).await;
            assert!(
                row.open_run.is_some() && row.status == SessionStatus::Open,
                "{row:?}"
            );
        }
        for session in self.with_another_turn() {
            assert_eq!(turns(world, session).await, 1);
        }
    }

    async fn are_all_over(&self, world: &World) {
        for (session, reported) in [
            (self.timer, "t elapsed"),
            (self.dispatch, "d timed-out"),
            (self.approval, "a failed approval-expired"),
            (self.later, "l parts waited"),
            (self.questions, "q timed-out"),
            (self.questions, "a timed-out"),
        ] {
            world.idle(session).await;
            let reply = world.last_reply(session).await;
            assert!(
                reply.lines().any(|line| line.starts_with(reported)),
                "{reported}: {reply}"
            );
        }
        let row = world.until(self.lesson, |row| row.ended_at.is_some()).await;
        assert_eq!(row.ended_reason.as_deref(), Some("expired"));
        for session in self.with_another_turn() {
            world.until(session, |row| row.revision > 1).await;
            assert_eq!(turns(world, session).await, 2);
        }
    }
}

/// Returns the number of turns that began in a session.
async fn turns(world: &World, session: SessionId) -> usize {
    world
        .starts()
        .await
        .iter()
        .filter(|started| started.session == session)
        .count()
}

/// Waits until a new timer of one millisecond has elapsed, so that due timers have been checked.
async fn inspected(world: &World) {
    assert_eq!(
        world
            .play(json!([{ "start": [{ "key": "t", "timer": 1 }] }]))
            .await,
        ["t elapsed"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_deadline_is_over_after_a_jump_ahead_and_each_is_when_its_time_has_passed() {
    let hands = Hands::new();
    let world = world(&hands).await;
    let waiting = PendingSessions::begin(&world).await;
    hands.jump(EIGHT_DAYS_MS);
    inspected(&world).await;
    waiting.are_all_there(&world).await;
    hands.pass(LIMIT_MS - 60_000);
    inspected(&world).await;
    waiting.are_all_there(&world).await;
    hands.pass(60_000);
    inspected(&world).await;
    waiting.are_all_over(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_deadline_is_over_once_an_operator_has_confirmed_the_clock() {
    let hands = Hands::new();
    let world = world(&hands).await;
    let waiting = PendingSessions::begin(&world).await;
    hands.jump(EIGHT_DAYS_MS);
    inspected(&world).await;
    waiting.are_all_there(&world).await;
    assert_eq!(world.broker.confirm_clock().await.jump, None);
    waiting.are_all_over(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_deadline_is_over_after_an_hour_in_which_the_wall_clock_kept_its_lead() {
    let hands = Hands::new();
    let world = world(&hands).await;
    let session = begin(
        &world,
        json!({ "start": [{ "key": "t", "timer": 2 * 24 * LIMIT_MS }] }),
    )
    .await;
    world.until(session, |row| row.open_run.is_some()).await;
    hands.jump(EIGHT_DAYS_MS);
    inspected(&world).await;
    hands.pass(domain::clock::DOUBT_MS - 1_000);
    inspected(&world).await;
    assert!(world.row(session).await.open_run.is_some());
    hands.pass(1_000);
    inspected(&world).await;
    world.idle(session).await;
}

/// A key of the operator's that is good for as long as everything in these tests.
async fn key(world: &World) -> KeyRow {
    let issuer = Issuer {
        user: UserId::local(),
        scopes: Scope::ALL.into(),
        key: None,
    };
    let asked = NewKey {
        user: UserId::local(),
        name: String::new(),
        scopes: [Scope::Read].into(),
        lifetime_s: Some(LIMIT_MS / 1_000),
    };
    world
        .broker
        .keys()
        .issue(&issuer, asked, None)
        .await
        .unwrap()
        .row
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_ends_by_the_later_clock_until_an_operator_confirms_the_other() {
    let hands = Hands::new();
    let world = world(&hands).await;
    let ended = |row: &KeyRow| row.ended(world.broker.clock().for_credentials());
    let first = key(&world).await;
    hands.pass(LIMIT_MS - 60_000);
    assert_eq!(ended(&first), None);
    hands.pass(60_000);
    assert_eq!(ended(&first), Some(Ended::Expired));

    // A jump ahead that nobody has confirmed ends it as long as the clock shows that.
    let second = key(&world).await;
    hands.jump(EIGHT_DAYS_MS);
    assert_eq!(ended(&second), Some(Ended::Expired));
    hands.put_right();
    assert_eq!(ended(&second), None);
    // One that was confirmed is the host's time, and the clock that was put right has to be
    // confirmed too.
    hands.jump(EIGHT_DAYS_MS);
    assert_eq!(world.broker.confirm_clock().await.credentials, None);
    hands.put_right();
    let before = world.broker.clock().now();
    assert_eq!(ended(&second), Some(Ended::Expired));
    assert!(world.broker.confirm_clock().await.credentials.is_some());
    assert_eq!(ended(&second), None);
    assert!(
        world.broker.clock().now() >= before,
        "the host's time never goes back"
    );
    let third = key(&world).await;
    assert_eq!(ended(&third), None);
    hands.pass(LIMIT_MS);
    assert_eq!([ended(&second), ended(&third)], [Some(Ended::Expired); 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_sleeps_when_its_time_has_passed_and_not_after_a_jump() {
    let hands = Hands::new();
    let world = world(&hands).await;
    inspected(&world).await;
    let residency = async || {
        let (entries, _) = world
            .broker
            .paths()
            .list(&UserId::local(), &PathFilter::default(), None, 10)
            .await
            .unwrap();
        entries
            .iter()
            .map(|entry| entry.residency)
            .collect::<Vec<_>>()
    };
    hands.jump(EIGHT_DAYS_MS);
    assert_eq!(residency().await, [Residency::Active]);
    hands.pass(IDLE_SIGNAL_MS);
    assert_eq!(residency().await, [Residency::Sleeping]);
}
