//! Keys and tokens through the real program: its commands, its configuration, its log, and over a
//! restart.

use agent_host_tests::process::{Folder, Host, Reply};
use reqwest::Method;
use serde_json::{Value, json};
use std::process::Output;

fn document(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(value: &Value, name: &str) -> String {
    value[name]
        .as_str()
        .unwrap_or_else(|| panic!("{name} of {value}"))
        .to_owned()
}

#[track_caller]
fn me(host: &Host, credential: &str) -> Reply {
    host.send(host.bare(Method::GET, "/api/me").bearer_auth(credential))
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_made_used_and_revoked_from_the_command_line_and_outlast_a_restart() {
    let folder = Folder::new(json!({}));
    let host = folder.serve().await;
    let create = "key create --user alice --scopes read,keys --expires 1d --name laptop --json";
    let issued: Value = serde_json::from_str(&folder.prints(create, 0, &[]).await).unwrap();
    let key = text(&issued, "key");
    let id = text(&issued, "id");
    assert_eq!(
        (
            text(&issued, "user_id"),
            text(&issued, "issued_by"),
            issued["scopes"].clone()
        ),
        ("alice".into(), "local".into(), json!(["read", "keys"]))
    );
    assert_eq!(me(&host, &key).await.text("user_id"), "alice");

    // Without --json the key stands alone, for a shell to take.
    let made = folder.run(&["key", "create", "--scopes", "read"]).await;
    let alone = String::from_utf8(made.stdout).unwrap();
    assert!(
        alone.starts_with("ahk_") && alone.trim_end().lines().count() == 1,
        "{alone}"
    );
    assert!(
        String::from_utf8_lossy(&made.stderr).contains("it is not shown again"),
        "{:?}",
        made.stderr
    );
    let local = alone.trim().to_owned();
    assert_eq!(me(&host, &local).await.text("user_id"), "local");

    // A command of alice's, with her key and without the host's token.
    let variables = [("AGENT_HOST_TOKEN", key.as_str())];
    let hers = document(
        &folder
            .run_with(&["key", "list", "--json"], &variables)
            .await,
    );
    assert_eq!(
        (
            hers["keys"].as_array().unwrap().len(),
            text(&hers["keys"][0], "id")
        ),
        (1, id.clone())
    );
    let refused = folder.run_with(&["events", "tail"], &variables).await;
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("lacks the required scope: `admin`"),
        "{refused:?}"
    );
    let all = folder.run(&["key", "list", "--all"]).await;
    assert_eq!(
        String::from_utf8_lossy(&all.stdout).lines().count(),
        2,
        "{all:?}"
    );

    host.kill().await;
    let host = folder.serve().await;
    assert_eq!(me(&host, &key).await.status, 200, "it outlasts a restart");
    let revoked = folder
        .run(&["key", "revoke", &id, "--reason", "laptop was lost"])
        .await;
    assert!(
        String::from_utf8_lossy(&revoked.stdout)
            .contains(&format!("{id}  alice  read,keys  revoked")),
        "{revoked:?}"
    );
    me(&host, &key).refused(401, "UNAUTHORIZED").await;
    host.kill().await;
    let host = folder.serve().await;
    assert_eq!(me(&host, &key).await.status, 401, "so does its revocation");
    me(&host, &local).gives(200).await;
    let refused = folder.run_with(&["key", "list"], &variables).await;
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    assert!(
        document(&folder.run(&["verify", "--json"]).await)["intact"]
            .as_bool()
            .unwrap()
    );
    assert!(host.stop().await.success());
    let log = folder.log();
    assert!(
        !log.contains(&key) && !log.contains(key.rsplit('_').next().unwrap()),
        "{log}"
    );
}

/// An issuer that the configuration trusts is asked, and 503 is told while it does not answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_issuer_is_asked_and_503_is_told_while_it_does_not_answer() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let server = json!({
        "listen": "127.0.0.1:0", "dataDir": "data",
        "identity": [{
            "issuer": "https://id.example", "audience": ["agent-host"], "algorithms": ["RS256"],
            "jwksUrl": format!("http://{nobody}/keys"),
        }],
    });
    let folder = Folder::new(json!({ "server": server }));
    let host = folder.serve().await;
    // {"alg":"RS256","kid":"a"},
    // {"iss":"https://id.example","aud":"agent-host","sub":"alice","exp":9999999999}, and no
    // signature.
    let token = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImEifQ\
                 .eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiOiJhZ2VudC1ob3N0Iiwic3ViIjoi\
                 YWxpY2UiLCJleHAiOjk5OTk5OTk5OTl9.AAAA";
    let answer = me(&host, token).await;
    answer.is_refusal(503, "IDENTITY_UNAVAILABLE");
    assert!(
        answer.retry_after_s.is_some_and(|seconds| seconds >= 1),
        "{answer:?}"
    );
    assert_eq!(
        host.get("/api/me").await.text("user_id"),
        "local",
        "the host's own token needs nobody"
    );
    let other = token.replace("LmV4YW1wbGUi", "LmV4YW1wbGEi");
    assert_eq!(me(&host, &other).await.status, 401, "somebody else's");
    assert!(host.stop().await.success());

    let wrong = json!({ "listen": "127.0.0.1:0", "dataDir": "data", "identity": [{
        "issuer": "https://id.example", "audience": ["agent-host"], "algorithms": ["HS256"],
    }] });
    let folder = Folder::new(json!({ "server": wrong }));
    let ended = folder.start(None).await.unwrap_err();
    assert_eq!(ended.status.code(), Some(2));
    assert!(
        ended
            .said
            .contains("server.identity[0].algorithms[0]: `HS256` is not one of its values"),
        "{}",
        ended.said
    );
}

/// A host whose issuers could mean the same user does not start, and the check says why.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_issuers_could_mean_the_same_user_is_refused_and_told_why() {
    let issuer = |name: &str| {
        json!({
            "issuer": format!("https://{name}.example"), "audience": ["agent-host"],
            "algorithms": ["RS256"], "plainUsers": true,
        })
    };
    let server = json!({
        "listen": "127.0.0.1:0", "dataDir": "data", "identity": [issuer("a"), issuer("b")],
    });
    let folder = Folder::new(json!({ "server": server }));
    let ended = folder.start(None).await.unwrap_err();
    assert_eq!(ended.status.code(), Some(2), "{}", ended.said);
    let fault = "server.identity[1].plainUsers";
    assert!(
        ended.said.contains(fault)
            && ended
                .said
                .contains("server.identity[0] has plain users already"),
        "{}",
        ended.said
    );
    let checked = folder.run(&["config", "check"]).await;
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&checked.stdout),
        String::from_utf8_lossy(&checked.stderr)
    );
    assert!(
        !checked.status.success()
            && said.contains(fault)
            && said.contains("set it to false here or there"),
        "{said}"
    );
}
