//! The real program in a folder of its own: started, talked to over a socket, killed, and started
//! again.
//!
//! The program is the one in the target folder: `cargo build --workspace` makes it.

mod frames;

pub use frames::{Frame, Frames};

use crate::faked_clock::FakedClock;
use crate::guests::{root, wasm};
use crate::slow_disk::SlowDisk;
use crate::small_disk::{Room, SmallDisk};
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::sync::Once;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// Time limit of a start, a stop or an answer.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The crash point at which a program dies; see `store::point`.
pub const CRASH_AT: &str = "AGENT_HOST_CRASH_AT";
/// The text in an event that is never stored; see `store::fault`.
pub const UNSTORABLE: &str = "AGENT_HOST_UNSTORABLE";
/// The variable with the words of an event on which a projection panics; see `store::fault`.
pub const PANICS_ON: &str = "AGENT_HOST_PANICS_ON";
/// The variable with the words of an event that contradicts stored rows; see `store::fault`.
pub const CONTRADICTS_ON: &str = "AGENT_HOST_CONTRADICTS_ON";
/// The variable with the words of an event that rests on an unreadable row; see `store::fault`.
pub const MISREADS_ON: &str = "AGENT_HOST_MISREADS_ON";
/// The variable with the words of an event whose reading panics; see `store::fault`.
pub const READING_PANICS_ON: &str = "AGENT_HOST_READING_PANICS_ON";
/// The variable that names the libraries which a program loads before its C library.
pub const PRELOAD: &str = "LD_PRELOAD";
/// The config file in a folder.
const CONFIG: &str = "agent-host.json";
/// The compiled components in a data folder.
const CACHE: &str = "component-cache";
/// The folder of the demo, from the repository's root.
const DEMO: &str = "examples/demo";
/// The files of the demo, from its folder.
const DEMO_FILES: [&str; 3] = ["agent-host.toml", "demo-script.toml", "workspace/notes.txt"];

/// A program that ended before it was ready.
#[derive(Debug)]
pub struct Ended {
    /// With what.
    pub status: ExitStatus,
    /// Its output on stderr, that of earlier programs in the same folder included.
    pub said: String,
}

/// The real program.
///
/// # Panics
/// When it is not built.
#[must_use]
pub fn program() -> PathBuf {
    let this = std::env::current_exe().expect("this program's path");
    // The bench is beside it, and the tests are one folder further down.
    let folders: Vec<&Path> = this.ancestors().skip(1).take(2).collect();
    let found = folders
        .iter()
        .map(|folder| folder.join("agent-host"))
        .find(|program| program.is_file());
    found.unwrap_or_else(|| {
        panic!("`agent-host` is not built in any of {folders:?}; run: cargo build --workspace")
    })
}

/// A configuration with these agents, a scripted model, and the puppet that they are made of: it
/// does what its agents' settings say.
#[must_use]
pub fn puppets(agents: &Value) -> Value {
    let puppet = root().join("tests/programs/target/wasm32-wasip2/release/puppet.wasm");
    json!({
        "agents": agents,
        "components": { "puppet": { "path": puppet, "models": ["*"], "agents": ["*"] } },
        "providers": { "scripted": { "kind": "scripted", "script": "script.toml" } },
        "models": { "m": { "provider": "scripted", "model": "m" } },
    })
}

/// A folder with a configuration and data, for one host after another.
#[derive(Debug)]
pub struct Folder {
    dir: TempDir,
    /// The config file, from the folder.
    config: PathBuf,
    /// The file system that its data is on, when that is one of its own.
    disk: Option<SmallDisk>,
    /// The disk with replaced syncs, when a test wants one.
    slow: Option<SlowDisk>,
    /// Its wall clock, when a test sets it.
    clock: Option<FakedClock>,
}

impl Folder {
    /// A folder with a configuration. `server` is added to it: any free port, and data in `data`.
    /// Tools get `files`.
    ///
    /// # Panics
    /// When it cannot be made.
    #[must_use]
    pub fn new(config: Value) -> Self {
        let dir = TempDir::new().expect("a temporary folder");
        std::fs::create_dir(dir.path().join("files")).expect("a folder for tools");
        std::fs::write(dir.path().join("script.toml"), crate::world::SCRIPT).expect("a rule file");
        let folder = Self {
            dir,
            config: CONFIG.into(),
            disk: None,
            slow: None,
            clock: None,
        };
        folder.configure(config);
        folder
    }

