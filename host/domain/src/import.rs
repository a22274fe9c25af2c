//! Sessions of the system that this one replaces, as they are imported: one agent for each user and session type (design S0, section 9.2).
//!
//! The document is `{"format": "agent-host.sessions/1", "sessions": [...]}`; a session has the fields of the design's `Session.to_dict` and
//! a `user_id`. What else it has is ignored, so that an export of the old system is taken as it is.

use crate::agent::session::{EndStatus, PastSession};
use crate::id::{ConversationId, SessionId};
use crate::time::Timestamp;
use crate::tool::ClientAction;
use crate::user::UserId;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The format that is understood.
pub const FORMAT: &str = "agent-host.sessions/1";
/// Sessions in one document.
pub const SESSIONS_MAX: usize = 100_000;

/// Bytes of an item's id; a longer one is not kept.
const ITEM_ID_BYTES_MAX: usize = 128;

/// A document of old sessions.
#[derive(Debug, Clone, Deserialize)]
pub struct OldSessions {
    /// [`FORMAT`].
    pub format: String,
    /// Who vouched for the users of the old system, as `server.identity` names the issuer whose tokens they come with here: their sessions
    /// are then of the users whom those tokens mean. Without it their ids are taken as they are.
    pub issuer: Option<String>,
    /// The sessions, in any order.
    pub sessions: Vec<Value>,
}

/// An old session.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct OldSession {
    /// Whose it was.
    pub user_id: UserId,
    /// Its id, which it keeps.
    #[serde(alias = "id")]
    pub session_id: SessionId,
    /// Its conversation's id, which it keeps too.
    pub conversation_id: ConversationId,
    /// Its type.
    pub session_type: String,
    /// How it stood.
    pub status: OldStatus,
    /// What was asked and answered.
    #[serde(default)]
    pub items: Vec<Map<String, Value>>,
    /// When it began.
    #[serde(alias = "created_at", deserialize_with = "time")]
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, deserialize_with = "time_or_none")]
    pub completed_at: Option<Timestamp>,
    /// Why it was ended from outside.
    #[serde(default)]
    pub terminated_reason: Option<String>,
    /// What a session that goes on is opened with, such as a tutor's lesson. The old system kept it elsewhere; its time limit counts from
    /// the import.
    #[serde(default)]
    pub config: Option<Map<String, Value>>,
}

/// How an old session stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OldStatus {
    /// It had not begun.
    Pending,
    /// It went on.
    Active,
    /// It waited for its client.
    AwaitingClientAction,
    /// It had ended well.
    Completed,
    /// Its time was up.
    Expired,
    /// It was ended from outside.
    Terminated,
}

fn time<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

fn time_or_none<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    Option::<String>::deserialize(deserializer)?.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
}

/// An item of an old session.
#[derive(Debug, Clone, PartialEq)]
pub struct OldItem {
    /// Its id there, when it had one.
    pub id: Option<String>,
    /// What was asked.
    pub prompt: Value,
    /// What the client was shown, when it was a widget.
    pub client_action: Option<ClientAction>,
    /// When it was asked.
    pub asked: Option<Timestamp>,
    /// What was answered.
    pub response: Value,
    /// What was made of it.
    pub evaluation: Option<Value>,
    /// When it was answered.
    pub time: Timestamp,
}

