//! `chat`: a conversation in the terminal, or of lines that are piped in.

mod input;
mod line;
mod question;
mod scene;

use crate::cli::Chat;
use crate::client::{Client, Frames, Refused, segment};
use crate::config::Loaded;
use crate::failure::{Exit, Failure};
use crate::fields::{list, number, text};
use crate::invocation;
use crate::terminal::{Shade, Terminal, clean};
use anyhow::anyhow;
use futures::StreamExt;
use input::Input;
use line::Line;
use question::Question;
use scene::{Scene, Shown};
use serde_json::{Value, json};
use std::time::Duration;

/// Milliseconds between two tries to reach a host that went away.
const RECONNECT_MS: u64 = 500;
/// Maximum number of such tries.
const RECONNECTS_MAX: u32 = 120;
/// Milliseconds to wait for the last event of a session.
const FAREWELL_MS: u64 = 1_000;

/// The input that the conversation waits for.
#[derive(Debug)]
enum Awaited {
    /// A message of the user.
    Message,
    Agent,
    Answer(Question),
}

/// A conversation.
struct Conversation<'a> {
    client: &'a Client,
    terminal: Terminal,
    line: Line,
    scene: Scene,
    agent: String,
    session: String,
    /// The last event that was seen.
    position: u64,
    frames: Frames,
    awaited: Awaited,
}

/// Runs the command.
pub(super) async fn chat(
    loaded: &Loaded,
    options: Chat,
    terminal: Terminal,
) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    let mut conversation = Conversation::begin(&client, loaded, options, terminal).await?;
    let ended = conversation.run(Input::start()).await?;
    if !ended {
        terminal.notice(&format!(
            "go on with: {}",
            going_on(loaded, &conversation.session)
        ));
    }
    Ok(())
}

/// Returns the command that goes on with a session.
fn going_on(loaded: &Loaded, session: &str) -> String {
    invocation::command(loaded, &format!("chat --session {session}"))
}

impl<'a> Conversation<'a> {
    async fn begin(
        client: &'a Client,
        loaded: &Loaded,
        options: Chat,
        terminal: Terminal,
    ) -> Result<Self, Failure> {
        // Read before the session is begun, so that the stream shows it from its first event on.
        let events = client.get("/api/events?limit=1").await?;
        let position = number(&events, "/last_position");
        let new = options.session.is_none();
        let session = open_session(client, loaded, options).await?;
        let agent = text(&session, "/agent_id").to_owned();
        let id = text(&session, "/id").to_owned();
        if text(&session, "/status") != "open" {
            let error = anyhow!("the session {id} has ended ({})", text(&session, "/status"));
            return Err(Failure::new(Exit::Refused, error)
                .advise(invocation::command(loaded, &format!("session show {id}"))));
        }
        let awaited = match question(&session) {
            Some(question) => Awaited::Answer(question),
            None if session.get("run_id").is_some_and(Value::is_string) => Awaited::Agent,
            // An agent that leads a session has the first word.
            None if new && text(&session, "/session_type") != "chat" => Awaited::Agent,
            None => Awaited::Message,
        };
        let frames = client.follow(&stream(&agent, &id, position)).await?;
        let view = client.get(&format!("/api/agents/{agent}")).await?;
        terminal.notice(&format!(
            "{} ({}), session {id}",
            clean(text(&view, "/name")),
            text(&view, "/path")
        ));
        let mut conversation = Self {
            client,
            terminal,
            line: Line::new(terminal),
            scene: Scene::default(),
            agent,
            session: id,
            position,
            frames,
            awaited,
        };
        if let Awaited::Answer(question) = &conversation.awaited {
            conversation.line.lines(question.lines());
        }
        conversation.line.remember_snippet(&session, new);
        Ok(conversation)
    }

    /// Goes on until the user has no more to say, which is false, or the session ends, which is
    /// true.
    async fn run(&mut self, mut input: Input) -> Result<bool, Failure> {
        loop {
            if let Awaited::Agent = self.awaited {
                if self.listen().await? {
                    return Ok(true);
                }
                continue;
            }
            self.line.prompt(matches!(self.awaited, Awaited::Answer(_)));
            let words = tokio::select! {
                words = input.next() => words,
                frame = self.frames.next() => {
                    if self.take(frame).await? {
                        return Ok(true);
                    }
                    continue;
                }
            };
            self.line.typed();
            let words = match words {
                Ok(Some(words)) => words,
                Ok(None) => return Ok(false),
                Err(wrong @ input::InputError::NotText { .. })
                    if self.terminal.is_interactive() =>
                {
                    self.terminal.failure(&wrong.into());
                    continue;
                }
                Err(wrong) => return Err(wrong.into()),
            };
            if words.trim().is_empty() {
                continue;
            }
            match self.send(words).await {
                // What was typed was wrong: whoever sits there types again.
                Err(failure) if self.terminal.is_interactive() && failure.exit == Exit::Refused => {
                    self.terminal.failure(&failure)
                }
                result => result?,
            }
        }
    }

    async fn send(&mut self, words: String) -> Result<(), Failure> {
        let (path, body) = match &self.awaited {
            Awaited::Answer(question) => {
                let response = question
                    .answer(&words)
                    .map_err(|wrong| Failure::new(Exit::Refused, anyhow!("{wrong}")))?;
                let agent = question.agent.as_deref().unwrap_or(&self.agent);
                (
                    format!("/api/agents/{agent}/respond"),
                    json!({ "call_id": question.call_id, "response": response }),
                )
            }
            Awaited::Message | Awaited::Agent => (
                format!(
                    "/api/agents/{}/sessions/{}/messages",
                    self.agent, self.session
                ),
                json!({ "content": words }),
            ),
        };
        self.client.post(&path, &body).await?;
        self.awaited = Awaited::Agent;
        Ok(())
    }

