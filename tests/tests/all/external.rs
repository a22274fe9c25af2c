//! Agents that are programs elsewhere: what they are sent, what they answer, and programs that are
//! slow, down, greedy or dishonest.

mod dishonest;
mod killed;

use agent_host_tests::patience::until;
use agent_host_tests::peer::{Peer, ReceivedRequest, Says};
use agent_host_tests::process::{puppet, tells};
use agent_host_tests::{Setup, World};
use broker::external::Signed;
use broker::{AttachExternal, Attached, ExternalPost};
use domain::definition::DefinitionId;
use domain::event::{BoundaryVerdict, Event};
use domain::external::{ExternalName, SignedDirection};
use domain::id::{OperationId, SessionId};
use domain::message::Message;
use domain::secret::Secret;
use domain::user::UserId;
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The secrets of the two external agents.
const WEATHER: &str = "weather-secret-1";
const TRAFFIC: &str = "traffic-secret-2";

/// The present second.
#[expect(
    clippy::disallowed_methods,
    reason = "programs elsewhere sign with the time of their own clock"
)]
fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

/// A definition of an external agent at a URL.
fn agent(id: &str, url: &str, more: &Value) -> Value {
    let mut external = json!({
        "inputUrl": url, "secret": id, "privateAddresses": ["127.0.0.1"],
        "callbackBase": "https://host.example", "timeoutMs": 2_000, "retryBaseMs": 10,
    });
    let fields = more.as_object().unwrap().clone();
    external.as_object_mut().unwrap().extend(fields);
    json!({
        "agentId": id, "displayName": id, "type": "external", "component": "external",
        "external": external,
    })
}

fn setup(url: &str, more: &Value) -> Setup {
    Setup {
        components: vec!["external", "puppet"],
        definitions: vec![
            puppet(),
            agent("weather", url, more),
            agent("traffic", url, &json!({})),
        ],
        secrets: vec![("weather", WEATHER), ("traffic", TRAFFIC)],
        ..Setup::default()
    }
}

async fn world(peer: &Peer, more: &Value) -> World {
    World::new(setup(&peer.url("/in"), more)).await
}

fn name(text: &str) -> ExternalName {
    text.parse().unwrap()
}

async fn attach(world: &World, agent: &str, session: &str) -> Result<Attached, broker::Error> {
    let command = AttachExternal {
        definition: DefinitionId(agent.into()),
        name: name(session),
        user: UserId::local(),
    };
    world.broker.external_agents().attach(command).await
}

/// An answer to a message, signed now.
fn post(secret: &str, session: &str, message: Option<OperationId>, text: &str) -> ExternalPost {
    signed_at(now_s(), secret, session, message, text)
}

/// An answer that is signed at a second: to a message, or to whatever waits longest.
fn signed_at(
    time_s: u64,
    secret: &str,
    session: &str,
    message: Option<OperationId>,
    text: &str,
) -> ExternalPost {
    let signed = Signed {
        direction: SignedDirection::ToHost,
        time_s,
        session,
        message,
        body: text.as_bytes(),
    };
    ExternalPost {
        name: name(session),
        message,
        time_s,
        signature: signed.signature(&Secret::parse(secret).unwrap()),
        body: Some(text.as_bytes().to_vec()),
    }
}

/// A status with the seconds after which to come again.
fn later(status: u16, after_s: u32) -> Says {
    let head = format!("HTTP/1.1 {status} X\r\nretry-after: {after_s}\r\n");
    Says::Raw(format!("{head}content-length: 0\r\n\r\n").into_bytes())
}

fn message_of(heard: &ReceivedRequest) -> Option<OperationId> {
    Some(heard.body["messageId"].as_str().unwrap().parse().unwrap())
}

async fn answer(world: &World, post: ExternalPost) -> Result<(u64, bool), String> {
    world
        .broker
        .external_agents()
        .answer(post)
        .await
        .map_err(|error| match error {
            broker::Error::Refused(refusal) => refusal.code.to_string(),
            other => panic!("{other:?}"),
        })
}

