//! Services that call: Telegram, WhatsApp and Slack, with the proofs of each, right, forged,
//! replayed and too old.

use super::scene::{bind, reaching};
use agent_host_tests::patience::{found, until};
use agent_host_tests::peer::{Peer, ReceivedRequest, Says};
use agent_host_tests::process::{Folder, Host, puppets, tells};
use hmac::{Hmac, Mac};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{sleep, timeout};

/// The secrets of the services, by name. The first of each is what the host shows them.
const SECRETS: [(&str, &str); 7] = [
    ("telegram", "123456:AAE-test-token_of-a-bot"),
    ("telegram-hook", "telegram-hook-secret"),
    ("whatsapp", "whatsapp-access-token"),
    ("whatsapp-app", "whatsapp-app-secret"),
    ("whatsapp-verify", "whatsapp-verify-token"),
    ("slack", "xoxb-slack-bot-token"),
    ("slack-signing", "slack-signing-secret"),
];
/// Seconds within which a signed call counts.
const AGE_S_MAX: u64 = 300;
/// The end of the path by which Telegram is told that a pressed button was taken.
const ACKNOWLEDGED: &str = "/answerCallbackQuery";
/// Time within which a call is answered whose acknowledgement gets no answer.
const ANSWERED: Duration = Duration::from_secs(4);
/// Time after which nothing more is expected to be sent.
const QUIET: Duration = Duration::from_millis(800);

fn secret(name: &str) -> &'static str {
    SECRETS.iter().find(|(known, _)| *known == name).unwrap().1
}

/// A host that three services call, and a server in the place of all of them.
struct Called {
    server: Peer,
    host: Host,
    _folder: Folder,
}

/// The answer to a call: its status, and its body as it is.
type Answered = (u16, String);

impl Called {
    async fn new() -> Self {
        let server = Peer::new(|asked, _| taken(asked));
        let folder = Folder::new(config(&server));
        let components = ["puppet", "telegram", "whatsapp", "slack"];
        folder.warm(&components).await;
        let host = folder.serve().await;
        for key in ["telegram:7", "whatsapp:4912345", "slack:U7"] {
            bind(&host, key, "ada").await;
        }
        Self {
            server,
            host,
            _folder: folder,
        }
    }

    async fn call(&self, connector: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        let path = format!("/connectors/{connector}/webhook");
        let mut request = self.host.bare(Method::POST, &path).body(body.to_owned());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answered(request).await
    }

    /// Waits for so many messages at the services, and returns what each says.
    async fn texts(&self, count: usize) -> Vec<String> {
        let reported = || -> Vec<String> {
            let asked = self.server.asked().into_iter();
            asked.filter_map(|it| text_of(&it.body)).collect()
        };
        until(async || reported().len() >= count).await;
        sleep(QUIET).await;
        reported()
    }
}

async fn answered(request: reqwest::RequestBuilder) -> Answered {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.text().await.unwrap())
}

fn config(server: &Peer) -> Value {
    let puppet = json!({ "agentId": "puppet", "displayName": "Puppet", "component": "puppet" });
    let mut config = puppets(&json!([puppet]));
    for (name, value) in SECRETS {
        config["secrets"][name] = json!({ "command": ["echo", value] });
    }
    let url = server.url("");
    let slots = [
        ("telegram", json!({ "path": "/bot" }), ""),
        ("whatsapp", json!({ "header": "authorization" }), "Bearer "),
        ("slack", json!({ "header": "authorization" }), "Bearer "),
    ];
    for (name, slot, prefix) in slots {
        let secret = json!({
            "secret": name, "host": "127.0.0.1", "port": server.port, "slot": slot,
            "prefix": prefix,
        });
        config["components"][name] =
            json!({ "network": [reaching(server.port)], "secrets": [secret] });
    }
    let connectors = [
        (
            "telegram",
            json!({ "telegram": { "secret": "telegram-hook" } }),
            json!({ "server": url }),
        ),
        (
            "whatsapp",
            json!({ "meta": { "secret": "whatsapp-app", "verifyToken": "whatsapp-verify" } }),
            json!({ "server": url, "fileServer": url, "phoneNumberId": "100" }),
        ),
        (
            "slack",
            json!({ "slack": { "secret": "slack-signing" } }),
            json!({ "server": url, "fileServer": url }),
        ),
    ];
    for (name, webhook, configuration) in connectors {
        config["connectors"][name] = json!({
            "component": name, "agent": "puppet", "typing": false, "webhook": webhook,
            "groups": "bound",
            "configuration": configuration,
        });
    }
    config
}

