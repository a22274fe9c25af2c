//! A client as it should be: it repeats what was not answered under the same key, and keeps account of what was.

use agent_host_tests::process::{Answer, Folder, Host, PATIENCE};
use anyhow::{Context, Result, bail, ensure};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Until a lost connection counts as a loss of the process, and not only of the connection.
const DEATH: Duration = Duration::from_secs(5);
/// What the process ends with at a crash point.
const ABORTED: i32 = 6;

/// A session and its agent.
#[derive(Debug, Clone)]
pub(super) struct Talk {
    pub(super) agent: String,
    pub(super) session: String,
}

/// A message that was sent, once or several times, and under which id it was acknowledged.
#[derive(Debug)]
pub(super) struct Sent {
    talk: Talk,
    text: String,
    pub(super) key: String,
    pub(super) input: Option<String>,
}

impl Sent {
    pub(super) fn new(talk: &Talk, text: &str, number: usize) -> Self {
        Self { talk: talk.clone(), text: text.to_owned(), key: format!("{}-{number}", talk.session), input: None }
    }

    async fn send(&mut self, host: &Host) -> reqwest::Result<u16> {
        let path = format!("/api/agents/{}/sessions/{}/messages", self.talk.agent, self.talk.session);
        let request = host.request(Method::POST, &path).header("idempotency-key", &self.key).json(&json!({ "content": self.text }));
        let answer = host.send(request).await?;
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
    deaths: u32,
}

impl Client {
    pub(super) async fn start(folder: Folder, crash_at: Option<&str>) -> Result<Self> {
        let mut client = Self { folder, host: None, deaths: 0 };
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
        self.host = Some(host.map_err(|ended| anyhow::anyhow!("it does not start again: {}: {}", ended.status, ended.said))?);
        Ok(())
    }

    fn host(&self) -> Result<&Host> {
        self.host.as_ref().context("a host")
    }

    /// After a lost connection: waits for the process's death, if that was it, and starts it again.
    async fn lost(&mut self) -> Result<()> {
        let host = self.host.as_mut().context("a host")?;
        if let Some(status) = host.died(DEATH).await {
            ensure!(status.signal() == Some(ABORTED), "it ended with {status}: {}", self.folder.log());
            self.deaths += 1;
            self.revive().await?;
        }
        Ok(())
    }

    async fn ask(&mut self, method: Method, path: &str, body: Option<Value>) -> Result<Answer> {
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            let host = self.host()?;
            let mut request = host.request(method.clone(), path);
            if let Some(body) = &body {
                request = request.json(body);
            }
            match host.send(request).await {
                Ok(answer) if answer.status == 503 => sleep(Duration::from_millis(20)).await,
                Ok(answer) => return Ok(answer),
                Err(_) => self.lost().await?,
            }
        }
        bail!("{method} {path} has no answer: {}", self.folder.log())
    }

    /// Begins a session. Sent twice it begins two, of which one stays empty.
    pub(super) async fn open(&mut self, definition: &str) -> Result<Talk> {
        let answer = self.ask(Method::POST, &format!("/api/agents/{definition}/sessions"), Some(json!({}))).await?;
        ensure!(answer.status == 201, "{answer:?}");
        Ok(Talk { agent: answer.text("agent_id"), session: answer.text("id") })
    }

    /// Sends a message until it is acknowledged; once more does not harm.
    pub(super) async fn say(&mut self, sent: &mut Sent) -> Result<()> {
        let before = sent.input.clone();
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            match sent.send(self.host()?).await {
                Ok(202) => {
                    ensure!(before.is_none() || before == sent.input, "another answer to the same: {before:?}, {:?}", sent.input);
                    return Ok(());
                }
                Ok(429 | 503) => sleep(Duration::from_millis(20)).await,
                Ok(status) => bail!("a message was answered with {status}"),
                Err(_) => self.lost().await?,
            }
        }
        bail!("a message was not acknowledged: {}", self.folder.log())
    }

    /// Waits until a session has nothing to do.
    pub(super) async fn idle(&mut self, talk: &Talk) -> Result<()> {
        let path = format!("/api/sessions/{}?from=1&to=1", talk.session);
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            let session = self.ask(Method::GET, &path, None).await?.body;
            if session["run_id"].is_null() && session["waiting"] == 0 {
                return Ok(());
            }
            sleep(Duration::from_millis(10)).await;
        }
        let session = self.ask(Method::GET, &path, None).await?.body;
        bail!("a session has not come to rest: {session}: {}", self.folder.log())
    }

    pub(super) async fn back_up(&mut self) -> Result<()> {
        let answer = self.ask(Method::POST, "/api/backups", Some(json!({}))).await?;
        ensure!(answer.status == 201, "{answer:?}");
        Ok(())
    }

    /// Talks in all sessions at once until some time has passed: first what was not acknowledged, then one message after the other.
    pub(super) async fn talk_until(&mut self, talks: &mut [(Talk, Vec<Sent>)], text: fn(usize) -> String, pause: Duration) -> Result<()> {
        let host = self.host()?;
        let talking = join_all(talks.iter_mut().map(|(talk, sent)| async move {
            loop {
                if sent.last().is_none_or(|last| last.input.is_some()) {
                    sent.push(Sent::new(talk, &text(sent.len()), sent.len()));
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

    /// Stops the host, which may be where it dies; then it is started and stopped once more. Returns how often it died.
    pub(super) async fn finish(mut self) -> Result<(Folder, u32)> {
        let status = self.host.take().context("a host")?.stop().await;
        if status.signal() == Some(ABORTED) {
            self.deaths += 1;
            self.revive().await?;
            let status = self.host.take().context("a host")?.stop().await;
            ensure!(status.success(), "it stopped with {status}: {}", self.folder.log());
        } else {
            ensure!(status.success(), "it stopped with {status}: {}", self.folder.log());
        }
        Ok((self.folder, self.deaths))
    }
}
