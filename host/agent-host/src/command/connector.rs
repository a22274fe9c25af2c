//! `connector list`, the keys of users (`bind`, `unbind`), pairing codes (`pairings`, `pair`,
//! `unpair`) and what is sent (`outbound-messages`, `requeue`, `test`).

use crate::answer::{Answer, OLDER, Row, lines, list, text};
use crate::cli::Connector;
use crate::client::{Client, code_of, parameters, segment};
use crate::failure::Failure;
use anyhow::anyhow;
use domain::error_code::ErrorCode;
use serde_json::{Value, json};
use std::time::Duration;

/// The state of a message that its service took.
const DELIVERED: &str = "delivered";
/// The states in which nothing becomes of a message by itself.
const ENDED: [&str; 3] = [DELIVERED, "dead", "unknown"];
/// Time between two polls for what became of a test message.
const TEST_POLL_EVERY: Duration = Duration::from_millis(250);
/// Looks for what became of a test message: ten seconds.
const TEST_POLLS_MAX: u32 = 40;
/// Number of the newest messages among which a test message is looked for.
const TEST_AMONG: u32 = 100;

/// Runs the command.
pub(super) async fn run(client: &Client, what: Connector) -> Result<Answer, Failure> {
    let at = Named::from(&what);
    let acted = act(client, what).await;
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
            (Some(ErrorCode::ConnectorNotFound), ..) => {
                "`connector list` shows those that there are".to_owned()
            }
            (Some(ErrorCode::ConnectorKeyNotFound), Some(connector), Some(user)) => format!(
                "`connector bind {user} {connector}:ID` with the id that the service has for them"
            ),
            (Some(ErrorCode::ConnectorKeyNotFound), None, Some(user)) => {
                format!("`connector list {user}` shows the user's keys")
            }
            (Some(ErrorCode::PairingNotFound), ..) => {
                "`connector pairings` shows those that there are".to_owned()
            }
            (
                Some(ErrorCode::OutboundMessageNotFound | ErrorCode::InvalidId),
                Some(connector),
                None,
            ) => {
                format!("`connector outbound-messages {connector}` shows those that there are")
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
            _ => Self::default(),
        }
    }
}

async fn act(client: &Client, what: Connector) -> Result<Answer, Failure> {
    Ok(match what {
        Connector::Bind { user, key } => {
            Answer::row(client.put(&of_key(&user, &key)).await?, key_row)
        }
        Connector::Unbind { user, key } => {
            let unbound = client.delete(&of_key(&user, &key)).await?;
            Answer::line(unbound, format!("{key} is bound to nobody"))
        }
        Connector::List { user } => listed(client, user.as_deref()).await?,
        Connector::Pairings { connector } => {
            let filter = parameters([("connector", connector)]);
            let path = format!("/api/pairings?limit=1000{filter}");
            let nothing = "no pairing code waits to be confirmed";
            Answer::list(client.get(&path).await?, "/pairings", pairing_row, nothing)
        }
        Connector::Pair { code, user } => {
            let body = user.map_or_else(|| json!({}), |user| json!({ "user": user }));
            let paired = client.post(&of_code(&code), &body).await?;
            Answer::filled(paired, "{/key} is {/user_id} from now on")
        }
        Connector::Unpair { code } => {
            client.delete(&of_code(&code)).await?;
            let declined = json!({ "code": code, "declined": true });
            Answer::line(declined, format!("{code} counts no more"))
        }
        Connector::OutboundMessages {
            connector,
            state,
            after,
            limit,
        } => {
            let after = after.map(|after| after.to_string());
            let filter = parameters([("state", state), ("after", after)]);
            let path = format!("{}/outbound-messages?limit={limit}{filter}", of(&connector));
            let page = client.get(&path).await?;
            let older = lines(&page, &[("/next_after", OLDER)]);
            Answer::list(
                page,
                "/outbound_messages",
                outbound_message_row,
                "there are no such messages",
            )
            .notice(older)
        }
        Connector::Requeue {
            connector,
            outbound_message,
        } => {
            let outbound_message = segment(&outbound_message);
            let path = format!(
                "{}/outbound-messages/{outbound_message}/requeue",
                of(&connector)
            );
            Answer::row(client.post(&path, &json!({})).await?, outbound_message_row)
        }
        Connector::Test {
            connector,
            text,
            chat,
            user,
        } => {
            let body = json!({ "chat": chat, "user": user, "text": text });
            test(client, &connector, &body).await?
        }
    })
}

/// Lists the connectors, or the keys of a user.
async fn listed(client: &Client, user: Option<&str>) -> Result<Answer, Failure> {
    let Some(user) = user else {
        let listed = client.get("/api/connectors").await?;
        return Ok(Answer::list(
            listed,
            "/connectors",
            row,
            "there are no connectors",
        ));
    };
    let path = format!("/api/users/{}/connectors", segment(user));
    let nothing = "no key is bound to this user";
    Ok(Answer::list(
        client.get(&path).await?,
        "/connectors",
        key_row,
        nothing,
    ))
}

