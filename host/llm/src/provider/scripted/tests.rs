//! Rule files: what matches, and what it replies.

use super::*;
use crate::delta::{Delta, DeltaSink};
use crate::tests::{ask, result, said, tool, usage};
use domain::redact::Redactor;
use serde_json::{Map, Value, json};
use std::sync::Mutex;

const DEMO: &str = r#"
[[rule]]
when = { agent = "assistant", tools = ["delegate"], last = "user", user = '(?i)write (?P<text>.+) to (\S+)' }
reply.text = "One moment."
reply.calls = [{ tool = "delegate", arguments = { task = "write_file", parameters = { path = "$2", content = "${text}" } } }]

[[rule]]
when = { agent = "assistant", last = "tool", resultOf = "delegate", results = 1, result = '"status": *"ok"' }
reply.text = "It is done: {result.output}"

[[rule]]
when = { last = "tool", results = { min = 1 } }
reply.text = "It failed {result}"

[[rule]]
when = { userContains = "break" }
reply.fail = "refused"
"#;

#[derive(Default)]
struct Watched(Mutex<Vec<Delta>>);

impl DeltaSink for Watched {
    fn delta(&self, _attempt: u32, _seq: u64, delta: Delta) {
        self.0.lock().unwrap().push(delta);
    }
    fn discarded(&self, _attempt: u32) {}
}

fn script(rules: &str) -> Script {
    Script {
        path: PathBuf::from("demo/rules.toml"),
        rules: Rules::parse(rules).unwrap().rules,
    }
}

fn message(id: u64, role: Role, text: &str) -> Message {
    if role == Role::Tool {
        result(id, id - 1, 0, "delegate", text)
    } else {
        said(id, role, text)
    }
}

fn prompt(messages: Vec<Message>) -> Prompt {
    Prompt {
        system: vec!["You are the assistant.".to_owned()],
        tools: vec![tool("delegate")],
        ..crate::tests::prompt(messages)
    }
}

async fn asked(rules: &str, messages: Vec<Message>) -> (Result<Answer, AttemptError>, Vec<Delta>) {
    let prompt = prompt(messages);
    let parameters = Map::new();
    let watched = Watched::default();
    let feed = Feed::new(&watched, 0, &Redactor::default());
    let ask = ask(&prompt, "demo", &parameters);
    let result = script(rules).ask(&ask, Mode::Stream, &feed).await;
    (result, watched.0.into_inner().unwrap())
}

fn text(result: Result<Answer, AttemptError>) -> String {
    domain::message::text_of(&result.unwrap().parts)
}

#[tokio::test]
async fn the_demo_delegates_and_then_says_what_came_back() {
    let asks = "Please write hello \"world\" to notes.txt now";
    let ask = || message(1, Role::User, asks);
    let (first, deltas) = asked(DEMO, vec![ask()]).await;
    let first = first.unwrap();
    let [
        Part::Text { text: said },
        Part::Call {
            call_id,
            name,
            arguments,
        },
    ] = first.parts.as_slice()
    else {
        panic!("text and a call, not {first:?}");
    };
    assert_eq!(
        (said.as_str(), call_id.as_str(), name.as_str()),
        ("One moment.", "scripted_1_0", "delegate")
    );
    let expected = json!({"task": "write_file", "parameters": {"path": "notes.txt", "content": "hello \"world\""}});
    assert_eq!(serde_json::from_str::<Value>(arguments).unwrap(), expected);
    assert_eq!(first.stop, Stop::ToolCalls);
    let call = Delta::CallStarted {
        index: 0,
        name: "delegate".to_owned(),
    };
    assert_eq!(
        deltas,
        [
            Delta::Text("One ".to_owned()),
            Delta::Text("moment.".to_owned()),
            call
        ]
    );

    let assistant = Message {
        parts: first.parts,
        ..message(2, Role::Assistant, "")
    };
    let result = message(
        3,
        Role::Tool,
        "{\"status\": \"ok\", \"output\": \"11 bytes\"}",
    );
    let (second, _) = asked(DEMO, vec![ask(), assistant.clone(), result]).await;
    let second = second.unwrap();
    assert_eq!(second.usage, usage(21, 5, 0));
    assert_eq!(second.parts, [Part::text("It is done: 11 bytes")]);
    let (other, _) = asked(
        DEMO,
        vec![ask(), assistant, message(3, Role::Tool, "TIMEOUT")],
    )
    .await;
    assert_eq!(text(other), "It failed TIMEOUT");
}

#[tokio::test]
async fn a_result_from_before_the_last_user_message_does_not_count() {
    let messages = vec![
        message(2, Role::Tool, "old"),
        message(3, Role::User, "hello"),
    ];
    let (result, _) = asked(
        "[[rule]]\nwhen.results = 0\nreply.text = \"none\"",
        messages,
    )
    .await;
    assert_eq!(text(result), "none");
}

