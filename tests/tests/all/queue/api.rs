//! The queue over HTTP: settings, receipts, what waits, taking back, and a queue that is full.
//!
//! Several users in one session: each turn acts for one of them.

use agent_host_tests::patience::until;
use agent_host_tests::process::{Folder, Host, Session, acting, puppets, shows};
use agent_host_tests::{Setup, World};
use broker::{By, PostMessage, Target};
use domain::event::Event;
use domain::id::{InputId, SessionId};
use domain::role::AgentRole;
use domain::user::UserId;
use reqwest::Method;
use serde_json::{Value, json};

fn config() -> Value {
    let steps = json!([{ "start": [{ "key": "q", "client": "confirmation" }] }]);
    let mut config = puppets(&json!([acting("asks", &steps)]));
    config["queue"] = json!({ "mode": "followup", "debounce": "1h", "cap": 5, "drop": "new" });
    config
}

/// A host with a chat that waits for an answer, and that chat's path.
async fn stage() -> (Folder, Host, Session) {
    let (folder, host) = Folder::serving(config(), &["puppet"]).await;
    let session = host.open_as("asks", "chat").await;
    host.say(&session, "begin").await;
    until(async || host.get(&session).await.body["pending_action"].is_object()).await;
    (folder, host, session)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_set_looked_at_filled_and_emptied_over_http_and_from_the_command_line() {
    let (folder, host, session) = stage().await;
    let say = |body: Value| host.post(&format!("{session}/messages"), &body);
    let inputs = async || host.get(&format!("{session}/inputs")).await.body;

    // As the host is configured, then as the session says, then as the message says.
    assert_eq!(
        inputs().await["queue"]["settings"],
        json!({ "mode": "followup", "debounce_ms": 3_600_000, "cap": 5, "drop": "new" })
    );
    let put = host
        .request(Method::PUT, &format!("{session}/queue"))
        .json(&json!({ "mode": "coalesce", "cap": 2 }));
    let set = host.send(put).await;
    assert_eq!(
        set.body["settings"],
        json!({ "mode": "collect", "debounce_ms": 3_600_000, "cap": 2, "drop": "new" })
    );
    let first = say(json!({ "content": "first thing", "priority": "high" })).await;
    first.has(202, &json!({ "waits_for": "collect" }));
    let second =
        say(json!({ "content": "second", "queue": { "mode": "follow-up", "debounce_ms": "2h" } }))
            .await;
    second.has(202, &json!({ "waits_for": "followup" }));

    // Full: refused with a code and a time, or something is dropped for it.
    let full = host
        .request(Method::POST, &format!("{session}/messages"))
        .json(&json!({ "content": "third" }))
        .send()
        .await
        .unwrap();
    assert_eq!(
        (
            full.status().as_u16(),
            full.headers().get("retry-after").is_some()
        ),
        (429, true)
    );
    let problem: Value = full.json().await.unwrap();
    shows(
        &problem,
        &json!({ "code": "QUEUE_FULL", "field": "/queue" }),
    );
    let third = say(json!({ "content": "third", "queue": { "drop": "oldest" } })).await;
    third.has(202, &json!({ "dropped": [first.text("input_id")] }));

    let waiting = inputs().await;
    let shown: Vec<(&Value, &Value)> = waiting["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|input| (&input["excerpt"], &input["waits_for"]))
        .collect();
    assert_eq!(
        shown,
        [
            (&json!("second"), &json!("followup")),
            (&json!("third"), &json!("collect"))
        ]
    );
    assert_eq!(
        (&waiting["dropped"], waiting["run_id"].is_string()),
        (&json!(1), true)
    );
    let dropped = host
        .get(&format!("{session}/inputs/{}", first.text("input_id")))
        .await
        .body;
    shows(&dropped, &json!({ "state": "dropped", "priority": "high" }));

    let directive = say(json!({ "content": "/queue steer" })).await;
    assert_eq!(
        (
            directive.status,
            &directive.body["queue"]["settings"]["mode"]
        ),
        (202, &json!("steer"))
    );
    assert!(directive.body.get("input_id").is_none(), "{directive:?}");
    let reset = host.delete(&format!("{session}/queue")).await;
    shows(
        &reset.body,
        &json!({ "settings/mode": "followup", "session": {} }),
    );

    let id = session.rsplit('/').next().unwrap().to_owned();
    let listed = folder.run(&["session", "inputs", &id]).await;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(listed.lines().count(), 2, "{listed}");
    folder
        .succeeds(&[
            "session",
            "cancel",
            &id,
            "--input",
            &second.text("input_id"),
        ])
        .await;
    host.delete(&format!("{session}/inputs/{}", second.text("input_id")))
        .refused(409, "INPUT_NOT_WAITING")
        .await;
    let cancelled = host
        .post(&format!("{session}/cancel"), &json!({ "waiting": true }))
        .await;
    assert_eq!(
        cancelled.body,
        json!({ "cancelled": true, "input_ids": [third.text("input_id")] })
    );
    let empty = inputs().await;
    shows(&empty, &json!({ "inputs": [], "run_id": null }));
}

/// A mentee of the local user's agent, in a session of their own. Until its question is answered,
/// the agent hears messages in it or does not.
struct Lesson {
    world: World,
    mentee: UserId,
    agent: Target,
    session: SessionId,
}

impl Lesson {
    async fn begins(hear: bool) -> Self {
        let world = World::new(Setup::default()).await;
        let own = world.open("puppet").await;
        let agent = Target::Agent(world.row(own).await.agent);
        let mentee: UserId = "mona".parse().unwrap();
        world
            .broker
            .agents()
            .assign(
                By::from(&UserId::local()),
                &agent,
                mentee.clone(),
                AgentRole::Mentee,
            )
            .await
            .unwrap();
        let opened = broker::NewSession::of(agent.clone(), mentee.clone());
        let session = world.broker.sessions().open(opened).await.unwrap().row.id;
        let lesson = Self {
            world,
            mentee,
            agent,
            session,
        };
        let mut steps = vec![json!({
            "start": [{ "key": "q", "client": "confirmation" }], "hear": hear, "until": "all",
        })];
        if hear {
            // What it hears is one step, after which it waits on.
            steps.push(json!({ "until": "all" }));
        }
        let steps = json!({ "steps": steps });
        lesson.says(&lesson.mentee, &steps.to_string()).await;
        lesson.world.question("puppet", session).await;
        lesson
    }

    async fn says(&self, user: &UserId, text: &str) -> InputId {
        let message = PostMessage {
            target: self.agent.clone(),
            user: user.clone(),
            ..self.world.message("puppet", self.session, text, None)
        };
        self.world
            .broker
            .messages()
            .post(message)
            .await
            .unwrap()
            .input
    }

    async fn ends(&self) {
        let (call, _) = self.world.question("puppet", self.session).await;
        self.world.confirm("puppet", call).await;
        self.world.idle(self.session).await;
    }

    /// Returns the user and the first inputs of each turn but the first, and the inputs that joined
    /// a turn that was open.
    async fn turns(&self) -> (Vec<(UserId, Vec<InputId>)>, Vec<InputId>) {
        let mut turns = Vec::new();
        let mut joined = Vec::new();
        for event in self.world.events().await {
            match event {
                Event::RunStarted(started) => turns.push((started.user_id, started.claimed)),
                Event::RunStepped(stepped) => joined.extend(stepped.claimed),
                _ => {}
            }
        }
        turns.remove(0);
        (turns, joined)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_user_says_meanwhile_has_a_turn_of_its_own_with_their_own_rights() {
    for hears in [true, false] {
        let lesson = Lesson::begins(hears).await;
        let mentee = &lesson.mentee;
        let primary = UserId::local();
        let first = lesson.says(mentee, "one").await;
        let others = [
            lesson.says(&primary, "two").await,
            lesson.says(&primary, "three").await,
        ];
        let last = lesson.says(mentee, "four").await;
        lesson.ends().await;
        let (turns, joined) = lesson.turns().await;
        // At the latest when the turn would end.
        assert_eq!(joined, [first, last], "{hears}");
        assert_eq!(turns, [(primary, others.to_vec())], "{hears}");
    }
}
