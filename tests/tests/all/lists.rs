//! The example with the design's four agents: they share a reading list, and one of them may only
//! look at it.

use agent_host_tests::guests::root;
use agent_host_tests::process::{Folder, Host, PATIENCE};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// The example's configuration, on a port and with data of the test's own.
fn example() -> Value {
    let folder = root().join("examples/reading-list");
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(folder.join("agent-host.json")).unwrap()).unwrap();
    config.as_object_mut().unwrap().remove("server");
    config["providers"]["scripted"]["script"] = json!(folder.join("script.toml"));
    config
}

async fn started() -> (Folder, Host) {
    let folder = Folder::new(example());
    folder
        .warm(&["assistant", "reading-list", "web", "lists"])
        .await;
    let host = folder.start(None).await.unwrap();
    (folder, host)
}

/// Says something to an agent in a session of its own, and waits for the answer: what the tool gave
/// back, which the script repeats.
async fn say(host: &Host, agent: &str, words: &str) -> String {
    let answer = host
        .post(
            &format!("/api/agents/{agent}/sessions"),
            &json!({ "session_type": "chat" }),
        )
        .await
        .unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    let session = format!(
        "/api/agents/{}/sessions/{}",
        answer.text("agent_id"),
        answer.text("session_id")
    );
    let answer = host
        .post(&format!("{session}/messages"), &json!({ "content": words }))
        .await
        .unwrap();
    assert_eq!(answer.status, 202, "{answer:?}");
    let waiting = async {
        loop {
            let seen = host.get(&session).await.unwrap().body;
            if seen["run_id"].is_null() && seen["waiting"] == 0 {
                return seen["messages"].as_array().unwrap().last().unwrap()["text"]
                    .as_str()
                    .unwrap()
                    .to_owned();
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .expect("an answer in time")
}

/// The same where the answer is a tool's result.
async fn result(host: &Host, agent: &str, words: &str) -> Value {
    let said = say(host, agent, words).await;
    serde_json::from_str(&said).unwrap_or_else(|_| panic!("{agent}: {words}: {said}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_designs_agents_share_a_list_that_one_of_them_may_only_read() {
    let (folder, host) = started().await;
    let added = result(
        &host,
        "general",
        "add The Design at https://example.com/design",
    )
    .await;
    assert_eq!(
        (&added["id"], &added["title"], &added["status"]),
        (&json!(1), &json!("The Design"), &json!("unread"))
    );
    assert_eq!(result(&host, "general", "add A book").await["id"], 2);
    assert!(
        say(&host, "general", "add Again at https://EXAMPLE.com/design/")
            .await
            .contains("is on the list already: id 1")
    );

    let titles = |listing: &Value| -> Vec<String> {
        listing["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["title"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        titles(&result(&host, "reading-list", "list").await),
        ["The Design", "A book"]
    );
    assert_eq!(
        titles(&result(&host, "reading-list", "search design").await),
        ["The Design"]
    );
    for refused in [
        "delete 1",
        "add Another",
        "read 1",
        "task Call Ann",
        "fetch https://example.com/",
    ] {
        let said = say(&host, "reading-list", refused).await;
        assert!(
            serde_json::from_str::<Value>(&said).is_err(),
            "{refused}: {said}"
        );
    }
    assert_eq!(
        titles(&result(&host, "reading-list", "list").await),
        ["The Design", "A book"]
    );
    // Each of the design's two denials works, not only one of them for both.
    let audit = host
        .get("/api/audit?verdict=refused&limit=1000")
        .await
        .unwrap()
        .body;
    let refused = |rule: &str, tool: &str, capability: &str| {
        let is = |line: &Value| {
            line["rule"] == rule
                && line["tool"] == tool
                && line["capability"] == capability
                && line["component"] == "lists"
        };
        audit["lines"].as_array().unwrap().iter().any(is)
    };
    assert!(
        refused("toolDenylist", "reading_list_delete", "tools.call"),
        "{audit}"
    );
    assert!(
        refused("capabilityDenylist", "reading_list_add", "lists.write"),
        "{audit}"
    );

    assert_eq!(
        result(&host, "todo", "task Call Ann by 2028-02-29").await["dueDate"],
        "2028-02-29"
    );
    assert!(serde_json::from_str::<Value>(&say(&host, "todo", "list").await).is_err());
    assert!(host.stop().await.success(), "{}", folder.log());

    let host = folder.start(None).await.unwrap();
    assert_eq!(result(&host, "general", "read 1").await["status"], "read");
    assert_eq!(
        result(&host, "general", "delete 1").await,
        json!({ "id": 1, "title": "The Design" })
    );
    assert_eq!(
        titles(&result(&host, "reading-list", "list").await),
        ["A book"]
    );
    assert_eq!(result(&host, "todo", "done 1").await["done"], true);
    assert_eq!(result(&host, "general", "add Third").await["id"], 3);
    assert!(host.stop().await.success(), "{}", folder.log());
}
