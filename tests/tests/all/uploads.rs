//! Files that users hand over: asked for, named in an answer, read by the agent, given back, not
//! seen by others.

use agent_host_tests::process::{Folder, Host, Line, Reply, Session, puppet, puppets, shows};
use domain::digest::Digest;
use reqwest::Method;
use serde_json::{Value, json};

/// Bytes of the largest file.
const LARGEST: usize = 10 << 20;

struct Chat {
    host: Host,
    folder: Folder,
    agent: String,
    session: Session,
}

async fn chat() -> Chat {
    let agent = puppet();
    let (folder, host) = Folder::serving(puppets(&json!([agent])), &["puppet"]).await;
    let session = host.open("puppet").await;
    let agent = session.agent().to_owned();
    Chat {
        host,
        folder,
        agent,
        session,
    }
}

#[track_caller]
fn upload(host: &Host, session: &str, name: &str, media_type: &str, content: &[u8]) -> Reply {
    let request = host.request(Method::POST, &format!("{session}/files?name={name}"));
    host.send(
        request
            .header("content-type", media_type)
            .body(content.to_vec()),
    )
}

/// Has the agent ask for files and say what is in them; the question's id.
async fn ask(host: &Host, session: &str, props: Value) -> Value {
    let mut shown = json!({ "prompt": "Your essay" });
    shown
        .as_object_mut()
        .unwrap()
        .extend(props.as_object().unwrap().clone());
    host.play(session, &json!([
        { "start": [{ "key": "q", "client": "file_upload", "props": shown }] }, { "files": true },
    ])).await;
    host.until(session, |seen| seen["run_status"] == "awaiting_client")
        .await["pending_action"]["tool_call_id"]
        .clone()
}

#[track_caller]
fn answer(host: &Host, agent: &str, call: &Value, files: &Value) -> Reply {
    host.post(
        &format!("{agent}/respond"),
        &json!({ "tool_call_id": call, "response": { "files": files } }),
    )
}

/// Waits until the agent says this, and has nothing more to do.
async fn says(host: &Host, session: &str, text: &str) {
    let last = |seen: &Value| {
        seen["messages"]
            .as_array()
            .and_then(|messages| messages.last())
            .map(|last| last["text"] == text)
    };
    host.until(session, |seen| {
        seen["run_id"].is_null() && last(seen) == Some(true)
    })
    .await;
}

/// The bytes of a file; none for a status that is not 200.
async fn back(host: &Host, session: &str, digest: &str) -> Option<Vec<u8>> {
    let response = host
        .request(Method::GET, &format!("{session}/files/{digest}"))
        .send()
        .await
        .unwrap();
    if response.status() == 200 {
        Some(response.bytes().await.unwrap().to_vec())
    } else {
        None
    }
}

/// Returns the sum that the agent reports of the bytes of a file.
fn sum(content: &[u8]) -> u64 {
    content.iter().map(|byte| u64::from(*byte)).sum()
}

