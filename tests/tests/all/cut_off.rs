//! Replies of models that are not whole, and calls that fail: what agents, users, clients and
//! operators are told.

mod provider;

use agent_host_tests::guests::test_program;
use agent_host_tests::peer::Peer;
use agent_host_tests::process::{Folder, Host, puppet, shows, tells};
use provider::{KEY, provider};
use serde_json::{Value, json};
use std::os::unix::fs::OpenOptionsExt;

/// Says something to a model, and returns the answer of the API with the reply.
async fn say(host: &Host, session: &str, message: &Value) -> Value {
    let path = format!("{session}/messages?wait_s=30");
    let said = host.post(&path, message).gives(200).await;
    said.body
}

/// A host whose models a provider plays in both dialects. A model is named after its reply.
async fn host(provider: &Peer) -> (Folder, Host) {
    let dialect =
        |kind: &str| json!({ "kind": kind, "baseUrl": provider.url("/v1"), "apiKeyFile": "key" });
    let model = |provider: &str, name: &str| json!({ "provider": provider, "model": name });
    let mut busy = model("openai", "busy");
    busy["fallbacks"] = json!(["locked"]);
    let folder = Folder::new(json!({
        "agents": [{ "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": [],
                     "modelAllowlist": ["*"] }],
        "providers": {
            "openai": dialect("openai-compatible"), "anthropic": dialect("anthropic"),
        },
        "models": {
            "length": model("openai", "length"), "filter": model("openai", "content_filter"),
            "refusal": model("openai", "refusal"), "whole": model("openai", "stop"),
            "silent": model("openai", "silent"),
            "claude-length": model("anthropic", "max_tokens"),
            "claude-refusal": model("anthropic", "refusal_of_claude"),
            "claude-whole": model("anthropic", "end_turn"),
            "locked": model("openai", "locked"), "busy": busy,
        },
        "defaultModel": "whole",
        "retry": { "attemptsMax": 1 },
    }));
    let mut key = std::fs::OpenOptions::new();
    key.write(true).create(true).mode(0o600);
    let mut key = key.open(folder.path().join("key")).unwrap();
    std::io::Write::write_all(&mut key, KEY.as_bytes()).unwrap();
    folder.warm(&["assistant"]).await;
    let host = folder.serve().await;
    (folder, host)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_is_not_whole_says_so_to_the_agent_the_user_and_the_client() {
    let provider = provider();
    let (folder, host) = host(&provider).await;
    for (model, stop, reported) in [
        ("length", "length", "[cut off at the length limit]"),
        (
            "filter",
            "content_filter",
            "[cut off by the provider's content filter]",
        ),
        ("refusal", "refusal", "[the model declined to answer]"),
        ("claude-length", "length", "[cut off at the length limit]"),
        (
            "claude-refusal",
            "refusal",
            "[the model declined to answer]",
        ),
    ] {
        let session = host.open("assistant").await;
        let said = say(&host, &session, &json!({ "content": "go", "model": model })).await;
        let reply = &said["reply"];
        assert_eq!(
            (reply["text"].as_str().unwrap(), &reply["stop"]),
            (format!("Once upon\n{reported}").as_str(), &json!(stop)),
            "{model}: {said}"
        );
        // The model's own words, with the mark, and behind them the agent's.
        let seen = host.get(&session).await.body;
        let messages = seen["messages"].as_array().unwrap();
        let texts: Vec<(&Value, &Value)> = messages
            .iter()
            .map(|message| (&message["text"], &message["stop"]))
            .collect();
        assert_eq!(
            texts,
            [
                (&json!("go"), &Value::Null),
                (&json!("Once upon"), &json!(stop)),
                (&json!(reported), &Value::Null)
            ]
        );
        let steps = host.steps(&session).await;
        let heard = steps
            .iter()
            .flat_map(|step| step["messages"].as_array().unwrap());
        let marked = heard.filter(|message| message["stop"] == stop);
        assert_eq!(marked.count(), 1, "{steps:?}");
        let stream = session.replacen("/sessions/", "/stream?after=0&session=", 1);
        let frames = host
            .follow(&stream, None)
            .await
            .until("stream_complete")
            .await;
        let complete = frames
            .iter()
            .find(|frame| frame.event == "content_complete");
        let complete = &complete.unwrap().data;
        shows(complete, &json!({ "content": "Once upon", "stop": stop }));
        // The next call of the same model is sent no mark.
        let said = say(&host, &session, &json!({ "content": "on", "model": model })).await;
        assert_eq!(said["outcome"], "replied", "{said}");
        let asked = provider.asked().pop().unwrap().text;
        assert!(!asked.contains("\"stop\":\""), "{asked}");
    }
    for model in ["whole", "claude-whole"] {
        let session = host.open("assistant").await;
        let said = say(&host, &session, &json!({ "content": "go", "model": model })).await;
        assert_eq!(
            (&said["reply"]["text"], said["reply"].get("stop")),
            (&json!("Once upon"), None),
            "{said}"
        );
    }
    let session = host.open("assistant").await;
    let silent = json!({ "content": "go", "model": "silent" });
    let said = say(&host, &session, &silent).await;
    let text = &said["reply"]["text"];
    assert_eq!(*text, "[the model gave no answer]", "{said}");
    // Each call ended well, so that the ledger has no dropped one.
    let audit = host.get("/api/audit?limit=1000").await.body.to_string();
    assert!(
        audit.contains("done") && !audit.contains("dropped"),
        "{audit}"
    );
    folder.over(host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_model_that_fails_is_told_in_the_providers_own_words() {
    let provider = provider();
    let (folder, host) = host(&provider).await;
    let session = host.open("assistant").await;
    let said = say(
        &host,
        &session,
        &json!({ "content": "go", "model": "busy" }),
    )
    .await;
    assert_eq!(said["outcome"], "failed", "{said}");
    let ended = host.story(&session, "run.ended.v1").await;
    let reason = ended[0]["reason"].as_str().unwrap();
    tells(
        reason,
        &[
            "limits the rate of calls of model `busy`",
            "`locked` of provider `openai` (model-refused)",
        ],
    );
    // The event of the call has what each attempt was told.
    let attempts = json!(host.steps(&session).await).to_string();
    tells(&attempts, &["Incorrect API key provided"]);
    assert!(host.stop().await.success(), "{}", folder.log());
    let log = folder.log();
    let line = |words: &[&str]| {
        let found = log
            .lines()
            .any(|line| words.iter().all(|word| line.contains(word)));
        assert!(found, "no line has {words:?}: {log}");
    };
    line(&[
        "a call of a model failed",
        "busy",
        "Slow down, please",
        "retry_after_ms=120000",
    ]);
    line(&["left alone", "busy", "paused_ms=120000"]);
    line(&[
        "a call of a model failed",
        "locked",
        "Incorrect API key provided",
    ]);
    line(&[
        "no model gave a reply",
        "busy",
        "`locked` of provider `openai` (model-refused)",
    ]);
    assert!(!log.contains(KEY), "the log has the key: {log}");
    assert!(!attempts.contains(KEY) && !reason.contains(KEY));
}

/// A model whose reply does not fit its schema because it was cut off, and one that declines.
const SCRIPT: &str = r#"
[[rule]]
when = { agent = "decline" }
reply = { text = "I can't help with that.", stop = "refusal" }

[[rule]]
when = { userContains = "cut off at the limit of its length, so make it shorter" }
reply = { text = '{"score": 1}' }

[[rule]]
reply = { text = '{"score": 1, "feedback": "so', stop = "length" }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_structured_reply_that_is_not_whole_is_mended_or_fails_at_once() {
    let file = test_program("puppet");
    let folder = Folder::new(json!({
        "agents": [puppet()],
        "components": { "puppet": { "path": file, "models": ["*"] } },
        "providers": { "scripted": { "kind": "scripted", "script": "script.toml" } },
        "models": { "m": { "provider": "scripted", "model": "m" } },
    }));
    std::fs::write(folder.path().join("script.toml"), SCRIPT).unwrap();
    folder.warm(&["puppet"]).await;
    let host = folder.serve().await;
    for (system, reported, attempts) in [
        ("judge", "m parts {\"score\": 1}", 2),
        (
            "decline",
            "m failed invalid-reply: the model declined to answer",
            1,
        ),
    ] {
        let session = host.open("puppet").await;
        let schema = json!({ "type": "object", "required": ["score"] });
        let call = json!({ "key": "m", "model": system, "hidden": true, "schema": schema });
        let steps = json!({ "steps": [{ "start": [call] }] });
        let said = say(&host, &session, &json!({ "content": steps.to_string() })).await;
        assert_eq!(said["reply"]["text"], reported, "{said}");
        let steps = host.steps(&session).await;
        let settled = &steps[1]["settled"][0];
        let made = settled["attempts"].as_array().map_or(0, Vec::len)
            + host.story(&session, "operation.attempted.v1").await.len();
        assert!(made >= attempts, "{settled}");
    }
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// A model that answers in words, and with a name when it is asked again for JSON; or at once, in a
/// fence.
const NAMES: &str = r#"
[[rule]]
when = { userContains = "in a fence" }
reply = { text = "```json\n{\"name\": \"Ada\"}\n```" }

[[rule]]
when = { userContains = "does not fit the required JSON Schema" }
reply = { text = '{"name": "Ada"}' }

[[rule]]
reply = { text = "Ada, of course." }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_asks_for_json_and_gets_what_fits_its_schema() {
    let folder = Folder::new(json!({
        "agents": [{ "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": [] }],
        "providers": { "scripted": { "kind": "scripted", "script": "script.toml" } },
        "models": { "m": { "provider": "scripted", "model": "m" } },
    }));
    std::fs::write(folder.path().join("script.toml"), NAMES).unwrap();
    let host = folder.serve().await;
    let session = host.open("assistant").await;
    let schema = |required: &str| {
        json!({ "type": "object", "required": [required],
                "properties": { "name": { "type": "string" } } })
    };
    let asking = |required: &str| json!({ "content": "who?", "reply_schema": schema(required) });
    let said = say(&host, &session, &asking("name")).await;
    assert_eq!(said["outcome"], "replied", "{said}");
    assert_eq!(said["data"], json!({ "name": "Ada" }), "{said}");
    // It is about the turn of that message alone.
    let said = say(&host, &session, &json!({ "content": "who?" })).await;
    assert_eq!(
        (&said["reply"]["text"], said.get("data")),
        (&json!("Ada, of course."), None),
        "{said}"
    );
    let mut addressed = asking("name");
    addressed["to"] = json!({ "agent": "assistant" });
    let said = host.post("/api/messages?wait_s=30", &addressed).await;
    assert_eq!(said.body["data"], json!({ "name": "Ada" }), "{said:?}");
    // JSON in a fence is JSON, and no further attempt is made.
    let fenced = host.open("assistant").await;
    let asking_fenced =
        |required: &str| json!({ "content": "who, in a fence?", "reply_schema": schema(required) });
    let said = say(&host, &fenced, &asking_fenced("name")).await;
    assert_eq!(said["data"], json!({ "name": "Ada" }), "{said}");
    let further = host.story(&fenced, "operation.attempted.v1").await;
    assert_eq!(further, [] as [Value; 0]);
    let said = say(&host, &fenced, &asking_fenced("age")).await;
    assert_eq!(
        (&said["outcome"], said.get("data")),
        (&json!("failed"), None)
    );
    // A model that gives nothing that fits fails the turn.
    let said = say(&host, &session, &asking("age")).await;
    assert_eq!(
        (&said["outcome"], said.get("data")),
        (&json!("failed"), None)
    );
    let reported = said["error"]["message"].as_str().unwrap();
    tells(reported, &["the reply does not fit its schema"]);
    for (message, field) in [
        (
            json!({ "content": "who?", "reply_schema": { "type": "nonsense" } }),
            "/reply_schema",
        ),
        (
            json!({ "content": "/queue collect", "reply_schema": {} }),
            "/content",
        ),
    ] {
        let refused = host.post(&format!("{session}/messages"), &message).await;
        assert_eq!(
            (refused.status, refused.body["field"].as_str()),
            (422, Some(field)),
            "{refused:?}"
        );
    }
    assert!(host.stop().await.success(), "{}", folder.log());
}
