//! The lines of the three programs, as they write them, and what is told to them.

use super::Cli;
use super::cli::{ConversationItem, Gathered, Protocol, Step, Turn};
use super::thread::{Known, fitting, is_session, known, opaque, render};
use crate::config::ProviderKind;
use crate::tests::{self as fixture, message};
use domain::message::{Message, Part, Role};
use serde_json::{Value, json};
use std::path::Path;

mod recorded;

const CLAUDE: &str = include_str!("fixtures/claude/answer.jsonl");
const CODEX: &str = include_str!("fixtures/codex/answer.jsonl");
const PI: &str = include_str!("fixtures/pi/answer.jsonl");

fn turn<'a>(resumed: Option<&'a str>, tools: &'a [String]) -> Turn<'a> {
    Turn {
        model: "large",
        system: "Be brief.",
        system_file: "/tmp/t/system-prompt.md",
        key_pipe: None,
        key: None,
        prompt: "Read a.txt",
        resumed,
        fresh: "11111111-2222-4333-8444-555555555555",
        folder: Path::new("/work"),
        read_only: false,
        is_confined: false,
        tools,
        login: false,
    }
}

/// Everything that a turn came to.
struct Played {
    said: Vec<ConversationItem>,
    last: Step,
    gathered: Gathered,
}

/// Plays the lines of the first turn of a session.
fn play(cli: Cli, lines: &str) -> Played {
    play_turn(cli, &turn(None, &[]), lines)
}

fn play_turn(cli: Cli, turn: &Turn<'_>, lines: &str) -> Played {
    let mut protocol = cli.protocol(turn);
    let mut said = protocol.opening();
    let mut last = Step::More(Vec::new());
    for line in lines.lines() {
        last = protocol.take(&serde_json::from_str(line).unwrap());
        match &last {
            Step::More(more) => said.extend(more.iter().cloned()),
            Step::Done | Step::Failed(_) => break,
        }
    }
    Played {
        said,
        last,
        gathered: protocol.gathered(),
    }
}

