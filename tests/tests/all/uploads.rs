//! Files that users hand over: asked for, named in an answer, read by the agent, given back, not
//! seen by others.

use agent_host_tests::process::{Answer, Folder, Host, Line, PATIENCE, puppets};
use domain::digest::Digest;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// Bytes of the largest file.
const LARGEST: usize = 10 << 20;

struct Chat {
    host: Host,
    folder: Folder,
    agent: String,
    session: String,
}

async fn chat() -> Chat {
    let agent = json!({ "agentId": "puppet", "displayName": "Puppet", "component": "puppet" });
    let folder = Folder::new(puppets(&json!([agent])));
    folder.warm(&["puppet"]).await;
    let host = folder.start(None).await.unwrap();
    let (agent, session) = open(&host).await;
    Chat {
        host,
        folder,
        agent,
        session,
    }
}

async fn open(host: &Host) -> (String, String) {
    let opened = host
        .post(
            "/api/agents/puppet/sessions",
            &json!({ "session_type": "chat" }),
        )
        .await
        .unwrap();
    assert_eq!(opened.status, 201, "{opened:?}");
    let agent = format!("/api/agents/{}", opened.text("agent_id"));
    (
        agent.clone(),
        format!("{agent}/sessions/{}", opened.text("session_id")),
    )
}

async fn upload(
    host: &Host,
    session: &str,
    name: &str,
    media_type: &str,
    content: &[u8],
) -> Answer {
    let request = host.request(Method::POST, &format!("{session}/files?name={name}"));
    host.send(
        request
            .header("content-type", media_type)
            .body(content.to_vec()),
    )
    .await
    .unwrap()
}

