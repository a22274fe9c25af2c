//! `connector bind`, `connector unbind` and `connector list`.

use crate::cli::Connector;
use crate::client::{Client, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{list, text};
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
            terminal.result(&unbound, || vec![format!("{key} is bound to nobody")]);
        }
        Connector::List { user } => {
            let path = format!("/api/users/{}/connectors", segment(&user));
            let listed = client.get(&path).await?;
            let keys = list(&listed, "/connectors");
            terminal.result(&listed, || keys.iter().map(line).collect());
            if keys.is_empty() {
                terminal.notice("no key is bound to this user");
            }
        }
    }
    Ok(())
}

fn line(key: &Value) -> String {
    format!(
        "{}  {}  since {}",
        text(key, "/key"),
        text(key, "/user_id"),
        text(key, "/bound_at")
    )
}