#[tokio::test]
async fn without_a_rule_the_reply_says_so() {
    let (result, deltas) = asked(DEMO, vec![message(1, Role::User, "sing")]).await;
    let text = text(result);
    assert!(
        text.contains("no rule in rules.toml answers your message: \"sing\""),
        "{text}"
    );
    assert_eq!(deltas, [Delta::Text(text)]);
}

#[tokio::test]
async fn a_rule_can_fail() {
    let (result, _) = asked(DEMO, vec![message(1, Role::User, "Break it")]).await;
    assert_eq!(result.unwrap_err().failure.code(), "model-refused");
}

#[tokio::test]
async fn delays_are_kept() {
    let before = tokio::time::Instant::now();
    asked(
        "[[rule]]\nreply = { text = \"a b c\", firstDelayMs = 50, delayMs = 10 }",
        Vec::new(),
    )
    .await
    .0
    .unwrap();
    assert!(before.elapsed() >= Duration::from_millis(80));
}

#[test]
fn a_mistake_in_a_rule_file_is_named_with_its_place() {
    let problem = |text: &str| Rules::parse(text).map(|_| ()).unwrap_err();
    assert!(problem("[[rule]]\nwhen.user = '('\nreply.text = \"x\"").contains("line 2"));
    assert!(problem("[[rule]]\nwhen.usr = 'x'\nreply.text = \"x\"").contains("usr"));
    assert!(
        problem("[[rule]]\nwhen.results = 'x'\nreply.text = \"x\"")
            .contains("a number, or a table")
    );
}

/// The page about rule files.
const PAGE: &str = include_str!("../../../../../docs/guide/scripted-model.md");

