//! A connector that does what its configuration names, most of it harm. Otherwise it repeats what
//! it gets.

use plugin::connector::{
    Batch, Body, ConnectorError, Description, Guest, Incoming, IncomingCall, Outgoing, batch,
    incoming, named,
};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{Fields, OutgoingRequest, Scheme};

struct Program;

impl Guest for Program {
    fn describe() -> Description {
        named("rogue-connector")
    }

    fn receive(
        configuration: String,
        incoming_call: IncomingCall,
    ) -> Result<Batch, ConnectorError> {
        let IncomingCall {
            headers,
            query,
            body,
        } = incoming_call;
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(match attack(&configuration) {
            "many" => batch(
                (0..1_001)
                    .map(|id| incoming(id.to_string(), "again"))
                    .collect(),
            ),
            "forge" => batch(vec![incoming("1\n2", "hello")]),
            "talk" => Batch {
                answer: Some("a".repeat(4_097)),
                ..batch(Vec::new())
            },
            _ => Batch {
                answer: Some(format!("{headers:?} {query:?}")),
                ..batch(vec![incoming("1", body)])
            },
        })
    }

    fn poll(configuration: String, cursor: Option<String>) -> Result<Batch, ConnectorError> {
        match attack(&configuration) {
            "far" => Ok(Batch {
                cursor: Some("c".repeat(4_097)),
                ..batch(Vec::new())
            }),
            "spin" => loop {
                std::hint::spin_loop();
            },
            "sleep" => {
                std::thread::sleep(std::time::Duration::from_secs(60));
                Ok(batch(Vec::new()))
            }
            "sense" => Ok(batch(vec![sense()])),
            "refused" => Err(ConnectorError::Unauthorised("the token is gone".to_owned())),
            _ => Ok(Batch {
                cursor: Some(format!("{}x", cursor.unwrap_or_default())),
                ..batch(Vec::new())
            }),
        }
    }

    fn send(configuration: String, message: Outgoing) -> Result<String, ConnectorError> {
        match (attack(&configuration), message.body) {
            ("trap", _) => panic!("the connector gives up"),
            ("forge", _) => Ok("id\nanother".to_owned()),
            (_, Body::Typing) => Ok(String::new()),
            (_, Body::Text(text)) => Ok(format!("{}:{text}", message.chat)),
            (_, other) => Err(ConnectorError::Rejected(format!("{other:?}"))),
        }
    }

    fn fetch(_configuration: String, handle: String) -> Result<Vec<u8>, ConnectorError> {
        // The handle is the number of bytes.
        let bytes = handle.parse();
        bytes.map_or_else(
            |_| Err(ConnectorError::Rejected("there is no such file".to_owned())),
            |bytes: usize| Ok(vec![b'a'; bytes]),
        )
    }
}

plugin::connector::export!(Program);

/// Returns what `{"attack":"…"}` names.
fn attack(configuration: &str) -> &str {
    let named = configuration.strip_prefix(r#"{"attack":""#);
    named
        .and_then(|named| named.strip_suffix(r#""}"#))
        .unwrap_or_default()
}

/// Returns what it can reach.
fn sense() -> Incoming {
    let file = std::fs::read_to_string("/data/file.txt").is_ok();
    let variables: Vec<(String, String)> = std::env::vars().collect();
    incoming("1", format!("{} {file} {variables:?}", request()))
}

/// Sends a request with a placeholder, and returns what became of it.
fn request() -> String {
    let headers = Fields::new();
    let written = headers.append("x-token", b"{{secret.token}}");
    let request = OutgoingRequest::new(headers);
    let addressed = request
        .set_scheme(Some(&Scheme::Https))
        .and(request.set_authority(Some("chat.example.com")))
        .and(request.set_path_with_query(Some("/")));
    match handle(request, None) {
        Err(error) => format!("not sent: {written:?} {addressed:?} {error:?}"),
        Ok(response) => {
            response.subscribe().block();
            match response.get() {
                Some(Ok(Err(error))) => format!("{error:?}"),
                other => format!("{}", other.is_some()),
            }
        }
    }
}
