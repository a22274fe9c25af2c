//! A model that answers garbage, all the way through the host: a server on loopback in the place of
//! a provider.
use agent_host_tests::peer::{Peer, Says};
use agent_host_tests::process::{Folder, Host, effects};
use agent_host_tests::prompt::{completion, saying};
use serde_json::{Value, json};

/// Text that no reply may ever hold: it comes before a stream breaks.
const PARTIAL: &str = "half a thought";

/// Returns the server's answer to this message of the user's: status, media type and body. None for
/// a connection that is closed at once.
fn garbage(kind: &str) -> Option<(u16, &'static str, Vec<u8>)> {
    let json = "application/json";
    let events = "text/event-stream";
    let delta = |delta: &Value| {
        format!(
            "data: {}\n\n",
            json!({ "choices": [{ "index": 0, "delta": delta }] })
        )
    };
    let started = delta(&json!({ "role": "assistant", "content": PARTIAL }));
    Some(match kind {
        "html" => (
            200,
            "text/html",
            b"<html><body>Gateway login</body></html>".to_vec(),
        ),
        "cut json" => (
            200,
            json,
            br#"{"choices":[{"message":{"role":"assistant","content":"half a thou"#.to_vec(),
        ),
        "empty" => (200, json, Vec::new()),
        "error with 200" => (
            200,
            json,
            json!({ "error": { "message": "upstream exploded", "code": 502 } })
                .to_string()
                .into_bytes(),
        ),
        "no choices" => (200, json, json!({ "choices": [] }).to_string().into_bytes()),
        "wrong types" => (
            200,
            json,
            json!({ "choices": "none", "usage": [] })
                .to_string()
                .into_bytes(),
        ),
        "not utf-8" => (200, json, vec![b'"', 0xff, 0xfe, 0xc3, b'"']),
        "not json at all" => (200, json, b"I am a teapot".to_vec()),
        "cut stream" => (200, events, started.into_bytes()),
        "nonsense stream" => (
            200,
            events,
            format!("{started}data: {{not json\n\ndata: [DONE]\n\n").into_bytes(),
        ),
        "binary stream" => (
            200,
            events,
            [started.as_bytes(), &[0, 0xff, 0x80, b'\n', b'\n']].concat(),
        ),
        "wrong typed stream" => (
            200,
            events,
            format!("{started}data: {{\"choices\":7}}\n\ndata: [DONE]\n\n").into_bytes(),
        ),
        "error in stream" => (
            200,
            events,
            format!(
                "{started}data: {}\n\n",
                json!({ "error": { "message": "boom" } })
            )
            .into_bytes(),
        ),
        "deep field" => {
            let deep = (0..118).fold(json!(1), |within, _| json!([within]));
            let message = json!({ "role": "assistant", "content": PARTIAL, "own": deep });
            (
                200,
                json,
                json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] })
                    .to_string()
                    .into_bytes(),
            )
        }
        "closed" => return None,
        other => panic!("nobody says `{other}`"),
    })
}

const KINDS: [&str; 15] = [
    "html",
    "cut json",
    "empty",
    "error with 200",
    "no choices",
    "wrong types",
    "not utf-8",
    "not json at all",
    "cut stream",
    "nonsense stream",
    "binary stream",
    "wrong typed stream",
    "error in stream",
    "deep field",
    "closed",
];

/// Returns the bad call that the model makes at this message of the user's: name and arguments.
fn bad_call(kind: &str) -> Option<(&'static str, &'static str)> {
    match kind {
        "bad arguments" => Some(("look", "{\"sleep\": 1")),
        "arguments that are a list" => Some(("look", "[1, 2]")),
        "unknown tool" => Some(("no_such_tool", "{}")),
        "a tool without a name" => Some(("", "{}")),
        _ => None,
    }
}

/// Answers as the last message of the prompt asks for.
fn answer(prompt: &Value) -> Says {
    let messages = prompt["messages"].as_array().unwrap();
    let mut latest_first = messages.iter().rev();
    let said = latest_first.find(|message| message["role"] == "user");
    let said = said.unwrap()["content"].as_str().unwrap();
    let reported = messages.last().unwrap();
    let reply = |message: &Value| Says::Json(200, completion(message));
    let Some((tool, arguments)) = bad_call(said) else {
        if said == "hello" {
            return reply(&saying("sane again"));
        }
        return match garbage(said) {
            Some((status, kind, body)) => {
                let head = format!("HTTP/1.1 {status} OK\r\ncontent-type: {kind}\r\n");
                Says::Raw([head.as_bytes(), b"connection: close\r\n\r\n", &body].concat())
            }
            None => Says::Cut,
        };
    };
    if reported["role"] == "tool" {
        return reply(&saying(&format!("I was told: {}", reported["content"])));
    }
    let call = json!({
        "id": "call-1", "type": "function", "function": { "name": tool, "arguments": arguments },
    });
    reply(&json!({ "role": "assistant", "content": null, "tool_calls": [call] }))
}

