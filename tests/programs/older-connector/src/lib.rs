//! A connector that was built for version 0.1.0 of the interface: it repeats what it gets.

use bindings::agent_host::plugin::types::Part;
use bindings::exports::agent_host::plugin::connector::{
    Batch, ConnectorError, Delivery, Description, Guest, Incoming, Intake, Outgoing,
};

struct Program;

impl Guest for Program {
    fn describe() -> Description {
        Description {
            id: "older-connector".to_owned(),
            summary: "Repeats what it gets.".to_owned(),
            configuration: r#"{"type":"object"}"#.to_owned(),
            intake: vec![Intake::Webhook],
            text_limit: 4_096,
        }
    }

    fn receive(
        _configuration: String,
        delivery: Delivery,
    ) -> Result<Vec<Incoming>, ConnectorError> {
        let text = String::from_utf8_lossy(&delivery.body).into_owned();
        Ok(vec![Incoming {
            id: "1".to_owned(),
            sender: "anna".to_owned(),
            reply_to: "back".to_owned(),
            content: vec![Part::Text(text)],
            sent_ms: 1_700_000_000_000,
        }])
    }

    fn poll(_configuration: String, cursor: Option<String>) -> Result<Batch, ConnectorError> {
        Ok(Batch {
            messages: Vec::new(),
            cursor,
            next_ms: 1_000,
        })
    }

    fn send(_configuration: String, message: Outgoing) -> Result<String, ConnectorError> {
        match message.content.as_slice() {
            [Part::Text(text)] => Ok(format!("{}:{text}", message.reply_to)),
            _ => Err(ConnectorError::Rejected("it is no text".to_owned())),
        }
    }
}

mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit/frozen/0.1.0",
        world: "connector-plugin",
        generate_all,
    });

    use super::Program;
    export!(Program);
}
