//! Connectors that keep the host's rules, and connectors that break one.

use super::*;

/// A connector whose polls bring this.
struct Brings(Vec<Incoming>);

impl Connector for Brings {
    fn describe(&self) -> ConnectorDescription {
        ConnectorDescription::new("brings", "Brings.", [Intake::Polling])
    }

    fn receive(&self, _: &Value, _: &IncomingCall) -> Result<Batch, ConnectorError> {
        Ok(Batch::default())
    }

    fn poll(&self, _: &Value, cursor: Option<&str>) -> Result<Batch, ConnectorError> {
        Ok(Batch {
            messages: self.0.clone(),
            cursor: Some(format!("{}+", cursor.unwrap_or_default())),
            ..Batch::default()
        })
    }

    fn send(&self, _: &Value, message: &OutgoingMessage) -> Result<String, ConnectorError> {
        Ok(message.chat.clone())
    }
}

fn incoming(id: &str) -> Incoming {
    Incoming {
        id: id.to_owned(),
        sender: "ada".to_owned(),
        sender_name: None,
        group: None,
        chat: "ada".to_owned(),
        said: Said::Text("hi".to_owned()),
        quotations: Vec::new(),
        attachments: Vec::new(),
        sent_ms: 1,
        acknowledge: None,
        overheard: false,
        replies_to: None,
    }
}

#[test]
fn a_poll_goes_on_where_the_last_one_ended() {
    let mut exchange = Exchange::of(Brings(vec![incoming("1")]));
    assert_eq!(exchange.poll().unwrap().cursor.as_deref(), Some("+"));
    assert_eq!(exchange.poll().unwrap().cursor.as_deref(), Some("++"));
    assert_eq!(exchange.send("ada", "hi").unwrap(), "ada");
}

#[test]
#[should_panic(expected = "have 1 to 256 bytes")]
fn a_message_without_an_id_breaks_a_rule() {
    let _ = Exchange::of(Brings(vec![incoming("")])).poll();
}

#[test]
#[should_panic(expected = "the host leaves any other one out")]
fn a_message_with_an_endless_handle_breaks_a_rule() {
    let mut message = incoming("1");
    message.acknowledge = Some("h".repeat((16 << 10) + 1));
    let _ = Exchange::of(Brings(vec![message])).poll();
}

#[test]
#[should_panic(expected = "the host never calls this")]
fn a_call_of_a_service_that_calls_nobody_breaks_a_rule() {
    let _ = Exchange::of(Brings(Vec::new())).receive(&IncomingCall::default());
}

#[test]
#[should_panic(expected = "the host numbers the choices")]
fn more_buttons_than_there_may_be_break_a_rule() {
    let _ = Exchange::of(Brings(Vec::new())).ask("ada", "Sure?", &[("Yes", "1")]);
}