/// A host whose model is such a server.
async fn started() -> (Folder, Host) {
    let model = Peer::new(|asked, _| answer(&asked.body));
    let config = json!({
        "agents": [{
            "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": ["look"],
        }],
        "components": { "effects": effects() },
        "providers": {
            "garbage": { "kind": "openai-compatible", "baseUrl": model.url("/v1") },
        },
        "models": { "m": { "provider": "garbage", "model": "m" } },
        "retry": { "attemptsMax": 2, "baseMs": 1, "delayMsMax": 10 },
        "breaker": { "failuresMax": 1_000 },
    });
    Folder::serving(config, &["effects", "assistant"]).await
}

/// Sends a message in a session of its own. Returns the session when the turn has ended, and how it
/// ended.
async fn turn(host: &Host, said: &str) -> (Value, Value) {
    let session = host.open("assistant").await;
    host.say(&session, said).await;
    let seen = host.rest(&session).await;
    let mut ended = host.story(&session, "run.ended.v1").await;
    (seen, ended.remove(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_answers_garbage_fails_the_turn_and_nothing_else() {
    let (folder, host) = started().await;
    for kind in KINDS {
        let (session, ended) = turn(&host, kind).await;
        assert_eq!(ended["end"], "failed", "{kind}: {ended}");
        let reason = ended["reason"].as_str().unwrap_or_default();
        assert!(
            reason.contains("model"),
            "{kind}: nobody can tell from `{reason}` what went wrong"
        );
        let messages = session["messages"].as_array().unwrap();
        assert_eq!(messages[0]["role"], "user", "{kind}: {messages:?}");
        assert!(
            messages
                .iter()
                .all(|message| message["role"] != "assistant"),
            "{kind} became a reply: {messages:?}"
        );
        assert!(
            !session.to_string().contains(PARTIAL),
            "{kind}: a partial reply became final: {session}"
        );
        assert_eq!(host.get("/healthz").await.status, 200, "{kind}");
    }
    let (session, ended) = turn(&host, "hello").await;
    assert_eq!(
        (&ended["end"], session.to_string().contains("sane again")),
        (&json!("replied"), true),
        "{session}"
    );
    // What went out to the provider is in the ledger, beside the reply.
    let audit = host
        .get(&format!(
            "/api/audit?limit=1000&session={}",
            session["session_id"].as_str().unwrap()
        ))
        .await
        .body;
    let sent: Vec<&Value> = audit["lines"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|line| line["kind"] == "request")
        .collect();
    let [sent] = sent[..] else { panic!("{audit}") };
    assert_eq!(
        (
            &sent["verdict"],
            &sent["status"],
            sent["operation_id"].is_string()
        ),
        (&json!("done"), &json!(200), true),
        "{sent}"
    );
    assert!(
        sent["detail"]
            .as_str()
            .unwrap()
            .starts_with("POST http://127.0.0.1:"),
        "{sent}"
    );
    assert!(
        ["component", "code", "grant"]
            .iter()
            .all(|name| sent[*name].is_string()),
        "it is the agent's: {sent}"
    );
    folder.over(host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_calls_what_it_cannot_call_is_told_so() {
    let (folder, host) = started().await;
    for (kind, reported) in [
        ("bad arguments", "invalid-arguments"),
        ("arguments that are a list", "invalid-arguments"),
        ("unknown tool", "TOOL_NOT_AVAILABLE"),
    ] {
        let (session, ended) = turn(&host, kind).await;
        assert_eq!(ended["end"], "replied", "{kind}: {ended}");
        let last = session["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .to_string();
        assert!(
            last.contains("I was told") && last.contains(reported),
            "{kind}: {last}"
        );
    }
    let (_, ended) = turn(&host, "a tool without a name").await;
    assert!(
        ended["end"] == "replied" || ended["end"] == "failed",
        "{ended}"
    );
    assert!(
        folder.effects().is_empty(),
        "nothing was called: {:?}",
        folder.effects()
    );
    folder.over(host).await;
}
