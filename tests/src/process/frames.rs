//! Event streams as a client reads them.

use super::PATIENCE;
use crate::boxed::Boxed;
use reqwest::Response;
use serde_json::Value;

/// One frame of an event stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The position of a committed event; none for what is ephemeral, and for what is not the last
    /// frame of its event.
    pub id: Option<u64>,
    /// The position to resume from; none for what is ephemeral.
    pub resume: Option<String>,
    /// Its event type.
    pub event: String,
    /// Its data.
    pub data: Value,
}

/// An event stream.
#[derive(Debug)]
pub struct Frames {
    response: Response,
    read: String,
}

impl Frames {
    pub(super) fn of(response: Response) -> Self {
        Self {
            response,
            read: String::new(),
        }
    }

    /// The next frame that is no comment; none at the end of the stream.
    pub fn receive(&mut self) -> Boxed<'_, Option<Frame>> {
        Box::pin(async move {
            loop {
                if let Some((frame, rest)) = self.read.split_once("\n\n") {
                    let frame = parse(frame);
                    self.read = rest.to_owned();
                    match frame {
                        Some(frame) => return Some(frame),
                        None => continue,
                    }
                }
                let chunk = self.response.chunk().await.ok().flatten()?;
                self.read += &String::from_utf8_lossy(&chunk);
            }
        })
    }

    /// All frames up to the first of a type, itself included.
    ///
    /// # Panics
    /// When it does not come.
    pub fn until<'a>(&'a mut self, event: &'a str) -> Boxed<'a, Vec<Frame>> {
        Box::pin(async move {
            let mut frames = Vec::new();
            let reading = async {
                while let Some(frame) = self.receive().await {
                    let last = frame.event == event;
                    frames.push(frame);
                    if last {
                        return true;
                    }
                }
                false
            };
            let found = tokio::time::timeout(PATIENCE, reading)
                .await
                .unwrap_or(false);
            assert!(found, "no {event} came: {frames:?}");
            frames
        })
    }
}

fn parse(text: &str) -> Option<Frame> {
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    };
    let data = serde_json::from_str(field("data:")?).ok()?;
    let resume = field("id:").map(str::to_owned);
    Some(Frame {
        id: resume.as_ref().and_then(|id| id.parse().ok()),
        resume,
        event: field("event:")?.to_owned(),
        data,
    })
}
