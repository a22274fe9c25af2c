//! Thoughts that a server leaves in the text of a reply, between tags at its beginning, in letters
//! of either case.
//!
//! People are shown what follows. The thoughts are kept as they came, because some models want them
//! back.

use crate::delta::Feed;

/// The tags between which models think, as their servers leave them in a text.
static TAGS: [(&str, &str); 15] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    // The thoughts before it stood in a field of their own.
    ("</think>", ""),
    ("</thinking>", ""),
    ("<|channel|>final<|message|>", ""),
    ("<|start|>assistant<|channel|>final<|message|>", ""),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("◁think▷", "◁/think▷"),
    (
        "<|channel|>analysis<|message|>",
        "<|start|>assistant<|channel|>final<|message|>",
    ),
];
/// The end of thoughts whose beginning stands in the prompt, on a line of its own.
const BARE_END: &str = "\n</think>\n";

/// A text that is being read.
#[derive(Default)]
pub(crate) struct Thoughts {
    state: State,
    /// The end of what came, as far as it may belong to a tag.
    pending: String,
    thoughts: String,
    text: String,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but blanks and thoughts so far.
    #[default]
    Begin,
    /// Between two tags; the closing one.
    Within(&'static str),
    /// In the text that people are shown.
    Text,
}

/// Returns whether a text begins with another one, in letters of either case.
fn begins(text: &str, with: &str) -> bool {
    text.get(..with.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(with))
}

/// Returns the place of a tag, in letters of either case, in a text.
fn place_of(tag: &str, text: &str) -> Option<usize> {
    text.to_ascii_lowercase().find(&tag.to_ascii_lowercase())
}

/// A text, and the thoughts before it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// The thoughts with their tags; empty for none.
    pub(crate) thoughts: String,
    /// The text without them.
    pub(crate) text: String,
}

impl Thoughts {
    /// Takes more of the text, and shows it as what it is.
    pub(crate) fn push(&mut self, chunk: &str, feed: &Feed<'_>) {
        if self.state == State::Text {
            self.text.push_str(chunk);
            feed.text(chunk);
            return;
        }
        self.pending.push_str(chunk);
        while self.advance(feed) {}
    }

    /// Settles some of what is held; false when more has to come first.
    fn advance(&mut self, feed: &Feed<'_>) -> bool {
        match self.state {
            State::Begin => {
                let begun = self.pending.trim_start();
                let blanks = self.pending.len() - begun.len();
                if let Some((opening, closing)) = TAGS.iter().find(|(tag, _)| begins(begun, tag)) {
                    let after = blanks + opening.len();
                    self.thoughts
                        .push_str(self.pending.get(..after).unwrap_or_default());
                    self.pending.drain(..after);
                    self.state = State::Within(closing);
                    return true;
                }
                if TAGS.iter().any(|(tag, _)| begins(tag, begun)) {
                    return false;
                }
                self.show_text(feed);
                false
            }
            State::Within(closing) => {
                if let Some(at) = place_of(closing, &self.pending) {
                    feed.thinking(self.pending.get(..at).unwrap_or_default());
                    let after = at + closing.len();
                    self.thoughts
                        .push_str(self.pending.get(..after).unwrap_or_default());
                    self.pending.drain(..after);
                    self.state = State::Begin;
                    return true;
                }
                let mut kept = closing.len().min(self.pending.len());
                let is_end = |kept: usize| {
                    let end = self.pending.get(self.pending.len() - kept..);
                    end.is_some_and(|end| begins(closing, end))
                };
                while !is_end(kept) {
                    kept -= 1;
                }
                let shown = self.pending.len() - kept;
                feed.thinking(self.pending.get(..shown).unwrap_or_default());
                self.thoughts
                    .push_str(self.pending.get(..shown).unwrap_or_default());
                self.pending.drain(..shown);
                false
            }
            State::Text => false,
        }
    }

    /// Shows what is held as text. Blanks between thoughts and text are kept with the thoughts.
    fn show_text(&mut self, feed: &Feed<'_>) {
        let mut pending = std::mem::take(&mut self.pending);
        if !self.thoughts.is_empty() {
            let blanks = pending.len() - pending.trim_start().len();
            self.thoughts.extend(pending.drain(..blanks));
        }
        feed.text(&pending);
        self.text.push_str(&pending);
        self.state = State::Text;
    }

