//! Command-line agents: a program of the operating system in a model's place, played by a script,
//! and what becomes of one that hangs, forks, floods, breaks off, writes elsewhere, or loses its
//! host.

mod telling;

use agent_host_tests::guests::test_program;
use agent_host_tests::process::{Folder, Host, program, tells};
use agent_host_tests::skip::{WITHOUT_LANDLOCK, needed};
use llm::program::Enforcement;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// A program with the options and the lines of `claude`. The last line of what it is told says what
/// it does, in a block or alone.
const PROGRAM: &str = r#"#!/bin/sh
mode=fresh
session=
while [ $# -gt 0 ]; do
  case "$1" in
    --session-id) session=$2; shift ;;
    --resume) session=$2; mode=resumed; shift ;;
    --system-prompt-file) system=$(cat "$2"); shift ;;
    --settings) helper=$(printf '%s' "$2" | sed 's/^{"apiKeyHelper":"//; s/"}$//'); shift ;;
  esac
  shift
done
prompt=$(cat)
word=$(printf '%s\n' "$prompt" | grep -v '^</from>$' | tail -n 1)
case "$prompt" in
  *nameless*) word=nameless ;;
  *misfit*) word=misfit ;;
esac
printf '%s\n' "$word" >> begun
line() { printf '%s\n' "$1"; }
end() {
  line '{"type":"stream_event","event":{"type":"content_block_start","content_block":{"type":"tool_use","name":"Read"}},"parent_tool_use_id":null}'
  line '{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"'"$1"'"}},"parent_tool_use_id":null}'
  line '{"type":"result","subtype":"success","is_error":false,"result":"'"$1"'","session_id":"'"$session"'","usage":{"input_tokens":10,"output_tokens":5}}'
}
case "$word" in
  hang) sleep "$MARK" ;;
  deaf) trap '' TERM; while :; do sleep "$MARK"; done ;;
  heavy) text=$(head -c 100000000 /dev/zero | tr '\0' x); sleep "$MARK" ;;
  busy) while :; do :; done ;;
  long) head -c 100000 /dev/zero > big 2>/dev/null; end "$(wc -c < big)" ;;
  fork)
    setsid sleep "$MARK" &
    setsid sh -c 'trap "" TERM; sleep "$MARK"; :' &
    end forked ;;
  flood) yes 'a line that nobody reads to its end' ;;
  swarm) while :; do sleep "$MARK" & sleep 0.01; done ;;
  half) printf '{"type":"stream_ev'; exit 3 ;;
  error) line '{"type":"result","subtype":"success","is_error":true,"result":"API Error: 401","session_id":"s"}' ;;
  costly) line '{"type":"result","subtype":"success","is_error":true,"result":"API Error: 500","session_id":"s","usage":{"input_tokens":70,"output_tokens":54321}}' ;;
  boast) line '{"type":"result","subtype":"success","is_error":false,"result":"much","session_id":"'"$session"'","usage":{"input_tokens":4611686018427387904,"output_tokens":5}}' ;;
  misfit) end "no JSON" ;;
  nameless) line '{"type":"result","subtype":"success","is_error":false,"result":"no JSON"}' ;;
  outside)
    if echo x > "$OUTSIDE/written" 2>/dev/null; then wrote=yes; else wrote=no; fi
    if cat "$OUTSIDE/secret" >/dev/null 2>&1; then read=yes; else read=no; fi
    if echo x > inside; then inside=yes; else inside=no; fi
    end "outside $wrote $read, inside $inside" ;;
  inherited)
    touch "$TMPDIR/made" && temporary=temporary
    end "${HOST_SECRET:-none}, $(basename "$HOME"), $(pwd | sed 's,.*/,,'), $temporary" ;;
  environ)
    host=$(cut -d ' ' -f 4 "/proc/$PPID/stat")
    seen=
    for id in "$PPID" "$host"; do
      if cat "/proc/$id/environ" >/dev/null 2>&1; then seen="$seen $id"; fi
    done
    end "${host:+known}, read:${seen:- nothing}" ;;
  rebel)
    host=$(cut -d ' ' -f 4 "/proc/$PPID/stat")
    for tool in prlimit renice taskset chrt ionice; do
      command -v "$tool" >/dev/null || exit 9
    done
    prlimit --nofile >/dev/null || exit 9
    took=
    for process in "$PPID" "$host"; do
      kill -KILL "$process" && took="$took kill"
      prlimit --pid "$process" --nofile=0:0 && took="$took limits"
      prlimit --pid "$process" --cpu=1:1 && took="$took time"
      renice -n 19 -p "$process" && took="$took priority"
      taskset -p 1 "$process" && took="$took processors"
      chrt -i -p 0 "$process" && took="$took schedule"
      ionice -c 3 -p "$process" && took="$took storage"
    done >/dev/null 2>&1
    end "${took:-refused}" ;;
  key) end "the key is $(sh -c "$helper"), and then $(sh -c "$helper" 2>/dev/null)nothing" ;;
  own)
    if tr '\0' '\n' < /proc/self/environ | grep -q long-enough; then seen=key; fi
    end "environment: ${seen:-no key}" ;;
  mentions)
    if [ "$CLAUDE_CODE_DISABLE_FILE_MENTIONS$CLAUDE_CODE_DISABLE_ATTACHMENTS" = 11 ]; then
      end "words alone"
    else
      end "reads files"
    fi ;;
  system) end "system: $system" ;;
  *) end "$mode: $(printf '%s' "$prompt" | tr '\n' ' ' | sed 's/"/\\"/g')" ;;
