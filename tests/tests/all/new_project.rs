//! Projects of authors: made by `new` outside the repository, built and tested as their README
//! says, loaded by the host and called, fired or talked with.
//!
//! Those in Rust are always tried. Those in another language need its tools on the PATH, because
//! nothing is fetched for them.

use agent_host_tests::guests::root;
use agent_host_tests::patience::until;
use agent_host_tests::process::{PATIENCE, program, tells};
use agent_host_tests::skip::{WITHOUT_C, WITHOUT_JAVASCRIPT, WITHOUT_PYTHON, needed};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// The time in which a project is built and tested, or a large component is compiled.
const BUILD_PATIENCE: Duration = Duration::from_secs(600);

/// Waits until no other project is built, which lasts until the file is closed. Projects have the
/// same packages at the same places, so cargo would build one over another in the shared folder.
fn alone() -> File {
    let folder = root().join("target");
    std::fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join("new-projects.lock")).unwrap();
    lock.lock().unwrap();
    lock
}

/// A project in a folder of its own.
struct Project {
    dir: TempDir,
    name: &'static str,
    _alone: File,
}

impl Project {
    /// Makes one by the command line.
    async fn new(kind: &str, name: &'static str, language: &str) -> Self {
        let dir = TempDir::new().unwrap();
        let mut command = command(program());
        command
            .args(["new", kind, name, "--lang", language, "--json"])
            .current_dir(dir.path());
        let made = ended(command, PATIENCE).await;
        let document: Value = serde_json::from_slice(&made.stdout).unwrap();
        assert_eq!(document["folder"], name, "{document}");
        assert_eq!(document["next"].as_array().unwrap().len(), 3, "{document}");
        Self {
            dir,
            name,
            _alone: alone(),
        }
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join(self.name)
    }

    fn command(&self, program: impl Into<PathBuf>) -> Command {
        let mut command = command(program.into());
        command.current_dir(self.folder());
        command
    }

