//! Bad input on every endpoint of the API, as its own document lists them: none of it breaks the
//! host, and none of it changes anything.

mod cases;
mod conflicts;
mod document;
mod nesting;
mod requests;
mod roles;

use agent_host_tests::process::{Folder, Host, Session, acting, is_asking, puppets};
use cases::{Case, Must};
use document::{Document, Operation};
use futures::StreamExt;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Requests that run side by side.
const SIDE_BY_SIDE: usize = 16;
/// Characters of an answer, of a path and of a body that a finding shows.
const SHOWN_CHARS: usize = 500;
/// Findings that are shown.
const FINDINGS_SHOWN: usize = 100;
/// The id of nothing.
const NOBODY: &str = "00000000-0000-4000-8000-00000000dead";
/// Visitors who take turns: one alone may say too little in a minute for all that is tried. From
/// one address no more than ten come at once.
const VISITORS: usize = 8;
/// The codes of refusals because there is nothing of a kind at all.
const NONE_THERE: [&str; 8] = [
    "CONVERSATION_NOT_FOUND",
    "DEAD_LETTER_NOT_FOUND",
    "OUTBOUND_MESSAGE_NOT_FOUND",
    "NOTE_NOT_FOUND",
    "NOT_QUARANTINED",
    "PAIRING_NOT_FOUND",
    "TASK_NOT_FOUND",
    "TURN_NOT_FOUND",
];
/// The code of a call from outside that proves nothing.
const UNPROVEN: &str = "CALL_UNVERIFIED";
/// Text that never stands in an answer, because it is of the host's own code.
const INSIDES: [&str; 3] = ["panicked", "stack backtrace", ".rs:"];

/// The status and code of the refusal that a request has to get.
#[derive(Debug, Clone, Copy)]
struct ExpectedRefusal<'a> {
    status: u16,
    code: &'a str,
}

impl<'a> ExpectedRefusal<'a> {
    fn new(status: u16, code: &'a str) -> Self {
        Self { status, code }
    }
}

/// A host that has something of everything. Both agents are the operator's, with bob as a mentee,
/// carol and erin as shared and dave as an observer; alice is not assigned.
struct Stage {
    host: Host,
    folder: Folder,
    /// A structured session that waits for an answer.
    asking: Session,
    /// A chat in which nothing has been said.
    chatting: Session,
    /// The question that waits.
    call: String,
    /// The id of an API key that is not used.
    key: String,
    /// The digest of a file in the session that waits.
    file: String,
    /// The input with which the session that waits began.
    input: String,
    /// The tokens of visitors of the chat for web pages.
    visitors: Vec<String>,
    /// Number of requests that visitors sent.
    visits: AtomicUsize,
    /// The operations that the host's own document lists.
    operations: Vec<Operation>,
}

fn config() -> Value {
    let asks = json!([
        { "start": [{ "key": "q", "client": "confirmation", "lock": true }] },
        { "complete": { "score": 1 } },
    ]);
    let says = json!([{ "reply": "hello" }]);
    let mut spare = acting("spare", &says);
    spare["templateFor"] = json!(["local"]);
    let mut config = puppets(&json!([
        acting("asks", &asks),
        acting("chats", &says),
        // Nobody has an agent of this one.
        spare,
        // The old API leads no sessions without it.
        { "agentId": "tutor", "displayName": "Tutor", "component": "tutor", "toolAllowlist": [] },
    ]));
    // What triggers of a clock need.
    config["components"]["schedule"] = json!({});
    config["connectors"]["site"] = json!({
        "component": "direct", "agent": "chats",
        "configuration": { "origins": ["https://www.example.org"] },
    });
    config
}

/// Has visitors come to the chat for web pages, and returns their tokens.
async fn visitors(host: &Host) -> Vec<String> {
    let mut tokens = Vec::new();
    for _ in 0..VISITORS {
        let coming = host.bare(Method::POST, "/chat/site/visitors");
        let received = host.send(coming).gives(201).await;
        tokens.push(received.text("token"));
    }
    tokens
}

