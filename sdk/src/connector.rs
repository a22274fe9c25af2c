//! Connectors: the trait of the `connector-plugin` world and the macro that exports it.

pub use crate::bindings::connector_plugin::exports::agent_host::plugin::connector::{
    Attachment, Batch, Choice, Incoming, IncomingCall, Intake, Moved, Quotation, QuotationKind,
    Said, Undelivered,
};

use crate::http::{HttpError, Response};
use crate::tool::schema_of;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The facts that the host knows of a connector component.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectorDescription {
    /// A short name: 1 to 64 of `a-z`, `0-9`, `-` and `_`.
    pub id: String,
    /// The service that it connects to, in a sentence.
    pub summary: String,
    /// JSON Schema (2020-12) of its configuration.
    pub configuration: Value,
    /// The ways in.
    pub intake: Vec<Intake>,
    /// The longest text that one outgoing message can carry, in UTF-16 code units.
    pub text_limit: u32,
    /// Number of buttons that a question may have; 0 where the service has none.
    pub buttons_max: u32,
    /// True if a message that was sent can be edited.
    pub edits: bool,
    /// True if it can show that somebody is typing.
    pub typing: bool,
    /// True if the service takes an idempotency key, so that sending the same message again sends
    /// it once.
    pub idempotent: bool,
}

impl ConnectorDescription {
    /// The description of a connector that sends plain text of 4,000 units.
    pub fn new(
        id: impl Into<String>,
        summary: impl Into<String>,
        intake: impl IntoIterator<Item = Intake>,
    ) -> Self {
        Self {
            id: id.into(),
            summary: summary.into(),
            configuration: json!({ "type": "object", "additionalProperties": false }),
            intake: intake.into_iter().collect(),
            text_limit: 4_000,
            buttons_max: 0,
            edits: false,
            typing: false,
            idempotent: false,
        }
    }

    /// Says that the configuration is this type, in JSON.
    #[must_use]
    pub fn configured_by<C: JsonSchema>(mut self) -> Self {
        self.configuration = schema_of::<C>();
        self
    }
}

impl Incoming {
    /// Creates a message of a chat with its sender alone, without files. The other fields are
    /// empty: `Incoming { sent_ms, ..Incoming::new(…) }` sets those that the service gives, and
    /// goes on compiling when there are more.
    pub fn new(
        id: impl Into<String>,
        sender: impl Into<String>,
        chat: impl Into<String>,
        said: Said,
    ) -> Self {
        Self {
            id: id.into(),
            sender: sender.into(),
            sender_name: None,
            group: None,
            chat: chat.into(),
            said,
            quotations: Vec::new(),
            attachments: Vec::new(),
            sent_ms: 0,
            acknowledge: None,
            overheard: false,
            replies_to: None,
        }
    }
}

/// The content to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Text in Markdown (CommonMark), within the text limit. The component translates it into what
    /// the service shows.
    Text(String),
    /// A question with choices, as many as there may be buttons.
    Question {
        /// The question, in Markdown.
        text: String,
        /// The choices.
        choices: Vec<Choice>,
    },
    /// Shows that somebody is typing. Lost without harm.
    Typing,
    /// Another text for a message that was sent before. One that changes nothing succeeds: where
    /// the answer to the last edit of a reply was lost, the host makes it again. An edit that is
    /// rejected means that the message is gone, and the host sends the text as a message of its own
    /// unless an edit before may have been made.
    Edit {
        /// The service's id of it.
        id: String,
        /// The text, in Markdown.
        text: String,
    },
    /// Tells the service that a message was taken: the handle of
    /// [`Incoming::acknowledge`](crate::Incoming::acknowledge). It comes soon after the
    /// message is stored, once or not at all, and is stopped after 5 seconds. Lost without harm.
    Acknowledgement(String),
}

/// One outgoing message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// The chat that it goes to, as [`Incoming::chat`](crate::Incoming::chat) said.
    pub chat: String,
    /// The content of it.
    pub body: Body,
    /// The same for every attempt.
    pub idempotency_key: String,
}

