//! Files of a session over HTTP: kept once, given back to be saved, refused by what is wrong with
//! them.

use super::host::{Answer, Host, TOKEN};
use domain::digest::Digest;
use domain::file::{FILE_BYTES_MAX, SESSION_FILES_MAX};

async fn files() -> (Host, String) {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    (
        host,
        format!("/api/agents/{agent}/sessions/{session}/files"),
    )
}

async fn upload(host: &Host, path: &str, media_type: &str, body: &str) -> Answer {
    host.send(
        "POST",
        path,
        &[&format!("content-type: {media_type}")],
        body,
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_kept_once_listed_and_given_back_to_be_saved() {
    let (host, files) = files().await;
    let named = format!("{files}?name=Gr%C3%B6%C3%9Fe%20%22x%22.html");
    let first = upload(&host, &named, "text/html; charset=utf-8", "<script>").await;
    assert_eq!(first.status, 201, "{}", first.body);
    let file = first.json();
    let digest = Digest::of(b"<script>").reference();
    assert_eq!(
        (file["digest"].as_str(), file["name"].as_str()),
        (Some(digest.as_str()), Some("Größe \"x\".html"))
    );
    assert_eq!(
        (file["media_type"].as_str(), file["bytes"].as_u64()),
        (Some("text/html; charset=utf-8"), Some(8))
    );
    assert_eq!(file["user_id"], "local");
    let again = upload(&host, &named, "text/plain", "<script>").await;
    assert_eq!(
        (again.status, again.json()),
        (200, file.clone()),
        "the same content under the same name is one file"
    );
    let copy = upload(
        &host,
        &format!("{files}?name=copy.txt"),
        "text/plain",
        "<script>",
    )
    .await;
    assert_eq!(
        (copy.status, copy.json()["digest"].as_str()),
        (201, Some(digest.as_str()))
    );
    assert_eq!(
        host.get(&files).await.json()["files"],
        serde_json::json!([file, copy.json()])
    );

    let back = host.get(&format!("{files}/{digest}")).await;
    assert_eq!((back.status, back.body.as_str()), (200, "<script>"));
    for header in [
        "content-type: text/html; charset=utf-8",
        "content-disposition: attachment; filename=\"Gr__e _x_.html\"; \
         filename*=UTF-8''Gr%C3%B6%C3%9Fe%20%22x%22.html",
        "x-content-type-options: nosniff",
        "content-security-policy: default-src 'none'; sandbox",
        "cache-control: private, no-cache",
        &format!("etag: \"{}\"", Digest::of(b"<script>").hex()),
    ] {
        assert!(back.has(header), "{header}: {}", back.head);
    }
    let other = host.get(&format!("{files}/{digest}?name=copy.txt")).await;
    assert!(
        other.has("content-type: text/plain")
            && other.has("content-disposition: attachment; filename=\"copy.txt\""),
        "{}",
        other.head
    );
    let known = format!("if-none-match: \"{}\"", Digest::of(b"<script>").hex());
    let unchanged = host
        .send("GET", &format!("{files}/{digest}"), &[&known], "")
        .await;
    assert_eq!((unchanged.status, unchanged.body.as_str()), (304, ""));

    let events = host.get("/api/events?limit=1000").await.json();
    let reported: Vec<&serde_json::Value> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["type"] == "session.file.uploaded.v1")
        .collect();
    assert_eq!(
        (
            reported.len(),
            &reported[0]["actor"],
            &reported[0]["data"]["digest"]
        ),
        (2, &"user:local".into(), &digest.into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_which_nobody_says_what_it_is_is_bytes() {
    let (host, files) = files().await;
    let kept = host.send("POST", &format!("{files}?name=x"), &[], "").await;
    assert_eq!(
        (kept.status, kept.json()["media_type"].as_str()),
        (201, Some("application/octet-stream")),
        "{}",
        kept.body
    );
    let back = host
        .get(&format!("{files}/{}", Digest::of(b"").reference()))
        .await;
    assert_eq!((back.status, back.body.as_str()), (200, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_may_be_larger_than_any_other_body_and_has_a_limit_of_its_own() {
    let (host, files) = files().await;
    let path = format!("{files}?name=big.bin");
    let whole = upload(
        &host,
        &path,
        "application/octet-stream",
        &"x".repeat(FILE_BYTES_MAX),
    )
    .await;
    assert_eq!(
        (whole.status, whole.json()["bytes"].as_u64()),
        (201, Some(FILE_BYTES_MAX as u64)),
        "{}",
        whole.body
    );
    let announced = format!("content-length: {}", FILE_BYTES_MAX + 1);
    let refused = host
        .send(
            "POST",
            &path,
            &["content-type: text/plain", &announced],
            "x",
        )
        .await;
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, "x".repeat(1 << 20));
    let chunked = host
        .send(
            "POST",
            &path,
            &["transfer-encoding: chunked"],
            &chunk.repeat(12),
        )
        .await;
    for refused in [refused, chunked] {
        let problem = refused.json();
        assert_eq!(
            (
                refused.status,
                problem["code"].as_str(),
                problem["field"].as_str()
            ),
            (413, Some("FILE_TOO_LARGE"), Some("body"))
        );
    }
    assert_eq!(
        host.get(&files).await.json()["files"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_wrong_with_a_file_is_told_with_its_code_and_field() {
    let (host, files) = files().await;
    let digest = Digest::of(b"x").reference();
    let names: [(&str, &str); 4] = [
        ("{files}", &files),
        ("{long}", &"x".repeat(256)),
        ("{digest}", &digest),
        ("{bare}", &digest[7..]),
    ];
    let rows = [
        "POST {files} <content-type: text/plain> x => 400 INVALID_QUERY query:name",
        "POST {files}?name=a&other=1 <content-type: text/plain> x => 400 INVALID_QUERY query:other",
        "POST {files}?name= <content-type: text/plain> x => 422 INVALID_FILE_NAME query:name",
        "POST {files}?name=.. <content-type: text/plain> x => 422 INVALID_FILE_NAME query:name",
        "POST {files}?name=a%2Fb <content-type: text/plain> x => 422 INVALID_FILE_NAME query:name",
        "POST {files}?name=a%5Cb <content-type: text/plain> x => 422 INVALID_FILE_NAME query:name",
        "POST {files}?name=a%00 <content-type: text/plain> x => 422 INVALID_FILE_NAME query:name",
        "POST {files}?name=a%E2%80%AEb <content-type: text/plain> x \
         => 422 INVALID_FILE_NAME query:name",
        "POST {files}?name={long} <content-type: text/plain> x => 422 INVALID_FILE_NAME query:name",
        "POST {files}?name=a <content-type: text> x \
         => 415 UNSUPPORTED_MEDIA_TYPE header:Content-Type",
        "POST {files}?name=a <content-type: text/plain\u{e9}> x \
         => 415 UNSUPPORTED_MEDIA_TYPE header:Content-Type",
        "GET {files}/{digest} => 404 FILE_NOT_FOUND",
        "GET {files}/{bare} => 400 INVALID_ID path:digest",
        "GET {files}/sha256:..%2f..%2fx => 400 INVALID_ID path:digest",
    ];
    host.refuses(TOKEN, &names, &rows).await;
    assert_eq!(
        host.get(&files).await.json()["files"],
        serde_json::json!([])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_so_many_files_and_no_more() {
    let (host, files) = files().await;
    for n in 0..SESSION_FILES_MAX {
        let kept = upload(&host, &format!("{files}?name={n}"), "text/plain", "x").await;
        assert_eq!(kept.status, 201, "{}", kept.body);
    }
    let refused = upload(&host, &format!("{files}?name=more"), "text/plain", "x").await;
    assert_eq!(
        (refused.status, refused.json()["code"].as_str()),
        (409, Some("SESSION_FILES_FULL")),
        "{}",
        refused.body
    );
    assert_eq!(
        upload(&host, &format!("{files}?name=0"), "text/plain", "x")
            .await
            .status,
        200,
        "what is there needs no room"
    );
    assert_eq!(
        host.get(&files).await.json()["files"]
            .as_array()
            .unwrap()
            .len() as u64,
        SESSION_FILES_MAX
    );
}
