//! A host without components, and a client that sees every byte.

use crate::{Access, Api, Limits, Server, Stopper, router};
use broker::{Broker, Catalogue, Parts};
use domain::definition::DefinitionId;
use domain::delegate::Priority;
use domain::digest::{Digest, Salt};
use domain::event::{
    AgentCreated, Event, InputAccepted, NewEvent, PreferencesUpdated, RunSettled, RunStarted,
    SessionOpened, Source, Subject,
};
use domain::id::ConversationId;
use domain::id::{AgentId, EventId, InputId, OperationId, RunId, SessionId, Stream};
use domain::operation::{ReplyTo, Settlement};
use domain::path::{AgentConfig, PathKind};
use domain::step::OperationOutcome;
use domain::time::Timestamp;
use domain::user::UserId;
use edge::{Edge, EdgeParts, EdgeSettings};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use store::{Commit, Expected, Store};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub(super) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

pub(super) struct Host {
    pub(super) api: Api,
    pub(super) address: SocketAddr,
    pub(super) stopper: Stopper,
    pub(super) store: Store,
    pub(super) broker: Broker,
    pub(super) edge: Edge,
    pub(super) data: tempfile::TempDir,
    _tasks: TaskTracker,
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The media type, without its parameters.
    pub(super) fn media_type(&self) -> String {
        let headers = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut media_types = headers.filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let media_type = media_types
            .next()
            .map(|(_, value)| value)
            .unwrap_or_default();
        let essence = media_type.split(';').next().unwrap_or_default();
        essence.trim().to_ascii_lowercase()
    }

    pub(super) fn has(&self, header: &str) -> bool {
        self.head
            .to_ascii_lowercase()
            .contains(&header.to_ascii_lowercase())
    }
}

impl Host {
    pub(super) async fn start() -> Self {
        Self::start_with(Limits::default()).await
    }

    pub(super) async fn start_with(limits: Limits) -> Self {
        let host = Self::starting(limits).await;
        host.api.open(host.broker.clone(), host.edge.clone());
        host
    }

    /// A host that lets in by other rules.
    pub(super) async fn start_letting_in(change: impl FnOnce(Access) -> Access) -> Self {
        let host = Self::starting_letting_in(Limits::default(), EdgeSettings::default(), change);
        let host = host.await;
        host.api.open(host.broker.clone(), host.edge.clone());
        host
    }

    /// A host with triggers and connectors.
    pub(super) async fn start_with_edge(settings: EdgeSettings) -> Self {
        let host = Self::starting_letting_in(Limits::default(), settings, |access| access).await;
        host.api.open(host.broker.clone(), host.edge.clone());
        host
    }

    /// A host that serves and has no broker yet.
    pub(super) async fn starting(limits: Limits) -> Self {
        Self::starting_letting_in(limits, EdgeSettings::default(), |access| access).await
    }

