//! `connector list`, the keys of users (`bind`, `unbind`), pairing codes (`pairings`, `pair`,
//! `unpair`) and what is sent (`deliveries`, `requeue`, `test`).

use crate::cli::Connector;
use crate::client::{Client, code_of, parameters, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{list, number, text};
use crate::terminal::Terminal;
use anyhow::anyhow;
use serde_json::{Value, json};
use std::time::Duration;

/// The state of a message that its service took.
const DELIVERED: &str = "delivered";
/// The states in which nothing becomes of a message by itself.
const ENDED: [&str; 3] = [DELIVERED, "dead", "unknown"];
/// Time between two looks for what became of a test message.
const TEST_LOOK_EVERY: Duration = Duration::from_millis(250);
/// Looks for what became of a test message: ten seconds.
const TEST_LOOKS_MAX: u32 = 40;
/// Number of the newest messages among which a test message is looked for.
const TEST_AMONG: u32 = 100;

/// Runs the command.
pub(super) async fn run(
    loaded: &Loaded,
    what: Connector,
    terminal: Terminal,
) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    let at = Named::from(&what);
    let acted = act(&client, what, terminal).await;
    acted.map_err(|failure| at.advise(failure))
}

/// The connector and the user that a command names.
#[derive(Debug, Default)]
struct Named {
    connector: Option<String>,
    user: Option<String>,
}

impl Named {
    /// Adds what to do about a refusal, as commands of this program.
    fn advise(&self, failure: Failure) -> Failure {
        let advice = match (code_of(&failure), &self.connector, &self.user) {
            (Some("CONNECTOR_NOT_FOUND"), ..) => {
                "`connector list` shows those that there are".to_owned()
            }
            (Some("CONNECTOR_KEY_NOT_FOUND"), Some(connector), Some(user)) => format!(
                "`connector bind {user} {connector}:ID` with the id that the service has for them"
            ),
            (Some("CONNECTOR_KEY_NOT_FOUND"), None, Some(user)) => {
                format!("`connector list {user}` shows the user's keys")
            }
            (Some("PAIRING_NOT_FOUND"), ..) => {
                "`connector pairings` shows those that there are".to_owned()
            }
            (Some("DELIVERY_NOT_FOUND" | "INVALID_ID"), Some(connector), None) => {
                format!("`connector deliveries {connector}` shows those that there are")
            }
            _ => return failure,
        };
        failure.advise(advice)
    }
}

impl From<&Connector> for Named {
    fn from(what: &Connector) -> Self {
        match what {
            Connector::Test {
                connector,
                user: Some(user),
                ..
            } => Self {
                connector: Some(connector.clone()),
                user: Some(user.clone()),
            },
            Connector::Requeue { connector, .. } => Self {
                connector: Some(connector.clone()),
                user: None,
            },
            Connector::Unbind { user, .. } => Self {
                connector: None,
                user: Some(user.clone()),
            },
            Connector::Bind { .. }
            | Connector::Test { .. }
            | Connector::List { .. }
            | Connector::Pairings { .. }
            | Connector::Pair { .. }
            | Connector::Unpair { .. }
            | Connector::Deliveries { .. } => Self::default(),
        }
    }
}

async fn act(client: &Client, what: Connector, terminal: Terminal) -> Result<(), Failure> {
    match what {
        Connector::Bind { user, key } => {
            let bound = client.put(&of_key(&user, &key)).await?;
            terminal.result(&bound, || vec![key_line(&bound)]);
        }
        Connector::Unbind { user, key } => {
            let unbound = client.delete(&of_key(&user, &key)).await?;
            terminal.result(&unbound, || vec![format!("{key} is bound to nobody")]);
        }
        Connector::List { user: Some(user) } => keys(client, &user, terminal).await?,
        Connector::List { user: None } => connectors(client, terminal).await?,
        Connector::Pairings { connector } => pairings(client, connector, terminal).await?,
        Connector::Pair { code, user } => {
            let body = user.map_or_else(|| json!({}), |user| json!({ "user": user }));
            let paired = client.post(&of_code(&code), &body).await?;
            terminal.result(&paired, || {
                let key = text(&paired, "/key");
                vec![format!(
                    "{key} is {} from now on",
                    text(&paired, "/user_id")
                )]
            });
        }
        Connector::Unpair { code } => {
            client.delete(&of_code(&code)).await?;
            let declined = json!({ "code": code, "declined": true });
            terminal.result(&declined, || vec![format!("{code} counts no more")]);
        }
        Connector::Deliveries {
            connector,
            state,
            after,
            limit,
        } => {
            let after = after.map(|after| after.to_string());
            let filter = parameters([("state", state), ("after", after)]);
            let path = format!("{}/deliveries?limit={limit}{filter}", of(&connector));
            deliveries(&client.get(&path).await?, terminal);
        }
        Connector::Requeue {
            connector,
            delivery,
        } => {
            let delivery = segment(&delivery);
            let path = format!("{}/deliveries/{delivery}/requeue", of(&connector));
            let requeued = client.post(&path, &json!({})).await?;
            terminal.result(&requeued, || vec![delivery_line(&requeued)]);
        }
        Connector::Test {
            connector,
            text,
            chat,
            user,
        } => {
            let body = json!({ "chat": chat, "user": user, "text": text });
            test(client, &connector, &body, terminal).await?;
        }
    }
    Ok(())
}

