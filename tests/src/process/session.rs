//! Sessions as clients lead them: opened, talked in, and looked at until they are so.

use super::PATIENCE;
use super::line::{Answer, Line, Reply};
use crate::boxed::Boxed;
use serde_json::{Value, json};
use std::fmt;
use std::ops::Deref;
use std::panic::Location;
use std::time::Duration;

/// Time between two polls at what is waited for.
const POLL: Duration = Duration::from_millis(5);

/// The path of a session: `/api/agents/{agent}/sessions/{session}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session(String);

impl Session {
    /// The session of an answer that names it and its agent.
    #[must_use]
    pub fn of(opened: &Answer) -> Self {
        Self::at(&opened.text("agent_id"), &opened.text("session_id"))
    }

    /// A session of an agent, by their ids.
    #[must_use]
    pub fn at(agent: &str, id: &str) -> Self {
        Self(format!("/api/agents/{agent}/sessions/{id}"))
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        id_of(self)
    }

    /// The path of its agent.
    #[must_use]
    pub fn agent(&self) -> &str {
        self.0.split("/sessions/").next().unwrap_or_default()
    }

    /// The id of its agent.
    #[must_use]
    pub fn agent_id(&self) -> &str {
        id_of(self.agent())
    }
}

impl Deref for Session {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn id_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The message by which a puppet plays these steps.
#[must_use]
pub fn script(steps: &Value) -> String {
    json!({ "steps": steps }).to_string()
}

/// Returns true if a session has nothing to do.
#[must_use]
pub fn rests(session: &Value) -> bool {
    session["run_id"].is_null() && session["waiting"] == 0
}

/// Returns true if a structured session waits for an answer.
#[must_use]
pub fn is_asking(session: &Value) -> bool {
    session["status"] == "awaiting_client_action"
}

impl Line {
    /// Opens a session of the first type that an agent leads: one by its path or id, or the user's
    /// of a definition.
    #[track_caller]
    pub fn open(&self, agent: &str) -> Boxed<'static, Session> {
        self.open_with(agent, &json!({}))
    }

