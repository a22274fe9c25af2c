//! Errors as servers report them: under any status, in any shape, with codes and words of their
//! own.

use super::overflow;
use crate::failure::Refusal;
use crate::retry::pause_ms;
use regex::RegexSet;
use serde_json::Value;
use std::sync::LazyLock;

/// Levels of a report that are looked at.
const DEPTH_MAX: u32 = 8;

/// Codes of an account that has nothing left or is closed: no pause helps.
const QUOTA: [&str; 10] = [
    "insufficient_quota",
    "exceeded_current_quota_error",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
    "insufficient_balance",
    "insufficient_user_quota",
    "arrearage",
    "account_deactivated",
    "organization_restricted",
];
/// Words of such an account, in small letters.
const QUOTA_WORDS: [&str; 12] = [
    "insufficient balance",
    "insufficient credit",
    "credit balance",
    "out of credits",
    "available credits",
    "spending limit",
    "api usage limits",
    "key limit exceeded",
    "organization has been disabled",
    "account is not active",
    "余额不足",
    "欠费",
];
/// Codes of credentials that do not count.
const CREDENTIALS: [&str; 6] = [
    "authentication_error",
    "invalid_authentication_error",
    "invalid_api_key",
    "api_key_invalid",
    "unauthenticated",
    "unauthorized",
];
/// Codes of a model that is not there.
const MODEL: [&str; 5] = [
    "model_not_found",
    "not_found_error",
    "invalid_model",
    "model_not_available",
    "model_decommissioned",
];
/// Words of credentials that do not count, in small letters.
static CREDENTIALS_WORDS: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    RegexSet::new([
        r"(invalid|incorrect|wrong|unknown|missing|expired|revoked|disabled|no|bad) (api[ -]?key|(access|auth[a-z]*|oauth) token|credentials?)",
        r"(api[ -]?key|(access|auth[a-z]*|oauth) token|credentials?)[^.\n]{0,20} (not valid|invalid|incorrect|missing|expired|revoked|disabled|leaked|not authorized|required)",
        r"not authenticated|unauthenticated|unauthorized|authentication (failed|error|required)",
        r"not logged in|/login\b",
    ])
    .ok()
});
/// Words of a model that is not there, in small letters.
static MODEL_WORDS: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    RegexSet::new([
        r"model[^.\n]{0,80} ((does )?not exist|not found|not available|decommissioned)",
        r"not a valid model|(invalid|unknown|no such) model\b",
    ])
    .ok()
});
/// Codes and words of what a request says, and of what it asks of a model, in small letters.
static REQUEST_WORDS: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    RegexSet::new([
        r"moderation|flagged|content[ _-]?(policy|filter|management)|guardrail",
        r"safety|usage polic|harmful",
        r"no endpoints found that",
    ])
    .ok()
});
/// Codes of a server that could not read what its model wrote. Another try may be better.
const GARBLED: [&str; 2] = ["tool_use_failed", "json_validate_failed"];
/// Codes of a server that wants fewer calls.
const RATE: [&str; 7] = [
    "rate_limit_error",
    "rate_limit_exceeded",
    "rate_limit_reached_error",
    "resource_exhausted",
    "too_many_requests",
    "throttling",
    "throttlingexception",
];
/// Codes of a server that cannot now.
const OVERLOADED: [&str; 10] = [
    "overloaded_error",
    "engine_overloaded_error",
    "overloaded",
    "server_error",
    "internal_server_error",
    "internal_error",
    "unavailable",
    "service_unavailable",
    "timeout_error",
    "deadline_exceeded",
];
/// Codes of a server that does not take the request.
const REFUSED: [&str; 13] = [
    "invalid_request_error",
    "invalid_argument",
    "badrequesterror",
    "authentication_error",
    "invalid_authentication_error",
    "invalid_api_key",
    "unauthenticated",
    "permission_error",
    "permission_denied",
    "not_found_error",
    "model_not_found",
    "not_found",
    "unsupported_parameter",
];