async fn test(
    client: &Client,
    connector: &str,
    body: &Value,
    terminal: Terminal,
) -> Result<(), Failure> {
    let tested = client
        .post(&format!("{}/test", of(connector)), body)
        .await?;
    let delivery = text(&tested, "/delivery_id");
    let path = format!("{}/deliveries?limit={TEST_AMONG}", of(connector));
    let mut sent = tested.clone();
    for _ in 0..TEST_LOOKS_MAX {
        let page = client.get(&path).await?;
        let rows = list(&page, "/deliveries");
        if let Some(row) = rows
            .iter()
            .find(|row| text(row, "/delivery_id") == delivery)
        {
            sent = row.clone();
        }
        if ENDED.contains(&text(&sent, "/state")) {
            break;
        }
        tokio::time::sleep(TEST_LOOK_EVERY).await;
    }
    terminal.result(&sent, || vec![delivery_line(&sent)]);
    if text(&sent, "/state") == DELIVERED {
        return Ok(());
    }
    let trouble = trouble(&client.get("/api/connectors").await?, connector);
    Err(
        Failure::from(anyhow!(not_sent(&sent, &trouble))).advise(format!(
            "`connector deliveries {connector}` shows what becomes of it"
        )),
    )
}

/// Returns the trouble of a connector, in the host's words; empty without one.
fn trouble(listed: &Value, connector: &str) -> String {
    let mut connectors = list(listed, "/connectors").iter();
    let found = connectors.find(|found| text(found, "/name") == connector);
    found.map_or_else(String::new, |found| text(found, "/reason").to_owned())
}

/// Returns why a test message is not with its service.
fn not_sent(delivery: &Value, trouble: &str) -> String {
    let state = match text(delivery, "/state") {
        "" => "queued",
        state => state,
    };
    let reasons = [text(delivery, "/reason"), trouble];
    match reasons.into_iter().find(|reason| !reason.is_empty()) {
        Some(reason) => format!("the message is not sent, but {state}: {reason}"),
        None => format!("the message is not sent, but {state}"),
    }
}

/// Returns the path of a pairing code.
fn of_code(code: &str) -> String {
    format!("/api/pairings/{}", segment(code))
}

/// Returns the path of a connector.
fn of(connector: &str) -> String {
    format!("/api/connectors/{}", segment(connector))
}

/// Returns the path of a user's key.
fn of_key(user: &str, key: &str) -> String {
    format!("/api/users/{}/connectors/{}", segment(user), segment(key))
}

async fn connectors(client: &Client, terminal: Terminal) -> Result<(), Failure> {
    let listed = client.get("/api/connectors").await?;
    let connectors = list(&listed, "/connectors");
    terminal.result(&listed, || connectors.iter().map(line).collect());
    if connectors.is_empty() {
        terminal.notice("there are no connectors");
    }
    Ok(())
}

async fn keys(client: &Client, user: &str, terminal: Terminal) -> Result<(), Failure> {
    let path = format!("/api/users/{}/connectors", segment(user));
    let listed = client.get(&path).await?;
    let keys = list(&listed, "/connectors");
    terminal.result(&listed, || keys.iter().map(key_line).collect());
    if keys.is_empty() {
        terminal.notice("no key is bound to this user");
    }
    Ok(())
}

async fn pairings(
    client: &Client,
    connector: Option<String>,
    terminal: Terminal,
) -> Result<(), Failure> {
    let filter = parameters([("connector", connector)]);
    let listed = client
        .get(&format!("/api/pairings?limit=1000{filter}"))
        .await?;
    let pairings = list(&listed, "/pairings");
    terminal.result(&listed, || pairings.iter().map(pairing_line).collect());
    if pairings.is_empty() {
        terminal.notice("no pairing code waits to be confirmed");
    }
    Ok(())
}

fn deliveries(page: &Value, terminal: Terminal) {
    let deliveries = list(page, "/deliveries");
    terminal.result(page, || deliveries.iter().map(delivery_line).collect());
    match page.get("next_after").and_then(Value::as_u64) {
        Some(next) => terminal.notice(&format!("there are older ones: --after {next} shows them")),
        None if deliveries.is_empty() => terminal.notice("there are no such messages"),
        None => {}
    }
}

