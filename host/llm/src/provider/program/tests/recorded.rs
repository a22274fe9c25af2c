//! Recorded turns of the three programs, and what is made of each. `fixtures/README.md` says how
//! they were recorded.

use super::{calls, play_turn, texts, turn};
use crate::provider::program::Cli;
use crate::provider::program::cli::{ConversationItem, Step};
use domain::model::{Stop, Usage};

const CLAUDE_SESSION: &str = "c1a0de00-0000-4000-8000-000000000001";
const CODEX_SESSION: &str = "c0de0000-0000-4000-8000-000000000002";
const PI_SESSION: &str = "31415926-0000-4000-8000-000000000001";
const REPORTED: &[&str] = &["It says ", "hello."];

/// The end of a turn, as its lines tell it.
#[derive(Debug, PartialEq)]
enum End {
    Done,
    Failed(&'static str),
    /// There is none.
    Open,
}

/// A recorded turn, and what is made of it.
struct Recorded {
    name: &'static str,
    cli: Cli,
    lines: &'static str,
    resumed: Option<&'static str>,
    end: End,
    /// The session's id; none if it is not looked at.
    session: Option<&'static str>,
    /// The pieces of text that are shown while it runs.
    shown: &'static [&'static str],
    thinks: bool,
    texts: &'static [&'static str],
    calls: &'static [&'static str],
    /// Tokens of input, of output, and of input that was cached.
    usage: Option<[u64; 3]>,
    stop: Option<Stop>,
}

/// A recorded turn that ends with a plain answer, unless fields say otherwise.
macro_rules! recorded {
    ($cli:ident, $scene:literal $(, $field:ident: $value:expr)* $(,)?) => {
        Recorded {
            $($field: $value,)*
            ..Recorded::answer(
                Cli::$cli,
                $scene,
                include_str!(concat!("../fixtures/", $scene, ".jsonl")),
            )
        }
    };
}

impl Recorded {
    fn answer(cli: Cli, name: &'static str, lines: &'static str) -> Self {
        let usage = match cli {
            Cli::Claude | Cli::Pi => [47, 6, 30],
            Cli::Codex => [120, 3, 60],
        };
        Self {
            name,
            cli,
            lines,
            resumed: None,
            end: End::Done,
            session: None,
            shown: REPORTED,
            thinks: false,
            texts: &["It says hello."],
            calls: &[],
            usage: Some(usage),
            stop: None,
        }
    }

    /// Checks everything that is made of the turn.
    fn check(&self) {
        let name = self.name;
        let played = play_turn(self.cli, &turn(self.resumed, &[]), self.lines);
        match (&played.last, &self.end) {
            (Step::Done, End::Done) | (Step::More(_), End::Open) => {}
            (Step::Failed(words), End::Failed(expected)) => assert_eq!(words, expected, "{name}"),
            (last, end) => panic!("{name} ended with {last:?}, not with {end:?}"),
        }
        assert_eq!(texts(&played.said), self.shown, "{name}");
        let thinking = ConversationItem::Thinking("A file.".to_owned());
        assert_eq!(played.said.contains(&thinking), self.thinks, "{name}");
        let shown: Vec<&str> = calls(&played.said).into_iter().map(|call| call.1).collect();
        assert_eq!(shown, self.calls, "{name}");
        let gathered = played.gathered;
        assert_eq!(gathered.calls, self.calls, "{name}");
        if self.session.is_some() {
            assert_eq!(gathered.session.as_deref(), self.session, "{name}");
        }
        // An error of the service is a text of claude's too, and not looked at by anybody.
        if self.end == End::Done {
            assert_eq!(gathered.texts, self.texts, "{name}");
        }
        assert_eq!(gathered.usage.map(tokens), self.usage, "{name}");
        assert_eq!(gathered.stop, self.stop, "{name}");
    }
}

fn tokens(usage: Usage) -> [u64; 3] {
    [usage.input_tokens, usage.output_tokens, usage.cached_tokens]
}

#[test]
fn an_answer_becomes_the_reply_with_its_usage_and_its_session() {
    for recorded in [
        recorded!(Claude, "claude/answer", session: Some(CLAUDE_SESSION), thinks: true),
        recorded!(Codex, "codex/answer", session: Some(CODEX_SESSION)),
        recorded!(Pi, "pi/answer", session: Some(PI_SESSION), thinks: true),
    ] {
        recorded.check();
    }
}