/// The meaning of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The prompt does not fit the model.
    TooLong,
    /// The server wants fewer calls.
    RateLimited,
    /// The server cannot now.
    Overloaded,
    /// The server does not take the request, nor will it later.
    Refused(Refusal),
    /// The server could not read what its model wrote.
    Garbled,
}

/// A server's report of an error.
#[derive(Debug, Default)]
pub(crate) struct Problem {
    /// Its codes and types, in small letters.
    codes: Vec<String>,
    /// Its words.
    words: Vec<String>,
    /// The HTTP status that it names.
    pub(crate) status: Option<u16>,
    /// The milliseconds for which it wants to be left alone, where it has a field for them.
    pub(crate) pause_ms: Option<u64>,
}

impl Problem {
    /// Reads the body of an answer.
    pub(crate) fn of_body(body: &str) -> Self {
        match serde_json::from_str::<Value>(body.trim_start_matches('\u{feff}')) {
            Ok(value) => Self::of(&value),
            Err(_) => Self {
                words: vec![body.to_owned()],
                ..Self::default()
            },
        }
    }

    /// Reads a report, or what it stands in.
    pub(crate) fn of(value: &Value) -> Self {
        let mut problem = Self::default();
        problem.take(value, DEPTH_MAX);
        problem
    }

    fn take(&mut self, value: &Value, depth: u32) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        match value {
            Value::String(text) => match serde_json::from_str::<Value>(text) {
                // A report of the server behind, as text.
                Ok(inner @ (Value::Object(_) | Value::Array(_))) => self.take(&inner, depth),
                Ok(_) | Err(_) => self.words.push(text.clone()),
            },
            Value::Array(items) => items.iter().for_each(|item| self.take(item, depth)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    match name.to_ascii_lowercase().as_str() {
                        "code" | "type" | "status" | "status_code" | "error_type"
                        | "error_code" => self.take_code(value),
                        "error" | "errors" | "message" | "msg" | "detail" | "details"
                        | "error_message" | "error_msg" | "status_msg" | "base_resp"
                        | "metadata" | "raw" | "description" | "title" => self.take(value, depth),
                        "retrydelay" | "retry_delay" => {
                            self.pause_ms = value.as_str().and_then(pause_ms);
                        }
                        // What was sent may stand in the others.
                        _ => {}
                    }
                }
            }
            Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }

    fn take_code(&mut self, value: &Value) {
        let code = match value {
            Value::String(code) => code.to_lowercase(),
            Value::Number(code) => code.to_string(),
            Value::Array(_) | Value::Object(_) | Value::Bool(_) | Value::Null => return,
        };
        match code.parse() {
            Ok(status @ 400..=599) => self.status = self.status.or(Some(status)),
            Ok(_) | Err(_) => self.codes.push(code),
        }
    }

    /// Returns its words for people; none if it has none.
    pub(crate) fn message(&self) -> Option<&str> {
        self.words
            .iter()
            .map(String::as_str)
            .find(|words| !words.trim().is_empty())
    }

    /// Returns what it means under an HTTP status; 0 for an error inside a reply.
    pub(crate) fn kind(&self, status: u16) -> Kind {
        let words = self.small_words();
        let refused = || Kind::Refused(self.refusal(status, &words));
        if self.is_of_account(&words) {
            return refused();
        }
        if self.has(&GARBLED) {
            return Kind::Garbled;
        }
        if overflow::is_reported(status, &self.codes, &words) {
            return Kind::TooLong;
        }
        match status {
            429 => Kind::RateLimited,
            408 | 409 | 425 | 498 | 501.. => Kind::Overloaded,
            _ if self.has(&RATE) => Kind::RateLimited,
            401..=404 => refused(),
            _ if self.has(&OVERLOADED) => Kind::Overloaded,
            _ if self.has(&REFUSED) => refused(),
            0 | 500 => Kind::Overloaded,
            _ => refused(),
        }
    }

    /// Returns what it is about as the words of a program that gave no reply.
    pub(crate) fn of_program(&self) -> Refusal {
        match self.kind(0) {
            Kind::TooLong => Refusal::Request,
            Kind::RateLimited | Kind::Overloaded | Kind::Garbled | Kind::Refused(_) => self
                .reported_refusal(0, &self.small_words())
                .unwrap_or(Refusal::Unclear),
        }
    }

    /// Returns what a refusal under a status is about.
    fn refusal(&self, status: u16, words: &str) -> Refusal {
        let by_status = || match status {
            404 => Refusal::Model,
            // An address that is no model's, and a refusal without a reason.
            300..=399 | 403 | 405 | 406 | 410 => Refusal::Unclear,
            _ => Refusal::Request,
        };
        self.reported_refusal(status, words)
            .unwrap_or_else(by_status)
    }

    /// Returns what a refusal says that it is about; none if it does not say.
    fn reported_refusal(&self, status: u16, words: &str) -> Option<Refusal> {
        let says = |known: &LazyLock<Option<RegexSet>>, text: &str| {
            known.as_ref().is_some_and(|known| known.is_match(text))
        };
        let codes = self.codes.join("\n");
        if status == 402 || self.is_of_account(words) {
            Some(Refusal::Account)
        } else if status == 401 || self.status == Some(401) {
            Some(Refusal::Credentials)
        } else if says(&REQUEST_WORDS, words) || says(&REQUEST_WORDS, &codes) {
            Some(Refusal::Request)
        } else if self.has(&CREDENTIALS) || says(&CREDENTIALS_WORDS, words) {
            Some(Refusal::Credentials)
        } else if self.has(&MODEL)
            || says(&MODEL_WORDS, words)
            || (status == 403 && words.contains("model"))
        {
            Some(Refusal::Model)
        } else {
            None
        }
    }

    /// Returns whether the account has nothing left.
    fn is_of_account(&self, words: &str) -> bool {
        self.has(&QUOTA) || QUOTA_WORDS.iter().any(|known| words.contains(known))
    }

    fn has(&self, known: &[&str]) -> bool {
        self.codes.iter().any(|code| known.contains(&code.as_str()))
    }

    fn small_words(&self) -> String {
        self.words.join("\n").to_lowercase()
    }
}

