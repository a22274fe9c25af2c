//! Commands on sessions and turns of which there are more than one request deals with.

use agent_host_tests::world::target;
use agent_host_tests::{Setup, World};
use broker::By;
use broker::{NewSession, PostMessage, Target};
use domain::authority::{Denies, Permissions};
use domain::digest::Salt;
use domain::event::{Event, InputAccepted, NewEvent, RunStarted, SessionOpened, Source, Subject};
use domain::id::{AgentId, ConversationId, EventId, InputId, RunId, SessionId, Stream};
use domain::role::AgentRole;
use domain::time::Timestamp;
use domain::user::UserId;
use serde_json::json;
use store::{Commit, Expected, SessionStatus};
use uuid::Uuid;

/// Number of a session's inputs that one inspection of its queue reads, and of turns that one
/// request stops.
const LIMIT: u128 = 1_000;
/// The start of the year 2100.
const LATER: Timestamp = Timestamp(4_102_444_800_000);

fn stored(event: Event, subject: Subject) -> NewEvent {
    NewEvent {
        id: EventId(Uuid::now_v7()),
        event,
        subject,
        actor: "host".into(),
        causation: None,
        correlation: None,
        time: Timestamp(1),
        salt: Salt::default(),
    }
}

fn about(session: SessionId) -> Subject {
    Subject {
        session: Some(session),
        ..Subject::default()
    }
}

/// Returns a reminder that an agent has set itself in a session.
fn reminder(session: SessionId) -> Event {
    let source = Source::Reminder {
        due: LATER,
        depth: 0,
        spawn_depth: 0,
        hops: 0,
        denies: Denies::default(),
        permissions: Permissions::default(),
        accounts: Default::default(),
        deadline: None,
    };
    Event::InputAccepted(InputAccepted {
        user_id: UserId::local(),
        ..InputAccepted::of(session, InputId(Uuid::now_v7()), source, Timestamp(1))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_deleted_however_many_inputs_wait_in_it() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let reminders: Vec<NewEvent> = (0..=LIMIT)
        .map(|_| stored(reminder(session), about(session)))
        .collect();
    let waiting = reminders.len();
    let commit = Commit::new().append(Stream::Session(session), Expected::Any, reminders);
    world.store().commit(commit).await.unwrap();
    world
        .broker
        .sessions()
        .delete(By::from(&UserId::local()), &target("puppet"), session)
        .await
        .unwrap();
    let row = world.store().session(session).await.unwrap().unwrap();
    assert_eq!(row.status, SessionStatus::Deleted);
    let dead = world.store().dead_inputs(None, waiting * 2).await.unwrap();
    assert_eq!(dead.len(), waiting);
}

/// Returns the commit of sessions with an open turn each, like that of another session. They come
/// before it in the order of their ids.
fn turns_of(user: &UserId, agent: AgentId, like: &RunStarted) -> Commit {
    let mut commit = Commit::new();
    for number in 1..=LIMIT {
        let run = RunId(Uuid::from_u128(number));
        let session = SessionId(Uuid::from_u128(number));
        let opened = Event::SessionOpened(SessionOpened::chat(
            agent,
            session,
            ConversationId(Uuid::from_u128(number)),
            user.clone(),
            Timestamp(1),
        ));
        let started = Event::RunStarted(Box::new(RunStarted {
            run,
            session,
            user_id: user.clone(),
            claimed: Vec::new(),
            deadline: None,
            ..like.clone()
        }));
        let subject = Subject {
            agent: Some(agent),
            ..about(session)
        };
        let opening = vec![stored(opened, subject)];
        let starting = vec![stored(started, subject)];
        commit = commit
            .append(Stream::Session(session), Expected::New, opening)
            .append(Stream::Run(run), Expected::New, starting);
    }
    commit
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_of_other_users_do_not_keep_ones_own_from_being_stopped() {
    let world = World::new(Setup::default()).await;
    world.create("puppet").await;
    let me = UserId::local();
    let bob: UserId = "bob".parse().unwrap();
    let agent = world
        .broker
        .agents()
        .id(&me, &target("puppet"))
        .await
        .unwrap();
    world
        .broker
        .agents()
        .assign(
            By::from(&me),
            &target("puppet"),
            bob.clone(),
            AgentRole::Mentee,
        )
        .await
        .unwrap();
    let opened = world
        .broker
        .sessions()
        .open(NewSession::of(Target::Agent(agent), bob.clone()))
        .await;
    let session = opened.unwrap().row.id;
    let waits = json!({ "steps": [{ "start": [{ "key": "t", "timer": 3_600_000 }] }] }).to_string();
    let message = PostMessage {
        target: Target::Agent(agent),
        user: bob.clone(),
        ..world.message("puppet", session, &waits, None)
    };
    world.broker.messages().post(message).await.unwrap();
    world.until(session, |row| row.open_run.is_some()).await;
    let started = world.starts().await.pop().unwrap();
    let others = turns_of(&me, agent, &started);
    world.store().commit(others).await.unwrap();
    let stopped = world
        .broker
        .paths()
        .cancel_all(By::from(&bob), &Target::Agent(agent), None)
        .await
        .unwrap();
    assert_eq!(stopped, 1);
    world.until(session, |row| row.open_run.is_none()).await;
}