#[test]
fn the_second_turn_of_a_session_is_charged_for_itself_alone() {
    for recorded in [
        recorded!(
            Claude, "claude/resumed",
            resumed: Some(CLAUDE_SESSION), session: Some(CLAUDE_SESSION),
        ),
        recorded!(
            Codex, "codex/resumed",
            resumed: Some(CODEX_SESSION), session: Some(CODEX_SESSION),
        ),
        recorded!(Pi, "pi/resumed", resumed: Some(PI_SESSION), session: Some(PI_SESSION)),
    ] {
        recorded.check();
    }
}

#[test]
fn a_tool_is_shown_and_both_answers_around_it_are_charged() {
    let chunks: &[&str] = &["I look.", "It says ", "hello."];
    let reply: &[&str] = &["I look.", "It says hello."];
    for recorded in [
        recorded!(
            Claude, "claude/tool",
            shown: chunks, thinks: true, texts: reply, calls: &["Read"], usage: Some([122, 26, 65]),
        ),
        recorded!(
            Codex, "codex/tool",
            thinks: true, calls: &["shell"], usage: Some([220, 13, 100]),
        ),
        recorded!(
            Pi, "pi/tool",
            shown: chunks, thinks: true, texts: reply, calls: &["read"], usage: Some([122, 26, 65]),
        ),
    ] {
        recorded.check();
    }
}

/// A turn that failed with these words, and without an answer.
macro_rules! failed {
    ($cli:ident, $scene:literal, $usage:expr, $words:expr) => {
        recorded!($cli, $scene, end: End::Failed($words), shown: &[], usage: $usage)
    };
}

#[test]
fn an_error_of_claudes_service_is_no_reply_although_it_is_a_text() {
    let nothing = Some([0, 0, 0]);
    for recorded in [
        failed!(
            Claude,
            "claude/error-400",
            nothing,
            "API Error: 400 messages: text content blocks must be non-empty"
        ),
        failed!(
            Claude,
            "claude/error-401",
            nothing,
            "Invalid API key · Fix external API key"
        ),
        failed!(
            Claude,
            "claude/error-429",
            nothing,
            "API Error: Request rejected (429) · This request would exceed your organization's \
             rate limit"
        ),
        failed!(
            Claude,
            "claude/error-529",
            nothing,
            "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again \
             in a moment. If it persists, check your inference gateway (127.0.0.1:8080)."
        ),
    ] {
        recorded.check();
    }
}

#[test]
fn an_error_of_codexs_service_ends_the_turn_only_after_its_retries() {
    for recorded in [
        failed!(
            Codex,
            "codex/error-400",
            None,
            "{\"error\": {\"type\": \"invalid_request_error\", \"message\": \"messages: text \
             content blocks must be non-empty\", \"code\": null}}"
        ),
        failed!(
            Codex,
            "codex/error-401",
            None,
            "unexpected status 401 Unauthorized: Incorrect API key provided: wrong., url: \
             http://127.0.0.1:8080/v1/responses"
        ),
        failed!(
            Codex,
            "codex/error-429",
            None,
            "exceeded retry limit, last status: 429 Too Many Requests"
        ),
        failed!(
            Codex,
            "codex/error-503",
            None,
            "unexpected status 503 Service Unavailable: The server is overloaded., url: \
             http://127.0.0.1:8080/v1/responses"
        ),
    ] {
        recorded.check();
    }
}

#[test]
fn an_error_of_pis_service_ends_the_turn_only_after_its_retries() {
    let nothing = Some([0, 0, 0]);
    for recorded in [
        failed!(
            Pi,
            "pi/error-400",
            nothing,
            "400 {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\
             \"messages: text content blocks must be non-empty\"},\"request_id\":\"req_1\"}"
        ),
        failed!(
            Pi,
            "pi/error-401",
            nothing,
            "401 {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\
             \"invalid x-api-key\"},\"request_id\":\"req_1\"}"
        ),
        failed!(
            Pi,
            "pi/error-429",
            nothing,
            "429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\
             \"This request would exceed your organization's rate limit\"},\
             \"request_id\":\"req_1\"}"
        ),
        failed!(
            Pi,
            "pi/error-529",
            nothing,
            "529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\
             \"Overloaded\"},\"request_id\":\"req_1\"}"
        ),
    ] {
        recorded.check();
    }
}