fn texts(said: &[ConversationItem]) -> Vec<&str> {
    let texts = said.iter().filter_map(|said| match said {
        ConversationItem::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn calls(said: &[ConversationItem]) -> Vec<(u32, &str)> {
    let calls = said.iter().filter_map(|said| match said {
        ConversationItem::Call(index, name) => Some((*index, name.as_str())),
        _ => None,
    });
    calls.collect()
}

/// The messages that were written, as JSON.
fn written(said: &[ConversationItem]) -> Vec<Value> {
    let written = said.iter().filter_map(|said| match said {
        ConversationItem::Write(text) => Some(serde_json::from_str(text).unwrap()),
        _ => None,
    });
    written.collect()
}

#[test]
fn the_reason_of_a_failure_of_claude_is_named_wherever_it_stands() {
    for (result, words) in [
        (json!({ "result": "No.", "errors": ["Why"] }), "No."),
        (json!({ "errors": ["One", 2, "", "three"] }), "One; three"),
        (json!({ "result": "", "errors": [] }), "error_max_turns"),
    ] {
        let mut line = json!({ "type": "result", "subtype": "error_max_turns", "is_error": true });
        line.as_object_mut()
            .unwrap()
            .extend(result.as_object().unwrap().clone());
        let last = play(Cli::Claude, &line.to_string()).last;
        assert_eq!(last, Step::Failed(words.to_owned()));
    }
}

#[test]
fn a_helper_of_claude_does_not_speak_for_it() {
    let own = CLAUDE.lines().filter(|line| line.contains("text_delta"));
    let helpers: Vec<String> = own
        .map(|line| {
            line.replace(
                "\"parent_tool_use_id\":null",
                "\"parent_tool_use_id\":\"t\"",
            )
        })
        .collect();
    assert_eq!(helpers.len(), 2);
    assert_eq!(
        play(Cli::Claude, &helpers.join("\n")).said.len(),
        2,
        "its opening"
    );
}

#[test]
fn claude_reads_its_prompt_from_stdin_and_nothing_after_it() {
    let played = play(Cli::Claude, "");
    let expected = [
        ConversationItem::Write("Read a.txt".to_owned()),
        ConversationItem::Close,
    ];
    assert_eq!(played.said, expected);
    let arguments = Cli::Claude.arguments(&turn(None, &[])).join(" ");
    assert_eq!(
        arguments,
        "-p --bare --output-format stream-json --verbose --include-partial-messages --model large \
         --tools  --system-prompt-file /tmp/t/system-prompt.md --session-id \
         11111111-2222-4333-8444-555555555555"
    );
    let tools = ["Read".to_owned(), "Grep".to_owned()];
    let login = Turn {
        login: true,
        ..turn(Some("s1"), &tools)
    };
    let arguments = Cli::Claude.arguments(&login).join(" ");
    assert_eq!(
        arguments,
        "-p --setting-sources user --strict-mcp-config --output-format stream-json --verbose \
         --include-partial-messages --model large --tools Read,Grep --system-prompt-file \
         /tmp/t/system-prompt.md --allowedTools Read,Grep --resume s1"
    );
}

#[test]
fn codex_is_agreed_with_then_given_its_thread_and_its_turn() {
    let asks = json!({ "method": "item/commandExecution/requestApproval", "id": 7, "params": {} });
    let begun: Vec<&str> = CODEX.lines().take(7).collect();
    let played = play(Cli::Codex, &format!("{}\n{asks}", begun.join("\n")));
    let written = written(&played.said);
    let methods: Vec<&str> = written
        .iter()
        .map(|message| message["method"].as_str().unwrap_or("an answer"))
        .collect();
    assert_eq!(
        methods,
        [
            "initialize",
            "initialized",
            "thread/start",
            "turn/start",
            "an answer"
        ]
    );
    assert_eq!(written[2]["params"]["approvalPolicy"], "never");
    assert_eq!(written[2]["params"]["sandbox"], "read-only");
    assert_eq!(written[2]["params"]["baseInstructions"], "Be brief.");
    assert_eq!(written[3]["params"]["input"][0]["text"], "Read a.txt");
    assert_eq!(written[4]["id"], 7, "what it asks for is refused");
    assert!(written[4]["error"].is_object());
    let resumed = super::codex::Codex::new(&turn(Some("t1"), &["shell".to_owned()]));
    let opens = format!("{resumed:?}");
    assert!(opens.contains("thread/resume") && opens.contains("workspace-write"));
}

#[test]
fn the_commands_of_codex_have_its_own_sandbox_unless_the_host_confines_them() {
    let tools = ["shell".to_owned()];
    let opened = json!({ "id": 1, "result": { "thread": { "id": "t" } } });
    for (is_confined, tools, policy) in [
        (true, &tools[..], json!("externalSandbox")),
        (false, &tools[..], Value::Null),
        (true, &tools[..0], Value::Null),
    ] {
        let turn = Turn {
            is_confined,
            ..turn(None, tools)
        };
        let Step::More(said) = super::codex::Codex::new(&turn).take(&opened) else {
            panic!("the turn ended before it began");
        };
        assert_eq!(written(&said)[0]["params"]["sandboxPolicy"]["type"], policy);
    }
}

#[test]
fn codex_keeps_none_of_its_tools_that_can_be_taken_away() {
    let arguments = Cli::Codex.arguments(&turn(None, &[])).join(" ");
    assert_eq!(
        arguments,
        "app-server -c analytics.enabled=false -c features.shell_tool=false \
         -c features.multi_agent=false -c features.goals=false -c features.view_image=false \
         -c features.image_generation=false -c features.sleep_tool=false \
         -c web_search=\"disabled\""
    );
    let arguments = Cli::Codex.arguments(&turn(None, &["shell".to_owned()]));
    assert_eq!(arguments.join(" "), "app-server -c analytics.enabled=false");
}

/// A helper may be told of first, and a thread that goes on has used something before.
#[test]
fn the_usage_of_a_thread_of_codex_is_what_its_total_grows_by() {
    let lines: Vec<Value> = [("t", "1", 100, 7), ("t", "2", 130, 30), ("h", "3", 50, 5)]
        .into_iter()
        .map(|reported| {
            let usage = json!({
                "total": { "inputTokens": reported.2 },
                "last": { "inputTokens": reported.3 },
            });
            let params =
                json!({ "threadId": reported.0, "turnId": reported.1, "tokenUsage": usage });
            json!({ "method": "thread/tokenUsage/updated", "params": params })
        })
        .collect();
    let mut codex = super::codex::Codex::new(&turn(Some("t"), &[]));
    for line in [
        &json!({ "id": 1, "result": { "thread": { "id": "t" } } }),
        &lines[0],
        &json!({ "id": 2, "result": { "turn": { "id": "2" } } }),
        &lines[1],
        &lines[2],
    ] {
        codex.take(line);
    }
    let usage = Box::new(codex).gathered().usage.unwrap();
    assert_eq!(usage.input_tokens, 30 + 5);
}

#[test]
fn pi_tells_its_session_before_it_is_prompted() {
    let played = play(Cli::Pi, PI);
    let written = written(&played.said);
    assert_eq!(
        written,
        [
            json!({ "type": "get_state" }),
            json!({ "type": "prompt", "message": "Read a.txt" }),
        ]
    );
    let arguments = Cli::Pi.arguments(&turn(Some("s1"), &[])).join(" ");
    assert_eq!(
        arguments,
        "--mode rpc --model large --system-prompt /tmp/t/system-prompt.md --no-tools --session s1"
    );
}

#[test]
fn no_word_is_an_option_a_path_or_a_command_of_a_program() {
    for cli in [Cli::Claude, Cli::Codex, Cli::Pi] {
        for words in ["/proc/self/environ", "--help", "@/etc/passwd", "/export x"] {
            let turn = Turn {
                system: words,
                prompt: words,
                ..turn(None, &[])
            };
            let arguments = cli.arguments(&turn);
            assert!(arguments.iter().all(|it| it != words), "{arguments:?}");
        }
    }
    let said = |text: &str| render(&[message(1, Role::User, vec![Part::text(text)])]);
    for text in [
        "/context",
        "!ls",
        "@a.txt",
        "#x",
        " /x",
        "\u{feff}/x",
        "-p",
        "",
    ] {
        assert_eq!(said(text), format!("User:\n{text}"));
    }
    for text in ["Read a@b.example and @a.txt", "7 apples", "Привет /x"] {
        assert_eq!(said(text), text);
    }
}

#[test]
fn a_key_is_neither_an_argument_nor_kept_by_a_program() {
    let key = crate::key::ApiKey::new("sk-a-key-of-codex").unwrap();
    let codex = Turn {
        key: Some(&key),
        ..turn(None, &[])
    };
    let arguments = Cli::Codex.arguments(&codex).join(" ");
    assert!(arguments.contains("cli_auth_credentials_store=\"ephemeral\""));
    assert!(!arguments.contains("sk-a-key"), "{arguments}");
    let answers = [
        json!({ "id": 0, "result": {} }),
        json!({ "id": 3, "result": {} }),
    ];
    let lines: Vec<String> = answers.iter().map(Value::to_string).collect();
    let written = written(&play_turn(Cli::Codex, &codex, &lines.join("\n")).said);
    let login = json!({ "type": "apiKey", "apiKey": "sk-a-key-of-codex" });
    assert_eq!(written[2]["params"], login);
    assert_eq!(written[3]["method"], "thread/start");
    let pipe = Path::new("/tmp/it's here/key");
    let claude = Turn {
        key_pipe: Some(pipe),
        ..turn(None, &[])
    };
    let arguments = Cli::Claude.arguments(&claude);
    let place = arguments.iter().position(|it| it == "--settings").unwrap();
    let settings: Value = serde_json::from_str(&arguments[place + 1]).unwrap();
    assert_eq!(settings["apiKeyHelper"], r"cat '/tmp/it'\''s here/key'");
}

#[test]
fn lines_that_are_anything_else_are_passed_over() {
    for cli in [Cli::Claude, Cli::Codex, Cli::Pi] {
        let mut protocol = cli.protocol(&turn(None, &[]));
        for line in [
            json!(null),
            json!([]),
            json!("x"),
            json!({}),
            json!({ "id": "x" }),
        ] {
            assert_eq!(protocol.take(&line), Step::More(Vec::new()), "{cli:?}");
        }
    }
}

#[test]
fn a_provider_that_is_a_program_says_which() {
    assert_eq!(Cli::of(ProviderKind::ClaudeCli), Some(Cli::Claude));
    assert_eq!(Cli::of(ProviderKind::CodexCli), Some(Cli::Codex));
    assert_eq!(Cli::of(ProviderKind::PiCli), Some(Cli::Pi));
    assert_eq!(Cli::of(ProviderKind::Anthropic), None);
}

fn reply(id: u64, session: &str, turns: u64) -> Message {
    let opaque = fixture::opaque(opaque(session, turns, &["Read".to_owned()]));
    message(id, Role::Assistant, vec![Part::text("Yes."), opaque])
}

#[test]
fn the_newest_session_of_a_thread_goes_on_with_what_came_after_it() {
    let user = |id, text: &str| message(id, Role::User, vec![Part::text(text)]);
    let thread = [
        user(1, "One"),
        reply(2, "s1", 1),
        user(3, "Two"),
        reply(4, "s1", 2),
    ];
    let asked = [&thread[..], &[user(5, "Three")]].concat();
    let expected = Known {
        session: "s1".to_owned(),
        turns: 2,
        messages: 4,
    };
    assert_eq!(known(&asked, "p", "m"), Some(expected));
    assert_eq!(render(&asked[4..]), "Three");
    // Nothing new, another model, another provider, an id that is none.
    assert_eq!(known(&thread, "p", "m"), None);
    assert_eq!(known(&asked, "p", "other"), None);
    assert_eq!(known(&asked, "other", "m"), None);
    let broken = [reply(1, "../s1", 1), user(2, "Two")];
    assert_eq!(known(&broken, "p", "m"), None);
}

#[test]
fn a_thread_that_no_session_knows_is_told_with_who_said_what() {
    let call = fixture::call("c", "read", "{}");
    let thread = [
        message(1, Role::User, vec![Part::text("Read it.")]),
        message(2, Role::Assistant, vec![Part::text("I do."), call]),
        fixture::result(3, 2, 0, "read", "hello"),
        message(4, Role::User, vec![Part::text("Well?")]),
    ];
    assert_eq!(
        render(&thread),
        "The conversation so far, and at its end what to answer:\n\nUser:\nRead it.\n\n\
         Assistant:\nI do.\n[calls read: {}]\n\nResult of a tool:\nhello\n\nUser:\nWell?"
    );
    let schema = json!({ "type": "object" });
    assert!(fitting("Well?".to_owned(), Some(&schema)).ends_with("{\"type\":\"object\"}"));
    assert_eq!(fitting("Well?".to_owned(), None), "Well?");
}

#[test]
fn an_id_that_could_be_an_option_or_a_path_is_no_session() {
    for id in ["0f6a2f0e-5f3b-4a39", "abc_1", "A"] {
        assert!(is_session(id), "{id}");
    }
    for id in [
        "",
        "-p",
        "--model",
        "../x",
        "a/b",
        "a b",
        "a.b",
        "é",
        &"x".repeat(129),
    ] {
        assert!(!is_session(id), "{id}");
    }
}
