//! `key create`, `key list`, `key revoke` and `token show`.

use super::dead_letter::because;
use crate::answer::{Answer, Row, list};
use crate::cli::Key;
use crate::client::{Client, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::{invocation, token};
use domain::key::ApiKey;
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(client: &Client, what: Key) -> Result<Answer, Failure> {
    Ok(match what {
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
            let notices = [
                row(&issued).line(),
                "keep it: it is not shown again".to_owned(),
            ];
            // The key alone, so that a shell can take it.
            Answer::filled(issued, "{/key}").notice(notices)
        }
        Key::List { user, all } => {
            let nothing = match (&user, all) {
                (None, false) => "you have no keys; `--all` lists those of all users",
                _ => "there are no keys",
            };
            let whose = user.map_or_else(
                || format!("all={all}"),
                |user| format!("user={}", segment(&user)),
            );
            let path = format!("/api/keys?{whose}");
            let keys = client.get_all(&path, "/keys").await?;
            Answer::list(json!({ "keys": keys }), "/keys", row, nothing)
        }
        Key::Revoke { id, reason } => {
            // Of a whole key only its id is sent; the secret part is dropped.
            let id = ApiKey::parse(&id).map_or(id, |key| key.id().to_string());
            let path = format!("/api/keys/{}", segment(&id));
            Answer::row(
                client.delete(&because(&path, reason.as_deref())).await?,
                row,
            )
        }
    })
}

/// Prints the token.
pub(super) fn token(loaded: &Loaded) -> Result<Answer, Failure> {
    let file = loaded.token_file();
    let token = token::read(&file).map_err(|failure| match failure.advice {
        Some(_) => failure,
        None => failure.advise(format!(
            "start the host once: {}",
            invocation::command(loaded, "serve")
        )),
    })?;
    let document = json!({ "token": token, "file": file });
    Ok(Answer::line(document, token))
}

fn row(key: &Value) -> Row {
    let scopes = list(key, "/scopes").iter().filter_map(Value::as_str);
    let scopes: Vec<&str> = scopes.collect();
    let ends = "[[{!/revoked_at}until {/expires_at}]][[revoked {/revoked_at}]]";
    Row::of(key, &["{/id}", "{/user_id}"], &[])
        .cell(scopes.join(","))
        .cells(key, &["{/state}", ends])
        .notes(key, &["{/name}"])
}