async fn stage() -> Stage {
    let (folder, host) = Folder::serving(config(), &["puppet", "schedule", "tutor"]).await;
    let asking = host.open_as("asks", "lesson").await;
    let chatting = host.open_as("chats", "chat").await;
    for place in [&asking, &chatting] {
        for (user, role) in [
            ("bob", "mentee"),
            ("carol", "shared"),
            ("dave", "observer"),
            ("erin", "shared"),
        ] {
            host.assign(place.agent(), user, role).await;
        }
    }
    let issued = host
        .post("/api/keys", &json!({ "name": "spare", "scopes": ["read"] }))
        .gives(201)
        .await;
    host.post("/api/triggers", &requests::trigger("yearly"))
        .gives(201)
        .await;
    let visitors = visitors(&host).await;
    let call = question(&host, &asking).await;
    let upload = host
        .request(Method::POST, &format!("{asking}/files?name=notes.txt"))
        .body("notes");
    let uploaded = host.send(upload).gives(201).await;
    let operations = Document::of(&host).await.operations();
    let events = host.events(&format!("&session={}", asking.id())).await;
    let input = events
        .iter()
        .find_map(|event| event["data"]["input_id"].as_str())
        .unwrap()
        .to_owned();
    Stage {
        host,
        folder,
        asking,
        chatting,
        call,
        key: issued.text("id"),
        file: uploaded.text("digest"),
        input,
        visitors,
        visits: AtomicUsize::new(0),
        operations,
    }
}