/// Claude asks to go on three times, and then gives up; codex gives up at once.
#[test]
fn a_model_that_is_cut_off_is_told_of_and_charged() {
    for recorded in [
        recorded!(
            Claude, "claude/length",
            end: End::Failed(
                "API Error: Claude's response exceeded the 128000 output token maximum. To \
                 configure this behavior, set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment \
                 variable."
            ),
            shown: &[
                "It says ", "hello.", "It says ", "hello.",
                "It says ", "hello.", "It says ", "hello.",
            ],
            usage: Some([188, 24, 120]),
        ),
        recorded!(
            Codex, "codex/length",
            end: End::Failed("Incomplete response returned, reason: max_output_tokens"),
        ),
        recorded!(Pi, "pi/length", stop: Some(Stop::Length)),
    ] {
        recorded.check();
    }
}

#[test]
fn an_answer_that_broke_off_is_shown_and_is_no_part_of_the_reply() {
    let chunks: &[&str] = &["It says ", "It says ", "hello."];
    for recorded in [
        recorded!(Claude, "claude/retried", shown: chunks, usage: Some([94, 9, 60])),
        recorded!(Codex, "codex/retried", shown: chunks),
        recorded!(Pi, "pi/retried", shown: chunks, usage: Some([94, 7, 60])),
    ] {
        recorded.check();
    }
}

/// Each of the two answers twice: before its helper is done, and after it.
#[test]
fn a_helper_is_charged_and_neither_speaks_for_the_program_nor_ends_it() {
    const ANSWER: &str = "It says hello.";
    const LATER: &str = "Main says it later.";
    for recorded in [
        recorded!(
            Claude, "claude/helper",
            shown: &["It says ", "hello.", "It says ", "hello."],
            texts: &[ANSWER, ANSWER], calls: &["Agent"], usage: Some([244, 38, 130]),
        ),
        recorded!(
            Codex, "codex/helper",
            shown: &["Main ", "says ", "it ", "later.", "Main ", "says ", "it ", "later."],
            texts: &[LATER, LATER], calls: &["spawnAgent"], usage: Some([460, 19, 220]),
        ),
    ] {
        let helpers = ["\"parent_tool_use_id\":\"toolu_1\"", "\"delta\":\"hello.\""];
        let says = |line: &str| helpers.iter().any(|words| line.contains(words));
        assert!(recorded.lines.lines().any(says), "{}", recorded.name);
        recorded.check();
    }
}

#[test]
fn a_session_that_is_gone_is_an_error_that_names_it() {
    let missing = Some("11111111-2222-4333-8444-555555555555");
    for recorded in [
        recorded!(
            Claude, "claude/gone",
            resumed: missing, shown: &[], usage: Some([0, 0, 0]),
            end: End::Failed(
                "No conversation found with session ID: 11111111-2222-4333-8444-555555555555"
            ),
        ),
        recorded!(
            Codex, "codex/gone",
            resumed: missing, shown: &[], usage: None,
            end: End::Failed(
                "no rollout found for thread id 11111111-2222-4333-8444-555555555555"
            ),
        ),
    ] {
        recorded.check();
    }
}

#[test]
fn a_program_that_was_killed_has_told_no_end() {
    let five: &[&str] = &["word0 ", "word1 ", "word2 ", "word3 ", "word4 "];
    let seven: &[&str] = &[
        "word0 ", "word1 ", "word2 ", "word3 ", "word4 ", "word5 ", "word6 ",
    ];
    for recorded in [
        recorded!(Claude, "claude/killed", end: End::Open, shown: seven, usage: None),
        recorded!(Codex, "codex/killed", end: End::Open, shown: seven, usage: None),
        recorded!(Pi, "pi/killed", end: End::Open, shown: five, usage: None),
    ] {
        recorded.check();
    }
}

#[test]
fn all_lines_but_the_last_one_are_no_end() {
    for recorded in [
        recorded!(Claude, "claude/tool"),
        recorded!(Claude, "claude/error-401"),
        recorded!(Claude, "claude/helper"),
        recorded!(Codex, "codex/tool"),
        recorded!(Codex, "codex/error-401"),
        recorded!(Codex, "codex/helper"),
        recorded!(Pi, "pi/tool"),
        recorded!(Pi, "pi/error-529"),
    ] {
        let count = recorded.lines.lines().count();
        let lines: Vec<&str> = recorded.lines.lines().take(count - 1).collect();
        let last = play_turn(recorded.cli, &turn(None, &[]), &lines.join("\n")).last;
        assert!(matches!(last, Step::More(_)), "{}: {last:?}", recorded.name);
    }
}
