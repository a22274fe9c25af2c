//! The example with the design's four agents: they share a reading list, and one of them may only
//! look at it.

use agent_host_tests::guests::root;
use agent_host_tests::process::{Folder, Host, shows};
use serde_json::{Value, json};

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
    Folder::serving(example(), &["assistant", "reading-list", "web", "lists"]).await
}

/// Says something to an agent in a session of its own, and returns the answer: what the tool gave
/// back, which the script repeats.
async fn say(host: &Host, agent: &str, words: &str) -> String {
    host.reply(&host.open(agent).await, words).await
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
    shows(
        &added,
        &json!({ "id": 1, "title": "The Design", "status": "unread" }),
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
    let audit = host.get("/api/audit?verdict=refused&limit=1000").await.body;
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

    let host = folder.serve().await;
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