    /// Runs the commands of its README as they stand there, in one shell.
    async fn build_and_test(&self) -> String {
        let readme = std::fs::read_to_string(self.folder().join("README.md")).unwrap();
        let commands: Vec<&str> = readme
            .split("```sh\n")
            .skip(1)
            .filter_map(|rest| rest.split("```").next())
            .collect();
        assert!(!commands.is_empty(), "{readme}");
        let mut shell = self.command("bash");
        shell.args(["-e", "-o", "pipefail", "-c", &commands.concat()]);
        let done = ended(shell, BUILD_PATIENCE).await;
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Checks its configuration, serves it and says something; returns the words of the chat.
    async fn answer_to(&self, words: &str) -> String {
        self.reported(&["config", "check"]).await;
        let host = self.serve().await;
        let mut chat = self.command(program());
        chat.args(["chat", "--quiet", "--config", "agent-host.toml"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut chat = chat.spawn().unwrap();
        let mut stdin = chat.stdin.take().unwrap();
        stdin.write_all(words.as_bytes()).await.unwrap();
        drop(stdin);
        let said = timeout(PATIENCE, chat.wait_with_output()).await;
        let said = said.expect("an answer in time").unwrap();
        stop(host).await;
        assert!(said.status.success(), "{said:?}");
        String::from_utf8(said.stdout).unwrap()
    }

    /// Runs a command of the program with its configuration; returns what it says.
    async fn reported(&self, arguments: &[&str]) -> String {
        let mut command = self.command(program());
        command
            .args(arguments)
            .args(["--config", "agent-host.toml"]);
        let done = ended(command, BUILD_PATIENCE).await;
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Runs a command again and again until it says this.
    async fn until_reported(&self, arguments: &[&str], words: &str) {
        until(async || self.reported(arguments).await.contains(words)).await;
    }

    /// Starts the service that a connector's project has, on any free port, and leads the project's
    /// configuration there.
    async fn service(&self) -> ChatProgram {
        let mut run = self.command("cargo");
        run.args(["run", "--quiet", "--example", "chat"])
            .args(["--", "127.0.0.1:0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = run.spawn().unwrap();
        let mut service = ChatProgram {
            typed: process.stdin.take().unwrap(),
            shown: BufReader::new(process.stdout.take().unwrap()).lines(),
            _process: process,
        };
        let first = service.line(BUILD_PATIENCE).await;
        let (_, address) = first.split_once("127.0.0.1:").unwrap();
        let (port, _) = address.split_once(';').unwrap();
        let config = self.folder().join("agent-host.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        tells(&text, &["7788"]);
        std::fs::write(config, text.replace("7788", port)).unwrap();
        service
    }

    /// Starts a host with its configuration, on any free port, and waits until it is ready.
    async fn serve(&self) -> Child {
        let mut serve = self.command(program());
        serve
            .args(["serve", "--json", "--listen", "127.0.0.1:0"])
            .args(["--config", "agent-host.toml"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut host = serve.spawn().unwrap();
        let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
        let first = timeout(BUILD_PATIENCE, lines.next_line()).await;
        let first = first.expect("a host that is ready in time").unwrap();
        assert!(first.is_some(), "the host has ended");
        host
    }
}

/// The service of a connector's project.
struct ChatProgram {
    typed: ChildStdin,
    shown: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl ChatProgram {
    /// Types a line.
    async fn say(&mut self, words: &str) {
        let line = format!("{words}\n");
        self.typed.write_all(line.as_bytes()).await.unwrap();
    }

    /// Returns the next line that it shows.
    async fn line(&mut self, patience: Duration) -> String {
        let line = timeout(patience, self.shown.next_line()).await;
        let line = line.expect("a line in time").unwrap();
        line.expect("a service that goes on")
    }
}

async fn stop(mut host: Child) {
    let process = host.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    kill_process(process.unwrap(), Signal::TERM).unwrap();
    let status = timeout(PATIENCE, host.wait()).await;
    assert!(status.expect("an end in time").unwrap().success());
}

/// A command that finds the program, keeps what is compiled where other tests do, and fetches
/// nothing.
fn command(program: PathBuf) -> Command {
    let mut command = Command::new(program);
    command
        // What lints this repository on the way is nothing to a project of somebody else.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env("PATH", path())
        .env("CARGO_BUILD_BUILD_DIR", root().join("target/plugins"))
        .env("CARGO_NET_OFFLINE", "true")
        .env("npm_config_offline", "true")
        .env(
            "AGENT_HOST_COMPONENTS",
            root().join("guests/target/wasm32-wasip2/release"),
        )
        .env_remove("AGENT_HOST_CONFIG")
        .env_remove("AGENT_HOST_TOKEN")
        // Cargo's own of this test would lead a project's cargo elsewhere.
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .kill_on_drop(true);
    command
}

/// Returns the `PATH` with the program's folder before all others.
fn path() -> OsString {
    let program = program();
    let own = program.parent().map(Path::to_path_buf);
    let others = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(own.into_iter().chain(std::env::split_paths(&others))).unwrap()
}

/// Runs a command to its end, which is a success.
async fn ended(mut command: Command, patience: Duration) -> Output {
    command.stdin(Stdio::null());
    let output = timeout(patience, command.output()).await;
    let output = output.expect("a command that ends in time").unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

/// Returns that all of these programs are on the PATH; the error names one that is not.
fn on_path(programs: &[&str]) -> Result<(), String> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    match programs.iter().find(|program| !is_in(&folders, program)) {
        Some(missing) => Err(format!("there is no `{missing}` on the PATH")),
        None => Ok(()),
    }
}

/// Returns whether a program is in one of the folders of a `PATH`, or is one by its whole path.
fn is_in(folders: &OsStr, program: &str) -> bool {
    std::env::split_paths(folders).any(|folder| folder.join(program).is_file())
}

/// Returns that a C compiler for components is where the `Makefile` of a new project looks for it,
/// by these variables of the environment; the error says what is not.
fn c_compiler(variable: impl Fn(&str) -> Option<OsString>) -> Result<(), String> {
    let folders = variable("PATH").unwrap_or_default();
    let missing = |program: &str| format!("there is no `{program}` on the PATH");
    if let Some(program) = ["make", "cc"].iter().find(|it| !is_in(&folders, it)) {
        return Err(missing(program));
    }
    if let Some(sdk) = variable("WASI_SDK_PATH").filter(|sdk| !sdk.is_empty()) {
        let clang = Path::new(&sdk).join("bin/clang");
        let reported = format!("there is no `{}`, as WASI_SDK_PATH says", clang.display());
        return clang.is_file().then_some(()).ok_or(reported);
    }
    let libc = variable("WASI_LIBC").unwrap_or_else(|| "/usr".into());
    if !Path::new(&libc).join("lib/wasm32-wasi/libc.a").is_file() {
        let below = libc.display();
        return Err(format!(
            "there is no wasi-libc below {below} and no WASI_SDK_PATH"
        ));
    }
    let named = variable("CLANG").map(|clang| clang.to_string_lossy().into_owned());
    let clangs = named.unwrap_or_else(clangs);
    if clangs.split(' ').any(|clang| is_in(&folders, clang)) {
        return Ok(());
    }
    Err(missing(clangs.split(' ').next().unwrap_or(&clangs)))
}

/// Returns the names under which the `Makefile` of a new project in C looks for clang.
fn clangs() -> String {
    let makefile = root().join("host/agent-host/src/new/templates/c/Makefile");
    let makefile = std::fs::read_to_string(makefile).unwrap();
    let names = makefile
        .lines()
        .find_map(|line| line.strip_prefix("CLANGS = "));
    names.expect("the names of clang").to_owned()
}

async fn a_tool_counts(language: &str) {
    let project = Project::new("tool", "word-count", language).await;
    let shown = project.build_and_test().await;
    tells(
        &shown,
        &[
            "tool     word_count: Counts the words of a text. (read-only)",
            "  version  0.1.0",
        ],
    );
    let unknown = "the unknown tool agent_host_no_such_tool: not-found";
    tells(&shown, &[unknown]);
    let said = project.answer_to("one two  three").await;
    tells(&said, &["Words: 3."]);
    let said = project.answer_to("\"quoted\" \\ words and \t 🐌").await;
    tells(&said, &["Words: 5."]);
}

/// Returns the first block of a page in this language.
fn block<'a>(page: &'a str, language: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

/// A tool that keeps the arguments of its last call in a file, and reads it first.
const SUPERVISOR: &str = r#"
import { makeTools } from "./tool.js";
import * as files from "./files.js";

export const tools = makeTools(files);
"#;
const SUPERVISOR_TOOL: &str = r#"
import { tools as counter } from "./counter.js";

export const makeTools = (files) => ({
  describe: () => counter.describe(),

  call(context, name, args) {
    const before = files.read("/workspace/in.txt");
    files.write("/workspace/out.txt", `${before} 🐌`);
    return counter.call(context, name, args);
  },
});
"#;
const SUPERVISOR_CASES: &str = r#"
[[case]]
tool = "word_count"
arguments = { text = "two words" }
files = { "in.txt" = "Grüße" }
expect.json = { words = 2 }
expect.files = { "out.txt" = "Grüße 🐌" }

[[case]]
name = "no such file"
tool = "word_count"
arguments = { text = "two words" }
expect.outcome = "not-found"

[[case]]
name = "not granted"
tool = "word_count"
arguments = { text = "two words" }
folder = "/elsewhere"
expect.outcome = "denied"
"#;

/// Follows the README of a tool in JavaScript to one that reads and writes files.
async fn a_javascript_tool_keeps_files() {
    let project = Project::new("tool", "word-count", "js").await;
    let at = |path: &str| project.folder().join(path);
    let read = |path: &str| std::fs::read_to_string(at(path)).unwrap();
    let readme = read("README.md");
    let capabilities = r#"capabilities: ["files.read", "files.write"]"#;
    let counter = read("plugin.js").replace("capabilities: []", capabilities);
    let tests = read("plugin.test.js").replace("./plugin.js", "./counter.js");
    let package = read("package.json").replace("--world tool-plugin", "--world my-tool");
    let test = "plugin test word-count.wasm";
    let commands = readme.replace(test, &format!("{test} --cases cases.toml"));
    for (path, text) in [
        ("wit/mine.wit", block(&readme, "wit")),
        ("files.js", block(&readme, "js")),
        ("counter.js", counter.as_str()),
        ("tool.js", SUPERVISOR_TOOL),
        ("plugin.js", SUPERVISOR),
        ("plugin.test.js", tests.as_str()),
        ("package.json", package.as_str()),
        ("cases.toml", SUPERVISOR_CASES),
        ("README.md", commands.as_str()),
    ] {
        std::fs::write(at(path), text).unwrap();
    }
    let shown = project.build_and_test().await;
    tells(&shown, &["no such file: word_count: not-found"]);
}

/// Follows the README of a tool in Python to one that sends requests.
async fn a_python_tool_fetches() {
    let project = Project::new("tool", "word-count", "python").await;
    let at = |path: &str| project.folder().join(path);
    let readme = std::fs::read_to_string(at("README.md")).unwrap();
    // The bindings of the world from before are there when those of the new one are made.
    let mut shell = project.command("bash");
    shell.args(["-ec", block(&readme, "sh").lines().next().unwrap()]);
    ended(shell, BUILD_PATIENCE).await;
    std::fs::write(at("wit/mine.wit"), block(&readme, "wit")).unwrap();
    std::fs::write(at("web.py"), block(&readme, "python")).unwrap();
    let code = std::fs::read_to_string(at("app.py")).unwrap();
    let types = "from wit_world.imports import agent_host_plugin_types as types\nimport web";
    let code = code
        .replace("from wit_world.imports import types", types)
        .replace("capabilities=[]", "capabilities=[\"net.http\"]");
    std::fs::write(at("app.py"), code).unwrap();
    let commands = readme.replace("-w tool-plugin", "-w my-tool");
    std::fs::write(at("README.md"), commands).unwrap();
    let shown = project.build_and_test().await;
    tells(&shown, &["wasi:http/outgoing-handler@0.2."]);
}

async fn an_agent_answers(language: &str) {
    let project = Project::new("agent", "poet", language).await;
    let shown = project.build_and_test().await;
    tells(
        &shown,
        &[
            "agent    Poet: Answers in one sentence.",
            "  version  0.1.0",
        ],
    );
    let said = project.answer_to("The sea is salt.").await;
    tells(&said, &["In one sentence: The sea is salt."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_in_rust_is_made_built_tested_and_called_outside_the_repository() {
    a_tool_counts("rust").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_in_rust_is_made_built_tested_and_asked_outside_the_repository() {
    an_agent_answers("rust").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_in_rust_is_made_built_tested_and_fired_outside_the_repository() {
    let project = Project::new("trigger", "questions", "rust").await;
    let shown = project.build_and_test().await;
    tells(
        &shown,
        &[
            "trigger  questions: Says the next message of a list",
            "  version  0.1.0",
        ],
    );
    let heard = "a trigger event of the kind `clock`: 1 message";
    tells(&shown, &[heard]);
    let checked = project.reported(&["config", "check"]).await;
    tells(&checked, &["questions (schedule)"]);
    let checked = project.reported(&["component", "check", "questions"]).await;
    tells(&checked, &["fires on clock"]);
    let host = project.serve().await;
    for said in [
        "Heard: Ask me what I finished.",
        "Heard: Ask me what I learned.",
    ] {
        project.reported(&["trigger", "run", "questions"]).await;
        project.until_reported(&["session", "list"], said).await;
    }
    let history = project.reported(&["trigger", "history", "questions"]).await;
    assert_eq!(history.matches("  done  ").count(), 2, "{history}");
    stop(host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connector_in_rust_is_made_built_tested_and_used_outside_the_repository() {
    let project = Project::new("connector", "pager", "rust").await;
    let shown = project.build_and_test().await;
    tells(
        &shown,
        &[
            "connector pager: Talks with people at a chat service.",
            "  version  0.1.0",
            "poll: retry-later",
        ],
    );
    let mut service = project.service().await;
    let checked = project.reported(&["config", "check"]).await;
    tells(&checked, &["pager (polling)"]);
    let checked = project.reported(&["component", "check", "pager"]).await;
    tells(&checked, &["hears by polling", "granted  net.http"]);
    let host = project.serve().await;
    project
        .reported(&["connector", "bind", "local", "pager:you"])
        .await;
    service.say("hello").await;
    assert_eq!(service.line(PATIENCE).await, "to you: You said: hello");
    stop(host).await;
    service.say("are you there?").await;
    let host = project.serve().await;
    let answer = service.line(PATIENCE).await;
    assert_eq!(answer, "to you: You said: are you there?");
    let outbound_messages = [
        "connector",
        "outbound-messages",
        "pager",
        "--state",
        "delivered",
    ];
    project
        .until_reported(&outbound_messages, "attempts 1")
        .await;
    stop(host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_a_language_has_no_template_of_is_refused_and_nothing_is_made() {
    let dir = TempDir::new().unwrap();
    let mut new = command(program());
    new.args(["new", "connector", "pager", "--lang", "python"])
        .current_dir(dir.path());
    let refused = new.output().await.unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let reported = String::from_utf8_lossy(&refused.stderr);
    let expected = "no template of a connector in `python`; there is one in `rust`";
    tells(&reported, &[expected]);
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
}

/// The lines of an example that the documentation hides are those that call it.
#[tokio::test(flavor = "multi_thread")]
async fn the_sdks_examples_of_what_agents_can_do_run_in_a_new_agent_as_it_is_made() {
    let project = Project::new("agent", "poet", "rust").await;
    let page = std::fs::read_to_string(project.folder().join("sdk/README.md")).unwrap();
    let (_, section) = page
        .split_once("\n## What an agent can do differently\n")
        .unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let blocks = section.split("```rust\n").skip(1);
    let examples: Vec<String> = blocks
        .filter_map(|rest| Some(rest.split_once("```")?.0))
        .map(|block| {
            let lines = block
                .lines()
                .map(|line| line.strip_prefix("# ").unwrap_or(line));
            lines.collect::<Vec<_>>().join("\n")
        })
        .filter(|example| example.contains("fn main()"))
        .collect();
    assert!(examples.len() >= 2, "{examples:?}");
    let folder = project.folder().join("examples");
    std::fs::create_dir(&folder).unwrap();
    for (number, example) in examples.iter().enumerate() {
        let name = format!("example_{number}");
        std::fs::write(folder.join(format!("{name}.rs")), example).unwrap();
        let mut run = project.command("cargo");
        run.args(["run", "--quiet", "--example", &name]);
        ended(run, BUILD_PATIENCE).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_in_python_are_built_tested_and_called_where_its_tools_are() {
    if needed(on_path(&["python3", "componentize-py"]), WITHOUT_PYTHON).is_some() {
        a_tool_counts("python").await;
        a_python_tool_fetches().await;
        an_agent_answers("python").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_in_javascript_are_built_tested_and_called_where_its_tools_are() {
    let tools = on_path(&["node", "npm", "componentize-qjs"]);
    if needed(tools, WITHOUT_JAVASCRIPT).is_some() {
        a_tool_counts("js").await;
        a_javascript_tool_keeps_files().await;
    }
    let tools = on_path(&["node", "npm", "componentize-js"]);
    if needed(tools, WITHOUT_JAVASCRIPT).is_some() {
        an_agent_answers("js").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_in_c_are_built_tested_and_called_where_its_tools_are() {
    let compiler = c_compiler(|variable| std::env::var_os(OsStr::new(variable)));
    if needed(compiler, WITHOUT_C).is_some() {
        a_tool_counts("c").await;
        an_agent_answers("c").await;
    }
}

#[test]
fn a_c_compiler_is_missing_unless_all_of_it_is_where_projects_look() {
    let dir = TempDir::new().unwrap();
    let place = |file: &str| {
        let file = dir.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "").unwrap();
    };
    let below = |name: &str| dir.path().join(name).into_os_string();
    let packages = |variable: &str| match variable {
        "PATH" => Some(below("bin")),
        "WASI_LIBC" => Some(below("libc")),
        _ => None,
    };
    let with = |name: &'static str, value: &str| {
        let value = below(value);
        move |variable: &str| match variable {
            it if it == name => Some(value.clone()),
            it => packages(it),
        }
    };
    let lacks = |reported: Result<(), String>, what: &str| {
        let reported = reported.unwrap_err();
        tells(&reported, &[what]);
    };
    lacks(c_compiler(packages), "`make`");
    place("bin/make");
    lacks(c_compiler(packages), "`cc`");
    place("bin/cc");
    lacks(c_compiler(packages), "wasi-libc below");
    place("libc/lib/wasm32-wasi/libc.a");
    lacks(c_compiler(packages), "there is no `clang` on the PATH");
    lacks(c_compiler(with("WASI_SDK_PATH", "sdk")), "sdk/bin/clang");
    place("sdk/bin/clang");
    assert_eq!(c_compiler(with("WASI_SDK_PATH", "sdk")), Ok(()));
    assert_eq!(c_compiler(with("CLANG", "sdk/bin/clang")), Ok(()));
    place("bin/clang-21");
    assert_eq!(c_compiler(packages), Ok(()));
    lacks(c_compiler(with("CLANG", "bin/none")), "bin/none");
}
