//! `connector bind`, `connector unbind` and `connector list`.

use crate::cli::Connector;
use crate::client::{Client, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::terminal::Terminal;
use serde_json::Value;

/// Runs the command.
pub(super) async fn run(
    loaded: &Loaded,
    what: Connector,
    terminal: Terminal,
) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    let at =
        |user: &str, key: &str| format!("/api/users/{}/connectors/{}", segment(user), segment(key));
    match what {
        Connector::Bind { user, key } => {
            let bound = client.put(&at(&user, &key)).await?;
            terminal.result(&bound, || vec![line(&bound)]);
        }
        Connector::Unbind { user, key } => {
            let unbound = client.delete(&at(&user, &key)).await?;
            terminal.result(&unbound, || vec![format!("{key} stands for nobody")]);
        }
        Connector::List { user } => {
            let listed = client
                .get(&format!("/api/users/{}/connectors", segment(&user)))
                .await?;
            let keys = listed
                .get("connectors")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            terminal.result(&listed, || keys.iter().map(line).collect());
            if keys.is_empty() {
                terminal.notice("no service knows this user");
            }
        }
    }
    Ok(())
}

fn line(key: &Value) -> String {
    let text = |field: &str| key.get(field).and_then(Value::as_str).unwrap_or_default();
    format!(
        "{}  {}  since {}",
        text("key"),
        text("user_id"),
        text("bound_at")
    )
}