/// Takes whatever the connectors send, as each service answers it. Acknowledgements get no answer.
fn taken(asked: &ReceivedRequest) -> Says {
    if asked.path.ends_with(ACKNOWLEDGED) {
        return Says::Open(Vec::new());
    }
    let proof = match asked.path.as_str() {
        path if path.starts_with("/bot") => path.contains(secret("telegram")),
        "/api/chat.postMessage" => is_bearer(asked, "slack"),
        _ => is_bearer(asked, "whatsapp"),
    };
    if !proof {
        return Says::Json(401, json!({ "ok": false, "error": { "code": 190 } }));
    }
    Says::Json(
        200,
        json!({
            "ok": true, "result": { "message_id": 1 }, "messages": [{ "id": "wamid.1" }],
            "ts": "1700000000.000200",
        }),
    )
}

fn is_bearer(asked: &ReceivedRequest, name: &str) -> bool {
    let line = format!("authorization: Bearer {}", secret(name));
    asked.head.lines().any(|it| it == line)
}

/// Returns the words of a message as a service gets it.
fn text_of(body: &Value) -> Option<String> {
    let text = body["text"].as_str().or(body["text"]["body"].as_str())?;
    Some(text.to_owned())
}

fn signature(name: &str, parts: &[&str]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret(name).as_bytes()).unwrap();
    parts.iter().for_each(|part| mac.update(part.as_bytes()));
    let bytes = mac.finalize().into_bytes();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "services sign with the time of their own clock"
)]
fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs()
}

fn telegram(update: u64, from: u64, text: &str) -> String {
    json!({ "update_id": update, "message": {
        "message_id": 1, "date": 1, "from": { "id": from, "is_bot": false, "first_name": "Ada" },
        "chat": { "id": from, "type": "private" }, "text": text,
    } })
    .to_string()
}

fn pressed(update: u64, from: u64, value: &str) -> String {
    json!({ "update_id": update, "callback_query": {
        "id": "q1", "data": value, "from": { "id": from, "is_bot": false, "first_name": "Ada" },
        "message": { "message_id": 1, "date": 1, "chat": { "id": from, "type": "private" } },
    } })
    .to_string()
}

fn whatsapp(id: &str, from: &str, text: &str) -> String {
    let message = json!({
        "id": id, "from": from, "timestamp": "1700000000", "type": "text",
        "text": { "body": text },
    });
    let value = json!({ "metadata": { "phone_number_id": "100" }, "messages": [message] });
    json!({ "entry": [{ "changes": [{ "field": "messages", "value": value }] }] }).to_string()
}

fn slack(id: &str, user: &str, text: &str) -> String {
    json!({ "type": "event_callback", "event_id": id, "event": {
        "type": "message", "channel_type": "im", "channel": "D7", "user": user,
        "ts": "1700000000.000100", "text": text,
    } })
    .to_string()
}

/// An event in a channel of Slack, at a time and in a thread.
fn in_channel(kind: &str, ts: &str, thread: &str, text: &str) -> String {
    let event = json!({
        "type": kind, "channel": "C7", "channel_type": "channel", "user": "U7", "ts": ts,
        "thread_ts": thread, "text": text,
    });
    let id = format!("Ev-{kind}-{ts}");
    json!({ "type": "event_callback", "event_id": id, "event": event }).to_string()
}

