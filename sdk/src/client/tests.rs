//! Questions as they are asked, and answers as they are read.

use super::CHUNK_BYTES;
use crate::harness::Scene;
use crate::{Answer, Blob, ClientAction, Failure, Outcome, Part, Settlement, UploadedFile};
use serde_json::{Value, json};

fn answer_to(outcome: Outcome) -> Answer {
    let scene = Scene::new().blob("sha256:00", br#"{"text":"long"}"#);
    Settlement {
        key: "question".to_owned(),
        outcome,
    }
    .answer(scene.turn())
}

#[test]
fn every_widget_of_the_set_comes_with_the_schema_of_its_answer() {
    let actions = [
        (ClientAction::multiple_choice("?", &["a", "b"]), "index"),
        (
            ClientAction::multi_select("?", &["a", "b"]).with_prop("min", 1),
            "indices",
        ),
        (
            ClientAction::free_text("?").with_prop("placeholder", "Words"),
            "text",
        ),
        (
            ClientAction::code_editor("?").with_prop("language", "rust"),
            "code",
        ),
        (
            ClientAction::rating_scale("?", 1, 5).with_prop("labels", json!({ "5": "good" })),
            "rating",
        ),
        (
            ClientAction::confirmation("?").with_prop("confirm_label", "Go"),
            "confirmed",
        ),
        (
            ClientAction::approval("?").with_prop("details", json!(["x"])),
            "approved",
        ),
        (
            ClientAction::form(json!({ "type": "object", "required": ["name"] })),
            "name",
        ),
        (
            ClientAction::file_upload("?").with_prop("accept", json!(["image/*"])),
            "files",
        ),
    ];
    for (action, field) in actions {
        assert_eq!(
            action.response_schema.unwrap()["required"][0],
            field,
            "{}",
            action.widget
        );
    }
}

#[test]
fn a_question_that_can_be_skipped_says_so_and_takes_that_as_an_answer() {
    for action in [
        ClientAction::confirmation("?").skippable(),
        ClientAction::confirmation("?")
            .answered_by(json!({ "type": "object", "properties": { "own": true } }))
            .skippable(),
    ] {
        assert_eq!(action.props["skippable"], true);
        assert_eq!(
            action.response_schema.unwrap()["anyOf"][1]["required"],
            json!(["skipped"])
        );
    }
}

#[test]
fn a_schema_of_ones_own_stays_when_a_prop_is_added() {
    let own = json!({ "type": "object", "properties": { "own": true } });
    let action = ClientAction::free_text("?")
        .answered_by(own.clone())
        .with_prop("max_length", 3);
    assert_eq!(action.response_schema, Some(own));
}

#[test]
fn a_widget_of_the_clients_own_takes_any_answer() {
    assert_eq!(
        ClientAction::new("star_map", json!({ "stars": 3 })).response_schema,
        None
    );
    assert_eq!(
        ClientAction::new("star_map", Value::Null)
            .with_prop("stars", 3)
            .props,
        json!({ "stars": 3 })
    );
}

#[test]
fn an_answer_is_given_skipped_late_withdrawn_or_could_not_be_asked_for() {
    assert_eq!(
        answer_to(Outcome::Value(json!({ "index": 1 }))),
        Answer::Given(json!({ "index": 1 }))
    );
    assert_eq!(
        answer_to(Outcome::Value(json!({ "skipped": true }))),
        Answer::Skipped
    );
    assert_eq!(answer_to(Outcome::TimedOut), Answer::TimedOut);
    assert_eq!(answer_to(Outcome::Cancelled), Answer::Cancelled);
    let failure = Failure {
        code: "invalid-arguments".to_owned(),
        message: "no prompt".to_owned(),
        retryable: false,
    };
    assert_eq!(
        answer_to(Outcome::Failed(failure)),
        Answer::Failed("no prompt (invalid-arguments)".to_owned())
    );
}

#[test]
fn a_long_answer_is_read_from_its_blob() {
    let blob = |size| {
        Part::Blob(Blob {
            handle: "sha256:00".to_owned(),
            media_type: "application/json".to_owned(),
            size,
        })
    };
    let parts = |size| Outcome::Parts(vec![Part::Text("{\"te".to_owned()), blob(size)]);
    assert_eq!(
        answer_to(parts(15)),
        Answer::Given(json!({ "text": "long" }))
    );
    assert_eq!(
        answer_to(parts(99)),
        Answer::Failed("the answer cannot be read".to_owned())
    );
}

#[test]
fn the_files_of_an_answer_are_read_whole() {
    let file = |digest: &str, bytes: u64| UploadedFile {
        digest: digest.to_owned(),
        name: "essay.txt".to_owned(),
        media_type: "text/plain".to_owned(),
        bytes,
    };
    let essay = vec![b'x'; (CHUNK_BYTES as usize) + 3];
    let scene = Scene::new().file(&file("sha256:00", essay.len() as u64), &essay);
    let answer = json!({ "files": [file("sha256:00", essay.len() as u64), file("sha256:11", 4)] });
    let files = UploadedFile::all_of(&answer);
    assert_eq!(
        files
            .iter()
            .map(|file| file.digest.as_str())
            .collect::<Vec<_>>(),
        ["sha256:00", "sha256:11"]
    );
    assert_eq!(files[0].read(scene.turn()), Some(essay));
    assert_eq!(
        files[1].read(scene.turn()),
        None,
        "it is no file of this session"
    );
    assert_eq!(UploadedFile::all_of(&json!({ "skipped": true })), []);
}
