//! Tasks that are none, and agents that lack what a task needs.

use super::{deep, deep_in, failure, has, plan, with_site};
use crate::Researcher;
use crate::task::Task;
use agent_host_sdk::harness::{Conversation, Reply};
use serde_json::json;

#[test]
fn what_is_no_task_is_told_with_what_one_is() {
    let expected = [
        ("hello", "this is not a task, which is {\"operation\""),
        (
            r#"{"operation":"launch","parameters":{}}"#,
            "operation `launch` is not supported by this researcher, which has: deep_research(",
        ),
        (
            r#"{"operation":"deep_research"}"#,
            "missing field `query`. Expected: deep_research(query, maxDepth?, sources?)",
        ),
        (
            r#"{"operation":"deep_research","parameters":{"query":" "}}"#,
            "query: a text of 1 to 4000 bytes is needed",
        ),
        (
            r#"{"operation":"deep_research","parameters":{"query":"x","maxDepth":9}}"#,
            "maxDepth: a whole number from 1 to 5 is needed, this is 9",
        ),
        (
            r#"{"operation":"deep_research","parameters":{"query":"x","depth":1}}"#,
            "unknown field `depth`",
        ),
        (
            r#"{"operation":"deep_research","parameters":{"query":"x","sources":["a book"]}}"#,
            "sources: `a book` is no source to research in",
        ),
        (
            r#"{"operation":"synthesize_sources","parameters":{"sources":[]}}"#,
            "sources: at least one text, address, path or digest is needed",
        ),
        (
            r#"{"operation":"synthesize_sources","parameters":{"sources":["a", " "]}}"#,
            "sources[1]: is empty",
        ),
        (
            r#"{"operation":"synthesize_sources","parameters":{"sources":["a"],"format":"pdf"}}"#,
            "format: `markdown`, `bullets` or `json` is needed, this is `pdf`",
        ),
    ];
    for (text, part) in expected {
        let reason = Task::read(text).unwrap_err();
        has(&reason, part);
        assert_eq!(failure(with_site().say(text)), reason);
    }
}

#[test]
fn parameters_that_are_null_count_as_left_out() {
    let parameters = json!({ "query": "x", "maxDepth": null, "sources": null });
    let text = json!({ "operation": "deep_research", "parameters": parameters }).to_string();
    let task = Task::read(&text).unwrap();
    assert!(task.web && task.depth_max == 2 && task.places.is_empty());
}

#[test]
fn a_missing_tool_is_named_with_what_to_do() {
    let reason = failure(Conversation::new(Researcher).say(&deep(1)));
    has(
        &reason,
        "this researcher lacks the tool `web_search`: add it to the agent's",
    );
    let reason = failure(Conversation::new(Researcher).say(&deep_in(&["http://a.test/", "/b/"])));
    has(
        &reason,
        "http://a.test/: this researcher lacks the tool `web_fetch`",
    );
    has(
        &reason,
        "/b/: this researcher lacks the tool `search_files`",
    );
}

#[test]
fn sources_of_which_none_can_be_read_fail_the_task_with_each_reason() {
    let gone = ["http://site.test/x", "/notes.md", "http://site.test/y"];
    let reason = failure(with_site().say(&deep_in(&gone)));
    has(
        &reason,
        "http://site.test/x, http://site.test/y: there is no such page (not-found); /notes.md:",
    );
    assert!(reason.starts_with("no source could be read: "), "{reason}");
}

#[test]
fn searches_that_find_nothing_are_the_reason_also_when_more_goes_wrong_later() {
    for depth in [1, 2] {
        let mut conversation = Conversation::new(Researcher)
            .tool("web_search", |_| Ok("[]".to_owned()))
            .tool("web_fetch", |_| Ok(String::new()))
            .model_says(&plan(&["tides"]));
        if depth > 1 {
            conversation = conversation
                .model_replies(Reply::failure("invalid-reply", "the reply is not JSON"));
        }
        let reason = failure(conversation.say(&deep(depth)));
        let first = "no source could be read: no search found anything";
        assert!(reason.starts_with(first), "{reason}");
        let has_more = reason.contains("Questions could not be planned: the reply is not JSON");
        assert_eq!(has_more, depth > 1, "{reason}");
    }
}

#[test]
fn a_setting_that_makes_no_sense_is_named() {
    for (settings, part) in [
        (
            json!({ "timeSeconds": 1 }),
            "settings.timeSeconds: a whole number from 10 to",
        ),
        (
            json!({ "pagesPerRound": 99 }),
            "settings.pagesPerRound: a whole number from 1 to 8",
        ),
        (
            json!({ "model": "" }),
            "settings.model: the name of a model is needed",
        ),
        (json!({ "modle": "x" }), "unknown field `modle`"),
    ] {
        let reason = failure(with_site().settings(settings).say(&deep(1)));
        has(&reason, part);
    }
}
