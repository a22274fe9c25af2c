//! Researches that come to a report.

use super::{deep, deep_in, has, no_notes, note, on_site, plan, report, with_site};
use crate::Researcher;
use agent_host_sdk::harness::{Conversation, Reply, Scene};
use agent_host_sdk::{Audience, Blob, Context, Part, ToolError, Toolset};
use serde_json::{Value, json};

#[test]
fn a_query_is_planned_searched_read_noted_and_reported_with_numbered_sources() {
    let mut conversation = with_site()
        .settings(json!({ "model": "best" }))
        .model_says(&plan(&["tides cause"]))
        .model_says(&note(1, "the Moon that makes the tides"))
        .model_says(&note(2, "high tide twice a day"))
        .model_says(&report(&[
            ("The Moon makes the tides.", &[1]),
            ("High tide comes twice a day.", &[2, 1]),
        ]));
    let status = conversation.say(&deep(1));
    let reported = status.words();
    has(
        reported,
        "# Tides\n\n## What is known\n\nThe Moon makes the tides. [1] High tide comes",
    );
    has(reported, "twice a day. [1][2]");
    has(reported, "## Open\n\n- Why twice?");
    has(
        reported,
        "[1] The Moon – http://site.test/moon  \n[2] Coasts – http://site.test/coast",
    );
    has(
        reported,
        "## Could not be read\n\n- http://site.test/gone: there is no such page (not-found)",
    );
    assert!(!reported.contains("[no source]"), "{reported}");
    let names: Vec<&str> = conversation
        .calls()
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    let fetches = ["web_fetch"; 3];
    assert_eq!(names, [&["web_search"; 2][..], &fetches].concat());
    assert_eq!(conversation.calls()[0].1["query"], "tides cause");
    assert_eq!(conversation.calls()[1].1["query"], "What makes the tides?");
    for request in conversation.requests() {
        assert_eq!(request.audience, Audience::Hidden);
        assert_eq!(request.tools, Toolset::None);
        assert_eq!(request.model.as_deref(), Some("best"));
        assert!(request.reply_schema.is_some() && request.max_tokens.is_some());
        // No request sees the thread: the task stands in it as it came.
        assert!(matches!(request.context, Context::Since(from) if from >= 2));
    }
    let reported = conversation.transcript();
    assert_eq!(
        reported[1],
        "assistant: Round 1: searching for tides cause; What makes the tides?."
    );
    assert_eq!(
        reported[2],
        "assistant: Writing the report, from 2 notes on 2 sources."
    );
}

#[test]
fn it_goes_deeper_while_something_is_open_and_no_deeper_than_it_may() {
    let pages = || {
        with_site()
            .model_says(&plan(&["tides"]))
            .model_says(&note(1, "the Moon"))
            .model_says(&note(2, "twice a day"))
    };
    let written = report(&[("The Moon.", &[1])]);
    // Nothing is open after the first round.
    let mut conversation = pages().model_says(&plan(&[])).model_says(&written);
    has(conversation.say(&deep(5)).words(), "The Moon. [1]");
    assert_eq!(conversation.requests().len(), 5);
    // Something is, and after the second round nobody is asked: two were allowed.
    let mut conversation = pages().model_says(&plan(&["twice"])).model_says(&written);
    has(conversation.say(&deep(2)).words(), "The Moon. [1]");
    let searches = conversation
        .calls()
        .iter()
        .filter(|(name, _)| name == "web_search");
    let asked: Vec<&Value> = searches.map(|(_, arguments)| &arguments["query"]).collect();
    assert_eq!(asked, ["tides", "What makes the tides?", "twice"]);
    // What was read or could not be read is not asked for again.
    assert_eq!(conversation.calls().len(), 6);
    let gaps = &conversation.requests()[3];
    has(&super::also(gaps), "[1] It says: the Moon (\"the Moon\")");
}

#[test]
fn no_words_are_searched_for_again_and_without_new_ones_the_report_is_written() {
    let mut conversation = with_site()
        .model_says(&plan(&["tides"]))
        .model_says(&note(1, "the Moon"))
        .model_says(&note(2, "twice a day"))
        .model_says(&plan(&[" Tides ", "high  tide", "High tide"]))
        .model_says(&plan(&["high tide", "tides"]))
        .model_says(&report(&[("The Moon.", &[1])]));
    has(conversation.say(&deep(5)).words(), "The Moon. [1]");
    let searches = conversation
        .calls()
        .iter()
        .filter(|(name, _)| name == "web_search");
    let asked: Vec<&Value> = searches.map(|(_, arguments)| &arguments["query"]).collect();
    assert_eq!(asked, ["tides", "What makes the tides?", "high  tide"]);
    // Whoever is asked what is open sees the words of all rounds.
    let gaps = super::also(&conversation.requests()[4]);
    has(
        &gaps,
        "Searched for so far:\n```\ntides\nWhat makes the tides?\nhigh  tide\n```",
    );
    assert_eq!(conversation.requests().len(), 6);
}

