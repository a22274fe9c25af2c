//! Answers with files: what fits, what the agent reads of it, and where what does not fit is at
//! fault.

use super::*;
use serde_json::json;

fn action(props: Value) -> ClientAction {
    ClientAction {
        widget: "file_upload".to_owned(),
        props,
        response_schema: None,
        lock_input: false,
    }
}

fn file(content: &[u8], name: &str, media_type: &str) -> File {
    File {
        digest: Digest::of(content),
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        bytes: content.len() as u64,
    }
}

fn known() -> Vec<File> {
    vec![
        file(b"an essay", "essay.txt", "text/plain"),
        file(b"an essay", "copy.txt", "text/markdown"),
        file(&[0; 50], "a.png", "image/png"),
    ]
}

fn named(content: &[u8]) -> Value {
    json!({ "digest": Digest::of(content).reference() })
}

fn inline(content: &[u8], name: &str) -> Value {
    json!({ "name": name, "media_type": "text/plain", "content_base64": STANDARD.encode(content) })
}

fn answer(props: Value, files: &Value) -> Result<AnswerWithFiles, Misfit> {
    accept(&action(props), &json!({ "files": files }), &known()).map(|accepted| accepted.unwrap())
}

#[test]
fn an_agent_reads_the_same_of_a_file_whichever_way_it_came() {
    let accepted = answer(
        json!({ "max_files": 3 }),
        &json!([named(b"an essay"), inline(b"more", "more.txt")]),
    )
    .unwrap();
    assert_eq!(
        accepted.answer,
        json!({ "files": [
            { "digest": Digest::of(b"an essay").reference(), "name": "essay.txt", "media_type": "text/plain", "bytes": 8 },
            { "digest": Digest::of(b"more").reference(), "name": "more.txt", "media_type": "text/plain", "bytes": 4 },
        ] })
    );
    assert_eq!(
        accepted.brought,
        [Brought {
            file: file(b"more", "more.txt", "text/plain"),
            content: b"more".to_vec()
        }]
    );
}

#[test]
fn of_several_names_for_one_content_the_first_is_meant_or_the_one_that_is_said() {
    let digest = Digest::of(b"an essay").reference();
    let accepted = answer(
        json!({}),
        &json!([{ "digest": digest, "name": "copy.txt" }]),
    )
    .unwrap();
    assert_eq!(accepted.answer["files"][0]["media_type"], "text/markdown");
    let unknown = answer(
        json!({}),
        &json!([{ "digest": digest, "name": "other.txt" }]),
    )
    .unwrap_err();
    assert_eq!(unknown.place, "/files/0/name");
}

#[test]
fn a_file_that_comes_again_in_an_answer_is_the_one_that_was_there() {
    let accepted = answer(json!({}), &json!([inline(b"an essay", "copy.txt")])).unwrap();
    assert_eq!(
        (
            accepted.brought.len(),
            &accepted.answer["files"][0]["media_type"]
        ),
        (0, &json!("text/markdown"))
    );
}

#[test]
fn an_answer_without_files_has_none() {
    let skipped = json!({ "skipped": true });
    assert_eq!(accept(&action(json!({})), &skipped, &[]), Ok(None));
    let other = ClientAction {
        widget: "form".to_owned(),
        ..action(json!({}))
    };
    assert_eq!(
        accept(&other, &json!({ "files": [1] }), &[]),
        Ok(None),
        "what a form calls its fields is its own business"
    );
}

#[test]
fn what_does_not_fit_is_told_with_its_place() {
    let digest = Digest::of(b"an essay").reference();
    let with = |field: &str, value: Value| {
        let mut file = inline(b"x", "x.txt");
        file[field] = value;
        json!([file])
    };
    let large = STANDARD.encode(vec![0; (512 << 10) + 1]);
    for (props, files, place) in [
        (json!({}), json!([]), "/files"),
        (
            json!({}),
            json!([named(b"an essay"), named(&[0; 50])]),
            "/files",
        ),
        (
            json!({ "max_files": 2 }),
            json!([named(b"an essay"), named(b"an essay")]),
            "/files/1",
        ),
        (
            json!({}),
            json!([named(b"never handed over")]),
            "/files/0/digest",
        ),
        (
            json!({}),
            json!([{ "digest": "sha256:12" }]),
            "/files/0/digest",
        ),
        (json!({}), json!([{ "digest": 7 }]), "/files/0/digest"),
        (
            json!({}),
            json!([{ "digest": digest, "name": 7 }]),
            "/files/0/name",
        ),
        (
            json!({}),
            json!([{ "digest": digest, "content_base64": "" }]),
            "/files/0/content_base64",
        ),
        (json!({}), json!([{}]), "/files/0"),
        (json!({}), json!(["x"]), "/files/0"),
        (
            json!({ "max_bytes": 49 }),
            json!([named(&[0; 50])]),
            "/files/0/digest",
        ),
        (
            json!({ "accept": ["text/*"] }),
            json!([named(&[0; 50])]),
            "/files/0/digest",
        ),
        (
            json!({ "max_bytes": 3 }),
            json!([inline(b"four", "x.txt")]),
            "/files/0/content_base64",
        ),
        (
            json!({ "accept": ["image/*"] }),
            json!([inline(b"four", "x.txt")]),
            "/files/0/media_type",
        ),
        (json!({}), with("name", json!("../x")), "/files/0/name"),
        (json!({}), with("name", json!("..")), "/files/0/name"),
        (
            json!({}),
            with("media_type", json!("text")),
            "/files/0/media_type",
        ),
        (
            json!({}),
            with("media_type", Value::Null),
            "/files/0/media_type",
        ),
        (
            json!({}),
            with("content_base64", json!("eA")),
            "/files/0/content_base64",
        ),
        (
            json!({}),
            with("content_base64", json!("eA==\n")),
            "/files/0/content_base64",
        ),
        (
            json!({}),
            with("content_base64", json!("e_8=")),
            "/files/0/content_base64",
        ),
        (
            json!({}),
            with("content_base64", json!(large)),
            "/files/0/content_base64",
        ),
    ] {
        let misfit = answer(props, &files).unwrap_err();
        assert_eq!(misfit.place, place, "{}", misfit.problem);
    }
}

#[test]
fn a_file_of_exactly_as_many_bytes_as_are_asked_for_fits() {
    assert!(answer(json!({ "max_bytes": 50 }), &json!([named(&[0; 50])])).is_ok());
    assert!(
        answer(
            json!({ "max_bytes": 4 }),
            &json!([inline(b"four", "x.txt")])
        )
        .is_ok()
    );
}
