//! The connector whose service is the host itself: a chat for web pages.
//!
//! It has no component. Each visitor of a page is a separate user, and reads the messages queued
//! for them.

use super::ConnectorSpec;
use crate::values::time::Timestamp;
use crate::work::trigger::SpecFault;
use serde::{Deserialize, Serialize};

/// The name used instead of a component's.
pub const DIRECT: &str = "direct";
/// Origins of one chat.
pub const ORIGINS_MAX: usize = 32;
/// Bytes of an origin.
const ORIGIN_BYTES_MAX: usize = 256;
/// The default number of visitors of one chat.
const VISITORS_DEFAULT: u32 = 10_000;
/// The most visitors of one chat.
const VISITORS_MAX: u32 = 1_000_000;

/// Bytes of all visitors' messages in one chat within [`VISITORS_BYTES_DAYS`].
pub const VISITORS_BYTES_MAX: u64 = 256 << 20;
/// Days after which a visitor's messages no longer count towards the bytes.
pub const VISITORS_BYTES_DAYS: u64 = 7;
/// Bytes left for all others, for each byte that an address uses.
const LEFT_FOR_EACH: u64 = 4;
/// Bytes that count for each message of a visitor in addition to its text: about the size of its
/// event.
pub const VISITOR_SAYING_BYTES: u64 = 1 << 10;
/// Visitors of a full chat that are checked for a place to reassign.
pub const VISITORS_INSPECTED_MAX: usize = 10_000;
/// Milliseconds of silence after which a visitor's place may go to an address with fewer places,
/// ahead of places in use.
const SHARED_AFTER_MS: u64 = 10 * 60_000;
/// Milliseconds of silence after which a visitor's place may go to anybody: seven days.
const FREE_AFTER_MS: u64 = 7 * 24 * 3_600_000;

/// A visitor's place in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VisitorPlace {
    /// Since when they have it.
    pub bound_at: Timestamp,
    /// The time of the latest event in one of their sessions; none without a session.
    pub active_at: Option<Timestamp>,
    /// Number of places of the visitor's address, as far as the address is known.
    pub of_address: usize,
}

/// Returns the place in a full chat that goes to a new visitor from an address with this many
/// places; none if each is in use.
///
/// An unused place goes first. Next is a place that was idle for a while, if its address has at
/// least two places more than the newcomer's. Next is a place that was idle for long. Last is a
/// place in use whose address has at least two places more: nobody keeps more than a fair share by
/// an occasional word. Of several it is a place of the address with the most places, and of those
/// the one that was idle for the longest time.
#[must_use]
pub fn given_back(places: &[VisitorPlace], of_newcomer: usize, now: Timestamp) -> Option<usize> {
    let silent_ms = |place: &VisitorPlace| {
        let since = place.active_at.unwrap_or(place.bound_at);
        now.0.saturating_sub(since.0)
    };
    let order = |place: &VisitorPlace| {
        let silent_ms = silent_ms(place);
        let has_more = place.of_address > of_newcomer + 1;
        if place.active_at.is_none() {
            Some(3)
        } else if has_more && silent_ms >= SHARED_AFTER_MS {
            Some(2)
        } else if silent_ms >= FREE_AFTER_MS {
            Some(1)
        } else {
            has_more.then_some(0)
        }
    };
    let ranked = places.iter().enumerate().filter_map(|(index, place)| {
        Some(((order(place)?, place.of_address, silent_ms(place)), index))
    });
    ranked.max_by_key(|(rank, _)| *rank).map(|(_, index)| index)
}

/// Returns whether a chat accepts this many more bytes from an address. The counts are those of the
/// address, and of all addresses, in the last [`VISITORS_BYTES_DAYS`].
///
/// An address may use a fraction of the bytes then left for all others ([`LEFT_FOR_EACH`]): a fifth
/// of the whole while it is alone. So even if some addresses are at their limit, a new one is
/// accepted.
#[must_use]
pub const fn has_room(of_address: u64, of_all: u64, bytes: u64) -> bool {
    let left = VISITORS_BYTES_MAX.saturating_sub(of_all.saturating_add(bytes));
    let total = of_address.saturating_add(bytes);
    total.saturating_mul(LEFT_FOR_EACH) <= left
}

/// Returns the time from which visitors' messages count.
#[must_use]
pub const fn visitors_bytes_since(now: Timestamp) -> Timestamp {
    Timestamp(now.0.saturating_sub(VISITORS_BYTES_DAYS * 24 * 3_600_000))
}

/// The `configuration` of a chat for web pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DirectSpec {
    /// The origins of the pages that may use it, such as `https://www.example.org`.
    pub origins: Vec<String>,
    /// The most visitors.
    #[serde(default = "visitors_default")]
    pub visitors_max: u32,
    /// True to show replies during their generation, before they are final.
    #[serde(default)]
    pub deltas: bool,
}

fn visitors_default() -> u32 {
    VISITORS_DEFAULT
}

