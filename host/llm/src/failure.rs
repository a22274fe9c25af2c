//! The failures of a call: the reasons for which there is no reply.

use std::fmt;

/// The message of the peer or the network library about a failure. It is cleaned of keys and
/// control characters, and cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause(pub(crate) String);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Cause {}

/// The reason why a model does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// No connection: refused, no such name, no agreement on TLS, or not in time.
    Connect,
    /// The connection broke.
    Broken,
    /// The reply ended before its end.
    CutShort,
    /// Nothing came in time.
    FirstToken,
    /// The reply stopped half-way.
    Idle,
    /// All the time for this call is used up.
    Deadline,
    /// The provider says that it cannot now, with this status (or 0 when it said so inside a
    /// reply).
    Overloaded(u16),
    /// The provider failed so often in a row that it is left alone for a while.
    CircuitOpen,
    /// The rule file of a scripted model says so.
    Scripted,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect => f.write_str("no connection"),
            Self::Broken => f.write_str("the connection broke"),
            Self::CutShort => f.write_str("the reply ended before its end"),
            Self::FirstToken => f.write_str("nothing came in time"),
            Self::Idle => f.write_str("the reply stopped half-way"),
            Self::Deadline => f.write_str("the time for this call is used up"),
            Self::Overloaded(0) => f.write_str("the provider reported an error inside its reply"),
            Self::Overloaded(status) => write!(f, "status {status}"),
            Self::CircuitOpen => f.write_str(
                "the provider failed several times in a row and is left alone for a while",
            ),
            Self::Scripted => f.write_str("the rule file says so"),
        }
    }
}

/// The thing that a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The host's credentials, which do not count.
    Credentials,
    /// The host's account, which has nothing left or is not paid for.
    Account,
    /// The model, which is not there or not open to the account.
    Model,
    /// The one request: what it says, or how.
    Request,
    /// Unknown: neither status nor words tell.
    Unclear,
}

/// The failure of a call. Where several models were tried, this is about the one that was asked
/// for; the attempts tell the rest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The model did not answer, or not to the end. May pass.
    #[error("model `{model}` of provider `{provider}` is unavailable: {reason}")]
    Unavailable {
        /// The provider.
        provider: String,
        /// The provider's name of the model.
        model: String,
        /// The reason.
        reason: Reason,
        /// The message about it.
        #[source]
        cause: Option<Cause>,
    },
    /// The provider wants fewer calls. May pass.
    #[error("provider `{provider}` limits the rate of calls of model `{model}`")]
    RateLimited {
        /// The provider.
        provider: String,
        /// The provider's name of the model.
        model: String,
        /// Milliseconds for which it wants to be left alone, where it gave them.
        retry_after_ms: Option<u64>,
        /// Its message.
        #[source]
        cause: Option<Cause>,
    },
    /// The provider does not accept the call: a bad key, no credit, no such model, a request that
    /// it does not understand.
    #[error("provider `{provider}` refused the call of model `{model}` with status {status}")]
    Refused {
        /// The provider.
        provider: String,
        /// The provider's name of the model.
        model: String,
        /// The HTTP status; 0 when it said so inside a reply.
        status: u16,
        /// The thing that it is about.
        about: Refusal,
        /// Its message.
        #[source]
        cause: Option<Cause>,
    },
    /// Its name leads to an address that the config does not open. Nothing was sent.
    #[error(
        "provider `{provider}` is at an address that is not public; if that is meant, open it \
             in `providers.{provider}.privateAddresses`"
    )]
    Barred {
        /// The provider.
        provider: String,
        /// The address, and where it leads.
        #[source]
        cause: Option<Cause>,
    },
    /// The answer is not a reply. May pass.
    #[error(
        "model `{model}` of provider `{provider}` answered something that is not a reply: {problem}"
    )]
    Garbage {
        /// The provider.
        provider: String,
        /// The provider's name of the model.
        model: String,
        /// The problem with it.
        problem: String,
        /// A sample of it: at most 200 characters, cleaned of keys and control characters.
        sample: String,
    },
    /// The program in the model's place was cut off, and may have done a part of its work. It is
    /// not started again for the same.
    #[error(
        "the program of provider `{provider}` was cut off and may have done a part of its work: \
             {reported}{}",
        quoted(said)
    )]
    CutOff {
        /// The provider.
        provider: String,
        /// The provider's name of the model.
        model: String,
        /// The reason for its end, in the host's words.
        reported: String,
        /// Its last words, cleaned of keys and control characters, and cut; empty for none.
        said: Box<str>,
    },
    /// The program in the model's place could not be started, or reports an error.
    #[error(
        "the program of provider `{provider}` gave no reply as model `{model}`: {reported}{}",
        quoted(said)
    )]
    ProgramFailed {
        /// The provider.
        provider: String,
        /// The provider's name of the model.
        model: String,
        /// The thing that its own words are about.
        about: Refusal,
        /// The reason, in the host's words.
        reported: Box<str>,
        /// Its own words, cleaned of keys and control characters, and cut; empty for none.
        said: Box<str>,
    },
    /// The prompt does not fit the model. The same with a shorter thread may succeed.
    #[error("the prompt is too long for model `{model}` of provider `{provider}`")]
    TooLong {
        /// The provider.
        provider: String,
        /// The provider's name of the model.
        model: String,
        /// Its message.
        #[source]
        cause: Option<Cause>,
    },
    /// Another attempt would be needed, and the budget does not afford it.
    #[error("{reported}")]
    Unaffordable {
        /// A message for people that says what there is too little of.
        reported: String,
    },
    /// No such model is configured.
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
}

