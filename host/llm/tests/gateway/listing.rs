//! Providers' own lists of models, and the health that they and calls show.

use crate::server::{Act, Server};
use crate::setting::{CANARY, config, gateway, good, prompt};
use agent_host_llm::{Freshness, HealthState, NoDeltas, SeenBy};
use domain::model::Prompt;
use domain::sampling::Sampling;
use futures::future::join_all;
use serde_json::json;
use std::time::Duration;

fn list(names: &[&str]) -> Act {
    let data: Vec<_> = names.iter().map(|name| json!({ "id": name })).collect();
    Act::json(200, &json!({ "object": "list", "data": data }))
}

#[tokio::test]
async fn a_list_is_asked_for_at_the_providers_own_route_and_with_its_key() {
    for (kind, line, key) in [
        (
            "openai-compatible",
            "GET /models HTTP",
            "authorization: Bearer",
        ),
        ("anthropic", "GET /v1/models?limit=1000 HTTP", "x-api-key:"),
    ] {
        let server = Server::start(vec![list(&["m-1", "m-2"])]).await;
        let gateway = gateway(config(kind, &[&server.url]));
        let [provider] = gateway.providers(Freshness::Kept).await.try_into().unwrap();
        assert_eq!(
            provider.list.models,
            Ok(Some(vec!["m-1".to_owned(), "m-2".to_owned()]))
        );
        let health = provider.health.unwrap();
        assert_eq!(
            (health.state, health.seen_by),
            (HealthState::Up, SeenBy::List)
        );
        let [request] = server.requests().try_into().unwrap();
        assert!(request.head.starts_with(line), "{}", request.head);
        let sent = format!("{key} {CANARY}");
        assert!(request.head.contains(&sent), "{}", request.head);
    }
}

#[tokio::test]
async fn one_request_for_a_list_serves_all_who_look_and_is_kept() {
    let slow = Act::Slow(Duration::from_millis(50), Box::new(list(&["m-1"])));
    let server = Server::start(vec![slow]).await;
    let gateway = gateway(config("openai-compatible", &[&server.url]));
    let inspections = (0..8).map(|_| gateway.providers(Freshness::Anew));
    for providers in join_all(inspections).await {
        assert!(providers[0].list.models.is_ok());
    }
    gateway.providers(Freshness::Kept).await;
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_provider_without_a_list_is_up_and_one_that_refuses_or_is_gone_is_not() {
    let down = Server::start(vec![Act::Close]).await;
    for (act, state, code) in [
        (Act::json(404, &json!({})), HealthState::Up, None),
        (
            Act::json(401, &json!({"error": {"message": "bad key"}})),
            HealthState::Refusing,
            Some("model-refused"),
        ),
        (
            Act::json(503, &json!({})),
            HealthState::Down,
            Some("model-unavailable"),
        ),
        (
            Act::json(200, &json!({"models": []})),
            HealthState::Down,
            Some("model-garbage"),
        ),
    ] {
        let server = Server::start(vec![act]).await;
        let gateway = gateway(config("openai-compatible", &[&server.url, &down.url]));
        let providers = gateway.providers(Freshness::Kept).await;
        let seen = providers[0].health.clone().unwrap();
        assert_eq!(seen.state, state, "{providers:?}");
        assert_eq!(seen.failure.map(|failure| failure.code), code);
        assert_eq!(
            providers[1].health.clone().unwrap().state,
            HealthState::Down
        );
    }
}

#[tokio::test]
async fn a_call_shows_the_health_of_its_model_and_asks_for_no_list() {
    let server = Server::start(vec![good(&["hi"]), Act::json(401, &json!({}))]).await;
    let gateway = gateway(config("openai-compatible", &[&server.url]));
    assert_eq!(gateway.models()[0].health, None);
    for state in [HealthState::Up, HealthState::Refusing] {
        gateway.complete(&prompt(), &NoDeltas).await;
        let health = gateway.models()[0].health.clone().unwrap();
        assert_eq!((health.state, health.seen_by), (state, SeenBy::Call));
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(
        requests
            .iter()
            .all(|request| request.head.starts_with("POST "))
    );
}

#[test]
fn settings_are_checked_against_every_provider_that_may_be_asked() {
    let mut config = config(
        "openai-compatible",
        &["http://127.0.0.1:1", "http://127.0.0.1:2"],
    );
    config["providers"]["q"]["kind"] = json!("anthropic");
    let gateway = gateway(config);
    let hot = Sampling {
        temperature: Some(1.5),
        ..Sampling::default()
    };
    assert_eq!(
        gateway.check_sampling(Some("m"), &Sampling::default()),
        Ok(())
    );
    let unfit = gateway.check_sampling(Some("m"), &hot).unwrap_err();
    assert_eq!(unfit.field, "temperature");
    assert!(
        unfit.message.contains("`q`") && unfit.message.contains("0 to 1"),
        "{unfit}"
    );
    assert_eq!(gateway.check_sampling(Some("nobody"), &hot), Ok(()));
}

#[tokio::test]
async fn a_retried_attempt_is_sent_with_the_same_settings() {
    let server = Server::start(vec![Act::json(503, &json!({})), good(&["hi"])]).await;
    let gateway = gateway(config("openai-compatible", &[&server.url]));
    let sampling = Sampling {
        temperature: Some(0.5),
        stop: vec!["END".to_owned()],
        ..Sampling::default()
    };
    let asked = Prompt {
        sampling,
        ..prompt()
    };
    gateway.complete(&asked, &NoDeltas).await.result.unwrap();
    let [first, second] = server.requests().try_into().unwrap();
    assert_eq!(first.body, second.body);
    assert_eq!(second.body["temperature"], 0.5);
}