/// A file of ten mebibytes is handed over, named in an answer, read by its agent and given back.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_ten_mebibytes_is_uploaded_named_read_by_its_agent_and_given_back() {
    let Chat {
        host,
        folder,
        agent,
        session,
    } = chat().await;
    let content: Vec<u8> = (0..LARGEST)
        .map(|at| u8::try_from(at % 251).unwrap())
        .collect();
    let kept = upload(&host, &session, "thesis.pdf", "application/pdf", &content)
        .gives(201)
        .await;
    let digest = kept.text("digest");
    assert_eq!(digest, Digest::of(&content).reference());
    let call = ask(
        &host,
        &session,
        json!({ "accept": ["application/pdf", "text/*"], "max_files": 2 }),
    )
    .await;
    // One that was handed over before, and a small one that comes along.
    let small =
        json!({ "name": "note.txt", "media_type": "text/plain", "content_base64": "YW4gZXNzYXk=" });
    answer(&host, &agent, &call, &json!([{ "digest": digest }, small]))
        .gives(202)
        .await;
    let note = b"an essay";
    let said = format!(
        "thesis.pdf application/pdf {LARGEST} bytes sum {}\nnote.txt text/plain 8 bytes sum {}",
        sum(&content),
        sum(note)
    );
    says(&host, &session, &said).await;
    // Both are files of the session like any other, also after the host was killed.
    host.kill().await;
    let host = folder.serve().await;
    let listed = host.get(&format!("{session}/files")).await.body;
    let names: Vec<&Value> = listed["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| &file["name"])
        .collect();
    assert_eq!(names, ["thesis.pdf", "note.txt"]);
    assert!(back(&host, &session, &digest).await.unwrap() == content);
    assert_eq!(
        back(&host, &session, &Digest::of(b"an essay").reference())
            .await
            .unwrap(),
        b"an essay"
    );
    // A later turn of the session reads it still, and one of another session does not.
    host.play(&session, &json!([{ "read": digest }])).await;
    says(&host, &session, &format!("{LARGEST} bytes")).await;
    let other = host.open("puppet").await;
    host.play(&other, &json!([{ "read": digest }])).await;
    says(&host, &other, "no blob").await;
    assert_eq!(back(&host, &other, &digest).await, None);
    let verified = host.post("/api/verifications", &json!({})).await;
    assert_eq!(verified.body["intact"], true, "{verified:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_do_not_fit_are_refused_with_their_place_and_the_question_stays_open() {
    let Chat {
        host,
        agent,
        session,
        ..
    } = chat().await;
    let other = host.open("puppet").await;
    let mut digests = Vec::new();
    for (of, name, media_type, content) in [
        (&session, "a.txt", "text/plain", &b"fits"[..]),
        (&session, "b.png", "image/png", b"png"),
        (&session, "c.txt", "text/plain", b"too long"),
        (&other, "d.txt", "text/plain", b"else"),
    ] {
        digests.push(
            upload(&host, of, name, media_type, content)
                .await
                .text("digest"),
        );
    }
    let call = ask(
        &host,
        &session,
        json!({ "accept": ["text/*"], "max_bytes": 4, "max_files": 2 }),
    )
    .await;
    let named = |at: usize| json!({ "digest": digests[at] });
    let inline = |name: &str, content: &str| {
        json!({
            "name": name, "media_type": "text/plain", "content_base64": content,
        })
    };
    for (files, place) in [
        (json!([]), "/response/files"),
        (json!([named(0), named(0), named(0)]), "/response/files"),
        (json!([named(0), named(1)]), "/response/files/1/digest"),
        (json!([named(2)]), "/response/files/0/digest"),
        (json!([named(3)]), "/response/files/0/digest"),
        (
            json!([inline("x.txt", "YW4gZXNzYXk=")]),
            "/response/files/0/content_base64",
        ),
        (
            json!([inline("x.txt", "Zm91cg")]),
            "/response/files/0/content_base64",
        ),
        (
            json!([inline("../x.txt", "Zm91cg==")]),
            "/response/files/0/name",
        ),
        (json!([{ "digest": digests[0], "more": 1 }]), "/response"),
    ] {
        let refused = answer(&host, &agent, &call, &files)
            .refused(422, "INVALID_RESPONSE")
            .await;
        assert_eq!(refused.text("field"), place, "{files}");
    }
    let flat = json!({
        "tool_call_id": call,
        "response": { "name": "x", "media_type": "text/plain", "content_base64": "" },
    });
    assert_eq!(
        host.post(&format!("{agent}/respond"), &flat)
            .await
            .text("code"),
        "INVALID_RESPONSE"
    );
    assert_eq!(
        host.get(&format!("{session}/files")).await.body["files"]
            .as_array()
            .unwrap()
            .len(),
        3,
        "nothing was kept of them"
    );
    answer(
        &host,
        &agent,
        &call,
        &json!([inline("x.txt", "Zm91cg=="), named(0)]),
    )
    .gives(202)
    .await;
    let said = format!(
        "x.txt text/plain 4 bytes sum {}\na.txt text/plain 4 bytes sum {}",
        sum(b"four"),
        sum(b"fits")
    );
    says(&host, &session, &said).await;
}

async fn with(line: &Line, method: Method, path: &str) -> u16 {
    line.ask(method, path, None).await.status
}

/// Files are seen by those who see the session and handed over by those who may talk in it.
#[tokio::test(flavor = "multi_thread")]
async fn files_are_seen_by_who_sees_the_session_and_uploaded_by_who_may_talk_in_it() {
    let Chat {
        host,
        agent,
        session,
        ..
    } = chat().await;
    let digest = upload(&host, &session, "a.txt", "text/plain", b"mine")
        .await
        .text("digest");
    for (user, role) in [("bob", "mentee"), ("carol", "shared"), ("dave", "observer")] {
        host.assign(&agent, user, role).await;
    }
    let files = format!("{session}/files");
    for (user, sees, hands_over) in [
        ("alice", 404, 404),
        ("bob", 404, 404),
        ("carol", 200, 201),
        ("dave", 200, 403),
    ] {
        let line = host.user(user, &["read", "write"]).await;
        let inspections = [
            with(&line, Method::GET, &files).await,
            with(&line, Method::GET, &format!("{files}/{digest}")).await,
        ];
        assert_eq!(
            (
                inspections,
                with(&line, Method::POST, &format!("{files}?name={user}.txt")).await
            ),
            ([sees; 2], hands_over),
            "{user}"
        );
        let looking = host.user(user, &["read"]).await;
        assert_eq!(
            with(&looking, Method::POST, &format!("{files}?name=x")).await,
            403,
            "{user} with a key to look with"
        );
    }
    host.post(&format!("{agent}/archive"), &json!({}))
        .gives(200)
        .await;
    assert_eq!(
        upload(&host, &session, "late.txt", "text/plain", b"late")
            .await
            .text("code"),
        "AGENT_ARCHIVED"
    );
    assert_eq!(
        back(&host, &session, &digest).await.unwrap(),
        b"mine",
        "what is there can be looked at"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_there_after_a_rebuild_and_in_a_backup() {
    let Chat {
        host,
        folder,
        session,
        ..
    } = chat().await;
    let digest = upload(&host, &session, "a.txt", "text/plain", b"an essay")
        .await
        .text("digest");
    host.post("/api/rebuilds", &json!({})).gives(202).await;
    let rebuilt = host
        .until("/api/rebuilds", |seen| seen["state"] != "running")
        .await;
    shows(&rebuilt, &json!({ "state": "done", "replaced": [] }));
    let backup = host.post("/api/backups", &json!({})).gives(201).await;
    assert!(host.stop().await.success(), "{}", folder.log());
    // The backup takes the place of what was.
    let kept = folder.path().join("backup.db");
    std::fs::copy(backup.text("file"), &kept).unwrap();
    std::fs::remove_dir_all(folder.data()).unwrap();
    folder
        .succeeds(&[
            "restore",
            kept.to_str().unwrap(),
            "--data",
            folder.data().to_str().unwrap(),
        ])
        .await;
    folder.warm(&["puppet"]).await;
    let host = folder.serve().await;
    assert_eq!(back(&host, &session, &digest).await.unwrap(), b"an essay");
}