/// The lines of the ledger about one capability: verdict and detail.
async fn lines(world: &World, capability: &str) -> Vec<(BoundaryVerdict, String)> {
    let ledger = world.ledger().await;
    ledger
        .iter()
        .flat_map(|decided| &decided.decisions)
        .filter(|decision| decision.capability == capability)
        .map(|decision| (decision.verdict, decision.detail.clone()))
        .collect()
}

/// The lines of the ledger about outbound messages.
async fn outbound_messages(world: &World) -> Vec<(BoundaryVerdict, String)> {
    lines(world, "external.deliver").await
}

/// The requests on record: outcome and status.
async fn hops(world: &World) -> Vec<(String, Option<u16>)> {
    let ledger = world.ledger().await;
    let hops = ledger.iter().flat_map(|decided| &decided.egress.hops);
    hops.map(|hop| (hop.verdict.clone(), hop.status)).collect()
}

/// Waits until so many tries of outbound messages are over: their requests are in the ledger.
async fn tried(world: &World, count: usize) {
    until(async || hops(world).await.len() >= count).await;
}

/// The reason why the last turn of a session failed.
async fn failure(world: &World, session: SessionId) -> String {
    world.idle(session).await;
    world.last_reply(session).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_posted_signed_and_the_answer_is_the_reply() {
    let peer = Peer::new(|_, _| Says::Status(202));
    let world = world(&peer, &json!({})).await;
    let session = attach(&world, "weather", "w-1").await.unwrap().session;
    world.say("weather", session, "What is the weather?").await;
    let heard = peer.heard(1).await.remove(0);
    assert_eq!(
        (heard.method.as_str(), heard.path.as_str()),
        ("POST", "/in")
    );
    let body = &heard.body;
    assert_eq!(body["sessionId"], "w-1");
    assert_eq!(body["agentId"], "weather");
    assert_eq!(body["message"]["type"], "user");
    assert_eq!(body["message"]["text"], "What is the weather?");
    assert!(
        body["message"]["createdAt"]
            .as_str()
            .unwrap()
            .ends_with('Z')
    );
    let message = message_of(&heard).unwrap();
    assert_eq!(
        body["callbackUrl"],
        format!("https://host.example/external/sessions/w-1/messages?message={message}")
    );
    let time_s: u64 = heard.header("x-agent-host-time").parse().unwrap();
    let signed = Signed {
        direction: SignedDirection::ToAgent,
        time_s,
        session: "w-1",
        message: Some(message),
        body: heard.text.as_bytes(),
    };
    let secret = Secret::parse(WEATHER).unwrap();
    assert!(signed.is_signed_by(&secret, heard.header("x-agent-host-signature")));
    assert_eq!(heard.header("idempotency-key"), message.idempotency_key(0));
    assert!(!heard.text.contains(WEATHER) && !heard.head.contains(WEATHER));

    tried(&world, 1).await;
    let taken = answer(&world, post(WEATHER, "w-1", Some(message), "Sunny.")).await;
    assert!(taken.is_ok_and(|(_, replayed)| !replayed));
    let row = world.idle(session).await;
    assert_eq!(world.last_reply(session).await, "Sunny.");
    let is_untrusted = world.store().is_untrusted(row.head.unwrap()).await.unwrap();
    assert!(
        is_untrusted,
        "what a program elsewhere says is from outside"
    );
    let store = world.store();
    let clearance = store.clearance(&UserId::local(), None).await.unwrap();
    let found = store.search(&clearance, None, "Sunny", 10).await;
    let marks: Vec<bool> = found
        .unwrap()
        .iter()
        .map(|it| it.message.untrusted)
        .collect();
    assert_eq!(
        marks,
        [true],
        "and is shown with the mark where it is found"
    );
    let granted = |detail: &str| vec![(BoundaryVerdict::Granted, detail.to_owned())];
    assert_eq!(lines(&world, "external.deliver").await, granted("weather"));
    assert_eq!(lines(&world, "external.answer").await, granted("weather"));
    assert_eq!(hops(&world).await, [("done".to_owned(), Some(202))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_leaves_is_stored_before_it_leaves_and_its_end_after() {
    let peer = Peer::new(|_, _| Says::Status(200));
    let world = world(&peer, &json!({})).await;
    let session = attach(&world, "weather", "w-1").await.unwrap().session;
    world.say("weather", session, "One?").await;
    let heard = peer.heard(1).await.remove(0);
    let message = message_of(&heard);
    let filter = store::EventFilter {
        session: Some(session),
        ..store::EventFilter::default()
    };
    let events = world.store().events(0, filter, 1_000).await.unwrap();
    let intent = events.iter().any(|recorded| match &recorded.event {
        Some(event) => event
            .step()
            .into_iter()
            .flat_map(|step| &step.started)
            .any(|operation| Some(operation.id) == message),
        None => false,
    });
    assert!(
        intent,
        "the outbound message is stored when the program hears of it"
    );
    answer(&world, post(WEATHER, "w-1", message, "1"))
        .await
        .unwrap();
    world.idle(session).await;
    let events = world.store().events(0, filter, 1_000).await.unwrap();
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    let at = |kind: &str| {
        let place = kinds.iter().position(|it| *it == kind);
        place.unwrap_or_else(|| panic!("{kind}: {kinds:?}"))
    };
    assert!(at("run.started.v1") < at("boundary.decided.v1"));
    assert!(at("boundary.decided.v1") < at("run.ended.v1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_opened_once_and_never_taken_from_another_agent_or_user() {
    let peer = Peer::new(|_, _| Says::Status(200));
    let world = world(&peer, &json!({})).await;
    let first = attach(&world, "weather", "w-1").await.unwrap();
    let again = attach(&world, "weather", "w-1").await.unwrap();
    assert!(first.created && !again.created);
    assert_eq!((first.session, first.agent), (again.session, again.agent));
    let refused = |result: Result<Attached, broker::Error>| match result {
        Err(broker::Error::Refused(refusal)) => refusal.code,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused(attach(&world, "traffic", "w-1").await),
        "SESSION_TAKEN"
    );
    assert_eq!(
        refused(attach(&world, "puppet", "p-1").await),
        "AGENT_NOT_EXTERNAL"
    );
    assert_eq!(
        refused(attach(&world, "nobody", "p-1").await),
        "DEFINITION_NOT_FOUND"
    );
    let of_ada = AttachExternal {
        definition: DefinitionId("weather".into()),
        name: name("w-1"),
        user: "ada".parse().unwrap(),
    };
    assert_eq!(
        refused(world.broker.external_agents().attach(of_ada).await),
        "SESSION_TAKEN"
    );
    // A session that was opened in the usual way is known by its id.
    let usual = world.open("weather").await;
    let attached = attach(&world, "weather", &usual.to_string()).await.unwrap();
    assert_eq!((attached.session, attached.created), (usual, false));
    let at_once = [
        attach(&world, "weather", "w-2"),
        attach(&world, "weather", "w-2"),
    ];
    let both = futures::future::join_all(at_once).await;
    let made = both
        .iter()
        .filter(|it| it.as_ref().unwrap().created)
        .count();
    assert_eq!(made, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_slow_fails_the_turn_and_is_on_record() {
    let peer = Peer::new(|_, _| Says::Open(Vec::new()));
    let world = world(&peer, &json!({ "timeoutMs": 200 })).await;
    let session = attach(&world, "weather", "w-1").await.unwrap().session;
    world.say("weather", session, "Quick!").await;
    let reason = failure(&world, session).await;
    tells(&reason, &["did not take the message (1 try): timed-out"]);
    assert_eq!(hops(&world).await, [("timed-out".to_owned(), None)]);
    assert_eq!(
        peer.heard(1).await.len(),
        1,
        "without `retries` there is one try"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_down_is_tried_as_often_as_the_setting_says() {
    let world = World::new(setup("http://127.0.0.1:1/in", &json!({ "retries": 2 }))).await;
    let session = attach(&world, "weather", "w-1").await.unwrap().session;
    world.say("weather", session, "Anybody?").await;
    let reason = failure(&world, session).await;
    tells(
        &reason,
        &["did not take the message (3 tries): unreachable"],
    );
    let tries = vec![("unreachable".to_owned(), None); 3];
    assert_eq!(hops(&world).await, tries);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_try_has_the_same_key_and_body_and_a_refusal_is_final() {
    let peer = Peer::new(|_, nth| Says::Status(if nth < 2 { 503 } else { 200 }));
    let patient = world(&peer, &json!({ "retries": 5 })).await;
    let session = attach(&patient, "weather", "w-1").await.unwrap().session;
    patient.say("weather", session, "Now?").await;
    let heard = peer.heard(3).await;
    tried(&patient, 3).await;
    for other in &heard {
        assert_eq!(
            other.header("idempotency-key"),
            heard[0].header("idempotency-key")
        );
        assert_eq!(other.text, heard[0].text);
    }
    answer(
        &patient,
        post(WEATHER, "w-1", message_of(&heard[0]), "Now."),
    )
    .await
    .unwrap();
    patient.idle(session).await;
    assert_eq!(patient.last_reply(session).await, "Now.");
    let statuses: Vec<Option<u16>> = hops(&patient).await.into_iter().map(|hop| hop.1).collect();
    assert_eq!(statuses, [Some(503), Some(503), Some(200)]);

    let closed = Peer::new(|_, _| Says::Status(404));
    let refused = world(&closed, &json!({ "retries": 5 })).await;
    let session = attach(&refused, "weather", "w-1").await.unwrap().session;
    refused.say("weather", session, "Now?").await;
    let reason = failure(&refused, session).await;
    tells(&reason, &["(1 try): it answered with the status 404"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_asks_for_time_is_given_it() {
    let peer = Peer::new(|_, nth| match nth {
        0 => later(503, 1),
        1 => later(500, 60),
        _ => Says::Status(200),
    });
    let world = world(&peer, &json!({ "retries": 2 })).await;
    let session = attach(&world, "weather", "w-1").await.unwrap().session;
    world.say("weather", session, "Now?").await;
    peer.heard(1).await;
    let began = Instant::now();
    peer.heard(2).await;
    let waited = began.elapsed();
    assert!(waited >= Duration::from_millis(900), "{waited:?}");
    // Only 429 and 503 may ask for it.
    let message = message_of(&peer.heard(3).await[2]);
    answer(&world, post(WEATHER, "w-1", message, "Now."))
        .await
        .unwrap();
    world.idle(session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_come_in_time_fails_the_turn() {
    let peer = Peer::new(|_, _| Says::Status(200));
    let world = world(&peer, &json!({ "answerTimeoutS": 1 })).await;
    let session = attach(&world, "weather", "w-1").await.unwrap().session;
    world.say("weather", session, "Hello?").await;
    let message = message_of(&peer.heard(1).await[0]);
    let reason = failure(&world, session).await;
    assert!(reason.contains("did not answer in time"), "{reason}");
    let late = answer(&world, post(WEATHER, "w-1", message, "Sorry.")).await;
    assert_eq!(late, Err("NOTHING_TO_ANSWER".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_was_taken_is_answered_although_another_of_its_turn_was_not_taken() {
    let peer = Peer::new(|_, nth| Says::Status(if nth == 0 { 200 } else { 404 }));
    let world = world(&peer, &json!({})).await;
    let session = attach(&world, "weather", "w-1").await.unwrap().session;
    world.say("weather", session, "Rain?").await;
    tried(&world, 1).await;
    world.say("weather", session, "Wind?").await;
    tried(&world, 2).await;
    let message = message_of(&peer.heard(2).await[0]);
    answer(&world, post(WEATHER, "w-1", message, "Yes."))
        .await
        .unwrap();
    world.idle(session).await;
    let said: Vec<String> = world
        .messages(session)
        .await
        .iter()
        .map(Message::text)
        .collect();
    let said = said.join("\n");
    tells(&said, &["Yes.", "it answered with the status 404"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_from_another_agent_is_asynchronous_and_its_answer_comes_back() {
    let peer = Peer::new(|_, _| Says::Status(200));
    let world = world(&peer, &json!({})).await;
    let call = json!({ "agentId": "weather", "content": "Tomorrow?", "mode": "sync" });
    let lines = world
        .play(json!([{ "start": [{ "key": "m", "tool": "agents_message", "args": call }] }]))
        .await;
    let reported = lines.join("\n");
    tells(&reported, &["\"mode\":\"async\"", "\"status\":\"started\""]);
    let heard = peer.heard(1).await.remove(0);
    assert_eq!(heard.body["message"]["type"], "agent");
    assert_eq!(heard.body["message"]["text"], "Tomorrow?");
    let session = heard.body["sessionId"].as_str().unwrap();
    answer(&world, post(WEATHER, session, message_of(&heard), "Rain."))
        .await
        .unwrap();
    world.quiet().await;
    let of_puppet = world
        .store()
        .events(0, store::EventFilter::default(), 10_000);
    let returned = of_puppet.await.unwrap().iter().any(|recorded| {
        let accepted = matches!(&recorded.event, Some(Event::InputAccepted(_)));
        accepted
            && serde_json::to_string(&recorded.event)
                .unwrap()
                .contains("Rain.")
    });
    assert!(returned, "the answer is a message to the agent that asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_an_external_agent_names_the_session_as_its_program_does() {
    let peer = Peer::new(|_, _| Says::Status(200));
    let world = world(&peer, &json!({})).await;
    attach(&world, "weather", "w-1").await.unwrap();
    let say = async |session: &str| {
        let call = json!({ "agentId": "weather", "content": "Tomorrow?", "session": session });
        let steps = json!([{ "start": [{ "key": "m", "tool": "agents_message", "args": call }] }]);
        world.play(steps).await.join("\n")
    };
    let reported = say("w-1").await;
    assert!(reported.contains("\"created\":false"), "{reported}");
    assert_eq!(peer.heard(1).await.remove(0).body["sessionId"], "w-1");
    let reported = say("w-9").await;
    assert!(reported.contains("agent-session-error"), "{reported}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_limits_hold_for_an_agent_that_is_elsewhere() {
    let peer = Peer::new(|_, _| Says::Status(200));
    let mut barred = setup(&peer.url("/in"), &json!({}));
    barred.definitions[0]["agentDenylist"] = json!(["weather"]);
    let world = World::new(barred).await;
    let call = json!({ "agentId": "weather", "content": "Tomorrow?" });
    let lines = world
        .play(json!([{ "start": [{ "key": "m", "tool": "agents_message", "args": call }] }]))
        .await;
    assert!(!lines.join("\n").contains("started"), "{lines:?}");
    let mut narrow = setup(&peer.url("/in"), &json!({}));
    narrow.definitions[1]["limits"] = json!({ "toolCallsMax": 0 });
    let world = World::new(narrow).await;
    let session = attach(&world, "weather", "w-1").await.unwrap().session;
    world.say("weather", session, "May I?").await;
    let reason = failure(&world, session).await;
    assert!(reason.contains("toolCallsMax"), "{reason}");
    let limited = (BoundaryVerdict::Limited, "toolCallsMax".to_owned());
    assert_eq!(outbound_messages(&world).await, [limited]);
    assert_eq!(peer.count(), 0, "nothing has left the host");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_neither_loses_an_outbound_message_nor_repeats_one_that_was_taken() {
    let peer = Peer::new(|_, _| Says::Status(200));
    let world = world(&peer, &json!({})).await;
    let session = attach(&world, "weather", "w-1").await.unwrap().session;
    world.say("weather", session, "Still there?").await;
    let heard = peer.heard(1).await.remove(0);
    tried(&world, 1).await;
    let world = world.restart(|_| {}).await;
    answer(&world, post(WEATHER, "w-1", message_of(&heard), "Yes."))
        .await
        .unwrap();
    world.idle(session).await;
    assert_eq!(world.last_reply(session).await, "Yes.");
    assert_eq!(peer.count(), 1);
}