#[test]
fn given_sources_alone_are_read_unless_the_web_is_among_them() {
    let mut conversation = with_site()
        .model_says(&note(1, "the Moon"))
        .model_says(&report(&[("The Moon.", &[1])]));
    let reported = conversation.say(&deep_in(&["http://site.test/old"]));
    // It is elsewhere, and is named by where it was read.
    has(reported.words(), "[1] The Moon – http://site.test/moon");
    assert_eq!(conversation.calls().len(), 2);
    let mut conversation = with_site()
        .model_says(&plan(&["tides"]))
        .model_says(&note(1, "twice a day"))
        .model_says(&note(2, "the Moon"))
        .model_says(&plan(&[]))
        .model_says(&report(&[("The Moon.", &[2])]));
    let reported = conversation.say(&deep_in(&["web", "http://site.test/coast"]));
    has(
        reported.words(),
        "[1] Coasts – http://site.test/coast (read, not cited)",
    );
    has(reported.words(), "The Moon. [2]");
}

#[test]
fn a_granted_folder_is_searched_and_its_files_are_read() {
    let mut conversation = Conversation::new(Researcher)
        .tool("search_files", |arguments: Value| {
            assert_eq!(arguments["pattern"], "(?i)tides|cause");
            Ok("sea/moon.md:3: the tides: 12:30\n/x/b.md:1: cause\n[there may be more]".to_owned())
        })
        .tool("read_file", |arguments: Value| {
            match arguments["path"].as_str() {
                Some("/notes/sea/moon.md") => Ok("The Moon makes the tides.".to_owned()),
                _ => Err(ToolError::Denied),
            }
        })
        .model_says(&plan(&["tides of a cause"]))
        .model_says(&note(1, "The Moon makes the tides"))
        .model_says(&plan(&[]))
        .model_says(&report(&[("The Moon.", &[1])]));
    let status = conversation.say(&deep_in(&["/notes/"]));
    has(status.words(), "[1] /notes/sea/moon.md");
    has(status.words(), "- /x/b.md: ");
}

#[test]
fn a_page_that_came_as_a_blob_is_read_from_it() {
    let handle = format!("sha256:{}", "a".repeat(64));
    let whole = json!({ "title": "Long", "text": format!("The Moon. {}", "é".repeat(20_000)) });
    let whole = whole.to_string();
    let blob = Blob {
        handle: handle.clone(),
        media_type: "text/plain".to_owned(),
        size: whole.len() as u64,
    };
    let mut conversation =
        Conversation::in_scene(Researcher, Scene::new().blob(&handle, whole.as_bytes()))
            .tool("web_fetch", move |_| {
                let head = Part::Text("{\"title\": … (40000 bytes)".to_owned());
                Ok(vec![head, Part::Blob(blob.clone())])
            })
            .model_says(&note(1, "The Moon."))
            .model_says(&report(&[("The Moon.", &[1])]));
    let status = conversation.say(&deep_in(&["http://site.test/long"]));
    has(
        status.words(),
        "[1] Long – http://site.test/long (its beginning was read)",
    );
}

#[test]
fn notes_too_large_for_the_memo_are_the_sessions_state_until_the_report() {
    let sources: Vec<String> = (0..8).map(|n| format!("http://site.test/{n}")).collect();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let mut conversation = Conversation::new(Researcher).tool("web_fetch", |_| {
        Ok(format!("The Moon. {}", "\"x\" ".repeat(3_900)))
    });
    for number in 1..=8 {
        conversation = conversation.model_says(&note(number, "The Moon."));
    }
    let mut conversation = conversation.model_says(&report(&[("The Moon.", &[8])]));
    has(
        conversation.say(&deep_in(&sources)).words(),
        "The Moon. [8]",
    );
    let kept = conversation.steps().iter().flat_map(|step| &step.effects);
    let kept = kept.filter(|effect| matches!(effect, agent_host_sdk::Effect::SessionState(_)));
    assert_eq!(kept.count(), 2);
    assert_eq!(conversation.state(), &json!({}));
}

#[test]
fn models_that_fail_or_reply_something_else_leave_the_notes_and_say_so() {
    let mut conversation = with_site()
        .model_replies(Reply::failure("model-unavailable", "nobody is there"))
        .model_says(&note(1, "the Moon"))
        .model_says("this is not JSON")
        .model_says("nor is this");
    let status = conversation.say(&deep(1));
    let reported = status.words();
    assert_eq!(conversation.calls()[0].1["query"], "What makes the tides?");
    has(
        reported,
        "Questions could not be planned: nobody is there (model-unavailable).",
    );
    has(
        reported,
        "Source 2 could not be noted: the reply cannot be read",
    );
    has(
        reported,
        "No report could be drafted: the reply cannot be read",
    );
    has(reported, "There is no written report; these are the notes.");
    has(reported, "## The Moon\n\nIt says: the Moon [1]");
}

#[test]
fn sources_that_say_nothing_on_the_query_are_told_as_such() {
    let mut conversation = on_site(Scene::new())
        .model_says(&no_notes())
        .model_says(&no_notes());
    let status = conversation.say(&deep_in(&[
        "http://site.test/moon",
        "http://site.test/coast",
    ]));
    has(status.words(), "# Nothing was found");
    has(
        status.words(),
        "[2] Coasts – http://site.test/coast (read, not cited)",
    );
}