    /// Takes the next frame. True when the session has ended.
    async fn listen(&mut self) -> Result<bool, Failure> {
        let frame = self.frames.next().await;
        self.take(frame).await
    }

    async fn take(
        &mut self,
        frame: Option<Result<sse_stream::Sse, Failure>>,
    ) -> Result<bool, Failure> {
        let Some(Ok(frame)) = frame else {
            self.reconnect().await?;
            return Ok(false);
        };
        let Some(name) = &frame.event else {
            return Ok(false);
        };
        let data: Value = frame
            .data
            .as_deref()
            .and_then(|data| serde_json::from_str(data).ok())
            .unwrap_or_default();
        if let Some(position) = frame.id.as_ref().and_then(|id| id.parse().ok()) {
            self.position = position;
        }
        if self.terminal.is_json() {
            self.terminal
                .line(&json!({ "event": name, "id": frame.id, "data": data }).to_string());
        }
        for shown in self.scene.take(name, &data) {
            match shown {
                Shown::Text(text) => self.line.text(&text),
                Shown::Line(shade, text) => self.line.line(shade, &text),
                Shown::Question(question) => {
                    self.line.lines(question.lines());
                    self.awaited = Awaited::Answer(question);
                }
                Shown::TurnEnded => return self.look().await,
                Shown::SessionEnded => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Looks after the end of a turn for another one, a question, or the end of the session.
    async fn look(&mut self) -> Result<bool, Failure> {
        let session = self
            .client
            .get(&format!("/api/sessions/{}?from=1&to=0", self.session))
            .await?;
        if text(&session, "/status") != "open" {
            return self.farewell().await;
        }
        let busy =
            session.get("run_id").is_some_and(Value::is_string) || number(&session, "/waiting") > 0;
        self.awaited = match question(&session) {
            Some(question) => Awaited::Answer(question),
            None if busy => Awaited::Agent,
            None => Awaited::Message,
        };
        Ok(false)
    }

    /// Waits for the session's last event and shows it.
    async fn farewell(&mut self) -> Result<bool, Failure> {
        let deadline = tokio::time::Instant::now() + Duration::from_millis(FAREWELL_MS);
        while let Ok(Some(Ok(frame))) = tokio::time::timeout_at(deadline, self.frames.next()).await
        {
            // The turn's end was looked at before.
            if frame
                .event
                .as_deref()
                .is_some_and(|name| name.starts_with("agent.session."))
            {
                Box::pin(self.take(Some(Ok(frame)))).await?;
                break;
            }
        }
        Ok(true)
    }

    /// Reconnects after the stream ended: the host is restarting, or has stopped.
    async fn reconnect(&mut self) -> Result<(), Failure> {
        self.line.line(
            Shade::Faint,
            "(the host is away; waiting for it to come back)",
        );
        let mut tries = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(RECONNECT_MS)).await;
            match self
                .client
                .follow(&stream(&self.agent, &self.session, self.position))
                .await
            {
                Ok(frames) => {
                    self.frames = frames;
                    self.line.line(Shade::Faint, "(it is back)");
                    return Ok(());
                }
                Err(failure)
                    if failure
                        .error
                        .downcast_ref::<Refused>()
                        .is_some_and(|refused| refused.code != "STARTING") =>
                {
                    return Err(failure);
                }
                Err(failure) => {
                    tries += 1;
                    if tries == RECONNECTS_MAX {
                        return Err(failure);
                    }
                }
            }
        }
    }
}

/// Returns the session to go on with, or begins one.
async fn open_session(client: &Client, loaded: &Loaded, options: Chat) -> Result<Value, Failure> {
    if let Some(id) = &options.session {
        return client.get(&format!("/api/sessions/{}", segment(id))).await;
    }
    let agent = options.agent.unwrap_or_else(|| default_agent(loaded));
    let path = format!("/api/agents/{}/sessions", segment(&agent));
    let body = json!({ "session_type": options.session_type, "model": options.model });
    match client.post(&path, &body).await {
        Ok(session) => Ok(session),
        Err(failure) => Err(point_to_current(client, loaded, &agent, failure).await),
    }
}

fn stream(agent: &str, session: &str, position: u64) -> String {
    format!("/api/agents/{agent}/stream?view=log&session={session}&spawned=true&after={position}")
}

/// Adds advice that names the current session of an agent, which leads one structured session at a
/// time.
async fn point_to_current(
    client: &Client,
    loaded: &Loaded,
    agent: &str,
    failure: Failure,
) -> Failure {
    let active = failure
        .error
        .downcast_ref::<Refused>()
        .is_some_and(|refused| refused.code == "SESSION_ALREADY_ACTIVE");
    if !active {
        return failure;
    }
    let agents = client.get("/api/agents?all=true").await.unwrap_or_default();
    let named = |known: &&Value| {
        ["/id", "/path", "/definition"]
            .iter()
            .any(|name| text(known, name) == agent)
    };
    let mut found = list(&agents, "/agents").iter().filter(named);
    match found.find_map(|known| known.get("current_session_id")?.as_str()) {
        Some(current) => failure.advise(going_on(loaded, current)),
        None => failure,
    }
}

fn question(session: &Value) -> Option<Question> {
    let actions = list(session, "/client_actions");
    actions.first().and_then(Question::read)
}

fn default_agent(loaded: &Loaded) -> String {
    let agents = &loaded.config.agents;
    let named = agents
        .iter()
        .find(|definition| definition.agent_id.0 == "assistant");
    let shown = agents.iter().find(|definition| definition.ui_visible);
    named.or(shown).or(agents.first()).map_or_else(
        || "assistant".to_owned(),
        |definition| definition.agent_id.0.clone(),
    )
}