    async fn starting_letting_in(
        limits: Limits,
        settings: EdgeSettings,
        change: impl FnOnce(Access) -> Access,
    ) -> Self {
        let data = tempfile::tempdir().unwrap();
        let store = Store::open(&data.path().join("data"), store::Options::default()).unwrap();
        let config = runtime::Config {
            cache_dir: data.path().join("cache"),
            instances_max: 4,
            ..runtime::Config::default()
        };
        let runtime = tokio::task::spawn_blocking(|| runtime::Runtime::new(config))
            .await
            .unwrap()
            .unwrap();
        let gateway =
            Arc::new(llm::Gateway::new(llm::Config::default(), data.path(), &|_| None).unwrap());
        let of_edge = runtime.clone();
        let parts = Parts {
            skipped: Vec::new(),
            store: store.clone(),
            runtime,
            gateway,
            catalogue: Catalogue::default(),
            limits: broker::Limits::default(),
            after_restore: broker::AfterRestore::default(),
            paths: broker::PathSettings::default(),
            clock: broker::Clock::system(),
        };
        let broker = Broker::start(parts).await.unwrap();
        let parts = EdgeParts {
            broker: broker.clone(),
            store: store.clone(),
            runtime: of_edge,
            settings,
        };
        let edge = Edge::start(parts).await.unwrap();
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), limits).unwrap();
        let address = server.address().unwrap();
        let stopper = server.stopper();
        let api = Api::new(
            change(Access::new(TOKEN, address, &[])),
            limits,
            data.path().join("backups"),
            stopper.stopping(),
        );
        let tasks = TaskTracker::new();
        tasks.spawn(server.checked_by(crate::checks(&api)).serve(router(&api)));
        Self {
            api,
            address,
            stopper,
            store,
            broker,
            edge,
            data,
            _tasks: tasks,
        }
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    pub(super) async fn post(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, &["content-type: application/json"], body)
            .await
    }

    /// Sends a request with the token.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &str,
    ) -> Answer {
        self.send_with(TOKEN, method, path, headers, body).await
    }

    /// Sends a request with a credential.
    pub(super) async fn send_with(
        &self,
        credential: &str,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &str,
    ) -> Answer {
        let token = format!("authorization: Bearer {credential}");
        let headers: Vec<&str> = headers
            .iter()
            .copied()
            .chain([token.as_str(), "host: localhost"])
            .collect();
        self.send_as_it_is(method, path, &headers, body).await
    }

    /// Reads something with a credential.
    pub(super) async fn get_with(&self, credential: &str, path: &str) -> Answer {
        self.send_with(credential, "GET", path, &[], "").await
    }

    /// Sends JSON with a credential.
    pub(super) async fn post_with(&self, credential: &str, path: &str, body: &Value) -> Answer {
        self.send_with(
            credential,
            "POST",
            path,
            &["content-type: application/json"],
            &body.to_string(),
        )
        .await
    }

    /// Sends requests, a row each, and checks that each is refused as its row says:
    /// `POST /path <header: value> {"a":1} => 422 INVALID /a`. The last word is the field, if any.
    /// Names in braces stand for these values. A body is JSON unless a header says otherwise, and
    /// with `<>` it has no header.
    pub(super) async fn refuses(&self, key: &str, names: &[(&str, &str)], rows: &[&str]) {
        for row in rows {
            let fill = |row: String, (name, value): &(&str, &str)| row.replace(name, value);
            let row = names.iter().fold((*row).to_owned(), fill);
            let (request, expected) = row.rsplit_once(" => ").expect("a row");
            let (method, request) = request.split_once(' ').expect("a path");
            let (path, mut body) = request.split_once(' ').unwrap_or((request, ""));
            let mut headers = Vec::new();
            while let Some((header, rest)) =
                body.strip_prefix('<').and_then(|it| it.split_once('>'))
            {
                headers.push(header);
                body = rest.trim_start();
            }
            let is_typed = |header: &&str| header.is_empty() || header.starts_with("content-type");
            if !body.is_empty() && !headers.iter().any(is_typed) {
                headers.push("content-type: application/json");
            }
            headers.retain(|header| !header.is_empty());
            let answer = self.send_with(key, method, path, &headers, body).await;
            let problem = answer.json();
            let text = |name: &str| problem[name].as_str().unwrap_or_default();
            let found = format!("{} {} {}", answer.status, text("code"), text("field"));
            assert_eq!(found.trim_end(), expected, "{row}: {problem}");
            assert_eq!(problem["status"], answer.status, "{row}: {problem}");
            let is_problem = answer.has("content-type: application/problem+json")
                && text("type").starts_with("urn:agent-host:problem:")
                && !text("title").is_empty()
                && !text("detail").is_empty();
            assert!(is_problem, "{row}: {problem}");
        }
    }

    pub(super) async fn send_as_it_is(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &str,
    ) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let length = format!("content-length: {}", body.len());
        // A length that was given is meant.
        let length = if headers
            .iter()
            .any(|header| header.starts_with("content-length") || header.starts_with("transfer-"))
        {
            "x: y"
        } else {
            &length
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nconnection: close\r\n{length}\r\n{}\r\n\r\n",
            headers.join("\r\n")
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // The host may have answered, and closed, before it was sent everything.
        let _ = stream.write_all(body.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer))
            .await
            .expect("no answer");
        let text = String::from_utf8(answer).unwrap();
        let (head, body) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no response: {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let answer = Answer {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        };
        super::described::check(method, path, &answer);
        answer
    }

    /// Opens an event stream.
    pub(super) async fn follow(&self, path: &str, headers: &[&str]) -> Frames {
        self.follow_with(TOKEN, path, headers).await
    }

    /// The same with a credential.
    pub(super) async fn follow_with(
        &self,
        credential: &str,
        path: &str,
        headers: &[&str],
    ) -> Frames {
        let (read, mut write) = TcpStream::connect(self.address).await.unwrap().into_split();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer \
             {credential}\r\n{}\r\n\r\n",
            headers.join("\r\n")
        );
        write
            .write_all(head.replace("\r\n\r\n\r\n", "\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let mut frames = Frames {
            read: BufReader::new(read),
            _write: write,
            pending: String::new(),
        };
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(
                frames.read.read_line(&mut head).await.unwrap() > 0,
                "{head}"
            );
        }
        assert!(
            head.starts_with("HTTP/1.1 200 ") && head.contains("text/event-stream"),
            "{head}"
        );
        frames
    }

    /// An agent with a session, as if they had been made when their definition was configured.
    pub(super) async fn agent_with_session(&self) -> (AgentId, SessionId) {
        self.agent_with_session_of(UserId::local()).await
    }

    /// The same for a user.
    pub(super) async fn agent_with_session_of(&self, user: UserId) -> (AgentId, SessionId) {
        let agent = AgentId(Uuid::new_v4());
        let session = SessionId(Uuid::new_v4());
        let created = Event::AgentCreated(AgentCreated {
            agent_type: "gone".to_owned(),
            agent,
            definition: DefinitionId("gone".to_owned()),
            path: format!("/local/agent/{}", agent.0.simple())
                .parse()
                .unwrap(),
            kind: PathKind::Agent,
            config: AgentConfig::default(),
            parent: None,
            owner_user_id: user.clone(),
            name: "Gone".to_owned(),
            denies: Default::default(),
            permissions: Default::default(),
            created_at: Timestamp(1),
        });
        let opened = Event::SessionOpened(SessionOpened::chat(
            agent,
            session,
            ConversationId(Uuid::nil()),
            user,
            Timestamp(1),
        ));
        let commit = Commit::new()
            .append(
                Stream::Agent(agent),
                Expected::New,
                vec![new(created, agent, None)],
            )
            .append(
                Stream::Session(session),
                Expected::New,
                vec![new(opened, agent, Some(session))],
            );
        self.store.commit(commit).await.unwrap();
        (agent, session)
    }

    /// Has so many messages be accepted for a session, which nobody begins a turn with.
    pub(super) async fn hears(&self, agent: AgentId, session: SessionId, messages: usize) {
        let accepted = || {
            Event::InputAccepted(InputAccepted::of(
                session,
                InputId(Uuid::now_v7()),
                Source::Api,
                Timestamp(1),
            ))
        };
        let events = (0..messages)
            .map(|_| new(accepted(), agent, Some(session)))
            .collect();
        let commit = Commit::new().append(Stream::Session(session), Expected::Any, events);
        self.store.commit(commit).await.unwrap();
    }

    /// Makes an agent below another one, with a session that this one's session began as if by
    /// handing it work.
    pub(super) async fn spawn_below(
        &self,
        parent: AgentId,
        by: SessionId,
        path: &str,
    ) -> (AgentId, SessionId) {
        let agent = AgentId(Uuid::new_v4());
        let session = SessionId(Uuid::new_v4());
        let run = RunId(Uuid::now_v7());
        let created = Event::AgentCreated(AgentCreated {
            agent_type: "gone".to_owned(),
            agent,
            definition: DefinitionId("gone".to_owned()),
            path: path.parse().unwrap(),
            kind: PathKind::Sub,
            config: AgentConfig::default(),
            parent: Some(parent),
            owner_user_id: UserId::local(),
            name: "Below".to_owned(),
            denies: Default::default(),
            permissions: Default::default(),
            created_at: Timestamp(1),
        });
        let opened = Event::SessionOpened(SessionOpened {
            started_by: "agent:/local/agent/gone".to_owned(),
            ..SessionOpened::chat(
                agent,
                session,
                ConversationId(Uuid::nil()),
                UserId::local(),
                Timestamp(1),
            )
        });
        let reply_to = Some(ReplyTo {
            run,
            operation: OperationId::mint(run, 0, "a"),
            attached: true,
        });
        let accepted = Event::InputAccepted(InputAccepted::of(
            session,
            InputId(Uuid::now_v7()),
            Source::Dispatch {
                reply_to,
                from: "/local/agent/gone".to_owned(),
                deadline: None,
                depth: 1,
                hops: 1,
                priority: Priority::default(),
                spawn_depth: 0,
                budget: Default::default(),
                denies: Default::default(),
                permissions: Default::default(),
                accounts: Default::default(),
            },
            Timestamp(1),
        ));
        let commit = Commit::new()
            .append(
                Stream::Run(run),
                Expected::New,
                vec![new(run_started(parent, by, run), parent, Some(by))],
            )
            .append(
                Stream::Agent(agent),
                Expected::New,
                vec![new(created, agent, Some(session))],
            )
            .append(
                Stream::Session(session),
                Expected::New,
                vec![
                    new(opened, agent, Some(session)),
                    new(accepted, agent, Some(session)),
                ],
            );
        self.store.commit(commit).await.unwrap();
        (agent, session)
    }

    /// Begins a run of a session.
    pub(super) async fn begin_run(&self, agent: AgentId, session: SessionId) -> RunId {
        let run = RunId(Uuid::now_v7());
        let started = run_started(agent, session, run);
        let commit = Commit::new().append(
            Stream::Run(run),
            Expected::New,
            vec![new(started, agent, Some(session))],
        );
        self.store.commit(commit).await.unwrap();
        run
    }

    /// Has a turn of a session, for a user, record that something worked so long at this time.
    pub(super) async fn works(
        &self,
        session: SessionId,
        user: &str,
        time: Timestamp,
        active_ms: u64,
    ) {
        let agent = self.store.session(session).await.unwrap().unwrap().agent;
        let run = RunId(Uuid::now_v7());
        let mut started = run_started(agent, session, run);
        if let Event::RunStarted(started) = &mut started {
            started.user_id = user.parse().unwrap();
        }
        let settlement = Settlement {
            active_ms,
            ..Settlement::new(
                OperationId::mint(run, 0, "a"),
                OperationOutcome::Elapsed,
                time,
            )
        };
        let settled = Event::RunSettled(RunSettled {
            run,
            settled: vec![settlement],
        });
        let events = [started, settled].map(|event| new(event, agent, Some(session)));
        let commit = Commit::new().append(Stream::Run(run), Expected::New, events.to_vec());
        self.store.commit(commit).await.unwrap();
    }

    /// Stores an event about an agent, with some payload; its position.
    pub(super) async fn happen(
        &self,
        agent: AgentId,
        session: Option<SessionId>,
        payload: &str,
    ) -> u64 {
        let event = Event::PreferencesUpdated(PreferencesUpdated {
            untrusted: false,
            updated_at: Timestamp(0),
            user_id: None,
            agent,
            preferences: json!({ "payload": payload }),
        });
        let commit = Commit::new().append(
            Stream::Agent(agent),
            Expected::Any,
            vec![new(event, agent, session)],
        );
        self.store.commit(commit).await.unwrap().last_position
    }
}

