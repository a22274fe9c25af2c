//! Calls of the Bot API, and what their failures mean.

use crate::Configuration;
use crate::incoming::Bot;
use agent_host_sdk::http::{Request, Response, placeholder};
use agent_host_sdk::{ConnectorError, Moved};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// The time that the server has to answer, besides that of a long poll.
const PATIENCE: Duration = Duration::from_secs(8);
/// Time after which a server that failed is asked again, in milliseconds.
const RETRY_MS: u32 = 5_000;
/// Bytes of a file.
const FILE_BYTES_MAX: usize = 8 << 20;

/// The Bot API of one bot.
pub(crate) struct Api {
    configuration: Configuration,
}

/// An answer of the server.
#[derive(Debug, Deserialize)]
struct Answer {
    ok: bool,
    #[serde(default)]
    result: Value,
    // Servers that stand in for Telegram's say null where it says nothing.
    description: Option<String>,
    parameters: Option<Parameters>,
}

#[derive(Debug, Default, Deserialize)]
struct Parameters {
    /// Seconds after which the bot may go on.
    retry_after: Option<u32>,
    /// The id that the group has now.
    migrate_to_chat_id: Option<i64>,
}

/// The reason why the server did not do what was asked.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The request is wrong: the server's words.
    Wrong(String),
    /// The group has this id now.
    Migrated(i64),
    /// Anything else.
    Other(ConnectorError),
}

impl Refused {
    /// The error of what was to be done in a chat.
    pub(crate) fn in_chat(self, chat: &str) -> ConnectorError {
        let Self::Migrated(to) = self else {
            return self.into();
        };
        let moved = Moved {
            from: chat.split('/').next().unwrap_or(chat).to_owned(),
            to: to.to_string(),
            is_group: true,
        };
        // A group without topics has become one that has none yet.
        ConnectorError::Moved {
            chat: to.to_string(),
            moved,
        }
    }
}

impl From<Refused> for ConnectorError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Wrong(words) => Self::Rejected(words),
            Refused::Migrated(to) => Self::Rejected(format!("the group has the id {to} now")),
            Refused::Other(error) => error,
        }
    }
}

impl Api {
    pub(crate) fn new(configuration: Configuration) -> Self {
        Self { configuration }
    }

    /// Gets who the bot is.
    pub(crate) fn bot(&self) -> Result<Bot, ConnectorError> {
        let found = self.read("getMe", &json!({}), 0)?;
        let id = found["id"].as_i64();
        let username = found["username"].as_str();
        match (id, username) {
            (Some(id), Some(username)) => Ok(Bot {
                id,
                username: username.to_owned(),
            }),
            _ => Err(ConnectorError::later(
                "the server does not say who the bot is",
                RETRY_MS,
            )),
        }
    }

    /// Asks for something that changes nothing, whatever becomes of the answer.
    pub(crate) fn read(
        &self,
        method: &str,
        asked: &Value,
        wait_s: u32,
    ) -> Result<Value, ConnectorError> {
        let patience = PATIENCE + Duration::from_secs(u64::from(wait_s));
        let sent = self.request(method).json(asked).timeout(patience).send();
        match sent {
            Ok(response) => match result(&response) {
                // A question that changes nothing may be asked again.
                Err(Refused::Other(ConnectorError::Unknown(reason))) => {
                    Err(ConnectorError::later(&reason, RETRY_MS))
                }
                result => result.map_err(ConnectorError::from),
            },
            Err(error) => Err(ConnectorError::of_reading(&error, RETRY_MS)),
        }
    }

    /// Has something done, once.
    pub(crate) fn act(&self, method: &str, asked: &Value) -> Result<Value, Refused> {
        let sent = self.request(method).json(asked).timeout(PATIENCE).send();
        match sent {
            Ok(response) => result(&response),
            Err(error) => Err(Refused::Other(ConnectorError::of_acting(&error, RETRY_MS))),
        }
    }

    /// Gets the bytes of a file.
    pub(crate) fn file(&self, id: &str) -> Result<Vec<u8>, ConnectorError> {
        let found = self.read("getFile", &json!({ "file_id": id }), 0)?;
        let path = found.get("file_path").and_then(Value::as_str);
        let path = path.ok_or_else(|| ConnectorError::Rejected("the file is gone".to_owned()))?;
        let Configuration { server, secret, .. } = &self.configuration;
        let response = Request::get(format!("{server}/file/bot{}/{path}", placeholder(secret)))
            .timeout(PATIENCE)
            .body_bytes_max(FILE_BYTES_MAX)
            .send()
            .map_err(|error| ConnectorError::of_reading(&error, RETRY_MS))?;
        ConnectorError::file_of(&response, RETRY_MS)
    }

    fn request(&self, method: &str) -> Request {
        let Configuration { server, secret, .. } = &self.configuration;
        Request::post(format!("{server}/bot{}/{method}", placeholder(secret)))
    }
}

/// Reads an answer: its result, or why there is none.
fn result(response: &Response) -> Result<Value, Refused> {
    let status = response.status();
    let reported = format!("the server answered {status}");
    let answer: Option<Answer> = response.json().ok();
    if let Some(answer) = answer {
        if answer.ok {
            return Ok(answer.result);
        }
        // With an answer of its own the service says that it did nothing.
        let description = answer.description.unwrap_or(reported);
        let parameters = answer.parameters.unwrap_or_default();
        if let Some(to) = parameters.migrate_to_chat_id {
            return Err(Refused::Migrated(to));
        }
        let retry_after = parameters.retry_after;
        return Err(match (status, retry_after) {
            (_, Some(seconds)) => {
                let retry_ms = seconds.saturating_mul(1_000);
                Refused::Other(ConnectorError::later(&description, retry_ms))
            }
            (401 | 404, _) => Refused::Other(ConnectorError::Unauthorised(description)),
            (409 | 429 | 500..=599, _) => {
                Refused::Other(ConnectorError::later(&description, RETRY_MS))
            }
            _ => Refused::Wrong(description),
        });
    }
    Err(Refused::Other(match status {
        401 | 404 => ConnectorError::Unauthorised(reported),
        429 | 503 => ConnectorError::later(&reported, RETRY_MS),
        _ => ConnectorError::Unknown(format!("the server answered {status} without a result")),
    }))
}
