//! A whole host without its HTTP side, in one process.

mod setup;

pub use setup::{SCRIPT, Setup};

use crate::boxed::{Boxed, Local};
use crate::guests::wasm;
use crate::process::script;
use broker::{
    AgentView, Broker, By, Catalogue, CreateAgent, Entry, InputReceipt, LineComponent, NewSession,
    Parts, PostMessage, SessionView, Target, Template,
};
use domain::definition::{Definition, DefinitionId};
use domain::event::{BoundaryDecided, Event, Recorded, RunStarted, RunStepped};
use domain::grant::{Access, DirectoryGrant, Grant, PatternList};
use domain::id::{RunId, SessionId};
use domain::message::{Message, Part, Role};
use domain::queue::QueueOverride;
use domain::secret::{Secret, Secrets};
use domain::time::Timestamp;
use domain::user::UserId;
use egress::{Egress, SystemResolver};
use llm::Gateway;
use runtime::Runtime;
use serde_json::{Value, json};
use std::panic::Location;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{SessionRow, Store};
use tempfile::TempDir;

/// Time limit of anything in a test.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A host in a box.
#[derive(Debug)]
pub struct World {
    /// Its data folder, with `data` (the events) and `files` (what tools are granted).
    pub dir: Arc<TempDir>,
    /// Its broker.
    pub broker: Broker,
    store: Store,
    /// Its runtime.
    pub runtime: Runtime,
    setup: Setup,
}

impl World {
    /// A new world.
    pub async fn new(setup: Setup) -> Self {
        let dir = Arc::new(TempDir::new().expect("a temporary folder"));
        std::fs::create_dir(dir.path().join("files")).expect("a folder for tools");
        Self::start(dir, setup).await
    }

