//! The first mistakes of operators and authors, each told with its place and its fix.

mod grants;
mod scopes;

use agent_host_tests::process::{Folder, PATIENCE, program};
use serde_json::json;
use std::process::Output;
use tokio::process::Command;

/// A configuration that is in order.
const SOUND: &str = r#"[[agents]]
agentId = "assistant"
displayName = "Assistant"
component = "files-agent"

[[agents]]
agentId = "worker"
displayName = "Worker"
component = "worker"

[components.files-agent]
path = "assistant.wasm"
models = ["*"]
agents = ["*"]

[components.files]
directories = [{ path = "files", at = "/workspace", access = "read-write" }]

[components.web]
network = [{ host = "api.example.com" }]
secrets = [{ secret = "github", host = "api.example.com", slot = { header = "authorization" } }]

[secrets.github]
env = "MISTAKES_SECRET"

[providers.main]
kind = "openai"
apiKeyEnv = "MISTAKES_KEY"

[models.small]
provider = "main"
model = "gpt-5-mini"

[roles]
user = "small"

[limits]
hopsMax = 8

[queue]
debounce = "2s"

[server]
listen = "127.0.0.1:7777"
dataDir = "data"
"#;

/// Mistakes in the sound configuration, two lines each. The first has the text that a mistake
/// replaces, `*` for the whole, and the text in its place. The second has the field, with the line
/// where the file itself is wrong, and the fix.
const MISTAKES: &str = r#"displayName = "Assistant" => displayname = "Assistant"
    c.toml:3:1: agents[0].displayname | did you mean `displayName`?
displayName = "Assistant"\n =>
    c.toml:1:1: agents[0] | the key `displayName` is missing
agentId = "assistant" => agentId = 7
    c.toml:2:11: agents[0].agentId | `7` is not a text in quotes
agentId = "assistant" => agentId = assistant
    c.toml:2:11 | string values must be quoted
[[agents]]\nagentId = "assistant" => [[agents]\nagentId = "assistant"
    c.toml:1:10 | expected `]`
[providers.main] => [agents.x]\n[providers.main]
    agents[1].x | write `[[agents]]` for another entry, and agentId = "x" in it
provider = "main" => provider = "mian"
    models.small.provider | did you mean `main`?
kind = "openai" => kind = "opnai"
    c.toml:27:8: providers.main.kind | did you mean `openai`?
apiKeyEnv = "MISTAKES_KEY" => apiKeyFile = "nokey"
    providers.main.apiKeyFile | a relative path starts from the config file's folder
apiKeyEnv = "MISTAKES_KEY" => apiKeyFile = "open-key"
    providers.main.apiKeyFile | run: chmod 600
"MISTAKES_KEY" => "MISTAKES_NONE"
    providers.main.apiKeyEnv | set it to the provider's key, or name a file in `apiKeyFile`
apiKeyEnv = "MISTAKES_KEY" => apiKey = "sk-0123456789abcdef"
    providers.main | put it into a file and name that in `apiKeyFile`
kind = "openai" => kind = "openai"\nbaseUrl = "api.openai.com/v1"
    providers.main.baseUrl | it must begin with http:// or https://
hopsMax = 8 => hopsMax = -1
    limits.hopsMax | `-1` is not a whole number from 0 to 4294967295
agentId = "worker" => agentId = "assistant"
    agents[1].agentId | give one of them another agentId
component = "worker" => component = "wroker"
    agents[1].component | did you mean `worker`?
component = "worker" => component = "files"
    agents[1].component | `files` offers tools and is not an agent; name an agent
component = "worker" => component = "worker"\nmodel = "smal"
    agents[1].model | did you mean `small`?
user = "small" => usr = "small"
    c.toml:35:1: roles | did you mean `user`?
user = "small" => user = "big"
    roles.user | there are `small`
path = "files" => path = "nowhere"
    components.files.directories[0].path | make it with: mkdir -p
path = "assistant.wasm" => path = "asistant.wasm"
    components.files-agent.path | there is no file
at = "/workspace" => at = "workspace"
    components.files.directories[0].at | must be a path such as `/workspace`
"read-write" }] => "read-write" }, { path = "files", at = "/w", access = "read-only" }]
    components.files.directories[1].path | grant folders apart from each other
"read-write" => "rw"
    c.toml:17:62: components.files.directories[0].access | known are `read-only`, `read-write`
network = [{ host = "api.example.com" }] => network = [{ host = "https://api.example.com/v1" }]
    components.web.network[0].host | write `host = "api.example.com"`
network = [{ host = "api.example.com" }] => network = [{ host = "*" }]
    components.web.network[0] | set `anyHost = true` beside it
network = [{ host = "api.example.com" }] => network = [{ host = "api.*.com" }]
    components.web.network[0].host | as in `*.example.com`
network = [{ host = "api.example.com" }] => network = [{ host = "api.example.com", methods = ["get"] }]
    components.web.network[0].methods[0] | did you mean `GET`?
[components.web] => [components.web]\nsha256 = "sha256:abc"
    components.web.sha256 | is not 64 hexadecimal digits; `agent-host component inspect` prints them
debounce = "2s" => debounce = "2 minutes"
    queue.debounce | a number with ms, s, m, h or d
listen = "127.0.0.1:7777" => listen = "127.0.0.1"
    server.listen | write `127.0.0.1:7777`
