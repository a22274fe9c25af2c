//! Calls that a user has to agree to first: the host's own question, bound to exactly one call, and
//! to a user's answer alone.
use agent_host_tests::patience::{found, until};
use agent_host_tests::process::{
    Folder, Host, Line, PATIENCE, Session, effects, puppet, scripted, shows, tells,
};
use agent_host_tests::{Setup, World};
use broker::{Respond, Target};
use domain::approval::WIDGET;
use domain::event::Event;
use domain::grant::Grant;
use domain::id::{OperationId, SessionId};
use domain::ruling::{Rule, TOOL_CALL};
use domain::user::UserId;
use serde_json::{Value, json};
use std::time::Duration;

/// A setup whose first agent asks about these tools.
fn asking(confirm: Value) -> Setup {
    let mut setup = Setup::default();
    setup.definitions[0]["confirm"] = confirm;
    setup
}

fn call(key: &str, tool: &str, arguments: &Value) -> Value {
    json!({ "start": [{ "key": key, "tool": tool, "args": arguments }] })
}

/// Begins a turn, and waits for the host's question about a call.
async fn asked(world: &World, steps: Value) -> (SessionId, OperationId, Value) {
    let session = world.open("puppet").await;
    world.play_in(session, &steps).await;
    let (question, action) = world.question("puppet", session).await;
    assert_eq!(action.widget, WIDGET);
    (session, question, action.props)
}

fn answer(props: &Value, approve: bool) -> Value {
    json!({ "approve": approve, "call": props["call"] })
}

/// Returns for each answer to such a question whether it agreed, and who gave it.
async fn answers(world: &World) -> Vec<(bool, String)> {
    let answers = world
        .events()
        .await
        .into_iter()
        .filter_map(|event| match event {
            Event::ApprovalAnswered(answered) => Some((answered.approved, answered.by.to_string())),
            _ => None,
        });
    answers.collect()
}

