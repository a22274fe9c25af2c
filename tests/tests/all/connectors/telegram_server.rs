//! The Bot API of Telegram, as far as the connector uses it: updates by long polling, messages,
//! edits, buttons and files, and faults on demand.

use agent_host_tests::patience::until;
use agent_host_tests::peer::{Peer, ReceivedRequest, Says};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The bot's token.
pub(super) const TOKEN: &str = "123456:AAE-test-token_of-a-bot";
/// Time between two polls for an update, or for what was sent.
const POLL: Duration = Duration::from_millis(5);
/// Time after which nothing more is expected to be sent.
const QUIET: Duration = Duration::from_millis(800);

/// A trouble with one call of a method.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// Too many calls: seconds to wait are named.
    Limited(u32),
    /// The call is wrong.
    Wrong(&'static str),
    /// The group has another id now.
    Migrated(i64),
    /// It is done, and the answer is lost.
    Lost,
    /// It is not done, and no answer comes.
    Silence,
}

/// A message in a chat.
#[derive(Debug, Clone)]
pub(super) struct Message {
    /// Its id.
    pub(super) id: i64,
    /// The chat.
    pub(super) chat: String,
    /// The text, as it was sent.
    pub(super) text: String,
    /// The whole request.
    pub(super) asked: Value,
    /// The time at which it was sent.
    pub(super) at: Instant,
}

impl Message {
    /// Returns its buttons: labels and what they send.
    pub(super) fn buttons(&self) -> Vec<(String, String)> {
        let rows = self.asked["reply_markup"]["inline_keyboard"].as_array();
        let rows = rows.into_iter().flatten();
        let buttons = rows.flat_map(|row| row.as_array().into_iter().flatten());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        buttons
            .map(|it| (text(&it["text"]), text(&it["callback_data"])))
            .collect()
    }
}

#[derive(Debug, Default)]
struct State {
    updates: Vec<(i64, Value)>,
    next_update: i64,
    messages: Vec<Message>,
    edits: Vec<(i64, String)>,
    files: BTreeMap<String, Vec<u8>>,
    faults: BTreeMap<&'static str, VecDeque<Fault>>,
    is_revoked: bool,
    /// Polls that are given everything again, whatever they ask for.
    repeats: u32,
}

/// The server.
#[derive(Debug)]
pub(super) struct Telegram {
    pub(super) server: Peer,
    state: Arc<Mutex<State>>,
}