listen = "127.0.0.1:7777" => listen = "localhost:8080"
    server.listen | write `127.0.0.1:8080`
env = "MISTAKES_SECRET" => env = "MISTAKES_NONE"
    secrets.github | set it where the host is started
component = "worker" => component = "worker"\ncapabilityDenylist = ["net.htp"]
    agents[1].capabilityDenylist[0] | `net.htp` is no capability of this host; the nearest is `net.http`
listen = "127.0.0.1:7777" => listen = "0.0.0.0:7777"
    server.listen | put something in front that speaks TLS
component = "worker" => component = "worker"\ncapabilityDenylist = ["file.read"]
    agents[1].capabilityDenylist[0] | the nearest is `files.read`
component = "worker" => component = "worker"\ntoolAllowlist = ["raed_file"]
    agents[1].toolAllowlist[0] | the nearest is `read_file`
* => [server]\ndataDir = "data"\n
    agents | write `[[agents]]` with an `agentId` and a `displayName`"#;

/// A folder with what the sound configuration names.
async fn folder() -> Folder {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new(json!({}));
    folder.warm(&["assistant", "worker", "files", "web"]).await;
    let key = folder.path().join("open-key");
    std::fs::write(&key, "0123456789abcdef").unwrap();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    let assistant = agent_host_tests::guests::wasm("assistant");
    std::fs::write(folder.path().join("assistant.wasm"), assistant).unwrap();
    folder
}

/// Runs a command with a configuration of this text.
async fn run(folder: &Folder, arguments: &[&str], config: &str) -> Output {
    std::fs::write(folder.path().join("c.toml"), config).unwrap();
    let mut command = Command::new(program());
    command
        .args(arguments)
        .args(["--config", "c.toml"])
        .current_dir(folder.path())
        .kill_on_drop(true)
        .env_remove("RUST_LOG")
        .env("MISTAKES_KEY", "0123456789abcdef")
        .env("MISTAKES_SECRET", "0123456789abcdef")
        .env(
            "AGENT_HOST_COMPONENTS",
            agent_host_tests::guests::root().join("guests/target/wasm32-wasip2/release"),
        );
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    output.unwrap().unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every first mistake of an operator is told by its field or its line, and with the fix. The last
/// ones are warnings, for which only a strict check fails.
#[tokio::test(flavor = "multi_thread")]
async fn every_first_mistake_in_a_configuration_is_told_with_its_place_and_its_fix() {
    let folder = folder().await;
    let check = ["config", "check", "--strict"];
    let sound = run(&folder, &check, SOUND).await;
    assert!(sound.status.success(), "{}", err(&sound));
    let lines: Vec<&str> = MISTAKES.lines().map(str::trim).collect();
    for mistake in lines.chunks(2) {
        let (replaced, wrong) = mistake[0].split_once(" =>").unwrap();
        let (place, fix) = mistake[1].split_once(" | ").unwrap();
        let text = |written: &str| written.trim_start().replace("\\n", "\n");
        let replaced = text(replaced);
        let wrong = text(wrong);
        let replaced = if replaced == "*" { SOUND } else { &replaced };
        assert!(SOUND.contains(replaced), "{replaced}");
        let reported = run(&folder, &check, &SOUND.replacen(replaced, &wrong, 1)).await;
        let text = err(&reported);
        assert!(
            reported.status.code() == Some(2) && text.contains(place) && text.contains(fix),
            "{wrong}\n{place}\n{fix}\n{text}"
        );
        for rust in [
            "struct ",
            "invalid type",
            "invalid value",
            "expected u",
            "network.0",
        ] {
            assert!(!text.contains(rust), "{wrong}: {text}");
        }
    }
}

/// A warning alone does not fail the check, unless it is strict.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_strict_check_fails_for_a_warning_such_as_a_wanted_tool_of_nobody() {
    let folder = folder().await;
    // The assistant wants `delegate`, which is there for whoever has a worker. It has nothing else.
    let only = "component = \"files-agent\"\ntoolAllowlist = [\"delegate\"]";
    let alone = SOUND
        .replacen("agentId = \"worker\"", "agentId = \"other\"", 1)
        .replacen("component = \"files-agent\"", only, 1);
    let reported = run(&folder, &["config", "check"], &alone).await;
    let warning = "warning: agents[0].component: its component wants the tool `delegate`, which \
                   nothing offers";
    assert!(
        reported.status.success() && err(&reported).contains(warning),
        "{}",
        err(&reported)
    );
    let reported = run(&folder, &["config", "check", "--strict"], &alone).await;
    assert_eq!(reported.status.code(), Some(2), "{}", err(&reported));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_and_an_address_that_is_none_are_told_with_the_fix() {
    let folder = folder().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let config = SOUND.replacen("127.0.0.1:7777", &address, 1);
    let reported = run(&folder, &["serve"], &config).await;
    let text = err(&reported);
    assert!(
        reported.status.code() == Some(1)
            && text.contains(&format!("cannot listen at {address} (`server.listen`)"))
            && text.contains("another program listens there")
            && text.contains("serve --listen 127.0.0.1:0"),
        "{text}"
    );
    let reported = run(&folder, &["serve", "--listen", "localhost:80"], SOUND).await;
    assert!(
        reported.status.code() == Some(2) && err(&reported).contains("write `127.0.0.1:80`"),
        "{}",
        err(&reported)
    );
}
