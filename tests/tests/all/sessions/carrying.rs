//! Sessions as files: out of one host and into another, to the byte; and the same things on the
//! command line.
//!
//! Commands on sessions and turns of which there are more than one request deals with.

use super::{Stage, stage};
use agent_host_tests::process::{Line, Reply, shows};
use agent_host_tests::world::target;
use agent_host_tests::{Setup, World};
use broker::{By, NewSession, PostMessage, Target};
use domain::authority::{Denies, Permissions};
use domain::digest::Salt;
use domain::event::{Event, InputAccepted, NewEvent, RunStarted, SessionOpened, Source, Subject};
use domain::id::{AgentId, ConversationId, EventId, InputId, RunId, SessionId, Stream};
use domain::role::AgentRole;
use domain::time::Timestamp;
use domain::user::UserId;
use reqwest::Method;
use serde_json::{Value, json};
use store::{Commit, Expected, SessionStatus};
use uuid::Uuid;

impl Stage {
    async fn export(&self, agent: &str, session: &str, dialect: &str) -> Vec<u8> {
        let path = format!("{agent}/sessions/{session}/export?dialect={dialect}");
        let response = self.host.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200, "{path}");
        assert_eq!(response.headers()["content-type"], "application/jsonl");
        response.bytes().await.unwrap().to_vec()
    }

    #[track_caller]
    fn import(&self, agent: &str, file: Vec<u8>) -> Reply {
        self.host.send(
            self.host
                .request(Method::POST, &format!("{agent}/sessions/import"))
                .body(file),
        )
    }

    /// An agent of the operator's own.
    async fn own_agent(&self) -> String {
        let made = self
            .host
            .post("/api/agents", &json!({ "definition": "puppet" }))
            .gives(201)
            .await;
        format!("/api/agents/{}", made.text("id"))
    }

    /// The operator's, and a session in which several things were said, with a branch.
    async fn story(&mut self) -> (Line, String, String) {
        let line = self.host.line();
        self.agent = self.own_agent().await;
        let session = self.open(&line).await;
        let first = self.say(&line, &session, "one").await;
        self.say(&line, &session, "two").await;
        line.patch(&self.path(&session), &json!({ "name": "carried" }))
            .await;
        let forked = line
            .post(
                &format!("{}/fork", self.path(&session)),
                &json!({ "turn_id": first }),
            )
            .await
            .text("session_id");
        self.say(&line, &forked, "aside").await;
        (line, session, forked)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_exported_and_imported_into_a_fresh_host_is_exported_as_the_same_bytes() {
    let mut old = stage().await;
    let (_, session, _) = old.story().await;
    for dialect in ["pi", "aix"] {
        let file = old.export(&old.agent, &session, dialect).await;
        let text = String::from_utf8(file.clone()).unwrap();
        assert_eq!(
            text.contains("aside"),
            dialect == "pi",
            "pi's has the tree, aix's the thread: {text}"
        );
        let new = stage().await;
        let agent = new.own_agent().await;
        let imported = new.import(&agent, file.clone()).gives(201).await;
        assert_eq!(
            (
                imported.text("session_id"),
                imported.text("dialect").as_str()
            ),
            (session.clone(), dialect)
        );
        shows(&imported.body, &json!({ "exact": true, "known": 0 }));
        assert!(
            new.export(&agent, &session, dialect).await == file,
            "{dialect}: other bytes came out again"
        );
        // It goes on there, and a second import finds all of it there already.
        let line = new.host.line();
        let there = Stage {
            agent: agent.clone(),
            ..new
        };
        let seen = line.get(&there.path(&session)).await.body;
        let messages = seen["messages"].as_array().unwrap();
        assert!(
            !messages.is_empty() && messages.iter().all(|it| it["untrusted"] == true),
            "{dialect}: anybody can write a file that fits together: {seen}"
        );
        there.say(&line, &session, "three").await;
        let again = there.import(&agent, file.clone()).await;
        again.has(201, &json!({ "turns": 0 }));
        assert_ne!(again.text("session_id"), session, "its id is taken");
        assert!(
            !there.found(&line, "two").await.is_empty(),
            "what came in is found"
        );
        assert_eq!(
            there
                .host
                .post("/api/verifications", &json!(null))
                .await
                .body["intact"],
            true
        );
        there
            .host
            .post("/api/rebuilds", &json!(null))
            .gives(202)
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_another_program_is_adopted_and_one_that_was_changed_is_refused() {
    let mut stage = stage().await;
    let (line, session, _) = stage.story().await;
    let foreign = [
        json!({
            "type": "session", "version": 3, "id": "11111111-2222-4333-8444-555555555555",
            "timestamp": "2025-12-15T09:30:00.000Z", "cwd": "/x",
        }),
        json!({
            "type": "message", "id": "a1", "parentId": null,
            "timestamp": "2025-12-15T09:30:01.000Z",
            "message": { "role": "user", "content": "okapi?", "timestamp": 1_765_791_001_000_u64 },
        }),
        json!({
            "type": "message", "id": "a2", "parentId": "a1",
            "timestamp": "2025-12-15T09:30:02.000Z",
            "message": {
                "role": "assistant", "content": [{ "type": "text", "text": "an okapi" }],
                "stopReason": "stop",
                "timestamp": 1_765_791_002_000_u64,
            },
        }),
    ];
    let mut lines = foreign.map(|line| line.to_string()).to_vec();
    lines.insert(2, "{ nonsense".to_owned());
    let file = lines.join("\n").into_bytes();
    for _ in 0..2 {
        // Twice the same file gives turns of its own each time: nobody can say that they are the
        // same.
        let imported = stage.import(&stage.agent, file.clone()).await;
        imported.has(201, &json!({ "exact": false, "turns": 1 }));
        let passed_over = imported.body["passed_over"].as_array().unwrap();
        assert_eq!(passed_over.len(), 1, "{imported:?}");
        let reported = passed_over[0].as_str().unwrap();
        assert!(reported.starts_with("line 3: it is not JSON"), "{reported}");
        let seen = line
            .get(&stage.path(&imported.text("session_id")))
            .await
            .body;
        assert!(
            seen["messages"]
                .as_array()
                .unwrap()
                .iter()
                .all(|message| message["untrusted"] == true),
            "{seen}"
        );
        assert_eq!(seen["last_snippet"], "an okapi");
        stage
            .say(&line, &imported.text("session_id"), "goes on")
            .await;
    }
    let events = stage.host.get("/api/events?limit=1").await.body["last_position"].clone();
    let exact = String::from_utf8(stage.export(&stage.agent, &session, "pi").await).unwrap();
    for bad in [
        "",
        "nonsense",
        "{}",
        &exact.replace("two", "too"),
        &exact[..exact.len() / 2],
    ] {
        stage
            .import(&stage.agent, bad.as_bytes().to_vec())
            .refused(422, "INVALID")
            .await;
    }
    // The same turns, with a file that claims that they cost less.
    let cheap = exact.replace("\"input_tokens\":", "\"input_tokens\":1");
    if cheap != exact {
        let answer = stage.import(&stage.agent, cheap.into_bytes()).await;
        assert!([409, 422].contains(&answer.status), "{answer:?}");
    }
    assert_eq!(
        stage.host.get("/api/events?limit=1").await.body["last_position"],
        events,
        "nothing of them was taken"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_drawn_compared_carried_and_searched_on_the_command_line() {
    let mut stage = stage().await;
    let (_, session, forked) = stage.story().await;
    let run = async |arguments: &[&str]| {
        let output = stage.folder.run(arguments).await;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{arguments:?}: {said} {}",
            String::from_utf8_lossy(&output.stderr)
        );
        said
    };
    let tree = run(&["session", "tree", &session]).await;
    assert!(
        tree.lines().count() == 3
            && tree.contains("\n  ")
            && tree.contains(&format!("*{session} \"carried\"")),
        "{tree}"
    );
    let json: Value =
        serde_json::from_str(&run(&["session", "tree", &session, "--json"]).await).unwrap();
    assert_eq!(json["turns"].as_array().unwrap().len(), 3);
    let diff = run(&["session", "diff", &session, &forked]).await;
    assert!(
        diff.starts_with("in common up to turn ")
            && diff.contains("-   assistant: two")
            && diff.contains("+   assistant: aside"),
        "{diff}"
    );
    let file = stage.folder.path().join("session.jsonl");
    std::fs::write(
        &file,
        run(&["session", "export", &session, "--dialect", "aix"]).await,
    )
    .unwrap();
    let agent = stage.agent.rsplit('/').next().unwrap();
    let file = file.to_str().unwrap();
    // A definition stands for the user's agent of it.
    for agent in [agent, "puppet"] {
        let imported = run(&["session", "import", file, "--agent", agent]).await;
        assert!(
            imported.contains("0 turns came in, 2 were here before"),
            "{agent}: {imported}"
        );
    }
    let found = run(&["session", "search", "aside", "nothing"]).await;
    assert!(
        found.lines().all(|line| line.starts_with(&forked)) && found.contains("aside"),
        "{found}"
    );
}

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
    let (world, session) = World::with_puppet().await;
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
    let row = world.row(session).await;
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
