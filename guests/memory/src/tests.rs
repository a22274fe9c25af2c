//! The memory agent and what it keeps.

use crate::judge::{is_asked, is_known, seems_secret};
use crate::{ABOUT_CHARS_MAX, Memory, NOTE_CHARS_MAX, NOTES_MAX};
use agent_host_sdk::ToolError;
use agent_host_sdk::harness::{Conversation, ConversationStatus};
use serde_json::{Value, json};

const WORDS: &str = "Read this part of a conversation.\n\n> user: I drink tea, never coffee.";

/// A memory that holds these notes.
fn with_notes(notes: &'static [&'static str]) -> Conversation<Memory> {
    Conversation::new(Memory)
        .tool("memory_search", move |_: Value| {
            let hits: Vec<Value> = notes
                .iter()
                .map(|text| json!({ "text": text, "note": "n" }))
                .collect();
            Ok(json!({ "hits": hits }).to_string())
        })
        .tool("memory_save", |arguments: Value| {
            Ok(json!({ "saved": arguments["text"] }).to_string())
        })
}

fn replied(notes: &Value) -> String {
    json!({ "notes": notes }).to_string()
}

fn saved(conversation: &Conversation<Memory>) -> Vec<Value> {
    conversation
        .calls()
        .iter()
        .filter(|(tool, _)| tool == "memory_save")
        .map(|(_, arguments)| arguments.clone())
        .collect()
}

#[test]
fn what_is_new_is_searched_for_and_saved() {
    let mut conversation = with_notes(&["The user lives in Graz."]).model_says(&replied(&json!([
        { "text": "The user drinks tea, never coffee.", "about": "drinks" },
        { "text": "The user lives in Graz" },
    ])));
    assert_eq!(conversation.say(WORDS).words(), "Kept 1 note.");
    assert_eq!(
        saved(&conversation),
        [json!({ "text": "The user drinks tea, never coffee.", "about": "drinks" })]
    );
    let request = &conversation.requests()[0];
    let schema = request.reply_schema.as_ref().unwrap();
    for (field, limit) in [
        ("/properties/notes/maxItems", NOTES_MAX),
        (
            "/properties/notes/items/properties/text/maxLength",
            NOTE_CHARS_MAX,
        ),
        (
            "/properties/notes/items/properties/about/maxLength",
            ABOUT_CHARS_MAX,
        ),
    ] {
        assert_eq!(
            schema.pointer(field),
            Some(&json!(limit)),
            "{field} of {schema}"
        );
    }
    assert_eq!(conversation.calls().len(), 3, "two searches and a note");
}

#[test]
fn nothing_is_saved_of_a_conversation_without_anything_to_keep() {
    let mut conversation = with_notes(&[]).model_says(&replied(&json!([])));
    assert_eq!(conversation.say(WORDS).words(), "Nothing to keep.");
    assert!(conversation.calls().is_empty());
}

#[test]
fn a_secret_is_not_saved_even_if_the_model_wants_it() {
    let mut conversation = with_notes(&[]).model_says(&replied(&json!([
        { "text": "The user's password is swordfish." },
        { "text": "The deploy key is sk_live_51Hq8sLkd93kfPq0." },
        { "text": "The user pays with 4111 1111 1111 1111." },
        { "text": "The user sails.", "about": "api key" },
    ])));
    assert_eq!(conversation.say(WORDS).words(), "Nothing to keep.");
    assert!(conversation.calls().is_empty());
}

#[test]
fn a_memory_that_cannot_be_searched_fails_the_turn_and_saves_nothing() {
    let mut conversation = Conversation::new(Memory)
        .tool("memory_search", |_: Value| {
            Err::<String, _>(ToolError::NotFound("it is gone".to_owned()))
        })
        .tool("memory_save", |_: Value| Ok("{}".to_owned()))
        .model_says(&replied(&json!([{ "text": "The user sails." }])));
    match conversation.say(WORDS) {
        ConversationStatus::Failed(reason) => {
            assert!(reason.contains("could not be searched"), "{reason}")
        }
        other => panic!("it did not fail: {other:?}"),
    }
    assert!(saved(&conversation).is_empty());
}

#[test]
fn a_note_that_comes_twice_is_saved_once() {
    let mut conversation = with_notes(&[]).model_says(&replied(&json!([
        { "text": "The user sails." }, { "text": " the user sails " },
    ])));
    assert_eq!(conversation.say(WORDS).words(), "Kept 1 note.");
    assert_eq!(saved(&conversation).len(), 1);
}

#[test]
fn questions_and_requests_are_told_from_facts() {
    for (text, expected) in [
        ("What is my sister called?", true),
        ("Is Ada in Vienna? ", true),
        ("Write the word hello to hello.txt.", true),
        ("Please read notes.txt", true),
        ("Lies notes.txt.", true),
        ("Read notes.txt and tell me what it says.", true),
        ("The user's sister is called Ada.", false),
        ("Reading is what the user likes most.", false),
        ("The user asked why tides come twice, and knows now.", false),
        ("Ada will run a marathon in May 2027.", false),
    ] {
        assert_eq!(is_asked(text), expected, "{text}");
    }
}

#[test]
fn secrets_are_told_from_ordinary_facts() {
    for (text, secret) in [
        ("The user's birthday is 1990-04-01.", false),
        ("The project is called internationalization-toolkit.", false),
        (
            "The address is https://example.org/2026/some-long-page.",
            false,
        ),
        ("The user has 12 hens and 3 goats.", false),
        ("Das Passwort lautet rose.", true),
        ("Token: ghp_abcdEFGH1234567890ab", true),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", true),
    ] {
        assert_eq!(seems_secret(text), secret, "{text}");
    }
}

#[test]
fn a_note_is_known_if_another_one_has_the_same_words_in_the_same_order() {
    for (note, other, known) in [
        ("The user likes tea", " the user  likes “tea”.", true),
        ("Likes tea", "The user likes green tea.", false),
        ("Likes tea and coffee", "The user likes tea.", false),
        (
            "The user eats meat.",
            "The user no longer eats meat.",
            false,
        ),
        (
            "The user no longer eats meat.",
            "The user eats meat.",
            false,
        ),
        ("Ann is older than Bob.", "Bob is older than Ann.", false),
        ("The user writes C.", "The user writes C++.", false),
        ("…", "…", false),
        ("…", "The user likes tea.", false),
    ] {
        assert_eq!(is_known(note, other), known, "{note} {other}");
    }
}

#[test]
fn a_note_that_says_the_opposite_of_another_one_is_kept() {
    let eats = json!({ "text": "The user eats meat." });
    let mut conversation =
        with_notes(&["The user no longer eats meat."]).model_says(&replied(&json!([eats])));
    assert_eq!(conversation.say(WORDS).words(), "Kept 1 note.");
    let no_longer = json!({ "text": "The user no longer eats meat." });
    let mut conversation = with_notes(&[]).model_says(&replied(&json!([no_longer, eats])));
    assert_eq!(conversation.say(WORDS).words(), "Kept 2 notes.");
}