async fn test(client: &Client, connector: &str, body: &Value) -> Result<Answer, Failure> {
    let path = format!("{}/test", of(connector));
    let mut sent = client.post(&path, body).await?;
    let outbound_message = text(&sent, "/outbound_message_id").to_owned();
    let path = format!("{}/outbound-messages?limit={TEST_AMONG}", of(connector));
    for _ in 0..TEST_POLLS_MAX {
        let page = client.get(&path).await?;
        let mut rows = list(&page, "/outbound_messages").iter();
        if let Some(row) = rows.find(|row| text(row, "/outbound_message_id") == outbound_message) {
            sent = row.clone();
        }
        if ENDED.contains(&text(&sent, "/state")) {
            break;
        }
        tokio::time::sleep(TEST_POLL_EVERY).await;
    }
    if text(&sent, "/state") == DELIVERED {
        return Ok(Answer::row(sent, outbound_message_row));
    }
    let trouble = trouble(&client.get("/api/connectors").await?, connector);
    let advice = format!("`connector outbound-messages {connector}` shows what becomes of it");
    let failure = Failure::from(anyhow!(not_sent(&sent, &trouble))).advise(advice);
    Ok(Answer::row(sent, outbound_message_row).failing(failure))
}

/// Returns the trouble of a connector, in the host's words; empty without one.
fn trouble(listed: &Value, connector: &str) -> String {
    let mut connectors = list(listed, "/connectors").iter();
    let found = connectors.find(|found| text(found, "/name") == connector);
    found.map_or_else(String::new, |found| text(found, "/reason").to_owned())
}

/// Returns why a test message is not with its service.
fn not_sent(outbound_message: &Value, trouble: &str) -> String {
    let state = match text(outbound_message, "/state") {
        "" => "queued",
        state => state,
    };
    let reasons = [text(outbound_message, "/reason"), trouble];
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

fn key_row(key: &Value) -> Row {
    Row::of(key, &["{/key}", "{/user_id}", "since {/bound_at}"], &[])
}

fn row(connector: &Value) -> Row {
    let notes = [
        "last inbound message {/last_received_at}",
        "inbound waiting {/inbound_messages_waiting}",
        "to be sent {/outbound_messages_waiting}",
        "unknown {/outbound_messages_unknown}",
        "dead {/outbound_messages_dead}",
        "{/reason}",
    ];
    Row::of(connector, &["{/name}", "{/component}", "{/state}"], &notes)
}

fn pairing_row(pairing: &Value) -> Row {
    let sender = "{/connector}:{/target_id}[[ ({/name})]]";
    Row::of(pairing, &["{/code}", sender, "until {/expires_at}"], &[])
}

/// The row of a message that is sent.
fn outbound_message_row(outbound_message: &Value) -> Row {
    let cells = [
        "{/outbound_message_id}",
        "{/state}",
        "chat {/chat}",
        "{/cause/kind} of {/queued_at}",
    ];
    let notes = [
        "session {/cause/session_id}",
        "attempts {/attempts}",
        "again at {/retry_at}",
        "{/reason}",
    ];
    Row::of(outbound_message, &cells, &notes)
}

#[cfg(test)]
mod tests {
    use super::{not_sent, outbound_message_row, pairing_row, row, trouble};
    use serde_json::json;

    #[test]
    fn a_connector_is_one_line_with_what_is_wrong_at_its_end() {
        let fine = json!({
            "name": "telegram", "component": "telegram", "state": "polling",
            "outbound_messages_waiting": 0, "last_received_at": "T",
        });
        assert_eq!(
            row(&fine).line(),
            "telegram  telegram  polling  last inbound message T"
        );
        let failing = json!({
            "name": "chat", "component": "slack", "state": "unauthorised",
            "outbound_messages_waiting": 3, "outbound_messages_dead": 1, "reason": "invalid_auth",
        });
        assert_eq!(
            row(&failing).line(),
            "chat  slack  unauthorised  to be sent 3  dead 1  invalid_auth"
        );
    }

    #[test]
    fn a_pairing_code_is_told_with_its_sender() {
        let pairing = json!({
            "code": "ABCD-EFGH", "connector": "telegram", "target_id": "123", "name": "Ada",
            "expires_at": "T",
        });
        assert_eq!(
            pairing_row(&pairing).line(),
            "ABCD-EFGH  telegram:123 (Ada)  until T"
        );
    }

    #[test]
    fn a_message_that_was_not_sent_says_why_and_when_it_is_tried_again() {
        let failed = json!({
            "outbound_message_id": "d", "state": "failed", "chat": "7", "attempts": 2, "retry_at": "R",
            "reason": "busy", "queued_at": "Q", "cause": { "kind": "turn", "session_id": "s" },
        });
        assert_eq!(
            outbound_message_row(&failed).line(),
            "d  failed  chat 7  turn of Q  session s  attempts 2  again at R  busy"
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