/// Waits for a question of the session and returns its id.
async fn question(host: &Host, session: &str) -> String {
    let seen = host.until(session, is_asking).await;
    seen["ui_state"]["active_widget"]["tool_call_id"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The response to a request, as text: a body that should be JSON and is not is seen as well.
struct RawAnswer {
    status: u16,
    content_type: String,
    text: String,
}

/// Sends a request and reads what comes back; of an event stream the head alone, because the rest
/// would not end.
async fn send(request: RequestBuilder) -> Result<RawAnswer, String> {
    let lost = |error: reqwest::Error| format!("{error:?}");
    let response = request.send().await.map_err(lost)?;
    let status = response.status().as_u16();
    let content_type = response
        .headers()
        .get("content-type")
        .and_then(|value| value.to_str().ok())
        .unwrap_or("none")
        .to_owned();
    if content_type.starts_with("text/event-stream") {
        return Ok(RawAnswer {
            status,
            content_type,
            text: String::new(),
        });
    }
    let body = response.bytes().await.map_err(lost)?;
    Ok(RawAnswer {
        status,
        content_type,
        text: String::from_utf8_lossy(&body).into_owned(),
    })
}

impl RawAnswer {
    /// The `code` of the problem that it is.
    fn code(&self) -> String {
        let problem: Option<Value> = serde_json::from_str(&self.text).ok();
        problem
            .and_then(|problem| problem["code"].as_str().map(str::to_owned))
            .unwrap_or_else(|| "none".to_owned())
    }

    fn shown(&self) -> String {
        format!("{} {}: {}", self.status, self.content_type, cut(&self.text))
    }

    /// Returns the fault of the response to bad input; none when it is as it must be.
    fn wrong(&self, operation: &Operation, must: Must) -> Option<String> {
        if let Some(inside) = INSIDES.iter().find(|inside| self.text.contains(**inside)) {
            return Some(format!("it tells `{inside}`"));
        }
        match self.status {
            200..=299 if must == Must::BeRefused => Some("it was taken".to_owned()),
            200..=299 => None,
            400 | 404 | 413 | 415 | 422 => self.wrong_problem(operation),
            // Without a proof, calls from outside are refused alike, whatever else is wrong.
            401 if operation.is_proven() => self.wrong_problem(operation),
            // An odd part may be ignored. The answer is then about a conflict of the rest.
            409 if must == Must::BeAnswered => self.wrong_problem(operation),
            // The operator has every scope, and nothing is busy or broken here: 401, 403, 429 and
            // 5xx would say what is not so. Nor does 409: what is in the way was found after what
            // is wrong was passed over.
            _ => Some("this status does not say what is wrong".to_owned()),
        }
    }

    fn wrong_problem(&self, operation: &Operation) -> Option<String> {
        if self.content_type != "application/problem+json" {
            return Some("it is no problem".to_owned());
        }
        let Ok(problem) = serde_json::from_str::<Value>(&self.text) else {
            return Some("the problem is no JSON".to_owned());
        };
        if let Some(name) = ["type", "title", "detail", "code"]
            .iter()
            .find(|name| problem[**name].as_str().is_none_or(str::is_empty))
        {
            return Some(format!("the problem has no `{name}`"));
        }
        if problem["status"] != self.status {
            return Some("the problem has another `status`".to_owned());
        }
        if !operation.may_say(self.status, &self.code()) {
            return Some(format!(
                "it is not documented that it may say {} `{}`",
                self.status,
                self.code()
            ));
        }
        let field = problem["field"].as_str()?;
        (!operation.has(field)).then(|| format!("`{field}` is nothing that this request has"))
    }
}

/// Returns the fault in the result of a case; none when it is as it must be.
fn fault(
    operation: &Operation,
    case: &Case,
    received: &Result<RawAnswer, String>,
) -> Option<String> {
    let wrong = match received {
        Ok(said) => format!("{}: {}", said.wrong(operation, case.must)?, said.shown()),
        Err(lost) => format!("no answer: {}", cut(lost)),
    };
    Some(format!(
        "{} {}: {}: {wrong}",
        operation.method,
        cut(&case.path),
        case.what
    ))
}

fn cut(text: &str) -> String {
    text.chars().take(SHOWN_CHARS).collect()
}

/// Fails with what was found, if anything was.
#[track_caller]
fn end(findings: &[String]) {
    let shown: Vec<&str> = findings
        .iter()
        .take(FINDINGS_SHOWN)
        .map(String::as_str)
        .collect();
    assert!(
        findings.is_empty(),
        "{} findings:\n{}",
        findings.len(),
        shown.join("\n")
    );
}

impl Stage {
    /// The position of the last event. What is refused is no event: the ledger has what guests
    /// asked for, not what clients did.
    async fn position(&self) -> u64 {
        let events = self.host.get("/api/events?limit=1").await;
        events.body["last_position"]
            .as_u64()
            .unwrap_or_else(|| panic!("no position: {events:?}"))
    }

    /// A finding when something was recorded after a position.
    async fn changed_since(&self, position: u64, what: &str) -> Option<String> {
        if self.position().await == position {
            return None;
        }
        let events = self
            .host
            .get(&format!("/api/events?after={position}&limit=1000"))
            .await;
        let types: Vec<&Value> = events.body["events"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|event| &event["type"])
            .collect();
        Some(format!("{what}: it recorded {types:?}"))
    }

    /// Everything that a request could have changed, as the API shows it: each path, and the answer
    /// byte by byte.
    async fn inspect(&self) -> Vec<(String, String)> {
        let lists = [
            "/api/agents?all=true",
            "/api/agents?all=true&status=archived",
            "/api/keys?all=true",
            "/api/dead-letters",
            "/api/triggers",
            "/api/triggers/yearly/history",
            "/api/connectors",
            "/api/connectors/site/outbound-messages",
            "/api/pairings",
        ];
        let mut paths = lists.map(str::to_owned).to_vec();
        for place in [&self.asking, &self.chatting] {
            let agent = place.agent();
            paths.extend(
                ["", "/sessions", "/history", "/preferences"]
                    .map(|below| format!("{agent}{below}")),
            );
            paths.extend(["", "/files"].map(|below| format!("{place}{below}")));
        }
        let mut seen = Vec::new();
        for path in paths {
            let received = send(self.host.request(Method::GET, &path)).await;
            seen.push((
                path,
                received.map_or_else(|lost| lost, |said| format!("{} {}", said.status, said.text)),
            ));
        }
        seen
    }

    /// Findings of what is no longer as it was.
    async fn compare(&self, before: &[(String, String)]) -> Vec<String> {
        let after = self.inspect().await;
        let changed = before.iter().zip(&after).filter(|(was, is)| was != is);
        changed
            .map(|((path, was), (_, is))| format!("GET {path} was {} and is {}", cut(was), cut(is)))
            .collect()
    }

    /// A request with the credential that an endpoint takes: a visitor's at the chat for web pages,
    /// else the operator's.
    fn request(&self, operation: &Operation, path: &str) -> RequestBuilder {
        let method = operation.method.clone();
        if !operation.is_of_visitors {
            return self.host.request(method, path);
        }
        let turn = self.visits.fetch_add(1, Ordering::Relaxed) % self.visitors.len();
        let request = self.host.bare(method, path);
        request.bearer_auth(&self.visitors[turn])
    }

    /// A request of the operator's, with a body when there is one.
    fn ask(&self, method: Method, path: &str, body: &Value) -> RequestBuilder {
        let request = self.host.request(method, path);
        if body.is_null() {
            request
        } else {
            request.json(body)
        }
    }

    /// Findings when a request is not refused with this status and code, or changes something.
    async fn refuses(
        &self,
        what: &str,
        request: RequestBuilder,
        wanted: ExpectedRefusal<'_>,
    ) -> Vec<String> {
        let position = self.position().await;
        let mut findings = Vec::new();
        let sent = request.try_clone().and_then(|request| request.build().ok());
        let operation = sent.and_then(|sent| {
            let at = |operation: &&Operation| operation.is_at(sent.method(), sent.url().path());
            // `sessions/current` looks like the id of a session as well.
            self.operations
                .iter()
                .filter(at)
                .min_by_key(|operation| operation.ids.len())
        });
        match send(request).await {
            Ok(said)
                if operation
                    .is_some_and(|operation| !operation.may_say(said.status, &said.code())) =>
            {
                findings.push(format!(
                    "{}: it is not documented that it may say {}",
                    cut(what),
                    said.shown()
                ));
            }
            Ok(said) if said.status == wanted.status && said.code() == wanted.code => {}
            Ok(said) => findings.push(format!(
                "{}: {wanted:?} was to come, and came {}",
                cut(what),
                said.shown()
            )),
            Err(lost) => findings.push(format!("{}: no answer: {}", cut(what), cut(&lost))),
        }
        findings.extend(self.changed_since(position, &cut(what)).await);
        findings
    }
}

/// Sends an endpoint everything that it must not take, and finds what it does not refuse as it
/// must.
async fn sweep(stage: &Stage, operation: &Operation) -> Vec<String> {
    let found: Vec<Option<String>> = futures::stream::iter(cases::all(stage, operation))
        .map(|case| async move {
            let received = send(case.request(stage, operation)).await;
            fault(operation, &case, &received)
        })
        .buffer_unordered(SIDE_BY_SIDE)
        .collect()
        .await;
    let mut findings: Vec<String> = found.into_iter().flatten().collect();
    if !operation.is_open {
        let body = requests::body(stage, operation).unwrap_or_default();
        for token in ["", "wrong", &stage.host.token[1..]] {
            let request = stage
                .host
                .bare(operation.method.clone(), &requests::path(stage, operation))
                .bearer_auth(token)
                .json(&body);
            findings.extend(
                stage
                    .refuses(
                        &format!("{operation} with the token `{token}`"),
                        request,
                        ExpectedRefusal::new(401, "UNAUTHORIZED"),
                    )
                    .await,
            );
        }
    }
    findings
}

/// Sends valid requests to every endpoint. This shows that a refused request was refused for its
/// fault and for nothing else.
async fn take(stage: &Stage, mut operations: Vec<Operation>) -> Vec<String> {
    // What takes something away comes last.
    operations.sort_by_key(|operation| operation.method == Method::DELETE);
    let mut findings = Vec::new();
    for operation in operations {
        let request = stage.request(&operation, &requests::path(stage, &operation));
        let request = match requests::body(stage, &operation) {
            Some(body) => request.json(&body),
            None if operation.takes_bytes => request.body(requests::bytes(&operation)),
            None => request,
        };
        match send(request).await {
            // Some meet what an earlier one has done.
            Ok(RawAnswer {
                status: 200..=299 | 409,
                ..
            }) => {}
            // What it proves itself by is in no document.
            Ok(said) if operation.is_proven() && said.code() == UNPROVEN => {}
            // There is none to be requeued, released or forgotten, none has ended, and nothing was
            // handed over.
            Ok(said) if NONE_THERE.contains(&said.code().as_str()) => {}
            Ok(said) => findings.push(format!(
                "{operation}: as it should be, it was not taken: {}",
                said.shown()
            )),
            Err(lost) => findings.push(format!(
                "{operation}: as it should be, it was not answered: {}",
                cut(&lost)
            )),
        }
    }
    findings
}

#[tokio::test(flavor = "multi_thread")]
async fn every_endpoint_refuses_bad_input_with_a_problem_and_nothing_changes() {
    let stage = stage().await;
    let mut operations = Document::of(&stage.host).await.operations();
    let mut findings: Vec<String> = operations
        .iter()
        .flat_map(|operation| operation.faults.clone())
        .collect();
    let before = stage.inspect().await;
    // What signed requests are refused for is tested with the agents that sign them.
    operations.retain(|operation| !operation.is_signed());
    for operation in &operations {
        let position = stage.position().await;
        findings.extend(sweep(&stage, operation).await);
        findings.extend(stage.changed_since(position, &operation.to_string()).await);
    }
    findings.extend(stage.compare(&before).await);
    findings.extend(take(&stage, operations).await);
    end(&findings);
}
