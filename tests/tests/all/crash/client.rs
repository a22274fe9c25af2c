//! A client as it should be: it repeats what was not answered under the same key, watches an agent
//! over lost connections, and keeps account of what was acknowledged and shown.

use agent_host_tests::process::{Answer, Folder, Host, Line, PATIENCE, Session};
use anyhow::{Context, Result, bail, ensure};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

/// Time until a lost connection counts as a loss of the process.
const DEATH: Duration = Duration::from_secs(5);
/// The signal that ends the process at a crash point.
const ABORTED: i32 = 6;

impl Sent {
    async fn send(&mut self, host: &Host) -> reqwest::Result<u16> {
        let path = format!("{}/messages", self.exchange);
        let request = host
            .request(Method::POST, &path)
            .header("idempotency-key", &self.key)
            .json(&json!({ "content": self.text }));
        let answer = host.send(request).attempt().await?;
        if answer.status == 202 {
            self.input = Some(answer.text("input_id"));
        }
        Ok(answer.status)
    }
}

/// A client with the host that it talks to, and starts again when that has died.
pub(super) struct Client {
    folder: Folder,
    host: Option<Host>,
    follower: Option<(String, Follower)>,
    deaths: u32,
}

impl Client {
    pub(super) async fn start(folder: Folder, crash_at: Option<&str>) -> Result<Self> {
        let mut client = Self {
            folder,
            host: None,
            follower: None,
            deaths: 0,
        };
        match client.folder.start(crash_at).await {
            Ok(host) => client.host = Some(host),
            Err(ended) if ended.status.signal() == Some(ABORTED) => {
                client.deaths += 1;
                client.revive().await?;
            }
            Err(ended) => bail!("{}: {}", ended.status, ended.said),
        }
        Ok(client)
    }

    async fn revive(&mut self) -> Result<()> {
        let host = self.folder.start(None).await;
        let host = host.map_err(|ended| {
            anyhow::anyhow!("it does not start again: {}: {}", ended.status, ended.said)
        })?;
        if let Some((_, follower)) = &self.follower {
            follower.moved(host.line());
        }
        self.host = Some(host);
        Ok(())
    }

    fn host(&self) -> Result<&Host> {
        self.host.as_ref().context("a host")
    }

    /// Waits for the process's death after a lost connection, if that was it, and starts it again.
    async fn lost(&mut self) -> Result<()> {
        let host = self.host.as_mut().context("a host")?;
        if let Some(status) = host.died(DEATH).await {
            ensure!(
                status.signal() == Some(ABORTED),
                "it ended with {status}: {}",
                self.folder.log()
            );
            self.deaths += 1;
            self.revive().await?;
        }
        Ok(())
    }

    /// Asks until there is an answer, and says whether it was asked more than once.
    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<(Answer, bool)> {
        let patience = Instant::now() + PATIENCE;
        let mut again = false;
        while Instant::now() < patience {
            let host = self.host()?;
            let mut request = host.request(method.clone(), path);
            if let Some(body) = &body {
                request = request.json(body);
            }
            match host.send(request).attempt().await {
                Ok(answer) if answer.status == 503 => sleep(Duration::from_millis(20)).await,
                Ok(answer) => return Ok((answer, again)),
                Err(_) => {
                    self.lost().await?;
                    again = true;
                }
            }
        }
        bail!("{method} {path} has no answer: {}", self.folder.log())
    }

    /// Asks for something that happens once: asked again, it may be answered with a refusal,
    /// because it has happened.
    async fn once(
        &mut self,
        method: Method,
        path: &str,
        body: Option<Value>,
        done: u16,
        already: u16,
    ) -> Result<Answer> {
        let (answer, again) = self.ask(method.clone(), path, body).await?;
        ensure!(
            answer.status == done || (again && answer.status == already),
            "{method} {path}: {answer:?}"
        );
        Ok(answer)
    }

    /// Watches a talk's agent from now on.
    pub(super) fn follow(&mut self, exchange: &Session) {
        if let Some(host) = &self.host {
            self.follower = Some((
                exchange.agent_id().to_owned(),
                Follower::begin(host.line(), exchange.agent_id()),
            ));
        }
    }

