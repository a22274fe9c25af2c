//! Interpretation of a provider's errors. They are put on record without what does not belong
//! there.

use crate::failure::{Cause, Failure, Reason, Refusal};
use crate::incoming::{Kind, Problem};
use crate::key::{ApiKey, clean};
use crate::provider::Broken;
use crate::retry::Stage;
use egress::{EgressError, Phase, Refused, TooLarge};
use serde_json::Value;

/// Characters of a sample of garbage.
pub(crate) const SAMPLE_CHARS_MAX: usize = 200;
/// Characters of what a provider or the network library says about a failure.
const CAUSE_CHARS_MAX: usize = 500;

/// The provider that a failure is about, the model, and the key that must not be in it.
#[derive(Clone, Copy)]
pub(crate) struct Peer<'a> {
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
    pub(crate) key: Option<&'a ApiKey>,
}

impl Peer<'_> {
    pub(crate) fn unavailable(&self, reason: Reason, cause: &str) -> Failure {
        Failure::Unavailable {
            provider: self.provider.to_owned(),
            model: self.model.to_owned(),
            reason,
            cause: self.cause(cause),
        }
    }

    pub(crate) fn rate_limited(&self, retry_after_ms: Option<u64>, cause: &str) -> Failure {
        Failure::RateLimited {
            provider: self.provider.to_owned(),
            model: self.model.to_owned(),
            retry_after_ms,
            cause: self.cause(cause),
        }
    }

    pub(crate) fn refused(&self, status: u16, about: Refusal, cause: &str) -> Failure {
        Failure::Refused {
            provider: self.provider.to_owned(),
            model: self.model.to_owned(),
            status,
            about,
            cause: self.cause(cause),
        }
    }

    /// A program that was cut off: the host's reason, and the program's last words.
    pub(crate) fn cut_off(&self, reported: &str, said: &str) -> Failure {
        Failure::CutOff {
            provider: self.provider.to_owned(),
            model: self.model.to_owned(),
            reported: clean(reported, self.key, CAUSE_CHARS_MAX),
            said: clean(said, self.key, CAUSE_CHARS_MAX).into(),
        }
    }

    /// A program without a reply: the host's reason, and the program's own words.
    pub(crate) fn program_failed(&self, reported: &str, said: &str) -> Failure {
        Failure::ProgramFailed {
            provider: self.provider.to_owned(),
            model: self.model.to_owned(),
            about: Problem::of_body(said).of_program(),
            reported: clean(reported, self.key, CAUSE_CHARS_MAX).into(),
            said: clean(said, self.key, CAUSE_CHARS_MAX).into(),
        }
    }

    pub(crate) fn too_long(&self, cause: &str) -> Failure {
        Failure::TooLong {
            provider: self.provider.to_owned(),
            model: self.model.to_owned(),
            cause: self.cause(cause),
        }
    }

    pub(crate) fn garbage(&self, problem: &str, sample: &str) -> Failure {
        Failure::Garbage {
            provider: self.provider.to_owned(),
            model: self.model.to_owned(),
            problem: problem.to_owned(),
            sample: clean(sample, self.key, SAMPLE_CHARS_MAX),
        }
    }

    /// A failure on the way, with all that is behind it.
    pub(crate) fn network(&self, reason: Reason, error: &EgressError) -> Failure {
        self.unavailable(reason, &error.detail())
    }

    /// A request that never left the host, or was not answered.
    pub(crate) fn unsent(&self, error: &EgressError) -> (Stage, Failure) {
        match error {
            EgressError::Refused(Refused::Barred { source, .. }) => (
                Stage::Unsent,
                Failure::Barred {
                    provider: self.provider.to_owned(),
                    cause: self.cause(&source.to_string()),
                },
            ),
            EgressError::Refused(_) => {
                let refused = self.refused(0, Refusal::Unclear, &error.detail());
                (Stage::Unsent, refused)
            }
            EgressError::TooLarge(TooLarge::RequestHead | TooLarge::RequestBody { .. }) => {
                let refused = self.refused(0, Refusal::Request, &error.detail());
                (Stage::Unsent, refused)
            }
            EgressError::Busy
            | EgressError::Unreachable(_)
            | EgressError::TimedOut {
                phase: Phase::Resolve | Phase::Connect | Phase::Tls,
                ..
            } => (Stage::Unsent, self.network(Reason::Connect, error)),
            EgressError::TimedOut {
                phase: Phase::FirstByte | Phase::Idle | Phase::Total,
                ..
            } => (Stage::Asked, self.unavailable(Reason::FirstToken, "")),
            EgressError::BudgetSpent
            | EgressError::TooLarge(TooLarge::ResponseHead | TooLarge::ResponseBody { .. })
            | EgressError::Broken(_) => (Stage::Asked, self.network(Reason::Broken, error)),
        }
    }

    /// A reply that broke, as a failure.
    pub(crate) fn broken(&self, broken: &Broken) -> Failure {
        match broken {
            Broken::Garbage { problem, sample } => self.garbage(problem, sample),
            Broken::CutShort => self.unavailable(Reason::CutShort, ""),
            Broken::Reported(error) => self.reported(error),
        }
    }

    /// Interprets an answer with an HTTP status other than success.
    pub(crate) fn status(&self, status: u16, body: &str, retry_after_ms: Option<u64>) -> Failure {
        let problem = Problem::of_body(body);
        let message = problem.message().unwrap_or(body);
        let pause_ms = retry_after_ms.or(problem.pause_ms);
        self.meant(problem.kind(status), status, message, pause_ms)
    }

    /// Interprets an error that came inside a reply.
    pub(crate) fn reported(&self, error: &Value) -> Failure {
        let problem = Problem::of(error);
        let status = problem.status.unwrap_or(0);
        let message = problem.message().unwrap_or("no message");
        self.meant(problem.kind(status), status, message, problem.pause_ms)
    }

    fn meant(&self, kind: Kind, status: u16, said: &str, retry_after_ms: Option<u64>) -> Failure {
        match kind {
            Kind::TooLong => self.too_long(said),
            Kind::RateLimited => self.rate_limited(retry_after_ms, said),
            Kind::Overloaded => self.unavailable(Reason::Overloaded(status), said),
            Kind::Refused(about) => self.refused(status, about, said),
            Kind::Garbled => self.garbage("the server cannot read what its model wrote", said),
        }
    }

    fn cause(&self, text: &str) -> Option<Cause> {
        let cleaned = clean(text, self.key, CAUSE_CHARS_MAX);
        (!cleaned.is_empty()).then_some(Cause(cleaned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn peer() -> Peer<'static> {
        Peer {
            provider: "p",
            model: "m",
            key: None,
        }
    }

    #[test]
    fn a_refusal_is_reported_in_the_providers_words_with_the_way_out() {
        let report = |status, said: &str| {
            let body = json!({ "error": { "message": said } });
            peer().status(status, &body.to_string(), None).report()
        };
        let refused = "provider `p` refused the call of model `m` with status";
        let key = "check the key that `apiKeyFile` or `apiKeyEnv` of `providers.p` names";
        for (status, said, reported) in [
            (
                401,
                "Incorrect API key provided",
                format!("Incorrect API key provided; {key}"),
            ),
            (403, "No access", format!("No access; {key}")),
            (402, "Broke", "Broke; add credit at the provider".to_owned()),
            (
                404,
                "No such model",
                "No such model; check the name with `agent-host model check`, and \
                 `providers.p.baseUrl`"
                    .to_owned(),
            ),
            (422, "Unknown field", "Unknown field".to_owned()),
        ] {
            assert_eq!(
                report(status, said),
                format!("{refused} {status}: {reported}")
            );
        }
        assert_eq!(
            peer().refused(401, Refusal::Credentials, "").report(),
            format!("{refused} 401: {key}")
        );
        let own = peer().refused(400, Refusal::Request, "");
        assert_eq!(own.report(), format!("{refused} 400"));
    }

    #[test]
    fn a_status_means_what_the_provider_means_by_it() {
        let code = |status, body: Value| peer().status(status, &body.to_string(), None).code();
        let none = || json!({});
        assert_eq!(
            [408, 409, 425, 500, 503, 529].map(|status| code(status, none())),
            ["model-unavailable"; 6]
        );
        assert_eq!(
            [400, 401, 402, 403, 404, 422, 301].map(|status| code(status, none())),
            ["model-refused"; 7]
        );
        assert_eq!(code(413, none()), "model-prompt-too-long");
        for (status, body, meant) in [
            (
                500,
                json!({"error": {"type": "exceed_context_size_error"}}),
                "model-prompt-too-long",
            ),
            (
                400,
                json!([{"error": {"code": 400, "message": "The input token count (9) exceeds \
                the maximum number of tokens allowed (8)."}}]),
                "model-prompt-too-long",
            ),
            (
                400,
                json!({"error": {"type": "overloaded_error"}}),
                "model-unavailable",
            ),
            (
                500,
                json!({"error": {"type": "authentication_error"}}),
                "model-refused",
            ),
            (
                403,
                json!({"error": {"code": "rate_limit_exceeded"}}),
                "model-rate-limited",
            ),
            (
                429,
                json!({"error": {"type": "insufficient_quota"}}),
                "model-refused",
            ),
            (498, none(), "model-unavailable"),
        ] {
            assert_eq!(code(status, body.clone()), meant, "{status} {body}");
        }
        assert_eq!(code(429, none()), "model-rate-limited");
        assert_eq!(
            code(429, json!({"error": {"code": "insufficient_quota"}})),
            "model-refused"
        );
        assert_eq!(
            code(400, json!({"error": {"code": "context_length_exceeded"}})),
            "model-prompt-too-long"
        );
        assert_eq!(
            code(
                400,
                json!({"error": {"type": "invalid_request_error", "message": "prompt is too long: \
                    2 tokens > 1 maximum"}})
            ),
            "model-prompt-too-long"
        );
    }

    #[test]
    fn a_pause_that_a_body_asks_for_counts_where_no_header_does() {
        let body = json!([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "No.",
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"}]}}]);
        let asked = |header| match peer().status(429, &body.to_string(), header) {
            Failure::RateLimited { retry_after_ms, .. } => retry_after_ms,
            failure => panic!("{failure:?}"),
        };
        assert_eq!([asked(None), asked(Some(7))], [Some(1_500), Some(7)]);
    }

    #[test]
    fn an_error_inside_a_reply_means_what_it_says() {
        let code = |error: Value| peer().reported(&error).code();
        assert_eq!(
            code(json!({"type": "overloaded_error", "message": "Overloaded"})),
            "model-unavailable"
        );
        assert_eq!(
            code(json!({"type": "rate_limit_error"})),
            "model-rate-limited"
        );
        assert_eq!(
            code(json!({"type": "invalid_request_error"})),
            "model-refused"
        );
        assert_eq!(
            code(json!({"code": 502, "message": "upstream"})),
            "model-unavailable"
        );
        assert_eq!(code(json!({"code": 429})), "model-rate-limited");
        assert_eq!(code(json!({"code": "429"})), "model-rate-limited");
        assert_eq!(code(json!({"code": "insufficient_quota"})), "model-refused");
        assert_eq!(code(json!("it broke")), "model-unavailable");
        let well = json!({"code": "200", "message": "success", "choices": [], "usage": {}});
        assert_eq!(crate::incoming::problem_of(&well), None);
    }
}