    /// Returns whether there is no text, nor a beginning of one.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.pending.is_empty()
    }

    /// Returns text and thoughts, all of which have come.
    pub(crate) fn finish(mut self, feed: &Feed<'_>) -> Split {
        match self.state {
            State::Begin => self.show_text(feed),
            State::Within(_) => {
                feed.thinking(&self.pending);
                self.thoughts.push_str(&self.pending);
            }
            State::Text => {}
        }
        if self.thoughts.is_empty()
            && let Some(at) = self.text.find(BARE_END)
        {
            let after = at + BARE_END.len();
            let blanks = self
                .text
                .get(after..)
                .map_or(0, |rest| rest.len() - rest.trim_start().len());
            self.thoughts = self.text.drain(..after + blanks).collect();
        }
        Split {
            thoughts: self.thoughts,
            text: self.text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::{Delta, DeltaSink};
    use domain::redact::Redactor;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Shown(Mutex<(String, String)>);

    impl DeltaSink for Shown {
        fn delta(&self, _attempt: u32, _seq: u64, delta: Delta) {
            let mut shown = self.0.lock().unwrap();
            match delta {
                Delta::Text(text) => shown.0.push_str(&text),
                Delta::Thinking(text) => shown.1.push_str(&text),
                Delta::CallStarted { .. } | Delta::OwnCall { .. } => {}
            }
        }

        fn discarded(&self, _attempt: u32) {}
    }

    #[test]
    fn thoughts_are_told_from_text_however_they_are_cut() {
        for (given, text, thought) in [
            (
                "<think>\nhm <b>\n</think>\n\nHello!",
                "Hello!",
                "\nhm <b>\n",
            ),
            (" <thinking>a</thinking><think>b</think> Hi", "Hi", "ab"),
            ("[THINK]a[/THINK]Hi", "Hi", "a"),
            ("<Think>a</THINK>Hi", "Hi", "a"),
            ("</think>\n\nHi", "Hi", ""),
            ("<|channel|>final<|message|>Hi", "Hi", ""),
            ("<seed:think>a</seed:think>Hi", "Hi", "a"),
            ("◁think▷a◁/think▷Hi", "Hi", "a"),
            (
                "<|channel|>analysis<|message|>a<|start|>assistant<|channel|>final<|message|>Hi",
                "Hi",
                "a",
            ),
            ("<think>never closed", "", "never closed"),
            ("<thing> is no tag", "<thing> is no tag", ""),
            ("say <think> and </think>", "say <think> and </think>", ""),
            ("  two blanks", "  two blanks", ""),
            ("<th", "<th", ""),
            ("größe <", "größe <", ""),
        ] {
            for size in [1, 3, given.len()] {
                let shown = Shown::default();
                let feed = Feed::new(&shown, 0, &Redactor::default());
                let mut thoughts = Thoughts::default();
                let kinds: Vec<char> = given.chars().collect();
                for chunk in kinds.chunks(size) {
                    thoughts.push(&String::from_iter(chunk), &feed);
                }
                let split = thoughts.finish(&feed);
                feed.finish();
                assert_eq!(split.text, text, "{given:?} by {size}");
                assert_eq!(
                    *shown.0.lock().unwrap(),
                    (text.to_owned(), thought.to_owned())
                );
                assert_eq!(format!("{}{}", split.thoughts, split.text), given);
            }
        }
    }

    /// The beginning stands in the prompt then.
    #[test]
    fn thoughts_that_only_end_are_told_from_the_text_once_all_has_come() {
        let feed = Feed::new(&crate::delta::NoDeltas, 0, &Redactor::default());
        let mut thoughts = Thoughts::default();
        thoughts.push("let me see\n</think>\n\nHello!", &feed);
        let split = thoughts.finish(&feed);
        assert_eq!(
            (split.text.as_str(), split.thoughts.as_str()),
            ("Hello!", "let me see\n</think>\n\n")
        );
    }
}