    /// Begins a session. Sent twice it begins two, of which one stays empty.
    pub(super) async fn open(&mut self, definition: &str) -> Result<Session> {
        let (answer, _) = self
            .ask(
                Method::POST,
                &format!("/api/agents/{definition}/sessions"),
                Some(json!({})),
            )
            .await?;
        ensure!(answer.status == 201, "{answer:?}");
        Ok(Session::of(&answer))
    }

    /// Says something to an agent with which there is no chat yet: asked again under the same key,
    /// it is the same chat.
    pub(super) async fn begin(
        &mut self,
        ledger: &mut Ledger,
        definition: &str,
        text: &str,
    ) -> Result<Session> {
        let key = format!("begin-{definition}");
        let body = json!({ "to": { "agent": definition }, "content": text });
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            let request = self
                .host()?
                .request(Method::POST, "/api/messages")
                .header("idempotency-key", &key)
                .json(&body);
            match self.host()?.send(request).attempt().await {
                Ok(answer) if answer.status == 202 => {
                    ensure!(
                        answer.body["is_new"] == true,
                        "it is told as one that was there: {answer:?}"
                    );
                    let exchange = Session::of(&answer);
                    let input = Some(answer.text("input_id"));
                    ledger.sent.push(Sent {
                        exchange: exchange.clone(),
                        text: text.to_owned(),
                        key,
                        fate: Fate::Replied,
                        input,
                    });
                    ledger.begun.insert(exchange.id().to_owned());
                    return Ok(exchange);
                }
                Ok(answer) if matches!(answer.status, 429 | 503) => {
                    sleep(Duration::from_millis(20)).await
                }
                Ok(answer) => bail!("words that begin a chat were answered with {answer:?}"),
                Err(_) => self.lost().await?,
            }
        }
        bail!(
            "words that begin a chat were not acknowledged: {}",
            self.folder.log()
        )
    }

    /// Begins a structured session, of which an agent has one.
    pub(super) async fn begin_lesson(
        &mut self,
        ledger: &mut Ledger,
        definition: &str,
        fate: Fate,
    ) -> Result<Session> {
        let body = json!({ "session_type": "lesson" });
        self.once(
            Method::POST,
            &format!("/api/agents/{definition}/sessions"),
            Some(body),
            201,
            409,
        )
        .await?;
        let (agents, _) = self.ask(Method::GET, "/api/agents", None).await?;
        let agents = agents.body["agents"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let agent = agents
            .iter()
            .find(|agent| agent["definition"] == definition)
            .context("its agent")?;
        let text = |name: &str| {
            agent[name]
                .as_str()
                .map(str::to_owned)
                .with_context(|| format!("no {name}: {agent}"))
        };
        let exchange = Session::at(&text("id")?, &text("current_session_id")?);
        ledger.lessons.insert(exchange.id().to_owned(), fate);
        Ok(exchange)
    }

    /// Sends a message until it is acknowledged; once more does not harm.
    pub(super) async fn say(&mut self, ledger: &mut Ledger, mut sent: Sent) -> Result<()> {
        let before = sent.input.clone();
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            match sent.send(self.host()?).await {
                Ok(202) => {
                    ensure!(
                        before.is_none() || before == sent.input,
                        "another answer to the same: {before:?}, {:?}",
                        sent.input
                    );
                    ledger.sent.push(sent);
                    return Ok(());
                }
                Ok(429 | 503) => sleep(Duration::from_millis(20)).await,
                Ok(status) => bail!("a message was answered with {status}"),
                Err(_) => self.lost().await?,
            }
        }
        bail!("a message was not acknowledged: {}", self.folder.log())
    }

    /// Looks at a session until it is in some state.
    pub(super) async fn until(
        &mut self,
        exchange: &Session,
        is: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let path = format!("/api/sessions/{}?from=1&to=1", exchange.id());
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            let session = self.ask(Method::GET, &path, None).await?.0.body;
            if is(&session) {
                return Ok(session);
            }
            sleep(Duration::from_millis(10)).await;
        }
        let session = self.ask(Method::GET, &path, None).await?.0.body;
        bail!(
            "a session does not get there: {session}: {}",
            self.folder.log()
        )
    }

    /// Waits until a session has nothing to do.
    pub(super) async fn idle(&mut self, exchange: &Session) -> Result<()> {
        self.until(exchange, is_idle).await.map(drop)
    }

    /// Answers all questions until a session has nothing to do.
    pub(super) async fn answer_until_idle(
        &mut self,
        ledger: &mut Ledger,
        exchange: &Session,
    ) -> Result<()> {
        loop {
            let asks = |session: &Value| session["pending_action"].is_object();
            let session = self
                .until(exchange, |session| is_idle(session) || asks(session))
                .await?;
            let Some(call) = session["pending_action"]["tool_call_id"].as_str() else {
                return Ok(());
            };
            ensure!(
                !ledger.answered.contains(call),
                "it asks again what was answered: {session}"
            );
            let body = json!({ "tool_call_id": call, "response": true });
            self.once(
                Method::POST,
                &format!("{}/respond", exchange.agent()),
                Some(body),
                202,
                409,
            )
            .await?;
            ledger.answered.insert(call.to_owned());
        }
    }

    /// Waits until a session has all these messages, scripts left out, and nothing is left to do.
    pub(super) async fn until_heard(&mut self, exchange: &Session, words: &[&str]) -> Result<()> {
        let path = format!("/api/sessions/{}", exchange.id());
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            let session = self.ask(Method::GET, &path, None).await?.0.body;
            let messages = session["messages"].as_array().context("messages")?;
            let texts = messages
                .iter()
                .filter_map(|message| message["text"].as_str())
                .filter(|text| !text.contains("\"steps\""));
            let said: String = texts.map(|text| format!("{text}\n")).collect();
            if words.iter().all(|words| said.contains(words))
                && is_idle(&session)
                && self.is_everybody_done().await?
            {
                return Ok(());
            }
            sleep(Duration::from_millis(10)).await;
        }
        let (session, _) = self.ask(Method::GET, &path, None).await?;
        bail!(
            "{words:?} are not said: {}: {}",
            session.body,
            self.folder.log()
        )
    }

    /// Returns true if every run that began has ended.
    async fn is_everybody_done(&mut self) -> Result<bool> {
        let events = self
            .ask(Method::GET, "/api/events?limit=1000", None)
            .await?
            .0
            .body;
        let events = events["events"].as_array().context("events")?;
        let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
        Ok(count("run.started.v1") == count("run.ended.v1"))
    }

    /// Waits until a session's turn is at work on something.
    pub(super) async fn until_at_work(&mut self, exchange: &Session) -> Result<()> {
        let is_at_work = |session: &Value| {
            session["operations"]
                .as_array()
                .is_some_and(|operations| !operations.is_empty())
        };
        self.until(exchange, is_at_work).await.map(drop)
    }

    /// Archives an agent.
    pub(super) async fn archive(&mut self, exchange: &Session) -> Result<()> {
        let path = format!("{}/archive", exchange.agent());
        self.once(
            Method::POST,
            &path,
            Some(json!({ "reason": "nobody needs it" })),
            200,
            409,
        )
        .await
        .map(drop)
    }

    /// Cancels a turn in the middle of its work.
    pub(super) async fn cancel(&mut self, exchange: &Session) -> Result<()> {
        self.until_at_work(exchange).await?;
        let path = format!("{exchange}/cancel");
        let (answer, again) = self.ask(Method::POST, &path, Some(json!({}))).await?;
        ensure!(answer.body["cancelled"] == true || again, "{answer:?}");
        Ok(())
    }

    /// Terminates an agent's structured session.
    pub(super) async fn terminate(&mut self, exchange: &Session) -> Result<()> {
        self.until(exchange, |session| session["pending_action"].is_object())
            .await?;
        self.once(
            Method::DELETE,
            &format!("{}/sessions/current", exchange.agent()),
            None,
            200,
            409,
        )
        .await
        .map(drop)
    }

    /// Requeues the dead letters.
    pub(super) async fn requeue(&mut self, ledger: &mut Ledger) -> Result<()> {
        let (list, _) = self.ask(Method::GET, "/api/dead-letters", None).await?;
        let letters = list.body["dead_letters"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        ensure!(!letters.is_empty(), "no dead letters");
        for letter in letters {
            let input = letter["input_id"].as_str().context("an input")?.to_owned();
            self.once(
                Method::POST,
                &format!("/api/dead-letters/{input}/requeue"),
                None,
                202,
                404,
            )
            .await?;
            *ledger.requeued.entry(input).or_default() += 1;
        }
        Ok(())
    }

    pub(super) async fn back_up(&mut self) -> Result<()> {
        let (answer, _) = self
            .ask(Method::POST, "/api/backups", Some(json!({})))
            .await?;
        ensure!(answer.status == 201, "{answer:?}");
        Ok(())
    }

    /// Changes rows of turns that have ended, behind the host's back.
    pub(super) fn damage(&self) -> Result<()> {
        let database = rusqlite::Connection::open(self.folder.data().join("store.db"))?;
        database.busy_timeout(PATIENCE)?;
        database.execute_batch(
            "UPDATE runs SET started_at = 1 WHERE outcome IS NOT NULL; DELETE FROM recall WHERE id \
             = 1",
        )?;
        Ok(())
    }

    /// Has everything folded again, also when the host dies of it, until there is nothing to
    /// replace.
    pub(super) async fn rebuild(&mut self) -> Result<()> {
        loop {
            let (begun, again) = self
                .ask(Method::POST, "/api/rebuilds", Some(json!({})))
                .await?;
            ensure!(
                begun.status == 202 || (again && begun.status == 409),
                "{begun:?}"
            );
            let ended = loop {
                let (rebuild, _) = self.ask(Method::GET, "/api/rebuilds", None).await?;
                match rebuild.body["state"].as_str() {
                    Some("running") => sleep(Duration::from_millis(5)).await,
                    // `never`: the host has died of it.
                    Some("done" | "never") => break rebuild.body,
                    _ => bail!("{rebuild:?}"),
                }
            };
            if ended["state"] == "done" && ended["replaced"] == json!([]) {
                return Ok(());
            }
        }
    }

    /// Talks in all sessions at once until some time has passed: first what was not acknowledged,
    /// then one message after the other.
    pub(super) async fn exchange_until(
        &mut self,
        exchanges: &mut [(Session, Vec<Sent>)],
        text: fn(usize) -> String,
        pause: Duration,
    ) -> Result<()> {
        let host = self.host()?;
        let talking = join_all(exchanges.iter_mut().map(|(exchange, sent)| async move {
            loop {
                if sent.last().is_none_or(|last| last.input.is_some()) {
                    sent.push(Sent::new(exchange, &text(sent.len()), sent.len()));
                }
                let Some(last) = sent.last_mut() else { return };
                // Whatever the answer was: without an acknowledgement it is sent again.
                let _ = last.send(host).await;
                sleep(Duration::from_millis(25)).await;
            }
        }));
        let _ = tokio::time::timeout(pause, talking).await;
        Ok(())
    }

    /// Kills the host at once and starts it again.
    pub(super) async fn kill(&mut self) -> Result<()> {
        self.host.take().context("a host")?.kill().await;
        self.revive().await
    }

    /// Stops the host, which may be where it dies; then it is started and stopped once more.
    /// Returns how often it died.
    pub(super) async fn finish(mut self, ledger: &mut Ledger) -> Result<(Folder, u32)> {
        let status = self.host.take().context("a host")?.stop().await;
        if status.signal() == Some(ABORTED) {
            self.deaths += 1;
            self.revive().await?;
            let status = self.host.take().context("a host")?.stop().await;
            ensure!(
                status.success(),
                "it stopped with {status}: {}",
                self.folder.log()
            );
        } else {
            ensure!(
                status.success(),
                "it stopped with {status}: {}",
                self.folder.log()
            );
        }
        ledger.seen.extend(
            self.follower
                .map(|(agent, follower)| (agent, follower.end())),
        );
        Ok((self.folder, self.deaths))
    }
}

