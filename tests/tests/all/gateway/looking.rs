//! Models as they are looked at: over HTTP and with the command.

use super::{Peer, folder};
use agent_host_tests::process::shows;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn models_are_listed_with_what_their_providers_list_and_how_they_were_seen() {
    let peer = Peer::start();
    let folder = folder(&peer, json!({})).await;
    let host = folder.serve().await;
    let session = host.open("plain").await;
    assert_eq!(peer.lists(), 0, "no turn and no start asks for a list");
    host.turn(&session, "hello").gives(200).await;
    assert_eq!(peer.lists(), 0);
    let shown = host.get("/api/models").gives(200).await;
    let find = |list: &str, key: &str, name: &str| -> Value {
        let mut all = shown.body[list].as_array().unwrap().iter();
        all.find(|one| one[key] == name).unwrap().clone()
    };
    let main = find("models", "alias", "main");
    shows(
        &main,
        &json!({ "model": "m-1", "listed": true, "is_default": true }),
    );
    assert_eq!(main["price"]["output_per_million"], 2.0);
    assert_eq!(main["health"]["state"], "up");
    assert_eq!(main["health"]["seen_by"], "call");
    assert_eq!(find("models", "alias", "gone")["listed"], false);
    let local = find("providers", "name", "local");
    assert_eq!(local["models"], json!(["m-1", "m-2"]));
    let script = find("providers", "name", "script");
    assert_eq!(script["models"], json!(["s"]), "it answers from itself");
    let down = find("providers", "name", "down");
    assert_eq!(down["health"]["state"], "down");
    assert_eq!(down["error"]["code"], "model-unavailable");
    let asked = peer.lists();
    host.get("/api/models").await;
    assert_eq!(peer.lists(), asked, "a list is kept");

    let listed = folder.run(&["model", "list"]).await;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    for begin in [
        "main local/m-1 window 128000 price 1 in, 2 out listed up (call at ",
        "gone local/m-9 window 128000 no price not listed provider up (",
    ] {
        assert!(
            listed.lines().any(|line| words(line).starts_with(begin)),
            "{begin}: {listed}"
        );
    }
    let checked = folder.run(&["model", "check"]).await;
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    let reported = String::from_utf8_lossy(&checked.stdout).into_owned();
    for line in [
        "ok    local  lists 2 models",
        "ok    script  lists 1 model",
        "note  gone  m-9 is not in the list of local, which has m-1, m-2; a server of this kind \
         may take any name",
    ] {
        assert!(
            reported.lines().any(|reported| reported == line),
            "{line}: {reported}"
        );
    }
    assert!(reported.contains("fail  down  "), "{reported}");
}
