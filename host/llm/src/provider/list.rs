//! A provider's own list of its models. To ask for it shows that the provider answers and knows the
//! key, and costs nothing.

use crate::failure::{Failure, Reason};
use crate::health::ListedNames;
use crate::key::clean;
use crate::peer::Peer;
use crate::provider::exchange::{Remote, caller, credentials};
use crate::trail::{Traced, Trail};
use bytes::Bytes;
use domain::egress::Method;
use egress::awake::{Instant, timeout_at};
use egress::{Body, Request};
use http::header::{ACCEPT_ENCODING, HeaderValue};
use serde_json::Value;
use std::time::Duration;

/// Milliseconds for a list, from its request to its end.
const LIST_MS_MAX: u64 = 10_000;
/// Bytes of a list.
const LIST_BYTES_MAX: usize = 4 << 20;
/// Models of a list that are kept.
const LISTED_MODELS_MAX: usize = 1_000;
/// Characters of a model's name.
const NAME_CHARS_MAX: usize = 200;

impl Remote {
    /// Asks for the list of models. None if the server has none to give.
    ///
    /// # Errors
    /// The provider does not answer in time, refuses, or answers something else than a list.
    pub(crate) async fn list(&self, provider: &str) -> Result<Option<ListedNames>, Failure> {
        let peer = Peer {
            provider,
            model: "",
            key: self.key(),
        };
        let until = Instant::now() + Duration::from_millis(LIST_MS_MAX);
        match timeout_at(until, Box::pin(self.ask_for_list(peer))).await {
            Ok(listed) => listed,
            Err(_) => Err(peer.unavailable(Reason::FirstToken, "")),
        }
    }

    async fn ask_for_list(&self, peer: Peer<'_>) -> Result<Option<ListedNames>, Failure> {
        let mut headers = self.dialect.headers(self.key());
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let request = Request {
            caller: caller(peer.provider, Traced.records(), &self.redactor),
            method: Method::Get,
            url: self.list_url.clone(),
            bound: credentials(&mut headers),
            headers,
            body: Bytes::new(),
        };
        let response = self
            .egress
            .send(request, &self.grants)
            .await
            .map_err(|error| peer.unsent(&error).1)?;
        let status = response.status;
        let body = read(peer, response.body).await?;
        match status.as_u16() {
            // It answers, and has no such route.
            404 | 405 | 501 => Ok(None),
            _ if status.is_success() => serde_json::from_slice(&body)
                .ok()
                .and_then(|body: Value| listed(&body))
                .map(Some)
                .ok_or_else(|| {
                    let sample = String::from_utf8_lossy(&body);
                    peer.garbage("it is no list of models", &sample)
                }),
            other => Err(peer.status(other, &String::from_utf8_lossy(&body), None)),
        }
    }
}

async fn read(peer: Peer<'_>, mut body: Body) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    loop {
        match body.chunk().await {
            Ok(Some(chunk)) if bytes.len() + chunk.len() <= LIST_BYTES_MAX => bytes.extend(chunk),
            Ok(Some(_)) => return Err(peer.garbage("it is larger than 4 MiB", "")),
            Ok(None) => return Ok(bytes),
            Err(error) => return Err(peer.network(Reason::Broken, &error)),
        }
    }
}

/// Reads a list. All dialects agree on its form: `{"data": [{"id": "…"}]}`.
fn listed(body: &Value) -> Option<ListedNames> {
    let data = body.get("data")?.as_array()?;
    let names: Vec<String> = data
        .iter()
        .filter_map(|model| model.get("id")?.as_str())
        .take(LISTED_MODELS_MAX)
        .map(|name| clean(name, None, NAME_CHARS_MAX))
        .collect();
    let has_more = body.get("has_more").and_then(Value::as_bool) == Some(true);
    Some(ListedNames {
        is_cut: has_more || data.len() > LISTED_MODELS_MAX,
        names,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_is_read_whatever_else_stands_in_it_and_cut_at_its_limit() {
        let two = json!({"object": "list", "data": [{"id": "a", "x": 1}, {"id": 5}, {"id": "b"}]});
        let read = listed(&two).unwrap();
        assert_eq!(
            (read.names, read.is_cut),
            (vec!["a".to_owned(), "b".to_owned()], false)
        );
        assert!(
            listed(&json!({"data": [], "has_more": true}))
                .unwrap()
                .is_cut
        );
        let many: Vec<Value> = (0..1_001).map(|id| json!({"id": id.to_string()})).collect();
        let read = listed(&json!({ "data": many })).unwrap();
        assert_eq!((read.names.len(), read.is_cut), (1_000, true));
        for nonsense in [json!([]), json!({"data": {}}), json!("no")] {
            assert_eq!(listed(&nonsense), None);
        }
    }
}
