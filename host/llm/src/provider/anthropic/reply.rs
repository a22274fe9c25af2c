//! A message of Anthropic's being put together, from the events of a stream or from the whole.

use crate::delta::Feed;
use crate::incoming::{
    StreamChunk, chunk_of, count_of, index_of, is_object, problem_of, settled_arguments,
    settled_stop, stop_of,
};
use crate::provider::{Answer, Assembly, Broken, CALLS_MAX, OwnWork, grow_arguments};
use crate::sse::Event;
use crate::thoughts::Thoughts;
use domain::message::Part;
use domain::model::Usage;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A content block in the making.
struct Block {
    content: Content,
    /// JSON that comes in chunks.
    json: String,
    closed: bool,
    /// Chunks of it were not understood, so it cannot be sent back as it was.
    lossy: bool,
}

enum Content {
    Text(Thoughts),
    Call {
        id: String,
        name: String,
        initial: Value,
    },
    /// Anything else, as it came.
    Other(Map<String, Value>),
}

impl Block {
    fn begin(start: &Value, feed: &Feed<'_>) -> Result<Self, Broken> {
        let no = || Broken::garbage("a block in it has no form", start.to_string());
        let fields = start.as_object().ok_or_else(no)?;
        let word = |name: &str| {
            fields
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let content = match word("type").as_str() {
            "" => return Err(no()),
            "text" => {
                let mut text = Thoughts::default();
                text.push(&word("text"), feed);
                Content::Text(text)
            }
            "tool_use" if word("name").is_empty() => {
                return Err(Broken::garbage(
                    "a call in it names no tool",
                    start.to_string(),
                ));
            }
            "tool_use" => Content::Call {
                id: word("id"),
                name: word("name"),
                initial: fields.get("input").cloned().unwrap_or_default(),
            },
            _ => Content::Other(fields.clone()),
        };
        Ok(Self {
            content,
            json: String::new(),
            closed: false,
            lossy: false,
        })
    }

    /// Shows what it began with; text was shown as it was read. `calls` counts the calls so far.
    fn show(&self, calls: &mut u32, feed: &Feed<'_>) {
        match &self.content {
            Content::Call { name, .. } => {
                feed.call(*calls, name);
                *calls += 1;
            }
            Content::Other(fields) => {
                let thought = fields.get("thinking").and_then(Value::as_str);
                feed.thinking(thought.unwrap_or_default());
            }
            Content::Text(_) => {}
        }
    }

    fn take(&mut self, delta: &Value, feed: &Feed<'_>) -> Result<(), Broken> {
        let word = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        match (&mut self.content, word("type")) {
            (Content::Text(text), "text_delta") => {
                text.push(word("text"), feed);
            }
            (Content::Other(fields), "thinking_delta") => {
                append(fields, "thinking", word("thinking"));
                feed.thinking(word("thinking"));
            }
            (Content::Other(fields), "signature_delta") => {
                append(fields, "signature", word("signature"))
            }
            (Content::Call { .. } | Content::Other(_), "input_json_delta") => {
                grow_arguments(&mut self.json, word("partial_json"))?
            }
            (Content::Text(_), "thinking_delta") => feed.thinking(word("thinking")),
            (Content::Call { .. }, "thinking_delta" | "signature_delta" | "text_delta")
            | (Content::Text(_), "input_json_delta")
            | (Content::Other(_), "text_delta") => {
                return Err(Broken::garbage(
                    "a piece of it belongs to another kind of block",
                    delta.to_string(),
                ));
            }
            // Kinds of chunks that this host does not know, such as citations.
            (Content::Other(_), _) => self.lossy = true,
            (Content::Text(_) | Content::Call { .. }, _) => {}
        }
        Ok(())
    }

    /// Returns whether nothing of it is missing, though its end did not come.
    fn is_whole(&self) -> bool {
        match &self.content {
            Content::Text(_) => true,
            Content::Call { .. } => is_object(&self.json),
            Content::Other(_) => self.json.is_empty() || is_object(&self.json),
        }
    }

    /// Returns the parts of it: what people are not shown, and what they are.
    fn parts(self, index: usize, by: Source<'_>, feed: &Feed<'_>) -> Result<Vec<Part>, Broken> {
        let opaque = |value: Value| Part::Opaque {
            provider: by.provider.to_owned(),
            model: by.model.to_owned(),
            value,
        };
        let part = match self.content {
            Content::Text(text) => {
                let said = text.finish(feed);
                let thoughts = (!said.thoughts.trim().is_empty())
                    .then(|| opaque(json!({"type": "text", "text": said.thoughts})));
                let text = (!said.text.is_empty()).then(|| Part::text(said.text));
                return Ok(thoughts.into_iter().chain(text).collect());
            }
            Content::Call { id, name, initial } => {
                let mut arguments = self.json;
                if arguments.is_empty() {
                    let text = match initial {
                        Value::String(text) if text.trim().is_empty() => "{}".to_owned(),
                        initial => initial.to_string(),
                    };
                    grow_arguments(&mut arguments, &text)?;
                }
                arguments = settled_arguments(arguments);
                Part::Call {
                    call_id: if id.is_empty() {
                        format!("call_{index}")
                    } else {
                        id
                    },
                    name,
                    arguments,
                }
            }
            Content::Other(_) if self.lossy => return Ok(Vec::new()),
            Content::Other(mut fields) => {
                if !self.json.is_empty() {
                    let input = serde_json::from_str(&self.json);
                    fields.insert(
                        "input".to_owned(),
                        input
                            .map_err(|_| Broken::garbage("a block in it is not JSON", self.json))?,
                    );
                }
                opaque(Value::Object(fields))
            }
        };
        Ok(vec![part])
    }
}

fn append(fields: &mut Map<String, Value>, name: &str, more: &str) {
    match fields.get_mut(name) {
        Some(Value::String(text)) => text.push_str(more),
        Some(_) | None => {
            fields.insert(name.to_owned(), Value::String(more.to_owned()));
        }
    }
}

/// Takes the usage that was reported. Servers report it at the beginning, at the end, or both: the
/// highest counts hold.
fn add_usage(usage: &mut Option<Counts>, said: Option<&Value>) {
    let Some(said) = said.filter(|said| said.is_object()) else {
        return;
    };
    let counts = usage.get_or_insert_default();
    let take = |to: &mut u64, name: &str| {
        let count = said.get(name).and_then(count_of).unwrap_or_default();
        *to = count.max(*to);
    };
    take(&mut counts.fresh, "input_tokens");
    take(&mut counts.written, "cache_creation_input_tokens");
    take(&mut counts.cached, "cache_read_input_tokens");
    take(&mut counts.output, "output_tokens");
}

/// Tokens as Anthropic counts them: the three kinds of input apart.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    fresh: u64,
    written: u64,
    cached: u64,
    output: u64,
}