/// Returns the words of a program as they stand behind the host's.
pub(crate) fn quoted(said: &str) -> String {
    match said {
        "" => String::new(),
        said => format!(": {said:?}"),
    }
}

impl Failure {
    /// Returns the same without the words of a program.
    #[must_use]
    pub(crate) fn without_words(mut self) -> Self {
        if let Self::CutOff { said, .. } | Self::ProgramFailed { said, .. } = &mut self {
            *said = Box::default();
        }
        self
    }

    /// A stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } | Self::CutOff { .. } => "model-unavailable",
            Self::RateLimited { .. } => "model-rate-limited",
            Self::Refused { .. } | Self::ProgramFailed { .. } => "model-refused",
            Self::Barred { .. } => "model-barred",
            Self::Garbage { .. } => "model-garbage",
            Self::TooLong { .. } => "model-prompt-too-long",
            Self::Unaffordable { .. } => "limit-reached",
            Self::UnknownModel(_) => "model-unknown",
        }
    }

    /// Returns whether the same call may succeed later.
    #[must_use]
    pub fn retryable(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. } | Self::RateLimited { .. } | Self::Garbage { .. }
        )
    }

    /// The failure with what was said about it, in one line, for records.
    #[must_use]
    pub fn report(&self) -> String {
        match self {
            Self::Unavailable {
                cause: Some(cause), ..
            }
            | Self::RateLimited {
                cause: Some(cause), ..
            }
            | Self::Barred {
                cause: Some(cause), ..
            }
            | Self::TooLong {
                cause: Some(cause), ..
            } => format!("{self}: {cause}"),
            Self::Refused {
                provider,
                status,
                about,
                cause,
                ..
            } => {
                let said = cause.iter().map(ToString::to_string);
                let reported: Vec<String> = said.chain(remedy(provider, *about, *status)).collect();
                match reported.as_slice() {
                    [] => self.to_string(),
                    reported => format!("{self}: {}", reported.join("; ")),
                }
            }
            Self::Garbage { sample, .. } if !sample.is_empty() => format!("{self}: {sample:?}"),
            _ => self.to_string(),
        }
    }
}

/// Returns what the operator does about a refusal; none where the provider's words alone can tell.
fn remedy(provider: &str, about: Refusal, status: u16) -> Option<String> {
    match (about, status) {
        (Refusal::Credentials, _) | (Refusal::Unclear, 403) => Some(format!(
            "check the key that `apiKeyFile` or `apiKeyEnv` of `providers.{provider}` names"
        )),
        (Refusal::Account, _) => Some("add credit at the provider".to_owned()),
        (Refusal::Model, _) => Some(format!(
            "check the name with `agent-host model check`, and `providers.{provider}.baseUrl`"
        )),
        (Refusal::Unclear | Refusal::Request, _) => None,
    }
}

/// A model was asked for that is not configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownModel {
    /// The name that was asked for; none for the default, which is not set.
    pub asked: Option<String>,
    /// The aliases that there are.
    pub known: Vec<String>,
    /// The one that looks most like it.
    pub nearest: Option<String>,
}

impl fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.asked {
            Some(asked) => write!(f, "there is no model `{asked}`")?,
            None => f.write_str("no model was named and `defaultModel` is not set")?,
        }
        if let Some(nearest) = &self.nearest {
            write!(f, "; did you mean `{nearest}`?")?;
        }
        match self.known.as_slice() {
            [] => f.write_str("; no models are configured"),
            known => write!(f, "; there are: {}", known.join(", ")),
        }
    }
}

impl std::error::Error for UnknownModel {}

/// The word among some that looks most like another, if any does.
pub(crate) fn nearest<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> Option<String> {
    /// The least likeness of two words (Jaro-Winkler).
    const LIKENESS_MIN: f64 = 0.75;
    among
        .into_iter()
        .map(|known| {
            (
                strsim::jaro_winkler(&word.to_lowercase(), &known.to_lowercase()),
                known,
            )
        })
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, known)| known.to_owned())
}