/// The headers of a call that Slack signed at a second.
fn of_slack(time_s: u64, body: &str) -> [(&'static str, String); 2] {
    let time = time_s.to_string();
    let signed = signature("slack-signing", &["v0:", &time, ":", body]);
    [
        ("x-slack-request-timestamp", time),
        ("x-slack-signature", format!("v0={signed}")),
    ]
}

async fn call_slack(called: &Called, time_s: u64, body: &str) -> Answered {
    let headers = of_slack(time_s, body);
    let headers = [
        (headers[0].0, headers[0].1.as_str()),
        (headers[1].0, headers[1].1.as_str()),
    ];
    called.call("slack", &headers, body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn telegram_calls_with_its_secret_and_each_update_is_taken_once() {
    let called = Called::new().await;
    let header = "x-telegram-bot-api-secret-token";
    let right = [(header, secret("telegram-hook"))];
    let body = telegram(1, 7, "hello");
    for _ in 0..3 {
        assert_eq!(called.call("telegram", &right, &body).await.0, 200);
    }
    called.texts(1).await;
    // A later update that comes earlier is taken, and so is the earlier one.
    assert_eq!(
        called
            .call("telegram", &right, &telegram(3, 7, "late"))
            .await
            .0,
        200
    );
    assert_eq!(called.texts(2).await, ["said hello", "said late"]);
    assert_eq!(
        called
            .call("telegram", &right, &telegram(2, 7, "early"))
            .await
            .0,
        200
    );
    assert_eq!(called.texts(3).await[2], "said early");
    let forged = telegram(4, 7, "forged");
    let twice = [right[0], right[0]];
    let attempts: [&[(&str, &str)]; 4] =
        [&[], &[(header, "wrong-secret")], &[(header, "")], &twice];
    for headers in attempts {
        let (status, reported) = called.call("telegram", headers, &forged).await;
        assert_eq!(status, 401, "{headers:?}: {reported}");
    }
    assert_eq!(called.call("telegram", &right, "no update").await.0, 400);
    assert_eq!(called.texts(3).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_a_pressed_button_is_answered_whatever_its_acknowledgement_does() {
    let called = Called::new().await;
    let right = [("x-telegram-bot-api-secret-token", secret("telegram-hook"))];
    let body = pressed(1, 7, "no question of ours");
    // The service repeats a call until it is taken, and may do so afterwards.
    for _ in 0..2 {
        let answer = called.call("telegram", &right, &body);
        let (status, reported) = timeout(ANSWERED, answer).await.expect("an answer in time");
        assert_eq!(status, 200, "{reported}");
    }
    let acknowledged = || -> Vec<Value> {
        let asked = called.server.asked().into_iter();
        let asked = asked.filter(|it| it.path.ends_with(ACKNOWLEDGED));
        asked.map(|it| it.body).collect()
    };
    until(async || !acknowledged().is_empty()).await;
    sleep(QUIET).await;
    assert_eq!(acknowledged(), [json!({ "callback_query_id": "q1" })]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatsapp_shakes_hands_and_signs_what_it_says() {
    let called = Called::new().await;
    let shake = async |token: &str, mode: &str| {
        let path = format!(
            "/connectors/whatsapp/webhook?hub.mode={mode}&hub.verify_token={token}\
             &hub.challenge=abc.123"
        );
        answered(called.host.bare(Method::GET, &path)).await
    };
    let right = secret("whatsapp-verify");
    assert_eq!(shake(right, "subscribe").await, (200, "abc.123".to_owned()));
    for (token, mode) in [("wrong", "subscribe"), (right, "unsubscribe"), ("", "")] {
        let (status, reported) = shake(token, mode).await;
        assert_eq!(
            (status, reported.contains("abc.123")),
            (401, false),
            "{reported}"
        );
    }
    let body = whatsapp("wamid.a", "4912345", "hello");
    let header = "x-hub-signature-256";
    let signed = format!("sha256={}", signature("whatsapp-app", &[&body]));
    // The service repeats a call until it is taken, and may do so afterwards.
    for _ in 0..2 {
        let taken = called.call("whatsapp", &[(header, &signed)], &body).await;
        assert_eq!(taken.0, 200, "{taken:?}");
    }
    let other = whatsapp("wamid.b", "4912345", "forged");
    let of_token = format!("sha256={}", signature("whatsapp-verify", &[&other]));
    for headers in [
        &[][..],
        &[(header, signed.as_str())],
        &[(header, of_token.as_str())],
    ] {
        let refused = called.call("whatsapp", headers, &other).await;
        assert_eq!(refused.0, 401, "{headers:?}: {refused:?}");
    }
    assert_eq!(called.texts(1).await, ["said hello"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn slack_is_verified_by_signature_and_time() {
    let called = Called::new().await;
    let challenge = json!({ "type": "url_verification", "challenge": "abc123" }).to_string();
    let shaken = call_slack(&called, now_s(), &challenge).await;
    assert_eq!(shaken, (200, "abc123".to_owned()));
    let (status, reported) = called.call("slack", &[], &challenge).await;
    assert_eq!(
        (status, reported.contains("abc123")),
        (401, false),
        "{reported}"
    );
    let body = slack("Ev1", "U7", "hello");
    let signed_s = now_s();
    for _ in 0..2 {
        assert_eq!(call_slack(&called, signed_s, &body).await.0, 200);
    }
    for wrong_s in [signed_s - AGE_S_MAX - 5, signed_s + AGE_S_MAX + 60] {
        let other = slack("Ev2", "U7", "from another time");
        assert_eq!(call_slack(&called, wrong_s, &other).await.0, 401);
    }
    // The signature of one body under another, and one whose time was moved.
    let [(time, at), (name, signature)] = of_slack(signed_s, &body);
    let moved = (signed_s + 1).to_string();
    let other = slack("Ev3", "U7", "forged");
    for (at, body) in [
        (at.as_str(), other.as_str()),
        (moved.as_str(), body.as_str()),
    ] {
        let forged = [(time, at), (name, signature.as_str())];
        assert_eq!(called.call("slack", &forged, body).await.0, 401);
    }
    assert_eq!(called.texts(1).await, ["said hello"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_in_which_an_agent_takes_part_is_heard_and_no_message_twice() {
    let called = Called::new().await;
    bind(&called.host, "slack:group:C7", "team").await;
    let say = async |kind: &str, ts: &str, thread: &str, text: &str| {
        let body = in_channel(kind, ts, thread, text);
        assert_eq!(call_slack(&called, now_s(), &body).await.0, 200);
    };
    // Nobody has spoken to the bot in this thread.
    say("message", "1.2", "1.1", "not for the host").await;
    say("app_mention", "2.1", "2.1", "<@UBOT> hello").await;
    // The same message comes as an event of another kind.
    say("message", "2.1", "2.1", "<@UBOT> hello").await;
    assert_eq!(called.texts(1).await, ["said [U7] hello"]);
    say("message", "2.2", "2.1", "and then?").await;
    let reported = called.texts(2).await;
    assert_eq!(reported, ["said [U7] hello", "said [U7] and then?"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reaction_is_heard_in_the_thread_of_the_bots_own_message_alone() {
    let called = Called::new().await;
    bind(&called.host, "slack:group:C7", "team").await;
    let call = async |body: &str| assert_eq!(call_slack(&called, now_s(), body).await.0, 200);
    call(&in_channel("app_mention", "2.1", "2.1", "<@UBOT> hello")).await;
    called.texts(1).await;
    found(async || {
        let listed = called
            .host
            .get("/api/connectors/slack/outbound-messages")
            .await;
        let listed = listed.body;
        (listed["outbound_messages"][0]["state"] == "delivered").then_some(())
    })
    .await;
    let react = async |at: &str, to: &str| {
        let event = json!({
            "type": "reaction_added", "user": "U7", "reaction": "eyes", "event_ts": at,
            "item_user": "UBOT", "item": { "type": "message", "channel": "C7", "ts": to },
        });
        let own = json!([{ "user_id": "UBOT", "is_bot": true }]);
        let body = json!({
            "type": "event_callback", "event_id": at, "event": event, "authorizations": own,
        });
        call(&body.to_string()).await;
    };
    // Another program said this one as the same bot.
    react("3.1", "9.9").await;
    // The timestamp under which the service took the answer.
    react("3.2", "1700000000.000200").await;
    let reported = called.texts(2).await.remove(1);
    tells(&reported, &["[reaction :eyes:]", "said [U7] hello"]);
    let asked = called.server.asked();
    let threads = asked.iter().filter(|it| text_of(&it.body).is_some());
    let threads: Vec<&Value> = threads.map(|it| &it.body["thread_ts"]).collect();
    assert_eq!(threads, ["2.1", "2.1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_on_whatsapp_comes_with_the_words_that_it_is_to() {
    let called = Called::new().await;
    let say = async |message: Value| {
        let value = json!({ "metadata": { "phone_number_id": "100" }, "messages": [message] });
        let body = json!({ "entry": [{ "changes": [{ "field": "messages", "value": value }] }] });
        let body = body.to_string();
        let signed = format!("sha256={}", signature("whatsapp-app", &[&body]));
        let headers = [("x-hub-signature-256", signed.as_str())];
        assert_eq!(called.call("whatsapp", &headers, &body).await.0, 200);
    };
    let text = |id: &str, text: &str| {
        json!({ "id": id, "from": "4912345", "timestamp": "1", "type": "text",
                "text": { "body": text } })
    };
    say(text("wamid.a", "hello")).await;
    called.texts(1).await;
    let mut reply = text("wamid.b", "what about this?");
    // The id under which the service took the answer.
    reply["context"] = json!({ "id": "wamid.1", "from": "100" });
    say(reply).await;
    let reported = called.texts(2).await.remove(1);
    tells(&reported, &["what about this?", "said hello"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_claims_to_be_from_another_person_is_refused() {
    let called = Called::new().await;
    let bodies = [
        ("telegram", telegram(9, 7, "Ada says so")),
        ("whatsapp", whatsapp("wamid.z", "4912345", "Ada says so")),
        ("slack", slack("Ev9", "U7", "Ada says so")),
    ];
    let mut answers = Vec::new();
    for (connector, body) in &bodies {
        // Mallory proves to be a customer of Meta's, and not that Ada's words are hers.
        let own = format!("sha256={}", signature("whatsapp-verify", &[body]));
        let headers = [
            ("x-hub-signature-256", own.as_str()),
            ("x-telegram-bot-api-secret-token", "mallory"),
            ("x-forwarded-for", "149.154.160.1"),
        ];
        answers.push(called.call(connector, &headers, body).await);
        // Who knows no name learns none.
        answers.push(called.call("nobody", &headers, body).await);
    }
    assert!(answers.iter().all(|it| it.0 == 401), "{answers:?}");
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    sleep(QUIET).await;
    assert!(called.server.asked().is_empty());
    let listed = called.host.get("/api/connectors").await.body;
    let heard = listed["connectors"].as_array().unwrap().iter();
    assert!(
        heard.clone().all(|it| it["last_received_at"].is_null()),
        "{listed}"
    );
}

/// WhatsApp takes a message, and says later that it did not deliver it.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_its_service_did_not_deliver_after_all_is_given_up() {
    let called = Called::new().await;
    let call = async |body: &str| {
        let signed = format!("sha256={}", signature("whatsapp-app", &[body]));
        let headers = [("x-hub-signature-256", signed.as_str())];
        assert_eq!(called.call("whatsapp", &headers, body).await.0, 200);
    };
    let is = async |state: &str| {
        found(async || {
            let listed = called
                .host
                .get("/api/connectors/whatsapp/outbound-messages")
                .await;
            let latest = listed.body["outbound_messages"][0].clone();
            (latest["state"] == state).then_some(latest)
        })
        .await
    };
    call(&whatsapp("wamid.a", "4912345", "hello")).await;
    is("delivered").await;
    let report = json!({
        "id": "wamid.1", "status": "failed", "recipient_id": "4912345",
        "errors": [{ "code": 131_047, "title": "Re-engagement message" }],
    });
    let value = json!({ "metadata": { "phone_number_id": "100" }, "statuses": [report] });
    let report = json!({ "entry": [{ "changes": [{ "field": "messages", "value": value }] }] });
    call(&report.to_string()).await;
    let dead = is("dead").await;
    let reason = dead["reason"].as_str().unwrap();
    tells(&reason, &["(131047)"]);
    // It is told again.
    call(&report.to_string()).await;
    assert_eq!(is("dead").await["reason"], reason);
}