impl From<Counts> for Usage {
    fn from(counts: Counts) -> Self {
        let input_tokens = counts
            .fresh
            .saturating_add(counts.written)
            .saturating_add(counts.cached);
        Self {
            input_tokens,
            output_tokens: counts.output,
            cached_tokens: counts.cached,
        }
    }
}

/// The provider and model that a reply comes from.
#[derive(Clone, Copy)]
struct Source<'a> {
    provider: &'a str,
    model: &'a str,
}

/// Puts finished blocks together.
fn answer(
    blocks: impl Iterator<Item = Block>,
    stop: &str,
    counts: Option<Counts>,
    by: Source<'_>,
    feed: &Feed<'_>,
) -> Result<Answer, Broken> {
    let mut parts = Vec::new();
    for (index, block) in blocks.enumerate() {
        parts.extend(block.parts(index, by, feed)?);
    }
    if parts
        .iter()
        .filter(|part| matches!(part, Part::Call { .. }))
        .count()
        > CALLS_MAX
    {
        return Err(Broken::garbage("it has more than 128 calls", ""));
    }
    Ok(Answer {
        stop: settled_stop(stop_of(stop, false), &parts),
        parts,
        usage: counts.map(Usage::from),
        own_work: OwnWork::default(),
    })
}

/// Reads a reply that came in one piece. It is all there, whatever it says of its end.
pub(super) fn whole(
    body: &Value,
    provider: &str,
    model: &str,
    feed: &Feed<'_>,
) -> Result<Answer, Broken> {
    if let Some(problem) = problem_of(body) {
        return Err(Broken::Reported(problem));
    }
    let no = |problem| Broken::garbage(problem, body.to_string());
    let stop = body.get("stop_reason").and_then(Value::as_str);
    let text;
    let content = match body.get("content") {
        Some(Value::Array(blocks)) => blocks.as_slice(),
        Some(Value::String(said)) => {
            text = [json!({"type": "text", "text": said})];
            text.as_slice()
        }
        Some(Value::Null) if stop.is_some() => &[],
        Some(_) | None => return Err(no("it has no content")),
    };
    let stop = match stop {
        None if content.is_empty() => return Err(no("it has no stop reason")),
        stop => stop.unwrap_or("end_turn"),
    };
    let mut blocks = Vec::new();
    let mut calls = 0;
    for block in content {
        let block = Block::begin(block, feed)?;
        block.show(&mut calls, feed);
        blocks.push(block);
    }
    let mut counts = None;
    add_usage(&mut counts, body.get("usage"));
    answer(
        blocks.into_iter(),
        stop,
        counts,
        Source { provider, model },
        feed,
    )
}