fn is_idle(session: &Value) -> bool {
    session["run_id"].is_null() && session["waiting"] == 0
}

/// Waits until a session of a host that does not die has nothing to do.
pub(in crate::all) async fn rest(host: &Host, session: &str) -> Result<()> {
    let patience = Instant::now() + PATIENCE;
    while Instant::now() < patience {
        if is_idle(
            &host
                .get(&format!("/api/sessions/{session}?from=1&to=1"))
                .await
                .body,
        ) {
            return Ok(());
        }
        sleep(Duration::from_millis(10)).await;
    }
    bail!("the session {session} has not come to rest")
}

/// The expected end of the turn that a message begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It ended with a reply.
    Replied,
    /// Cancelled by the user.
    Aborted,
    /// It ended at a limit.
    Limited,
    /// Not at all: the message is put aside, again and again.
    Dead,
    /// It ended with its structured session.
    Completed,
}

/// A message that was sent, once or several times, and under which id it was acknowledged.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) exchange: Session,
    pub(super) text: String,
    pub(super) key: String,
    pub(super) fate: Fate,
    pub(super) input: Option<String>,
}

impl Sent {
    pub(super) fn new(exchange: &Session, text: &str, number: usize) -> Self {
        Self {
            exchange: exchange.clone(),
            text: text.to_owned(),
            key: format!("{}-{number}", exchange.id()),
            fate: Fate::Replied,
            input: None,
        }
    }

