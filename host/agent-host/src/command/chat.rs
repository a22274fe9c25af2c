//! `chat`: a conversation in the terminal, or of lines that are piped in.

mod command;
mod input;
mod open;
mod question;
mod scene;

use crate::answer::{is_true, list, number, text};
use crate::cli::Chat;
use crate::client::{Client, Frames, Refused};
use crate::config::Loaded;
use crate::failure::{Exit, Failure};
use crate::invocation;
use crate::terminal::{Shade, Terminal, clean};
use anyhow::anyhow;
use command::Command;
use domain::error_code::ErrorCode;
use futures::StreamExt;
use input::{Editor, Input, InputError, Line, Printer, TerminalSettings, Typed};
use open::{
    first_recalled, going_on, has_ended, lasting, open_session, question, stream_path,
    with_last_messages,
};
use question::Question;
use scene::{Ending, Scene, Shown};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Milliseconds between two tries to reach a host that went away.
const RECONNECT_MS: u64 = 500;
/// Maximum number of such tries.
const RECONNECTS_MAX: u32 = 120;
/// Milliseconds for which a stream must last without an event for the host to be back.
const BACK_MS: u64 = 500;
/// Milliseconds to wait for the last event of a session.
const FAREWELL_MS: u64 = 1_000;
/// The file of the history in the user's folder for such things.
const HISTORY_FILE: &str = "agent-host/chat-history";

/// The input that the conversation waits for.
#[derive(Debug)]
enum Awaited {
    /// A message of the user.
    Message,
    Agent,
    Answer(Question),
}

/// The way in which a conversation goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    GoesOn,
    /// The user leaves it.
    Left,
    /// Its session has ended.
    Ended,
}

/// A conversation.
struct Conversation<'a> {
    client: &'a Client,
    terminal: Terminal,
    line: Line,
    scene: Scene,
    agent: String,
    session: String,
    /// The last event that was seen; none before the first.
    position: Option<u64>,
    frames: Frames,
    awaited: Awaited,
    /// True from the first Ctrl-C until the turn has ended.
    stopping: bool,
    /// The turn that failed: of lines that are piped in any one, at a terminal the last.
    failed: Option<String>,
}

/// Runs the command.
pub(super) async fn chat(
    loaded: &Loaded,
    options: Chat,
    terminal: Terminal,
) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    let settings = TerminalSettings::of_stdin();
    let editor = editor(terminal)?;
    let (editor, printer) = editor.unzip();
    let mut interrupts = signal(SignalKind::interrupt())?;
    let line = Line::new(terminal, printer);
    let mut conversation = tokio::select! {
        begun = Conversation::begin(&client, loaded, options, line) => begun?,
        _ = interrupts.recv() => return Ok(()),
    };
    let course = conversation
        .run(Input::start(editor), &mut interrupts)
        .await;
    conversation.line.leave();
    drop(settings);
    if course? == Course::Left {
        let id = &conversation.session;
        terminal.notice(&format!("go on with: {}", going_on(loaded, id)));
    }
    match conversation.failed {
        None => Ok(()),
        Some(reported) => Err(turn_failed(reported)),
    }
}

fn turn_failed(reported: String) -> Failure {
    Failure::new(Exit::Failed, anyhow!(reported))
}

/// Returns the editor of a person at a terminal, with what prints above its line; none where lines
/// are piped in.
fn editor(terminal: Terminal) -> Result<Option<(Editor, Printer)>, Failure> {
    if !terminal.is_interactive() {
        return Ok(None);
    }
    let (mut editor, fault) = Editor::new(history_file())?;
    if let Some(fault) = fault {
        terminal.notice(&fault);
    }
    // A terminal that cannot be edited on has none.
    Ok(editor.printer().ok().map(|printer| (editor, printer)))
}

/// The file of the history, where the XDG base directories have what a user did.
fn history_file() -> Option<PathBuf> {
    let folder = |name: &str| {
        let folder = PathBuf::from(std::env::var_os(name)?);
        folder.is_absolute().then_some(folder)
    };
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
    Some(state?.join(HISTORY_FILE))
}