    /// A new world whose setup is the usual one with a change.
    pub fn with(change: impl FnOnce(&mut Setup)) -> Local<'static, Self> {
        let mut setup = Setup::default();
        change(&mut setup);
        Box::pin(Self::new(setup))
    }

    /// A new world of the usual setup, with a session of the puppet.
    #[must_use]
    pub fn with_puppet() -> Local<'static, (Self, SessionId)> {
        Box::pin(async move {
            let world = Self::new(Setup::default()).await;
            let session = world.open("puppet").await;
            (world, session)
        })
    }

    fn start(dir: Arc<TempDir>, setup: Setup) -> Local<'static, Self> {
        Box::pin(async move {
            // The first caller has set it up for all.
            let filter = tracing_subscriber::EnvFilter::from_default_env();
            let _ = tracing_subscriber::fmt()
                .with_env_filter(filter)
                .with_test_writer()
                .try_init();
            let path = dir.path().join("data");
            let options = setup.store;
            let store = tokio::task::spawn_blocking(move || Store::open(&path, options))
                .await
                .expect("no panic")
                .expect("a store");
            let runtime = runtime_with(secrets(&setup), setup.instances_max);
            let broker = Broker::start(parts(dir.path(), &setup, store.clone(), &runtime).await)
                .await
                .expect("a broker");
            Self {
                dir,
                broker,
                store,
                runtime,
                setup,
            }
        })
    }

    /// A second broker over the same store, as if another process drove the same sessions: what the
    /// lock of a data folder prevents.
    pub fn rival(&self) -> Local<'_, Broker> {
        Box::pin(async move {
            let parts = parts(
                self.dir.path(),
                &self.setup,
                self.store().clone(),
                &self.runtime,
            )
            .await;
            Broker::start(parts).await.expect("a second broker")
        })
    }

    /// Stops the host and starts it again on the same data. The setup may change to other
    /// definitions or components.
    pub async fn restart(self, change: impl FnOnce(&mut Setup)) -> Self {
        let dir = self.dir.clone();
        let mut setup = self.stop().await;
        change(&mut setup);
        Self::start(dir, setup).await
    }

    /// Serves another setup's components and definitions from the next turn on, without a restart.
    pub fn reload(&mut self, change: impl FnOnce(&mut Setup)) -> Boxed<'_, ()> {
        change(&mut self.setup);
        Box::pin(async move {
            let before = self.broker.catalogue();
            let next = catalogue(self.dir.path(), &self.setup, &self.runtime, &before).await;
            self.broker
                .configuration()
                .replace_catalogue(next)
                .await
                .expect("components that are admitted");
        })
    }

    /// Stops the host at once, so that what is being worked on is interrupted.
    fn stop(self) -> Local<'static, Setup> {
        Box::pin(async move {
            let Self { broker, setup, .. } = self;
            broker.shutdown(Duration::ZERO).await;
            setup
        })
    }

    /// The event store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Opens a session with the user's agent of a definition.
    pub fn open(&self, definition: &str) -> Boxed<'_, SessionId> {
        self.open_as(definition, None)
    }

    /// Opens a session of a type.
    pub fn open_as(&self, definition: &str, session_type: Option<&str>) -> Boxed<'_, SessionId> {
        self.opened(NewSession {
            session_type: session_type.map(str::to_owned),
            ..NewSession::of(target(definition), UserId::local())
        })
    }

    /// Opens a chat of a user's with their own agent of a definition.
    pub fn open_for(&self, user: &UserId, definition: &str) -> Boxed<'_, SessionId> {
        self.opened(NewSession::of(target(definition), user.clone()))
    }

    fn opened(&self, new: NewSession) -> Boxed<'_, SessionId> {
        Box::pin(async move {
            self.broker
                .sessions()
                .open(new)
                .await
                .expect("a session")
                .row
                .id
        })
    }

    /// Creates an agent of a definition.
    pub fn create<'a>(&'a self, definition: &'a str) -> Boxed<'a, ()> {
        Box::pin(async move {
            let create = CreateAgent::of(
                Template::Definition(DefinitionId(definition.into())),
                UserId::local(),
            );
            self.broker.agents().create(create).await.expect("an agent");
        })
    }

    /// Says something.
    pub fn say<'a>(
        &'a self,
        definition: &'a str,
        session: SessionId,
        text: &'a str,
    ) -> Boxed<'a, InputReceipt> {
        Box::pin(async move {
            self.broker
                .messages()
                .post(self.message(definition, session, text, None))
                .await
                .expect("an accepted message")
        })
    }

    /// Says something, waits until nothing is left to do, and returns the agent's last message.
    pub fn turn<'a>(
        &'a self,
        definition: &'a str,
        session: SessionId,
        text: &'a str,
    ) -> Boxed<'a, String> {
        Box::pin(async move {
            self.say(definition, session, text).await;
            self.idle(session).await;
            self.last_reply(session).await
        })
    }

    /// The same with steps for a puppet.
    pub fn played(&self, session: SessionId, steps: &Value) -> Boxed<'_, String> {
        let script = script(steps);
        Box::pin(async move { self.turn("puppet", session, &script).await })
    }

    /// Has the puppet of a session play steps.
    pub fn play_in(&self, session: SessionId, steps: &Value) -> Boxed<'_, InputReceipt> {
        let script = script(steps);
        Box::pin(async move { self.say("puppet", session, &script).await })
    }

    /// A message to be posted.
    #[must_use]
    pub fn message(
        &self,
        definition: &str,
        session: SessionId,
        text: &str,
        key: Option<&str>,
    ) -> PostMessage {
        PostMessage {
            target: target(definition),
            session,
            content: vec![Part::text(text)],
            model: None,
            queue: QueueOverride::default(),
            priority: None,
            user: UserId::local(),
            idempotency_key: key.map(str::to_owned),
        }
    }

    /// Has the puppet play a script, and returns its reports, one line each.
    pub fn play(&self, steps: Value) -> Boxed<'_, Vec<String>> {
        Box::pin(async move {
            let session = self.open("puppet").await;
            self.play_in(session, &steps).await;
            self.idle(session).await;
            self.report(session).await
        })
    }

    /// Waits until a session has nothing to do.
    pub fn idle(&self, session: SessionId) -> Boxed<'_, SessionRow> {
        Box::pin(self.until(session, |row| row.open_run.is_none() && row.waiting == 0))
    }

    /// Waits until a session has nothing to do, and asserts that these are its agent's last words.
    ///
    /// # Panics
    /// They are not.
    #[track_caller]
    pub fn replies<'a>(&'a self, session: SessionId, words: &'a str) -> Boxed<'a, SessionRow> {
        let at = Location::caller();
        Box::pin(async move {
            let row = self.idle(session).await;
            assert_eq!(self.last_reply(session).await, words, "{at}");
            row
        })
    }

    /// Waits until a session is in some state.
    pub async fn until(&self, session: SessionId, is: impl Fn(&SessionRow) -> bool) -> SessionRow {
        let waiting = async {
            loop {
                let row = self.row(session).await;
                if is(&row) {
                    return row;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(row) => row,
            Err(_) => {
                let row = self.row(session).await;
                panic!("the session did not get there in time: {row:?}")
            }
        }
    }

    /// Reads a session.
    pub fn row(&self, session: SessionId) -> Boxed<'_, SessionRow> {
        Box::pin(async move {
            self.store()
                .session(session)
                .await
                .expect("a readable store")
                .expect("the session")
        })
    }

    /// Waits until a session asks the user something, and returns the id to answer under.
    pub fn question<'a>(
        &'a self,
        definition: &'a str,
        session: SessionId,
    ) -> Boxed<'a, (domain::id::OperationId, domain::tool::ClientAction)> {
        Box::pin(async move {
            let waiting = async {
                loop {
                    let view = self.view(definition, session).await;
                    if let Some(asking) = view.asking.into_iter().next() {
                        return (asking.tool_call_id, asking.action);
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(PATIENCE, waiting)
                .await
                .expect("a question in time")
        })
    }

    /// Answers a question.
    pub fn answer<'a>(
        &'a self,
        definition: &'a str,
        call: domain::id::OperationId,
        response: Value,
    ) -> Boxed<'a, Result<u64, broker::Error>> {
        Box::pin(async move {
            self.broker
                .runs()
                .respond(broker::Respond {
                    target: target(definition),
                    call,
                    session: None,
                    response,
                    user: UserId::local(),
                    idempotency_key: None,
                })
                .await
        })
    }

    /// A session's committed messages.
    pub fn messages(&self, session: SessionId) -> Boxed<'_, Vec<Message>> {
        Box::pin(async move {
            let row = self.row(session).await;
            self.store()
                .messages(row.head, 1, row.head_message)
                .await
                .expect("the thread")
        })
    }

    /// Returns an agent's last message.
    pub fn last_reply(&self, session: SessionId) -> Boxed<'_, String> {
        Box::pin(async move {
            let messages = self.messages(session).await;
            messages
                .iter()
                .rev()
                .find(|message| matches!(message.role, Role::Assistant | Role::Notice))
                .map(Message::text)
                .unwrap_or_default()
        })
    }

    /// The lines of an agent's last message, as the puppet reports in them.
    pub fn report(&self, session: SessionId) -> Boxed<'_, Vec<String>> {
        Box::pin(async move {
            let reply = self.last_reply(session).await;
            reply.lines().map(str::to_owned).collect()
        })
    }

    /// Agrees to what was asked.
    pub fn confirm<'a>(
        &'a self,
        definition: &'a str,
        call: domain::id::OperationId,
    ) -> Boxed<'a, u64> {
        let answer = self.answer(definition, call, json!({ "confirmed": true }));
        Box::pin(async move { answer.await.expect("a question that waits") })
    }

    /// Stops what a session does. Returns whether it did anything.
    pub fn cancel<'a>(&'a self, definition: &'a str, session: SessionId) -> Boxed<'a, bool> {
        Box::pin(async move {
            let me = UserId::local();
            let runs = self.broker.runs();
            let target = target(definition);
            let cancelled = runs.cancel(By::from(&me), &target, session, None);
            cancelled.await.expect("a session")
        })
    }

    /// The user's agent of a definition.
    pub fn agent<'a>(&'a self, definition: &'a str) -> Boxed<'a, AgentView> {
        Box::pin(async move {
            let me = UserId::local();
            let agents = self.broker.agents();
            let agent = agents.get(&me, &target(definition)).await;
            agent.expect("an agent")
        })
    }

    /// A session as its user sees it.
    pub fn view<'a>(&'a self, definition: &'a str, session: SessionId) -> Boxed<'a, SessionView> {
        Box::pin(async move {
            let me = UserId::local();
            let sessions = self.broker.sessions();
            let view = sessions.get(&me, &target(definition), session, None).await;
            view.expect("a session")
        })
    }

    /// Waits until nothing is left to do, now or later.
    pub fn quiet(&self) -> Boxed<'_, ()> {
        Box::pin(async move {
            let waiting = async {
                while !self
                    .store()
                    .sessions_with_work(Timestamp(u64::MAX >> 1))
                    .await
                    .expect("a readable store")
                    .is_empty()
                {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(PATIENCE * 3, waiting)
                .await
                .expect("everything comes to an end");
        })
    }

    /// All that is recorded, in order.
    pub fn recorded(&self) -> Boxed<'_, Vec<Recorded>> {
        Box::pin(async move {
            let all = store::EventFilter::default();
            let recorded = self.store().events(0, all, 1_000_000).await;
            recorded.expect("the events")
        })
    }

    /// The events of all streams, in order, with the first step of a run apart from its start.
    pub fn events(&self) -> Boxed<'_, Vec<Event>> {
        Box::pin(async move {
            let recorded = self.recorded().await.into_iter();
            let events = recorded.filter_map(|recorded| recorded.event);
            events.flat_map(Event::apart).collect()
        })
    }

    /// Returns what some events of all streams have, in order.
    pub fn events_that<'a, T: Send>(
        &'a self,
        select: impl FnMut(Event) -> Option<T> + Send + 'a,
    ) -> Boxed<'a, Vec<T>> {
        Box::pin(async move { self.events().await.into_iter().filter_map(select).collect() })
    }

    /// Returns the steps of all runs, in order.
    pub fn steps(&self) -> Boxed<'_, Vec<RunStepped>> {
        self.events_that(|event| event.step().cloned())
    }

    /// Returns the starts of all runs, in order.
    pub fn starts(&self) -> Boxed<'_, Vec<RunStarted>> {
        self.events_that(|event| match event {
            Event::RunStarted(started) => Some(*started),
            _ => None,
        })
    }

    /// The runs of all sessions, in the order of their starts.
    pub fn runs(&self) -> Boxed<'_, Vec<RunId>> {
        self.events_that(|event| match event {
            Event::RunStarted(started) => Some(started.run),
            _ => None,
        })
    }

    /// Returns the decisions of the boundary, in order.
    pub fn ledger(&self) -> Boxed<'_, Vec<BoundaryDecided>> {
        Box::pin(async move {
            let events = self.events().await.into_iter();
            let decided = events.flat_map(|event| event.ledger().to_vec());
            decided.collect()
        })
    }

    /// The effects that the tools of `effects` really had, one line for each beginning and end of a
    /// call.
    #[must_use]
    pub fn effects(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.dir.path().join("files/log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

/// Makes the parts of a broker, all but the store in a world of its own.
async fn parts(dir: &Path, setup: &Setup, store: Store, runtime: &Runtime) -> Parts {
    let catalogue = catalogue(dir, setup, runtime, &Catalogue::default()).await;
    let gateway = Arc::new(gateway(dir, setup));
    Parts {
        store,
        runtime: runtime.clone(),
        gateway,
        catalogue,
        limits: setup.limits,
        after_restore: broker::AfterRestore::default(),
        paths: setup.paths.clone(),
        skipped: Vec::new(),
        clock: setup.clock.clone(),
    }
}

/// Makes a catalogue that takes the place of another one, and opens its folders.
async fn catalogue(dir: &Path, setup: &Setup, runtime: &Runtime, before: &Catalogue) -> Catalogue {
    let mut entries = Vec::new();
    let built = setup.components.iter().map(|name| {
        let (name, file) = name.split_once('=').unwrap_or((name, name));
        (name, wasm(file))
    });
    for (name, code) in built.chain(setup.made.iter().cloned()) {
        let component = runtime
            .load(code)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let own = setup
            .grants
            .iter()
            .find(|(of, _)| *of == name)
            .map(|(_, grant)| grant.clone());
        let mut grant = own.unwrap_or_else(|| grant(&dir.join("files"), setup));
        (setup.change_grant)(name, &mut grant);
        entries.push(Entry {
            name: name.to_owned(),
            component,
            grant,
            is_pinned: setup.is_pinned,
        });
    }
    let folders = entries.iter().flat_map(|entry| &entry.grant.directories);
    runtime
        .open_folders(folders, &[&dir.join("data")])
        .expect("folders that can be granted");
    let definitions: Vec<Definition> = setup
        .definitions
        .iter()
        .map(|definition| {
            let mut definition = definition.clone();
            // Most tests have as many sessions of an agent at work as they like.
            if let Some(fields) = definition.as_object_mut() {
                fields
                    .entry("maxConcurrentMessages")
                    .or_insert(json!(10_000));
            }
            serde_json::from_value(definition).expect("a definition")
        })
        .collect();
    let personas = setup
        .personas
        .iter()
        .map(|persona| serde_json::from_value(persona.clone()).expect("a persona"))
        .collect();
    let mut catalogue = before
        .successor(definitions, entries)
        .expect("a catalogue that fits")
        .with_personas(personas)
        .expect("personas that fit")
        .with_skills(setup.skills.clone())
        .without_agent_tools(&PatternList(
            setup
                .agent_tools_disabled
                .iter()
                .map(|name| (*name).to_owned())
                .collect(),
        ));
    catalogue.line_component = line_component(runtime);
    catalogue
}

/// The component of command lines, loaded with the first one.
fn line_component(runtime: &Runtime) -> LineComponent {
    let runtime = runtime.clone();
    LineComponent::new(move || {
        let runtime = runtime.clone();
        async move {
            let loaded = runtime.load(wasm("shell")).await;
            loaded.map_err(|error| error.to_string())
        }
    })
}

/// An agent by its definition.
#[must_use]
pub fn target(definition: &str) -> Target {
    Target::Definition(DefinitionId(definition.into()))
}

/// A runtime on the cache that all tests share, so that each guest is compiled once.
#[must_use]
pub fn runtime() -> Runtime {
    runtime_with(Secrets::default(), Setup::default().instances_max)
}

fn secrets(setup: &Setup) -> Secrets {
    Secrets::new(
        setup
            .secrets
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Secret::parse(value).expect("a secret"))),
    )
}

