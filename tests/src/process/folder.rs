//! A folder with the configuration and the data of one host after another.

use super::host::Host;
use super::line::{Line, http};
use super::{CRASH_AT, Ended, PATIENCE, PRELOAD, program};
use crate::boxed::{Boxed, Local};
use crate::faked_clock::FakedClock;
use crate::guests::{root, wasm};
use crate::slow_disk::SlowDisk;
use crate::small_disk::{Room, SmallDisk};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Mutex;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdout, Command};

/// The config file in a folder.
const CONFIG: &str = "agent-host.json";
/// The compiled components in a data folder.
const CACHE: &str = "component-cache";
/// The folder of the demo, from the repository's root.
const DEMO: &str = "examples/demo";
/// The triggers that every host has.
const BUILT_IN_TRIGGERS: [&str; 4] = ["schedule", "heartbeat", "webhook", "files-watch"];
/// The components that the demo's configuration names, and those that they are made of.
pub const DEMO_COMPONENTS: [&str; 11] = [
    "assistant",
    "worker",
    "researcher",
    "coder",
    "memory",
    "tutor",
    "thought",
    "evaluator",
    "files",
    "web",
    "code",
];
/// The files of the demo, from its folder.
const DEMO_FILES: [&str; 3] = [
    "agent-host.toml",
    "demo-script.toml",
    "workspace/local/notes.txt",
];

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
        std::fs::create_dir_all(demo.join("workspace/local")).expect("a folder for tools");
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

    /// Puts compiled code of components and of the host's own triggers into the data folder, so
    /// that a start compiles nothing. The code comes from the cache that all tests share.
    ///
    /// # Panics
    /// When a component does not load or a file cannot be copied.
    pub fn warm<'a>(&'a self, components: &'a [&'a str]) -> Local<'a, ()> {
        Box::pin(async move {
            let components = [components, &BUILT_IN_TRIGGERS].concat();
            compiled(&components).await;
            self.copy_compiled(&components);
        })
    }

    fn copy_compiled(&self, components: &[&str]) {
        let from = root().join("target/test-component-cache");
        let to = self.data().join(CACHE);
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

    /// The program in this folder, on its disk and with its clock.
    #[must_use]
    pub fn program(&self, arguments: &[&str]) -> Command {
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
    pub fn run(&self, arguments: &[&str]) -> Boxed<'static, Output> {
        self.run_with(arguments, &[])
    }

    /// The same with variables in its environment.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn run_with(
        &self,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Boxed<'static, Output> {
        let mut program = self.program(arguments);
        program.envs(variables.iter().copied());
        Self::run_within(PATIENCE, program)
    }

    /// Runs a command, which succeeds.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn succeeds(&self, arguments: &[&str]) -> Boxed<'static, Output> {
        let at = Location::caller();
        let running = self.run(arguments);
        Box::pin(async move {
            let output = running.await;
            assert!(output.status.success(), "{at}: {output:?}");
            output
        })
    }

    /// Runs a command line, which prints these texts and ends with this code, if one is given.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn prints(
        &self,
        line: &str,
        code: impl Into<Option<i32>>,
        texts: &[&str],
    ) -> Boxed<'static, String> {
        self.shown(line, code.into(), texts, |output| &output.stdout)
    }

    /// The same of what it complains of on stderr.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn complains(
        &self,
        line: &str,
        code: impl Into<Option<i32>>,
        texts: &[&str],
    ) -> Boxed<'static, String> {
        self.shown(line, code.into(), texts, |output| &output.stderr)
    }

    #[track_caller]
    fn shown(
        &self,
        line: &str,
        code: Option<i32>,
        texts: &[&str],
        of: fn(&Output) -> &[u8],
    ) -> Boxed<'static, String> {
        let at = format!("{}: {line}", Location::caller());
        let running = self.run(&line.split(' ').collect::<Vec<_>>());
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        Box::pin(async move {
            let output = running.await;
            let is_wanted = code.is_none() || output.status.code() == code;
            assert!(is_wanted, "{at}: {output:?}");
            let shown = String::from_utf8_lossy(of(&output)).into_owned();
            for text in texts {
                assert!(shown.contains(&text), "{at}: no `{text}` in:\n{shown}");
            }
            shown
        })
    }

    /// Asserts that `verify` finds nothing wrong with the data.
    ///
    /// # Panics
    /// It finds something.
    #[track_caller]
    pub fn verified(&self) -> Boxed<'static, Output> {
        self.succeeds(&["verify"])
    }

    /// Stops the last host, and asserts that it ends well and leaves data that `verify` accepts.
    ///
    /// # Panics
    /// It does not.
    #[track_caller]
    pub fn over(&self, host: Host) -> Boxed<'_, ()> {
        let at = Location::caller();
        Box::pin(async move {
            assert!(host.stop().await.success(), "{at}: {}", self.log());
            self.verified().await;
        })
    }

    /// Runs a program of [`Folder::program`] to its end, which comes within a time.
    ///
    /// # Panics
    /// When it does not end in time.
    #[must_use]
    pub fn run_within(limit: Duration, mut program: Command) -> Boxed<'static, Output> {
        Box::pin(async move {
            let output = tokio::time::timeout(limit, program.output()).await;
            output
                .expect("a command that ends in time")
                .expect("a program that runs")
        })
    }

    /// Runs a program of [`Folder::program`] that reads these lines, to its end.
    ///
    /// # Panics
    /// When it does not end in time.
    #[must_use]
    pub fn typed(mut program: Command, lines: &str) -> Boxed<'static, Output> {
        let lines = lines.to_owned();
        program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Box::pin(async move {
            let mut running = program.spawn().expect("a program that starts");
            let mut stdin = running.stdin.take().expect("its stdin");
            let written = stdin.write_all(lines.as_bytes()).await;
            written.expect("a program that reads");
            drop(stdin);
            let ended = tokio::time::timeout(PATIENCE, running.wait_with_output()).await;
            ended.expect("an end in time").expect("a program that runs")
        })
    }

    /// Starts a host with the components that its configuration names.
    ///
    /// # Panics
    /// When it does not get ready.
    #[must_use]
    pub fn serving<'a>(config: Value, components: &'a [&'a str]) -> Local<'a, (Self, Host)> {
        Box::pin(async move {
            let folder = Self::new(config);
            folder.warm(components).await;
            let host = folder.serve().await;
            (folder, host)
        })
    }

    /// Starts a host, which gets ready.
    ///
    /// # Panics
    /// When it does not.
    pub fn serve(&self) -> Local<'_, Host> {
        Box::pin(async move {
            let started = self.start(None).await;
            started.unwrap_or_else(|ended| panic!("{}: {}", ended.status, ended.said))
        })
    }

    /// Starts a host and waits until it is ready. With a crash point, it dies when it passes that.
    ///
    /// # Errors
    /// It ended before it was ready.
    ///
    /// # Panics
    /// When it gets neither ready nor ends in time.
    pub fn start<'a>(&'a self, crash_at: Option<&'a str>) -> Local<'a, Result<Host, Box<Ended>>> {
        self.start_with(&[], crash_at)
    }

    /// The same, with more arguments.
    ///
    /// # Errors
    /// It ended before it was ready.
    ///
    /// # Panics
    /// When it gets neither ready nor ends in time.
    pub fn start_with<'a>(
        &'a self,
        more: &'a [&'a str],
        crash_at: Option<&'a str>,
    ) -> Local<'a, Result<Host, Box<Ended>>> {
        self.start_in(more, crash_at.map(|point| (CRASH_AT, point)))
    }

    /// The same, with a variable of the environment.
    ///
    /// # Errors
    /// It ended before it was ready.
    ///
    /// # Panics
    /// When it gets neither ready nor ends in time.
    pub fn start_in<'a>(
        &'a self,
        more: &'a [&'a str],
        variable: Option<(&'a str, &'a str)>,
    ) -> Local<'a, Result<Host, Box<Ended>>> {
        Box::pin(self.started(more, variable))
    }

    /// Starts a host with `dev` and these arguments, and waits until it is ready. Returns what it
    /// prints from then on, too.
    ///
    /// # Errors
    /// It ended before it was ready.
    ///
    /// # Panics
    /// When it gets neither ready nor ends in time.
    pub fn start_dev<'a>(
        &'a self,
        more: &'a [&'a str],
    ) -> Local<'a, Result<(Host, Printed), Box<Ended>>> {
        Box::pin(async move {
            self.printing(&[&["dev", "--json"], more].concat(), None)
                .await
        })
    }

    async fn started(
        &self,
        more: &[&str],
        variable: Option<(&str, &str)>,
    ) -> Result<Host, Box<Ended>> {
        let arguments = [&["serve", "--json"], more].concat();
        Ok(self.printing(&arguments, variable).await?.0)
    }

    async fn printing(
        &self,
        arguments: &[&str],
        variable: Option<(&str, &str)>,
    ) -> Result<(Host, Printed), Box<Ended>> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.path().join("log"))
            .expect("a log");
        let mut command = self.program(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        command.envs(variable);
        let mut child = command.spawn().expect("a program that starts");
        let lines = BufReader::new(child.stdout.take().expect("its stdout")).lines();
        let mut printed = Printed(lines);
        let ready = tokio::time::timeout(PATIENCE, printed.find(|it| it["ready"] == true)).await;
        let ready =
            ready.unwrap_or_else(|_| panic!("the host did not get ready in time: {}", self.log()));
        let Some(said) = ready else {
            let status = tokio::time::timeout(PATIENCE, child.wait())
                .await
                .expect("an end in time")
                .expect("an exit status");
            return Err(Box::new(Ended {
                status,
                said: self.log(),
            }));
        };
        let base = said
            .get("address")
            .and_then(Value::as_str)
            .expect("an address")
            .to_owned();
        let token = std::fs::read_to_string(self.data().join("token"))
            .expect("a token")
            .trim()
            .to_owned();
        let host = Host {
            child,
            line: Line {
                base,
                token,
                http: http(),
            },
        };
        Ok((host, printed))
    }
}