impl<'a> Conversation<'a> {
    async fn begin(
        client: &'a Client,
        loaded: &Loaded,
        options: Chat,
        line: Line,
    ) -> Result<Self, Failure> {
        let terminal = line.terminal();
        let new = options.session.is_none();
        let opened = open_session(client, loaded, options).await?;
        let agent = text(&opened, "/agent_id").to_owned();
        let id = text(&opened, "/session_id").to_owned();
        if has_ended(&opened) {
            let error = anyhow!("the session {id} has ended ({})", text(&opened, "/status"));
            return Err(Failure::new(Exit::Refused, error)
                .advise(invocation::command(loaded, &format!("session show {id}"))));
        }
        // A new session is streamed from its beginning, another from where it was read: nothing is
        // missed, and what comes twice is known by its ids.
        let (session, position) = if new {
            (opened, 0)
        } else {
            let session = with_last_messages(client, &opened).await?;
            let position = number(&session, "/position");
            (session, position)
        };
        let path = stream_path(&agent, &id, Some(position));
        let frames = client.follow(&path).await?;
        let view = client.get(&format!("/api/agents/{agent}")).await?;
        terminal.notice(&format!(
            "{} ({}), session {id}",
            clean(text(&view, "/name")),
            text(&view, "/path")
        ));
        let mut conversation = Self {
            client,
            terminal,
            line,
            scene: Scene::default(),
            agent,
            session: id,
            position: Some(position),
            frames,
            awaited: Awaited::Message,
            stopping: false,
            failed: None,
        };
        if !new {
            conversation.recall(&session);
        }
        conversation.await_what(&session);
        // An agent that leads a session has the first word.
        let leads = new && text(&session, "/session_type") != "chat";
        if let (true, Awaited::Message) = (leads, &conversation.awaited) {
            conversation.awaited = Awaited::Agent;
        }
        Ok(conversation)
    }

    /// Shows the last messages of a session that is continued.
    fn recall(&mut self, session: &Value) {
        let shown = self.scene.recall(list(session, "/messages"));
        if !self.terminal.is_interactive() {
            return;
        }
        let before = first_recalled(session) - 1;
        if before > 0 {
            let line = format!("(messages 1 to {before}: session show {})", self.session);
            self.line.line(Shade::Faint, &line);
        }
        for shown in shown {
            self.show(shown);
        }
    }

    /// Goes on until the user has no more to say, or the session ends.
    async fn run(&mut self, mut input: Input, interrupts: &mut Signal) -> Result<Course, Failure> {
        loop {
            let course = match self.awaited {
                Awaited::Agent => self.listen(interrupts).await?,
                Awaited::Message | Awaited::Answer(_) => self.ask(&mut input, interrupts).await?,
            };
            if course != Course::GoesOn {
                return Ok(course);
            }
        }
    }

    /// Takes the next frame, while the agent works.
    async fn listen(&mut self, interrupts: &mut Signal) -> Result<Course, Failure> {
        let taken = tokio::select! {
            taken = self.next_frame() => Some(taken?),
            _ = interrupts.recv() => None,
        };
        match taken {
            None if self.stopping => Ok(self.leave_turn()),
            None => self.stop(interrupts).await,
            Some(course) => Ok(course),
        }
    }

