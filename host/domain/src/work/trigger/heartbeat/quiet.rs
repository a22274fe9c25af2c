//! Quiet replies: a heartbeat without findings disturbs nobody.

use crate::thread::cut_off::NO_ANSWER;
use serde::{Deserialize, Serialize};

/// The text of a reply which says that there is nothing to do.
pub const HEARTBEAT_OK: &str = "HEARTBEAT_OK";

/// The rule by which replies to heartbeats are sent or dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quiet {
    /// Characters besides [`HEARTBEAT_OK`] that a dropped reply may have.
    pub chars_max: u32,
}

impl Quiet {
    /// Returns the part of a reply that is sent, if any. `HEARTBEAT_OK` is removed from its
    /// beginning or its end, also in bold or as code; in its middle it has no meaning.
    #[must_use]
    pub fn of(self, reply: &str) -> Option<String> {
        let mut rest = reply.trim();
        let mut is_marked = false;
        while let Some(shorter) = without_start(rest).or_else(|| without_end(rest)) {
            rest = shorter;
            is_marked = true;
        }
        if rest.is_empty() || rest == NO_ANSWER {
            return None;
        }
        let chars = u32::try_from(rest.chars().count()).unwrap_or(u32::MAX);
        let is_quiet = is_marked && chars <= self.chars_max;
        (!is_quiet).then(|| rest.to_owned())
    }
}

fn is_decoration(sign: char) -> bool {
    matches!(sign, '*' | '`' | '~' | '"' | '\'')
}

fn is_of_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

/// The reply without the text at its beginning; none if it does not begin with it.
fn without_start(reply: &str) -> Option<&str> {
    let rest = reply
        .trim_start_matches(is_decoration)
        .strip_prefix(HEARTBEAT_OK)?;
    let ends = !rest.starts_with(is_of_word);
    ends.then(|| {
        let rest = rest.trim_start_matches(is_decoration);
        rest.trim_start_matches(['.', '!', ',', ':', ';'])
            .trim_start()
    })
}

/// The reply without the text at its end; none if it does not end with it.
fn without_end(reply: &str) -> Option<&str> {
    let end = reply.trim_end_matches(|sign| is_decoration(sign) || matches!(sign, '.' | '!'));
    let rest = end.strip_suffix(HEARTBEAT_OK)?;
    let begins = !rest.ends_with(is_of_word);
    begins.then(|| rest.trim_end_matches(is_decoration).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const QUIET: Quiet = Quiet { chars_max: 10 };

    #[test]
    fn the_mark_is_taken_off_at_either_end_and_short_replies_go_nowhere() {
        for (reply, delivered) in [
            ("HEARTBEAT_OK", None),
            ("  HEARTBEAT_OK.\n", None),
            ("**HEARTBEAT_OK**", None),
            ("`HEARTBEAT_OK`", None),
            ("", None),
            (" \n", None),
            (NO_ANSWER, None),
            ("HEARTBEAT_OK all quiet", None),
            ("all quiet HEARTBEAT_OK", None),
            ("HEARTBEAT_OK 1234567890", None),
            ("HEARTBEAT_OK 12345678901", Some("12345678901")),
            ("HEARTBEAT_OK x HEARTBEAT_OK", None),
            (
                "Two mails came in.\nHEARTBEAT_OK",
                Some("Two mails came in."),
            ),
            ("I say HEARTBEAT_OK now", Some("I say HEARTBEAT_OK now")),
            ("short", Some("short")),
            ("HEARTBEAT_OKAY", Some("HEARTBEAT_OKAY")),
            ("NO_HEARTBEAT_OK", Some("NO_HEARTBEAT_OK")),
            ("heartbeat_ok", Some("heartbeat_ok")),
        ] {
            assert_eq!(QUIET.of(reply).as_deref(), delivered, "{reply:?}");
        }
    }

    proptest! {
        #[test]
        fn a_reply_without_the_mark_stays_as_it_is(reply in "[a-z .]{1,40}") {
            let trimmed = reply.trim();
            let expected = (!trimmed.is_empty()).then(|| trimmed.to_owned());
            prop_assert_eq!(QUIET.of(&reply), expected);
        }

        #[test]
        fn what_is_delivered_is_a_part_of_the_reply(reply in "(HEARTBEAT_OK|[a-zé*. ]){0,40}") {
            if let Some(delivered) = QUIET.of(&reply) {
                prop_assert!(reply.contains(&delivered));
            }
        }
    }
}
