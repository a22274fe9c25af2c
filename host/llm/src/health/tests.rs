//! Tests of health: what a failure says of its provider, and what an outage is.

use super::*;
use crate::peer::Peer;
use serde_json::json;
use std::time::Duration;

fn peer() -> Peer<'static> {
    Peer {
        provider: "p",
        model: "m",
        key: None,
    }
}

#[test]
fn a_failure_says_whether_its_provider_is_there() {
    for (failure, state) in [
        (peer().unavailable(Reason::Connect, ""), HealthState::Down),
        (peer().garbage("no JSON", ""), HealthState::Down),
        (
            peer().refused(401, Refusal::Credentials, "bad key"),
            HealthState::Refusing,
        ),
        (peer().rate_limited(None, ""), HealthState::Refusing),
        (peer().too_long(""), HealthState::Up),
    ] {
        let record = HealthRecord::default();
        record.called("m", Some(&failure));
        let health = record.of_provider().unwrap();
        assert_eq!(health.state, state, "{failure}");
        assert_eq!(record.of_model("m").unwrap().failure, health.failure);
        assert_eq!(record.of_model("other"), None);
    }
}

/// An HTTP answer with words of a service.
fn answered(status: u16, code: &str, said: &str) -> Failure {
    let body = json!({ "error": { "code": code, "message": said } });
    peer().status(status, &body.to_string(), None)
}

/// The words are those of services: OpenAI, Anthropic, Gemini, `OpenRouter`, `DeepSeek`,
/// Mistral, and Claude Code.
#[test]
fn an_outage_has_its_cause_and_the_fault_of_one_request_is_none() {
    use OutageCause::{Account, Credentials, Failing, Model, Program, Refusing, Unreachable};
    let unavailable = |reason| peer().unavailable(reason, "");
    for (failure, cause) in [
        (
            answered(401, "invalid_api_key", "Incorrect API key provided"),
            Some(Credentials),
        ),
        (answered(401, "", ""), Some(Credentials)),
        (
            answered(403, "", "Your API key was reported as leaked."),
            Some(Credentials),
        ),
        (
            answered(400, "INVALID_ARGUMENT", "API key not valid."),
            Some(Credentials),
        ),
        (
            answered(500, "authentication_error", "bad key"),
            Some(Credentials),
        ),
        (
            peer().reported(&json!({ "code": 401, "message": "No auth" })),
            Some(Credentials),
        ),
        (answered(403, "", ""), Some(Refusing)),
        (
            answered(403, "permission_error", "not allowed"),
            Some(Refusing),
        ),
        (
            answered(403, "", "Your input was flagged by moderation"),
            None,
        ),
        (answered(403, "content_filter", "no"), None),
        (
            answered(403, "", "You have no access to model gpt-9"),
            Some(Model),
        ),
        (
            answered(404, "model_not_found", "The model `x` does not exist"),
            Some(Model),
        ),
        (answered(404, "", ""), Some(Model)),
        (answered(400, "", "x is not a valid model ID"), Some(Model)),
        (
            answered(404, "", "No endpoints found that support image input"),
            None,
        ),
        (answered(402, "", "Insufficient Balance"), Some(Account)),
        (
            answered(429, "insufficient_quota", "You exceeded your quota"),
            Some(Account),
        ),
        (
            answered(
                400,
                "invalid_request_error",
                "Your credit balance is too low",
            ),
            Some(Account),
        ),
        (
            answered(403, "", "It reached its monthly spending limit."),
            Some(Account),
        ),
        (
            answered(400, "", "You have reached your specified API usage limits."),
            Some(Account),
        ),
        (
            peer().reported(&json!({ "type": "insufficient_quota" })),
            Some(Account),
        ),
        (answered(429, "rate_limit_exceeded", "slow down"), None),
        (
            answered(400, "", "Invalid schema for function 'set_api_key'"),
            None,
        ),
        (answered(422, "", "Unknown field"), None),
        (answered(413, "", ""), None),
        (peer().too_long(""), None),
        (answered(405, "", ""), Some(Refusing)),
        (answered(301, "", ""), Some(Refusing)),
        (answered(500, "", ""), Some(Failing)),
        (
            answered(529, "overloaded_error", "Overloaded"),
            Some(Failing),
        ),
        (peer().garbage("no JSON", ""), Some(Failing)),
        (unavailable(Reason::FirstToken), Some(Failing)),
        (unavailable(Reason::Connect), Some(Unreachable)),
        (unavailable(Reason::Broken), Some(Unreachable)),
        (peer().cut_off("stopped", ""), Some(Program)),
        (
            peer().program_failed("no programs are started here", ""),
            Some(Program),
        ),
        (
            peer().program_failed("it reports", "Invalid API key · Please run /login"),
            Some(Credentials),
        ),
        (
            peer().program_failed("it reports", "Credit balance is too low"),
            Some(Account),
        ),
        (
            peer().program_failed("it reports", "Prompt is too long"),
            None,
        ),
        (
            peer().program_failed("it reports", "blocked by our usage policies"),
            None,
        ),
    ] {
        assert_eq!(OutageCause::of(&failure), cause, "{}", failure.report());
        let record = HealthRecord::default();
        record.called("m", Some(&failure));
        let outage = record
            .provider_status()
            .and_then(|provider_status| provider_status.outage);
        assert_eq!(outage.map(|outage| outage.cause), cause);
    }
}