fn key_line(key: &Value) -> String {
    format!(
        "{}  {}  since {}",
        text(key, "/key"),
        text(key, "/user_id"),
        text(key, "/bound_at")
    )
}

/// The line of a connector.
fn line(connector: &Value) -> String {
    let mut parts = vec![
        format!("{:<16}", text(connector, "/name")),
        format!("{:<12}", text(connector, "/component")),
        format!("{:<12}", text(connector, "/state")),
    ];
    let received = text(connector, "/last_received_at");
    parts.extend((!received.is_empty()).then(|| format!("last arrival {received}")));
    let counts = [
        ("arrived", "/arrivals_waiting"),
        ("to be sent", "/deliveries_waiting"),
        ("unknown", "/deliveries_unknown"),
        ("dead", "/deliveries_dead"),
    ];
    for (what, pointer) in counts {
        let count = number(connector, pointer);
        parts.extend((count > 0).then(|| format!("{what} {count}")));
    }
    let reason = text(connector, "/reason");
    parts.extend((!reason.is_empty()).then(|| reason.to_owned()));
    parts.join("  ").trim_end().to_owned()
}

fn pairing_line(pairing: &Value) -> String {
    let name = match text(pairing, "/name") {
        "" => String::new(),
        name => format!(" ({name})"),
    };
    format!(
        "{}  {}:{}{name}  until {}",
        text(pairing, "/code"),
        text(pairing, "/connector"),
        text(pairing, "/target_id"),
        text(pairing, "/expires_at")
    )
}

/// The line of a message that is sent.
fn delivery_line(delivery: &Value) -> String {
    let mut parts = vec![
        text(delivery, "/delivery_id").to_owned(),
        format!("{:<9}", text(delivery, "/state")),
        format!("chat {}", text(delivery, "/chat")),
        format!(
            "{} of {}",
            text(delivery, "/cause/kind"),
            text(delivery, "/queued_at")
        ),
    ];
    let session = text(delivery, "/cause/session_id");
    parts.extend((!session.is_empty()).then(|| format!("session {session}")));
    let attempts = number(delivery, "/attempts");
    parts.extend((attempts > 0).then(|| format!("attempts {attempts}")));
    let retry = text(delivery, "/retry_at");
    parts.extend((!retry.is_empty()).then(|| format!("again at {retry}")));
    let reason = text(delivery, "/reason");
    parts.extend((!reason.is_empty()).then(|| reason.to_owned()));
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use super::{delivery_line, line, not_sent, pairing_line, trouble};
    use serde_json::json;

    #[test]
    fn a_connector_is_one_line_with_what_is_wrong_at_its_end() {
        let fine = json!({
            "name": "telegram", "component": "telegram", "state": "polling",
            "deliveries_waiting": 0, "last_received_at": "T",
        });
        assert_eq!(
            line(&fine),
            "telegram          telegram      polling       last arrival T"
        );
        let failing = json!({
            "name": "chat", "component": "slack", "state": "unauthorised",
            "deliveries_waiting": 3, "deliveries_dead": 1, "reason": "invalid_auth",
        });
        assert_eq!(
            line(&failing),
            "chat              slack         unauthorised  to be sent 3  dead 1  invalid_auth"
        );
    }

    #[test]
    fn a_pairing_code_is_told_with_its_sender() {
        let pairing = json!({
            "code": "ABCD-EFGH", "connector": "telegram", "target_id": "123", "name": "Ada",
            "expires_at": "T",
        });
        assert_eq!(
            pairing_line(&pairing),
            "ABCD-EFGH  telegram:123 (Ada)  until T"
        );
    }

    #[test]
    fn a_message_that_was_not_sent_says_why_and_when_it_is_tried_again() {
        let failed = json!({
            "delivery_id": "d", "state": "failed", "chat": "7", "attempts": 2, "retry_at": "R",
            "reason": "busy", "queued_at": "Q", "cause": { "kind": "turn", "session_id": "s" },
        });
        assert_eq!(
            delivery_line(&failed),
            "d  failed     chat 7  turn of Q  session s  attempts 2  again at R  busy"
        );
    }

    #[test]
    fn a_test_that_does_not_arrive_says_what_holds_it_up() {
        let listed = json!({ "connectors": [
            { "name": "slack", "reason": null },
            { "name": "telegram", "reason": "Unauthorized" },
        ] });
        let queued = json!({ "state": "queued", "reason": null });
        for (connector, expected) in [
            ("slack", "the message is not sent, but queued"),
            (
                "telegram",
                "the message is not sent, but queued: Unauthorized",
            ),
        ] {
            assert_eq!(not_sent(&queued, &trouble(&listed, connector)), expected);
        }
        let dead = json!({ "state": "dead", "reason": "chat not found" });
        assert_eq!(
            not_sent(&dead, "Unauthorized"),
            "the message is not sent, but dead: chat not found"
        );
    }
}