/// Returns the names that the reader of rule files knows in the place of `zzz` in a rule.
fn known(rule: &str) -> Vec<String> {
    let reported = Rules::parse(&format!("[[rule]]\nreply.text = \"x\"\n{rule}")).unwrap_err();
    let (_, known) = reported.split_once("expected").unwrap_or_default();
    let names = known.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

#[test]
fn the_page_of_the_guide_has_every_key_and_word_of_rule_files() {
    let mut all = 0;
    for (rule, at_least) in [
        ("zzz = 1", 2),
        ("when.zzz = 1", 9),
        ("reply.zzz = 1", 5),
        ("reply.calls = [{ tool = \"t\", zzz = 1 }]", 2),
        ("when.last = \"zzz\"", 4),
        ("reply.fail = \"zzz\"", 6),
    ] {
        let names = known(rule);
        assert!(names.len() >= at_least, "{rule}: {names:?}");
        for name in &names {
            let is_there = [format!("`{name}`"), format!("`\"{name}\"`")]
                .iter()
                .any(|text| PAGE.contains(text));
            assert!(is_there || PAGE.contains(&format!("{{ {name}")), "{name}");
        }
        all += names.len();
    }
    assert!(all >= 28, "{all}");
}

#[tokio::test]
async fn the_rules_of_the_guide_reply_as_the_guide_says() {
    let rules = PAGE
        .split("```toml\n")
        .find(|block| block.contains("[[rule]]"))
        .and_then(|block| Some(block.split_once("\n```")?.0))
        .unwrap();
    let user = |words: &str| message(1, Role::User, words);
    let result = |words: &str| message(2, Role::Tool, words);
    for (messages, expected) in [
        (
            vec![user("A table for 4, please")],
            "Let me see about 4 chairs.",
        ),
        (
            vec![user("x"), result(r#"{"success": true, "output": "a.txt"}"#)],
            "Done: a.txt",
        ),
        (vec![user("go slowly")], "One word after the other."),
        (vec![user("hello")], "You said: hello"),
    ] {
        assert_eq!(text(asked(rules, messages).await.0), expected);
    }
    let (failed, _) = asked(rules, vec![user("Please fail now")]).await;
    assert!(failed.is_err());
    let failed = vec![user("x"), result("an ERROR")];
    assert_eq!(
        text(asked(rules, failed).await.0),
        "That did not work: an ERROR"
    );
}

#[tokio::test]
async fn a_rule_looks_at_the_settings_that_a_request_is_sent_with() {
    let rules = Rules::parse(
        r#"
[[rule]]
when = { temperature = 0.5, stop = ["END"], reasoningEffort = "low", maxTokens = 7 }
reply.text = "as it was asked"
"#,
    );
    let script = Script {
        path: PathBuf::from("rules.toml"),
        rules: rules.unwrap().rules,
    };
    let stop = vec!["END".to_owned(), "x".to_owned()];
    for (temperature, max_tokens, matches) in [
        (0.5, Some(7), true),
        (0.6, Some(7), false),
        (0.5, None, false),
    ] {
        let sampling = Sampling {
            temperature: Some(temperature),
            stop: stop.clone(),
            reasoning_effort: Some(domain::sampling::ReasoningEffort::Low),
        };
        let prompt = Prompt {
            sampling,
            max_tokens,
            ..prompt(vec![message(1, Role::User, "hello")])
        };
        let situation = Situation::new(&prompt);
        let rule = script.rules.first().unwrap();
        assert_eq!(rule.matches(&situation).is_some(), matches, "{temperature}");
    }
}

#[test]
fn a_rule_that_fits_replies_with_made_up_json_where_it_is_wanted() {
    let rules = "[[rule]]\nreply = { text = \"no\", fits = true, calls = [{ tool = \"x\" }] }";
    let rules = Rules::parse(rules).unwrap().rules;
    let reply = |prompt: &Prompt| {
        let situation = Situation::new(prompt);
        let fill = rules[0].matches(&situation).unwrap();
        parts(&rules[0], &fill, prompt)
    };
    let mut prompt = prompt(vec![message(1, Role::User, "Hi")]);
    assert_eq!(reply(&prompt).len(), 2);
    prompt.reply_schema = Some(json!({
        "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"],
    }));
    assert_eq!(reply(&prompt), [Part::text(r#"{"ok":true}"#)]);
}

#[tokio::test]
async fn a_rule_can_look_at_what_the_user_said_before_the_newest_first() {
    let rules = r#"
[[rule]]
when = { user = 'what (?P<what>\w+)', said = 'I like (?P<thing>\w+)' }
reply.text = "${what}: ${thing}, $1"

[[rule]]
reply.text = "nothing was said"
"#;
    let user = |id: u64, words: &str| message(id, Role::User, words);
    for (messages, expected) in [
        (
            vec![
                user(1, "I like tea"),
                user(2, "I like milk"),
                message(3, Role::Assistant, "I like gin"),
                user(4, "what drink?"),
            ],
            "drink: milk, drink",
        ),
        (vec![user(1, "what? I like tea")], "nothing was said"),
        // A notice of the host's is put before models as the user's words are.
        (
            vec![
                user(1, "hello"),
                message(2, Role::Notice, "They said: I like tea."),
                user(3, "what drink?"),
            ],
            "drink: tea, drink",
        ),
        (
            vec![
                message(1, Role::Assistant, "I like gin"),
                user(2, "what drink?"),
            ],
            "nothing was said",
        ),
    ] {
        assert_eq!(text(asked(rules, messages).await.0), expected);
    }
}

/// The last message is a question; what was said before is looked at for what it asks about.
const ABOUT: &str = r#"
[[rule]]
when = { user = 'what is my (?P<thing>[^?]+)', said = '(?i)my ${thing} is (?P<what>.+)' }
reply.text = "${thing}: ${what}"

[[rule]]
when = { user = '^(?P<what>\w+) or (?P<else>\w+)?', said = '^${what} and ${2}$' }
reply.text = "both"

[[rule]]
reply.text = "nothing was said"
"#;

#[tokio::test]
async fn a_rule_looks_for_what_the_last_message_is_about_letter_by_letter() {
    let user = |id: u64, words: &str| message(id, Role::User, words);
    for (said, asked_for, expected) in [
        (
            ["my dog is Rex", "my cat is Tom"],
            "what is my dog?",
            "dog: Rex",
        ),
        (
            ["my dog is Rex", "My dog is Max"],
            "what is my dog?",
            "dog: Max",
        ),
        (
            ["my dog is Rex", "hello"],
            "what is my bird?",
            "nothing was said",
        ),
        (
            ["my dog is Rex", "hello"],
            "what is my d.g?",
            "nothing was said",
        ),
        (
            ["my a+b is three", "my aab is four"],
            "what is my a+b?",
            "a+b: three",
        ),
        (["tea and milk", "hello"], "tea or milk", "both"),
        // A group that caught nothing stands for nothing.
        (["tea and ", "hello"], "tea or ", "nothing was said"),
    ] {
        let [first, second] = said;
        let messages = vec![user(1, first), user(2, second), user(3, asked_for)];
        assert_eq!(
            text(asked(ABOUT, messages).await.0),
            expected,
            "{asked_for}"
        );
    }
}

#[test]
fn a_word_that_no_group_catches_is_a_mistake_in_the_rule_file() {
    let problem = |when: &str| {
        let rules = format!("[[rule]]\nreply.text = 'a'\n[[rule]]\n{when}\nreply.text = 'b'");
        Rules::parse(&rules).map(|_| ()).unwrap_err()
    };
    for (when, reported) in [
        (
            "when = { user = '(?P<a>x)', said = '${b}' }",
            "rule 2: `${b}` in `when.said` is no group of `when.user`",
        ),
        ("when.said = 'my ${a}'", "`${a}` in `when.said`"),
        ("when = { user = '(x)', said = '${2}' }", "`${2}`"),
        ("when = { user = '(x)', said = '${1' }", "a `${` has no `}`"),
        ("when = { user = '(x)', said = '(${1}' }", "unclosed group"),
    ] {
        let problem = problem(when);
        assert!(problem.contains(reported), "{when}: {problem}");
    }
}