esac
"#;

/// A host whose only model is the script, with a folder in which it works, and one in which it must
/// not.
struct Scene {
    folder: Folder,
    /// Seconds that the script's children sleep: no other process of the machine has that number.
    mark: String,
}

impl Scene {
    async fn new(limits: Value) -> Self {
        let mark = format!(
            "{}",
            7_000_000 + u64::from(std::process::id()) * 10 + next()
        );
        let folder = Folder::new(json!({}));
        let at = |name: &str| folder.path().join(name);
        for name in ["work", "outside"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        std::fs::write(at("outside").join("secret"), "secret").unwrap();
        std::fs::write(at("fake"), PROGRAM).unwrap();
        std::fs::set_permissions(at("fake"), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(at("key"), "sk-a-key-that-is-long-enough").unwrap();
        std::fs::set_permissions(at("key"), std::fs::Permissions::from_mode(0o600)).unwrap();
        let program = json!({
            "enabled": true, "path": "fake", "folder": "work", "home": "homes",
            "variables": { "MARK": mark, "OUTSIDE": at("outside") }, "limits": limits,
        });
        folder.configure(json!({
            "agents": [{
                "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": [],
                "chat": { "provider": "claude-cli" },
            }],
            "providers": {
                "fake": { "kind": "claude-cli", "apiKeyFile": "key", "program": program },
            },
            "models": { "m": { "provider": "fake", "model": "m" } },
        }));
        folder.warm(&["assistant"]).await;
        Self { folder, mark }
    }

    /// The configuration, to be changed.
    fn config(&self) -> Value {
        let config = std::fs::read_to_string(self.folder.config_file()).unwrap();
        serde_json::from_str(&config).unwrap()
    }

    async fn start(&self) -> Host {
        let secret = Some(("HOST_SECRET", "a secret of the host"));
        self.folder.start_in(&[], secret).await.unwrap()
    }

    /// The prompts' last lines, of all starts of the program.
    fn begun(&self) -> Vec<String> {
        let begun = std::fs::read_to_string(self.folder.path().join("work/begun"));
        begun
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Waits until no child of the program is left.
    async fn nothing_is_left(&self) {
        self.within(|scene| !scene.sleeps()).await;
    }

    /// Waits until something is so.
    async fn within(&self, is: impl Fn(&Self) -> bool) {
        let until = Instant::now() + Duration::from_secs(20);
        while !is(self) {
            assert!(Instant::now() < until, "{:?}", self.begun());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until a turn of a session has ended, and returns what is on record of that.
    async fn ended(&self, host: &Host, session: &str) -> String {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let ended = host.story(session, "run.ended.v1").await;
            if !ended.is_empty() {
                return json!(ended).to_string();
            }
            assert!(Instant::now() < until, "{}", self.folder.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Returns true while a child of the program is there.
    fn sleeps(&self) -> bool {
        let entries = std::fs::read_dir("/proc").unwrap();
        entries.flatten().any(|entry| {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            command
                .split(|byte| *byte == 0)
                .any(|word| word == self.mark.as_bytes())
        })
    }
}

/// A number that no other scene of this process has.
fn next() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed) % 10
}

/// The ledger's lines about programs, as text.
async fn ledger(host: &Host, session: &str) -> String {
    let id = session.rsplit('/').next().unwrap();
    let audit = host.get(&format!("/api/audit?limit=1000&session={id}"));
    let audit = audit.await.body;
    let lines = audit["lines"].as_array().unwrap().iter();
    lines
        .filter(|line| line["capability"] == "programs.run")
        .map(|line| format!("{}: {}", line["verdict"], line["detail"]))
        .collect::<Vec<_>>()
        .join("\n")
}

fn landlock() -> Option<()> {
    let gap = Enforcement::of_system().gap();
    needed(
        gap.map_or(Ok(()), |gap| Err(gap.to_owned())),
        WITHOUT_LANDLOCK,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_replies_in_a_models_place_and_its_session_goes_on() {
    let scene = Scene::new(json!({})).await;
    let host = scene.start().await;
    let session = host.open("assistant").await;
    let said = host.turn(&session, "hello").gives(200).await.body;
    assert_eq!(said["reply"]["text"], "fresh: hello", "{said}");
    // Only what is new is told to a session that goes on.
    let said = host.turn(&session, "again").gives(200).await.body;
    assert_eq!(said["reply"]["text"], "resumed: again", "{said}");
    // A session that is somewhere else by now is not taken up: a new one is told everything.
    let homes = scene.folder.path().join("homes");
    for home in std::fs::read_dir(&homes).unwrap().flatten() {
        let sessions = std::fs::read_dir(home.path().join("sessions")).unwrap();
        for file in sessions.flatten() {
            std::fs::write(file.path(), "7").unwrap();
        }
    }
    let said = host.turn(&session, "more").gives(200).await.body;
    let text = said["reply"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("fresh: The conversation so far") && text.ends_with("User: more"),
        "{said}"
    );
    // It is told of no tools of the host, and the prompt that is shown has none.
    let (agent, id) = session.split_once("/sessions/").unwrap();
    let prompt = host.get(&format!("{agent}/prompt?session={id}")).await;
    let prompt = prompt.body;
    let parts = prompt["parts"].as_array().unwrap().iter();
    assert!(parts.map(|part| &part["name"]).eq(["base"]), "{prompt}");
    // Streamed, with its calls as information; usage is on record, and nothing was called here.
    let stream = session.replacen("/sessions/", "/stream?after=0&session=", 1);
    let mut frames = host.follow(&stream, None).await;
    let frames = frames.until("stream_complete").await;
    assert!(frames.iter().any(|frame| frame.event == "content_complete"));
    let stepped = json!(host.steps(&session).await).to_string();
    assert!(stepped.contains("\"input_tokens\":10"), "{stepped}");
    assert!(!stepped.contains("\"tool\":\"Read\""), "{stepped}");
    let reported = ledger(&host, &session).await;
    tells(&reported, &["started", "ended"]);
    let started = host.story(&session, "operation.started.v1").await;
    assert_eq!(
        started.len(),
        3,
        "recorded as sent before each: {started:?}"
    );
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_gets_no_environment_of_the_host_and_a_home_of_its_own() {
    let scene = Scene::new(json!({})).await;
    let host = scene.start().await;
    let session = host.open("assistant").await;
    let said = host.turn(&session, "inherited").gives(200).await.body;
    assert_eq!(
        said["reply"]["text"], "none, home, work, temporary",
        "{said}"
    );
    let homes = std::fs::read_dir(scene.folder.path().join("homes")).unwrap();
    for home in homes.flatten() {
        let temporary = std::fs::read_dir(home.path().join("tmp")).unwrap();
        assert_eq!(temporary.count(), 0, "it is gone with its turn");
    }
    // It is masked in what it says, and was there once.
    let said = host.turn(&session, "key").gives(200).await.body;
    let text = said["reply"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("the key is ****") && text.ends_with("****, and then nothing"),
        "{said}"
    );
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_has_no_key_in_its_environment() {
    let scene = Scene::new(json!({})).await;
    let host = scene.start().await;
    let session = host.open("assistant").await;
    let said = host.turn(&session, "own").gives(200).await.body;
    assert_eq!(said["reply"]["text"], "environment: no key", "{said}");
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_reads_no_file_that_a_message_mentions() {
    for login in [false, true] {
        let scene = Scene::new(json!({})).await;
        let mut config = scene.config();
        config["providers"]["fake"]["program"]["login"] = json!(login);
        scene.folder.configure(config);
        let host = scene.start().await;
        let session = host.open("assistant").await;
        let said = host
            .turn(&session, "@/etc/passwd\nmentions")
            .gives(200)
            .await
            .body;
        assert_eq!(said["reply"]["text"], "words alone", "{said}");
        let said = host.turn(&session, "/context").gives(200).await.body;
        assert_eq!(said["reply"]["text"], "resumed: User: /context", "{said}");
        assert!(host.stop().await.success(), "{}", scene.folder.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_system_prompt_that_is_a_path_is_a_text() {
    let scene = Scene::new(json!({})).await;
    let host = scene.start().await;
    let config = json!({ "config": { "system_prompt": "/proc/self/environ" } });
    let opened = host
        .post("/api/agents/assistant/sessions", &config)
        .gives(201)
        .await;
    let agent = opened.text("agent_id");
    let id = opened.text("session_id");
    let session = format!("/api/agents/{agent}/sessions/{id}");
    let said = host.turn(&session, "system").gives(200).await.body;
    assert_eq!(
        said["reply"]["text"], "system: /proc/self/environ",
        "{said}"
    );
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

/// A program shows files of its folder and runs commands: whoever may name its model has them.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_names_a_model_that_the_definition_does_not_allow() {
    let scene = Scene::new(json!({})).await;
    let mut config = scene.config();
    let agent = |id: &str, models: Value| {
        json!({ "agentId": id, "displayName": id, "toolAllowlist": [], "model": "plain",
                "modelAllowlist": models })
    };
    let agents = config["agents"].as_array_mut().unwrap();
    agents.extend([
        agent("kiosk", json!(null)),
        agent("any", json!(["*"])),
        agent("two", json!(["m"])),
    ]);
    config["providers"]["script"] = json!({ "kind": "scripted", "script": "script.toml" });
    for alias in ["plain", "dear"] {
        config["models"][alias] = json!({ "provider": "script", "model": alias });
    }
    config["defaultModel"] = json!("plain");
    config["personas"] = json!([{
        "id": "narrow", "displayName": "Narrow", "agent": "any", "modelAllowlist": ["plain"],
    }]);
    scene.folder.configure(config);
    let script = "[[rule]]\nreply.text = \"a script\"\n";
    std::fs::write(scene.folder.path().join("script.toml"), script).unwrap();
    let host = scene.start().await;
    for (agent, model, status) in [
        ("kiosk", "plain", 201),
        ("kiosk", "m", 422),
        ("kiosk", "dear", 422),
        ("kiosk", "fake/m", 422),
        ("any", "dear", 201),
        ("any", "m", 422),
        ("two", "m", 201),
        ("two", "dear", 422),
        ("assistant", "m", 201),
    ] {
        let path = format!("/api/agents/{agent}/sessions");
        let opened = host.post(&path, &json!({ "model": model })).await;
        assert_eq!(opened.status, status, "{agent} {model} {opened:?}");
    }
    let session = host.open("kiosk").await;
    let message = json!({ "content": "hi", "model": "m" });
    let fork = json!({ "model": "m" });
    let to = json!({ "content": "hi", "model": "m", "to": { "agent": "kiosk" } });
    let persona = json!({ "content": "hi", "model": "dear", "to": { "persona": "narrow" } });
    host.turn(&session, "hi").gives(200).await;
    for (path, body) in [
        (format!("{session}/messages"), &message),
        (format!("{session}/fork"), &fork),
        ("/api/messages".to_owned(), &to),
        ("/api/messages".to_owned(), &persona),
    ] {
        let refused = host.post(&path, body).await;
        assert_eq!(refused.status, 422, "{path} {refused:?}");
    }
    for (agent, expected) in [
        ("kiosk", json!(["plain"])),
        ("any", json!(["dear", "plain"])),
        ("two", json!(["m", "plain"])),
    ] {
        let listed = host.get(&format!("/api/models?agent={agent}")).await;
        let listed = listed.body;
        let models = listed["models"].as_array().unwrap().iter();
        let aliases: Vec<&Value> = models.map(|model| &model["alias"]).collect();
        assert_eq!(json!(aliases), expected, "{agent}");
    }
    assert_eq!(
        scene.begun(),
        Vec::<String>::new(),
        "no program was started"
    );
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

/// An administrator may read the environment of every process, folders or not.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_reads_no_environment_of_its_supervisor_or_the_host() {
    let Some(()) = landlock() else { return };
    let scene = Scene::new(json!({})).await;
    let host = scene.start().await;
    let session = host.open("assistant").await;
    let said = host.turn(&session, "environ").gives(200).await.body;
    assert_eq!(said["reply"]["text"], "known, read: nothing", "{said}");
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

/// One that could end its supervisor would outlive its turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_cannot_end_its_supervisor_or_the_host() {
    let Some(()) = landlock() else { return };
    let scene = Scene::new(json!({})).await;
    let host = scene.start().await;
    let session = host.open("assistant").await;
    let said = host.turn(&session, "rebel").gives(200).await.body;
    assert_eq!(said["reply"]["text"], "refused", "{said}");
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

/// A descriptor that its parent was started with, and that does not close by itself.
#[test]
fn a_program_inherits_no_descriptor() {
    let confinement = json!({
        "supervisor": std::process::id(), "read": ["/usr", "/bin", "/lib", "/lib64", "/etc", "/proc"],
        "write": ["/dev/null"], "is_required": false, "cpu_s_max": 10, "file_bytes_max": 1_000_000,
    });
    let list = |then: &str| {
        let script = format!("exec 7</etc/passwd; exec {then}");
        let output = std::process::Command::new("/bin/sh")
            .args(["-c", &script])
            .arg(program())
            .arg(confinement.to_string())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let seven = "7".to_owned();
    assert!(list("ls /proc/self/fd").contains(&seven), "there is one");
    let confined = list(r#""$0" confine-program "$1" -- /bin/ls /proc/self/fd"#);
    assert!(!confined.contains(&seven), "{confined:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_writes_and_reads_in_its_folder_and_nowhere_else() {
    let Some(()) = landlock() else { return };
    let scene = Scene::new(json!({})).await;
    let host = scene.start().await;
    let session = host.open("assistant").await;
    let said = host.turn(&session, "outside").gives(200).await.body;
    assert_eq!(said["reply"]["text"], "outside no no, inside yes", "{said}");
    let at = |name: &str| scene.folder.path().join(name);
    assert!(!at("outside/written").exists() && at("work/inside").exists());
    let reported = ledger(&host, &session).await;
    assert!(reported.contains("confined to"), "{reported}");
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

/// Each of them ends its turn, leaves no process, was started once, and has its line in the ledger.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_misbehaves_is_ended_with_all_that_it_started() {
    for (word, limits, outcome, line) in [
        (
            "hang",
            json!({ "turnMsMax": 1_000, "graceMs": 300 }),
            "failed",
            "limits.turnMsMax",
        ),
        ("fork", json!({ "graceMs": 300 }), "replied", "ended"),
        (
            "flood",
            json!({ "outputBytesMax": 100_000, "graceMs": 300 }),
            "failed",
            "limits.outputBytesMax",
        ),
        (
            "swarm",
            json!({ "processesMax": 20, "graceMs": 300 }),
            "failed",
            "limits.processesMax",
        ),
        (
            "heavy",
            json!({ "memoryBytesMax": 60_000_000, "graceMs": 300 }),
            "failed",
            "limits.memoryBytesMax",
        ),
        (
            "busy",
            json!({ "cpuSMax": 1, "graceMs": 300 }),
            "failed",
            "ended before its end was told",
        ),
        ("half", json!({}), "failed", "ended before its end was told"),
        ("error", json!({}), "failed", "reports an error"),
    ] {
        let scene = Scene::new(limits).await;
        let host = scene.start().await;
        let session = host.open("assistant").await;
        let said = host.turn(&session, word).gives(200).await.body;
        assert_eq!(said["outcome"], outcome, "{word}: {said}");
        scene.nothing_is_left().await;
        assert_eq!(scene.begun(), [word], "started once, and not again");
        let reported = ledger(&host, &session).await;
        assert!(reported.contains(line), "{word}: {reported}");
        assert_eq!(
            reported.contains("limited"),
            line.starts_with("limits."),
            "{word}: {reported}"
        );
        assert!(host.stop().await.success(), "{}", scene.folder.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_used_before_it_failed_is_charged() {
    let scene = Scene::new(json!({})).await;
    let host = scene.start().await;
    let session = host.open("assistant").await;
    let said = host.turn(&session, "costly").gives(200).await.body;
    assert_eq!(said["outcome"], "failed", "{said}");
    let mut reported = host.steps(&session).await;
    reported.extend(host.story(&session, "run.ended.v1").await);
    let reported = json!(reported).to_string();
    assert!(reported.contains("\"output_tokens\":54321"), "{reported}");
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_of_a_program_with_tools_is_marked_and_impossible_usage_not_believed() {
    let scene = Scene::new(json!({})).await;
    let host = scene.start().await;
    let session = host.open("assistant").await;
    host.turn(&session, "boast").gives(200).await;
    let reported = json!(host.steps(&session).await).to_string();
    assert!(reported.contains("\"usage\":null"), "{reported}");
    assert!(!reported.contains("4611686018427387904"), "{reported}");
    host.turn(&session, "hello").gives(200).await;
    let seen = host.get(&session).await.body;
    let is_marked = |text: &str| {
        let mut messages = seen["messages"].as_array().unwrap().iter();
        let found = messages.find(|message| message["text"] == text);
        found.map(|message| message["untrusted"].clone())
    };
    assert_eq!(is_marked("much"), Some(json!(false)), "no tool: {seen}");
    assert_eq!(is_marked("resumed: hello"), Some(json!(true)), "{seen}");
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_cancelled_ends_with_its_children() {
    for word in ["hang", "deaf"] {
        let scene = Scene::new(json!({ "graceMs": 300 })).await;
        let host = scene.start().await;
        let session = host.open("assistant").await;
        let path = format!("{session}/messages");
        host.post(&path, &json!({ "content": word })).await;
        scene.within(Scene::sleeps).await;
        let cancelled = host.post(&format!("{session}/cancel"), &json!({})).await;
        assert!(cancelled.status < 300, "{cancelled:?}");
        scene.nothing_is_left().await;
        assert_eq!(scene.begun(), [word]);
        // What a stopped call did is on record right after the commit of its end.
        let until = Instant::now() + Duration::from_secs(20);
        while !ledger(&host, &session)
            .await
            .contains("ended with its call")
        {
            assert!(Instant::now() < until, "{}", scene.folder.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(host.stop().await.success(), "{}", scene.folder.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_of_a_program_grows_beyond_its_limit() {
    let scene = Scene::new(json!({ "fileBytesMax": 1_000 })).await;
    let host = scene.start().await;
    let session = host.open("assistant").await;
    let said = host.turn(&session, "long").gives(200).await.body;
    assert_eq!(said["reply"]["text"], "1000", "{said}");
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_may_only_read_writes_nothing_in_its_folder() {
    let Some(()) = landlock() else { return };
    let scene = Scene::new(json!({})).await;
    let mut config = scene.config();
    let program = &mut config["providers"]["fake"]["program"];
    program["readOnly"] = json!(true);
    program["requireConfinement"] = json!(true);
    scene.folder.configure(config);
    let host = scene.start().await;
    let session = host.open("assistant").await;
    let said = host.turn(&session, "outside").gives(200).await.body;
    assert_eq!(said["reply"]["text"], "outside no no, inside no", "{said}");
    let work = std::fs::read_dir(scene.folder.path().join("work")).unwrap();
    assert_eq!(work.count(), 0);
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_a_program_is_unknown_after_a_crash_and_never_repeated() {
    let scene = Scene::new(json!({ "graceMs": 300 })).await;
    let host = scene.start().await;
    let session = host.open("assistant").await;
    let path = format!("{session}/messages");
    host.post(&path, &json!({ "content": "hang" })).await;
    scene.within(Scene::sleeps).await;
    host.kill().await;
    scene.nothing_is_left().await;
    let host = scene.start().await;
    let reported = scene.ended(&host, &session).await;
    tells(&reported, &["the call was cut off, and nobody can tell"]);
    assert_eq!(scene.begun(), ["hang"], "not started again");
    // The session goes on, with a program that is told everything.
    let said = host.turn(&session, "hello").gives(200).await.body;
    assert_eq!(said["outcome"], "replied", "{said}");
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

/// A turn asks a server, and its host ends. At the next start the model is a program: the call is
/// made of that, and is on record as one that is not repeated.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_model_became_a_program_is_not_repeated_either() {
    let scene = Scene::new(json!({ "graceMs": 300 })).await;
    let with_program = scene.config();
    // It takes requests and never answers them.
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", server.local_addr().unwrap());
    let mut with_server = with_program.clone();
    let agent = with_server["agents"][0].as_object_mut().unwrap();
    agent.remove("chat");
    with_server["providers"]["slow"] = json!({ "kind": "openai-compatible", "baseUrl": base });
    with_server["models"]["m"]["provider"] = json!("slow");
    scene.folder.configure(with_server);
    let host = scene.start().await;
    let session = host.open("assistant").await;
    let path = format!("{session}/messages");
    host.post(&path, &json!({ "content": "hang" })).await;
    let asked = server.accept().await.unwrap();
    assert!(
        host.story(&session, "operation.started.v1")
            .await
            .is_empty()
    );
    host.kill().await;
    drop(asked);

    scene.folder.configure(with_program);
    let host = scene.start().await;
    scene.within(Scene::sleeps).await;
    let started = host.story(&session, "operation.started.v1").await;
    assert_eq!(started.len(), 1, "{started:?}");
    assert_eq!(started[0]["effect"], "non-idempotent", "{started:?}");
    host.kill().await;
    scene.nothing_is_left().await;

    let host = scene.start().await;
    let reported = scene.ended(&host, &session).await;
    tells(&reported, &["the call was cut off, and nobody can tell"]);
    assert_eq!(scene.begun(), ["hang"], "not started again");
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_nobody_switched_on_is_never_started() {
    let scene = Scene::new(json!({})).await;
    let mut config = scene.config();
    config["providers"]["fake"]["program"]["enabled"] = json!(false);
    scene.folder.configure(config);
    let host = scene.start().await;
    let session = host.open("assistant").await;
    let said = host.turn(&session, "hello").gives(200).await.body;
    assert_eq!(said["outcome"], "failed", "{said}");
    assert_eq!(scene.begun(), Vec::<String>::new());
    assert!(!Path::new(&scene.folder.path().join("homes")).exists());
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

/// Told everything anew, a program would do its work again.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_does_not_fit_is_repaired_only_in_a_session_that_goes_on() {
    for (word, starts) in [("misfit", 3), ("nameless", 1)] {
        let scene = Scene::new(json!({})).await;
        let host = with_puppet(&scene).await;
        let session = host.open("puppet").await;
        let schema = json!({ "type": "object", "description": word });
        let steps = json!({ "steps": [{
            "until": "all",
            "start": [{ "key": "m", "model": "Be brief.", "schema": schema }],
        }] });
        let said = host
            .turn(&session, &steps.to_string())
            .gives(200)
            .await
            .body;
        assert!(said.to_string().contains("invalid-reply"), "{word}: {said}");
        assert_eq!(scene.begun(), vec![word; starts], "{said}");
        assert!(host.stop().await.success(), "{}", scene.folder.log());
    }
}

/// A host of the scene that has a puppet beside the program.
async fn with_puppet(scene: &Scene) -> Host {
    let puppet = test_program("puppet");
    let mut config = scene.config();
    let agents = config["agents"].as_array_mut().unwrap();
    agents.push(
        json!({ "agentId": "puppet", "displayName": "Puppet", "component": "puppet",
                       "model": "m" }),
    );
    config["components"] =
        json!({ "puppet": { "path": puppet, "agents": ["*"], "models": ["*"] } });
    scene.folder.configure(config);
    scene.folder.warm(&["puppet"]).await;
    scene.start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_answers_a_message_of_another_agent() {
    let scene = Scene::new(json!({})).await;
    let host = with_puppet(&scene).await;
    let session = host.open("puppet").await;
    let message = json!({ "agentId": "assistant", "content": "hello" });
    let steps = json!({ "steps": [{
        "until": "all",
        "start": [{ "key": "m", "tool": "agents_message", "args": message }],
    }] });
    let said = host
        .turn(&session, &steps.to_string())
        .gives(200)
        .await
        .body;
    let text = said["reply"]["text"].as_str().unwrap();
    // It is told who speaks.
    assert!(
        text.contains("fresh: User: <from agent=") && text.contains("> hello </from>"),
        "{said}"
    );
    assert!(text.contains("complete"), "{said}");
    assert_eq!(scene.begun(), ["hello"]);
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}
