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
    for (cause, failures) in [
        (
            Some(Credentials),
            vec![
                answered(401, "invalid_api_key", "Incorrect API key provided"),
                answered(401, "", ""),
                answered(403, "", "Your API key was reported as leaked."),
                answered(400, "INVALID_ARGUMENT", "API key not valid."),
                answered(500, "authentication_error", "bad key"),
                peer().reported(&json!({ "code": 401, "message": "No auth" })),
                peer().program_failed("it reports", "Invalid API key · Please run /login"),
            ],
        ),
        (
            Some(Refusing),
            vec![
                answered(403, "", ""),
                answered(403, "permission_error", "not allowed"),
                answered(405, "", ""),
                answered(301, "", ""),
            ],
        ),
        (
            None,
            vec![
                answered(403, "", "Your input was flagged by moderation"),
                answered(403, "content_filter", "no"),
                answered(404, "", "No endpoints found that support image input"),
                answered(429, "rate_limit_exceeded", "slow down"),
                answered(400, "", "Invalid schema for function 'set_api_key'"),
                answered(422, "", "Unknown field"),
                answered(413, "", ""),
                peer().too_long(""),
                peer().program_failed("it reports", "Prompt is too long"),
                peer().program_failed("it reports", "blocked by our usage policies"),
            ],
        ),
        (
            Some(Model),
            vec![
                answered(403, "", "You have no access to model gpt-9"),
                answered(404, "model_not_found", "The model `x` does not exist"),
                answered(404, "", ""),
                answered(400, "", "x is not a valid model ID"),
            ],
        ),
        (
            Some(Account),
            vec![
                answered(402, "", "Insufficient Balance"),
                answered(429, "insufficient_quota", "You exceeded your quota"),
                answered(
                    400,
                    "invalid_request_error",
                    "Your credit balance is too low",
                ),
                answered(403, "", "It reached its monthly spending limit."),
                answered(400, "", "You have reached your specified API usage limits."),
                peer().reported(&json!({ "type": "insufficient_quota" })),
                peer().program_failed("it reports", "Credit balance is too low"),
            ],
        ),
        (
            Some(Failing),
            vec![
                answered(500, "", ""),
                answered(529, "overloaded_error", "Overloaded"),
                peer().garbage("no JSON", ""),
                unavailable(Reason::FirstToken),
            ],
        ),
        (
            Some(Unreachable),
            vec![unavailable(Reason::Connect), unavailable(Reason::Broken)],
        ),
        (
            Some(Program),
            vec![
                peer().cut_off("stopped", ""),
                peer().program_failed("no programs are started here", ""),
            ],
        ),
    ] {
        for failure in failures {
            assert_eq!(OutageCause::of(&failure), cause, "{}", failure.report());
            let record = HealthRecord::default();
            record.called("m", Some(&failure));
            let outage = record.provider_status().and_then(|status| status.outage);
            assert_eq!(outage.map(|outage| outage.cause), cause);
        }
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
