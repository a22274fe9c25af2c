//! The tests of triggers and connectors. A trigger hears a trigger event of every kind that it
//! lists more than once; every function of a connector is called while its service is out of reach.

use super::call::{Kit, stopped};
use super::finding::{Finding, Run};
use super::tools::Tested;
use crate::failure::Failure;
use anyhow::anyhow;
use domain::connector::{Batch, Body, ConnectorFailure, Intake, Outgoing};
use domain::digest::Digest;
use domain::grant::Grant;
use domain::sample;
use domain::time::Timestamp;
use domain::trigger::{
    ChangeKind, FileChange, FileChanges, HostEvent, HostEventKind, TriggerEvent, TriggerName,
    WebhookCall,
};
use runtime::{
    CallAudit, Connected, ConnectorCall, ConnectorDescription, FireCall, Fired, Outcome,
    TriggerDescription, TriggerError, VerifiedCall,
};
use serde_json::{Value, json};

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

/// The name of the trigger under test.
const NAME: &str = "test";
/// The time of every trigger event.
const NOW: Timestamp = Timestamp(1_767_225_600_000);
/// The operator's message.
const MESSAGE: &str = "Hello.";

/// Has a trigger hear all trigger events.
///
/// # Errors
/// This machine could not do its part.
pub(crate) async fn test_trigger(
    kit: &Kit,
    trigger: &TriggerDescription,
) -> Result<Tested, Failure> {
    let name: TriggerName = NAME.parse().map_err(|_| anyhow!("`{NAME}` is no name"))?;
    let trial = TriggerTrial {
        kit,
        name,
        configuration: sample::fitting(&trigger.configuration),
    };
    let mut tested = Tested::default();
    for trigger_event in trigger_events() {
        if trigger
            .trigger_events
            .iter()
            .any(|kind| kind == trigger_event.kind())
        {
            trial.hear(&trigger_event, &mut tested).await?;
        }
    }
    Ok(tested)
}

/// A trigger event of every kind.
fn trigger_events() -> [TriggerEvent; 5] {
    let change = FileChange {
        kind: ChangeKind::Created,
        path: "a.txt".to_owned(),
        was: None,
        size: Some(5),
    };
    [
        TriggerEvent::Due {
            due: NOW,
            missed: 1,
        },
        TriggerEvent::Heartbeat {
            due: NOW,
            checklist: Some("- Is there mail?".to_owned()),
        },
        TriggerEvent::Webhook(WebhookCall {
            call_id: "1".to_owned(),
            path: String::new(),
            headers: Vec::new(),
            query: Vec::new(),
            payload: json!({ "text": MESSAGE }),
        }),
        TriggerEvent::Files(FileChanges {
            folder: "inbox".to_owned(),
            changes: vec![change],
            more: 0,
        }),
        TriggerEvent::Event(HostEvent {
            name: HostEventKind::SessionCompleted,
            id: "1".to_owned(),
            time: NOW,
            data: json!({}),
            chain: 0,
        }),
    ]
}

/// A trigger under test.
struct TriggerTrial<'a> {
    kit: &'a Kit,
    name: TriggerName,
    configuration: Value,
}

impl TriggerTrial<'_> {
    /// Has it hear a trigger event twice with the same randomness, and once with another.
    async fn hear(&self, trigger_event: &TriggerEvent, tested: &mut Tested) -> Result<(), Failure> {
        let place = format!("a trigger event of the kind `{}`", trigger_event.kind());
        let first = self.once(trigger_event, b"randomness").await;
        let Some(ended) = ending(&first) else {
            let stopped = stopped(&first.outcome, &self.kit.limits, &first.logs)?;
            let finding =
                Finding::error(&place, stopped.what, stopped.fix).with_stderr(&stopped.stderr);
            tested
                .runs
                .push(Run::new(place, "not heard", Some(&first.usage)));
            tested.add(vec![finding]);
            return Ok(());
        };
        let run = Run::new(&place, ended, Some(&first.usage));
        tested.runs.push(run.because(reason(&first)));
        let second = self.once(trigger_event, b"randomness").await;
        let third = self.once(trigger_event, b"other randomness").await;
        let finding = if first.outcome != second.outcome {
            Finding::error(
                place,
                "the same trigger event leads to another result the second time",
                "let the result follow from what `fire` is handed alone: a host fires a trigger event \
                 again after a crash",
            )
        } else if first.outcome != third.outcome {
            Finding::warning(
                place,
                "its result depends on randomness, such as the order of a hash map",
                "sort, or use a `BTreeMap`: otherwise equal trigger events differ for no reason",
            )
        } else {
            return Ok(());
        };
        tested.add(vec![finding]);
        Ok(())
    }

    async fn once(&self, trigger_event: &TriggerEvent, seed: &[u8]) -> Fired {
        let call = FireCall {
            trigger: &self.name,
            now: NOW,
            configuration: &self.configuration,
            message: Some(MESSAGE),
            state: None,
            trigger_event,
            seed: Digest::of(seed),
        };
        let Kit {
            runtime,
            component,
            limits,
            ..
        } = self.kit;
        runtime.fire(component, limits, call).await
    }
}

/// Returns the end of a trigger run in words; none if it returned nothing that a host takes.
fn ending(fired: &Fired) -> Option<String> {
    match &fired.outcome {
        Outcome::Returned(Ok(trigger_run)) => Some(match trigger_run.messages.len() {
            1 => "1 message".to_owned(),
            count => format!("{count} messages"),
        }),
        Outcome::Returned(Err(TriggerError::Rejected(_))) => Some("rejected".to_owned()),
        Outcome::Returned(Err(TriggerError::RetryLater(_))) => Some("put off".to_owned()),
        _ => None,
    }
}

/// Returns the trigger's own reason for not dealing with a trigger event; empty if it gives none.
fn reason(fired: &Fired) -> &str {
    match &fired.outcome {
        Outcome::Returned(Err(TriggerError::Rejected(reason))) => reason,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::trigger_events;

    #[test]
    fn there_is_a_trigger_event_of_every_kind() {
        let kinds = trigger_events().map(|trigger_event| trigger_event.kind());
        assert_eq!(kinds, ["clock", "heartbeat", "webhook", "files", "events"]);
    }
}