    pub(super) fn fated(self, fate: Fate) -> Self {
        Self { fate, ..self }
    }
}

/// Everything that one client knows.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Messages.
    pub(super) sent: Vec<Sent>,
    /// Chats that messages began, where nothing else did.
    pub(super) begun: BTreeSet<String>,
    /// Structured sessions, and how the turn is to end that opens each.
    pub(super) lessons: BTreeMap<String, Fate>,
    /// Work that agents hand over and that does not end with a reply, by what it says.
    pub(super) handed: Vec<(String, Fate)>,
    /// Questions whose answer was acknowledged.
    pub(super) answered: BTreeSet<String>,
    /// Dead letters whose requeueing was acknowledged, and how often.
    pub(super) requeued: BTreeMap<String, u32>,
    /// The events of each agent that an event stream showed.
    pub(super) seen: BTreeMap<String, SeenPlaces>,
}

/// The ids of all committed events that were shown, in the order in which they arrived.
pub(super) type SeenPlaces = Vec<u64>;

/// See the module.
#[derive(Debug)]
pub(super) struct Follower {
    line: watch::Sender<Line>,
    seen: Arc<Mutex<SeenPlaces>>,
    task: AbortHandle,
}

impl Follower {
    /// Begins to watch, from the agent's first event on.
    #[expect(
        clippy::disallowed_methods,
        reason = "the task is aborted with its handle"
    )]
    pub(super) fn begin(line: Line, agent: &str) -> Self {
        let (sender, receiver) = watch::channel(line);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(follow(
            receiver,
            format!("/api/agents/{agent}/stream?view=log"),
            seen.clone(),
        ))
        .abort_handle();
        Self {
            line: sender,
            seen,
            task,
        }
    }

    /// The host is somewhere else now.
    pub(super) fn moved(&self, line: Line) {
        self.line.send_replace(line);
    }

    /// Watches no more.
    pub(super) fn end(self) -> SeenPlaces {
        self.task.abort();
        self.seen.lock().unwrap().clone()
    }
}

async fn follow(mut line: watch::Receiver<Line>, path: String, seen: Arc<Mutex<SeenPlaces>>) {
    loop {
        let here = line.borrow_and_update().clone();
        let last = seen.lock().unwrap().last().copied().unwrap_or(0);
        match here.follow(&path, Some(last)).await {
            Ok(mut frames) => {
                while let Some(frame) = frames.receive().await {
                    seen.lock().unwrap().extend(frame.id);
                }
            }
            // What was shown is not there any more: nothing will be right from here on.
            Err(Some(400)) => return seen.lock().unwrap().push(u64::MAX),
            Err(_) => {}
        }
        tokio::select! {
            _ = line.changed() => {}
            () = sleep(Duration::from_millis(50)) => {}
        }
    }
}