    /// Opens a session of a type.
    #[track_caller]
    pub fn open_as(&self, agent: &str, session_type: &str) -> Boxed<'static, Session> {
        self.open_with(agent, &json!({ "session_type": session_type }))
    }

    /// Opens a session with these properties.
    #[track_caller]
    pub fn open_with(&self, agent: &str, wanted: &Value) -> Boxed<'static, Session> {
        let agent = agent.strip_prefix("/api/agents/").unwrap_or(agent);
        let opened = self.post(&format!("/api/agents/{agent}/sessions"), wanted);
        let opened = opened.gives(201);
        Box::pin(async move { Session::of(&opened.await) })
    }

    /// Says something in a session, which is accepted.
    #[track_caller]
    pub fn say(&self, session: &str, words: &str) -> Boxed<'static, Answer> {
        let said = json!({ "content": words });
        self.post(&format!("{session}/messages"), &said).gives(202)
    }

    /// Has a puppet play steps.
    #[track_caller]
    pub fn play(&self, session: &str, steps: &Value) -> Boxed<'static, Answer> {
        self.say(session, &script(steps))
    }

    /// Says something in a session, and waits for the outcome.
    #[track_caller]
    pub fn turn(&self, session: &str, words: &str) -> Reply {
        let said = json!({ "content": words });
        self.post(&format!("{session}/messages?wait_s=30"), &said)
    }

    /// Says something in a session, and waits for the text of the reply.
    ///
    /// # Panics
    /// None comes.
    #[track_caller]
    pub fn reply(&self, session: &str, words: &str) -> Boxed<'static, String> {
        let said = self.turn(session, words).gives(200);
        Box::pin(async move {
            let said = said.await;
            let reply = said.body["reply"]["text"].as_str();
            reply.unwrap_or_else(|| panic!("{said:?}")).to_owned()
        })
    }

    /// Makes an agent of a definition, and returns its path.
    #[track_caller]
    pub fn make(&self, definition: &str) -> Boxed<'static, String> {
        let wanted = json!({ "definition": definition });
        let made = self.post("/api/agents", &wanted).gives(201);
        Box::pin(async move { format!("/api/agents/{}", made.await.text("id")) })
    }

    /// Gives a user a role with an agent.
    #[track_caller]
    pub fn assign(&self, agent: &str, user: &str, role: &str) -> Boxed<'static, Answer> {
        let wanted = json!({ "user_id": user, "role": role });
        self.post(&format!("{agent}/assign"), &wanted).gives(201)
    }

    /// Answers a question.
    #[track_caller]
    pub fn respond(&self, agent: &str, call: &Value, response: &Value) -> Reply {
        let answer = json!({ "tool_call_id": call, "response": response });
        self.post(&format!("{agent}/respond"), &answer)
    }

    /// Reads what is at a path until it is there and so.
    ///
    /// # Panics
    /// When that does not come in time.
    #[track_caller]
    pub fn until<'a>(
        &'a self,
        path: &'a str,
        is: impl Fn(&Value) -> bool + 'a,
    ) -> impl Future<Output = Value> + 'a {
        let at = Location::caller();
        async move {
            let looking = async {
                loop {
                    let seen = self.get(path).await;
                    if seen.status == 200 && is(&seen.body) {
                        return seen.body;
                    }
                    tokio::time::sleep(POLL).await;
                }
            };
            match tokio::time::timeout(PATIENCE, looking).await {
                Ok(seen) => seen,
                Err(_) => panic!("{at}: it does not come to that: {:?}", self.get(path).await),
            }
        }
    }

    /// Waits until a session has nothing to do.
    #[track_caller]
    pub fn rest<'a>(&'a self, session: &'a str) -> Boxed<'a, Value> {
        Box::pin(self.until(session, rests))
    }

    /// Waits until a session has nothing to do, and asserts that these words are in its thread.
    ///
    /// # Panics
    /// They are not.
    #[track_caller]
    pub fn heard<'a>(&'a self, session: &'a str, words: &'a str) -> Boxed<'a, Value> {
        let at = Location::caller();
        let rests = self.rest(session);
        Box::pin(async move {
            let seen = rests.await;
            let thread = seen["messages"].to_string();
            assert!(thread.contains(words), "{at}: no `{words}` in: {seen}");
            seen
        })
    }

    /// Waits until a session asks its client something, and returns the first question.
    #[track_caller]
    pub fn question<'a>(&'a self, session: &'a str) -> Boxed<'a, Value> {
        let asking = self.until(session, |seen| seen["pending_action"].is_object());
        Box::pin(async move { asking.await["pending_action"].take() })
    }

    /// The events that a query selects, the oldest first.
    pub fn events<'a>(&'a self, query: &'a str) -> Boxed<'a, Vec<Value>> {
        Box::pin(async move {
            let mut events = Vec::new();
            let mut after = 0;
            loop {
                let path = format!("/api/events?limit=1000&after={after}{query}");
                let page = self.get(&path).gives(200).await.body;
                events.extend(page["events"].as_array().cloned().unwrap_or_default());
                after = page["next_after"].as_u64().unwrap_or(u64::MAX);
                if Some(after) >= page["last_position"].as_u64() {
                    return events;
                }
            }
        })
    }

    /// The position of the last event.
    ///
    /// # Panics
    /// There is none.
    pub fn position(&self) -> Boxed<'_, u64> {
        Box::pin(async move {
            let page = self.get("/api/events?limit=1").gives(200).await;
            page.body["last_position"].as_u64().expect("a position")
        })
    }

    /// The events of a kind, the oldest first.
    pub fn events_of<'a>(&'a self, kind: &'a str) -> Boxed<'a, Vec<Value>> {
        Box::pin(async move {
            let events = self.events("").await.into_iter();
            events.filter(|event| event["type"] == kind).collect()
        })
    }

    /// The data of the events of a kind, the oldest first.
    pub fn data_of<'a>(&'a self, kind: &'a str) -> Boxed<'a, Vec<Value>> {
        Box::pin(async move {
            let events = self.events_of(kind).await.into_iter();
            events.map(|mut event| event["data"].take()).collect()
        })
    }

    /// The data of a session's or an agent's events of a kind, the oldest first.
    pub fn story<'a>(&'a self, of: &'a str, kind: &'a str) -> Boxed<'a, Vec<Value>> {
        Box::pin(async move {
            let is_agent = of.rsplit('/').nth(1) == Some("agents");
            let subject = if is_agent { "agent" } else { "session" };
            let events = self.events(&format!("&{subject}={}", id_of(of))).await;
            let events = events.into_iter().filter(|event| event["type"] == kind);
            events.map(|mut event| event["data"].take()).collect()
        })
    }

    /// The steps of a session's runs, the oldest first.
    pub fn steps<'a>(&'a self, session: &'a str) -> Boxed<'a, Vec<Value>> {
        Box::pin(async move {
            let events = self.events(&format!("&session={}", id_of(session))).await;
            let steps =
                events
                    .into_iter()
                    .filter_map(|mut event| match event["type"].as_str()? {
                        "run.started.v1" => Some(event["data"].get_mut("first_step")?.take()),
                        "run.stepped.v1" => Some(event["data"].take()),
                        _ => None,
                    });
            steps.collect()
        })
    }
}