    /// A folder with a copy of the demo at the place that it has in the repository, without data.
    ///
    /// Its hosts have to be told with `--listen` to take any free port.
    ///
    /// # Panics
    /// When it cannot be made.
    #[must_use]
    pub fn demo() -> Self {
        let dir = TempDir::new().expect("a temporary folder");
        let demo = dir.path().join(DEMO);
        std::fs::create_dir_all(demo.join("workspace")).expect("a folder for tools");
        for file in DEMO_FILES {
            std::fs::copy(root().join(DEMO).join(file), demo.join(file))
                .expect("a copy of the demo");
        }
        Self {
            dir,
            config: Path::new(DEMO).join("agent-host.toml"),
            disk: None,
            slow: None,
            clock: None,
        }
    }

    /// Writes a configuration for the next host, as [`Self::new`] does.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn configure(&self, mut config: Value) {
        if let Some(config) = config.as_object_mut() {
            let server = json!({ "listen": "127.0.0.1:0", "dataDir": "data" });
            config.entry("server").or_insert(server);
        }
        std::fs::write(self.config_file(), config.to_string()).expect("a config file");
    }

    /// The same, with its data on a file system of its own that has so much room.
    ///
    /// # Errors
    /// Why there can be none here.
    pub fn on_small_disk(config: Value, room: Room) -> Result<Self, String> {
        let mut folder = Self::new(config);
        let data = folder.path().join("data");
        std::fs::create_dir(&data).map_err(|error| error.to_string())?;
        folder.disk = Some(SmallDisk::mount(&data, room)?);
        Ok(folder)
    }

    /// The same, with syncs and reads that [`Self::slow_disk`] controls and a wall clock that
    /// [`Self::clock`] shifts.
    ///
    /// # Errors
    /// Why there can be none here.
    ///
    /// # Panics
    /// When there is no C compiler.
    pub fn on_bad_machine(config: Value, room: Room) -> Result<Self, String> {
        let mut folder = Self::on_small_disk(config, room)?;
        folder.slow = Some(replaced_syncs(folder.path()));
        folder.clock = Some(replaced_clock(folder.path()));
        Ok(folder)
    }

    /// The same, on a disk whose syncs [`Self::slow_disk`] controls.
    ///
    /// # Panics
    /// When there is no C compiler.
    #[must_use]
    pub fn on_slow_disk(config: Value) -> Self {
        let mut folder = Self::new(config);
        folder.slow = Some(replaced_syncs(folder.path()));
        folder
    }

    /// Returns the disk with replaced syncs.
    ///
    /// # Panics
    /// When it is on any other disk.
    #[must_use]
    pub fn slow_disk(&self) -> &SlowDisk {
        self.slow.as_ref().expect("a slow disk")
    }

    /// The same, with a wall clock that [`Self::clock`] shifts.
    ///
    /// # Panics
    /// When there is no C compiler.
    #[must_use]
    pub fn with_clock(config: Value) -> Self {
        let mut folder = Self::new(config);
        folder.clock = Some(replaced_clock(folder.path()));
        folder
    }

    /// Its wall clock.
    ///
    /// # Panics
    /// When it has the machine's.
    #[must_use]
    pub fn clock(&self) -> &FakedClock {
        self.clock.as_ref().expect("a clock of its own")
    }

    /// Puts compiled code of components into the data folder, so that a start compiles nothing. The
    /// code comes from the cache that all tests share.
    ///
    /// # Panics
    /// When a component does not load or a file cannot be copied.
    pub async fn warm(&self, components: &[&str]) {
        let runtime = crate::world::runtime();
        for name in components {
            runtime
                .load(wasm(name))
                .await
                .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        }
        let (from, to) = (
            root().join("target/test-component-cache"),
            self.data().join(CACHE),
        );
        std::fs::create_dir_all(&to).expect("a folder for compiled code");
        let private = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
        for folder in [self.data(), to.clone()] {
            std::fs::set_permissions(folder, private.clone()).expect("a folder of one's own");
        }
        let wanted: Vec<String> = components
            .iter()
            .map(|name| domain::digest::Digest::of(&wasm(name)).hex())
            .collect();
        for entry in std::fs::read_dir(from).expect("the shared cache").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_code = wanted
                .iter()
                .any(|wanted| name.starts_with(wanted.as_str()))
                && !name.contains(".tmp");
            if name == "key" || is_code {
                std::fs::copy(entry.path(), to.join(name)).expect("a copy");
            }
        }
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The config file.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.path().join(&self.config)
    }

    /// The data folder.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.disk.as_ref().map_or_else(
            || self.config_file().with_file_name("data"),
            SmallDisk::path,
        )
    }

    /// The output on stderr of all programs so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path().join("log")).unwrap_or_default()
    }

    /// The effects that the tools of `effects` really had, one line for each beginning and end of a
    /// call.
    #[must_use]
    pub fn effects(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.path().join("files/log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn program(&self, arguments: &[&str]) -> Command {
        let mut command = match &self.disk {
            None => Command::new(program()),
            Some(disk) => disk.command(&program()),
        };
        let libraries: Vec<&Path> = self
            .slow
            .iter()
            .map(SlowDisk::library)
            .chain(self.clock.iter().map(FakedClock::library))
            .collect();
        if !libraries.is_empty() {
            command.env(
                PRELOAD,
                std::env::join_paths(libraries).expect("paths without a colon"),
            );
        }
        command.envs(self.slow.iter().map(SlowDisk::variable));
        command.envs(self.clock.iter().map(FakedClock::variable));
        command
            .args(arguments)
            .arg("--config")
            .arg(self.config_file())
            .current_dir(self.path())
            .kill_on_drop(true);
        command
            .env_remove("RUST_LOG")
            .env_remove("AGENT_HOST_TOKEN")
            .env(
                "AGENT_HOST_COMPONENTS",
                root().join("guests/target/wasm32-wasip2/release"),
            );
        command
    }

    /// Runs a command to its end.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(arguments, &[]).await
    }

    /// The same with variables in its environment.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut program = self.program(arguments);
        program.envs(variables.iter().copied());
        let output = tokio::time::timeout(PATIENCE, program.output()).await;
        output
            .expect("a command that ends in time")
            .expect("a program that runs")
    }

    /// Starts a host and waits until it is ready. With a crash point, it dies when it passes that.
    ///
    /// # Errors
    /// It ended before it was ready.
    ///
    /// # Panics
    /// When it gets neither ready nor ends in time.
    pub async fn start(&self, crash_at: Option<&str>) -> Result<Host, Box<Ended>> {
        self.start_with(&[], crash_at).await
    }

    /// The same, with more arguments.
    ///
    /// # Errors
    /// It ended before it was ready.
    ///
    /// # Panics
    /// When it gets neither ready nor ends in time.
    pub async fn start_with(
        &self,
        more: &[&str],
        crash_at: Option<&str>,
    ) -> Result<Host, Box<Ended>> {
        self.start_in(more, crash_at.map(|point| (CRASH_AT, point)))
            .await
    }

    /// The same, with a variable of the environment.
    ///
    /// # Errors
    /// It ended before it was ready.
    ///
    /// # Panics
    /// When it gets neither ready nor ends in time.
    pub async fn start_in(
        &self,
        more: &[&str],
        variable: Option<(&str, &str)>,
    ) -> Result<Host, Box<Ended>> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.path().join("log"))
            .expect("a log");
        let mut command = self.program(&[&["serve", "--json"], more].concat());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        command.envs(variable);
        let mut child = command.spawn().expect("a program that starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its stdout")).lines();
        let first = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        let first = first
            .unwrap_or_else(|_| panic!("the host did not get ready in time: {}", self.log()))
            .ok()
            .flatten();
        let Some(first) = first else {
            let status = tokio::time::timeout(PATIENCE, child.wait())
                .await
                .expect("an end in time")
                .expect("an exit status");
            return Err(Box::new(Ended {
                status,
                said: self.log(),
            }));
        };
        let said: Value =
            serde_json::from_str(&first).expect("a document that says where it listens");
        let base = said
            .get("address")
            .and_then(Value::as_str)
            .expect("an address")
            .to_owned();
        let token = std::fs::read_to_string(self.data().join("token"))
            .expect("a token")
            .trim()
            .to_owned();
        Ok(Host {
            child,
            base,
            token,
            http: http(),
        })
    }
}