#[test]
fn failures_in_a_row_are_counted_until_a_call_goes_well() {
    let record = HealthRecord::default();
    assert_eq!(record.provider_status(), None);
    let reported = |failure: Option<Failure>| {
        let is_news = record.called("m", failure.as_ref());
        let failures = record
            .provider_status()
            .map(|provider_status| provider_status.failures);
        (failures, is_news)
    };
    let down = || Some(peer().unavailable(Reason::Connect, ""));
    let own = || Some(answered(400, "", ""));
    assert_eq!(reported(own()), (None, true), "nothing is known of it");
    assert_eq!(reported(down()), (Some(1), true));
    assert_eq!(reported(down()), (Some(2), false));
    assert_eq!(reported(Some(peer().too_long(""))), (Some(2), true));
    assert_eq!(
        reported(Some(peer().rate_limited(None, ""))),
        (Some(2), true)
    );
    assert_eq!(reported(own()), (Some(2), true));
    assert_eq!(reported(Some(answered(404, "", ""))), (Some(3), true));
    assert_eq!(reported(None), (Some(0), true));
    assert_eq!(record.provider_status(), Some(ProviderStatus::default()));
}

#[test]
fn a_list_serves_those_who_waited_for_it_and_others_for_its_lifetime() {
    let at = Instant::now();
    let good = KeptList { at, list: Ok(None) };
    let bad = KeptList {
        at,
        list: Err(ShownFailure::of_list(&peer().refused(
            401,
            Refusal::Credentials,
            "",
        ))),
    };
    for (list, freshness, after_ms, serves) in [
        (&good, Freshness::Kept, 0, true),
        (&good, Freshness::Kept, LIST_LIFETIME_MS - 1, true),
        (&good, Freshness::Kept, LIST_LIFETIME_MS, false),
        (&bad, Freshness::Kept, FAILED_LIST_LIFETIME_MS - 1, true),
        (&bad, Freshness::Kept, FAILED_LIST_LIFETIME_MS, false),
        (&good, Freshness::Anew, LIST_REFRESH_MS_MIN - 1, true),
        (&good, Freshness::Anew, LIST_REFRESH_MS_MIN, false),
    ] {
        let asked = at + Duration::from_millis(after_ms);
        assert_eq!(
            list.serves(freshness, asked),
            serves,
            "{freshness:?} {after_ms}"
        );
    }
}
