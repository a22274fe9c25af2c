//! `key create`, `key list` and `key revoke`.

use crate::cli::Key;
use crate::client::{Client, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{list, text};
use crate::terminal::Terminal;
use domain::key::ApiKey;
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Key, terminal: Terminal) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    match what {
        Key::Create {
            user,
            scopes,
            expires,
            name,
        } => {
            let mut wanted = json!({ "scopes": scopes, "expires_in_s": expires.seconds });
            if let Some(wanted) = wanted.as_object_mut() {
                wanted.extend(user.map(|user| ("user".to_owned(), user.into())));
                wanted.extend(name.map(|name| ("name".to_owned(), name.into())));
            }
            let issued = client.post("/api/keys", &wanted).await?;
            // The key alone, so that a shell can take it.
            terminal.result(&issued, || vec![text(&issued, "/key").to_owned()]);
            terminal.notice(&format!(
                "{}\nkeep it: it is not shown again",
                line(&issued)
            ));
        }
        Key::List { user, all } => list_keys(&client, user.as_deref(), all, terminal).await?,
        Key::Revoke { id, reason } => {
            // Of a whole key only its id is sent; the secret part is dropped.
            let id = ApiKey::parse(&id).map_or(id, |key| key.id().to_string());
            let reason = reason
                .map(|reason| format!("?reason={}", segment(&reason)))
                .unwrap_or_default();
            let path = format!("/api/keys/{}{reason}", segment(&id));
            let revoked = client.delete(&path).await?;
            terminal.result(&revoked, || vec![line(&revoked)]);
        }
    }
    Ok(())
}

/// Lists page by page: with `--json`, one document of all.
async fn list_keys(
    client: &Client,
    user: Option<&str>,
    all: bool,
    terminal: Terminal,
) -> Result<(), Failure> {
    let whose = user.map_or_else(
        || format!("all={all}"),
        |user| format!("user={}", segment(user)),
    );
    let keys = client
        .get_all(&format!("/api/keys?{whose}"), "/keys")
        .await?;
    terminal.result(&json!({ "keys": keys }), || keys.iter().map(line).collect());
    if keys.is_empty() {
        terminal.notice(match (user, all) {
            (None, false) => "you have no keys; `--all` lists those of all users",
            _ => "there are no keys",
        });
    }
    Ok(())
}

fn line(key: &Value) -> String {
    let scopes = list(key, "/scopes").iter();
    let scopes: Vec<&str> = scopes.filter_map(Value::as_str).collect();
    let name = match text(key, "/name") {
        "" => String::new(),
        name => format!("  {name}"),
    };
    let ends = match text(key, "/revoked_at") {
        "" => format!("until {}", text(key, "/expires_at")),
        at => format!("revoked {at}"),
    };
    format!(
        "{}  {}  {}  {}  {ends}{name}",
        text(key, "/id"),
        text(key, "/user_id"),
        scopes.join(","),
        text(key, "/state")
    )
}