/// The reason why the service could not be used. An operator is told it, and so is the user whose
/// reply is not delivered: it has no secrets and no names of people in it. A panic is a bug in the
/// connector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectorError {
    /// It can never be done, such as a message into a chat that is gone.
    #[error("{0}")]
    Rejected(String),
    /// The credentials do not count (any more). An operator has to look.
    #[error("not authorised: {0}")]
    Unauthorised(String),
    /// Nothing was done. The same may be tried again after so many milliseconds. The reason is the
    /// last warning of the call's log: [`Self::later`] writes one.
    #[error("busy, try again in {0} ms")]
    RetryLater(u32),
    /// It cannot be told whether it was done.
    #[error("{0}")]
    Unknown(String),
    /// Nothing was done: the chat has another id now. The host follows, and sends the message there
    /// at once. Of [`Connector::send`] only.
    #[error("the chat is `{chat}` now")]
    Moved {
        /// The chat, as [`Incoming::chat`] will say.
        chat: String,
        /// The one who has another id.
        moved: Moved,
    },
}

impl ConnectorError {
    /// The error of something that was not done and may be tried again after so many milliseconds,
    /// with the reason in the log: whoever is told of the error is told that warning.
    #[must_use]
    pub fn later(reason: &str, retry_ms: u32) -> Self {
        crate::log::warn(reason);
        Self::RetryLater(retry_ms)
    }

    /// The error of a request that only reads: whatever happened, nothing was done.
    #[must_use]
    pub fn of_reading(error: &HttpError, retry_ms: u32) -> Self {
        Self::later(&error.to_string(), retry_ms)
    }

    /// The error of a request that does something. A request that was never sent did nothing, and
    /// may be made again after so many milliseconds or can never be made; of any other it cannot be
    /// told.
    #[must_use]
    pub fn of_acting(error: &HttpError, retry_ms: u32) -> Self {
        match error {
            HttpError::Busy | HttpError::Unreachable { .. } => {
                Self::later(&error.to_string(), retry_ms)
            }
            HttpError::InvalidUrl { .. }
            | HttpError::InvalidHeader { .. }
            | HttpError::Unwritable { .. }
            | HttpError::Refused { .. }
            | HttpError::RequestTooLarge { .. } => Self::Rejected(error.to_string()),
            _ => Self::Unknown(error.to_string()),
        }
    }

    /// Returns the bytes of a file from the answer with which a service gives it.
    ///
    /// # Errors
    /// It gives none. A server that has trouble may give it later: it is asked again after so many
    /// milliseconds.
    pub fn file_of(answer: &Response, retry_ms: u32) -> Result<Vec<u8>, Self> {
        let status = answer.status();
        let reported = format!("the file was answered with {status}");
        match status {
            200..=299 => Ok(answer.bytes().to_vec()),
            408 | 429 | 500..=599 => Err(Self::later(&reported, retry_ms)),
            _ => Err(Self::Rejected(reported)),
        }
    }
}

/// A connector: translates between a messaging service and the host, in both directions. Each call
/// has a fresh instance, HTTP only as granted, and secrets only as placeholders.
pub trait Connector {
    /// Its description. Must not depend on anything but the code.
    fn describe(&self) -> ConnectorDescription;

    /// Reads one call of the service, whose signature the host has verified. It does nothing to the
    /// service: nothing is stored yet. A service that waits to be told of a message is told by
    /// [`Incoming::acknowledge`].
    ///
    /// # Errors
    /// It makes no sense.
    fn receive(
        &self,
        configuration: &Value,
        incoming_call: &IncomingCall,
    ) -> Result<Batch, ConnectorError>;

