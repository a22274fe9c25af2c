//! The beginning of a prompt that a provider is asked to keep.

use super::{Peer, folder};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_to_keep_all_sections_of_an_agent_that_has_no_items() {
    let peer = Peer::start();
    let claude = json!({
        "agents": [{
            "agentId": "claude", "displayName": "Claude", "systemPrompt": "Be brief.",
            "model": "claude",
        }],
        "providers": {
            "anthropic": { "kind": "anthropic", "baseUrl": peer.base(), "apiKeyFile": "key" },
        },
        "models": { "claude": { "provider": "anthropic", "model": "c-1" } },
    });
    let folder = folder(&peer, claude).await;
    let host = folder.serve().await;
    let session = host.open("claude").await;
    host.turn(&session, "hello").gives(200).await;
    let [body] = <[Value; 1]>::try_from(peer.bodies()).unwrap();
    let blocks = body["system"].as_array().unwrap();
    let reported: Vec<(&str, bool)> = blocks
        .iter()
        .map(|block| {
            let text = block["text"].as_str().unwrap();
            let heading = text.lines().next().unwrap();
            (heading, block.get("cache_control").is_some())
        })
        .collect();
    assert_eq!(reported, [("Be brief.", false), ("Available tools:", true)]);
}