/// A streamed reply being put together.
pub(super) struct Streamed {
    provider: String,
    model: String,
    /// The blocks by the server's index, and those that have the same in order.
    blocks: BTreeMap<(u64, u32), Block>,
    calls: u32,
    stop: Option<String>,
    counts: Option<Counts>,
    done: bool,
}

impl Streamed {
    pub(super) fn new(provider: &str, model: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            blocks: BTreeMap::new(),
            calls: 0,
            stop: None,
            counts: None,
            done: false,
        }
    }

    fn start(&mut self, index: u64, event: &Value, feed: &Feed<'_>) -> Result<(), Broken> {
        let block = Block::begin(event.get("content_block").unwrap_or(&Value::Null), feed)?;
        block.show(&mut self.calls, feed);
        let last = self
            .last_at(index)
            .map(|(place, block)| (*place, block.closed));
        let is_open = last.is_some_and(|(_, closed)| !closed);
        // Some servers give every block the same index.
        let place = last.map_or((index, 0), |((_, generation), _)| (index, generation + 1));
        self.blocks.insert(place, block);
        if is_open || self.blocks.len() > 2 * CALLS_MAX {
            return Err(Broken::garbage(
                "a block in it begins twice, or it has too many",
                event.to_string(),
            ));
        }
        Ok(())
    }

    /// Returns the last block of an index.
    fn last_at(&self, index: u64) -> Option<(&(u64, u32), &Block)> {
        self.blocks
            .range((index, 0)..=(index, u32::MAX))
            .next_back()
    }

    /// Begins the block of a chunk that no beginning came before, if the chunk tells its kind.
    fn begin_at(&mut self, index: u64, delta: &Value, feed: &Feed<'_>) -> Result<(), Broken> {
        let kind = match delta.get("type").and_then(Value::as_str) {
            Some("text_delta") => "text",
            Some("thinking_delta") => "thinking",
            Some(_) | None => return Ok(()),
        };
        if self.last_at(index).is_some() {
            return Ok(());
        }
        let start = json!({"content_block": {"type": kind}});
        self.start(index, &start, feed)
    }

    /// Returns the index of the block that an event is about. Without one it is the last, or the
    /// next where one begins.
    fn index_in(&self, name: &str, event: &Value) -> u64 {
        let last = self.blocks.last_key_value();
        let last = last.map(|((index, _), _)| *index);
        let meant = match last {
            Some(last) if name == "content_block_start" => last.saturating_add(1),
            Some(last) => last,
            None => 0,
        };
        event.get("index").and_then(index_of).unwrap_or(meant)
    }

    fn open_block(&mut self, index: u64, event: &Value) -> Result<&mut Block, Broken> {
        let last = self.last_at(index).map(|(place, _)| *place);
        let block = last.and_then(|place| self.blocks.get_mut(&place));
        block.filter(|block| !block.closed).ok_or_else(|| {
            Broken::garbage("a piece of it belongs to no open block", event.to_string())
        })
    }

    fn take_event(&mut self, name: &str, event: &Value, feed: &Feed<'_>) -> Result<(), Broken> {
        let index = self.index_in(name, event);
        match name {
            "message_start" if !self.blocks.is_empty() => {
                return Err(Broken::garbage("it begins twice", event.to_string()));
            }
            "message_start" => add_usage(&mut self.counts, event.pointer("/message/usage")),
            "content_block_start" | "content_block_delta" if self.stop.is_some() => {
                return Err(Broken::garbage(
                    "it goes on after its end",
                    event.to_string(),
                ));
            }
            "content_block_start" => self.start(index, event, feed)?,
            "content_block_delta" => {
                let delta = event.get("delta").unwrap_or(&Value::Null);
                self.begin_at(index, delta, feed)?;
                self.open_block(index, event)?.take(delta, feed)?;
            }
            "content_block_stop" => self.open_block(index, event)?.closed = true,
            "message_delta" => {
                let stop = event.pointer("/delta/stop_reason").and_then(Value::as_str);
                if let Some(stop) = stop.filter(|stop| !stop.is_empty()) {
                    self.stop = Some(stop.to_owned());
                }
                add_usage(&mut self.counts, event.get("usage"));
            }
            "message_stop" => self.done = true,
            "error" => {
                return Err(Broken::Reported(
                    problem_of(event).unwrap_or_else(|| event.clone()),
                ));
            }
            "" => {
                return Err(Broken::garbage(
                    "a piece of it has no type",
                    event.to_string(),
                ));
            }
            // Pings, and kinds of events that this host does not know.
            _ => {}
        }
        Ok(())
    }
}