fn runtime_with(secrets: Secrets, instances_max: u32) -> Runtime {
    let cache_dir = crate::guests::root().join("target/test-component-cache");
    // Nothing in a test speaks TLS, and it needs no authorities.
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .expect("versions of TLS")
    .with_root_certificates(rustls::RootCertStore::empty())
    .with_no_client_auth();
    let egress = Some(Arc::new(Egress::new(
        Arc::new(SystemResolver),
        tls,
        egress::Limits::default(),
    )));
    Runtime::new(runtime::Config {
        cache_dir,
        instances_max,
        egress,
        secrets,
        ..runtime::Config::default()
    })
    .expect("a runtime")
}

fn grant(files: &Path, setup: &Setup) -> Grant {
    let folder = DirectoryGrant::whole(files, "/data", Access::ReadWrite);
    let models = PatternList::everything();
    let agents = PatternList::everything();
    Grant {
        directories: vec![folder],
        network: setup.network.clone(),
        key_value: setup.key_value.clone(),
        limits: setup.guest_limits,
        models,
        agents,
        ..Grant::default()
    }
}

fn gateway(dir: &Path, setup: &Setup) -> Gateway {
    std::fs::write(dir.join("script.toml"), &setup.script).expect("a rule file");
    let price = setup
        .price
        .map(|price| json!({ "inputPerMillion": price, "outputPerMillion": price }));
    let config = json!({
        "providers": {
            "scripted": {
                "kind": "scripted", "script": "script.toml", "concurrentMax": setup.concurrent_max,
            },
        },
        "models": {
            "m": {
                "provider": "scripted", "model": "m", "price": price,
                "maxTokens": setup.max_tokens,
            },
            "deep": { "provider": "scripted", "model": "deep" },
        },
        "defaultModel": "m",
    });
    Gateway::new(
        serde_json::from_value(config).expect("a config"),
        dir,
        &|_| None,
    )
    .expect("a gateway")
}
