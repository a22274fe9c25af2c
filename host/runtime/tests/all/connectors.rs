//! Connectors: calls with what is granted, stopped at their limits and taken within their bounds
//! only.

use crate::fixture::{Fixture, assert_refused, assert_trapped, limits};
use agent_host_runtime::{CallAudit, Component, Connected, ConnectorCall, Outcome, VerifiedCall};
use domain::connector::{Batch, Body, ConnectorFailure, Outgoing, Said};
use domain::event::BoundaryVerdict;
use domain::grant::Grant;
use domain::ruling::Rule;
use domain::secret::{Secret, Secrets};
use serde_json::{Value, json};
use std::sync::Arc;

/// A connector with its configuration and its grant.
struct Setting {
    fixture: Fixture,
    connector: Arc<Component>,
    configuration: Value,
    grant: Grant,
    audit: CallAudit,
    deadline_ms: u32,
}

impl Setting {
    async fn new(attack: &str) -> Self {
        let (fixture, connector) = Fixture::of("rogue-connector").await;
        Self {
            fixture,
            connector,
            configuration: json!({ "attack": attack }),
            grant: Grant::default(),
            audit: CallAudit::default(),
            deadline_ms: 60_000,
        }
    }

    fn call(&self) -> ConnectorCall<'_> {
        ConnectorCall {
            component: &self.connector,
            grant: &self.grant,
            configuration: &self.configuration,
            deadline_ms: self.deadline_ms,
            audit: &self.audit,
        }
    }

    async fn receive(&self, body: &str) -> Connected<Batch> {
        let call = VerifiedCall {
            headers: vec![("x-kind".to_owned(), "chat".to_owned())],
            query: vec![("page".to_owned(), "1".to_owned())],
            body: body.as_bytes().to_vec(),
        };
        self.fixture.runtime.receive(self.call(), call).await
    }

    async fn poll(&self, cursor: Option<&str>) -> Connected<Batch> {
        self.fixture.runtime.poll(self.call(), cursor).await
    }

    async fn send(&self, body: Body) -> Connected<String> {
        let message = Outgoing {
            chat: "7".to_owned(),
            body,
            idempotency_key: "key".to_owned(),
        };
        self.fixture.runtime.send(self.call(), &message).await
    }

    async fn fetch(&self, handle: &str) -> Connected<Vec<u8>> {
        self.fixture.runtime.fetch(self.call(), handle).await
    }
}