impl DirectSpec {
    /// Reads the configuration of a connector; none if it has another component.
    #[must_use]
    pub fn of(spec: &ConnectorSpec) -> Option<Result<Self, SpecFault>> {
        (spec.component == DIRECT).then(|| Self::read(spec))
    }

    /// Returns whether pages of an origin, as browsers send it, may use the chat.
    #[must_use]
    pub fn admits(&self, origin: &str) -> bool {
        self.origins.iter().any(|known| known == origin)
    }

    fn read(spec: &ConnectorSpec) -> Result<Self, SpecFault> {
        let fault = |field: &str, message: String, fix: &str| {
            let field = format!("configuration.{field}");
            Err(SpecFault::new(field, message, fix))
        };
        let intakes = [
            ("intake", spec.intake.is_some()),
            ("webhook", spec.webhook.is_some()),
        ];
        if let Some((field, _)) = intakes.into_iter().find(|(_, is_set)| *is_set) {
            let message = "has no meaning: a chat for web pages has a way in of its own";
            return Err(SpecFault::new(field, message, "leave it out"));
        }
        let direct: Self = serde_json::from_value(spec.configuration.clone()).map_err(|error| {
            let fix = "write `origins`, `visitorsMax` and `deltas`";
            SpecFault::new("configuration", format!("does not fit: {error}"), fix)
        })?;
        if !(1..=ORIGINS_MAX).contains(&direct.origins.len()) {
            let message = format!("are {}", direct.origins.len());
            let fix = format!(
                "write 1 to {ORIGINS_MAX}, those of the pages that may use the chat, such as \
                 `https://www.example.org`"
            );
            return fault("origins", message, &fix);
        }
        if let Some(other) = direct.origins.iter().find(|text| !is_origin(text)) {
            let shown: String = other.chars().take(ORIGIN_BYTES_MAX).collect();
            let fix = "write scheme and host without a path, such as `https://www.example.org` or \
                       `http://localhost:8080`";
            return fault(
                "origins",
                format!("do not fit: `{shown}` is no origin"),
                fix,
            );
        }
        if !(1..=VISITORS_MAX).contains(&direct.visitors_max) {
            let fix = format!("write 1 to {VISITORS_MAX}");
            return fault("visitorsMax", format!("is {}", direct.visitors_max), &fix);
        }
        Ok(direct)
    }
}