fn run_started(agent: AgentId, session: SessionId, run: RunId) -> Event {
    Event::RunStarted(Box::new(RunStarted::of(
        run,
        session,
        agent,
        DefinitionId("gone".to_owned()),
        Digest::of(b"component"),
        Timestamp(1),
    )))
}

fn new(event: Event, agent: AgentId, session: Option<SessionId>) -> NewEvent {
    NewEvent {
        id: EventId(Uuid::now_v7()),
        event,
        subject: Subject {
            agent: Some(agent),
            session,
            run: None,
        },
        actor: "user:local".to_owned(),
        causation: None,
        correlation: None,
        time: Timestamp(1),
        salt: Salt([1; 16]),
    }
}

/// The frames of an event stream, as they come out of the socket.
pub(super) struct Frames {
    read: BufReader<OwnedReadHalf>,
    _write: OwnedWriteHalf,
    pending: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) text: String,
}

impl Frame {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    pub(super) fn id(&self) -> Option<u64> {
        self.field("id")?.parse().ok()
    }

    pub(super) fn data(&self) -> Value {
        serde_json::from_str(self.field("data").unwrap()).unwrap()
    }
}

impl Frames {
    /// The next frame, comments included; none when the host has ended the stream.
    pub(super) async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some((frame, rest)) = self.pending.split_once("\n\n") {
                let frame = Frame {
                    text: frame.to_owned(),
                };
                self.pending = rest.to_owned();
                return Some(frame);
            }
            let mut size = String::new();
            tokio::time::timeout(Duration::from_secs(10), self.read.read_line(&mut size))
                .await
                .expect("no frame")
                .ok()?;
            // The end of the connection, not of a stream: the host hung up.
            if size.is_empty() {
                return None;
            }
            let size = usize::from_str_radix(size.trim(), 16)
                .unwrap_or_else(|_| panic!("`{size}` is no size; after {}", self.pending));
            if size == 0 {
                return None;
            }
            let mut chunk = vec![0; size + 2];
            self.read.read_exact(&mut chunk).await.ok()?;
            chunk.truncate(size);
            self.pending += &String::from_utf8(chunk).unwrap();
        }
    }

    /// The next frame that is no comment.
    pub(super) async fn next_event(&mut self) -> Option<Frame> {
        loop {
            let frame = self.next().await?;
            if !frame.text.starts_with(':') {
                return Some(frame);
            }
        }
    }
}
