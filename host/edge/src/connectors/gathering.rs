//! Inbound messages of a chat that become one input: those that a person sent within a moment.

use domain::connector::{ATTACHMENTS_MAX, GATHERED_MS, GATHERED_SENT_MS, Incoming, Said};
use domain::queue::Mode;
use store::InboundMessageRow;

/// Bytes of words that become one input.
const WORDS_BYTES_MAX: usize = 256 << 10;
/// The word that a directive of the queue begins with.
const DIRECTIVE: &str = "/queue";

/// Returns the number of inbound messages, from the first, that are processed as one.
///
/// They are derived from the stored messages alone, so that they are the same after a crash.
pub(super) fn batch_len(inbound_messages: &[InboundMessageRow]) -> usize {
    let Some(first) = inbound_messages.first() else {
        return 0;
    };
    if stands_alone(&first.message) {
        return 1;
    }
    let mut files = 0;
    let mut bytes = 0;
    let fits = |inbound_message: &&InboundMessageRow| {
        files += inbound_message.message.attachments.len();
        bytes += words_len(&inbound_message.message);
        let sent = inbound_message.message.sent_at.0;
        inbound_message.received.since_ms(first.received) <= GATHERED_MS
            && sent.abs_diff(first.message.sent_at.0) <= GATHERED_SENT_MS
            && is_of_the_same(&inbound_message.message, &first.message)
            && !stands_alone(&inbound_message.message)
            && files <= ATTACHMENTS_MAX
            && bytes <= WORDS_BYTES_MAX
    };
    // The first is always among them.
    inbound_messages.iter().take_while(fits).count().max(1)
}

/// Returns those of a batch that become one input in a queue of this mode. If each message gets a
/// turn of its own, only files and the text sent with them are joined.
pub(super) fn of_one_input(batch: &[InboundMessageRow], mode: Mode) -> &[InboundMessageRow] {
    match mode {
        Mode::Followup => batch.get(..with_files_len(batch)).unwrap_or_default(),
        Mode::Steer | Mode::Collect | Mode::Interrupt => batch,
    }
}

/// Returns the number of inbound messages, from the first, that form one message with its files: at
/// most one of them has words, and at most one has no file.
fn with_files_len(batch: &[InboundMessageRow]) -> usize {
    let mut worded = 0;
    let mut fileless = 0;
    let is_part = |inbound_message: &&InboundMessageRow| {
        worded += usize::from(inbound_message.message.has_words());
        fileless += usize::from(inbound_message.message.attachments.is_empty());
        worded <= 1 && fileless <= 1
    };
    batch.iter().take_while(is_part).count()
}

/// Returns the number of inbound messages, from the first, that are of the same person in the same
/// place.
pub(super) fn same_sender_len(inbound_messages: &[InboundMessageRow]) -> usize {
    let Some(first) = inbound_messages.first() else {
        return 0;
    };
    inbound_messages
        .iter()
        .take_while(|inbound_message| is_of_the_same(&inbound_message.message, &first.message))
        .count()
}

/// Returns the words of inbound messages that become one input, with a line for each of their
/// files.
pub(super) fn joined_text(inbound_messages: &[InboundMessageRow], files: &[String]) -> String {
    let mut lines: Vec<String> = inbound_messages
        .iter()
        .filter_map(|inbound_message| inbound_message.message.said_words())
        .collect();
    lines.extend_from_slice(files);
    lines.join("\n")
}

/// Returns whether a message is never joined with others: it is a pressed button, an edit without
/// new words, or a directive.
fn stands_alone(message: &Incoming) -> bool {
    matches!(message.said, Said::Button { .. } | Said::Aside { .. }) || is_directive(message)
}

/// Returns whether a message may be a directive of the queue.
pub(super) fn is_directive(message: &Incoming) -> bool {
    match &message.said {
        Said::Button { .. } | Said::Aside { .. } => false,
        Said::Text { text } => text
            .split_whitespace()
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case(DIRECTIVE)),
    }
}

fn is_of_the_same(message: &Incoming, other: &Incoming) -> bool {
    message.group == other.group && (message.group.is_some() || message.sender == other.sender)
}