/// Returns whether a text is an origin as browsers write it: in lower case, without a path, and
/// without its scheme's default port.
fn is_origin(text: &str) -> bool {
    let schemes = [("https://", ":443"), ("http://", ":80")];
    let found = schemes
        .iter()
        .find_map(|(scheme, port)| Some((text.strip_prefix(scheme)?, *port)));
    let Some((authority, usual_port)) = found else {
        return false;
    };
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.:[]_".contains(&byte);
    text.len() <= ORIGIN_BYTES_MAX
        && !authority.is_empty()
        && authority.bytes().all(fits)
        && !authority.ends_with(usual_port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_place_that_is_not_used_goes_to_whoever_comes_and_one_in_use_does_not() {
        let now = Timestamp(FREE_AFTER_MS * 10);
        let ago = |ms: u64| Timestamp(now.0 - ms);
        let unused = |since_ms, of_address| VisitorPlace {
            bound_at: ago(since_ms),
            active_at: None,
            of_address,
        };
        let silent = |for_ms, of_address| VisitorPlace {
            active_at: Some(ago(for_ms)),
            ..unused(FREE_AFTER_MS, of_address)
        };
        for (places, of_newcomer, expected) in [
            (vec![], 0, None),
            // Unused ones first: of the address with most, and the oldest of those.
            (vec![silent(FREE_AFTER_MS, 9), unused(0, 1)], 1, Some(1)),
            (vec![unused(9, 1), unused(1, 3), unused(2, 3)], 0, Some(2)),
            (vec![unused(1, 5), unused(2, 5)], 5, Some(1)),
            // Then those of an address with more than the newcomer's has.
            (
                vec![silent(SHARED_AFTER_MS, 4), silent(FREE_AFTER_MS, 1)],
                2,
                Some(0),
            ),
            (vec![silent(SHARED_AFTER_MS, 4)], 3, None),
            // Those in use are left to an address that has as many, or one more.
            (vec![silent(0, 4), silent(9, 4)], 3, None),
            // Then those that were not used for long.
            (
                vec![silent(FREE_AFTER_MS, 1), silent(FREE_AFTER_MS + 1, 1)],
                9,
                Some(1),
            ),
            (vec![silent(FREE_AFTER_MS - 1, 1)], 0, None),
            // Then those in use, of the address that holds most.
            (vec![silent(0, 4)], 2, Some(0)),
            (
                vec![
                    silent(99, 3),
                    silent(1, 4),
                    silent(9, 4),
                    silent(FREE_AFTER_MS - 1, 1),
                ],
                0,
                Some(2),
            ),
            (
                vec![silent(99, 4), silent(SHARED_AFTER_MS, 3), silent(0, 1)],
                0,
                Some(1),
            ),
        ] {
            assert_eq!(
                given_back(&places, of_newcomer, now),
                expected,
                "{places:?}"
            );
        }
    }

    /// Each of them says a word every nine minutes.
    #[test]
    fn an_address_with_all_places_keeps_no_more_of_them_than_its_share_when_others_come() {
        let now = Timestamp(FREE_AFTER_MS * 10);
        let storm = 0;
        let visitors_max = 12;
        let mut of_places = vec![storm; visitors_max];
        for newcomer in 1..=8_usize {
            let count = |address| of_places.iter().filter(|it| **it == address).count();
            let places: Vec<VisitorPlace> = (0..)
                .zip(&of_places)
                .map(|(index, address)| VisitorPlace {
                    bound_at: Timestamp(0),
                    active_at: Some(Timestamp(now.0 - 9 * 60_000 + index)),
                    of_address: count(*address),
                })
                .collect();
            // Two of each of the four addresses come.
            let address = newcomer.div_ceil(2);
            let index = given_back(&places, count(address), now).expect("a place");
            assert_eq!(of_places[index], storm, "the {newcomer}th");
            of_places[index] = address;
        }
        assert_eq!(of_places.iter().filter(|it| **it == storm).count(), 4);
    }

    #[test]
    fn addresses_that_hold_all_they_may_leave_room_to_one_that_holds_nothing() {
        for addresses in [1, 2, 3, 20] {
            let mut total = vec![0; addresses];
            // One after the other says as much as is taken.
            while let Some(index) =
                (0..addresses).find(|it| has_room(total[*it], total.iter().sum(), 64 << 10))
            {
                total[index] += 64 << 10;
            }
            let all: u64 = total.iter().sum();
            assert!(all < VISITORS_BYTES_MAX, "{addresses}: {all}");
            assert!(has_room(0, all, 64 << 10), "{addresses}: {all}");
            let largest = total.into_iter().max().unwrap_or_default();
            assert!(largest <= VISITORS_BYTES_MAX / 5, "{addresses}: {largest}");
        }
        assert!(has_room(0, 0, VISITORS_BYTES_MAX / 5));
        assert!(!has_room(1, 1, VISITORS_BYTES_MAX / 5));
        assert!(!has_room(0, VISITORS_BYTES_MAX, 1));
        assert!(!has_room(0, u64::MAX, 1));
    }

    fn read(configuration: &Value) -> Result<DirectSpec, SpecFault> {
        let spec = json!({
            "component": "direct", "agent": "assistant", "configuration": configuration,
        });
        let spec: ConnectorSpec = serde_json::from_value(spec).unwrap();
        DirectSpec::of(&spec).unwrap()
    }

    #[test]
    fn a_chat_admits_the_pages_of_its_origins_alone() {
        let direct = read(&json!({ "origins": ["https://a.example"] })).unwrap();
        assert_eq!(
            (direct.visitors_max, direct.deltas),
            (VISITORS_DEFAULT, false)
        );
        assert!(direct.admits("https://a.example"));
        for other in [
            "",
            "null",
            "http://a.example",
            "https://a.example:8443",
            "https://b.example",
            "https://a.example.evil.example",
        ] {
            assert!(!direct.admits(other), "{other}");
        }
    }

    #[test]
    fn what_is_no_origin_is_refused_with_the_field() {
        for origin in [
            "*",
            "null",
            "a.example",
            "https://",
            "https://a.example/",
            "https://A.example",
            "https://a.example:443",
            "http://a.example:80",
            "ftp://a.example",
            "https://a.example https://b.example",
        ] {
            let error = read(&json!({ "origins": [origin] })).unwrap_err();
            assert_eq!(error.field, "configuration.origins");
            assert!(error.message.contains(&format!("`{origin}`")), "{error}");
        }
        for (configuration, field) in [
            (json!({ "origins": [] }), "configuration.origins"),
            (json!({}), "configuration"),
            (
                json!({ "origins": ["http://localhost:8080"], "visitorsMax": 0 }),
                "configuration.visitorsMax",
            ),
        ] {
            let error = read(&configuration).unwrap_err();
            assert_eq!(error.field, field, "{error}");
        }
    }

    #[test]
    fn a_connector_with_a_component_is_no_such_chat() {
        let spec = json!({ "component": "telegram", "agent": "assistant" });
        let spec: ConnectorSpec = serde_json::from_value(spec).unwrap();
        assert_eq!(DirectSpec::of(&spec), None);
        let polled = json!({
            "component": "direct", "agent": "assistant", "intake": "polling",
            "configuration": { "origins": ["https://a.example"] },
        });
        let polled: ConnectorSpec = serde_json::from_value(polled).unwrap();
        let error = DirectSpec::of(&polled).unwrap().unwrap_err();
        assert_eq!(error.field, "intake");
    }
}