fn replaced_syncs(folder: &Path) -> SlowDisk {
    SlowDisk::new(folder)
        .expect("a library that replaces syncs, made by the C compiler that the host is built with")
}

fn replaced_clock(folder: &Path) -> FakedClock {
    FakedClock::new(folder).expect(
        "a library that shifts the clock, made by the C compiler that the host is built with",
    )
}

/// A client without trusted certificates: the API speaks plain HTTP.
fn http() -> reqwest::Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Another one that is installed already does as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let tls = rustls::ClientConfig::builder()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .timeout(PATIENCE)
        .pool_idle_timeout(PATIENCE)
        .build()
        .expect("a client")
}

/// An answer of the API.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The media type.
    pub content_type: String,
    /// After how many seconds to try again, if it says so.
    pub retry_after_s: Option<u64>,
    /// The body; null when it is not JSON.
    pub body: Value,
}

impl Answer {
    /// A text of the body; empty when it is not there.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        self.body
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    }
}

/// The address of a host that runs or ran, and the token for it.
#[derive(Debug, Clone)]
pub struct Line {
    base: String,
    token: String,
    http: reqwest::Client,
}

impl Line {
    /// Sends a request, with a body when there is one, and reads the answer.
    ///
    /// # Errors
    /// The connection was lost.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> reqwest::Result<Answer> {
        let request = self
            .http
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(&self.token);
        read(match body {
            Some(body) => request.json(body),
            None => request,
        })
        .await
    }

    /// The same under an idempotency key.
    ///
    /// # Errors
    /// The connection was lost.
    pub async fn ask_under(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> reqwest::Result<Answer> {
        let request = self
            .http
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(&self.token)
            .header("idempotency-key", key);
        read(match body {
            Some(body) => request.json(body),
            None => request,
        })
        .await
    }

    /// Posts a file as it is.
    ///
    /// # Errors
    /// The connection was lost.
    pub async fn upload(&self, path: &str, file: Vec<u8>) -> reqwest::Result<Answer> {
        read(
            self.http
                .post(format!("{}{path}", self.base))
                .bearer_auth(&self.token)
                .body(file),
        )
        .await
    }

    /// Follows an event stream, after an event or from now on.
    ///
    /// # Errors
    /// The status that was answered instead; none when there is no answer.
    pub async fn follow(
        &self,
        path: &str,
        last_event_id: Option<u64>,
    ) -> Result<Frames, Option<u16>> {
        let mut request = self
            .http
            .get(format!("{}{path}", self.base))
            .bearer_auth(&self.token);
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let response = request.send().await.map_err(|_| None)?;
        match response.status().as_u16() {
            200 => Ok(Frames::of(response)),
            status => Err(Some(status)),
        }
    }
}