impl OldSession {
    /// Whether it had not ended.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        matches!(self.status, OldStatus::Pending | OldStatus::Active | OldStatus::AwaitingClientAction)
    }

    /// Its items that were answered, in order.
    #[must_use]
    pub fn answered(&self) -> Vec<OldItem> {
        let item = |item: &Map<String, Value>| {
            let of = |name: &str| item.get(name).filter(|value| !value.is_null()).cloned();
            let response = of("user_response")?;
            let time = of("completed_at").and_then(|time| time.as_str()?.parse().ok()).unwrap_or(self.started_at);
            let at = |name: &str| of(name).and_then(|time| time.as_str()?.parse::<Timestamp>().ok());
            let took_ms = of("response_time_ms").and_then(|ms| ms.as_f64()).filter(|ms| *ms >= 0.0);
            let asked = at("started_at").or_else(|| took_ms.map(|ms| Timestamp(time.0.saturating_sub(ms as u64))));
            let id = of("id").and_then(|id| id.as_str().map(str::to_owned)).filter(|id| (1..=ITEM_ID_BYTES_MAX).contains(&id.len()));
            let client_action = of("client_action").and_then(|action| shown(&action));
            // What was shown by a widget that cannot be made out is kept as it is.
            let prompt = of("agent_prompt").or_else(|| of("client_action")).unwrap_or_default();
            Some(OldItem { id, prompt, client_action, asked, response, evaluation: of("evaluation"), time })
        };
        self.items.iter().filter_map(item).collect()
    }

    /// The session as an agent's history has it. One that goes on and cannot be gone on with ends now, for this reason.
    #[must_use]
    pub fn past(&self, reason: Option<String>, now: Timestamp) -> PastSession {
        let status = if self.status == OldStatus::Completed { EndStatus::Completed } else { EndStatus::Terminated };
        let told = match self.status {
            OldStatus::Completed => None,
            OldStatus::Expired => Some(crate::agent::end_session::EXPIRED.to_owned()),
            _ => reason.or_else(|| self.terminated_reason.clone()).or_else(|| Some("unknown".to_owned())),
        };
        PastSession {
            session_id: self.session_id,
            conversation_id: self.conversation_id,
            session_type: self.session_type.clone(),
            started_by: self.user_id.clone(),
            status,
            started_at: self.started_at,
            completed_at: self.completed_at.unwrap_or(now),
            terminated_reason: told,
            interactions: self.answered().len() as u64,
            summary: None,
        }
    }
}

/// Reads a document.
///
/// # Errors
/// It is of another format, too long, or a session of it makes no sense: which one, and what about it.
pub fn read(document: OldSessions) -> Result<Vec<OldSession>, String> {
    if document.format != FORMAT {
        return Err(format!("/format: it is `{}` and must be `{FORMAT}`", document.format));
    }
    if document.sessions.len() > SESSIONS_MAX {
        return Err(format!(
            "/sessions: there are {} and may be {SESSIONS_MAX}; import them in several documents",
            document.sessions.len()
        ));
    }
    let issuer = document.issuer;
    let sessions = (0_usize..).zip(document.sessions.into_iter().map(|session| vouched_for(issuer.as_deref(), session)));
    let read = sessions.map(|(at, session)| serde_json::from_value(session).map_err(|error| format!("/sessions/{at}: {error}")));
    let mut sessions = read.collect::<Result<Vec<OldSession>, String>>()?;
    sessions.sort_by_key(|session| (session.started_at, session.session_id));
    Ok(sessions)
}

/// What a client of the old system was shown.
fn shown(action: &Value) -> Option<ClientAction> {
    let text = |name: &str| action.get(name).and_then(Value::as_str).map(str::to_owned);
    let props = action.get("props").filter(|props| props.is_object()).cloned()?;
    let lock_input = action.get("lock_input").and_then(Value::as_bool).unwrap_or_default();
    let response_schema = action.get("response_schema").filter(|schema| schema.is_object()).cloned();
    Some(ClientAction { widget: text("widget_type")?, props, response_schema, lock_input })
}