fn code(answered: Result<u64, broker::Error>) -> &'static str {
    match answered {
        Err(broker::Error::Refused(refusal)) => refusal.code.as_str(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_made_once_when_a_user_has_agreed_to_it_also_after_a_restart() {
    let world = World::new(asking(json!(["put"]))).await;
    let (session, question, props) =
        asked(&world, json!([call("t", "put", &json!({ "sleep": 1 }))])).await;
    // The question says exactly what would be done, and nothing of it is done.
    shows(
        &props,
        &json!({ "tool": "put", "arguments": { "sleep": 1 }, "component": "effects" }),
    );
    assert_eq!(world.effects(), Vec::<String>::new());
    let world = world.restart(|_| {}).await;
    let (again, _) = world.question("puppet", session).await;
    assert_eq!(
        (again, world.effects()),
        (question, Vec::new()),
        "it is still the same question"
    );
    // Nothing but the very call is agreed to.
    let other = json!({ "approve": true, "call": "12".repeat(32) });
    assert_eq!(
        code(world.answer("puppet", question, other).await),
        "INVALID_RESPONSE"
    );
    assert_eq!(
        code(world.answer("puppet", question, json!(true)).await),
        "INVALID_RESPONSE"
    );
    world
        .answer("puppet", question, answer(&props, true))
        .await
        .unwrap();
    world.replies(session, "t parts put done").await;
    // An answer that is sent again does nothing.
    assert_eq!(
        code(world.answer("puppet", question, answer(&props, true)).await),
        "NOT_SUSPENDED"
    );
    assert_eq!(
        world.effects().len(),
        2,
        "one beginning and one end: {:?}",
        world.effects()
    );
    assert_eq!(answers(&world).await, [(true, "local".to_owned())]);
    // It is used up in the commit that says that the call is about to be sent, whatever the tool
    // says of being called again.
    let started = world
        .events()
        .await
        .iter()
        .filter(|event| matches!(event, Event::OperationStarted(_)))
        .count();
    assert_eq!(started, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_call_again_and_one_with_other_arguments_are_asked_about_again() {
    let world = World::new(asking(json!(["put"]))).await;
    let steps = json!([
        call("a", "put", &json!({})),
        call("b", "put", &json!({})),
        call("c", "put", &json!({ "sleep": 1 }))
    ]);
    let (session, first, mut props) = asked(&world, steps).await;
    let mut question = first;
    let mut seen = vec![first];
    for approve in [true, true, false] {
        let calls = world.effects().len();
        world
            .answer("puppet", question, answer(&props, approve))
            .await
            .unwrap();
        if !approve {
            break;
        }
        let (next, next_props) = found(async || {
            let (next, action) = world.question("puppet", session).await;
            (next != question).then_some((next, action.props))
        })
        .await;
        assert!(!seen.contains(&next) && next_props["call"] != props["call"]);
        assert_eq!(world.effects().len(), calls + 2);
        // The agreement to the one before is none to this one.
        assert_eq!(
            code(world.answer("puppet", next, answer(&props, true)).await),
            "INVALID_RESPONSE"
        );
        seen.push(next);
        question = next;
        props = next_props;
    }
    world.idle(session).await;
    let reply = world.last_reply(session).await;
    tells(
        &reply,
        &["a parts put done\nb parts put done\nc failed approval-denied"],
    );
    assert_eq!(world.effects().len(), 4);
}

/// Lets a question expire. The call has failed then, and every later answer is refused.
async fn expired(limit: Duration, away: Option<Duration>) {
    let mut setup = asking(json!(["put"]));
    setup.limits.approval_ms = limit.as_millis().try_into().unwrap();
    let mut world = World::new(setup).await;
    let (session, question, props) = asked(&world, json!([call("t", "put", &json!({}))])).await;
    if let Some(away) = away {
        world = world.restart(|_| std::thread::sleep(away)).await;
    }
    world.idle(session).await;
    let reply = world.last_reply(session).await;
    assert!(reply.starts_with("t failed approval-expired"), "{reply}");
    let late = world.answer("puppet", question, answer(&props, true)).await;
    assert_eq!(code(late), "NOT_SUSPENDED");
    assert_eq!((world.effects(), answers(&world).await), (vec![], vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_agrees_in_time_and_the_call_has_failed() {
    expired(Duration::from_secs(5), None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_agrees_while_the_host_is_down_and_the_call_has_failed() {
    let limit = Duration::from_secs(5);
    expired(limit, Some(limit)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_destroys_is_asked_about_by_definition_or_grant_and_nothing_else_is() {
    let by_grant: fn(&str, &mut Grant) = |name, grant| {
        if name == "files" {
            grant.confirm = serde_json::from_value(json!("destructive")).unwrap();
        }
    };
    for setup in [
        asking(json!("destructive")),
        Setup {
            change_grant: by_grant,
            ..Setup::default()
        },
    ] {
        let world = World::new(setup).await;
        let file = world.dir.path().join("files/a.txt");
        let write = call(
            "w",
            "write_file",
            &json!({ "path": "a.txt", "content": "x" }),
        );
        assert_eq!(world.play(json!([write])).await.len(), 1);
        assert!(file.exists(), "what only writes is not asked about");
        let (session, question, props) = asked(
            &world,
            json!([call("d", "delete_file", &json!({ "path": "a.txt" }))]),
        )
        .await;
        assert!(file.exists());
        world
            .answer("puppet", question, answer(&props, true))
            .await
            .unwrap();
        world.idle(session).await;
        assert!(!file.exists());
    }
}

/// The grant of the tools with effects, of which `put` and `asks` need an approval.
fn effects_confirmed(name: &str, grant: &mut Grant) {
    if name == "effects" {
        grant.confirm = serde_json::from_value(json!(["put", "asks"])).unwrap();
    }
}

fn begins(world: &World) -> usize {
    let effects = world.effects();
    effects
        .iter()
        .filter(|line| line.contains(" begin "))
        .count()
}

/// The number of calls that were refused because a user has to agree to them.
async fn refusals(world: &World) -> usize {
    let ledger = world.ledger().await;
    ledger
        .iter()
        .flat_map(|entry| &entry.decisions)
        .filter(|decision| decision.rule == Rule::Approval && decision.capability == TOOL_CALL)
        .count()
}

/// Restarts the host with other settings in the middle of a call that is made again after a
/// restart. The call fails, and the next one is asked about.
async fn comes_to_need_approval(change: fn(&mut Setup)) {
    let (world, session) = World::with_puppet().await;
    let steps = [
        call("a", "put", &json!({ "sleep": 700 })),
        call("b", "put", &json!({})),
    ];
    world.play_in(session, &json!(steps)).await;
    until(async || !world.effects().is_empty()).await;
    let world = world.restart(change).await;
    let (question, action) = world.question("puppet", session).await;
    assert_eq!(action.widget, WIDGET);
    assert_eq!((begins(&world), refusals(&world).await), (1, 1));
    world
        .answer("puppet", question, answer(&action.props, true))
        .await
        .unwrap();
    world.idle(session).await;
    let reply = world.last_reply(session).await;
    assert!(
        reply.starts_with("a failed approval-denied") && reply.ends_with("b parts put done"),
        "{reply}"
    );
    assert_eq!((begins(&world), refusals(&world).await), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_needs_an_approval_only_after_a_restart_is_not_made_without_one() {
    comes_to_need_approval(|setup| setup.change_grant = effects_confirmed).await;
    comes_to_need_approval(|setup| setup.definitions[0]["confirm"] = json!(["put"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_came_to_need_an_approval_while_it_asked_does_not_go_on() {
    let (world, session) = World::with_puppet().await;
    let steps = json!([call("t", "asks", &json!({}))]);
    world.play_in(session, &steps).await;
    let (question, _) = world.question("puppet", session).await;
    let world = world
        .restart(|setup| setup.change_grant = effects_confirmed)
        .await;
    world.answer("puppet", question, json!(true)).await.unwrap();
    world.idle(session).await;
    let reply = world.last_reply(session).await;
    assert!(reply.starts_with("t failed approval-denied"), "{reply}");
    assert_eq!((begins(&world), refusals(&world).await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_guest_asks_in_the_hosts_name_or_answers_for_a_user() {
    let world = World::new(asking(json!(["asks_twice"]))).await;
    // An agent's own question cannot look like the host's.
    let forged = json!([{
        "start": [{ "key": "q", "client": WIDGET, "props": { "call": "12", "tool": "put" } }],
    }]);
    assert_eq!(
        world.play(forged).await,
        [format!(
            "q failed invalid-arguments: client: the widget `{WIDGET}` is the host's own"
        )]
    );
    // And the host's question is none of the tool's: each answer is to its own.
    let (session, approval, props) =
        asked(&world, json!([call("t", "asks_twice", &json!({}))])).await;
    world
        .answer("puppet", approval, answer(&props, true))
        .await
        .unwrap();
    let question = found(async || {
        let (question, action) = world.question("puppet", session).await;
        (action.widget != WIDGET).then_some(question)
    })
    .await;
    assert_ne!(question, approval);
    assert_eq!(
        code(world.answer("puppet", approval, answer(&props, true)).await),
        "INVALID_TOOL_CALL_ID"
    );
    assert_eq!(answers(&world).await.len(), 1);
    world.cancel("puppet", session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_is_handed_over_is_asked_about_as_its_caller_is() {
    let world = World::new(asking(json!(["put"]))).await;
    let session = world.open("puppet").await;
    let inner = json!({ "steps": [call("t", "put", &json!({}))] }).to_string();
    let steps =
        json!({ "steps": [{ "start": [{ "key": "o", "agent": "other", "text": inner }] }] });
    world.say("puppet", session, &steps.to_string()).await;
    let sessions = world.broker.sessions();
    let (agent, user, question, action) = found(async || {
        let made = world.events_that(|event| match event {
            Event::SessionOpened(opened) if opened.started_by.starts_with("agent:") => Some(opened),
            _ => None,
        });
        let opened = made.await.into_iter().next()?;
        let to = Target::Agent(opened.agent);
        let view = sessions
            .get(&opened.user_id, &to, opened.session, None)
            .await;
        let asking = view.unwrap().asking.into_iter().next()?;
        Some((
            opened.agent,
            opened.user_id,
            asking.tool_call_id,
            asking.action,
        ))
    })
    .await;
    assert_eq!(
        (user, action.widget.as_str()),
        (UserId::local(), WIDGET),
        "the user for whom the whole of it works is asked"
    );
    assert_eq!(world.effects(), Vec::<String>::new());
    let respond = Respond {
        target: Target::Agent(agent),
        call: question,
        session: None,
        response: answer(&action.props, true),
        user: UserId::local(),
        idempotency_key: None,
    };
    world.broker.runs().respond(respond).await.unwrap();
    world.replies(session, "o parts t parts put done").await;
    assert_eq!(world.effects().len(), 2);
}

fn config() -> Value {
    let mut agent = puppet();
    agent["confirm"] = json!(["put"]);
    scripted(&json!([agent]), &[("effects", effects())])
}

/// Begins a session of a user's, in which the agent wants to call `put`. Returns its path, and the
/// question.
async fn wants(line: &Line, agent: &str) -> (Session, Value) {
    let session = line.open(agent).await;
    let steps = json!([call("t", "put", &json!({}))]);
    line.play(&session, &steps).await;
    (session.clone(), line.question(&session).await)
}

async fn agree(line: &Line, agent: &str, question: &Value) -> (u16, String) {
    let body = json!({
        "tool_call_id": question["tool_call_id"],
        "response": { "approve": true, "call": question["props"]["call"] },
    });
    let answered = line.post(&format!("{agent}/respond"), &body).await;
    (
        answered.status,
        if answered.status == 202 {
            String::new()
        } else {
            answered.text("code")
        },
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_talk_with_an_agent_agrees_in_the_sessions_that_they_see_and_nobody_else() {
    let (folder, host) = Folder::serving(config(), &["puppet", "effects"]).await;
    let scopes = ["read", "write"];
    let alice = host.user("alice", &scopes).await;
    let bob = host.user("bob", &scopes).await;
    let carol = host.user("carol", &scopes).await;
    let dana = host.user("dana", &scopes).await;
    let eve = host.user("eve", &scopes).await;
    let agent = alice.make("puppet").await;
    for (user, role) in [("bob", "mentee"), ("carol", "shared"), ("dana", "observer")] {
        alice.assign(&agent, user, role).await;
    }
    // In the owner's session: neither who only watches, nor a mentee, nor a stranger, nor the
    // operator; but a colleague.
    let (_, asked) = wants(&alice, &agent).await;
    shows(
        &asked,
        &json!({ "widget_type": WIDGET, "props/tool": "put" }),
    );
    for (line, status) in [(&dana, 403), (&bob, 404), (&eve, 404), (&host.line(), 404)] {
        assert_eq!(agree(line, &agent, &asked).await.0, status);
    }
    assert_eq!(folder.effects(), Vec::<String>::new());
    assert_eq!(agree(&carol, &agent, &asked).await.0, 202);
    // A mentee in their own.
    let (session, asked) = wants(&bob, &agent).await;
    assert_eq!(agree(&bob, &agent, &asked).await.0, 202);
    until(async || folder.effects().len() >= 4).await;
    assert_eq!(agree(&bob, &agent, &asked).await.0, 409, "{session}");
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// Has a host die at a place when a call was agreed to, and starts it again. Returns the tool's
/// effects and the agent's reply.
async fn dies_at(point: &str) -> (usize, String) {
    let folder = Folder::new(config());
    folder.warm(&["puppet", "effects"]).await;
    let mut host: Host = folder.start(Some(point)).await.unwrap();
    let opened = host.post("/api/agents/puppet/sessions", &json!({})).await;
    let agent = format!("/api/agents/{}", opened.text("agent_id"));
    let (session, asked) = wants(&host.line(), &agent).await;
    let body = json!({
        "tool_call_id": asked["tool_call_id"],
        "response": { "approve": true, "call": asked["props"]["call"] },
    });
    let _ = host
        .post(&format!("{agent}/respond"), &body)
        .attempt()
        .await;
    assert!(
        host.died(PATIENCE).await.is_some(),
        "it was to die at {point}"
    );
    let host = folder.serve().await;
    let reported = found(async || {
        let shown = host.get(&session).await;
        let last = shown.body["messages"]
            .as_array()
            .and_then(|messages| messages.last())
            .cloned()
            .unwrap_or_default();
        (last["role"] == "assistant").then(|| last.to_string())
    })
    .await;
    assert!(host.stop().await.success(), "{}", folder.log());
    (folder.effects().len(), reported)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agreement_is_used_once_wherever_the_host_dies() {
    // It is stored, and the call was not sent: it is made.
    let (effects, reported) = dies_at("broker.settle.after").await;
    assert!(
        effects == 2 && reported.contains("t parts put done"),
        "{effects} {reported}"
    );
    // The call was about to be sent: nobody knows, and it is not made again.
    let (effects, reported) = dies_at("broker.started.after").await;
    assert!(
        effects == 0 && reported.contains("t unknown"),
        "{effects} {reported}"
    );
}