async fn until(host: &Host, session: &str, is: impl Fn(&Value) -> bool) -> Value {
    let waiting = async {
        loop {
            let seen = host.get(session).await.unwrap().body;
            if is(&seen) {
                return seen;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    match tokio::time::timeout(PATIENCE, waiting).await {
        Ok(seen) => seen,
        Err(_) => panic!("it does not come to that: {:?}", host.get(session).await),
    }
}

/// Has the agent ask for files and say what is in them; the question's id.
async fn ask(host: &Host, session: &str, props: Value) -> Value {
    let mut shown = json!({ "prompt": "Your essay" });
    shown
        .as_object_mut()
        .unwrap()
        .extend(props.as_object().unwrap().clone());
    say(host, session, json!([
        { "start": [{ "key": "q", "client": "file_upload", "props": shown }] }, { "files": true },
    ])).await;
    until(host, session, |seen| {
        seen["run_status"] == "awaiting_client"
    })
    .await["pending_action"]["tool_call_id"]
        .clone()
}

async fn say(host: &Host, session: &str, steps: Value) {
    let said = host
        .post(
            &format!("{session}/messages"),
            &json!({ "content": json!({ "steps": steps }).to_string() }),
        )
        .await
        .unwrap();
    assert_eq!(said.status, 202, "{said:?}");
}

async fn answer(host: &Host, agent: &str, call: &Value, files: Value) -> Answer {
    host.post(
        &format!("{agent}/respond"),
        &json!({ "tool_call_id": call, "response": { "files": files } }),
    )
    .await
    .unwrap()
}

/// Waits until the agent says this, and has nothing more to do.
async fn says(host: &Host, session: &str, text: &str) {
    let last = |seen: &Value| {
        seen["messages"]
            .as_array()
            .and_then(|messages| messages.last())
            .map(|last| last["text"] == text)
    };
    until(host, session, |seen| {
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
    let kept = upload(&host, &session, "thesis.pdf", "application/pdf", &content).await;
    assert_eq!(kept.status, 201, "{kept:?}");
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
    let taken = answer(&host, &agent, &call, json!([{ "digest": digest }, small])).await;
    assert_eq!(taken.status, 202, "{taken:?}");
    let note = b"an essay";
    let said = format!(
        "thesis.pdf application/pdf {LARGEST} bytes sum {}\nnote.txt text/plain 8 bytes sum {}",
        sum(&content),
        sum(note)
    );
    says(&host, &session, &said).await;
    // Both are files of the session like any other, also after the host was killed.
    host.kill().await;
    let host = folder.start(None).await.unwrap();
    let listed = host.get(&format!("{session}/files")).await.unwrap().body;
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
    say(&host, &session, json!([{ "read": digest }])).await;
    says(&host, &session, &format!("{LARGEST} bytes")).await;
    let (_, other) = open(&host).await;
    say(&host, &other, json!([{ "read": digest }])).await;
    says(&host, &other, "no blob").await;
    assert_eq!(back(&host, &other, &digest).await, None);
    let verified = host.post("/api/verifications", &json!({})).await.unwrap();
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
    let (_, other) = open(&host).await;
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
        let refused = answer(&host, &agent, &call, files.clone()).await;
        assert_eq!(
            (refused.status, refused.text("code").as_str()),
            (422, "INVALID_RESPONSE"),
            "{files}"
        );
        assert_eq!(refused.text("field"), place, "{files}");
    }
    let flat = json!({
        "tool_call_id": call,
        "response": { "name": "x", "media_type": "text/plain", "content_base64": "" },
    });
    assert_eq!(
        host.post(&format!("{agent}/respond"), &flat)
            .await
            .unwrap()
            .text("code"),
        "INVALID_RESPONSE"
    );
    assert_eq!(
        host.get(&format!("{session}/files")).await.unwrap().body["files"]
            .as_array()
            .unwrap()
            .len(),
        3,
        "nothing was kept of them"
    );
    assert_eq!(
        answer(
            &host,
            &agent,
            &call,
            json!([inline("x.txt", "Zm91cg=="), named(0)])
        )
        .await
        .status,
        202
    );
    let said = format!(
        "x.txt text/plain 4 bytes sum {}\na.txt text/plain 4 bytes sum {}",
        sum(b"four"),
        sum(b"fits")
    );
    says(&host, &session, &said).await;
}

async fn with(line: &Line, method: Method, path: &str) -> u16 {
    line.ask(method, path, None).await.unwrap().status
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
        let assigned = host
            .post(
                &format!("{agent}/assign"),
                &json!({ "user_id": user, "role": role }),
            )
            .await
            .unwrap();
        assert_eq!(assigned.status, 201, "{assigned:?}");
    }
    let files = format!("{session}/files");
    for (user, sees, hands_over) in [
        ("alice", 404, 404),
        ("bob", 404, 404),
        ("carol", 200, 201),
        ("dave", 200, 403),
    ] {
        let line = host.user(user, &["read", "write"]).await;
        let looks = [
            with(&line, Method::GET, &files).await,
            with(&line, Method::GET, &format!("{files}/{digest}")).await,
        ];
        assert_eq!(
            (
                looks,
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
    let archived = host
        .post(&format!("{agent}/archive"), &json!({}))
        .await
        .unwrap();
    assert_eq!(archived.status, 200, "{archived:?}");
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
    assert_eq!(
        host.post("/api/rebuilds", &json!({})).await.unwrap().status,
        202
    );
    let rebuilt = until(&host, "/api/rebuilds", |seen| seen["state"] != "running").await;
    assert_eq!(
        (&rebuilt["state"], &rebuilt["replaced"]),
        (&json!("done"), &json!([])),
        "{rebuilt}"
    );
    let backup = host.post("/api/backups", &json!({})).await.unwrap();
    assert_eq!(backup.status, 201, "{backup:?}");
    assert!(host.stop().await.success(), "{}", folder.log());
    // The backup takes the place of what was.
    let kept = folder.path().join("backup.db");
    std::fs::copy(backup.text("file"), &kept).unwrap();
    std::fs::remove_dir_all(folder.data()).unwrap();
    let made = folder
        .run(&[
            "restore",
            kept.to_str().unwrap(),
            "--data",
            folder.data().to_str().unwrap(),
        ])
        .await;
    assert!(made.status.success(), "{made:?}");
    folder.warm(&["puppet"]).await;
    let host = folder.start(None).await.unwrap();
    assert_eq!(back(&host, &session, &digest).await.unwrap(), b"an essay");
}
