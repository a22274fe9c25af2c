//! A cursor into a list ordered by time. One opaque token holds time and id of a page's last row,
//! as they were on that page.
//!
//! The id alone would not do: when the row is touched before the next page is asked for, it stands
//! elsewhere in the list, and the page would begin there.

use crate::problem::Problem;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::id::SessionId;
use domain::time::Timestamp;
use uuid::Uuid;

/// Bytes of a token: the list, the time, the id.
const BYTES: usize = 1 + 8 + 16;

/// A list that goes on by such tokens. Those of one are none of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    /// An agent's sessions, the most recently updated first.
    Sessions,
    /// An agent's structured sessions that have ended, the latest first.
    History,
    /// An agent's pinned sessions, the most recently pinned first.
    Pinned,
    /// The pinned sessions with all agents, the most recently pinned first.
    AllPinned,
    /// The sessions with all agents that are not pinned, the most recently updated first.
    AllUnpinned,
}

impl List {
    fn tag(self) -> u8 {
        match self {
            Self::Sessions => b's',
            Self::History => b'h',
            Self::Pinned => b'p',
            Self::AllPinned => b'P',
            Self::AllUnpinned => b'S',
        }
    }

    /// The token of a row.
    pub(crate) fn token(self, time: Timestamp, id: SessionId) -> String {
        let mut bytes = [0; BYTES];
        let parts = [self.tag()]
            .into_iter()
            .chain(time.0.to_be_bytes())
            .chain(id.0.into_bytes());
        bytes
            .iter_mut()
            .zip(parts)
            .for_each(|(byte, part)| *byte = part);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads the position from the query's `after`.
    pub(crate) fn after(
        self,
        token: Option<&str>,
    ) -> Result<Option<(Timestamp, SessionId)>, Problem> {
        let malformed = || {
            let detail = "after: this is not the `next_after` of a page of this list; leave it out \
                          to begin with the first page";
            Problem::invalid_query("after", detail)
        };
        token
            .map(|token| self.read(token).ok_or_else(malformed))
            .transpose()
    }

    fn read(self, token: &str) -> Option<(Timestamp, SessionId)> {
        let bytes: [u8; BYTES] = URL_SAFE_NO_PAD.decode(token).ok()?.try_into().ok()?;
        let (tag, rest) = bytes.split_first()?;
        let (time, id) = rest.split_first_chunk::<8>()?;
        // What is beyond the times of the store is nothing that it gave out.
        let time = u64::from_be_bytes(*time);
        (*tag == self.tag() && i64::try_from(time).is_ok())
            .then_some((Timestamp(time), SessionId(Uuid::from_slice(id).ok()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_to_its_place_and_anything_else_nowhere() {
        let time = Timestamp(1_700_000_000_123);
        let id = SessionId(Uuid::from_u128(7));
        let token = List::Sessions.token(time, id);
        assert_eq!(
            List::Sessions.after(Some(&token)).unwrap(),
            Some((time, id))
        );
        assert_eq!(List::Sessions.after(None).unwrap(), None);
        let far = List::Sessions.token(Timestamp(u64::MAX), id);
        for none in [
            "",
            "x",
            &id.to_string(),
            &token[1..],
            &format!("{token}A"),
            &format!("{token}="),
            &far,
            &"9".repeat(40),
            "\0",
        ] {
            let problem = List::Sessions.after(Some(none)).unwrap_err();
            assert_eq!(
                (
                    problem.code.status(),
                    problem.code.as_str(),
                    problem.field.as_deref()
                ),
                (400, "INVALID_QUERY", Some("query:after")),
                "{none}"
            );
        }
        assert!(List::History.after(Some(&token)).is_err());
    }
}