impl Assembly for Streamed {
    fn take(&mut self, event: &Event, feed: &Feed<'_>) -> Result<(), Broken> {
        // Servers that translate between dialects send the mark of the other.
        let value = match chunk_of(event)? {
            StreamChunk::Value(value) => value,
            StreamChunk::End => {
                self.done = true;
                return Ok(());
            }
            StreamChunk::Words => return Ok(()),
        };
        let name = value.get("type").and_then(Value::as_str);
        match (name.unwrap_or(&event.name), problem_of(&value)) {
            ("", Some(problem)) => Err(Broken::Reported(problem)),
            (name, _) => self.take_event(name, &value, feed),
        }
    }

    fn ended(&self) -> bool {
        self.done
    }

    /// Some servers leave out the last mark, so a stop reason and a clean end of the body will do.
    /// Others give no reason: the mark behind blocks that have ended will do.
    fn finish(self: Box<Self>, feed: &Feed<'_>) -> Result<Answer, Broken> {
        let mut blocks = self.blocks.values();
        let is_closed = blocks.clone().all(|block| block.closed);
        let stop = match &self.stop {
            Some(stop) => stop.as_str(),
            None if self.done && is_closed && !self.blocks.is_empty() => "end_turn",
            None => return Err(Broken::CutShort),
        };
        if !blocks.all(|block| block.closed || block.is_whole()) {
            return Err(Broken::garbage("a block in it does not end", ""));
        }
        let by = Source {
            provider: &self.provider,
            model: &self.model,
        };
        answer(self.blocks.into_values(), stop, self.counts, by, feed)
    }
}