impl Telegram {
    pub(super) fn new() -> Self {
        let state = Arc::new(Mutex::new(State {
            next_update: 1_000,
            ..State::default()
        }));
        let shared = Arc::clone(&state);
        Self {
            server: Peer::new(move |asked, _| answer(&shared, asked)),
            state,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Returns an update with a new id and this content.
    pub(super) fn update(&self, content: Value) -> Value {
        let mut state = self.state();
        state.next_update += 1;
        let mut update = content;
        update["update_id"] = json!(state.next_update);
        update
    }

    /// Returns the offset of a poll that has seen all updates so far.
    pub(super) fn next_offset(&self) -> i64 {
        self.state().next_update + 1
    }

    /// Has updates come with one poll, in this order.
    pub(super) fn push(&self, updates: Vec<Value>) {
        let updates = updates
            .into_iter()
            .map(|it| (it["update_id"].as_i64().unwrap(), it));
        self.state().updates.extend(updates);
    }

    /// Returns an update with words of a person in their own chat.
    pub(super) fn saying(&self, from: i64, text: &str) -> Value {
        let chat = json!({ "id": from, "type": "private" });
        self.update(json!({ "message": message(from, &chat, &json!({ "text": text })) }))
    }

    /// Has a person say something in their own chat.
    pub(super) fn say(&self, from: i64, text: &str) {
        let update = self.saying(from, text);
        self.push(vec![update]);
    }

    /// Has a person say something in a group.
    pub(super) fn say_in(&self, group: i64, from: i64, text: &str) {
        let chat = json!({ "id": group, "type": "supergroup" });
        let said = message(from, &chat, &json!({ "text": text }));
        let update = self.update(json!({ "message": said }));
        self.push(vec![update]);
    }

    /// Has a person send something else than words in their own chat.
    pub(super) fn send(&self, from: i64, content: &Value) {
        let chat = json!({ "id": from, "type": "private" });
        let update = self.update(json!({ "message": message(from, &chat, content) }));
        self.push(vec![update]);
    }

    /// Has a person send a file with words.
    pub(super) fn send_file(&self, from: i64, text: &str, file: &[u8]) {
        self.state()
            .files
            .insert("file-1".to_owned(), file.to_vec());
        let document = json!({
            "file_id": "file-1", "file_name": "notes.txt", "mime_type": "text/plain",
            "file_size": file.len(),
        });
        let chat = json!({ "id": from, "type": "private" });
        let content = json!({ "caption": text, "document": document });
        let update = self.update(json!({ "message": message(from, &chat, &content) }));
        self.push(vec![update]);
    }

    /// Has a person press a button.
    pub(super) fn press(&self, from: i64, data: &str) {
        let chat = json!({ "id": from, "type": "private" });
        let update = self.update(json!({ "callback_query": {
            "id": "q", "from": person(from), "data": data,
            "message": { "message_id": 1, "date": 1, "chat": chat },
        } }));
        self.push(vec![update]);
    }

    /// Has the next calls of a method meet faults, one each.
    pub(super) fn fail(&self, method: &'static str, faults: &[Fault]) {
        let mut state = self.state();
        state.faults.entry(method).or_default().extend(faults);
    }

    /// Has the token count no longer.
    pub(super) fn revoke(&self) {
        self.state().is_revoked = true;
    }

    /// Has the next poll be given everything again.
    pub(super) fn repeat(&self) {
        self.state().repeats = 1;
    }

    /// Returns the messages that were sent so far.
    pub(super) fn sent(&self) -> Vec<Message> {
        self.state().messages.clone()
    }

    /// Returns the edits so far: of which message, and its text.
    pub(super) fn edits(&self) -> Vec<(i64, String)> {
        self.state().edits.clone()
    }

    /// Waits for so many messages, and returns all there are.
    pub(super) async fn messages(&self, count: usize) -> Vec<Message> {
        until(async || self.sent().len() >= count).await;
        self.sent()
    }

    /// Waits until nothing more is sent, and returns the texts of all messages.
    pub(super) async fn quiet(&self) -> Vec<String> {
        sleep(QUIET).await;
        self.sent().into_iter().map(|it| it.text).collect()
    }

    /// Returns the calls of a method so far.
    pub(super) fn calls(&self, method: &str) -> Vec<ReceivedRequest> {
        let path = format!("/bot{TOKEN}/{method}");
        let mut asked = self.server.asked();
        asked.retain(|it| it.path == path);
        asked
    }

    /// Waits for a call of a method.
    pub(super) async fn called(&self, method: &str) {
        until(async || !self.calls(method).is_empty()).await;
    }
}

fn person(id: i64) -> Value {
    json!({ "id": id, "is_bot": false, "first_name": format!("P{id}") })
}

fn message(from: i64, chat: &Value, content: &Value) -> Value {
    let mut message = json!({
        "message_id": 1, "date": 1_700_000_000, "from": person(from), "chat": chat,
    });
    let fields = content.as_object().unwrap().clone();
    message.as_object_mut().unwrap().extend(fields);
    message
}

fn answer(state: &Mutex<State>, asked: &ReceivedRequest) -> Says {
    if let Some(path) = asked.path.strip_prefix(&format!("/file/bot{TOKEN}/")) {
        return match state.lock().unwrap().files.get(path) {
            Some(file) => Says::Body(200, "application/octet-stream", file.clone()),
            None => refused(404, "Not Found", &Value::Null),
        };
    }
    let method = asked.path.strip_prefix(&format!("/bot{TOKEN}/"));
    let is_revoked = state.lock().unwrap().is_revoked;
    let Some(method) = method.filter(|_| !is_revoked) else {
        return refused(401, "Unauthorized", &Value::Null);
    };
    let trouble = {
        let mut state = state.lock().unwrap();
        state.faults.get_mut(method).and_then(VecDeque::pop_front)
    };
    match trouble {
        None => done(state, method, asked),
        Some(Fault::Limited(seconds)) => {
            let parameters = json!({ "retry_after": seconds });
            refused(429, "Too Many Requests", &parameters)
        }
        Some(Fault::Wrong(words)) => refused(400, words, &Value::Null),
        Some(Fault::Migrated(to)) => {
            let words = "Bad Request: group chat was upgraded to a supergroup chat";
            refused(400, words, &json!({ "migrate_to_chat_id": to }))
        }
        Some(Fault::Lost) => {
            done(state, method, asked);
            Says::Cut
        }
        Some(Fault::Silence) => Says::Open(Vec::new()),
    }
}

fn refused(status: u16, words: &str, parameters: &Value) -> Says {
    let mut body = json!({ "ok": false, "error_code": status, "description": words });
    if !parameters.is_null() {
        body["parameters"] = parameters.clone();
    }
    Says::Json(status, body)
}

fn done(state: &Mutex<State>, method: &str, asked: &ReceivedRequest) -> Says {
    let body = &asked.body;
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let result = match method {
        "getUpdates" => updates(state, body),
        "sendMessage" => {
            let mut state = state.lock().unwrap();
            let id = i64::try_from(state.messages.len()).unwrap() + 1;
            state.messages.push(Message {
                id,
                chat: text("chat_id"),
                text: text("text"),
                asked: body.clone(),
                at: asked.at,
            });
            json!({ "message_id": id })
        }
        "editMessageText" => {
            let id = body["message_id"].as_i64().unwrap();
            state.lock().unwrap().edits.push((id, text("text")));
            json!({ "message_id": id })
        }
        "getFile" => json!({ "file_id": text("file_id"), "file_path": text("file_id") }),
        "sendChatAction" | "answerCallbackQuery" | "editMessageReplyMarkup" => json!(true),
        _ => return refused(404, "Not Found", &Value::Null),
    };
    Says::Json(200, json!({ "ok": true, "result": result }))
}

/// Waits for updates from an offset on, as long as the poll says.
fn updates(state: &Mutex<State>, asked: &Value) -> Value {
    let until = Instant::now() + Duration::from_secs(asked["timeout"].as_u64().unwrap());
    loop {
        let found: Vec<Value> = {
            let mut state = state.lock().unwrap();
            let offset = asked["offset"].as_i64().filter(|_| state.repeats == 0);
            let from = offset.unwrap_or_default();
            let found = state.updates.iter().filter(|(id, _)| *id >= from);
            let found = found.map(|(_, update)| update.clone()).collect();
            state.repeats = state.repeats.saturating_sub(1);
            found
        };
        if !found.is_empty() || Instant::now() >= until {
            return json!(found);
        }
        thread::sleep(POLL);
    }
}