/// Returns whether the words of a refusal are about what a request says, or asks of a model.
pub(crate) fn is_of_content(words: &str) -> bool {
    let known = REQUEST_WORDS.as_ref();
    known.is_some_and(|known| known.is_match(&words.to_lowercase()))
}

/// Returns the error that a body or a chunk of a stream reports, if it reports one.
pub(crate) fn problem_of(body: &Value) -> Option<Value> {
    let body = match body {
        Value::Array(items) => items.first()?,
        body => body,
    };
    let fields = body.as_object()?;
    let said = |name: &str| fields.get(name).filter(|value| is_something(value));
    let word = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_error = word("object") == "error" || word("type") == "error";
    // A reply has neither of these at its root as text or list.
    let words = [
        "message",
        "msg",
        "detail",
        "error_message",
        "error_msg",
        "errors",
    ];
    let has_words = words
        .iter()
        .any(|name| said(name).is_some_and(|value| value.is_string() || value.is_array()));
    let has_reply = said("choices").is_some() || said("content").is_some();
    // Some servers say with every chunk that all is well.
    let is_well = fields.get("code").is_some_and(|code| {
        let word = code.as_str();
        let word = word.map_or_else(|| code.to_string(), str::to_lowercase);
        ["0", "200", "ok", "success"].contains(&word.as_str())
    });
    let is_reported = has_words && !has_reply && !is_well;
    let failed_code = body
        .pointer("/base_resp/status_code")
        .and_then(Value::as_i64);
    let has_failed = failed_code.is_some_and(|code| code != 0);
    (said("error").is_some() || is_error || has_failed || is_reported).then(|| body.clone())
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => fields.values().any(is_something),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Bool(true) => true,
    }
}