/// Sends a request and reads the answer.
async fn read(request: reqwest::RequestBuilder) -> reqwest::Result<Answer> {
    let response = request.send().await?;
    let status = response.status().as_u16();
    let header = |name: &str| {
        response
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    let (content_type, retry_after_s) =
        (header("content-type"), header("retry-after").parse().ok());
    let body = response.bytes().await?;
    Ok(Answer {
        status,
        content_type,
        retry_after_s,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

/// A running host.
#[derive(Debug)]
pub struct Host {
    child: Child,
    /// `http://` and where it listens.
    pub base: String,
    /// Its bearer token.
    pub token: String,
    http: reqwest::Client,
}

impl Host {
    /// A request with the token.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.bare(method, path).bearer_auth(&self.token)
    }

    /// A request without one.
    pub fn bare(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    /// Sends a request and reads the answer.
    ///
    /// # Errors
    /// The connection was lost.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> reqwest::Result<Answer> {
        read(request).await
    }

    /// A line with a key of a user's own, which may be used for these scopes.
    ///
    /// # Panics
    /// When no key is issued.
    pub async fn user(&self, user: &str, scopes: &[&str]) -> Line {
        let wanted = json!({ "user": user, "name": "test", "scopes": scopes });
        let issued = self.post("/api/keys", &wanted).await.expect("an answer");
        assert_eq!(issued.status, 201, "{issued:?}");
        Line {
            token: issued.text("key"),
            ..self.line()
        }
    }

    /// Reads something.
    ///
    /// # Errors
    /// The connection was lost.
    pub async fn get(&self, path: &str) -> reqwest::Result<Answer> {
        self.send(self.request(Method::GET, path)).await
    }

    /// Sends something.
    ///
    /// # Errors
    /// The connection was lost.
    pub async fn post(&self, path: &str, body: &Value) -> reqwest::Result<Answer> {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// Returns a line to the host that can outlive it.
    #[must_use]
    pub fn line(&self) -> Line {
        Line {
            base: self.base.clone(),
            token: self.token.clone(),
            http: self.http.clone(),
        }
    }

    /// Follows an event stream, after an event or from now on.
    ///
    /// # Panics
    /// When there is no stream.
    pub async fn follow(&self, path: &str, last_event_id: Option<u64>) -> Frames {
        self.line()
            .follow(path, last_event_id)
            .await
            .expect("a stream")
    }

    /// Its process.
    ///
    /// # Panics
    /// When it has ended.
    #[must_use]
    pub fn process(&self) -> Pid {
        self.child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()))
            .expect("a running process")
    }

    /// Returns the exit status of the process, if it ends within this time.
    pub async fn died(&mut self, within: Duration) -> Option<ExitStatus> {
        tokio::time::timeout(within, self.child.wait())
            .await
            .ok()
            .and_then(Result::ok)
    }

    /// Kills it at once, as `kill -9` does.
    ///
    /// # Panics
    /// When it does not die.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("a killed process");
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When the signal cannot be sent.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.process(), signal).expect("a signal that arrives");
    }

    /// Tells it to stop.
    ///
    /// # Panics
    /// When the signal cannot be sent.
    pub fn tell_to_stop(&self) {
        self.signal(Signal::TERM);
    }

    /// Tells it to stop, and waits until it has.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn stop(mut self) -> ExitStatus {
        self.tell_to_stop();
        self.died(PATIENCE).await.expect("an end in time")
    }
}