#[track_caller]
fn returned<T: std::fmt::Debug>(connected: Connected<T>) -> T {
    match connected.outcome {
        Outcome::Returned(Ok(value)) => value,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn text_of(batch: &Batch) -> &str {
    match &batch.messages.first().unwrap().said {
        Said::Text { text } => text,
        other @ (Said::Button { .. } | Said::Aside { .. }) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_connector_reads_polls_sends_and_fetches() {
    let setting = Setting::new("").await;
    let received = returned(setting.receive("hello").await);
    assert_eq!(text_of(&received), "hello");
    assert_eq!(
        received.answer.as_deref(),
        Some(r#"[("x-kind", "chat")] [("page", "1")]"#)
    );
    let polled = returned(setting.poll(Some("a")).await);
    assert_eq!(
        (polled.cursor.as_deref(), polled.next_ms),
        (Some("ax"), 1_000)
    );
    let text = Body::Text("hello".to_owned());
    assert_eq!(returned(setting.send(text).await), "7:hello");
    assert_eq!(returned(setting.send(Body::Typing).await), "");
    assert_eq!(returned(setting.fetch("3").await), b"aaa");
}

#[tokio::test]
async fn what_a_connector_returns_over_a_bound_is_not_taken() {
    for (attack, expected) in [
        ("many", "`messages` are 1001; 1000 at most"),
        ("forge", "`messages[0]`"),
        ("talk", "answer"),
    ] {
        assert_refused(
            &Setting::new(attack).await.receive("").await.outcome,
            expected,
        );
    }
    assert_refused(
        &Setting::new("far").await.poll(None).await.outcome,
        "cursor",
    );
    let sent = Setting::new("forge").await.send(Body::Typing).await;
    assert_refused(&sent.outcome, "`id` has a control character");
}

/// A file is larger than anything else that a guest hands over at once, and has a bound too.
#[tokio::test]
async fn a_file_of_eight_mebibytes_is_fetched_and_none_larger() {
    let setting = Setting::new("").await;
    let largest = 8 << 20;
    let file = returned(setting.fetch(&largest.to_string()).await);
    assert_eq!(file.len(), largest);
    let larger = (largest + 1).to_string();
    let fetched = setting.fetch(&larger).await;
    assert_refused(&fetched.outcome, "`file` is 8388609 bytes long");
    let huge = (32_usize << 20).to_string();
    assert_trapped(&setting.fetch(&huge).await.outcome);
}

#[tokio::test]
async fn a_connector_that_does_not_stop_is_stopped_and_it_is_on_record() {
    let mut spinning = Setting::new("spin").await;
    spinning.grant.limits = limits(|it| it.cpu_ms_max = 50);
    let polled = spinning.poll(None).await;
    assert_eq!(polled.outcome, Outcome::OutOfCpu);
    let (decided, _) = spinning.audit.take();
    let [decision] = &decided.decisions[..] else {
        panic!("{decided:?}");
    };
    assert_eq!(
        (decision.capability.as_str(), decision.detail.as_str()),
        ("connectors.call", "cpuMsMax")
    );
    let mut sleeping = Setting::new("sleep").await;
    sleeping.deadline_ms = 100;
    assert_eq!(sleeping.poll(None).await.outcome, Outcome::TimedOut);
    let trapped = Setting::new("trap").await.send(Body::Typing).await.outcome;
    assert_trapped(&trapped);
}

/// Variables that are granted are there; a request that is not granted is refused, and that is on
/// record.
#[tokio::test]
async fn a_connector_has_what_is_granted_and_nothing_else() {
    let mut setting = Setting::new("sense").await;
    let variable = ("REGION".to_owned(), "eu".to_owned());
    setting.grant.environment = [variable].into();
    let sensed = returned(setting.poll(None).await);
    let text = text_of(&sensed);
    assert!(
        text.contains("HttpRequestDenied") && text.ends_with(r#"false [("REGION", "eu")]"#),
        "{text}"
    );
    let (decided, _) = setting.audit.take();
    let request = decided
        .decisions
        .iter()
        .find(|decision| decision.capability == "net.http")
        .unwrap();
    assert_eq!(
        (request.verdict, request.rule),
        (BoundaryVerdict::Refused, Rule::NotGranted)
    );
}

#[tokio::test]
async fn a_connectors_own_errors_are_results_and_secrets_stay_in() {
    let polled = Setting::new("refused").await.poll(None).await;
    let gone = ConnectorFailure::Unauthorised("the token is gone".to_owned());
    assert_eq!(polled.outcome, Outcome::Returned(Err(gone)));
    let secret = Secret::parse("a-secret-of-the-host").unwrap();
    let secrets = Secrets::new([("token".to_owned(), secret)]);
    let mut setting = Setting::new("").await;
    setting.fixture = Fixture::with(|config| config.secrets = secrets);
    setting.connector = setting.fixture.load("rogue-connector").await;
    let received = returned(setting.receive("it is a-secret-of-the-host").await);
    let text = text_of(&received);
    assert!(!text.contains("a-secret-of-the-host"), "{text}");
}

/// A connector of the first version of the interface takes and sends texts.
#[tokio::test]
async fn a_connector_of_0_1_0_is_served() {
    let mut setting = Setting::new("").await;
    setting.connector = setting.fixture.load("older-connector").await;
    assert_eq!(setting.connector.wit_version(), "0.1.0");
    let runtime = &setting.fixture.runtime;
    let call = VerifiedCall {
        body: b"hello".to_vec(),
        ..VerifiedCall::default()
    };
    let received = returned(runtime.receive(setting.call(), call).await);
    assert_eq!(text_of(&received), "hello");
    assert_eq!(received.messages[0].chat, "back");
    let message = |body: Body| Outgoing {
        chat: "7".to_owned(),
        body,
        idempotency_key: "key".to_owned(),
    };
    let text = message(Body::Text("hi".to_owned()));
    let sent = runtime.send(setting.call(), &text).await;
    assert_eq!(returned(sent), "7:hi");
    let typing = message(Body::Typing);
    let typing = runtime.send(setting.call(), &typing).await;
    assert!(is_rejected(&typing));
    let fetched = runtime.fetch(setting.call(), "1").await;
    assert!(is_rejected(&fetched));
}

fn is_rejected<T>(connected: &Connected<T>) -> bool {
    matches!(
        connected.outcome,
        Outcome::Returned(Err(ConnectorFailure::Rejected(_)))
    )
}