    /// Asks the service for news, and does nothing else to it. The default is for a connector whose
    /// description does not have [`Intake::Polling`].
    ///
    /// # Errors
    /// The service could not be asked.
    fn poll(&self, _configuration: &Value, _cursor: Option<&str>) -> Result<Batch, ConnectorError> {
        let none = format!("{} is not polled: it calls", self.describe().id);
        Err(ConnectorError::Rejected(none))
    }

    /// Delivers one message and returns the service's id of it; empty where there is none, as of
    /// [`Body::Typing`] and [`Body::Acknowledgement`].
    ///
    /// # Errors
    /// It was not delivered, or it cannot be told.
    fn send(
        &self,
        configuration: &Value,
        message: &OutgoingMessage,
    ) -> Result<String, ConnectorError>;

    /// Gets the bytes of a file that came with a message: 8 MiB at most. The default has no files.
    ///
    /// # Errors
    /// There is no such file.
    fn fetch(&self, _configuration: &Value, handle: &str) -> Result<Vec<u8>, ConnectorError> {
        let none = format!("there is no file `{handle}`: this connector has no files");
        Err(ConnectorError::Rejected(none))
    }
}

/// Reads a connector's configuration as the type that its description named.
///
/// # Errors
/// [`ConnectorError::Rejected`] if it does not fit the type, which is a fault of its schema.
pub fn configured<C: DeserializeOwned>(configuration: &Value) -> Result<C, ConnectorError> {
    serde_json::from_value(configuration.clone())
        .map_err(|error| ConnectorError::Rejected(format!("`configuration`: {error}")))
}

/// Makes this crate a connector component: `export_connector!(Matrix);` with any expression that
/// yields a [`Connector`]. Once per crate. The component carries a [manifest](crate::manifest) with
/// the version, the authors, the licence and the homepage of the crate's `Cargo.toml`, and with the
/// grants that it would like:
/// `export_connector!(Matrix, wants: [host_by("matrix.example.com", "GET POST", "talks")]);`, by
/// the names of the functions of [`Want`](crate::manifest::Want).
///
/// The crate needs `crate-type = ["cdylib", "rlib"]` and is built for `wasm32-wasip2`; for every
/// other target the macro only checks the type, so that `cargo test` and `cargo clippy` work as in
/// any crate.
#[macro_export]
macro_rules! export_connector {
    ($connector:expr $(,)?) => {
        $crate::export_connector!($connector, wants: []);
    };
    ($connector:expr, wants: [$($wants:tt)*] $(,)?) => {
        $crate::write_manifest!($($wants)*);
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct ConnectorPlugin;
            impl $crate::wire::ConnectorExports for ConnectorPlugin {
                fn describe() -> $crate::wire::WireConnectorDescription {
                    $crate::wire::describe_connector(&$connector)
                }
                fn receive(
                    configuration: ::std::string::String,
                    incoming_call: $crate::wire::WireIncomingCall,
                ) -> $crate::wire::WireBatch {
                    $crate::wire::receive(&$connector, &configuration, &incoming_call)
                }
                fn poll(
                    configuration: ::std::string::String,
                    cursor: ::std::option::Option<::std::string::String>,
                ) -> $crate::wire::WireBatch {
                    $crate::wire::poll(&$connector, &configuration, cursor.as_deref())
                }
                fn send(
                    configuration: ::std::string::String,
                    message: $crate::wire::WireOutgoing,
                ) -> $crate::wire::WireSent {
                    $crate::wire::send(&$connector, &configuration, message)
                }
                fn fetch(
                    configuration: ::std::string::String,
                    handle: ::std::string::String,
                ) -> $crate::wire::WireFetched {
                    $crate::wire::fetch(&$connector, &configuration, &handle)
                }
            }
            $crate::bindings::connector_plugin::export_connector_plugin!(
                ConnectorPlugin with_types_in $crate::bindings::connector_plugin
            );
        };
        #[cfg(not(target_family = "wasm"))]
        const _: fn() = || {
            fn is_a_connector(_: &impl $crate::Connector) {}
            is_a_connector(&$connector);
        };
    };
}