/// A session of the user whom an issuer means.
fn vouched_for(issuer: Option<&str>, mut session: Value) -> Value {
    if let (Some(issuer), Some(user)) = (issuer, session.get_mut("user_id"))
        && let Some(claim) = user.as_str()
    {
        *user = Value::String(UserId::of_claim(issuer, claim).to_string());
    }
    session
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document(session: Value) -> OldSessions {
        OldSessions { format: FORMAT.to_owned(), issuer: None, sessions: vec![session] }
    }

    fn session() -> Value {
        json!({
            "user_id": "alice", "session_id": "00000000-0000-4000-8000-000000000001",
            "conversation_id": "00000000-0000-4000-8000-000000000002", "session_type": "learning", "status": "completed",
            "items": [
                { "id": "i", "sequence": 1, "agent_prompt": "1 + 1?", "user_response": { "response": 2 }, "evaluation": { "correct": true },
                  "completed_at": "2025-12-01T10:00:05+00:00" },
                { "id": "j", "sequence": 2, "agent_prompt": "2 + 2?", "user_response": null },
                { "agent_prompt": "3 + 3?", "user_response": { "index": 0 }, "response_time_ms": 42_000.0,
                  "client_action": { "tool_call_id": "c", "tool_name": "t", "widget_type": "multiple_choice", "lock_input": true,
                                     "props": { "prompt": "3 + 3?", "options": ["6", "7"] } },
                  "completed_at": "2025-12-01T10:00:50+00:00" },
            ],
            "current_item_id": null, "pending_action": null, "ui_state": {}, "started_at": "2025-12-01T10:00:00",
            "completed_at": "2025-12-01T10:01:00+00:00", "terminated_reason": null,
        })
    }

    #[test]
    fn an_old_session_is_read_as_the_old_system_wrote_it() {
        let read = read(document(session())).unwrap();
        let past = read[0].past(None, Timestamp(0));
        assert_eq!((past.status, past.terminated_reason.as_deref(), past.interactions), (EndStatus::Completed, None, 2));
        assert_eq!(past.completed_at.since_ms(past.started_at), 60_000);
        let items = read[0].answered();
        assert_eq!((items.len(), &items[0].prompt, items[0].time.since_ms(past.started_at)), (2, &json!("1 + 1?"), 5_000));
        assert_eq!((items[0].id.as_deref(), items[0].asked), (Some("i"), None));
        let shown = items[1].client_action.as_ref().unwrap();
        assert_eq!(
            (&items[1].prompt, shown.widget.as_str(), &shown.props["options"][0]),
            (&json!("3 + 3?"), "multiple_choice", &json!("6"))
        );
        assert_eq!(items[1].time.since_ms(items[1].asked.unwrap()), 42_000);
    }

    #[test]
    fn the_users_of_an_issuer_are_those_whom_its_tokens_mean() {
        let mut of_another = session();
        of_another["user_id"] = json!("auth0|5f7c8ec7");
        assert!(read(document(of_another.clone())).unwrap_err().starts_with("/sessions/0: "), "it is no id here");
        let vouched_for = OldSessions { issuer: Some("https://id.example".to_owned()), ..document(of_another) };
        assert_eq!(read(vouched_for).unwrap()[0].user_id, UserId::of_claim("https://id.example", "auth0|5f7c8ec7"));
    }

    #[test]
    fn one_that_makes_no_sense_is_named_with_what_is_wrong() {
        let mut unknown = session();
        unknown["status"] = json!("dancing");
        assert!(read(document(unknown)).unwrap_err().starts_with("/sessions/0: unknown variant `dancing`"));
        let mut nobody = session();
        nobody["user_id"] = json!("a b");
        assert!(read(document(nobody)).unwrap_err().contains("`a b` is no user id"));
        let other = OldSessions { format: "x".into(), issuer: None, sessions: vec![] };
        assert_eq!(read(other).unwrap_err(), "/format: it is `x` and must be `agent-host.sessions/1`");
    }

    #[test]
    fn an_expired_or_terminated_session_says_why_it_ended() {
        for (status, reason) in [("expired", "expired"), ("terminated", "left")] {
            let mut old = session();
            old["status"] = json!(status);
            old["terminated_reason"] = json!("left");
            let read = read(document(old)).unwrap();
            assert_eq!(read[0].past(None, Timestamp(0)).terminated_reason.as_deref(), Some(reason));
        }
    }
}
