//! Other agents and sessions within one `chat`: going to them, and coming back.

use super::command::{Command, HELP};
use super::open::{has_ended, stream_path, with_last_messages, without_messages};
use super::scene::Scene;
use super::{Awaited, Conversation};
use crate::client::{Frames, Refused, segment};
use crate::failure::{Exit, Failure};
use crate::fields::{is_true, list, number, text};
use crate::terminal::{Shade, clean, one_line};
use anyhow::anyhow;
use serde_json::{Value, json};

/// Sessions that a list shows.
const SESSIONS_SHOWN: u16 = 50;

/// A session to go to, and the stream of it.
struct Place {
    agent: String,
    session: String,
    frames: Frames,
    /// The last event that was seen; none if the stream has only what is new.
    position: Option<u64>,
}

impl Conversation<'_> {
    /// Does what a line asks `chat` for. A refusal names no part of the request that `chat` made of
    /// the line: nobody wrote that.
    pub(super) async fn obey(&mut self, command: Command) -> Result<(), Failure> {
        let done = match command {
            Command::Agent { name, message } => self.go_to_agent(&name, message).await,
            Command::Back => self.go_back().await,
            Command::New => self.go_to_new().await,
            Command::Agents => self.list_agents().await,
            Command::Sessions => self.list_sessions().await,
            Command::Session { id } => self.go_to_session(&id).await,
            Command::Rename { name } => self.change(&json!({ "name": name }), "(named)").await,
            Command::Pin { pinned: true } => {
                self.change(&json!({ "pinned": true }), "(pinned)").await
            }
            Command::Pin { pinned: false } => {
                let change = json!({ "pinned": false });
                self.change(&change, "(not pinned any more)").await
            }
            Command::Fork { name } => self.go_to_fork(name).await,
            Command::Clear => self.clear().await,
            Command::Delete => self.delete().await,
            Command::Help => {
                let lines = HELP.iter();
                lines.for_each(|line| self.line.line(Shade::Plain, line));
                Ok(())
            }
        };
        done.map_err(|mut failure| {
            if let Some(refused) = failure.error.downcast_mut::<Refused>() {
                refused.field = None;
            }
            failure
        })
    }

    async fn go_to_agent(&mut self, name: &str, message: Option<String>) -> Result<(), Failure> {
        let path = format!("{}/switch", self.path());
        let body = json!({ "agent": name, "message": message });
        let there = self.client.post(&path, &body).await?;
        // Nothing of the answer to the message is missed.
        let position = number(&there, "/position").checked_sub(1);
        let place = self.place(&there, position).await?;
        self.enter(place).await?;
        if position.is_some() {
            self.awaited = Awaited::Agent;
        }
        Ok(())
    }

    async fn go_to_new(&mut self) -> Result<(), Failure> {
        let path = format!("/api/agents/{}/sessions", self.agent);
        let body = json!({ "session_type": "chat" });
        let opened = self.client.post(&path, &body).await?;
        let place = Place {
            agent: text(&opened, "/agent_id").to_owned(),
            session: text(&opened, "/session_id").to_owned(),
            frames: self
                .client
                .follow(&stream_path(
                    &self.agent,
                    text(&opened, "/session_id"),
                    Some(0),
                ))
                .await?,
            position: Some(0),
        };
        self.enter(place).await
    }

    async fn go_to_session(&mut self, id: &str) -> Result<(), Failure> {
        let there = without_messages(self.client, id).await?;
        if has_ended(&there) {
            let error = anyhow!("that session has ended ({})", text(&there, "/status"));
            return Err(Failure::new(Exit::Refused, error));
        }
        let place = self.place(&there, None).await?;
        self.enter(place).await
    }

    /// Changes what the session is called, or where it stands in lists.
    async fn change(&mut self, change: &Value, reported: &str) -> Result<(), Failure> {
        self.client.patch(&self.path(), change).await?;
        self.line.line(Shade::Faint, reported);
        Ok(())
    }

    async fn go_to_fork(&mut self, name: Option<String>) -> Result<(), Failure> {
        let path = format!("{}/fork", self.path());
        let forked = self.client.post(&path, &json!({ "name": name })).await?;
        let place = self.place(&forked, None).await?;
        self.enter(place).await
    }

    async fn clear(&mut self) -> Result<(), Failure> {
        let path = format!("{}/clear", self.path());
        self.client.post(&path, &json!({})).await?;
        // Its messages are counted from 1 again.
        self.scene = Scene::default();
        self.line.line(Shade::Faint, "(the session is empty)");
        Ok(())
    }

    async fn delete(&mut self) -> Result<(), Failure> {
        self.client.delete(&self.path()).await?;
        self.line
            .line(Shade::Faint, "(deleted; this is a new session)");
        self.go_to_new().await
    }

    async fn go_back(&mut self) -> Result<(), Failure> {
        let here = without_messages(self.client, &self.session).await?;
        let switch_origin = here.pointer("/attributes/switched_from");
        let Some(switch_origin) = switch_origin.filter(|outcome| outcome.is_object()) else {
            let error = anyhow!("nobody switched to this session: there is nowhere to go back to");
            return Err(Failure::new(Exit::Refused, error).advise(
                "`/agent NAME` goes to another agent, and `/sessions` lists the sessions",
            ));
        };
        // The stream begins before the summary does.
        let place = self.place(switch_origin, None).await?;
        let path = format!("{}/return", self.path());
        let returned = self.client.post(&path, &json!({})).await?;
        self.enter(place).await?;
        if returned.get("run_id").is_some_and(Value::is_string) {
            self.line
                .line(Shade::Faint, "(a summary of what you did there follows)");
            self.awaited = Awaited::Agent;
        }
        Ok(())
    }

    /// Follows the session that an answer names.
    async fn place(&self, named: &Value, position: Option<u64>) -> Result<Place, Failure> {
        let agent = text(named, "/agent_id").to_owned();
        let session = text(named, "/session_id").to_owned();
        let path = stream_path(&agent, &session, position);
        Ok(Place {
            frames: self.client.follow(&path).await?,
            agent,
            session,
            position,
        })
    }

    /// Goes on in another session.
    async fn enter(&mut self, place: Place) -> Result<(), Failure> {
        let is_streamed = place.position.is_some();
        let client = self.client;
        let mut session = without_messages(client, &place.session).await?;
        let view = client
            .get(&format!("/api/agents/{}", segment(&place.agent)))
            .await?;
        self.agent = place.agent;
        self.session = place.session;
        self.frames = place.frames;
        self.position = place.position;
        self.scene = Scene::default();
        self.terminal.notice(&format!(
            "{} ({}), session {}",
            clean(text(&view, "/name")),
            text(&view, "/path"),
            self.session
        ));
        // What the stream shows is not shown twice.
        if !is_streamed {
            session = with_last_messages(client, &session).await?;
            self.recall(&session);
        }
        self.await_what(&session);
        Ok(())
    }

    async fn list_agents(&mut self) -> Result<(), Failure> {
        let listed = self.client.definitions().await?;
        let shown = list(&listed, "/definitions").iter();
        for definition in shown.filter(|definition| is_true(definition, "/ui_visible")) {
            let reported = text(definition, "/description");
            let line = match reported.is_empty() {
                true => text(definition, "/definition").to_owned(),
                false => format!(
                    "{}  {}",
                    text(definition, "/definition"),
                    one_line(reported)
                ),
            };
            self.line.line(Shade::Plain, &line);
        }
        Ok(())
    }

    /// Lists the sessions that take input, in groups by agent.
    async fn list_sessions(&mut self) -> Result<(), Failure> {
        let path = format!("/api/sessions?open=true&limit={SESSIONS_SHOWN}");
        let listed = self.client.get(&path).await?;
        for group in list(&listed, "/agents") {
            let label = one_line(text(group, "/label"));
            let line = format!("{label} ({})", text(group, "/path"));
            self.line.line(Shade::Plain, &line);
            for session in list(group, "/sessions") {
                let id = text(session, "/session_id");
                let here = if id == self.session { "*" } else { " " };
                let words = [text(session, "/name"), text(session, "/last_snippet")];
                let reported = words.into_iter().find(|words| !words.is_empty());
                let line = format!("{here} {id}  {}", one_line(reported.unwrap_or_default()));
                self.line.line(Shade::Plain, line.trim_end());
            }
        }
        if is_true(&listed, "/more") {
            let line = format!("(the latest {SESSIONS_SHOWN}; `session list` has the others)");
            self.line.line(Shade::Faint, &line);
        }
        Ok(())
    }
}
