//! The reading list's agent in conversation.

use crate::ReadingList;
use agent_host_sdk::ToolError;
use agent_host_sdk::harness::Conversation;
use serde_json::json;

#[test]
fn an_address_goes_on_the_list_without_a_model() {
    let mut conversation = Conversation::new(ReadingList).tool("reading_list_add", |entry| {
        assert_eq!(
            entry,
            json!({ "title": "example.com/a/b", "url": "https://www.example.com/a/b?q=1" })
        );
        Ok(json!({ "id": 7, "title": entry["title"] }).to_string())
    });
    let said = conversation.say(" https://www.example.com/a/b?q=1 ");
    assert_eq!(said.words(), "Added as 7: example.com/a/b");
    assert!(conversation.requests().is_empty());
}

#[test]
fn each_of_several_addresses_is_told_with_what_became_of_it() {
    let mut conversation = Conversation::new(ReadingList).tool("reading_list_add", |entry| {
        if entry["url"] == "https://b.org" {
            return Err(ToolError::Failed("is on the list already: id 1".to_owned()));
        }
        Ok(json!({ "id": 2, "title": entry["title"] }).to_string())
    });
    let said = conversation.say("https://a.org\nhttps://b.org https://a.org");
    assert_eq!(
        said.words().lines().next(),
        Some("Added as 2: a.org"),
        "{said:?}"
    );
    assert!(said.words().contains("is on the list already: id 1"));
}

#[test]
fn anything_else_is_for_the_model() {
    for words in [
        "what is unread?",
        "read https://a.org for me",
        "https://",
        "ftp://a.org",
    ] {
        let mut conversation = Conversation::new(ReadingList)
            .tool("reading_list_add", |_| Ok("never".to_owned()))
            .model_says("Let me see.");
        assert_eq!(conversation.say(words).words(), "Let me see.", "{words}");
    }
}

#[test]
fn an_agent_that_may_not_add_asks_its_model() {
    let mut conversation = Conversation::new(ReadingList).model_says("I may only read the list.");
    assert_eq!(
        conversation.say("https://a.org").words(),
        "I may only read the list."
    );
}
