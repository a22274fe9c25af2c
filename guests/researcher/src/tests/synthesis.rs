//! Given sources that are brought together.

use super::{also, fetched, has, note, on_site, report, synthesis, with_site};
use crate::Researcher;
use agent_host_sdk::harness::{Conversation, Scene};
use serde_json::{Value, json};

#[test]
fn texts_addresses_digests_and_files_are_read_and_numbered_in_one_report() {
    let handle = format!("sha256:{}", "b".repeat(64));
    let mut conversation = on_site(Scene::new().blob(&handle, b"The blob says neap."))
        .tool("read_file", |_| Ok("The file says spring.".to_owned()))
        .model_says(&note(1, "the text says ebb"))
        .model_says(&note(2, "The blob says neap"))
        .model_says(&note(3, "the Moon"))
        .model_says(&note(4, "The file says spring"))
        .model_says(&report(&[("Ebb and neap.", &[1, 2]), ("Spring.", &[4])]));
    let task = synthesis(
        &[
            "Listen: the text says ebb.",
            "http://site.test/moon",
            &handle,
            "/notes/a b.md",
        ],
        "markdown",
    );
    let status = conversation.say(&task);
    let reported = status.words();
    has(reported, "Ebb and neap. [1][2] Spring. [4]");
    has(reported, "[1] the given text 1  \n");
    has(reported, &format!("[2] {handle}"));
    has(
        reported,
        "[3] The Moon – http://site.test/moon (read, not cited)",
    );
    has(reported, "[4] /notes/a b.md");
    assert!(
        conversation
            .calls()
            .iter()
            .all(|(name, _)| name != "web_search")
    );
    has(
        &also(&conversation.requests()[0]),
        "where do they agree, and where not?",
    );
}

#[test]
fn a_digest_that_the_session_does_not_show_is_told_and_the_rest_goes_on() {
    let handle = format!("sha256:{}", "c".repeat(64));
    let mut conversation = with_site()
        .model_says(&note(1, "Now: ebb"))
        .model_says(&report(&[("Ebb.", &[1])]));
    let status = conversation.say(&synthesis(&["Now: ebb", &handle], "bullets"));
    has(status.words(), "\n\n- Ebb. [1]\n\n");
    has(
        status.words(),
        "this session shows no text with this digest",
    );
}

#[test]
fn a_report_as_data_says_which_claims_have_a_source() {
    let mut conversation = Conversation::new(Researcher)
        .tool("web_fetch", |arguments| fetched(&arguments))
        .model_says(&note(1, "Now: ebb"))
        .model_says(&report(&[("Ebb.", &[1]), ("Flood.", &[4])]));
    let status = conversation.say(&synthesis(&["Now: ebb", "http://site.test/gone"], "json"));
    let reported: Value = serde_json::from_str(status.words()).unwrap();
    let claims = &reported["sections"][0]["claims"];
    assert_eq!(
        claims,
        &json!([
            { "text": "Ebb.", "sources": [1], "hasSource": true },
            { "text": "Flood.", "sources": [], "hasSource": false },
        ])
    );
    assert_eq!(reported["sources"][0]["place"], "the given text 1");
    assert_eq!(
        reported["unread"],
        json!(["http://site.test/gone: there is no such page (not-found)"])
    );
}

#[test]
fn a_long_text_is_read_to_a_limit_and_the_report_says_so() {
    let long = format!("Now: ebb. {}", "and so on ".repeat(5_000));
    let mut conversation = Conversation::new(Researcher)
        .model_says(&note(1, "Now: ebb."))
        .model_says(&report(&[("Ebb.", &[1])]));
    let status = conversation.say(&synthesis(&[&long], "markdown"));
    has(
        status.words(),
        "[1] the given text 1 (its beginning was read)",
    );
    assert!(also(&conversation.requests()[0]).len() < 18_000);
}