    /// Waits for a line of the user and sends it; takes the next frame if that comes before.
    async fn ask(&mut self, input: &mut Input, interrupts: &mut Signal) -> Result<Course, Failure> {
        let prompt = self.line.prompt(matches!(self.awaited, Awaited::Answer(_)));
        let typed = tokio::select! {
            typed = input.next(prompt) => typed,
            _ = interrupts.recv() => return Ok(Course::Left),
            course = self.next_frame() => return course,
        };
        self.line.typed();
        let words = match typed {
            Ok(Typed::Line(words)) => words,
            Ok(Typed::End | Typed::Interrupted) => return Ok(Course::Left),
            Err(wrong @ InputError::NotText { .. }) if self.terminal.is_interactive() => {
                self.terminal.failure(&wrong.into());
                return Ok(Course::GoesOn);
            }
            Err(wrong) => return Err(wrong.into()),
        };
        if words.trim().is_empty() {
            return Ok(Course::GoesOn);
        }
        let done = match Command::read(&words) {
            Some(Ok(command)) => Box::pin(self.obey(command)).await,
            Some(Err(wrong)) => Err(Failure::new(Exit::Refused, anyhow!("{wrong}"))),
            None => self.send(words).await,
        };
        match done {
            // What was typed was wrong, or the host is away: whoever sits there types again.
            Err(failure)
                if self.terminal.is_interactive()
                    && matches!(failure.exit, Exit::Refused | Exit::Unreachable) =>
            {
                self.terminal.failure(&failure);
                Ok(Course::GoesOn)
            }
            result => result.map(|()| Course::GoesOn),
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
                    json!({ "tool_call_id": question.tool_call_id, "response": response }),
                )
            }
            Awaited::Message | Awaited::Agent => (
                format!("{}/messages", self.path()),
                json!({ "content": words }),
            ),
        };
        let receipt = self.client.post(&path, &body).await?;
        if let (None, Some(position)) = (
            self.position,
            receipt.get("position").and_then(Value::as_u64),
        ) {
            self.position = Some(position.saturating_sub(1));
        }
        self.awaited = Awaited::Agent;
        Ok(())
    }

    /// Stops the turn in progress: what it does further would be paid.
    async fn stop(&mut self, interrupts: &mut Signal) -> Result<Course, Failure> {
        self.stopping = true;
        self.line
            .line(Shade::Faint, "(stopping the turn; Ctrl-C again leaves)");
        let path = format!("{}/cancel", self.path());
        let body = json!({});
        let stopped = tokio::select! {
            stopped = self.client.post(&path, &body) => stopped?,
            _ = interrupts.recv() => return Ok(self.leave_turn()),
        };
        if is_true(&stopped, "/cancelled") {
            return Ok(Course::GoesOn);
        }
        // It had ended by itself, or it has not begun.
        self.stopping = false;
        self.inspect().await
    }

    /// Leaves before the turn has come to its end.
    fn leave_turn(&mut self) -> Course {
        if !self.terminal.is_interactive() {
            self.note_failure("the turn was left while it was stopped".to_owned());
        }
        Course::Left
    }

    /// Notes why a turn of piped lines failed, and tells of the one before it. The last one is told
    /// at the end.
    fn note_failure(&mut self, reported: String) {
        if let Some(before) = self.failed.replace(reported) {
            self.terminal.failure(&turn_failed(before));
        }
    }

    fn path(&self) -> String {
        format!("/api/agents/{}/sessions/{}", self.agent, self.session)
    }

    async fn next_frame(&mut self) -> Result<Course, Failure> {
        let frame = self.frames.next().await;
        let course = self.take(frame).await?;
        // At the end it is shown when the prompt has been left.
        if course == Course::GoesOn {
            self.line.flush();
        }
        Ok(course)
    }

    async fn take(
        &mut self,
        frame: Option<Result<sse_stream::Sse, Failure>>,
    ) -> Result<Course, Failure> {
        let Some(Ok(frame)) = frame else {
            return self.reconnect().await;
        };
        let Some(name) = &frame.event else {
            return Ok(Course::GoesOn);
        };
        let data: Value = frame
            .data
            .as_deref()
            .and_then(|data| serde_json::from_str(data).ok())
            .unwrap_or_default();
        if let Some(position) = frame.id.as_ref().and_then(|id| id.parse().ok()) {
            self.position = Some(position);
        }
        if self.terminal.is_json() {
            self.terminal
                .line(&json!({ "event": name, "id": frame.id, "data": data }).to_string());
        }
        for shown in self.scene.take(name, &data) {
            match shown {
                Shown::TurnEnded(ending) => return self.turn_ended(ending).await,
                Shown::SessionEnded => return Ok(Course::Ended),
                // What was on its way when the user stopped it.
                Shown::Text(_) if self.stopping => {}
                shown => self.show(shown),
            }
        }
        Ok(Course::GoesOn)
    }

    fn show(&mut self, shown: Shown) {
        match shown {
            Shown::Text(text) => self.line.text(&text),
            Shown::Said(text) => self.line.said(&text),
            Shown::Line(shade, text) => self.line.line(shade, &text),
            Shown::Question(question) => self.put(question),
            Shown::TurnEnded(_) | Shown::SessionEnded => {}
        }
    }

    /// Puts a question to the user, unless it is put already.
    fn put(&mut self, question: Question) {
        if let Awaited::Answer(put) = &self.awaited
            && put.tool_call_id == question.tool_call_id
        {
            return;
        }
        self.line.lines(question.lines());
        self.awaited = Awaited::Answer(question);
    }

    /// Notes how a turn ended, and looks what comes after it.
    async fn turn_ended(&mut self, ending: Ending) -> Result<Course, Failure> {
        self.line.end_text();
        let was_stopped = std::mem::take(&mut self.stopping);
        let interactive = self.terminal.is_interactive();
        match ending {
            Ending::Failed(reported) if interactive => {
                self.line.line(Shade::Bold, &reported);
                self.failed = Some(reported);
            }
            Ending::Failed(reported) | Ending::Cancelled(reported) if !interactive => {
                self.note_failure(reported);
            }
            Ending::Cancelled(reported) => {
                self.line.line(Shade::Bold, &reported);
                self.failed = None;
            }
            Ending::Done if interactive => self.failed = None,
            Ending::Failed(_) | Ending::Done | Ending::Compacted => {}
        }
        if was_stopped && !interactive {
            return Ok(Course::Left);
        }
        self.inspect().await
    }

    /// Looks for another turn, a question, or the end of the session.
    async fn inspect(&mut self) -> Result<Course, Failure> {
        let session = self.client.session(&self.session).await?;
        if has_ended(&session) {
            return self.farewell().await;
        }
        self.await_what(&session);
        Ok(Course::GoesOn)
    }

    /// Waits for what a session waits for.
    fn await_what(&mut self, session: &Value) {
        let busy =
            session.get("run_id").is_some_and(Value::is_string) || number(session, "/waiting") > 0;
        match question(session) {
            Some(question) => self.put(question),
            None if busy => self.awaited = Awaited::Agent,
            None => self.awaited = Awaited::Message,
        }
    }

    /// Waits for the session's last event and shows it.
    async fn farewell(&mut self) -> Result<Course, Failure> {
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
        Ok(Course::Ended)
    }

    /// Reconnects after the stream ended: the host is restarting, or has stopped.
    async fn reconnect(&mut self) -> Result<Course, Failure> {
        self.line.line(
            Shade::Faint,
            "(the host is away; waiting for it to come back)",
        );
        self.line.flush();
        let mut tries = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(RECONNECT_MS)).await;
            let path = stream_path(&self.agent, &self.session, self.position);
            let followed = match self.client.follow(&path).await {
                Ok(frames) => lasting(frames, Duration::from_millis(BACK_MS))
                    .await
                    .ok_or_else(still_starting),
                Err(failure) => Err(failure),
            };
            match followed {
                Ok(frames) => {
                    self.frames = frames;
                    self.line.line(Shade::Faint, "(it is back)");
                    // Without a position the stream has only what is new.
                    return match self.position {
                        Some(_) => Ok(Course::GoesOn),
                        None => Box::pin(self.inspect()).await,
                    };
                }
                Err(failure)
                    if failure
                        .error
                        .downcast_ref::<Refused>()
                        .is_some_and(|refused| refused.code != Some(ErrorCode::Starting)) =>
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

fn still_starting() -> Failure {
    Failure::new(Exit::Unreachable, anyhow!("the host is still starting"))
}