/// The documents that a running program prints, a line each.
#[derive(Debug)]
pub struct Printed(Lines<BufReader<ChildStdout>>);

impl Printed {
    /// Passes over documents up to one like this, and returns it. None when the program prints no
    /// more.
    pub async fn find(&mut self, is: impl Fn(&Value) -> bool) -> Option<Value> {
        while let Some(line) = self.0.next_line().await.ok().flatten() {
            let document = serde_json::from_str(&line).unwrap_or_default();
            if is(&document) {
                return Some(document);
            }
        }
        None
    }

    /// Waits for a document with this `event`.
    ///
    /// # Panics
    /// When none comes in time.
    pub async fn event(&mut self, name: &str) -> Value {
        let found = tokio::time::timeout(PATIENCE, self.find(|it| it["event"] == name)).await;
        found
            .unwrap_or_else(|_| panic!("no `{name}` in time"))
            .unwrap_or_else(|| panic!("the program has ended without `{name}`"))
    }
}

/// Has components compiled in the cache that all tests share.
async fn compiled(components: &[&str]) {
    static LOADED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let loaded = || LOADED.lock().expect("no panic in between");
    let missing: Vec<&str> = components
        .iter()
        .copied()
        .filter(|name| !loaded().contains(*name))
        .collect();
    if missing.is_empty() {
        return;
    }
    let runtime = crate::world::runtime();
    for name in missing {
        runtime
            .load(wasm(name))
            .await
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        loaded().insert(name.to_owned());
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
