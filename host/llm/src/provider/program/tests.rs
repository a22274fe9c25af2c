//! The lines of the three programs, as they write them, and what is told to them.

use super::protocol::{Gathered, Said, Step, Turn};
use super::thread::{Known, fitting, is_session, known, opaque, render};
use super::{Cli, ProviderKind};
use domain::digest::Salt;
use domain::message::{Answers, Message, Part, Role};
use domain::model::Usage;
use serde_json::{Value, json};
use std::path::Path;

const CLAUDE: &str = include_str!("fixtures/claude.jsonl");
const CLAUDE_ERROR: &str = include_str!("fixtures/claude-error.jsonl");
const CODEX: &str = include_str!("fixtures/codex.jsonl");
const CODEX_ERROR: &str = include_str!("fixtures/codex-error.jsonl");
const PI: &str = include_str!("fixtures/pi.jsonl");
const PI_ERROR: &str = include_str!("fixtures/pi-error.jsonl");

fn turn<'a>(resumed: Option<&'a str>, tools: &'a [String]) -> Turn<'a> {
    Turn {
        model: "large",
        system: "Be brief.",
        prompt: "Read a.txt",
        resumed,
        fresh: "11111111-2222-4333-8444-555555555555",
        folder: Path::new("/work"),
        read_only: false,
        tools,
        login: false,
    }
}

/// Everything that a turn came to.
struct Played {
    said: Vec<Said>,
    last: Step,
    gathered: Gathered,
}

/// Plays the lines of a turn.
fn play(cli: Cli, lines: &str) -> Played {
    let mut protocol = cli.protocol(&turn(None, &[]));
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

fn texts(said: &[Said]) -> Vec<&str> {
    let texts = said.iter().filter_map(|said| match said {
        Said::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn calls(said: &[Said]) -> Vec<(u32, &str)> {
    let calls = said.iter().filter_map(|said| match said {
        Said::Call(index, name) => Some((*index, name.as_str())),
        _ => None,
    });
    calls.collect()
}

/// The messages that were written, as JSON.
fn written(said: &[Said]) -> Vec<Value> {
    let written = said.iter().filter_map(|said| match said {
        Said::Write(text) => Some(serde_json::from_str(text).unwrap()),
        _ => None,
    });
    written.collect()
}

#[test]
fn the_recorded_lines_of_each_program_become_its_reply() {
    for (cli, lines, session, call, thinks, usage) in [
        (
            Cli::Claude,
            CLAUDE,
            "0f6a2f0e-5f3b-4a39-8a53-0f2f9bb0e7a1",
            "Read",
            true,
            (87, 26, 30),
        ),
        (
            Cli::Codex,
            CODEX,
            "0199a213-81c0-7800-8aa1-bbab2a035a53",
            "shell",
            false,
            (220, 13, 100),
        ),
        (
            Cli::Pi,
            PI,
            "4d2f0d0c-2f9e-7aa1-b0a3-9d1c0f5e1a22",
            "read",
            true,
            (255, 14, 120),
        ),
    ] {
        let played = play(cli, lines);
        assert_eq!(played.last, Step::Done, "{cli:?}");
        assert_eq!(texts(&played.said), ["It says ", "hello."], "{cli:?}");
        assert_eq!(calls(&played.said), [(0, call)], "{cli:?}");
        let thinking = Said::Thinking("A file.".to_owned());
        assert_eq!(played.said.contains(&thinking), thinks, "{cli:?}");
        let gathered = played.gathered;
        assert_eq!(gathered.session.as_deref(), Some(session), "{cli:?}");
        assert_eq!(gathered.texts, ["It says hello."], "{cli:?}");
        assert_eq!(gathered.calls, [call], "{cli:?}");
        let (input_tokens, output_tokens, cached_tokens) = usage;
        let usage = Usage {
            input_tokens,
            output_tokens,
            cached_tokens,
        };
        assert_eq!(gathered.usage, Some(usage), "{cli:?}");
    }
}

#[test]
fn an_error_of_the_service_is_no_reply_however_the_program_ends() {
    for (cli, lines, words) in [
        (
            Cli::Claude,
            CLAUDE_ERROR,
            "API Error: 401 invalid x-api-key",
        ),
        (
            Cli::Codex,
            CODEX_ERROR,
            "unexpected status 401 Unauthorized",
        ),
        (Cli::Pi, PI_ERROR, "401 invalid x-api-key"),
    ] {
        assert_eq!(play(cli, lines).last, Step::Failed(words.to_owned()));
    }
}

#[test]
fn half_of_the_lines_is_no_end() {
    for (cli, lines) in [(Cli::Claude, CLAUDE), (Cli::Codex, CODEX), (Cli::Pi, PI)] {
        let count = lines.lines().count();
        let half: Vec<&str> = lines.lines().take(count - 1).collect();
        let last = play(cli, &half.join("\n")).last;
        assert!(matches!(last, Step::More(_)), "{cli:?}: {last:?}");
    }
}

#[test]
fn claude_reads_its_prompt_from_stdin_and_nothing_after_it() {
    let played = play(Cli::Claude, "");
    let expected = [Said::Write("Read a.txt".to_owned()), Said::Close];
    assert_eq!(played.said, expected);
    let arguments = Cli::Claude.arguments(&turn(None, &[])).join(" ");
    assert_eq!(
        arguments,
        "-p --bare --output-format stream-json --verbose --include-partial-messages --model large \
         --tools  --system-prompt Be brief. --session-id 11111111-2222-4333-8444-555555555555"
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
         --include-partial-messages --model large --tools Read,Grep --system-prompt Be brief. \
         --allowedTools Read,Grep --resume s1"
    );
}

#[test]
fn codex_is_agreed_with_then_given_its_thread_and_its_turn() {
    let played = play(Cli::Codex, CODEX);
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
    let resumed = super::Codex::new(&turn(Some("t1"), &["shell".to_owned()]));
    let opens = format!("{resumed:?}");
    assert!(opens.contains("thread/resume") && opens.contains("workspace-write"));
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
        "--mode rpc --model large --system-prompt Be brief. --no-tools --session s1"
    );
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

fn message(id: u64, role: Role, parts: Vec<Part>) -> Message {
    Message {
        id,
        role,
        parts,
        origin: "api".to_owned(),
        untrusted: false,
        answers: None,
        salt: Salt::default(),
    }
}

fn reply(id: u64, session: &str, turns: u64) -> Message {
    let value = opaque(session, turns, &["Read".to_owned()]);
    let opaque = Part::Opaque {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        value,
    };
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
    let mut result = message(3, Role::Tool, vec![Part::text("hello")]);
    result.answers = Some(Answers {
        message: 2,
        index: 0,
        call_id: "c".to_owned(),
        name: "read".to_owned(),
        failed: false,
    });
    let call = Part::Call {
        call_id: "c".to_owned(),
        name: "read".to_owned(),
        arguments: "{}".to_owned(),
    };
    let thread = [
        message(1, Role::User, vec![Part::text("Read it.")]),
        message(2, Role::Assistant, vec![Part::text("I do."), call]),
        result,
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