/// Returns the bytes of all words in a message, those of others among them.
fn words_len(message: &Incoming) -> usize {
    message.said_words().map_or(0, |words| words.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::connector::{Attachment, Quotation, QuotationKind};
    use domain::id::TriggerEventId;
    use domain::time::Timestamp;
    use uuid::Uuid;

    /// Returns an inbound message of a person in a chat of two.
    fn inbound_message(id: &str, text: &str, received: u64) -> InboundMessageRow {
        InboundMessageRow {
            id: TriggerEventId(Uuid::new_v4()),
            connector: "telegram".parse().unwrap(),
            message: Incoming {
                id: id.to_owned(),
                sender: "7".to_owned(),
                sender_name: Some("Ada".to_owned()),
                group: None,
                chat: "7".to_owned(),
                said: Said::Text {
                    text: text.to_owned(),
                },
                quotations: Vec::new(),
                attachments: Vec::new(),
                sent_at: Timestamp(received),
            },
            received: Timestamp(received),
            outcome: None,
            position: 1,
        }
    }

    fn quotation(text: String) -> Quotation {
        Quotation {
            kind: QuotationKind::Quoted,
            author: None,
            text,
        }
    }

    fn file() -> Attachment {
        Attachment {
            name: "a.txt".to_owned(),
            media_type: "text/plain".to_owned(),
            handle: "1".to_owned(),
            size: None,
        }
    }

    #[test]
    fn what_a_person_sends_within_a_moment_becomes_one_input() {
        let inbound_messages = [
            inbound_message("1", "one", 0),
            inbound_message("2", "two", GATHERED_MS),
            inbound_message("3", "three", GATHERED_MS + 1),
        ];
        assert_eq!(batch_len(&inbound_messages), 2);
        assert_eq!(
            joined_text(&inbound_messages[..2], &["[a file]".to_owned()]),
            "one\ntwo\n[a file]"
        );
        assert_eq!(batch_len(&inbound_messages[2..]), 1);
        assert_eq!(batch_len(&[]), 0);
    }

    #[test]
    fn what_waited_at_its_service_is_told_apart_by_when_it_was_sent() {
        let sent = |id: &str, sent_at: u64| {
            let mut waited = inbound_message(id, id, 0);
            waited.message.sent_at = Timestamp(sent_at);
            waited
        };
        let waited = [
            sent("1", 5_000),
            sent("2", 5_000 + GATHERED_SENT_MS),
            sent("3", 5_001 + GATHERED_SENT_MS),
        ];
        assert_eq!(batch_len(&waited), 2);
        assert_eq!(batch_len(&[sent("1", 5_000), sent("2", 3_999)]), 1);
    }

    #[test]
    fn each_message_is_one_input_where_each_has_a_turn_of_its_own() {
        let mut batch = [
            inbound_message("1", "one", 0),
            inbound_message("2", "two", 0),
        ];
        for (mode, count) in [
            (Mode::Followup, 1),
            (Mode::Steer, 2),
            (Mode::Collect, 2),
            (Mode::Interrupt, 2),
        ] {
            assert_eq!(of_one_input(&batch, mode).len(), count, "{mode:?}");
        }
        batch[1].message.said = Said::Text {
            text: String::new(),
        };
        batch[1].message.quotations = vec![quotation("x".to_owned())];
        assert_eq!(of_one_input(&batch, Mode::Followup).len(), 1, "a quotation");
        assert_eq!(of_one_input(&[], Mode::Followup).len(), 0);
    }

    #[test]
    fn files_are_one_message_with_the_words_that_came_with_them_alone() {
        let one = || inbound_message("1", "one", 0);
        let files = |text: &str| {
            let mut files = inbound_message("2", text, 0);
            files.message.attachments = vec![file()];
            files
        };
        for (messages, count) in [
            (vec![one(), files(""), files("")], 3),
            (vec![files("caption"), files("")], 2),
            (vec![files(""), one()], 2),
            (vec![one(), one(), files("")], 1),
            (vec![files(""), one(), one()], 2),
            (vec![one(), files("caption")], 1),
            (vec![files("caption"), files("caption")], 1),
        ] {
            let texts: Vec<_> = messages.iter().map(|it| &it.message.said).collect();
            let of_one = of_one_input(&messages, Mode::Followup);
            assert_eq!(of_one.len(), count, "{texts:?}");
        }
    }

    #[test]
    fn another_person_a_button_and_a_directive_begin_anew() {
        let one = inbound_message("1", "one", 0);
        let mut other = inbound_message("2", "two", 0);
        other.message.sender = "8".to_owned();
        assert_eq!(batch_len(&[one.clone(), other.clone()]), 1);
        assert_eq!(same_sender_len(&[one.clone(), one.clone(), other]), 2);
        let mut button = inbound_message("3", "", 0);
        button.message.said = Said::Button {
            value: "v".to_owned(),
        };
        assert_eq!(batch_len(&[one.clone(), button.clone()]), 1);
        assert_eq!(batch_len(&[button.clone(), button]), 1);
        let directive = inbound_message("4", "/queue collect", 0);
        assert_eq!(batch_len(&[one.clone(), directive.clone()]), 1);
        assert_eq!(batch_len(&[directive, one.clone()]), 1);
        let mut aside = inbound_message("5", "", 0);
        aside.message.said = Said::Aside {
            text: "/queue collect".to_owned(),
        };
        assert!(!is_directive(&aside.message));
        assert_eq!(batch_len(&[one.clone(), aside.clone()]), 1);
        assert_eq!(batch_len(&[aside, one]), 1);
    }

    #[test]
    fn people_of_a_group_are_heard_together() {
        let mut one = inbound_message("1", "one", 0);
        one.message.group = Some("g".to_owned());
        let mut other = one.clone();
        other.message.sender = "8".to_owned();
        assert_eq!(batch_len(&[one.clone(), other.clone()]), 2);
        assert_eq!(
            joined_text(&[one, other], &[]),
            "[Ada (7)] one\n[Ada (8)] one"
        );
    }

    #[test]
    fn an_input_has_no_more_files_and_words_than_one_message_may_have() {
        let mut many = inbound_message("1", "one", 0);
        many.message.attachments = vec![file(); ATTACHMENTS_MAX];
        let mut more = inbound_message("2", "two", 0);
        more.message.attachments = vec![file()];
        assert_eq!(batch_len(&[many, more]), 1);
        let long = inbound_message("3", &"x".repeat(WORDS_BYTES_MAX), 0);
        assert_eq!(batch_len(&[long.clone(), long]), 1);
        let mut quotes = inbound_message("4", "four", 0);
        quotes.message.quotations = vec![quotation("x".repeat(WORDS_BYTES_MAX / 2))];
        assert_eq!(
            batch_len(&[quotes.clone(), quotes]),
            1,
            "quoted words count"
        );
    }
}
