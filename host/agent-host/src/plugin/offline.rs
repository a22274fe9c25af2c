//! The test of a connector: every function is called while its service is out of reach.

use super::call::{Kit, stopped};
use super::finding::Finding;
use super::report::Run;
use super::tools::Tested;
use crate::failure::Failure;
use domain::connector::{Batch, Body, ConnectorFailure, Intake, Outgoing};
use domain::grant::Grant;
use domain::sample;
use runtime::{CallAudit, Connected, ConnectorCall, ConnectorDescription, Outcome, VerifiedCall};
use serde_json::Value;

/// Milliseconds that a call may take.
const DEADLINE_MS: u32 = 30_000;
/// A chat, a message and a file that no service has.
const NOWHERE: &str = "agent-host-test";

/// Calls every function of a connector that a host would call.
///
/// # Errors
/// This machine could not do its part.
pub(crate) async fn test(kit: &Kit, connector: &ConnectorDescription) -> Result<Tested, Failure> {
    let grant = Grant {
        limits: kit.limits,
        ..Grant::default()
    };
    let trial = Trial {
        kit,
        grant,
        configuration: sample::fitting(&connector.configuration),
        audit: CallAudit::default(),
    };
    let mut tested = Tested::default();
    if connector.abilities.intake.contains(&Intake::Webhook) {
        let received = trial.receive().await;
        trial.take("receive", &received, &mut tested)?;
    }
    if connector.abilities.intake.contains(&Intake::Polling) {
        let polled = kit.runtime.poll(trial.call(), None).await;
        trial.take("poll", &polled, &mut tested)?;
    }
    let sent = trial.send().await;
    trial.take("send", &sent, &mut tested)?;
    if matches!(sent.outcome, Outcome::Returned(Ok(_))) {
        tested.add(vec![Finding::warning(
            "send",
            "it says that a message was delivered, and no request left this machine",
            "return `retry-later` when the service cannot be reached: otherwise the message is lost",
        )]);
    }
    let fetched = kit.runtime.fetch(trial.call(), NOWHERE).await;
    trial.take("fetch", &fetched, &mut tested)?;
    Ok(tested)
}

/// A connector under test.
struct Trial<'a> {
    kit: &'a Kit,
    grant: Grant,
    configuration: Value,
    audit: CallAudit,
}

impl Trial<'_> {
    fn call(&self) -> ConnectorCall<'_> {
        ConnectorCall {
            component: &self.kit.component,
            grant: &self.grant,
            configuration: &self.configuration,
            deadline_ms: DEADLINE_MS,
            audit: &self.audit,
        }
    }

    /// Has it read a call that no service makes.
    async fn receive(&self) -> Connected<Batch> {
        let call = VerifiedCall {
            body: NOWHERE.as_bytes().to_vec(),
            ..VerifiedCall::default()
        };
        self.kit.runtime.receive(self.call(), call).await
    }

    async fn send(&self) -> Connected<String> {
        let message = Outgoing {
            chat: NOWHERE.to_owned(),
            body: Body::Text("Hello.".to_owned()),
            idempotency_key: NOWHERE.to_owned(),
        };
        self.kit.runtime.send(self.call(), &message).await
    }

    /// Takes the end of a call into the report. One that returned nothing is a finding.
    fn take<T: std::fmt::Debug>(
        &self,
        function: &str,
        connected: &Connected<T>,
        tested: &mut Tested,
    ) -> Result<(), Failure> {
        let usage = Some(&connected.usage);
        let Outcome::Returned(returned) = &connected.outcome else {
            let stopped = stopped(&connected.outcome, &self.kit.limits, &connected.logs)?;
            let finding =
                Finding::error(function, stopped.what, stopped.fix).with_stderr(&stopped.stderr);
            tested.runs.push(Run::new(function, "stopped", usage));
            tested.add(vec![finding]);
            return Ok(());
        };
        let (ended, why) = match returned {
            Ok(_) => ("done", String::new()),
            Err(failure @ ConnectorFailure::Rejected(_)) => ("rejected", failure.to_string()),
            Err(failure @ ConnectorFailure::Unauthorised(_)) => {
                ("unauthorised", failure.to_string())
            }
            Err(failure @ ConnectorFailure::RetryLater { .. }) => {
                ("retry-later", failure.to_string())
            }
            Err(failure @ ConnectorFailure::Unknown(_)) => ("unknown", failure.to_string()),
            Err(failure @ ConnectorFailure::Moved { .. }) => ("moved", failure.to_string()),
        };
        tested
            .runs
            .push(Run::new(function, ended, usage).because(why));
        Ok(())
    }
}
