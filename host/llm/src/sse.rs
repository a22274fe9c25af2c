//! Server-sent events out of bytes, with a limit on everything that is kept.
//!
//! The parsers at hand keep a line until it ends, however long it grows; a peer that sends 100 MB
//! without a line break must not cost more here than [`LINE_BYTES_MAX`].

/// Bytes of one line, and of the data of one event.
pub(crate) const LINE_BYTES_MAX: usize = 1 << 20;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Event {
    /// The kind of the event; empty where the peer does not give it.
    pub(crate) name: String,
    /// Its data lines.
    pub(crate) data: String,
}

/// Bytes that are no event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// A line, or the data of an event, is longer than [`LINE_BYTES_MAX`].
    LineTooLong,
    /// A line is not UTF-8.
    NotUtf8,
}

/// Reads events from bytes that come in any portions. An event counts once the empty line after it
/// was seen, or the beginning of another one, or the end of the stream.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    after_return: bool,
    begun: bool,
}

impl Decoder {
    /// Takes more bytes and adds the events that they complete. After an error nothing more can be
    /// read.
    pub(crate) fn push(
        &mut self,
        mut bytes: &[u8],
        events: &mut Vec<Event>,
    ) -> Result<(), Malformed> {
        while let Some(&next) = bytes.first() {
            if std::mem::take(&mut self.after_return) && next == b'\n' {
                bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (chunk, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.line.len() + chunk.len() > LINE_BYTES_MAX {
                return Err(Malformed::LineTooLong);
            }
            self.line.extend_from_slice(chunk);
            let Some((terminator, after)) = rest.split_first() else {
                break;
            };
            self.after_return = *terminator == b'\r';
            bytes = after;
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, events)?;
            self.line = line;
            self.line.clear();
        }
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], events: &mut Vec<Event>) -> Result<(), Malformed> {
        let text = std::str::from_utf8(line).map_err(|_| Malformed::NotUtf8)?;
        let text = if self.begun {
            text
        } else {
            text.strip_prefix('\u{feff}').unwrap_or(text)
        };
        self.begun = true;
        if text.is_empty() {
            self.complete(events);
            return Ok(());
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                // Some servers leave out the empty lines.
                if self.has_data && value.starts_with(['{', '[']) && is_json(&self.event.data) {
                    self.complete(events);
                }
                if self.event.data.len() + value.len() >= LINE_BYTES_MAX {
                    return Err(Malformed::LineTooLong);
                }
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => {
                if self.has_data && !self.event.name.is_empty() {
                    self.complete(events);
                }
                value.clone_into(&mut self.event.name);
            }
            // A field of older llama.cpp servers.
            "error" => {
                self.complete(events);
                self.has_data = true;
                self.event = Event {
                    name: field.to_owned(),
                    data: value.to_owned(),
                };
            }
            // Comments, ids, retry hints and whatever else there may be.
            _ => {}
        }
        Ok(())
    }

    fn complete(&mut self, events: &mut Vec<Event>) {
        let event = std::mem::take(&mut self.event);
        // One without a word is a heartbeat.
        if std::mem::take(&mut self.has_data) && !event.data.trim().is_empty() {
            events.push(event);
        }
    }

    /// Returns the last events of a stream that has ended without an empty line, if they are whole.
    pub(crate) fn finish(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        let line = std::mem::take(&mut self.line);
        if self.take_line(&line, &mut events).is_ok() {
            self.complete(&mut events);
        }
        events.retain(|event| event.data.trim() == "[DONE]" || is_json(&event.data));
        events
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(portions: &[&[u8]]) -> Result<Vec<(String, String)>, Malformed> {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        for portion in portions {
            decoder.push(portion, &mut events)?;
        }
        Ok(events
            .into_iter()
            .map(|event| (event.name, event.data))
            .collect())
    }

    fn pair(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn events_are_read_whatever_the_line_ends_and_portions_are() {
        let text = "\u{feff}: hello\r\nevent: a\r\ndata: 1\r\ndata:2\r\n\r\nid: 7\n\ndata: \
                    ä\n\ndata: \n\nevent: c\ndata\n\nevent: b\rdata: 3\r\r"
            .as_bytes();
        let expected = vec![pair("a", "1\n2"), pair("", "ä"), pair("b", "3")];
        assert_eq!(read(&[text]).unwrap(), expected);
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(read(&bytes).unwrap(), expected);
    }

    #[test]
    fn an_event_that_was_not_completed_does_not_count() {
        assert_eq!(
            read(&[b"data: 1\n\ndata: 2\n"]).unwrap(),
            vec![pair("", "1")]
        );
    }

    #[test]
    fn events_are_told_apart_without_empty_lines() {
        let text = b"event: a\ndata: {\"n\": 1}\nevent: b\ndata: {\"n\": 2}\ndata: [DONE]\n\n";
        let expected = vec![
            pair("a", "{\"n\": 1}"),
            pair("b", "{\"n\": 2}"),
            pair("", "[DONE]"),
        ];
        assert_eq!(read(&[text]).unwrap(), expected);
        let error = b"error: {\"code\": 400}\n\n";
        assert_eq!(
            read(&[error]).unwrap(),
            vec![pair("error", "{\"code\": 400}")]
        );
    }

    #[test]
    fn the_last_event_counts_at_the_end_of_the_stream_if_it_is_whole() {
        for (text, data) in [
            ("data: {\"n\": 1}", Some("{\"n\": 1}")),
            ("data: [DONE]\n", Some("[DONE]")),
            ("data: {\"n\": ", None),
            ("data: 1\n\n", None),
        ] {
            let mut decoder = Decoder::default();
            decoder.push(text.as_bytes(), &mut Vec::new()).unwrap();
            let last = decoder.finish().pop().map(|event| event.data);
            assert_eq!(last.as_deref(), data, "{text}");
        }
    }

    #[test]
    fn a_line_may_not_grow_without_end() {
        let chunk = vec![b'x'; 64 << 10];
        let portions = vec![chunk.as_slice(); 17];
        assert_eq!(read(&portions), Err(Malformed::LineTooLong));
        let line = [b"data: ".as_slice(), &chunk, b"\n"].concat();
        assert_eq!(
            read(&vec![line.as_slice(); 17]),
            Err(Malformed::LineTooLong)
        );
    }

    #[test]
    fn bytes_that_are_not_text_are_an_error() {
        assert_eq!(read(&[b"data: \xff\xfe\n\n"]), Err(Malformed::NotUtf8));
    }
}
